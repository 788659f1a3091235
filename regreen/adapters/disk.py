"""Guards the host's disk while a setup writes an environment: layers and directories have no size limit of their own."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Self

MOST_BYTES = 12 * 1024**3
MOST_FILES = 2_000_000
_EVERY_S = 0.25


class DiskGuard:
    """Sets `stop` when the caller cancels, or when the file system at `place` lost more than a setup may take.

    It looks at the file system as a whole, because that costs nothing; so the limits are wide.
    """

    def __init__(self, place: Path, cancel: Event | None) -> None:
        self.stop = Event()
        self.overflowed = False
        self._place = place
        self._cancel = cancel
        self._done = Event()
        self._thread = Thread(target=self._watch, daemon=True, name="regreen-disk")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        before = _free(self._place)
        while not self._done.wait(_EVERY_S):
            if self._cancel is not None and self._cancel.is_set():
                self.stop.set()
            now = _free(self._place)
            if (
                before[0] - now[0] > MOST_BYTES
                or before[1] - now[1] > MOST_FILES
                or 0 < now[0] < MOST_BYTES // 24
            ):
                self.overflowed = True
                self.stop.set()


def _free(place: Path) -> tuple[int, int]:
    """Free bytes and file entries; zeros where the place is not ours to see (a remote engine)."""
    try:
        seen = os.statvfs(place)
    except OSError:
        return 0, 0
    return seen.f_bavail * seen.f_frsize, seen.f_favail
