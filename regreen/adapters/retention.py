"""How long prepared environments are kept: when each was last used, how large it is, and which have to go."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from regreen.errors import Cancelled
from regreen.models import Check

GiB = 1024**3
# From being prepared to being opened an environment is held by nobody; a job does not take longer than this.
_GRACE_S = 3600.0
_DAY_S = 86400.0
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept: nothing unused for `days`, at most so many bytes and so many environments."""

    days: float = 14.0
    most_bytes: int = 20 * GiB
    count: int = 200


@dataclass(frozen=True, slots=True)
class Kept:
    """One prepared environment. `used` is when it was last prepared or opened, in seconds of the epoch."""

    name: str
    size: int
    used: float


def surplus(kept: Sequence[Kept], rules: Retention, now: float) -> list[Kept]:
    """Those that have to go, the longest unused first; never one that was used within the hour."""
    going: list[Kept] = []
    total, count = sum(one.size for one in kept), len(kept)
    for one in sorted(kept, key=lambda one: one.used):
        if one.used > now - _GRACE_S:
            break
        too_old = one.used < now - rules.days * _DAY_S
        if too_old or total > rules.most_bytes or count > rules.count:
            going.append(one)
            total, count = total - one.size, count - 1
    return going


def check(kept: Sequence[Kept]) -> Check:
    """How many there are and how large, as a line of `regreen doctor`."""
    oldest = min((one.used for one in kept), default=time.time())
    days = (time.time() - oldest) / _DAY_S
    detail = (
        f"{len(kept)}, {sum(one.size for one in kept) / GiB:.1f} GiB together, "
        f"the longest unused for {days:.1f} days"
    )
    return Check("prepared environments", "sandbox", True, False, detail)


class Ledger:
    """One small file for each environment: its time is the last use, its text the size, its lock says "in use"."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def touch(self, name: str, size: int | None = None) -> None:
        """Note that an environment is used now. A ledger that cannot be written only forgets."""
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            file = self._file(name)
            if size is not None:
                file.write_text(str(size), encoding="ascii")
            file.touch()

    def used(self, name: str, otherwise: float) -> float:
        """When it was last used; `otherwise` where nobody noted it."""
        try:
            return self._file(name).stat().st_mtime
        except OSError:
            return otherwise

    def size(self, name: str) -> int:
        """Its size as it was noted."""
        try:
            return int(self._file(name).read_text(encoding="ascii") or 0)
        except (OSError, ValueError):
            return 0

    def hold(self, name: str) -> int:
        """Hold it until the descriptor that this returns is closed: nobody will remove it so long."""
        self.touch(name)
        descriptor = os.open(self._file(name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        return descriptor

    @contextmanager
    def unheld(self, name: str) -> Iterator[bool]:
        """Whether nobody holds it, and nobody can for as long as the block runs."""
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._file(name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
        finally:
            os.close(descriptor)

    @contextmanager
    def making(self, name: str, cancel: Event | None = None) -> Iterator[None]:
        """Be the only one on this machine that makes, or removes, this environment; waits for another to end.

        Raises:
            Cancelled: `cancel` was set while another was at it.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        place = self._file(f"{name}.making")
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

    def forget(self, name: str) -> None:
        """Take it off the ledger."""
        self._file(name).unlink(missing_ok=True)

    def is_due(self) -> bool:
        """Whether nobody has looked for a day what has to go; asking counts as looking."""
        due = self.used(".pruned", 0.0) < time.time() - _DAY_S
        if due:
            self.touch(".pruned")
        return due

    def _file(self, name: str) -> Path:
        return self._folder / name.replace("/", "_")
