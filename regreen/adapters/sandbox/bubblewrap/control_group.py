"""Control groups: the only exact limit on the total resources of a bubblewrap box.

Root makes them below the root group. An ordinary user makes them below a group that systemd delegated to this
process (`Delegate=yes`), or asks the user's own systemd for a scope (`systemd-run --user --scope`).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Event

from regreen.domain.errors import OutsideError
from regreen.domain.models import BoxLimits

CGROUP_ROOT = Path("/sys/fs/cgroup")
_GROUP_NAME = "regreen"
_OWN_PROCESSES = 4
# Joins control groups, offers the box to the kernel's OOM killer first, and goes on as the rest of its arguments.
ENTER_SCRIPT = """
while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs"; shift; done
shift
echo 500 > /proc/self/oom_score_adj
exec "$@"
"""
# A scope lives as long as its processes: this one outlives the box, so that its counters can be read.
_SCOPE_SCRIPT = '(echo 500 > /proc/self/oom_score_adj; exec "$@"); read -r end'


class ControlGroup:
    """Limits for one box, created before it starts; see `box_limiter.BoxLimiter`."""

    options: tuple[str, ...] = ()
    descriptors: tuple[int, ...] = ()
    prologue = ""
    refused_calls: tuple[str, ...] = ()

    def __init__(self, directories: tuple[Path, ...], memory: Path) -> None:
        self.directories = directories
        self._memory = memory
        self.enter = ("/bin/sh", "-c", ENTER_SCRIPT, "sh", *map(str, directories), "--")

    def watch(self, process: subprocess.Popen[bytes]) -> None:
        """The kernel watches."""

    @classmethod
    def make(cls, limits: BoxLimits) -> ControlGroup:
        """A new group with these limits.

        Raises:
            OutsideError: the kernel refuses.
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
        """Kill its processes and remove it. The kernel needs a moment for the last process."""
        waiting = Event()
        deadline = time.monotonic() + 5.0
        while time.monotonic() < deadline:
            for process in self._list_processes():
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            if all(_try_remove(directory) for directory in self.directories):
                return
            waiting.wait(0.01)

    def _list_processes(self) -> Iterator[int]:
        for directory in self.directories:
            with suppress(OSError):
                for line in (directory / "cgroup.procs").read_text(encoding="ascii").split():
                    yield int(line)


class UserScope(ControlGroup):
    """A box's limits as a transient scope of the user's own systemd."""

    def __init__(self, limits: BoxLimits) -> None:
        super().__init__((), CGROUP_ROOT)
        cores = min(limits.cpus, os.cpu_count() or 1)
        self.enter = (
            *_scope_command(limits.memory, limits.pids + 2 * _OWN_PROCESSES, cores),
            "/bin/sh",
            "-c",
            _SCOPE_SCRIPT,
            "sh",
        )

    def watch(self, process: subprocess.Popen[bytes]) -> None:
        """Find the group that systemd made for the process."""
        place = _own_group(str(process.pid))
        self.directories, self._memory = (place,), place


def explain_unavailable() -> str:
    """Why no group can be created here; "" if it can."""
    if os.geteuid() != 0:
        if find_delegated_group() is not None or has_user_scopes():
            return ""
        return (
            "control groups need root, a delegated group, or a systemd user session with cgroup v2"
        )
    places = [CGROUP_ROOT] if _is_version_2() else [CGROUP_ROOT / "memory", CGROUP_ROOT / "pids"]
    missing = [str(place) for place in places if not os.access(place / "cgroup.procs", os.W_OK)]
    return f"{missing[0]} cannot be written to" if missing else ""


def remove_stale_groups() -> int:
    """Remove groups whose Regreen is gone; return how many boxes they held."""
    removed: set[str] = set()
    for parent in {
        CGROUP_ROOT / _GROUP_NAME,
        *(CGROUP_ROOT / name / _GROUP_NAME for name in ("memory", "pids", "cpu")),
    }:
        with suppress(OSError):
            for directory in parent.iterdir():
                owner = directory.name.partition("-")[0]
                if directory.is_dir() and owner.isdigit() and not Path("/proc", owner).exists():
                    _try_remove(directory)
                    removed.add(directory.name)
    return len(removed)


def _try_remove(directory: Path) -> bool:
    try:
        directory.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _is_version_2() -> bool:
    return (CGROUP_ROOT / "cgroup.controllers").is_file()


@cache
def find_delegated_group() -> Path | None:
    """The group that systemd delegated to this process (https://systemd.io/CGROUP_DELEGATION), if it did.

    Its processes move into a group of their own, for a group with limits below it may hold none itself.
    """
    try:
        place = _own_group("self")
        place = place.parent if place.name == _GROUP_NAME else place
        if os.getxattr(place, "user.delegate") != b"1":
            return None
        own = _ensure_directory(place / _GROUP_NAME)
        for process in (place / "cgroup.procs").read_text(encoding="ascii").split():
            with suppress(ProcessLookupError):
                _write_value(own / "cgroup.procs", process)
        _write_value(place / "cgroup.subtree_control", "+memory +pids +cpu")
    except OSError:
        return None
    return place


@cache
def has_user_scopes() -> bool:
    """Whether the user's systemd makes scopes whose limits on memory and processes the kernel enforces."""
    if not _is_version_2() or shutil.which("systemd-run") is None:
        return False
    show = 'cd "/sys/fs/cgroup$(cut -d: -f3- /proc/self/cgroup)" && cat memory.max pids.max'
    argv = [*_scope_command(64 * 2**20, 16, 1.0), "/bin/sh", "-c", show]
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
        return done.stdout.split() == [str(64 * 2**20), "16"]
    return False


def _scope_command(memory: int, pids: int, cores: float) -> tuple[str, ...]:
    return (
        "systemd-run",
        "--user",
        "--scope",
        "--quiet",
        "--collect",
        "-p",
        f"MemoryMax={memory}",
        "-p",
        "MemorySwapMax=0",
        "-p",
        f"TasksMax={pids}",
        "-p",
        f"CPUQuota={int(100 * cores)}%",
        "--",
    )


def _own_group(process: str) -> Path:
    """The group of a process in version 2."""
    for line in Path("/proc", process, "cgroup").read_text(encoding="utf-8").splitlines():
        if line.startswith("0::/"):
            return CGROUP_ROOT / line[4:]
    return CGROUP_ROOT


def _version_1(name: str, limits: BoxLimits) -> ControlGroup:
    memory = _ensure_directory(CGROUP_ROOT / "memory" / _GROUP_NAME / name)
    _write_value(memory / "memory.limit_in_bytes", limits.memory)
    with suppress(FileNotFoundError):  # a kernel without swap accounting
        _write_value(memory / "memory.memsw.limit_in_bytes", limits.memory)
    pids = _ensure_directory(CGROUP_ROOT / "pids" / _GROUP_NAME / name)
    _write_value(pids / "pids.max", limits.pids + _OWN_PROCESSES)
    cpu = _ensure_directory(CGROUP_ROOT / "cpu" / _GROUP_NAME / name)
    _write_value(cpu / "cpu.cfs_quota_us", int(100_000 * min(limits.cpus, os.cpu_count() or 1)))
    return ControlGroup((memory, pids, cpu), memory)


def _version_2(name: str, limits: BoxLimits) -> ControlGroup:
    if os.geteuid() == 0:
        parent = CGROUP_ROOT / _GROUP_NAME
        for place in (CGROUP_ROOT, _ensure_directory(parent)):
            _write_value(place / "cgroup.subtree_control", "+memory +pids +cpu")
    else:
        parent = find_delegated_group() or CGROUP_ROOT
    group = _ensure_directory(parent / name)
    _write_value(group / "memory.max", limits.memory)
    with suppress(FileNotFoundError):
        _write_value(group / "memory.swap.max", 0)
    _write_value(group / "memory.oom.group", 0)
    _write_value(group / "pids.max", limits.pids + _OWN_PROCESSES)
    _write_value(
        group / "cpu.max", f"{int(100_000 * min(limits.cpus, os.cpu_count() or 1))} 100000"
    )
    return ControlGroup((group,), group)


def _ensure_directory(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _write_value(file: Path, value: object) -> None:
    file.write_text(str(value), encoding="ascii")
