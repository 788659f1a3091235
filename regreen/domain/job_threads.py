"""Threads that inherit their job: log lines name it, and traces are recorded below it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


class ContextThreadPool(ThreadPoolExecutor):
    """An executor whose tasks inherit the context variables of the submitter."""

    def submit(self, fn: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_R]:
        """Run `fn` in a thread with the caller's context."""
        context = copy_context()
        return super().submit(lambda: context.run(fn, *args, **kwargs))
