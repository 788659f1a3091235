"""A control group of our own: the only thing that bounds what a bubblewrap box uses in total."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event

from regreen.errors import OutsideError
from regreen.models import Limits

ROOT = Path("/sys/fs/cgroup")
_NAME = "regreen"
_OWN_PROCESSES = 4


class ControlGroup:
    """Limits for one box, made before it starts; `directories` take the process that starts it."""

    def __init__(self, directories: tuple[Path, ...], memory: Path) -> None:
        self.directories = directories
        self._memory = memory

    @classmethod
    def make(cls, limits: Limits) -> ControlGroup:
        """A new group with these limits.

        Raises:
            OutsideError: the kernel does not let us.
        """
        name = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        try:
            return _version_2(name, limits) if _is_version_2() else _version_1(name, limits)
        except OSError as error:
            message = f"no control group for a box: {error}"
            raise OutsideError(message) from error

    def oom_kills(self) -> int:
        """How often the kernel killed for memory in the group."""
        for file in ("memory.oom_control", "memory.events"):
            with suppress(OSError):
                for line in (self._memory / file).read_text(encoding="ascii").splitlines():
                    if line.startswith("oom_kill "):
                        return int(line.split()[1])
        return 0

    def remove(self) -> None:
        """Kill what is in it and remove it. The kernel needs a moment for the last process."""
        waiting = Event()
        deadline = time.monotonic() + 5.0
        while time.monotonic() < deadline:
            for process in self._processes():
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            if all(_removed(directory) for directory in self.directories):
                return
            waiting.wait(0.01)

    def _processes(self) -> Iterator[int]:
        for directory in self.directories:
            with suppress(OSError):
                for line in (directory / "cgroup.procs").read_text(encoding="ascii").split():
                    yield int(line)


def unavailable() -> str:
    """Why no group can be made here; "" where it can."""
    if os.geteuid() != 0:
        return "control groups need root"
    places = [ROOT] if _is_version_2() else [ROOT / "memory", ROOT / "pids"]
    missing = [str(place) for place in places if not os.access(place / "cgroup.procs", os.W_OK)]
    return f"{missing[0]} cannot be written to" if missing else ""


def sweep() -> int:
    """Remove groups whose Regreen is gone; how many boxes they held."""
    gone: set[str] = set()
    for parent in {ROOT / _NAME, *(ROOT / name / _NAME for name in ("memory", "pids", "cpu"))}:
        with suppress(OSError):
            for directory in parent.iterdir():
                owner = directory.name.partition("-")[0]
                if directory.is_dir() and owner.isdigit() and not Path("/proc", owner).exists():
                    _removed(directory)
                    gone.add(directory.name)
    return len(gone)


def _removed(directory: Path) -> bool:
    try:
        directory.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _is_version_2() -> bool:
    return (ROOT / "cgroup.controllers").is_file()


def _version_1(name: str, limits: Limits) -> ControlGroup:
    memory = _new(ROOT / "memory" / _NAME / name)
    _write(memory / "memory.limit_in_bytes", limits.memory)
    with suppress(FileNotFoundError):  # a kernel without swap accounting
        _write(memory / "memory.memsw.limit_in_bytes", limits.memory)
    pids = _new(ROOT / "pids" / _NAME / name)
    _write(pids / "pids.max", limits.pids + _OWN_PROCESSES)
    cpu = _new(ROOT / "cpu" / _NAME / name)
    _write(cpu / "cpu.cfs_quota_us", int(100_000 * min(limits.cpus, os.cpu_count() or 1)))
    return ControlGroup((memory, pids, cpu), memory)


def _version_2(name: str, limits: Limits) -> ControlGroup:
    parent = ROOT / _NAME
    for place in (ROOT, _new(parent)):
        _write(place / "cgroup.subtree_control", "+memory +pids +cpu")
    group = _new(parent / name)
    _write(group / "memory.max", limits.memory)
    with suppress(FileNotFoundError):
        _write(group / "memory.swap.max", 0)
    _write(group / "memory.oom.group", 0)
    _write(group / "pids.max", limits.pids + _OWN_PROCESSES)
    _write(group / "cpu.max", f"{int(100_000 * min(limits.cpus, os.cpu_count() or 1))} 100000")
    return ControlGroup((group,), group)


def _new(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _write(file: Path, value: object) -> None:
    file.write_text(str(value), encoding="ascii")
