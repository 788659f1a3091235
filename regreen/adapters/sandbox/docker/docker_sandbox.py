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
from regreen.adapters.sandbox.docker.docker_backend import (
    BOX_LABEL,
    DEADLINE_LABEL,
    DockerBackend,
    DockerPlan,
)
from regreen.adapters.sandbox.docker.docker_images import (
    BASE_REPOSITORY,
    ENV_REPOSITORY,
    LABEL_PREFIX,
    DockerImages,
    connect_engine,
    refuse_if_weak,
)
from regreen.adapters.sandbox.egress_proxy import EgressFilter, parse_allowed_hosts, proxy_variables
from regreen.adapters.sandbox.environment_keys import (
    RECIPE_VERSION,
    SetupGuard,
    choose_python,
    environment_key,
    raise_if_failed,
    refuse_if_guarded,
    refuse_unknown_names,
    short_version,
)
from regreen.adapters.sandbox.retention import (
    DiskGuard,
    StoredEnvironment,
    UsageLedger,
    check_environments,
)
from regreen.domain.box_limits import BoxLimits
from regreen.domain.errors import OutsideError, UserError
from regreen.domain.models import DoctorCheck, EnvSpec, PreparedEnv, Retention

if TYPE_CHECKING:
    from docker import APIClient

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
        refuse_if_weak(sandbox._client, sandbox._info, runtime)
        sandbox.sweep()
        if ledger is not None and ledger.is_due():
            sandbox.prune()
        return sandbox

    def pythons(self) -> tuple[str, ...]:
        """The Python versions an environment may ask for."""
        return tuple(host.find_pythons()) if self._has_skeleton() else _SLIM_PYTHONS

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
            refuse_if_guarded(spec, self._guards)
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
        return host.has_skeleton() and self._shares_files()

    def _shares_files(self) -> bool:
        """Whether the engine sees the same files as this process: it may run outside of our container."""
        return Path(self._info.get("DockerRootDir") or "/nowhere").exists()

    def _base_of_skeleton(self, version: str | None) -> _BaseImage:
        python = choose_python(version)
        mounts = host.skeleton_mounts(python)
        root = host.skeleton_tar()
        digest = hashlib.sha256(
            root + python.identity.encode() + repr((mounts, RECIPE_VERSION)).encode()
        ).hexdigest()
        tag = f"{BASE_REPOSITORY}:{digest[:40]}"
        with self._locks[tag]:
            if (image := self._images.find_image(tag)) is None:
                skeleton = self._images.import_root(root, digest[:40])
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
            raise_if_failed(result, overflowed=guard.overflowed)
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
            EgressFilter(self._allowed_hosts).start_beside(helper)
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
