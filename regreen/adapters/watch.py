"""Watches one running command: drains what it prints, and notices the end, the deadline, a flood or a cancel.

The draining thread never stops before the stream ends, and never kills: an engine that cannot deliver output
blocks in `kill` for ever (https://github.com/moby/moby/issues/41827). Killing is the watching thread's part.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from threading import Event, Thread
from typing import Literal

from regreen.adapters.output import HeadAndTail

Stream = Literal[1, 2]
_TICK = 0.05
_SHORTEST = 0.002
_ASK_EVERY = 0.25
_GRACE = 0.5


class Tap:
    """Drains a stream of (1: standard output, 2: standard error) chunks in a thread of its own."""

    def __init__(self, keep: int, flood: int) -> None:
        self.out = HeadAndTail(keep)
        self.err = HeadAndTail(keep)
        self.flooded = False
        self.news = Event()
        self._flood = flood
        self._thread: Thread | None = None

    def start(self, chunks: Iterable[tuple[Stream, bytes]]) -> None:
        """Begin to drain; `news` is set at the end of the stream or when it has become a flood."""
        self._thread = Thread(target=self._drain, args=(chunks,), daemon=True, name="regreen-tap")
        self._thread.start()

    def join(self, seconds: float) -> None:
        """Wait for the end of the stream, not for ever."""
        if self._thread is not None:
            self._thread.join(seconds)

    @property
    def truncated(self) -> bool:
        """Some output was left out."""
        return self.out.truncated or self.err.truncated

    def _drain(self, chunks: Iterable[tuple[Stream, bytes]]) -> None:
        try:
            for stream, chunk in chunks:
                (self.out if stream == 1 else self.err).add(chunk)
                if not self.flooded and self.out.seen + self.err.seen > self._flood:
                    self.flooded = True
                    self.news.set()
        except OSError:
            pass  # the stream was closed under us, as it is when a box is killed
        finally:
            self.news.set()


def watch(
    tap: Tap, *, timeout: float, cancel: Event | None, has_exited: Callable[[], bool]
) -> Literal["timeout", "flood", "cancelled"] | None:
    """Wait for a command; None when it ended by itself, else why it has to be killed.

    `has_exited` is asked now and then, for a process left behind may hold the stream open after the command's
    end; and at the stream's end, for a command may close it and go on.
    """
    deadline = time.monotonic() + timeout
    ask_at = time.monotonic() + _ASK_EVERY
    pause = _SHORTEST
    waiting = Event()
    while True:
        left = max(0.0, deadline - time.monotonic())
        if tap.news.is_set():  # all is said; the end itself follows at once, as a rule
            waiting.wait(min(pause, left))
            pause = min(2 * pause, _TICK)
        else:
            tap.news.wait(min(_TICK, left))
        if tap.flooded:
            return "flood"
        if (tap.news.is_set() or time.monotonic() >= ask_at) and has_exited():
            tap.news.wait(_GRACE)
            return _flood(tap)
        if cancel is not None and cancel.is_set():
            return "cancelled"
        if time.monotonic() >= deadline:
            return "timeout"
        if time.monotonic() >= ask_at:
            ask_at = time.monotonic() + _ASK_EVERY


def _flood(tap: Tap) -> Literal["flood"] | None:
    return "flood" if tap.flooded else None
