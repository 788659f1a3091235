"""Watches one running command: drains its output, and detects its end, the deadline, a flood or a cancel.

The draining thread never stops before the stream ends, and never kills: an engine that cannot deliver output
blocks in `kill` for ever (https://github.com/moby/moby/issues/41827). Killing is the watching thread's part.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from threading import Event, Thread
from typing import Literal

Stream = Literal[1, 2]
_MAX_POLL_SECONDS = 0.05
_MIN_POLL_SECONDS = 0.002
_EXIT_POLL_SECONDS = 0.25
_GRACE_SECONDS = 0.5


class OutputDrain:
    """Drains a stream of (1: standard output, 2: standard error) chunks in a thread of its own."""

    def __init__(self, keep: int, flood: int) -> None:
        self.out = HeadAndTail(keep)
        self.err = HeadAndTail(keep)
        self.flooded = False
        self.news = Event()
        self._flood = flood
        self._thread: Thread | None = None

    def start_draining(self, chunks: Iterable[tuple[Stream, bytes]]) -> None:
        """Begin to drain; `news` is set at the end of the stream or when it has become a flood."""
        self._thread = Thread(
            target=self._drain_chunks, args=(chunks,), daemon=True, name="regreen-tap"
        )
        self._thread.start()

    def wait_for_end(self, seconds: float) -> None:
        """Wait for the end of the stream, not for ever."""
        if self._thread is not None:
            self._thread.join(seconds)

    @property
    def is_truncated(self) -> bool:
        """Whether output was left out."""
        return self.out.is_truncated or self.err.is_truncated

    def _drain_chunks(self, chunks: Iterable[tuple[Stream, bytes]]) -> None:
        try:
            for stream, chunk in chunks:
                (self.out if stream == 1 else self.err).add_chunk(chunk)
                if not self.flooded and self.out.seen + self.err.seen > self._flood:
                    self.flooded = True
                    self.news.set()
        except OSError:
            pass  # the stream was closed under us, as it is when a box is killed
        finally:
            self.news.set()


def watch_process(
    tap: OutputDrain, *, timeout: float, cancel: Event | None, has_exited: Callable[[], bool]
) -> Literal["timeout", "flood", "cancelled"] | None:
    """Wait for a command; None when it ended by itself, else why it has to be killed.

    `has_exited` is asked now and then, for a process left behind may hold the stream open after the command's
    end; and at the stream's end, for a command may close it and go on.
    """
    deadline = time.monotonic() + timeout
    ask_at = time.monotonic() + _EXIT_POLL_SECONDS
    pause = _MIN_POLL_SECONDS
    waiting = Event()
    while True:
        left = max(0.0, deadline - time.monotonic())
        if tap.news.is_set():  # all is said; the end itself follows at once, as a rule
            waiting.wait(min(pause, left))
            pause = min(2 * pause, _MAX_POLL_SECONDS)
        else:
            tap.news.wait(min(_MAX_POLL_SECONDS, left))
        if tap.flooded:
            return "flood"
        if (tap.news.is_set() or time.monotonic() >= ask_at) and has_exited():
            tap.news.wait(_GRACE_SECONDS)
            return _flood_reason(tap)
        if cancel is not None and cancel.is_set():
            return "cancelled"
        if time.monotonic() >= deadline:
            return "timeout"
        if time.monotonic() >= ask_at:
            ask_at = time.monotonic() + _EXIT_POLL_SECONDS


def _flood_reason(tap: OutputDrain) -> Literal["flood"] | None:
    return "flood" if tap.flooded else None


# Keeps the head and the tail of a stream that may be endless, in bounded memory.

_OMISSION_NOTICE = "\n[... {} bytes left out ...]\n"


class HeadAndTail:
    """Keeps the first and the last half of `limit` of an endless stream."""

    def __init__(self, limit: int) -> None:
        self.seen = 0
        self._limit = max(limit, 0)
        self._head_room = self._limit - self._limit // 2
        self._head = bytearray()
        self._tail = bytearray()

    def add_chunk(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        self.seen += len(chunk)
        room = self._head_room - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        # Trimmed only now and then: cutting at each chunk would copy the tail every time.
        if len(self._tail) > 2 * self._limit + 65536:
            self._trim_tail()

    @property
    def is_truncated(self) -> bool:
        """Whether bytes were left out."""
        return self.seen > self._limit

    def to_bytes(self) -> bytes:
        """The kept bytes, with a notice where the middle is missing; never longer than the limit."""
        self._trim_tail()
        if not self.is_truncated:
            return bytes(self._head + self._tail)
        room = self._limit - len(_OMISSION_NOTICE.format(self.seen))
        notice = _OMISSION_NOTICE.format(self.seen - room).encode()
        if room <= len(_OMISSION_NOTICE) // 2:
            return bytes(self._head[: self._limit])
        back = room // 2
        return bytes(self._head[: room - back] + notice + self._tail[len(self._tail) - back :])

    def to_text(self) -> str:
        """The kept bytes as UTF-8 text with undecodable bytes replaced."""
        return self.to_bytes().decode("utf-8", errors="replace")

    def _trim_tail(self) -> None:
        keep = self._limit // 2
        if len(self._tail) > keep:
            del self._tail[: len(self._tail) - keep]
