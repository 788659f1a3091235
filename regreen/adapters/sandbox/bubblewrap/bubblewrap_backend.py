"""The bubblewrap backend: namespaces, limits on resources, a filter, and an agent as the first process."""

from __future__ import annotations

import json
import os
import selectors
import signal
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

from regreen.adapters.sandbox import box_scripts, layout
from regreen.adapters.sandbox.backend import BackendGoneError, receive_exactly
from regreen.adapters.sandbox.bubblewrap.box_limiter import BoxLimiter, make_limiter
from regreen.adapters.sandbox.egress_proxy import PROXY_PORT, PrivateAddressFilter
from regreen.adapters.sandbox.host import BOX_UID
from regreen.adapters.sandbox.process_watch import Stream
from regreen.adapters.sandbox.seccomp import bpf_program
from regreen.domain.errors import OutsideError
from regreen.domain.models import BoxLimits

# The user of a box on the host. Root takes one without an account, which owns nothing and shares no process limit.
OUTER_UID = 64_222 if os.geteuid() == 0 else os.geteuid()
_READY_S = 20.0
_LONGEST_MESSAGE = 4096
_STAGING_DIR = "/mnt"

# Runs as root in its own mount namespace before it drops privileges: shows the directories that an
# ordinary user could not reach (an interpreter below /root).
_STAGE_SCRIPT = f"""
set -e
mount -t tmpfs -o size=64k,mode=0755 regreen {_STAGING_DIR}
number=0
while [ "$1" != -- ]; do
  if [ -d "$1" ]; then mkdir {_STAGING_DIR}/$number; else : > {_STAGING_DIR}/$number; fi
  mount --bind "$1" {_STAGING_DIR}/$number
  number=$((number + 1)); shift
done
shift
exec "$@"
"""
_NOT_ROOT = (
    "setpriv",
    "--reuid",
    str(OUTER_UID),
    "--regid",
    str(OUTER_UID),
    "--clear-groups",
    "--no-new-privs",
    "--",
)


@dataclass(frozen=True, slots=True)
class BwrapPlan:
    """The mounts of a box: (host path, path in the box) pairs, the environment's directory, the interpreter."""

    shown: tuple[tuple[str, str], ...]
    env: Path | None
    agent: str  # the Python that runs the agent
    egress: PrivateAddressFilter | None = None  # serves its network, if it has one
    keeps: bool = False  # /env and the home in it can be written to: only for `prepare`


class BwrapBackend:
    """See `backend.Backend`."""

    path = layout.DEFAULT_PATH
    quick = True

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        group: BoxLimiter,
        link: socket.socket,
        server: socket.socket | None,
    ) -> None:
        self._server = server
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
        Thread(target=self._read_agent_messages, daemon=True, name="regreen-bwrap").start()

    @classmethod
    def launch(cls, plan: BwrapPlan, limits: BoxLimits) -> Self:
        """Start the sandbox and its agent.

        Raises:
            OutsideError: the kernel or bubblewrap failed.
        """
        group = make_limiter(limits)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        filter_end, filter_start = os.pipe()
        try:
            with os.fdopen(filter_start, "wb") as pipe:  # 2 KB: the pipe takes it whole
                pipe.write(bpf_program(refused=group.refused_calls))
            process = subprocess.Popen(
                _build_command(plan, limits, group, filter_end, theirs.fileno()),
                stdin=subprocess.PIPE,  # a scope ends when this does
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={"PATH": layout.DEFAULT_PATH, **_session_bus()},
                cwd="/",
                pass_fds=(filter_end, theirs.fileno(), *group.descriptors),
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
        server = _receive_listener(ours) if plan.egress is not None else None
        cell = cls(process, group, ours, server)
        cell._wait_until_ready()
        try:
            group.watch(process)
        except OutsideError:
            cell.destroy()
            raise
        if plan.egress is not None and server is not None:
            plan.egress.start_accepting(server)
        return cell

    def start_process(
        self, argv: Sequence[str], env: Mapping[str, str], stdin: bool
    ) -> BwrapProcess:
        """Start a process; see `backend.Backend.start_process`."""
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
            raise BackendGoneError(str(error)) from error
        finally:
            for end in theirs:
                os.close(end)
        return BwrapProcess(self, number, out[0], err[0], into[1])

    def find_exit_code(self, number: int) -> int | None:
        """The exit code of one of its processes; None while it runs.

        Raises:
            BackendGoneError: the sandbox has ended.
        """
        code = self._codes.get(number)
        if code is None and self._gone.is_set():
            msg = "the sandbox ended"
            raise BackendGoneError(msg)
        return code

    def oom_kills(self) -> int:
        """The control group's own counter."""
        if not self._destroyed:
            self._ooms = self._group.oom_kills()
        return self._ooms

    def died_of_memory(self) -> bool:
        """Whether the memory limit ended the agent itself."""
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
        for pipe in filter(None, (self._process.stdin, self._process.stderr)):
            pipe.close()
        for sock in filter(None, (self._server, self._link)):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        if self._server is not None:
            self._server.close()
        self._gone.wait(5.0)
        self._link.close()
        if self.held >= 0:
            os.close(self.held)

    def _wait_until_ready(self) -> None:
        if self._ready.wait(_READY_S) and not self._gone.is_set():
            return
        # A limiter that has not begun to watch cannot kill: without this the processes and their pipes would stay.
        _kill_tree(self._process.pid)
        output = b""
        if self._process.stderr is not None:
            os.set_blocking(self._process.stderr.fileno(), False)
            with suppress(BlockingIOError):
                output = os.read(self._process.stderr.fileno(), 2000)
        with suppress(OSError):  # ends the reader, whoever still holds the other end
            self._link.shutdown(socket.SHUT_RDWR)
        self.destroy()
        text = " ".join(output.decode("utf-8", "replace").split())[:300]
        message = f"bubblewrap could not start a box: {text or 'no answer'}"
        raise OutsideError(message)

    def _read_agent_messages(self) -> None:
        """Read the agent's answers. Other processes in the box may forge them: that affects their own box alone."""
        try:
            while head := receive_exactly(self._link, 4):
                (length,) = struct.unpack(">I", head)
                if length > _LONGEST_MESSAGE:
                    break
                self._take_agent_message(json.loads(receive_exactly(self._link, length)))
        except (OSError, ValueError):
            pass
        finally:
            self._gone.set()
            self._ready.set()

    def _take_agent_message(self, message: object) -> None:
        match message:
            case {"ready": 1}:
                self._ready.set()
            case {"id": int(number), "code": int(code)}:
                self._codes.setdefault(number, code if code == _NOT_STARTED else code & 0xFF)
            case _:
                raise ValueError


class BwrapProcess:
    """See `backend.BackendProcess`: pipes to a process inside, and the agent's word on its end."""

    def __init__(self, cell: BwrapBackend, number: int, out: int, err: int, into: int) -> None:
        self._cell = cell
        self._number = number
        self._out = out
        self._err = err
        self._into = into

    def output_chunks(self) -> Iterator[tuple[Stream, bytes]]:
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

    def feed_input(self, chunks: Iterable[bytes]) -> None:
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
        """None while it runs; see `backend.BackendProcess.exit_code`."""
        code = self._cell.find_exit_code(self._number)
        if code == _NOT_STARTED:
            msg = "the box had no room left for a process"
            raise BackendGoneError(msg)
        return code


_NOT_STARTED = -1


def _build_command(
    plan: BwrapPlan, limits: BoxLimits, group: BoxLimiter, filter_fd: int, link_fd: int
) -> list[str]:
    """The whole command line: for root a mount namespace and another user; limits, bubblewrap, the agent."""
    agent = (
        resources.files("regreen.adapters.sandbox.bubblewrap")
        .joinpath("bubblewrap_agent.py")
        .read_text("utf-8")
    )
    lend = f"lend({link_fd}, {PROXY_PORT})\n" if plan.egress is not None else ""
    staged: list[str] = []
    if os.geteuid() == 0:
        staged = [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "--",
            "/bin/sh",
            "-c",
            _STAGE_SCRIPT,
            "sh",
        ]
        staged += [*_host_paths(plan), "--"]
    return [
        *staged,
        *group.enter,
        "prlimit",
        "--core=1:1",
        "--nofile=4096:8192",
        "--",
        *(_NOT_ROOT if staged else ()),
        "bwrap",
        *_isolation_options(),
        *_file_systems(plan, limits),
        *group.options,
        "--seccomp",
        str(filter_fd),
        "--",
        plan.agent,
        "-I",
        "-S",
        "-c",
        f"{agent}\n{group.prologue}{lend}main({link_fd})",
    ]


def _host_paths(plan: BwrapPlan) -> list[str]:
    return [*(source for source, _ in plan.shown), *([str(plan.env)] if plan.env else [])]


def _session_bus() -> dict[str, str]:
    """Where the user's own systemd answers. bubblewrap clears it before anything foreign runs."""
    names = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
    return {name: os.environ[name] for name in names if name in os.environ}


def _isolation_options() -> list[str]:
    return [
        "--unshare-user",
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--unshare-net",
        "--uid",
        str(BOX_UID),
        "--gid",
        str(BOX_UID),
        "--hostname",
        layout.HOST_NAME,
        # The agent is process 1: nothing inside can kill it, and when it ends the kernel ends the rest.
        "--as-pid-1",
        "--new-session",
        "--cap-drop",
        "ALL",
        "--clearenv",
    ]


def _file_systems(plan: BwrapPlan, limits: BoxLimits) -> list[str]:
    links = [
        name
        for name in ("bin", "lib", "lib32", "lib64", "libx32", "sbin")
        if Path("/", name).is_symlink()
    ]
    options = ["--ro-bind", "/usr", "/usr"]
    for name in links:
        options += ["--symlink", f"usr/{name}", f"/{name}"]
    options += ["--proc", "/proc", "--dev", "/dev"]
    options += [*_tmpfs_options("/dev/shm", min(64 * layout.MiB, limits.disk), "1777")]  # noqa: S108 - the box's own tmpfs
    options += [
        *_tmpfs_options("/tmp", limits.tmp, "1777"),  # noqa: S108
        *_tmpfs_options(box_scripts.WORK_DIR, limits.disk, "0755"),
    ]
    options += [
        *_tmpfs_options(box_scripts.HOME_DIR, limits.disk if plan.keeps else limits.tmp, "0755")
    ]
    for empty in ("/run", "/opt", "/mnt", "/var", "/root"):
        options += ["--perms", "0755", "--dir", empty]
    options += ["--symlink", "/tmp", "/var/tmp"]  # noqa: S108 - the box's own tmpfs
    sources = _host_paths(plan)
    if os.geteuid() == 0:
        sources = [f"{_STAGING_DIR}/{number}" for number in range(len(sources))]
    for source, (_, here) in zip(sources, plan.shown, strict=False):
        options += ["--ro-bind", source, here]
    if plan.env is not None:
        options += ["--bind" if plan.keeps else "--ro-bind", sources[-1], box_scripts.ENV_DIR]
    # Both are tmpfs without a size of their own.
    return [*options, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"]


def _receive_listener(link: socket.socket) -> socket.socket | None:
    """The listening socket that the agent created in the box's network; None if it ended before that."""
    link.settimeout(_READY_S)
    with suppress(OSError):
        _, descriptors, _, _ = socket.recv_fds(link, 1, 1)
        link.settimeout(None)
        return socket.socket(fileno=descriptors[0]) if descriptors else None
    return None


def _kill_tree(process: int) -> None:
    """Kill a process that nobody reaps meanwhile, and its descendants. Each is stopped first: it starts no others."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGSTOP)
    with suppress(OSError):
        for child in Path(f"/proc/{process}/task/{process}/children").read_text("ascii").split():
            _kill_tree(int(child))
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _tmpfs_options(place: str, size: int, mode: str) -> list[str]:
    return ["--perms", mode, "--size", str(size), "--tmpfs", place]
