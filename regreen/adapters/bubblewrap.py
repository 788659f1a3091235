"""The sandbox without an engine: bubblewrap, control groups, and directories for environments.

Needs root: without a control group nothing bounds the memory of a whole box, so there is no sandbox then.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tarfile
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock

from regreen.adapters import boxes, cgroup, host, scripts
from regreen.adapters.box import CellBox
from regreen.adapters.bwrap_box import OUTER_UID, BwrapCell, Plan
from regreen.adapters.disk import DiskGuard
from regreen.adapters.environments import (
    Guard,
    choose_python,
    environment_key,
    raise_if_failed,
    refuse_if_guarded,
    short_version,
    unknown_names,
)
from regreen.adapters.retention import Kept, Ledger, Retention, check, surplus
from regreen.errors import NoSandbox, OutsideError, UserError
from regreen.models import Check, Env, EnvSpec, Limits

_RESOLV = Path("/etc/resolv.conf")
_BASE = "base-"
_PROGRAMS = ("bwrap", "unshare", "setpriv", "prlimit")
# The base environment is shown at /base while a setup's own is made from it.
_COPY_BASE = "cp -a /base/. /env/ || exit 74\n"


class BwrapSandbox:
    """See `ports.Sandbox`. One object serves many threads."""

    name = "bwrap"

    def __init__(self, home: Path, guards: tuple[Guard, ...] = (unknown_names,)) -> None:
        self._home = home
        self._ledger = Ledger(home / "used")
        self._guards = guards
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)

    @classmethod
    def connect(cls, home: Path, guards: tuple[Guard, ...] = (unknown_names,)) -> BwrapSandbox:
        """The sandbox, its environments kept below `home`.

        Raises:
            NoSandbox: something it needs is missing here.
        """
        missing = [program for program in _PROGRAMS if shutil.which(program) is None]
        if missing:
            package = "bubblewrap" if missing == ["bwrap"] else "bubblewrap and util-linux"
            message = f"{', '.join(missing)} not found; install {package}"
            raise NoSandbox(message)
        if reason := cgroup.unavailable():
            message = f"bubblewrap alone cannot bound memory: {reason}; run as root, or use Docker"
            raise NoSandbox(message)
        if not host.has_skeleton():
            msg = "bubblewrap boxes need a merged /usr on this machine; use Docker"
            raise NoSandbox(msg)
        cgroup.sweep()
        sandbox = cls(home, guards)
        if sandbox._ledger.is_due():
            sandbox.prune()
        return sandbox

    def pythons(self) -> tuple[str, ...]:
        """The Python versions an environment may ask for."""
        return tuple(host.pythons())

    def prepare(self, spec: EnvSpec, tree: Iterable[bytes], cancel: Event | None = None) -> Env:
        """Make, or find again, an environment; see `ports.Sandbox.prepare`.

        Raises:
            SetupFailed: the setup failed or ran out of its time.
            UserError: no such Python, or an image was asked for.
            OutsideError: the kernel would not.
        """
        if spec.image:
            msg = "bubblewrap boxes have no images; leave `image` out, or use Docker"
            raise UserError(msg)
        python = choose_python(short_version(spec.python))
        base = self._base(python)
        self._ledger.touch(base)
        if not spec.setup:
            return Env(base, "bwrap", python.version, base)
        key = environment_key(base, spec)
        with self._locks[key], self._ledger.making(key, cancel):
            if self._is_there(key):
                self._ledger.touch(key)
                return Env(key, "bwrap", python.version, key)
            refuse_if_guarded(spec, self._guards)
            return self._set_up(key, base, spec, tree, cancel)

    def open(self, env: Env, tree: Iterable[bytes], limits: Limits | None = None) -> CellBox:
        """A fresh box; see `ports.Sandbox.open`.

        Raises:
            OutsideError: the kernel would not, or the environment is gone.
        """
        python = choose_python(env.python)
        asked = boxes.check_limits(limits or Limits())
        ca = host.ca_bundle() if asked.network else None
        reaching = host.network_env(str(ca) if ca else None) if asked.network else {}
        box = CellBox(self._held_cell(env.image, python, asked), asked, reaching)
        try:
            box.lay_out(tree, from_setup=not env.image.startswith(_BASE))
        except BaseException:
            box.close()
            raise
        return box

    def doctor(self) -> list[Check]:
        """Attack a box of this kernel; one line for each attack."""
        from regreen.adapters.attacks import attack

        return [check(self.kept()), *attack(self)]

    def sweep(self) -> int:
        """Remove the control groups of boxes that outlived their Regreen; how many there were."""
        return cgroup.sweep()

    def kept(self) -> list[Kept]:
        """The prepared environments."""
        place = self._home / "environments"
        names = [path.name for path in place.iterdir()] if place.is_dir() else []
        return [
            Kept(name, self._ledger.size(name), self._ledger.used(name, _made(place / name)))
            for name in names
        ]

    def prune(self, rules: Retention | None = None) -> int:
        """Remove environments that nobody has used for long, or that are too many; how many went."""
        removed = 0
        for one in surplus(self.kept(), rules or Retention(), time.time()):
            with self._ledger.making(one.name), self._ledger.unheld(one.name) as free:
                if free:
                    unfinished = self._unfinished(one.name)
                    unfinished.parent.mkdir(parents=True, exist_ok=True)
                    self._directory(one.name).rename(unfinished)
                    self._discard(one.name, choose_python(None))
                    self._ledger.forget(one.name)
                    removed += 1
        return removed

    def _held_cell(self, name: str, python: host.HostPython, limits: Limits) -> BwrapCell:
        """A cell that shows an environment, which stays for as long as the cell does."""
        held = self._ledger.hold(name)
        try:
            plan = self._plan_with(name, python)
            if limits.network:
                names = ((str(_RESOLV), str(_RESOLV)),) if _RESOLV.exists() else ()
                plan = replace(plan, shown=plan.shown + names, network=True)
            cell = BwrapCell.launch(plan, limits)
        except BaseException:
            os.close(held)
            raise
        cell.held = held
        return cell

    def _plan_with(self, name: str, python: host.HostPython) -> Plan:
        if not self._is_there(name):
            msg = "the prepared environment is gone; prepare it again"
            raise OutsideError(msg)
        return Plan(self._shown(python), self._directory(name), str(python.exe))

    # -- environments -----------------------------------------------------------------------------------------

    def _base(self, python: host.HostPython) -> str:
        """The plain environment of an interpreter: a venv with pip."""
        digest = hashlib.sha256(f"{python.identity} {OUTER_UID}".encode()).hexdigest()
        name = f"{_BASE}{digest[:32]}"
        if self._is_there(name):
            return name
        with self._locks[name], self._ledger.making(name):
            if not self._is_there(name):
                script, argv = scripts.VENV, (str(python.exe), "")
                with self._making(name, python, (), network=False) as box:
                    made = box.execute(
                        ["/bin/sh", "-c", script, "sh", *argv], timeout=300.0, env={}
                    )
                    if not made.passed:
                        message = f"the base environment could not be made: {made.stderr[-300:] or made.detail}"
                        raise OutsideError(message)
                self._keep(name)
        return name

    def _set_up(
        self,
        key: str,
        base: str,
        spec: EnvSpec,
        tree: Iterable[bytes],
        cancel: Event | None,
    ) -> Env:
        python = choose_python(short_version(spec.python))
        ca = host.ca_bundle()
        tar = boxes.begun(tree)
        shown = (
            (str(self._directory(base)), "/base"),
            *((str(p), str(p)) for p in (_RESOLV,) if p.exists()),
        )
        env = host.network_env(str(ca) if ca else None) | dict(spec.env)
        with (
            self._making(key, python, shown, network=True) as box,
            DiskGuard(self._home, cancel) as guard,
        ):
            done = box.execute(
                [
                    "/bin/sh",
                    "-c",
                    _COPY_BASE + scripts.SETUP,
                    "sh",
                    spec.setup or "",
                    "none" if tar is None else "tree",
                ],
                timeout=spec.timeout_s,
                env=env,
                stdin=tar,
                cancel=guard.stop,
            )
        try:
            raise_if_failed(done, overflowed=guard.overflowed)
        except BaseException:
            self._discard(key, python)
            raise
        self._keep(key)
        return Env(key, "bwrap", python.version, key, (done.stdout + done.stderr)[-4000:])

    def _making(
        self,
        name: str,
        python: host.HostPython,
        more: tuple[tuple[str, str], ...],
        *,
        network: bool,
    ) -> CellBox:
        """A box that writes the environment `name`; what was left of an earlier attempt goes first."""
        place = self._unfinished(name)
        if place.exists():
            self._discard(name, python)
        place.mkdir(parents=True, mode=0o755)
        os.chown(place, OUTER_UID, OUTER_UID)  # empty and ours: nothing foreign has touched it yet
        plan = Plan(self._shown(python) + more, place, str(python.exe), network=network, keeps=True)
        limits = boxes.SETUP_LIMITS
        return CellBox(BwrapCell.launch(plan, limits), limits)

    def _keep(self, name: str) -> None:
        """Make a finished environment findable: a rename, which looks at nothing inside."""
        self._directory(name).parent.mkdir(parents=True, exist_ok=True)
        self._unfinished(name).rename(self._directory(name))
        self._ledger.touch(name, self._measured(name))

    def _measured(self, name: str) -> int:
        """Its bytes, counted inside of a box."""
        plan = Plan(
            self._shown(python := choose_python(None)), self._directory(name), str(python.exe)
        )
        with CellBox(BwrapCell.launch(plan, boxes.SETUP_LIMITS), boxes.SETUP_LIMITS) as box:
            said = box.execute(["/usr/bin/du", "-sk", scripts.ENV], timeout=120.0, env={}).stdout
        number = said.split("\t")[0]
        return int(number) * 1024 if number.isdigit() else 0

    def _discard(self, name: str, python: host.HostPython) -> None:
        """Empty an unfinished environment from inside a box: the host never walks what foreign code wrote."""
        place = self._unfinished(name)
        plan = Plan(self._shown(python), place, str(python.exe), keeps=True)
        with CellBox(BwrapCell.launch(plan, boxes.SETUP_LIMITS), boxes.SETUP_LIMITS) as box:
            empty = "chmod -R u+rwx /env; rm -rf /env/* /env/.[!.]* /env/..?*"
            box.execute(["/bin/sh", "-c", empty], timeout=600.0, env={})
        with suppress(OSError):
            place.rename(place.with_name(f"{place.name}-{uuid.uuid4().hex[:8]}"))
        for leftover in place.parent.glob(f"{place.name}-*"):
            with suppress(OSError):
                leftover.rmdir()

    def _is_there(self, name: str) -> bool:
        return self._directory(name).is_dir()

    def _directory(self, name: str) -> Path:
        return self._home / "environments" / name

    def _unfinished(self, name: str) -> Path:
        return self._home / "unfinished" / name

    def _shown(self, python: host.HostPython) -> tuple[tuple[str, str], ...]:
        mounts = [path for path in host.skeleton_mounts(python) if path != "/usr"]
        return ((str(self._etc()), "/etc"), *((path, path) for path in mounts))

    def _etc(self) -> Path:
        """The box's /etc, written once by us."""
        content = host.skeleton_tar()
        place = self._home / "skeleton" / hashlib.sha256(content).hexdigest()[:32]
        with self._locks["skeleton"]:
            if not place.is_dir():
                fresh = place.with_name(f"{place.name}-{uuid.uuid4().hex[:8]}")
                with tarfile.open(fileobj=io.BytesIO(content)) as tar:
                    members = [member for member in tar if member.name.startswith("etc")]
                    # Set, not passed: the argument is younger than Python 3.11.0.
                    tar.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)
                    tar.extractall(fresh, members=members)  # noqa: S202 - a tar file of our own making
                with suppress(OSError):
                    fresh.rename(place)
        return place / "etc"


def _made(place: Path) -> float:
    try:
        return place.stat().st_mtime
    except OSError:
        return 0.0
