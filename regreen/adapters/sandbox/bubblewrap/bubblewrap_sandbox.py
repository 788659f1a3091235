"""The bubblewrap sandbox: limits on each box, and directories for environments."""

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

from regreen.adapters.sandbox import box_scripts, host, layout
from regreen.adapters.sandbox.box import BackendBox
from regreen.adapters.sandbox.bubblewrap import box_limiter, control_group
from regreen.adapters.sandbox.bubblewrap.bubblewrap_backend import (
    OUTER_UID,
    BwrapBackend,
    BwrapPlan,
)
from regreen.adapters.sandbox.egress_proxy import (
    PrivateAddressFilter,
    parse_allowed_hosts,
    proxy_variables,
)
from regreen.adapters.sandbox.environment_keys import (
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
    choose_environments_to_remove,
)
from regreen.domain.errors import NoSandbox, OutsideError, UserError
from regreen.domain.models import BoxLimits, DoctorCheck, EnvSpec, PreparedEnv, Retention

_BASE_PREFIX = "base-"
_POLLS_A_SECOND = int(1 / box_limiter.MAX_POLL_SECONDS)
_REQUIRED_PROGRAMS = ("bwrap", "unshare", "setpriv", "prlimit")
# The base environment is shown at /base while a setup's own is made from it.
_COPY_BASE = "cp -a /base/. /env/ || exit 74\n"


class BwrapSandbox:
    """See `ports.Sandbox`. One object serves many threads."""

    name = "bwrap"

    def __init__(
        self,
        home: Path,
        guards: tuple[SetupGuard, ...] = (refuse_unknown_names,),
        setup_hosts: str = "",
    ) -> None:
        self._home = home
        self._allowed_hosts = parse_allowed_hosts(setup_hosts)
        self._ledger = UsageLedger(home / "used")
        self._guards = guards
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)

    @classmethod
    def connect(
        cls,
        home: Path,
        guards: tuple[SetupGuard, ...] = (refuse_unknown_names,),
        setup_hosts: str = "",
    ) -> BwrapSandbox:
        """The sandbox with its environments below `home`; `setup_hosts` as for `egress_proxy.parse_allowed_hosts`.

        Raises:
            NoSandbox: a requirement is missing here.
        """
        needed = _REQUIRED_PROGRAMS if os.geteuid() == 0 else ("bwrap", "prlimit")
        missing = [program for program in needed if shutil.which(program) is None]
        if missing:
            package = "bubblewrap" if missing == ["bwrap"] else "bubblewrap and util-linux"
            message = f"{', '.join(missing)} not found; install {package}"
            raise NoSandbox(message)
        if reason := box_limiter.explain_unavailable():
            message = f"bubblewrap cannot bound memory: {reason}; run as root, or use Docker"
            raise NoSandbox(message)
        if not host.can_serve_as_skeleton():
            msg = "bubblewrap boxes need a merged /usr on this machine; use Docker"
            raise NoSandbox(msg)
        control_group.remove_stale_groups()
        sandbox = cls(home, guards, setup_hosts)
        if sandbox._ledger.claim_daily_cleanup():
            sandbox.prune()
        return sandbox

    @property
    def why_approximate(self) -> str:
        """Why the limits on memory and processes are approximate here; "" if the kernel enforces them exactly."""
        return control_group.explain_unavailable()

    def pythons(self) -> tuple[str, ...]:
        """The Python versions an environment may ask for."""
        return tuple(host.find_pythons())

    def prepare(
        self, spec: EnvSpec, tree: Iterable[bytes], cancel: Event | None = None
    ) -> PreparedEnv:
        """Make or find an environment; see `ports.Sandbox.prepare`.

        Raises:
            SetupFailed: the setup failed or timed out.
            UserError: the Python does not exist, or an image was requested.
            OutsideError: the kernel failed.
        """
        if spec.image:
            msg = "bubblewrap boxes have no images; leave `image` out, or use Docker"
            raise UserError(msg)
        python = choose_python(short_version(spec.python))
        base = self._prepare_base(python)
        self._ledger.mark_used(base)
        if not spec.setup:
            return PreparedEnv(base, "bwrap", python.version, base)
        key = environment_key(base, spec)
        with self._locks[key], self._ledger.lock_for_build(key, cancel):
            if self._has_environment(key):
                self._ledger.mark_used(key)
                return PreparedEnv(key, "bwrap", python.version, key)
            refuse_guarded_setup(spec, self._guards)
            return self._set_up(key, base, spec, tree, cancel)

    def open(
        self, env: PreparedEnv, tree: Iterable[bytes], limits: BoxLimits | None = None
    ) -> BackendBox:
        """A fresh box; see `ports.Sandbox.open`.

        Raises:
            OutsideError: the kernel failed, or the environment is gone.
        """
        python = choose_python(env.python)
        checked = layout.check_limits(limits or BoxLimits())
        reaching = self._network_variables() if checked.network else {}
        box = BackendBox(self._launch_held_backend(env.image, python, checked), checked, reaching)
        try:
            box.lay_out(tree, from_setup=not env.image.startswith(_BASE_PREFIX))
        except BaseException:
            box.close()
            raise
        return box

    def doctor(self) -> list[DoctorCheck]:
        """Attack a box of this kernel; one line for each attack."""
        from regreen.adapters.sandbox.attacks.attack import run_attacks

        return [
            self._check_limits(),
            check_environments(self.list_environments()),
            *run_attacks(self),
        ]

    def _check_limits(self) -> DoctorCheck:
        detail = "enforced by a control group: memory, processes, CPU; by the kernel: disk, open files; output, time"
        if self.why_approximate:
            detail = (
                f"approximate ({self.why_approximate}): memory, which is added up {_POLLS_A_SECOND} times a second; "
                "not limited: CPU, memory of sockets and pipes; enforced: processes, private memory of each, disk, "
                "open files, output, time; for your own code on the command line, refused by `serve`"
            )
        remedy = "use Docker or root for pull requests of others" if self.why_approximate else ""
        exact = not self.why_approximate
        return DoctorCheck("limits are exact", "sandbox", exact, False, detail, remedy)

    def sweep(self) -> int:
        """Remove the control groups of boxes whose Regreen is gone; return how many."""
        return control_group.remove_stale_groups()

    def list_environments(self) -> list[StoredEnvironment]:
        """The prepared environments."""
        place = self._home / "environments"
        names = [path.name for path in place.iterdir()] if place.is_dir() else []
        return [
            StoredEnvironment(
                name,
                self._ledger.recorded_size(name),
                self._ledger.find_last_use(name, _modified_time(place / name)),
            )
            for name in names
        ]

    def prune(self, rules: Retention | None = None) -> int:
        """Remove unused and surplus environments; return how many."""
        surplus = choose_environments_to_remove(
            self.list_environments(), rules or Retention(), time.time()
        )
        return len(self.remove(surplus))

    def remove(self, environments: Iterable[StoredEnvironment]) -> list[StoredEnvironment]:
        """Remove these; return the ones that are gone. Those that are in use stay."""
        removed = []
        for env in environments:
            with (
                self._ledger.lock_for_build(env.name),
                self._ledger.lock_if_unused(env.name) as free,
            ):
                directory = self._environment_directory(env.name)
                if free and directory.is_dir():  # another process may have removed it meanwhile
                    unfinished = self._unfinished_directory(env.name)
                    unfinished.parent.mkdir(parents=True, exist_ok=True)
                    directory.rename(unfinished)
                    self._discard_unfinished(env.name, choose_python(None))
                    self._ledger.forget_environment(env.name)
                    removed.append(env)
        return removed

    def _launch_held_backend(
        self, name: str, python: host.HostPython, limits: BoxLimits
    ) -> BwrapBackend:
        """A backend that shows an environment, which is kept while the backend exists."""
        lock = self._ledger.hold_environment(name)
        try:
            plan = self._plan_with(name, python)
            if limits.network:
                plan = replace(plan, egress=PrivateAddressFilter(self._allowed_hosts))
            cell = BwrapBackend.launch(plan, limits)
        except BaseException:
            os.close(lock)
            raise
        cell.held = lock
        return cell

    def _network_variables(self) -> dict[str, str]:
        ca = host.ca_bundle()
        return host.network_env(str(ca) if ca else None) | proxy_variables(self._allowed_hosts)

    def _plan_with(self, name: str, python: host.HostPython) -> BwrapPlan:
        if not self._has_environment(name):
            msg = "the prepared environment is gone; prepare it again"
            raise OutsideError(msg)
        return BwrapPlan(
            self._visible_paths(python), self._environment_directory(name), str(python.exe)
        )

    # -- environments -----------------------------------------------------------------------------------------

    def _prepare_base(self, python: host.HostPython) -> str:
        """The plain environment of an interpreter: a venv with pip."""
        digest = hashlib.sha256(f"{python.identity} {OUTER_UID}".encode()).hexdigest()
        name = f"{_BASE_PREFIX}{digest[:32]}"
        if self._has_environment(name):
            return name
        with self._locks[name], self._ledger.lock_for_build(name):
            if not self._has_environment(name):
                script, argv = box_scripts.VENV_SCRIPT, (str(python.exe), "")
                with self._open_build_box(name, python, (), network=False) as box:
                    result = box.execute_raw(
                        ["/bin/sh", "-c", script, "sh", *argv], timeout=300.0, env={}
                    )
                    if not result.passed:
                        message = f"the base environment could not be made: {result.stderr[-300:] or result.detail}"
                        raise OutsideError(message)
                self._publish_environment(name)
        return name

    def _set_up(
        self,
        key: str,
        base: str,
        spec: EnvSpec,
        tree: Iterable[bytes],
        cancel: Event | None,
    ) -> PreparedEnv:
        python = choose_python(short_version(spec.python))
        tar = layout.nonempty_stream(tree)
        shown = ((str(self._environment_directory(base)), "/base"),)
        env = self._network_variables() | dict(spec.env)
        with (
            self._open_build_box(key, python, shown, network=True) as box,
            DiskGuard(self._home, cancel) as guard,
        ):
            done = box.execute_raw(
                [
                    "/bin/sh",
                    "-c",
                    _COPY_BASE + box_scripts.SETUP_SCRIPT,
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
            raise_if_setup_failed(done, overflowed=guard.overflowed)
        except BaseException:
            self._discard_unfinished(key, python)
            raise
        self._publish_environment(key)
        return PreparedEnv(key, "bwrap", python.version, key, (done.stdout + done.stderr)[-4000:])

    def _open_build_box(
        self,
        name: str,
        python: host.HostPython,
        more: tuple[tuple[str, str], ...],
        *,
        network: bool,
    ) -> BackendBox:
        """A box that writes the environment `name`, after removing leftovers of an earlier attempt."""
        place = self._unfinished_directory(name)
        if place.exists():
            self._discard_unfinished(name, python)
        place.mkdir(parents=True, mode=0o755)
        if os.geteuid() == 0:  # empty and ours: nothing foreign has touched it yet
            os.chown(place, OUTER_UID, OUTER_UID)
        egress = PrivateAddressFilter(self._allowed_hosts) if network else None
        plan = BwrapPlan(
            self._visible_paths(python) + more, place, str(python.exe), egress, keeps=True
        )
        limits = layout.SETUP_LIMITS
        return BackendBox(BwrapBackend.launch(plan, limits), limits)

    def _publish_environment(self, name: str) -> None:
        """Publish a finished environment by a rename, which reads nothing inside."""
        self._environment_directory(name).parent.mkdir(parents=True, exist_ok=True)
        self._unfinished_directory(name).rename(self._environment_directory(name))
        self._ledger.mark_used(name, self._measure_environment(name))

    def _measure_environment(self, name: str) -> int:
        """Its size in bytes, counted inside a box."""
        plan = BwrapPlan(
            self._visible_paths(python := choose_python(None)),
            self._environment_directory(name),
            str(python.exe),
        )
        with BackendBox(BwrapBackend.launch(plan, layout.SETUP_LIMITS), layout.SETUP_LIMITS) as box:
            output = box.execute_raw(
                ["/usr/bin/du", "-sk", box_scripts.ENV_DIR], timeout=120.0, env={}
            ).stdout
        number = output.split("\t")[0]
        return int(number) * 1024 if number.isdigit() else 0

    def _discard_unfinished(self, name: str, python: host.HostPython) -> None:
        """Empty an unfinished environment from inside a box: the host never walks untrusted files."""
        place = self._unfinished_directory(name)
        plan = BwrapPlan(self._visible_paths(python), place, str(python.exe), keeps=True)
        with BackendBox(BwrapBackend.launch(plan, layout.SETUP_LIMITS), layout.SETUP_LIMITS) as box:
            # an environment of gigabytes is walked twice only where something is closed
            empty = "rm -rf /env/* /env/.[!.]* /env/..?*"
            empty = f"{empty} 2>/dev/null || {{ chmod -R u+rwx /env; {empty}; }}"
            box.execute_raw(["/bin/sh", "-c", empty], timeout=600.0, env={})
        with suppress(OSError):
            place.rename(place.with_name(f"{place.name}-{uuid.uuid4().hex[:8]}"))
        for leftover in place.parent.glob(f"{place.name}-*"):
            with suppress(OSError):
                leftover.rmdir()

    def _has_environment(self, name: str) -> bool:
        return self._environment_directory(name).is_dir()

    def _environment_directory(self, name: str) -> Path:
        return self._home / "environments" / name

    def _unfinished_directory(self, name: str) -> Path:
        return self._home / "unfinished" / name

    def _visible_paths(self, python: host.HostPython) -> tuple[tuple[str, str], ...]:
        mounts = [path for path in host.skeleton_mounts(python) if path != "/usr"]
        return ((str(self._etc_directory()), "/etc"), *((path, path) for path in mounts))

    def _etc_directory(self) -> Path:
        """The box's /etc, written once."""
        content = host.make_skeleton_tar()
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


def _modified_time(place: Path) -> float:
    try:
        return place.stat().st_mtime
    except OSError:
        return 0.0
