"""One bubblewrap sandbox as a cell: namespaces, a control group, a filter, and an agent as its first process."""

from __future__ import annotations

import json
import os
import selectors
import socket
import struct
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Self

from regreen.adapters import boxes, scripts
from regreen.adapters.cell import CellGoneError
from regreen.adapters.cgroup import ControlGroup
from regreen.adapters.host import UID
from regreen.adapters.seccomp import bpf_program
from regreen.adapters.watch import Stream
from regreen.errors import OutsideError
from regreen.models import Limits

# The user that a box is on the host: nobody's account, so that it owns nothing and shares no process limit.
OUTER_UID = 64_222
_READY_S = 20.0
_LONGEST_MESSAGE = 4096
_STAGE = "/mnt"

# Runs as root in a mount namespace of its own, before any privilege is given up: shows the directories that an
# ordinary user could not reach (an interpreter below /root), joins the control group, then becomes nobody.
_LAUNCH = f"""
set -e
mount -t tmpfs -o size=64k,mode=0755 regreen {_STAGE}
number=0
while [ "$1" != -- ]; do
  if [ -d "$1" ]; then mkdir {_STAGE}/$number; else : > {_STAGE}/$number; fi
  mount --bind "$1" {_STAGE}/$number
  number=$((number + 1)); shift
done
shift
while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs"; shift; done
shift
echo 500 > /proc/self/oom_score_adj
exec prlimit --core=1:1 --nofile=4096:8192 -- \
  setpriv --reuid {OUTER_UID} --regid {OUTER_UID} --clear-groups --no-new-privs -- "$@"
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a sandbox shows: (host path, path in the box) pairs, the environment's directory, the interpreter."""

    shown: tuple[tuple[str, str], ...]
    env: Path | None
    agent: str  # the Python that runs the agent
    network: bool = False
    keeps: bool = False  # /env and the home in it can be written to: only for `prepare`


class BwrapCell:
    """See `cell.Cell`."""

    path = boxes.DEFAULT_PATH
    quick = True

    def __init__(
        self, process: subprocess.Popen[bytes], group: ControlGroup, link: socket.socket
    ) -> None:
        self._process = process
        self._group = group
        self._link = link
        self._lock = Lock()
        self._codes: dict[int, int] = {}
        self._numbers = 0
        self._gone = Event()
        self._ready = Event()
        self._destroyed = False
        self._ooms = 0
        self.held = -1  # a descriptor that is closed when the cell has ended
        Thread(target=self._listen, daemon=True, name="regreen-bwrap").start()

    @classmethod
    def launch(cls, plan: Plan, limits: Limits) -> Self:
        """Start the sandbox and its agent.

        Raises:
            OutsideError: the kernel or bubblewrap would not.
        """
        group = ControlGroup.make(limits)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        filter_end, filter_start = os.pipe()
        try:
            with os.fdopen(filter_start, "wb") as pipe:  # 2 KB: the pipe takes it whole
                pipe.write(bpf_program())
            process = subprocess.Popen(
                _command(plan, limits, group, filter_end, theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={"PATH": boxes.DEFAULT_PATH},
                cwd="/",
                pass_fds=(filter_end, theirs.fileno()),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            ours.close()
            group.remove()
            message = f"bubblewrap could not be started: {error}"
            raise OutsideError(message) from error
        finally:
            os.close(filter_end)
            theirs.close()
        cell = cls(process, group, ours)
        cell._wait_until_ready()
        return cell

    def start(self, argv: Sequence[str], env: Mapping[str, str], stdin: bool) -> BwrapProcess:
        """Start a process; see `cell.Cell.start`."""
        out, err = os.pipe(), os.pipe()
        into = os.pipe() if stdin else (os.open(os.devnull, os.O_RDONLY), -1)
        theirs = (into[0], out[1], err[1])
        with self._lock:
            self._numbers += 1
            number = self._numbers
        request = json.dumps({"id": number, "argv": list(argv), "env": dict(env)})
        content = request.encode("utf-8", "surrogateescape")
        try:
            with self._lock:
                socket.send_fds(self._link, [struct.pack(">I", len(content))], theirs)
                self._link.sendall(content)
        except OSError as error:
            for end in (out[0], err[0], into[1]):
                if end >= 0:
                    os.close(end)
            raise CellGoneError(str(error)) from error
        finally:
            for end in theirs:
                os.close(end)
        return BwrapProcess(self, number, out[0], err[0], into[1])

    def code(self, number: int) -> int | None:
        """The exit code of one of its processes; None while it runs.

        Raises:
            CellGoneError: the sandbox has ended.
        """
        code = self._codes.get(number)
        if code is None and self._gone.is_set():
            msg = "the sandbox ended"
            raise CellGoneError(msg)
        return code

    def oom_kills(self) -> int:
        """The control group's own counter."""
        if not self._destroyed:
            self._ooms = self._group.oom_kills()
        return self._ooms

    def died_of_memory(self) -> bool:
        """Whether memory ended the agent itself."""
        return self.oom_kills() > 0

    def destroy(self) -> None:
        """Kill every process in the control group, then remove it."""
        with self._lock:
            if self._destroyed:
                return
            self._ooms = self._group.oom_kills()
            self._destroyed = True
        self._group.remove()
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()
        with suppress(OSError):
            self._link.shutdown(socket.SHUT_RDWR)
        self._gone.wait(5.0)
        self._link.close()
        if self.held >= 0:
            os.close(self.held)

    def _wait_until_ready(self) -> None:
        if self._ready.wait(_READY_S) and not self._gone.is_set():
            return
        self._group.remove()
        said = b"" if self._process.stderr is None else self._process.stderr.read(2000)
        self.destroy()
        text = " ".join(said.decode("utf-8", "replace").split())[:300]
        message = f"bubblewrap could not start a box: {text or 'no answer'}"
        raise OutsideError(message)

    def _listen(self) -> None:
        """Take the agent's answers. What runs beside it may forge them: that fools its own box alone."""
        try:
            while head := _exactly(self._link, 4):
                (length,) = struct.unpack(">I", head)
                if length > _LONGEST_MESSAGE:
                    break
                self._note(json.loads(_exactly(self._link, length)))
        except (OSError, ValueError):
            pass
        finally:
            self._gone.set()
            self._ready.set()

    def _note(self, message: object) -> None:
        match message:
            case {"ready": 1}:
                self._ready.set()
            case {"id": int(number), "code": int(code)}:
                self._codes.setdefault(number, code if code == _NOT_STARTED else code & 0xFF)
            case _:
                raise ValueError


class BwrapProcess:
    """See `cell.Running`: pipes to a process inside, and the agent's word on its end."""

    def __init__(self, cell: BwrapCell, number: int, out: int, err: int, into: int) -> None:
        self._cell = cell
        self._number = number
        self._out = out
        self._err = err
        self._into = into

    def chunks(self) -> Iterator[tuple[Stream, bytes]]:
        """Both pipes, until every holder has closed them."""
        streams: dict[int, Stream] = {self._out: 1, self._err: 2}
        try:
            with selectors.DefaultSelector() as selector:
                for end in streams:
                    selector.register(end, selectors.EVENT_READ)
                while selector.get_map():
                    for key, _ in selector.select():
                        chunk = os.read(key.fd, 65536)
                        if chunk:
                            yield streams[key.fd], chunk
                        else:
                            selector.unregister(key.fd)
        finally:
            os.close(self._out)
            os.close(self._err)

    def feed(self, chunks: Iterable[bytes]) -> None:
        """Send standard input, then its end."""
        into, self._into = self._into, -1
        if into < 0:
            return
        try:
            with os.fdopen(into, "wb", buffering=0) as pipe:
                for chunk in chunks:
                    view = memoryview(chunk)
                    while view:
                        view = view[pipe.write(view) :]
        except BrokenPipeError:
            return

    def exit_code(self) -> int | None:
        """None while it runs; see `cell.Running.exit_code`."""
        code = self._cell.code(self._number)
        if code == _NOT_STARTED:
            msg = "the box had no room left for a process"
            raise CellGoneError(msg)
        return code


_NOT_STARTED = -1


def _command(
    plan: Plan, limits: Limits, group: ControlGroup, filter_fd: int, link_fd: int
) -> list[str]:
    """The whole command line: a mount namespace, the launcher, bubblewrap, the agent."""
    staged = [there for there, _ in plan.shown]
    if plan.env is not None:
        staged.append(str(plan.env))
    agent = resources.files("regreen.adapters").joinpath("bwrap_agent.py").read_text("utf-8")
    return [
        "unshare", "--mount", "--propagation", "private", "--",
        "/bin/sh", "-c", _LAUNCH, "sh", *staged, "--", *map(str, group.directories), "--",
        "bwrap",
        *_isolation(plan),
        *_file_systems(plan, limits),
        "--seccomp", str(filter_fd),
        "--", plan.agent, "-I", "-S", "-c", f"{agent}\nmain({link_fd})",
    ]  # fmt: skip


def _isolation(plan: Plan) -> list[str]:
    return [
        "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
        *(() if plan.network else ("--unshare-net",)),
        "--uid", str(UID), "--gid", str(UID), "--hostname", "box",
        # The agent is process 1: nothing inside can kill it, and when it ends the kernel ends the rest.
        "--as-pid-1", "--new-session", "--cap-drop", "ALL", "--clearenv",
    ]  # fmt: skip


def _file_systems(plan: Plan, limits: Limits) -> list[str]:
    links = [
        name
        for name in ("bin", "lib", "lib32", "lib64", "libx32", "sbin")
        if Path("/", name).is_symlink()
    ]
    found = ["--ro-bind", "/usr", "/usr"]
    for name in links:
        found += ["--symlink", f"usr/{name}", f"/{name}"]
    found += ["--proc", "/proc", "--dev", "/dev"]
    found += [*_tmpfs("/dev/shm", min(64 * boxes.MiB, limits.disk), "1777")]  # noqa: S108 - the box's own tmpfs
    found += [*_tmpfs("/tmp", limits.tmp, "1777"), *_tmpfs(scripts.WORK, limits.disk, "0755")]  # noqa: S108 - the box's own tmpfs
    found += [*_tmpfs(scripts.HOME, limits.disk if plan.keeps else limits.tmp, "0755")]
    for empty in ("/run", "/opt", "/mnt", "/var", "/root"):
        found += ["--perms", "0755", "--dir", empty]
    found += ["--symlink", "/tmp", "/var/tmp"]  # noqa: S108 - the box's own tmpfs
    for number, (_, here) in enumerate(plan.shown):
        found += ["--ro-bind", f"{_STAGE}/{number}", here]
    if plan.env is not None:
        found += [
            "--bind" if plan.keeps else "--ro-bind",
            f"{_STAGE}/{len(plan.shown)}",
            scripts.ENV,
        ]
    # Both are tmpfs without a size of their own.
    return [*found, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"]


def _tmpfs(place: str, size: int, mode: str) -> list[str]:
    return ["--perms", mode, "--size", str(size), "--tmpfs", place]


def _exactly(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        chunk = sock.recv(count - len(data))
        if not chunk:
            return b""
        data += chunk
    return data
