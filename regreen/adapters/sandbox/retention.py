"""Retention of prepared environments: last use, size, and which ones to remove."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Self

from regreen.domain.errors import Cancelled
from regreen.domain.models import DoctorCheck, Retention

GiB = 1024**3
# Between preparation and opening an environment is not locked; a job does not take longer than this.
_GRACE_S = 3600.0
_DAY_S = 86400.0
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class StoredEnvironment:
    """One prepared environment. `used` is when it was last prepared or opened, in seconds of the epoch."""

    name: str
    size: int
    used: float


def choose_environments_to_remove(
    environments: Sequence[StoredEnvironment], rules: Retention, now: float
) -> list[StoredEnvironment]:
    """The ones to remove, the longest unused first; never one that was used within the hour."""
    going: list[StoredEnvironment] = []
    total, count = sum(env.size for env in environments), len(environments)
    for env in sorted(environments, key=lambda env: env.used):
        if env.used > now - _GRACE_S:
            break
        too_old = env.used < now - rules.days * _DAY_S
        if too_old or total > rules.most_bytes or count > rules.count:
            going.append(env)
            total, count = total - env.size, count - 1
    return going


def check_environments(environments: Sequence[StoredEnvironment]) -> DoctorCheck:
    """Their number and size, as a line of `regreen doctor`."""
    oldest = min((env.used for env in environments), default=time.time())
    days = (time.time() - oldest) / _DAY_S
    detail = (
        f"{len(environments)}, {sum(env.size for env in environments) / GiB:.1f} GiB together, "
        f"the longest unused for {days:.1f} days"
    )
    return DoctorCheck("prepared environments", "sandbox", True, False, detail)


class UsageLedger:
    """One small file for each environment: its time is the last use, its text the size, its lock says "in use"."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def mark_used(self, name: str, size: int | None = None) -> None:
        """Record the use of an environment. If the ledger cannot be written, only the record is lost."""
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            file = self._entry_path(name)
            if size is not None:
                file.write_text(str(size), encoding="ascii")
            file.touch()

    def knows(self, name: str) -> bool:
        """Whether its use was recorded here, and not only by a Regreen with another home."""
        return self._entry_path(name).exists()

    def find_last_use(self, name: str, default: float) -> float:
        """When it was last used; `default` where nobody noted it."""
        try:
            return self._entry_path(name).stat().st_mtime
        except OSError:
            return default

    def recorded_size(self, name: str) -> int:
        """Its recorded size."""
        try:
            return int(self._entry_path(name).read_text(encoding="ascii") or 0)
        except (OSError, ValueError):
            return 0

    def hold_environment(self, name: str) -> int:
        """Lock it until the returned descriptor is closed: it is not removed before that."""
        self.mark_used(name)
        descriptor = os.open(self._entry_path(name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        return descriptor

    @contextmanager
    def lock_if_unused(self, name: str) -> Iterator[bool]:
        """Whether it is not in use, and cannot be while the block runs."""
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._entry_path(name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
        finally:
            os.close(descriptor)

    @contextmanager
    def lock_for_build(self, name: str, cancel: Event | None = None) -> Iterator[None]:
        """Lock the making or removing of this environment on this machine; waits for another to end.

        Raises:
            Cancelled: `cancel` was set while waiting.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        place = self._entry_path(f"{name}.making")
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while True:
                with suppress(BlockingIOError):
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                if cancel is not None and cancel.is_set():
                    msg = "cancelled while another prepared the same environment"
                    raise Cancelled(msg)
                time.sleep(_POLL_S)
            yield
        finally:
            os.close(descriptor)

    def forget_environment(self, name: str) -> None:
        """Remove it from the ledger."""
        self._entry_path(name).unlink(missing_ok=True)

    def claim_daily_cleanup(self) -> bool:
        """Whether the last clean-up is a day ago; asking counts as a clean-up."""
        due = self.find_last_use(".pruned", 0.0) < time.time() - _DAY_S
        if due:
            self.mark_used(".pruned")
        return due

    def _entry_path(self, name: str) -> Path:
        return self._folder / name.replace("/", "_")


# Guards the host's disk while a setup writes an environment: layers and directories have no size limit of their own.

MAX_BYTES = 12 * 1024**3
MAX_FILES = 2_000_000
_POLL_SECONDS = 0.25
_MEASURE_SECONDS = 3.0  # the engine walks the whole layer for its answer


class DiskGuard:
    """Sets `stop` when the caller cancels, or when the file system at `place` lost more than a setup may use.

    It measures the whole file system, because that costs nothing; so the limits are wide. If `place` cannot be
    seen from here (the engine runs outside of our container), it calls `written` for the bytes instead.
    """

    def __init__(
        self,
        place: Path,
        cancel: Event | None,
        written: Callable[[], int] = int,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._written = written
        self._max_bytes = max_bytes
        self.stop = Event()
        self.overflowed = False
        self._place = place
        self._cancel = cancel
        self._done = Event()
        self._thread = Thread(target=self._watch_disk, daemon=True, name="regreen-disk")

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

    def _watch_disk(self) -> None:
        before = _free_space(self._place)
        is_visible = before != (0, 0)
        measured = time.monotonic()
        while not self._done.wait(_POLL_SECONDS):
            if self._cancel is not None and self._cancel.is_set():
                self.stop.set()
            now, written = _free_space(self._place), 0
            if not is_visible and time.monotonic() > measured + _MEASURE_SECONDS:
                written, measured = self._written(), time.monotonic()
            if (
                max(before[0] - now[0], written) > self._max_bytes
                or before[1] - now[1] > MAX_FILES
                or 0 < now[0] < self._max_bytes // 24
            ):
                self.overflowed = True
                self.stop.set()


def _free_space(place: Path) -> tuple[int, int]:
    """Free bytes and file entries; zeros if the place is invisible (a remote engine)."""
    try:
        stats = os.statvfs(place)
    except OSError:
        return 0, 0
    return stats.f_bavail * stats.f_frsize, stats.f_favail
