"""When a repair stops."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event

from regreen.errors import Cancelled


@dataclass(frozen=True)
class Stop:
    """When to stop: at a deadline of the monotonic clock, or when somebody cancels."""

    deadline: float
    cancel: Event | None = None
    now: Callable[[], float] = time.monotonic

    @property
    def left(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.deadline - self.now())

    def check(self) -> None:
        """Raise `Cancelled` when somebody asked for the work to stop."""
        if self.cancel is not None and self.cancel.is_set():
            msg = "the repair was cancelled"
            raise Cancelled(msg)
