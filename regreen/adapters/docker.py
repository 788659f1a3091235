"""The sandbox on a Docker engine: environments are image layers, boxes are containers without a network."""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

from regreen.adapters import boxes, host, scripts
from regreen.adapters.box import CellBox
from regreen.adapters.disk import DiskGuard
from regreen.adapters.docker_box import DEADLINE_LABEL, LABEL, DockerCell, Plan
from regreen.adapters.environments import (
    RECIPE,
    Guard,
    choose_python,
    environment_key,
    raise_if_failed,
    refuse_if_guarded,
    short_version,
    unknown_names,
)
from regreen.errors import NoSandbox, OutsideError, UserError
from regreen.models import Check, Env, EnvSpec, Limits

if TYPE_CHECKING:
    from docker import APIClient

REPOSITORY = "regreen-env"
_BASE = "regreen-base"
_STILLBORN_S = 300
_LABELS = "regreen."
_SLIM_PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
# Trusted code alone: Debian's own packages, as root, before anything of a repository is near.
_TOOLS = """FROM {}
RUN apt-get update && apt-get install -y --no-install-recommends git make && rm -rf /var/lib/apt/lists/*
"""
# A local engine is shown the tree as a read-only file: through its sockets it took two to four times as long.
_TREE_IN_BOX = "/tree.tar"
_CA_IN_BOX = "/etc/regreen-ca.crt"


@dataclass(frozen=True, slots=True)
class _Base:
    """What a setup starts from: an image with /env in it, and how it is run."""

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
        guards: tuple[Guard, ...] = (unknown_names,),
    ) -> None:
        self._client = client
        self._guards = guards
        self._runtime = runtime
        self._info: Mapping[str, Any] = client.info()
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)
        self._lock = Lock()
        self._no_registry = False

    @classmethod
    def connect(
        cls, runtime: str | None = None, guards: tuple[Guard, ...] = (unknown_names,)
    ) -> DockerSandbox:
        """The engine that DOCKER_HOST names, or this machine's own.

        Raises:
            NoSandbox: there is no engine, we may not use it, or it cannot hold a box to its limits.
        """
        sandbox = cls(_client(), runtime, guards)
        sandbox._refuse_if_weak()
        sandbox.sweep()
        return sandbox

    def pythons(self) -> tuple[str, ...]:
        """The Python versions an environment may ask for."""
        return tuple(host.pythons()) if self._has_skeleton() else _SLIM_PYTHONS

    def prepare(self, spec: EnvSpec, tree: Iterable[bytes], cancel: Event | None = None) -> Env:
        """Make, or find again, an environment; see `ports.Sandbox.prepare`.

        Raises:
            SetupFailed: the setup failed or ran out of its time.
            UserError: no such Python or image.
            OutsideError: the engine failed.
        """
        base = self._base(spec)
        if not spec.setup:
            return Env(base.image, "docker", base.python, base.image)
        key = environment_key(base.image, spec)
        with self._locks[key]:
            found = self._find(f"{REPOSITORY}:{key}")
            if found is not None:
                return Env(key, "docker", base.python, found)
            refuse_if_guarded(spec, self._guards)
            return self._set_up(key, base, spec, tree, cancel)

    def open(self, env: Env, tree: Iterable[bytes], limits: Limits | None = None) -> CellBox:
        """A fresh box; see `ports.Sandbox.open`.

        Raises:
            OutsideError: the engine failed, or the tree does not fit.
        """
        base = self._described(env.image)
        asked = boxes.check_limits(limits or Limits())
        from_setup = env.key != env.image
        plan = Plan(base.image, base.mounts, path=base.path, runtime=self._runtime)
        if not self._shares_files():
            return self._opened(plan, asked, lambda box: box.lay_out(tree, from_setup=from_setup))
        with boxes.spooled(tree, asked.disk) as spool:
            if spool is None:
                return self._opened(plan, asked, lambda box: box.lay_out((), from_setup=from_setup))
            shown = replace(plan, extra_files=((str(spool), _TREE_IN_BOX),))
            return self._opened(shown, asked, lambda box: box.lay_out_file(_TREE_IN_BOX))

    def _opened(self, plan: Plan, limits: Limits, lay_out: Callable[[CellBox], None]) -> CellBox:
        box = CellBox(*self._cell(plan, limits))
        try:
            lay_out(box)
        except BaseException:
            box.close()
            raise
        return box

    def doctor(self) -> list[Check]:
        """Attack a box of this engine; one line for each attack."""
        from regreen.adapters.attacks import attack

        return attack(self)

    def sweep(self) -> int:
        """Remove boxes that outlived their deadline or their Regreen; how many there were."""
        from docker.errors import APIError

        removed = 0
        now = time.time()
        for container in self._client.containers(all=True, filters={"label": LABEL}):
            overdue = float(container["Labels"].get(DEADLINE_LABEL, "0")) < now
            # One that was never started does not remove itself; a young one is about to be.
            stillborn = (
                container["State"] == "created" and container["Created"] < now - _STILLBORN_S
            )
            if overdue or stillborn or container["State"] in {"exited", "dead"}:
                with suppress(APIError):
                    self._client.remove_container(container["Id"], v=True, force=True)
                    removed += 1
        return removed

    # -- bases ------------------------------------------------------------------------------------------------

    def _base(self, spec: EnvSpec) -> _Base:
        if spec.image:
            return self._base_of_image(spec.image, python=None)
        version = short_version(spec.python)
        if (slim := self._slim(version or host.own_version())) is not None:
            return self._base_of_image(slim, python=version)
        if not self._has_skeleton():
            msg = (
                "no image to run in: the registry cannot be reached and this machine's /usr cannot stand in; "
                "set an image, or run `docker pull python:3.12-slim`"
            )
            raise UserError(msg)
        return self._base_of_skeleton(version)

    def _has_skeleton(self) -> bool:
        return host.has_skeleton() and self._shares_files()

    def _shares_files(self) -> bool:
        """Whether the engine sees the same files as we do: it may run outside of the container we run in."""
        return Path(self._info.get("DockerRootDir") or "/nowhere").exists()

    def _base_of_skeleton(self, version: str | None) -> _Base:
        python = choose_python(version)
        mounts = host.skeleton_mounts(python)
        root = host.skeleton_tar()
        digest = hashlib.sha256(
            root + python.identity.encode() + repr((mounts, RECIPE)).encode()
        ).hexdigest()
        tag = f"{_BASE}:{digest[:40]}"
        with self._locks[tag]:
            if (found := self._find(tag)) is None:
                skeleton = self._import(root, digest[:40])
                labels = {"mounts": json.dumps(mounts), "python": python.version}
                self._make_base(
                    tag, Plan(skeleton, mounts, keeps=True), str(python.exe), "", labels
                )
                found = self._find(tag)
        return self._described(found or tag)

    def _base_of_image(self, image: str, python: str | None) -> _Base:
        identity = self._pulled(image)
        digest = hashlib.sha256(f"{identity} {RECIPE}".encode()).hexdigest()
        tag = f"{_BASE}:{digest[:40]}"
        with self._locks[tag]:
            if (found := self._find(tag)) is None:
                labels = {"mounts": "[]", "python": python or ""}
                self._make_base(
                    tag,
                    Plan(identity, (), keeps=True),
                    "python3",
                    "--system-site-packages",
                    labels,
                )
                found = self._find(tag)
        return self._described(found or tag)

    def _make_base(
        self, tag: str, plan: Plan, python: str, flags: str, labels: Mapping[str, str]
    ) -> None:
        cell, limits = self._cell(plan, boxes.SETUP_LIMITS)
        with CellBox(cell, limits) as box:
            argv = ["/bin/sh", "-c", scripts.VENV, "sh", python, flags]
            result = box.execute(argv, timeout=300.0, env={})
            if not result.passed:
                said = " ".join((result.stderr or result.detail).split())[-300:]
                msg = f"the base environment could not be made: {said}"
                raise OutsideError(msg)
            self._commit(cell, tag, labels)

    def _slim(self, version: str) -> str | None:
        """The official slim image of a Python, where it is here or can be had."""
        image = f"python:{version}-slim"
        if self._find(image) is not None:
            return self._with_tools(image)
        if self._no_registry:
            return None
        try:
            self._pulled(image)
        except (UserError, OutsideError):
            self._no_registry = True
            return None
        return self._with_tools(image)

    def _with_tools(self, image: str) -> str:
        """The slim image with git and make in it, built once; without them where no package index answers."""
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        tag = f"regreen-tools:{image.replace(':', '-')}"
        if self._find(tag) is not None:
            return tag
        try:
            steps = self._client.build(
                fileobj=io.BytesIO(_TOOLS.format(image).encode()),
                tag=tag,
                rm=True,
                forcerm=True,
                decode=True,
            )
            built = not any("error" in step for step in steps)
        except (DockerException, RequestException):
            built = False
        return tag if built and self._find(tag) is not None else image

    def _pulled(self, image: str) -> str:
        """The id of an image, pulled if it is not here.

        Raises:
            UserError: the registry does not have it.
            OutsideError: the registry cannot be reached.
        """
        from docker.errors import APIError, NotFound

        if (found := self._find(image)) is not None:
            return found
        name, _, tag = image.rpartition(":")
        reference = (name, tag) if name and "/" not in tag else (image, "latest")
        try:
            self._client.pull(*reference) if "@" not in image else self._client.pull(image)
        except NotFound as error:
            msg = f"there is no image {image!r}"
            raise UserError(msg) from error
        except APIError as error:
            msg = f"the image {image!r} could not be pulled: {error.explanation}"
            raise OutsideError(msg) from error
        if (found := self._find(image)) is None:
            msg = f"the image {image!r} could not be pulled"
            raise OutsideError(msg)
        return found

    # -- environments -----------------------------------------------------------------------------------------

    def _set_up(
        self, key: str, base: _Base, spec: EnvSpec, tree: Iterable[bytes], cancel: Event | None
    ) -> Env:
        assert spec.setup  # noqa: S101 - narrowed by the caller
        ca = host.ca_bundle()
        tar = boxes.begun(tree)
        plan = Plan(
            base.image,
            base.mounts,
            path=base.path,
            network=True,
            keeps=True,
            runtime=self._runtime,
            extra_files=((str(ca), _CA_IN_BOX),) if ca else (),
        )
        env = host.network_env(_CA_IN_BOX if ca else None) | dict(spec.env)
        cell, limits = self._cell(plan, boxes.SETUP_LIMITS)
        place = Path(self._info.get("DockerRootDir") or "/")
        with CellBox(cell, limits) as box, DiskGuard(place, cancel) as guard:
            result = box.execute(
                [
                    "/bin/sh",
                    "-c",
                    scripts.SETUP,
                    "sh",
                    spec.setup,
                    "none" if tar is None else "tree",
                ],
                timeout=spec.timeout_s,
                env=env,
                stdin=tar,
                cancel=guard.stop,
            )
            raise_if_failed(result, overflowed=guard.overflowed)
            labels = {
                "mounts": json.dumps(base.mounts),
                "python": base.python or "",
                "key": key,
                "trust": spec.trust,
                "scope": spec.scope,
            }
            image = self._commit(cell, f"{REPOSITORY}:{key}", labels)
        return Env(key, "docker", base.python, image, (result.stdout + result.stderr)[-4000:])

    def _commit(self, cell: DockerCell, tag: str, labels: Mapping[str, str]) -> str:
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        repository, _, version = tag.partition(":")
        try:
            made = self._new_client().commit(
                cell.container,
                repository=repository,
                tag=version,
                conf={"Labels": {_LABELS + name: value for name, value in labels.items()}},
            )
        except (DockerException, RequestException) as error:
            msg = f"Docker could not keep the environment: {error}"
            raise OutsideError(msg) from error
        return str(made["Id"])

    def _described(self, image: str) -> _Base:
        """How an image of ours is run, read back from its labels."""
        seen = self._inspect(image)
        if seen is None:
            msg = "the prepared environment is gone; prepare it again"
            raise OutsideError(msg)
        config = seen["Config"]
        labels = config.get("Labels") or {}
        variables = dict(item.partition("=")[::2] for item in config.get("Env") or ())
        return _Base(
            image=str(seen["Id"]),
            python=labels.get(_LABELS + "python") or None,
            mounts=tuple(json.loads(labels.get(_LABELS + "mounts", "[]"))),
            path=variables.get("PATH", boxes.DEFAULT_PATH),
        )

    # -- the engine -------------------------------------------------------------------------------------------

    def _import(self, root: bytes, tag: str) -> str:
        from docker.errors import APIError

        try:
            self._client.import_image_from_data(root, repository="regreen-skeleton", tag=tag)
        except APIError as error:
            msg = f"Docker could not import the skeleton image: {error}"
            raise OutsideError(msg) from error
        return f"regreen-skeleton:{tag}"

    def _find(self, image: str) -> str | None:
        seen = self._inspect(image)
        return None if seen is None else str(seen["Id"])

    def _inspect(self, image: str) -> Mapping[str, Any] | None:
        from docker.errors import DockerException, NotFound
        from requests.exceptions import RequestException

        try:
            seen: Mapping[str, Any] = self._client.inspect_image(image)  # type: ignore[no-untyped-call]
        except NotFound:
            return None
        except (DockerException, RequestException) as error:
            msg = f"Docker did not answer: {error}"
            raise OutsideError(msg) from error
        return seen

    def _cell(self, plan: Plan, wanted: Limits) -> tuple[DockerCell, Limits]:
        limits = self._fitting(wanted)
        return DockerCell.start_container(self._new_client(), plan, limits), limits

    def _fitting(self, limits: Limits) -> Limits:
        """The limits, brought within what this machine has."""
        cpus = min(limits.cpus, float(self._info.get("NCPU") or 1))
        memory = min(limits.memory, int(self._info.get("MemTotal") or limits.memory))
        return Limits(
            memory, limits.disk, limits.tmp, limits.pids, cpus, limits.output, limits.flood
        )

    def _new_client(self) -> APIClient:
        """A connection for one thread: the SDK's sessions are not made to be shared."""
        return _client(self._client.api_version)

    def _refuse_if_weak(self) -> None:
        if not self._client.base_url.startswith("http+docker://"):
            raise NoSandbox(
                "only a Docker engine on this machine is supported; unset DOCKER_HOST, or point it at a unix socket"
            )
        missing = [
            name for name in ("MemoryLimit", "PidsLimit", "CpuCfsQuota") if not self._info.get(name)
        ]
        if not any("seccomp" in option for option in self._info.get("SecurityOptions") or ()):
            missing.append("seccomp")
        if missing or self._info.get("OSType") != "linux":
            msg = (
                f"the Docker engine cannot hold a box to its limits (missing: {', '.join(missing) or 'Linux'}); "
                "use a rootful engine, or cgroup v2 with delegation"
            )
            raise NoSandbox(msg)
        runtimes = self._info.get("Runtimes") or {}
        if self._runtime and self._runtime not in runtimes:
            msg = (
                f"Docker knows no runtime {self._runtime!r} (it has {', '.join(sorted(runtimes))}); "
                "add it to /etc/docker/daemon.json"
            )
            raise NoSandbox(msg)


def _client(version: str = "auto") -> APIClient:
    import docker
    from docker.errors import DockerException
    from docker.utils import kwargs_from_env

    settings = kwargs_from_env()
    own = Path(os.environ.get("XDG_RUNTIME_DIR", ""), "docker.sock")
    if "base_url" not in settings and not Path("/var/run/docker.sock").exists() and own.is_socket():
        settings["base_url"] = f"unix://{own}"
    try:
        return docker.APIClient(version=version, timeout=60, **settings)
    except (DockerException, OSError) as error:
        raise NoSandbox(_no_engine(error)) from error


def _no_engine(error: Exception) -> str:
    reason = str(error)
    if "Permission denied" in reason:
        return "you may not use the Docker engine; join the docker group (usermod -aG docker $USER), log in again"
    if "No such file" in reason or "Connection refused" in reason:
        return "no Docker engine is running; start one (systemctl start docker)"
    return f"the Docker engine cannot be used: {reason[:200]}"
