"""The sandbox on a Docker engine: environments are image layers, boxes are containers without a network."""

from __future__ import annotations

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

from regreen.adapters.sandbox import box_scripts, host, layout
from regreen.adapters.sandbox.box import BackendBox
from regreen.adapters.sandbox.docker.docker_images import (
    BASE_REPOSITORY,
    ENV_REPOSITORY,
    LABEL_PREFIX,
    DockerImages,
    connect_engine,
    refuse_engine_without_limits,
)
from regreen.adapters.sandbox.egress_proxy import (
    PrivateAddressFilter,
    parse_allowed_hosts,
    proxy_variables,
)
from regreen.adapters.sandbox.environment_keys import (
    RECIPE_VERSION,
    SetupGuard,
    choose_python,
    environment_key,
    raise_if_setup_failed,
    refuse_guarded_setup,
    refuse_unknown_names,
    short_version,
)
from regreen.adapters.sandbox.retention import (
    DiskGuard,
    StoredEnvironment,
    UsageLedger,
    check_environments,
)
from regreen.domain.errors import OutsideError, UserError
from regreen.domain.models import BoxLimits, DoctorCheck, EnvSpec, PreparedEnv, Retention

if TYPE_CHECKING:
    from docker import APIClient
import io
import os
import posixpath
import socket
import struct
import tarfile
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Self

from docker.errors import APIError, DockerException, NotFound
from docker.types import LogConfig, Ulimit
from requests.exceptions import RequestException

from regreen.adapters.sandbox.backend import BackendGoneError, receive_exactly
from regreen.adapters.sandbox.host import BOX_UID, KEEPER_UID
from regreen.adapters.sandbox.process_watch import Stream
from regreen.adapters.sandbox.seccomp import docker_profile

if TYPE_CHECKING:
    from docker import APIClient

# The Docker backend: one container, its flags, its processes, its end.

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
        while header := receive_exactly(self._sock, 8):
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
        **({} if plan.joins else {"Hostname": layout.HOST_NAME}),
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


_START_GRACE_SECONDS = 300
_SLIM_PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
# A local engine is shown the tree as a read-only file: through its sockets it took two to four times as long.
_TREE_IN_BOX = "/tree.tar"
_CA_IN_BOX = "/etc/regreen-ca.crt"
_HELPER_LIMITS = BoxLimits(
    memory=256 * layout.MiB, disk=layout.MiB, tmp=layout.MiB, pids=400, cpus=1.0, output=0
)


@dataclass(frozen=True, slots=True)
class _BaseImage:
    """The base of a setup: an image with /env in it, and how it is run."""

    image: str
    python: str | None
    mounts: tuple[str, ...]
    path: str


class DockerSandbox:
    """See `ports.Sandbox`. One object serves many threads."""

    name = "docker"

    def __init__(
        self,
        client: APIClient,
        runtime: str | None = None,
        guards: tuple[SetupGuard, ...] = (refuse_unknown_names,),
        ledger: UsageLedger | None = None,
        setup_hosts: str = "",
    ) -> None:
        self._client = client
        self._allowed_hosts = parse_allowed_hosts(setup_hosts)
        self._guards = guards
        self._runtime = runtime
        self._info: Mapping[str, Any] = client.info()
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)
        self._lock = Lock()
        self._images = DockerImages(
            client, ledger or UsageLedger(Path.home() / ".cache/regreen/sandbox/used")
        )

    @classmethod
    def connect(
        cls,
        runtime: str | None = None,
        guards: tuple[SetupGuard, ...] = (refuse_unknown_names,),
        ledger: UsageLedger | None = None,
        setup_hosts: str = "",
    ) -> DockerSandbox:
        """The engine that DOCKER_HOST names, or this machine's own.

        `ledger` records the use of its environments; `setup_hosts` as for `egress_proxy.parse_allowed_hosts`.

        Raises:
            NoSandbox: there is no engine, access is denied, or it cannot enforce a box's limits.
        """
        sandbox = cls(connect_engine(), runtime, guards, ledger, setup_hosts)
        refuse_engine_without_limits(sandbox._client, sandbox._info, runtime)
        sandbox.sweep()
        if ledger is not None and ledger.claim_daily_cleanup():
            sandbox.prune()
        return sandbox

    def pythons(self) -> tuple[str, ...]:
        """The Python versions an environment may ask for."""
        if self._has_skeleton():
            return tuple(host.find_pythons())
        return self._images.list_slim_pythons(_SLIM_PYTHONS)

    def prepare(
        self, spec: EnvSpec, tree: Iterable[bytes], cancel: Event | None = None
    ) -> PreparedEnv:
        """Make or find an environment; see `ports.Sandbox.prepare`.

        Raises:
            SetupFailed: the setup failed or timed out.
            UserError: the Python or image does not exist.
            OutsideError: the engine failed.
        """
        base = self._choose_base(spec)
        if not spec.setup:
            return PreparedEnv(base.image, "docker", base.python, base.image)
        key = environment_key(base.image, spec)
        with self._locks[key]:
            image = self._images.find_image(f"{ENV_REPOSITORY}:{key}")
            if image is not None:
                self._images.mark_used(f"{ENV_REPOSITORY}:{key}")
                return PreparedEnv(key, "docker", base.python, image)
            refuse_guarded_setup(spec, self._guards)
            return self._set_up(key, base, spec, tree, cancel)

    def open(
        self, env: PreparedEnv, tree: Iterable[bytes], limits: BoxLimits | None = None
    ) -> BackendBox:
        """A fresh box; see `ports.Sandbox.open`.

        Raises:
            OutsideError: the engine failed, or the tree does not fit.
        """
        base = self._base_from_labels(env.image)
        if env.key != env.image:
            self._images.mark_used(f"{ENV_REPOSITORY}:{env.key}")
        checked = layout.check_limits(limits or BoxLimits())
        from_setup = env.key != env.image
        ca = host.ca_bundle() if checked.network else None
        plan = DockerPlan(
            base.image,
            base.mounts,
            path=base.path,
            network=checked.network,
            runtime=self._runtime,
            extra_files=((str(ca), _CA_IN_BOX),) if ca else (),
        )
        if not self._shares_files():
            return self._open_box(
                plan, checked, lambda box: box.lay_out(tree, from_setup=from_setup)
            )
        with layout.write_temporary_tar(tree, checked.disk) as spool:
            if spool is None:
                return self._open_box(
                    plan, checked, lambda box: box.lay_out((), from_setup=from_setup)
                )
            shown = replace(plan, extra_files=(*plan.extra_files, (str(spool), _TREE_IN_BOX)))
            return self._open_box(shown, checked, lambda box: box.lay_out_file(_TREE_IN_BOX))

    def _open_box(
        self, plan: DockerPlan, limits: BoxLimits, lay_out: Callable[[BackendBox], None]
    ) -> BackendBox:
        certified = any(here == _CA_IN_BOX for _, here in plan.extra_files)
        reaching = self._network_variables(certified) if plan.network else {}
        box = BackendBox(*self._start_backend(plan, limits), reaching)
        try:
            lay_out(box)
        except BaseException:
            box.close()
            raise
        return box

    def doctor(self) -> list[DoctorCheck]:
        """Attack a box of this engine; one line for each attack."""
        from regreen.adapters.sandbox.attacks.attack import run_attacks

        return [check_environments(self.list_environments()), *run_attacks(self)]

    def list_environments(self) -> list[StoredEnvironment]:
        """The prepared environments."""
        return self._images.list_environments()

    def prune(self, rules: Retention | None = None) -> int:
        """Remove unused and surplus environments; return how many."""
        return self._images.prune_environments(rules or Retention())

    def sweep(self) -> int:
        """Remove boxes past their deadline or without a Regreen; return how many."""
        from docker.errors import APIError

        removed = 0
        now = time.time()
        for container in self._client.containers(all=True, filters={"label": BOX_LABEL}):
            overdue = float(container["Labels"].get(DEADLINE_LABEL, "0")) < now
            # One that was never started does not remove itself; a young one is about to be.
            stillborn = (
                container["State"] == "created"
                and container["Created"] < now - _START_GRACE_SECONDS
            )
            if overdue or stillborn or container["State"] in {"exited", "dead"}:
                with suppress(APIError):
                    self._client.remove_container(container["Id"], v=True, force=True)
                    removed += 1
        return removed

    # -- bases ------------------------------------------------------------------------------------------------

    def _choose_base(self, spec: EnvSpec) -> _BaseImage:
        if spec.image:
            identity = self._images.ensure_image(spec.image, spec.timeout_s)
            return self._base_of_image(identity, python=None)
        version = short_version(spec.python)
        wanted = version or host.own_version()
        if spec.host_programs and self._has_skeleton() and wanted in host.find_pythons():
            return self._base_of_skeleton(version)
        if (slim := self._images.find_slim_image(wanted)) is not None:
            return self._base_of_image(self._images.find_image(slim) or slim, python=version)
        if not self._has_skeleton():
            msg = (
                "no image to run in: the registry cannot be reached and this machine's /usr cannot stand in; "
                f"set an image (`tests.image`), or run `docker pull python:{wanted}-slim`"
            )
            raise UserError(msg)
        return self._base_of_skeleton(version)

    def _has_skeleton(self) -> bool:
        return host.can_serve_as_skeleton() and self._shares_files()

    def _shares_files(self) -> bool:
        """Whether the engine sees the same files as this process: it may run outside of our container."""
        return Path(self._info.get("DockerRootDir") or "/nowhere").exists()

    def _base_of_skeleton(self, version: str | None) -> _BaseImage:
        python = choose_python(version)
        mounts = host.skeleton_mounts(python)
        root = host.make_skeleton_tar()
        digest = hashlib.sha256(
            root + python.identity.encode() + repr((mounts, RECIPE_VERSION)).encode()
        ).hexdigest()
        tag = f"{BASE_REPOSITORY}:{digest[:40]}"
        with self._locks[tag]:
            if (image := self._images.find_image(tag)) is None:
                skeleton = self._images.import_skeleton_image(root, digest[:40])
                labels = {"mounts": json.dumps(mounts), "python": python.version}
                self._make_base(
                    tag, DockerPlan(skeleton, mounts, keeps=True), str(python.exe), "", labels
                )
                image = self._images.find_image(tag)
        self._images.mark_used(tag)
        return self._base_from_labels(image or tag)

    def _base_of_image(self, identity: str, python: str | None) -> _BaseImage:
        digest = hashlib.sha256(f"{identity} {RECIPE_VERSION}".encode()).hexdigest()
        tag = f"{BASE_REPOSITORY}:{digest[:40]}"
        with self._locks[tag]:
            if (image_id := self._images.find_image(tag)) is None:
                labels = {"mounts": "[]", "python": python or ""}
                self._make_base(
                    tag,
                    DockerPlan(identity, (), keeps=True),
                    "python3",
                    "--system-site-packages",
                    labels,
                )
                image_id = self._images.find_image(tag)
        self._images.mark_used(tag)
        return self._base_from_labels(image_id or tag)

    def _make_base(
        self, tag: str, plan: DockerPlan, python: str, flags: str, labels: Mapping[str, str]
    ) -> None:
        cell, limits = self._start_backend(plan, layout.SETUP_LIMITS)
        with BackendBox(cell, limits) as box:
            argv = ["/bin/sh", "-c", box_scripts.VENV_SCRIPT, "sh", python, flags]
            result = box.execute_raw(argv, timeout=300.0, env={})
            if not result.passed:
                output = " ".join((result.stderr or result.detail).split())[-300:]
                msg = f"the base environment could not be made: {output}"
                raise OutsideError(msg)
            self._images.commit_container(cell.container, tag, labels)

    # -- environments -----------------------------------------------------------------------------------------

    def _set_up(
        self, key: str, base: _BaseImage, spec: EnvSpec, tree: Iterable[bytes], cancel: Event | None
    ) -> PreparedEnv:
        assert spec.setup  # noqa: S101 - narrowed by the caller
        ca = host.ca_bundle()
        tar = layout.nonempty_stream(tree)
        plan = DockerPlan(
            base.image,
            base.mounts,
            path=base.path,
            network=True,
            keeps=True,
            runtime=self._runtime,
            extra_files=((str(ca), _CA_IN_BOX),) if ca else (),
        )
        env = self._network_variables(ca is not None) | dict(spec.env)
        cell, limits = self._start_backend(plan, layout.SETUP_LIMITS)
        place = Path(self._info.get("DockerRootDir") or "/")
        with (
            BackendBox(cell, limits) as box,
            DiskGuard(place, cancel, cell.count_written_bytes) as guard,
        ):
            result = box.execute_raw(
                [
                    "/bin/sh",
                    "-c",
                    box_scripts.SETUP_SCRIPT,
                    "sh",
                    spec.setup,
                    "none" if tar is None else "tree",
                ],
                timeout=spec.timeout_s,
                env=env,
                stdin=tar,
                cancel=guard.stop,
            )
            raise_if_setup_failed(result, overflowed=guard.overflowed)
            labels = {
                "mounts": json.dumps(base.mounts),
                "python": base.python or "",
                "key": key,
                "trust": spec.trust,
                "scope": spec.scope,
            }
            image = self._images.commit_container(cell.container, f"{ENV_REPOSITORY}:{key}", labels)
            self._images.mark_used(f"{ENV_REPOSITORY}:{key}")
        return PreparedEnv(
            key, "docker", base.python, image, (result.stdout + result.stderr)[-4000:]
        )

    def _base_from_labels(self, image: str) -> _BaseImage:
        """How our image is run, read from its labels."""
        info = self._images.inspect_image(image)
        if info is None:
            msg = "the prepared environment is gone; prepare it again"
            raise OutsideError(msg)
        config = info["Config"]
        labels = config.get("Labels") or {}
        variables = dict(item.partition("=")[::2] for item in config.get("Env") or ())
        return _BaseImage(
            image=str(info["Id"]),
            python=labels.get(LABEL_PREFIX + "python") or None,
            mounts=tuple(json.loads(labels.get(LABEL_PREFIX + "mounts", "[]"))),
            path=variables.get("PATH", layout.DEFAULT_PATH),
        )

    # -- the engine -------------------------------------------------------------------------------------------

    def _start_backend(
        self, plan: DockerPlan, wanted: BoxLimits
    ) -> tuple[DockerBackend, BoxLimits]:
        limits = self._fit_limits(wanted)
        cell = DockerBackend.start_container(self._new_client(), plan, limits)
        if plan.network:
            try:
                cell.beside = self._network_for(cell, plan)
            except BaseException:
                cell.destroy()
                raise
        return cell, limits

    def _network_variables(self, certified: bool) -> dict[str, str]:
        ca = _CA_IN_BOX if certified else None
        return host.network_env(ca) | proxy_variables(self._allowed_hosts)

    def _network_for(self, cell: DockerBackend, plan: DockerPlan) -> DockerBackend:
        """A container of ours that shares the box's loopback, and forwards connections to the filter."""
        try:
            base = self._choose_base(EnvSpec())
        except (
            UserError
        ):  # neither python:X.Y-slim nor a skeleton: the box's own image may have a Python
            base = self._base_from_labels(plan.image)
        plan = DockerPlan(base.image, base.mounts, path=base.path, joins=cell.container)
        helper = DockerBackend.start_container(
            self._new_client(), plan, self._fit_limits(_HELPER_LIMITS)
        )
        try:
            PrivateAddressFilter(self._allowed_hosts).serve_loopback_of(helper)
        except BaseException:
            helper.destroy()
            raise
        return helper

    def _fit_limits(self, limits: BoxLimits) -> BoxLimits:
        """The limits, capped by the machine's resources."""
        cpus = min(limits.cpus, float(self._info.get("NCPU") or 1))
        memory = min(limits.memory, int(self._info.get("MemTotal") or limits.memory))
        return replace(limits, memory=memory, cpus=cpus)

    def _new_client(self) -> APIClient:
        """A connection for one thread: the SDK's sessions are not made to be shared."""
        return connect_engine(self._client.api_version)
