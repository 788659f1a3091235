"""Attacks that were tried by hand through `regreen sandbox`; each with a control that shows that it would hurt."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from regreen.domain.models import BoxLimits, RunResult
from tests.contract.sandboxes import BACKENDS, plain_env, sandbox_or_skip

pytestmark = [pytest.mark.sandbox, pytest.mark.parametrize("kind", BACKENDS)]
MiB = 1024**2


def tried(
    kind: str, program: str, limits: BoxLimits | None = None, timeout: float = 30.0
) -> RunResult:
    sandbox = sandbox_or_skip(kind)
    with sandbox.open(plain_env(kind), (), limits) as box:
        return box.run(["python3", "-c", program], timeout=timeout)


SWAPPER = """
import os
if os.fork() == 0:
    os.setsid()
    for number in range(3):
        os.close(number)
    open("/work/mine", "w").write("mine")
    while True:
        try:
            os.symlink("/etc/passwd", "/work/t"); os.rename("/work/t", "/work/report")
            os.link("/work/mine", "/work/u"); os.rename("/work/u", "/work/report")
        except OSError:
            pass
import time; time.sleep(0.5)
"""


NAIVE = """
import os, time
end = time.monotonic() + 10
while time.monotonic() < end:
    try:
        if not os.path.islink("/work/report") and (read := open("/work/report").read(5)) == "root:":
            print(read)
            break
    except OSError:
        pass
"""


def test_a_report_that_is_swapped_while_it_is_read_gives_away_nothing_else(kind: str) -> None:
    with sandbox_or_skip(kind).open(plain_env(kind), ()) as box:
        assert box.run(["python3", "-c", SWAPPER], timeout=30).passed
        seen = {box.read("report") for _ in range(15)}
        # the control: whoever looks first and opens then is led astray
        astray = box.run(["python3", "-c", NAIVE], timeout=30).stdout
    assert seen <= {None, b"mine"}
    assert "root:" in astray


CODE_OF_ANOTHER_KIND = """
import ctypes, mmap, struct
page = mmap.mmap(-1, 4096, prot=7)
page.write(b"\\x53\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\x5b\\xc3")  # getpid, as a 32-bit program asks
print("asked", flush=True)
print("GOT", ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))())
"""


def test_system_calls_of_another_architecture_are_the_end_of_the_process(kind: str) -> None:
    done = tried(kind, CODE_OF_ANOTHER_KIND)
    assert done.stdout == "asked\n"
    assert done.exit_code == 128 + 31  # SIGSYS


PAIRS = """
import errno, socket
for family in (30, 38, 40, 31, 21, 16):
    try:
        socket.socketpair(family, socket.SOCK_SEQPACKET)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOSYS):
            print("GOT as far as the kernel's own answer:", family, errno.errorcode[error.errno])
    else:
        print("GOT a pair", family)
one, other = socket.socketpair()
print("unix pairs work")
"""


def test_pairs_of_sockets_are_of_one_family(kind: str) -> None:
    assert tried(kind, PAIRS).stdout == "unix pairs work\n"
    outside = subprocess.run(
        [sys.executable, "-c", PAIRS], capture_output=True, text=True, check=True
    )
    assert "GOT" in outside.stdout, "the control: nothing else refuses them"


SOCKETS = """
import os, socket, time
for _ in range(20):
    if os.fork() == 0:
        held, total = [], 0
        try:
            while True:
                one, other = socket.socketpair()
                one.setblocking(False)
                held.append((one, other))
                try:
                    while True:
                        total += one.send(b"x" * 65536)
                except BlockingIOError:
                    pass
        except OSError:
            pass
        os.write(1, b"%d " % (total >> 20))
        time.sleep(3)
        os._exit(0)
for _ in range(20):
    os.wait()
"""


def test_memory_that_the_kernel_holds_for_a_box_counts_as_the_boxs(kind: str) -> None:
    done = tried(kind, SOCKETS, BoxLimits(memory=128 * MiB, pids=64))
    # either the kernel kills, or all of them together got no further than the limit
    assert done.ended == "oom" or sum(map(int, done.stdout.split())) <= 128


def test_a_command_that_closes_its_output_and_runs_on_ends_at_its_deadline(kind: str) -> None:
    program = "import os, time\nfor n in range(3): os.close(n)\ntime.sleep(600)"
    done = tried(kind, program, timeout=1.0)
    assert done.ended == "timeout"
    assert done.seconds < 5


def test_a_daemon_that_holds_the_output_open_does_not_hold_the_command(kind: str) -> None:
    program = "import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(600)\nprint('done')"
    done = tried(kind, program)
    assert (done.ended, done.stdout) == ("exit", "done\n")
    assert done.seconds < 10


def test_a_regreen_that_is_killed_takes_its_box_along(kind: str) -> None:
    sandbox_or_skip(kind)
    plain_env(kind)
    seconds = f"6{time.time_ns() % 10**7:07d}"
    argv = [
        sys.executable,
        "-m",
        "regreen",
        "sandbox",
        "--sandbox",
        kind,
        "--",
        "sleep",
        seconds,
    ]
    regreen = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert soon(lambda: sleeping(seconds), 30.0), "the control: it runs"
    finally:
        regreen.kill()
        regreen.wait()
    assert soon(lambda: not sleeping(seconds), 10.0)


def sleeping(seconds: str) -> bool:
    """Whether the command itself is running, wherever: not Regreen, which has it among its arguments."""
    wanted = f"sleep\0{seconds}\0".encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes() == wanted:
                return True
        except OSError:
            continue
    return False


def soon(holds: Callable[[], bool], seconds: float) -> bool:
    """Whether something comes true within so many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        Event().wait(0.1)
    return False
