"""Bounds the memory and the processes of one bubblewrap box: exactly by a control group, else approximately.

The approximate form is for a user's own code: per-process limits that the kernel enforces, and a thread that adds
up what the processes of the box use and ends the box where that is more than its limit.
"""

from __future__ import annotations

import json
import os
import platform
import re
import select
import signal
import subprocess
import time
from contextlib import suppress
from threading import Event, Thread
from typing import Protocol

from regreen.adapters.sandbox import box_scripts
from regreen.adapters.sandbox.bubblewrap import control_group
from regreen.adapters.sandbox.bubblewrap.control_group import ControlGroup, UserScope
from regreen.domain.errors import OutsideError
from regreen.domain.models import BoxLimits

# Since this version RLIMIT_NPROC counts for each user namespace and not for all processes of a user (d64696905554).
_FIRST_KERNEL = (5, 14)
# Memory that no process has mapped cannot be added up: a file in memory, System V segments, queues and semaphores.
_UNCOUNTED_CALLS = ("memfd_create", "shmget", "msgget", "semget")
_PLACES_IN_MEMORY = (box_scripts.WORK_DIR, box_scripts.HOME_DIR, "/tmp", "/dev/shm")  # noqa: S108 - the box's own
MAX_POLL_SECONDS, _MIN_POLL_SECONDS = 0.025, 0.004
_FASTEST_GROWTH = 8 * 1024**3  # bytes a second
# What one socket and one pipe hold at most: net.core.wmem_default, and two pages beyond pipe-user-pages-soft.
_SOCKET_BYTES, _PIPE_BYTES = 212_992, 8192
# Below this the host itself runs short, whoever took the memory.
_HOST_RESERVE = 256 * 1024**2
_AGENT_PROCESSES = 4


class BoxLimiter(Protocol):
    """Bounds one box.

    Attributes:
        enter: the command that starts the rest of its arguments under the limits.
        options: what bubblewrap is told besides.
        descriptors: those that `options` name.
        prologue: what the agent runs first.
        refused_calls: system calls that no process of the box may make, besides those of every box.
    """

    enter: tuple[str, ...]
    options: tuple[str, ...]
    descriptors: tuple[int, ...]
    prologue: str
    refused_calls: tuple[str, ...]

    def watch(self, process: subprocess.Popen[bytes]) -> None:
        """Take note of the process that was started; called once, when the agent answers or has ended."""
        ...

    def oom_kills(self) -> int:
        """How often a process was killed for memory."""
        ...

    def remove(self) -> None:
        """Kill every process of the box."""
        ...


def make_limiter(limits: BoxLimits) -> BoxLimiter:
    """The best that this machine has.

    Raises:
        OutsideError: the kernel refuses.
    """
    if control_group.explain_unavailable():
        return ProcessTreeWatch(limits)
    if os.geteuid() != 0 and control_group.find_delegated_group() is None:
        return UserScope(limits)
    return ControlGroup.make(limits)


def explain_unavailable() -> str:
    """Why processes cannot be bounded here, not even approximately; "" if they can."""
    version = tuple(int(part) for part in re.findall(r"\d+", platform.release())[:2])
    if not control_group.explain_unavailable() or version >= _FIRST_KERNEL:
        return ""
    return f"Linux {platform.release()} is older than 5.14, which counts the processes of a box"


class ProcessTreeWatch:
    """The approximate form; see `BoxLimiter`."""

    enter: tuple[str, ...] = ("/bin/sh", "-c", control_group.ENTER_SCRIPT, "sh", "--")
    refused_calls: tuple[str, ...] = _UNCOUNTED_CALLS

    def __init__(self, limits: BoxLimits) -> None:
        self._limit = limits.memory
        self._info, end = os.pipe()
        self.descriptors: tuple[int, ...] = (end,)
        self.options: tuple[str, ...] = ("--info-fd", str(end))
        # Less than the double of the limit cannot slip past the watch; runtimes reserve more than they use.
        self.prologue = f"bound({limits.pids + _AGENT_PROCESSES}, {limits.memory * 5 // 4})\n"
        self._first = self._processes = -1
        self._kills = 0
        self._stop = Event()
        self._thread = Thread(target=self._watch_memory, daemon=True, name="regreen-memory")

    def watch(self, process: subprocess.Popen[bytes]) -> None:  # noqa: ARG002 - its child is what counts
        """Find the box's first process, and begin to add up what all of them use.

        Raises:
            OutsideError: the box has ended already.
        """
        try:
            ready, _, _ = select.select([self._info], [], [], 5.0)
            number = json.loads(os.read(self._info, 4096) if ready else b"{}")["child-pid"]
            self._first = os.pidfd_open(number)
            # The box's own view of /proc lists its processes, and no others.
            self._processes = os.open(f"/proc/{number}/root/proc", os.O_RDONLY | os.O_DIRECTORY)
        except (OSError, ValueError, KeyError) as error:
            message = f"the processes of a box cannot be watched: {error}"
            raise OutsideError(message) from error
        self._thread.start()

    def oom_kills(self) -> int:
        """1 if the watch ended the box."""
        return self._kills

    def remove(self) -> None:
        """End the box's first process: the kernel ends the others with it."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._kill()
        for number in (self._first, self._processes, self._info, *self.descriptors):
            if number >= 0:
                with suppress(OSError):
                    os.close(number)
        self._first = self._processes = self._info = -1
        self.descriptors = ()

    def _kill(self) -> None:
        if self._first >= 0:
            with suppress(OSError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)

    def _watch_memory(self) -> None:
        pause = _MIN_POLL_SECONDS
        while not self._stop.wait(pause):
            begun = time.monotonic()
            try:
                room = self._find_room()
            except OSError:  # the box has ended; what cannot be watched may not run
                self._kill()
                return
            if room < 0:
                self._kills = 1
                self._kill()
                return
            pause = min(max(room / _FASTEST_GROWTH, _MIN_POLL_SECONDS), MAX_POLL_SECONDS)
            pause = max(pause, time.monotonic() - begun)

    def _find_room(self) -> int:
        """How many bytes the box may still take; negative if it has too many, or the host too few."""
        # A descriptor of a directory is no path.
        names = [name for name in os.listdir(self._processes) if name.isdigit()]  # noqa: PTH208
        states = [self._read(f"{name}/status") for name in names]
        taken = sum(self._file_bytes(place) for place in _PLACES_IN_MEMORY)
        taken += _SOCKET_BYTES * _sum_numbers(_SOCKETS, self._read("1/net/protocols"))
        taken += _PIPE_BYTES * sum(_sum_numbers(_DESCRIPTORS, state) for state in states)
        room = self._limit - taken - 1024 * sum(_sum_numbers(_RSS, state) for state in states)
        if room < 0:  # pages that processes share were counted for each of them
            shares = [self._read(f"{name}/smaps_rollup") for name in names]
            room = self._limit - taken - 1024 * sum(_sum_numbers(_PSS, share) for share in shares)
        free = 1024 * _sum_numbers(_AVAILABLE, self._read("meminfo"))
        return min(room, free - _HOST_RESERVE)

    def _file_bytes(self, place: str) -> int:
        """What the files of a file system in memory take. Its mount is ours: no link of the box's is followed."""
        try:
            found = os.statvfs(f"/proc/self/fd/{self._processes}/1/root{place}")
        except OSError:
            return 0
        return (found.f_blocks - found.f_bfree) * found.f_frsize

    def _read(self, path: str) -> bytes:
        """A file of the box's /proc; empty for a process that has ended."""
        try:
            number = os.open(path, os.O_RDONLY, dir_fd=self._processes)
        except OSError:
            return b""
        try:
            return os.read(number, 8192)
        except OSError:
            return b""
        finally:
            os.close(number)


def _sum_numbers(wanted: re.Pattern[bytes], text: bytes) -> int:
    return sum(map(int, wanted.findall(text)))


_RSS = re.compile(rb"^Rss(?:Anon|Shmem):\s*(\d+)", re.MULTILINE)
_PSS = re.compile(rb"^Pss_(?:Anon|Shmem):\s*(\d+)", re.MULTILINE)
_AVAILABLE = re.compile(rb"^MemAvailable:\s*(\d+)", re.MULTILINE)
_DESCRIPTORS = re.compile(rb"^FDSize:\s*(\d+)", re.MULTILINE)
# The second number of each row: name, size, sockets.
_SOCKETS = re.compile(rb"^[A-Z][^ \n]{0,40} {1,40}\d{1,20} {1,40}(\d{1,20})", re.MULTILINE)
