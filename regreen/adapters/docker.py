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

from regreen.adapters import boxes, host, scripts
from regreen.adapters.box import CellBox
from regreen.adapters.disk import DiskGuard
from regreen.adapters.docker_box import DEADLINE_LABEL, LABEL, DockerCell, Plan
from regreen.adapters.docker_engine import connect, refuse_if_weak
from regreen.adapters.docker_images import BASE, LABELS, REPOSITORY, Images
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
from regreen.adapters.retention import Kept, Ledger, Retention, check
from regreen.errors import OutsideError, UserError
from regreen.models import Check, Env, EnvSpec, Limits

if TYPE_CHECKING:
    from docker import APIClient

_STILLBORN_S = 300
_SLIM_PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
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
        ledger: Ledger | None = None,
    ) -> None:
        self._client = client
        self._guards = guards
        self._runtime = runtime
        self._info: Mapping[str, Any] = client.info()
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)
        self._lock = Lock()
        self._images = Images(client, ledger or Ledger(Path.home() / ".cache/regreen/sandbox/used"))

    @classmethod
    def connect(
        cls,
        runtime: str | None = None,
        guards: tuple[Guard, ...] = (unknown_names,),
        ledger: Ledger | None = None,
    ) -> DockerSandbox:
        """The engine that DOCKER_HOST names, or this machine's own; `ledger` notes the use of its environments.

        Raises:
            NoSandbox: there is no engine, we may not use it, or it cannot hold a box to its limits.
        """
        sandbox = cls(connect(), runtime, guards, ledger)
        refuse_if_weak(sandbox._client, sandbox._info, runtime)
        sandbox.sweep()
        if ledger is not None and ledger.is_due():
            sandbox.prune()
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
            found = self._images.find(f"{REPOSITORY}:{key}")
            if found is not None:
                self._images.touch(f"{REPOSITORY}:{key}")
                return Env(key, "docker", base.python, found)
            refuse_if_guarded(spec, self._guards)
            return self._set_up(key, base, spec, tree, cancel)

    def open(self, env: Env, tree: Iterable[bytes], limits: Limits | None = None) -> CellBox:
        """A fresh box; see `ports.Sandbox.open`.

        Raises:
            OutsideError: the engine failed, or the tree does not fit.
        """
        base = self._described(env.image)
        if env.key != env.image:
            self._images.touch(f"{REPOSITORY}:{env.key}")
        asked = boxes.check_limits(limits or Limits())
        from_setup = env.key != env.image
        ca = host.ca_bundle() if asked.network else None
        plan = Plan(
            base.image,
            base.mounts,
            path=base.path,
            network=asked.network,
            runtime=self._runtime,
            extra_files=((str(ca), _CA_IN_BOX),) if ca else (),
        )
        if not self._shares_files():
            return self._opened(plan, asked, lambda box: box.lay_out(tree, from_setup=from_setup))
        with boxes.spooled(tree, asked.disk) as spool:
            if spool is None:
                return self._opened(plan, asked, lambda box: box.lay_out((), from_setup=from_setup))
            shown = replace(plan, extra_files=(*plan.extra_files, (str(spool), _TREE_IN_BOX)))
            return self._opened(shown, asked, lambda box: box.lay_out_file(_TREE_IN_BOX))

    def _opened(self, plan: Plan, limits: Limits, lay_out: Callable[[CellBox], None]) -> CellBox:
        certified = any(here == _CA_IN_BOX for _, here in plan.extra_files)
        reaching = host.network_env(_CA_IN_BOX if certified else None) if plan.network else {}
        box = CellBox(*self._cell(plan, limits), reaching)
        try:
            lay_out(box)
        except BaseException:
            box.close()
            raise
        return box

    def doctor(self) -> list[Check]:
        """Attack a box of this engine; one line for each attack."""
        from regreen.adapters.attacks import attack

        return [check(self.kept()), *attack(self)]

    def kept(self) -> list[Kept]:
        """The prepared environments."""
        return self._images.kept()

    def prune(self, rules: Retention | None = None) -> int:
        """Remove environments that nobody has used for long, or that are too many; how many went."""
        return self._images.prune(rules or Retention())

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
        wanted = version or host.own_version()
        if (slim := self._images.slim(wanted)) is not None:
            return self._base_of_image(slim, python=version)
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
        """Whether the engine sees the same files as we do: it may run outside of the container we run in."""
        return Path(self._info.get("DockerRootDir") or "/nowhere").exists()

    def _base_of_skeleton(self, version: str | None) -> _Base:
        python = choose_python(version)
        mounts = host.skeleton_mounts(python)
        root = host.skeleton_tar()
        digest = hashlib.sha256(
            root + python.identity.encode() + repr((mounts, RECIPE)).encode()
        ).hexdigest()
        tag = f"{BASE}:{digest[:40]}"
        with self._locks[tag]:
            if (found := self._images.find(tag)) is None:
                skeleton = self._images.import_root(root, digest[:40])
                labels = {"mounts": json.dumps(mounts), "python": python.version}
                self._make_base(
                    tag, Plan(skeleton, mounts, keeps=True), str(python.exe), "", labels
                )
                found = self._images.find(tag)
        self._images.touch(tag)
        return self._described(found or tag)

    def _base_of_image(self, image: str, python: str | None) -> _Base:
        identity = self._images.pulled(image)
        digest = hashlib.sha256(f"{identity} {RECIPE}".encode()).hexdigest()
        tag = f"{BASE}:{digest[:40]}"
        with self._locks[tag]:
            if (found := self._images.find(tag)) is None:
                labels = {"mounts": "[]", "python": python or ""}
                self._make_base(
                    tag,
                    Plan(identity, (), keeps=True),
                    "python3",
                    "--system-site-packages",
                    labels,
                )
                found = self._images.find(tag)
        self._images.touch(tag)
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
            self._images.keep(cell.container, tag, labels)

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
            image = self._images.keep(cell.container, f"{REPOSITORY}:{key}", labels)
            self._images.touch(f"{REPOSITORY}:{key}")
        return Env(key, "docker", base.python, image, (result.stdout + result.stderr)[-4000:])

    def _described(self, image: str) -> _Base:
        """How an image of ours is run, read back from its labels."""
        seen = self._images.inspect(image)
        if seen is None:
            msg = "the prepared environment is gone; prepare it again"
            raise OutsideError(msg)
        config = seen["Config"]
        labels = config.get("Labels") or {}
        variables = dict(item.partition("=")[::2] for item in config.get("Env") or ())
        return _Base(
            image=str(seen["Id"]),
            python=labels.get(LABELS + "python") or None,
            mounts=tuple(json.loads(labels.get(LABELS + "mounts", "[]"))),
            path=variables.get("PATH", boxes.DEFAULT_PATH),
        )

    # -- the engine -------------------------------------------------------------------------------------------

    def _cell(self, plan: Plan, wanted: Limits) -> tuple[DockerCell, Limits]:
        limits = self._fitting(wanted)
        return DockerCell.start_container(self._new_client(), plan, limits), limits

    def _fitting(self, limits: Limits) -> Limits:
        """The limits, brought within what this machine has."""
        cpus = min(limits.cpus, float(self._info.get("NCPU") or 1))
        memory = min(limits.memory, int(self._info.get("MemTotal") or limits.memory))
        return replace(limits, memory=memory, cpus=cpus)

    def _new_client(self) -> APIClient:
        """A connection for one thread: the SDK's sessions are not made to be shared."""
        return connect(self._client.api_version)
