"""The Docker backend: one container, its flags, its processes, its end.

A keeper process (`cat`, another user than the commands) holds the container open for as long as our end of its
standard input is open, so the container goes away even when Regreen is killed.
"""

from __future__ import annotations

import io
import json
import os
import posixpath
import socket
import struct
import tarfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Self

from docker.errors import APIError, DockerException, NotFound
from docker.types import LogConfig, Ulimit
from requests.exceptions import RequestException

from regreen.adapters.sandbox import box_scripts, layout
from regreen.adapters.sandbox.backend import BackendGoneError
from regreen.adapters.sandbox.host import BOX_UID, KEEPER_UID
from regreen.adapters.sandbox.process_watch import Stream
from regreen.adapters.sandbox.seccomp import docker_profile
from regreen.domain.box_limits import BoxLimits
from regreen.domain.errors import OutsideError

if TYPE_CHECKING:
    from docker import APIClient

BOX_LABEL = "regreen.box"
DEADLINE_LABEL = "regreen.deadline"
LIFETIME_S = 12 * 3600
_OWN_PROCESSES = 4  # the init, the keeper, and the shell that starts a command
_ENGINE_ERRORS = (DockerException, RequestException, OSError)


@dataclass(frozen=True, slots=True)
class DockerPlan:
    """The parts of a container: image, visible host directories, permission to write and to use the network."""

    image: str
    mounts: tuple[str, ...]
    path: str = layout.DEFAULT_PATH
    network: bool = False  # through a filter; see `egress`
    joins: str | None = None  # a container whose network it shares
    keeps: bool = False  # the root can be written to and committed: only for `prepare`
    runtime: str | None = None
    extra_files: tuple[tuple[str, str], ...] = ()  # (host file, path in the box), read-only


class DockerBackend:
    """See `backend.Backend`. Made by `start`; the container exists from then until `destroy`."""

    quick = False

    def __init__(self, client: APIClient, container: str, keeper: socket.socket, path: str) -> None:
        self.path = path
        self.container = container
        self._client = client
        self._sockets = [keeper]
        self._since = int(time.time())
        self._lock = Lock()
        self._destroyed = False
        self.beside: DockerBackend | None = None  # ends with this one

    @classmethod
    def start_container(cls, client: APIClient, plan: DockerPlan, limits: BoxLimits) -> Self:
        """Create and start the container.

        Raises:
            OutsideError: the engine failed.
        """
        try:
            created = client.create_container_from_config(  # type: ignore[no-untyped-call]
                _container_config(client, plan, limits)
            )
        except _ENGINE_ERRORS as error:
            message = f"Docker could not create a box: {error}"
            raise OutsideError(message) from error
        container = str(created["Id"])
        try:
            if plan.keeps:
                client.put_archive(container, "/", _own_directories())
            keeper = _open_raw_stream(
                client, f"/containers/{container}/attach?stdin=1&stream=1", None
            )
            client.start(container)
        except _ENGINE_ERRORS as error:
            _remove_container(client, container)
            message = f"Docker could not start a box: {error}"
            raise OutsideError(message) from error
        return cls(client, container, keeper, plan.path)

    def start_process(
        self, argv: Sequence[str], env: Mapping[str, str], stdin: bool
    ) -> DockerProcess:
        """Start a process; see `backend.Backend.start_process`."""
        try:
            created = self._client.exec_create(
                self.container,
                list(argv),
                stdin=stdin,
                user=f"{BOX_UID}:{BOX_UID}",
                environment=[f"{name}={value}" for name, value in env.items()],
                workdir="/",
            )
            identity = str(created["Id"])
            sock = _open_raw_stream(
                self._client, f"/exec/{identity}/start", {"Detach": False, "Tty": False}
            )
        except _ENGINE_ERRORS as error:
            raise BackendGoneError(str(error)[:300]) from error
        with self._lock:
            self._sockets.append(sock)
        return DockerProcess(self._client, identity, sock)

    def oom_kills(self) -> int:
        """The cgroup's own counter: read on this machine if possible, else inside the box."""
        for pattern in _OOM_COUNTERS:
            with suppress(OSError):
                text = Path(pattern.format(self.container)).read_text(encoding="ascii")
                return _oom_count(text)
        try:
            process = self.start_process(["/bin/cat", *_OOM_INSIDE], {}, stdin=False)
            return _oom_count(
                b"".join(chunk for _, chunk in process.output_chunks()).decode("ascii", "replace")
            )
        except (BackendGoneError, OSError):
            return 0

    def count_written_bytes(self) -> int:
        """The bytes written into its own layer."""
        with suppress(*_ENGINE_ERRORS):
            for one in self._client.containers(size=True, filters={"id": self.container}):
                return int(one.get("SizeRw") or 0)
        return 0

    def died_of_memory(self) -> bool:
        """Whether the engine recorded an OOM for this container; the record outlives the container."""
        try:
            events = self._client.events(
                since=self._since - 1,
                until=int(time.time()) + 1,
                filters={"container": self.container, "event": "oom"},
                decode=True,
            )
            return any(True for _ in events)
        except _ENGINE_ERRORS:
            return False

    def destroy(self) -> None:
        """Kill and remove the container, then close its streams."""
        with self._lock:
            if self._destroyed:
                return
            self._destroyed = True
            sockets = list(self._sockets)
        _remove_container(self._client, self.container)
        if self.beside is not None:
            self.beside.destroy()
        for sock in sockets:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        self._client.close()


class DockerProcess:
    """See `backend.BackendProcess`: one exec, and the socket its streams come and go through."""

    def __init__(self, client: APIClient, identity: str, sock: socket.socket) -> None:
        self._client = client
        self._id = identity
        self._sock = sock

    def output_chunks(self) -> Iterator[tuple[Stream, bytes]]:
        """Split the engine's multiplexed stream without ever holding a whole frame."""
        while header := _receive_exactly(self._sock, 8):
            stream, left = struct.unpack(">BxxxL", header)
            while left:
                chunk = self._sock.recv(min(left, 65536))
                if not chunk:
                    return
                left -= len(chunk)
                yield (2 if stream == 2 else 1), chunk

    def feed_input(self, chunks: Iterable[bytes]) -> None:
        """Send standard input, then its end."""
        for chunk in chunks:
            try:
                self._sock.sendall(chunk)
            except OSError:
                return
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)

    def exit_code(self) -> int | None:
        """None while it runs; see `backend.BackendProcess.exit_code`."""
        try:
            state = self._client.exec_inspect(self._id)
        except _ENGINE_ERRORS as error:
            raise BackendGoneError(str(error)[:300]) from error
        if state["Running"] or state["ExitCode"] is None:
            return None
        if not state["Pid"]:
            msg = "the box had no room left for a process"
            raise BackendGoneError(msg)
        return int(state["ExitCode"])


_OOM_COUNTERS = (
    "/sys/fs/cgroup/memory/docker/{}/memory.oom_control",
    "/sys/fs/cgroup/docker/{}/memory.events",
    "/sys/fs/cgroup/system.slice/docker-{}.scope/memory.events",
)
_OOM_INSIDE = ("/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events")


def _container_config(client: APIClient, plan: DockerPlan, limits: BoxLimits) -> dict[str, object]:
    options = "rw,nosuid,nodev,exec"
    owner = f"uid={BOX_UID},gid={BOX_UID},mode=0755"
    tmpfs = {
        box_scripts.WORK_DIR: f"{options},{_tmpfs_size_options(limits.disk)},{owner}",
        "/tmp": f"{options},{_tmpfs_size_options(limits.tmp)},mode=1777",  # noqa: S108 - the box's own tmpfs
    }
    # a volume that the image declares would be a directory of the host's, of any size, that the box may write
    for volume in client.inspect_image(plan.image)["Config"].get("Volumes") or ():  # type: ignore[no-untyped-call]
        path = posixpath.normpath(f"/{volume.lstrip('/')}")
        tmpfs.setdefault(path, f"{options},{_tmpfs_size_options(limits.tmp)},{owner}")
    if not plan.keeps:
        tmpfs[box_scripts.HOME_DIR] = f"{options},{_tmpfs_size_options(limits.tmp)},{owner}"
    binds = [f"{path}:{path}:ro" for path in plan.mounts]
    binds += [f"{source}:{target}:ro" for source, target in plan.extra_files]
    host_config = client.create_host_config(
        auto_remove=True,
        binds=binds,
        tmpfs=tmpfs,
        network_mode=f"container:{plan.joins}" if plan.joins else "none",
        read_only=not plan.keeps,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges:true", f"seccomp={docker_profile()}"],
        pids_limit=limits.pids + _OWN_PROCESSES,
        mem_limit=limits.memory,
        memswap_limit=limits.memory,
        nano_cpus=int(limits.cpus * 1e9),
        init=True,
        ipc_mode="private",
        shm_size=min(64 * layout.MiB, limits.disk),
        oom_score_adj=500,  # the host's own processes outlive a box
        log_config=LogConfig(type="none"),
        ulimits=[
            Ulimit(name="core", soft=1, hard=1),
            Ulimit(name="nofile", soft=4096, hard=8192),
        ],
        runtime=plan.runtime,
    )
    return {
        "Image": plan.image,
        "Entrypoint": [],
        "Cmd": ["/bin/cat"],
        "User": f"{KEEPER_UID}:{KEEPER_UID}",
        **({} if plan.joins else {"Hostname": "box"}),
        "WorkingDir": "/",
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "Tty": False,
        "Healthcheck": {"Test": ["NONE"]},
        "Labels": {BOX_LABEL: str(os.getpid()), DEADLINE_LABEL: str(int(time.time()) + LIFETIME_S)},
        "HostConfig": host_config,
    }


def _tmpfs_size_options(size: int) -> str:
    """The size and file limits of a tmpfs: endless empty files end with ENOSPC, not with the box's memory."""
    return f"size={size},nr_inodes={max(1024, size // 4096)}"


def _own_directories() -> bytes:
    """The directories that a box's user owns, for images that do not have them."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in ("env", "home/regreen", "work"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode, entry.uid, entry.gid = tarfile.DIRTYPE, 0o755, BOX_UID, BOX_UID
            tar.addfile(entry)
    return buffer.getvalue()


def _open_raw_stream(client: APIClient, path: str, body: object) -> socket.socket:
    """A raw two-way stream to the engine.

    Not done by the SDK, which reads the answer's head through a buffer and can lose the first bytes
    of the stream that follow it.
    """
    sock = _connect_socket(client)
    content = b"" if body is None else json.dumps(body).encode()
    head = (
        f"POST /v{client.api_version}{path} HTTP/1.1\r\nHost: docker\r\n"
        "Connection: Upgrade\r\nUpgrade: tcp\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    try:
        sock.settimeout(60.0)
        sock.sendall(head.encode() + content)
        refusal = _read_refusal(sock)
        sock.settimeout(None)
    except OSError:
        sock.close()
        raise
    if refusal:
        sock.close()
        raise OSError(refusal)
    return sock


def _read_refusal(sock: socket.socket) -> str:
    """Read the answer's head; "" when the engine agreed to upgrade, else its reason."""
    answer = bytearray()
    while not answer.endswith(b"\r\n\r\n"):
        byte = sock.recv(1)  # one at a time: what follows the head belongs to the stream
        if not byte or len(answer) > 16384:
            return "the engine closed the connection"
        answer += byte
    if answer.startswith((b"HTTP/1.1 101", b"HTTP/1.1 200")):
        return ""
    return "the engine refused: " + sock.recv(300).decode("utf-8", errors="replace").strip()


def _connect_socket(client: APIClient) -> socket.socket:
    if not client.base_url.startswith("http+docker://"):
        msg = "only a Docker engine on this machine's own socket is supported"
        raise OSError(msg)
    path = client.get_adapter("http+docker://").socket_path  # type: ignore[attr-defined]
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(10.0)
    try:
        sock.connect(path)
    except OSError:
        sock.close()
        raise
    return sock


def _receive_exactly(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        chunk = sock.recv(count - len(data))
        if not chunk:
            return b""
        data += chunk
    return data


def _oom_count(text: str) -> int:
    counts = [int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill ")]
    return counts[0] if counts else 0


def _remove_container(client: APIClient, container: str) -> None:
    """Kill and remove it, and wait until it is gone; the engine may have begun already."""
    with suppress(NotFound, APIError, RequestException):
        client.remove_container(container, v=True, force=True)
    waiting = Event()
    with suppress(NotFound, DockerException, RequestException):
        for _ in range(100):
            client.inspect_container(container)
            waiting.wait(0.05)
