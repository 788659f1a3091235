"""When work stops, and threads that stay bound to their job."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from threading import Event
from typing import ParamSpec, TypeVar

from regreen.domain.errors import Cancelled


class DeadlineEvent(Event):
    """A cancel event that counts as set once the time is over, too, or the caller's own event is set."""

    def __init__(
        self, deadline: float, cancel: Event | None, now: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._deadline, self._cancel, self._now = deadline, cancel, now

    @property
    def is_over(self) -> bool:
        """Whether it was the time, and not the caller."""
        return not (self._cancel is not None and self._cancel.is_set()) and self.is_set()

    def is_set(self) -> bool:
        """Whether to stop."""
        called = self._cancel is not None and self._cancel.is_set()
        return called or super().is_set() or self._now() >= self._deadline


@dataclass(frozen=True)
class StopCondition:
    """A deadline on the monotonic clock, and the caller's cancel event."""

    deadline: float
    cancel: Event | None = None
    now: Callable[[], float] = time.monotonic

    @property
    def left(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.deadline - self.now())

    def check_cancelled(self) -> None:
        """Raise `Cancelled` if the caller cancelled the work."""
        if self.cancel is not None and self.cancel.is_set():
            msg = "the repair was cancelled"
            raise Cancelled(msg)


_P = ParamSpec("_P")
_R = TypeVar("_R")


class ContextThreadPool(ThreadPoolExecutor):
    """An executor whose tasks inherit the context variables of the submitter."""

    def submit(self, fn: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_R]:
        """Run `fn` in a thread with the caller's context."""
        context = copy_context()
        return super().submit(lambda: context.run(fn, *args, **kwargs))
