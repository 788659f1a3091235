"""Threads that know which job they work for: their log lines name it, and their traces stand below it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Pool(ThreadPoolExecutor):
    """An executor whose work sees the context variables of whoever gave it."""

    def submit(self, fn: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_R]:
        """Have a thread call `fn`, as if it were called here."""
        context = copy_context()
        return super().submit(lambda: context.run(fn, *args, **kwargs))
