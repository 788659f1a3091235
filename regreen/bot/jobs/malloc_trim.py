"""Returns unused memory to the system, if the C library can."""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8
_MAX_ARENAS = 2


def limit_malloc_arenas() -> None:
    """Let threads share heaps. Call it before many threads exist.

    glibc gives nearly every thread its own heap, and each heap keeps its peak size; Python's threads hardly ever
    allocate at the same time.
    """
    _call_libc("mallopt", _M_ARENA_MAX, _MAX_ARENAS)


def trim_memory() -> None:
    """Return free memory after the imports and after large jobs; that is about a tenth of the total."""
    _call_libc("malloc_trim", 0)


def _call_libc(name: str, *arguments: int) -> None:
    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None:  # other C libraries have no `malloc_trim`
        function(*arguments)
