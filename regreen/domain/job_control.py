"""When work stops, and threads that stay bound to their job."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from threading import Event
from types import FrameType
from typing import Any, ParamSpec, TypeVar

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


class OutOfTime(BaseException):
    """The time of a command is over. It is no `Exception`, so that no handler of errors ends it on its way out."""


# Measured on two busy cores: benchmarks/environments.md, "How long an ending takes".
_ENDING_SECONDS = 6.0
_ENDING_SHARE = 0.2
# An answer takes about a second to make, however short the limit is.
_MIN_ENDING_SECONDS, _MAX_ENDING_SHARE = 3.0, 0.5
# Of the ending, before the limit. Beside a busy machine, the answer of a process that is left takes more than a second.
_UNWIND_SHARE, _ABANDON_SHARE, _LAST_SHARE = 0.5, 0.3, 0.03


class TimeLimit:
    """The time that one command may take altogether, its ending included.

    Once all but the ending is over, `cancel` counts as set, and the work ends with what it knows by then. A call that
    nothing cancels is left by `OutOfTime` in the main thread; and where that is of no use either (a thread that is
    waited for), the process is ended.

    Args:
        minutes: all of it; None for as long as it takes.
        began: when the command began, on the monotonic clock.
        is_chosen: the user gave the limit.

    Attributes:
        known: what the command has found out by now, in its own terms, for an answer that is given at the limit.
    """

    def __init__(self, minutes: float | None, began: float, *, is_chosen: bool = True) -> None:
        seconds = math.inf if minutes is None else 60 * minutes
        self.known: Any = None
        self.began, self.is_chosen, self._over = began, is_chosen, began + seconds
        self._ending = min(
            _ENDING_SECONDS,
            max(_ENDING_SHARE * seconds, min(_MIN_ENDING_SECONDS, _MAX_ENDING_SHARE * seconds)),
        )
        self.cancel = DeadlineEvent(self.deadline, None)
        self._answer = threading.Lock()
        self._answering: threading.Thread | None = None

    @property
    def deadline(self) -> float:
        """When the work has to end, on the monotonic clock."""
        return self._over - self._ending

    @property
    def minutes_left(self) -> float:
        """What is left of the work's time."""
        return max(0.0, self.deadline - time.monotonic()) / 60

    @property
    def seconds_to_end(self) -> float:
        """What is left until the process has to be gone."""
        return max(0.0, self._over - _LAST_SHARE * self._ending - time.monotonic())

    def begin_answer(self) -> bool:
        """Whether the caller is the first who answers: after this nothing but the end of the process interrupts it.

        Where the watcher answers already, the main thread does not come back: the watcher ends the process.
        """
        if self._answer.acquire(blocking=False):
            self._answering = threading.current_thread()
            return True
        here = threading.current_thread()
        if here is threading.main_thread() and self._answering is not here:
            Event().wait()
        return False

    @contextmanager
    def enforce(self, end_process: Callable[[], object], *, to_the_end: bool) -> Iterator[None]:
        """Hold the work to its limit; `end_process` is called at the last moment, in a thread of its own.

        `to_the_end`: also what the process does after the work, as waiting for its threads.
        """
        main = threading.current_thread()
        if self._over == math.inf or main is not threading.main_thread():
            yield
            return
        ended = Event()

        def watch() -> None:
            if ended.wait(self._over - _UNWIND_SHARE * self._ending - time.monotonic()):
                return
            if not self._answer.locked():
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
            if not ended.wait(self._over - _ABANDON_SHARE * self._ending - time.monotonic()):
                end_process()

        earlier = signal.signal(signal.SIGUSR1, self._leave)
        threading.Thread(target=watch, daemon=True, name="regreen-limit").start()
        try:
            yield
        finally:
            if not to_the_end:
                ended.set()
                signal.signal(signal.SIGUSR1, earlier)

    def _leave(self, _number: int, _frame: FrameType | None) -> None:
        if not self._answer.locked():
            raise OutOfTime


_P = ParamSpec("_P")
_R = TypeVar("_R")


class ContextThreadPool(ThreadPoolExecutor):
    """An executor whose tasks inherit the context variables of the submitter."""

    def submit(self, fn: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_R]:
        """Run `fn` in a thread with the caller's context."""
        context = copy_context()
        return super().submit(lambda: context.run(fn, *args, **kwargs))
