"""Memory that the process keeps without need: given back to the system, where the C library can."""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8
_FEW = 2


def use_few_arenas() -> None:
    """Have threads share heaps. Call it before there are many threads.

    glibc gives nearly every thread a heap of its own, each of which keeps what was once needed; Python's threads
    hardly ever allocate at the same time.
    """
    _call("mallopt", _M_ARENA_MAX, _FEW)


def give_back() -> None:
    """Give back what is free: after the imports, and after a job that needed much, that is a tenth of it all."""
    _call("malloc_trim", 0)


def _call(name: str, *arguments: int) -> None:
    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None:  # another C library has other ways
        function(*arguments)
