"""One Docker container as a cell: its flags, its processes, its end.

A keeper process (`cat`, another user than the commands) holds the container open for as long as our end of its
standard input is open, so the container goes away even when Regreen is killed.
"""

from __future__ import annotations

import io
import json
import os
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

from regreen.adapters import boxes, scripts
from regreen.adapters.cell import CellGoneError
from regreen.adapters.host import KEEPER_UID, UID
from regreen.adapters.seccomp import docker_profile
from regreen.adapters.watch import Stream
from regreen.errors import OutsideError
from regreen.models import Limits

if TYPE_CHECKING:
    from docker import APIClient

LABEL = "regreen.box"
DEADLINE_LABEL = "regreen.deadline"
LIFETIME_S = 12 * 3600
_OWN_PROCESSES = 4  # the init, the keeper, and the shell that starts a command
_FAILURES = (DockerException, RequestException, OSError)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a container is made from: the image, the host directories it shows, whether it may write and talk."""

    image: str
    mounts: tuple[str, ...]
    path: str = boxes.DEFAULT_PATH
    network: bool = False
    keeps: bool = False  # the root can be written to and committed: only for `prepare`
    runtime: str | None = None
    extra_files: tuple[tuple[str, str], ...] = ()  # (host file, path in the box), read-only


class DockerCell:
    """See `cell.Cell`. Made by `start`; the container exists from then until `destroy`."""

    quick = False

    def __init__(self, client: APIClient, container: str, keeper: socket.socket, path: str) -> None:
        self.path = path
        self.container = container
        self._client = client
        self._sockets = [keeper]
        self._since = int(time.time())
        self._lock = Lock()
        self._destroyed = False

    @classmethod
    def start_container(cls, client: APIClient, plan: Plan, limits: Limits) -> Self:
        """Create and start the container.

        Raises:
            OutsideError: the engine would not.
        """
        try:
            made = client.create_container_from_config(  # type: ignore[no-untyped-call]
                _config(client, plan, limits)
            )
        except _FAILURES as error:
            message = f"Docker could not create a box: {error}"
            raise OutsideError(message) from error
        container = str(made["Id"])
        try:
            if plan.keeps:
                client.put_archive(container, "/", _own_directories())
            keeper = _hijack(client, f"/containers/{container}/attach?stdin=1&stream=1", None)
            client.start(container)
        except _FAILURES as error:
            _remove(client, container)
            message = f"Docker could not start a box: {error}"
            raise OutsideError(message) from error
        return cls(client, container, keeper, plan.path)

    def start(self, argv: Sequence[str], env: Mapping[str, str], stdin: bool) -> DockerProcess:
        """Start a process; see `cell.Cell.start`."""
        try:
            made = self._client.exec_create(
                self.container,
                list(argv),
                stdin=stdin,
                user=f"{UID}:{UID}",
                environment=[f"{name}={value}" for name, value in env.items()],
                workdir="/",
            )
            identity = str(made["Id"])
            sock = _hijack(self._client, f"/exec/{identity}/start", {"Detach": False, "Tty": False})
        except _FAILURES as error:
            raise CellGoneError(str(error)[:300]) from error
        with self._lock:
            self._sockets.append(sock)
        return DockerProcess(self._client, identity, sock)

    def oom_kills(self) -> int:
        """The cgroup's own counter: read on this machine where it is, else inside the box."""
        for pattern in _OOM_COUNTERS:
            with suppress(OSError):
                text = Path(pattern.format(self.container)).read_text(encoding="ascii")
                return _oom_count(text)
        try:
            process = self.start(["/bin/cat", *_OOM_INSIDE], {}, stdin=False)
            return _oom_count(
                b"".join(chunk for _, chunk in process.chunks()).decode("ascii", "replace")
            )
        except (CellGoneError, OSError):
            return 0

    def died_of_memory(self) -> bool:
        """Whether the engine noted an OOM for this container: it remembers when the container is gone."""
        try:
            events = self._client.events(
                since=self._since - 1,
                until=int(time.time()) + 1,
                filters={"container": self.container, "event": "oom"},
                decode=True,
            )
            return any(True for _ in events)
        except _FAILURES:
            return False

    def destroy(self) -> None:
        """Kill and remove the container, then let go of its streams."""
        with self._lock:
            if self._destroyed:
                return
            self._destroyed = True
            sockets = list(self._sockets)
        _remove(self._client, self.container)
        for sock in sockets:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        self._client.close()


class DockerProcess:
    """See `cell.Running`: one exec, and the socket its streams come and go through."""

    def __init__(self, client: APIClient, identity: str, sock: socket.socket) -> None:
        self._client = client
        self._id = identity
        self._sock = sock

    def chunks(self) -> Iterator[tuple[Stream, bytes]]:
        """Take the engine's multiplexed stream apart, without ever holding a whole frame."""
        while header := _exactly(self._sock, 8):
            stream, left = struct.unpack(">BxxxL", header)
            while left:
                chunk = self._sock.recv(min(left, 65536))
                if not chunk:
                    return
                left -= len(chunk)
                yield (2 if stream == 2 else 1), chunk

    def feed(self, chunks: Iterable[bytes]) -> None:
        """Send standard input, then its end."""
        for chunk in chunks:
            try:
                self._sock.sendall(chunk)
            except OSError:
                return
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)

    def exit_code(self) -> int | None:
        """None while it runs; see `cell.Running.exit_code`."""
        try:
            seen = self._client.exec_inspect(self._id)
        except _FAILURES as error:
            raise CellGoneError(str(error)[:300]) from error
        if seen["Running"] or seen["ExitCode"] is None:
            return None
        if not seen["Pid"]:
            msg = "the box had no room left for a process"
            raise CellGoneError(msg)
        return int(seen["ExitCode"])


_OOM_COUNTERS = (
    "/sys/fs/cgroup/memory/docker/{}/memory.oom_control",
    "/sys/fs/cgroup/docker/{}/memory.events",
    "/sys/fs/cgroup/system.slice/docker-{}.scope/memory.events",
)
_OOM_INSIDE = ("/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events")


def _config(client: APIClient, plan: Plan, limits: Limits) -> dict[str, object]:
    options = "rw,nosuid,nodev,exec"
    owner = f"uid={UID},gid={UID},mode=0755"
    tmpfs = {
        scripts.WORK: f"{options},{_sized(limits.disk)},{owner}",
        "/tmp": f"{options},{_sized(limits.tmp)},mode=1777",  # noqa: S108 - the box's own tmpfs
    }
    if not plan.keeps:
        tmpfs[scripts.HOME] = f"{options},{_sized(limits.tmp)},{owner}"
    binds = [f"{path}:{path}:ro" for path in plan.mounts]
    binds += [f"{there}:{here}:ro" for there, here in plan.extra_files]
    host_config = client.create_host_config(
        auto_remove=True,
        binds=binds,
        tmpfs=tmpfs,
        network_mode="bridge" if plan.network else "none",
        read_only=not plan.keeps,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges:true", f"seccomp={docker_profile()}"],
        pids_limit=limits.pids + _OWN_PROCESSES,
        mem_limit=limits.memory,
        memswap_limit=limits.memory,
        nano_cpus=int(limits.cpus * 1e9),
        init=True,
        ipc_mode="private",
        shm_size=min(64 * boxes.MiB, limits.disk),
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
        "Hostname": "box",
        "WorkingDir": "/",
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "Tty": False,
        "Healthcheck": {"Test": ["NONE"]},
        "Labels": {LABEL: str(os.getpid()), DEADLINE_LABEL: str(int(time.time()) + LIFETIME_S)},
        "HostConfig": host_config,
    }


def _sized(size: int) -> str:
    """Bytes and files a tmpfs may hold: endless empty files end with ENOSPC, not with the box's memory."""
    return f"size={size},nr_inodes={max(1024, size // 4096)}"


def _own_directories() -> bytes:
    """The directories that a box's user owns, for images that do not have them."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in ("env", "home/regreen", "work"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode, entry.uid, entry.gid = tarfile.DIRTYPE, 0o755, UID, UID
            tar.addfile(entry)
    return buffer.getvalue()


def _hijack(client: APIClient, path: str, body: object) -> socket.socket:
    """A raw two-way stream to the engine.

    Done here and not by the SDK: that reads the answer's head through a buffer, and can lose the first bytes
    of the stream that follow it.
    """
    sock = _connect(client)
    content = b"" if body is None else json.dumps(body).encode()
    head = (
        f"POST /v{client.api_version}{path} HTTP/1.1\r\nHost: docker\r\n"
        "Connection: Upgrade\r\nUpgrade: tcp\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    try:
        sock.settimeout(60.0)
        sock.sendall(head.encode() + content)
        refusal = _refusal(sock)
        sock.settimeout(None)
    except OSError:
        sock.close()
        raise
    if refusal:
        sock.close()
        raise OSError(refusal)
    return sock


def _refusal(sock: socket.socket) -> str:
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


def _connect(client: APIClient) -> socket.socket:
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


def _exactly(sock: socket.socket, count: int) -> bytes:
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


def _remove(client: APIClient, container: str) -> None:
    """Kill, remove, and see it gone; an engine that is already at it has our thanks."""
    with suppress(NotFound, APIError, RequestException):
        client.remove_container(container, v=True, force=True)
    waiting = Event()
    with suppress(NotFound, DockerException, RequestException):
        for _ in range(100):
            client.inspect_container(container)
            waiting.wait(0.05)
