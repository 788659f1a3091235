"""The remote sandbox: virtual machines of E2B, each made from a snapshot of an environment.

https://e2b.dev/docs describes the service. Commands run as a user without rights in the machine; the operator's key
is known to this process and to the service's control API only.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shlex
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from secrets import token_hex
from threading import Event, Lock, Thread

from connectrpc.errors import ConnectError
from e2b import (
    AuthenticationException,
    CommandExitException,
    CommandHandle,
    SandboxException,
    SandboxNetworkOpts,
    ServiceBusyException,
)
from e2b import Sandbox as Machine
from httpx import HTTPError

from regreen.adapters.sandbox import box_scripts, layout
from regreen.adapters.sandbox.backend import BackendGoneError
from regreen.adapters.sandbox.box import BackendBox
from regreen.adapters.sandbox.egress_proxy import PRIVATE_NETWORKS, parse_allowed_hosts
from regreen.adapters.sandbox.environment_keys import (
    RECIPE_VERSION,
    SetupGuard,
    environment_key,
    raise_if_setup_failed,
    refuse_guarded_setup,
    refuse_unknown_names,
    short_version,
)
from regreen.adapters.sandbox.process_watch import OutputDrain, Stream
from regreen.adapters.sandbox.retention import (
    StoredEnvironment,
    UsageLedger,
    choose_environments_to_remove,
)
from regreen.domain.errors import NoSandbox, OutsideError, UserError
from regreen.domain.models import BoxLimits, DoctorCheck, EnvSpec, PreparedEnv, Retention, RunResult

# The service kills a machine this long after the last renewal: what a killed Regreen leaves behind costs no more.
LEASE_S = 900
_USER = "regreen"
_MAX_COMMAND_BYTES = 120_000  # the kernel takes 128 KiB in one argument
_MAX_END_CHARS = 32  # of the word on a command's end
_INPUT_BYTES = 512 * 1024
# Machines have IPv4 only: the service's own "no internet" denies 0.0.0.0/0. It refuses other blocks that begin there
# (https://github.com/e2b-dev/infra/pull/2150).
_DENIED_BLOCKS = [
    str(block) for block in PRIVATE_NETWORKS if not block.network_address.is_unspecified
]
_MAKE_PLACES = f"""
set -e
id {_USER} >/dev/null 2>&1 || useradd --create-home --home-dir {box_scripts.HOME_DIR} --shell /bin/sh {_USER}
mkdir -p {box_scripts.WORK_DIR} {box_scripts.ENV_DIR} {box_scripts.HOME_DIR}
chown {_USER} {box_scripts.WORK_DIR} {box_scripts.ENV_DIR} {box_scripts.HOME_DIR}
"""
_LIVE_CHECK = """
[ "$(id -u)" != 0 ] || echo "commands run as root"
if sudo -n true 2>/dev/null; then echo "commands may use sudo"; fi
python3 -c 'import socket; socket.create_connection(("1.1.1.1", 443), 5)' 2>/dev/null && echo "a box reaches the network"
env | grep E2B_
true
"""
# A snapshot holds an environment and nothing else: no process, and nothing that the setup left elsewhere.
_EMPTY = f"find {box_scripts.WORK_DIR} {box_scripts.HOME_DIR} /tmp /dev/shm -mindepth 1 -user {_USER} -delete"
# Runs a command and says at the end of both streams how it ended: the service itself would wait for every process that
# holds a stream, and does not tell who was killed for want of memory. A command that forges this deceives its own box.
_RUN = r"""
mark=$1; shift; exec 3>&2 2>/dev/null
count() { while read -r name number; do [ "$name" = oom_kill ] && echo "$number"; done < /proc/vmstat; }
before=$(count); ("$@" 2>&3 3>&-); code=$?
[ "$(count)" = "$before" ] && ooms=0 || ooms=1
printf '%s%s %s\036' "$mark" "$code" "$ooms"; printf '%s%s %s\036' "$mark" "$code" "$ooms" >&3
"""


# A dropped stream is a `ConnectError`, an answer that is no JSON a `ValueError`.
_ERRORS = (
    SandboxException,
    AuthenticationException,
    ServiceBusyException,
    ConnectError,
    HTTPError,
    OSError,
    ValueError,
)


@contextmanager
def _asking_service(what: str) -> Iterator[None]:
    """Turn the service's failures into `OutsideError`; `what` could not be done."""
    try:
        yield
    except Exception as error:
        # The SDK raises a bare one for a command whose stream ends without its end.
        if not isinstance(error, _ERRORS) and type(error) is not Exception:
            raise
        reason = error.stderr if isinstance(error, CommandExitException) else str(error)
        message = f"{what}: {str(reason)[:300]}"
        raise OutsideError(message) from error


class E2BBackend:
    """See `backend.Backend`: one machine, whose lease is renewed until `destroy`."""

    path = layout.DEFAULT_PATH
    quick = False

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.ooms = 0
        self._lock = Lock()
        self._ended = Event()
        Thread(target=self._renew_lease, daemon=True, name="regreen-lease").start()

    @classmethod
    def create(cls, template: str, *, network: bool) -> E2BBackend:
        """Start a machine from a template or snapshot.

        Raises:
            OutsideError: the service failed or refused.
        """
        rules = SandboxNetworkOpts(allow_public_traffic=False)
        if network:
            rules["deny_out"] = _DENIED_BLOCKS
        with _asking_service("the remote sandbox could not be started"):
            machine = Machine.create(
                template,
                timeout=LEASE_S,
                metadata={"made_by": "regreen"},
                allow_internet_access=network,
                network=rules,
                lifecycle={"on_timeout": "kill"},
            )
        return cls(machine)

    def start_process(self, argv: Sequence[str], env: Mapping[str, str], stdin: bool) -> E2BProcess:
        """Start a process; see `backend.Backend.start_process`.

        Raises:
            UserError: the command is too long for the service, or no UTF-8 text.
        """
        mark = f"\x1e{token_hex(16)} "
        variables = [f"{name}={value}" for name, value in env.items()]
        # -i: the service adds variables of its own.
        command = shlex.join(["env", "-i", *variables, "/bin/sh", "-c", _RUN, "sh", mark, *argv])
        try:
            length = len(command.encode())
        except UnicodeEncodeError as error:
            raise UserError("the remote sandbox takes commands of UTF-8 text only") from error
        if length > _MAX_COMMAND_BYTES:
            message = f"the remote sandbox takes no command of over {_MAX_COMMAND_BYTES} bytes"
            raise UserError(message)
        try:
            handle = self.machine.commands.run(
                f"exec {command}",
                background=True,
                user=_USER,
                stdin=stdin,
                timeout=0,
                retain_output=False,
            )
        except _ERRORS as error:
            raise BackendGoneError(str(error)[:300]) from error
        return E2BProcess(self, handle, mark)

    def run_as_root(self, script: str) -> None:
        """Run a script of ours.

        Raises:
            OutsideError: it failed.
        """
        with _asking_service("the remote sandbox could not be prepared"):
            self.machine.commands.run(script, user="root", timeout=layout.HELPER_TIMEOUT_S)

    def take_snapshot(self, name: str) -> str:
        """Keep the environment, without processes and leftovers; return the snapshot's id.

        Raises:
            OutsideError: the service failed.
        """
        with _asking_service("the environment could not be kept"):
            with suppress(CommandExitException):
                self.machine.commands.run("kill -9 -1", user=_USER)
            self.run_as_root(_EMPTY)
            return self.machine.create_snapshot(name=name).snapshot_id

    def oom_kills(self) -> int:
        """How many of its commands ended badly after the kernel had killed for memory."""
        return self.ooms

    def died_of_memory(self) -> bool:
        """Never: the kernel of the machine kills processes."""
        return False

    def destroy(self) -> None:
        """Kill the machine. If the service cannot be reached, the lease ends it."""
        with self._lock:
            if self._ended.is_set():
                return
            self._ended.set()
        with suppress(*_ERRORS):
            self.machine.kill(request_timeout=30)

    def _renew_lease(self) -> None:
        while not self._ended.wait(LEASE_S / 3):
            with suppress(*_ERRORS):
                self.machine.set_timeout(LEASE_S)


class E2BProcess:
    """See `backend.BackendProcess`: a stream of events, in which our script tells the end."""

    def __init__(self, cell: E2BBackend, handle: CommandHandle[None], mark: str) -> None:
        self._cell = cell
        self._handle = handle
        self._mark = mark
        self._code: int | None = None
        self._gone = False

    def output_chunks(self) -> Iterator[tuple[Stream, bytes]]:
        """Its output until the script's word on its end stood in both streams; text that is no UTF-8 is replaced."""
        held: dict[Stream, str] = {1: "", 2: ""}
        ended: dict[Stream, str] = {}
        try:
            for out, err, _ in self._handle:
                stream: Stream = 1 if out is not None else 2
                if stream in ended:
                    continue
                text, found, end = (held[stream] + (out or err or "")).partition(self._mark)
                if found and ("\x1e" in end or len(end) > _MAX_END_CHARS):
                    ended[stream] = end
                kept = len(text) if found else _find_beginning(text, self._mark)
                held[stream] = text[kept:] + found + end
                if kept:
                    yield stream, text[:kept].encode("utf-8", "replace")
                if len(ended) == 2:
                    break
            else:
                if self._was_told_end():
                    self._code = 137  # our script was killed too
        except _ERRORS:
            pass
        finally:
            self._gone = not ended and self._code is None
        if ended:
            self._take_end(next(iter(ended.values())))
        else:
            yield from ((stream, text.encode("utf-8", "replace")) for stream, text in held.items())
        with suppress(*_ERRORS):
            self._handle.disconnect()

    def feed_input(self, chunks: Iterable[bytes]) -> None:
        """Send standard input, then its end."""
        for chunk in chunks:
            for begin in range(0, len(chunk), _INPUT_BYTES):
                try:
                    self._handle.send_stdin(chunk[begin : begin + _INPUT_BYTES], request_timeout=0)
                except _ERRORS:
                    return
        with suppress(*_ERRORS):
            self._handle.close_stdin()

    def exit_code(self) -> int | None:
        """None while it runs; see `backend.BackendProcess.exit_code`."""
        if self._code is None and self._gone:
            raise BackendGoneError("the remote sandbox ended, or cannot be reached")
        return self._code

    def _was_told_end(self) -> bool:
        """Whether the stream, read to its end, told of the process's end, and did not only break off."""
        try:
            with _asking_service("the remote command broke off"):
                self._handle.wait()
        except OutsideError as error:
            return isinstance(error.__cause__, CommandExitException)
        return True

    def _take_end(self, end: str) -> None:
        code, _, ooms = end.partition("\x1e")[0].partition(" ")
        if ooms == "1" and code != "0":
            self._cell.ooms += 1
        self._code = int(code) & 0xFF if code.isdecimal() else 137


def _find_beginning(text: str, mark: str) -> int:
    """Where the mark may have begun at the text's end; its length where it has not."""
    begin = text.rfind(mark[0], -len(mark))
    return begin if begin >= 0 and mark.startswith(text[begin:]) else len(text)


class E2BBox(BackendBox):
    """See `ports.Box`. A box is made anew by a fresh machine."""

    def __init__(self, start: Callable[[], E2BBackend], limits: BoxLimits) -> None:
        super().__init__(start(), limits)
        self._start_machine = start

    def reset_and_run(
        self,
        tree: Iterable[bytes],
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        cancel: Event | None = None,
    ) -> RunResult:
        """Run a command in a fresh machine of the same environment; see `ports.Box.reset_and_run`.

        Raises:
            Cancelled: an earlier command of this box was cancelled.
            OutsideError: this box is gone, or could not be made new.
        """
        layout.check_command(argv, env or {})
        self._refuse_if_dead()
        self.cell.destroy()
        self.cell, self._ooms = self._start_machine(), 0
        if self._dead:  # closed by another thread meanwhile
            self.cell.destroy()
        self.lay_out(tree, from_setup=True)
        return self.run(argv, timeout=timeout, env=env, cancel=cancel)

    def read(self, path: str, limit: int = 1024 * 1024) -> bytes | None:
        """The first bytes of a regular file in the box; see `ports.Box.read`."""
        self._refuse_if_dead()
        if not layout.can_be_read(path, limit):
            return None
        # The service hands output on as text.
        encode = ["/bin/bash", "-o", "pipefail", "-c", '"$@" | base64 -w 0', "sh"]
        tap = OutputDrain(2 * limit + 64, 2 * limit + 65536)
        done = self.execute_raw(
            [*encode, *layout.read_command(path, limit)],
            timeout=layout.HELPER_TIMEOUT_S,
            env={},
            tap=tap,
        )
        if not done.passed:
            return None
        with suppress(ValueError):
            return base64.b64decode(tap.out.to_bytes())[:limit]
        return None


class E2BSandbox:
    """See `ports.Sandbox`. One object serves many threads."""

    name = "e2b"
    why_approximate = "memory, CPU and disk of a remote box are those of its template"

    def __init__(
        self,
        template: str,
        ledger: UsageLedger,
        guards: tuple[SetupGuard, ...] = (refuse_unknown_names,),
    ) -> None:
        self._template = template
        self._ledger = ledger
        self._guards = guards
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)
        self._pythons: tuple[str, ...] = ()

    @classmethod
    def connect(cls, template: str, ledger: UsageLedger, setup_hosts: str = "") -> E2BSandbox:
        """The service that E2B_API_KEY opens; `ledger` records the use of environments.

        Raises:
            NoSandbox: a requirement is missing here.
        """
        if not os.environ.get("E2B_API_KEY"):
            raise NoSandbox("E2B_API_KEY is not set; set it in the environment")
        if parse_allowed_hosts(setup_hosts):
            message = "a remote sandbox cannot reach private hosts; leave REGREEN_SETUP_HOSTS out, or use Docker"
            raise NoSandbox(message)
        sandbox = cls(template, ledger)
        if ledger.claim_daily_cleanup():
            with suppress(OutsideError):  # nothing depends on it
                sandbox.prune()
        return sandbox

    def pythons(self) -> tuple[str, ...]:
        """The Python versions of the template."""
        with self._locks["pythons"]:
            if not self._pythons:
                with self.open(self.prepare(EnvSpec(), ()), ()) as box:
                    script = 'for minor in 9 10 11 12 13 14; do command -v "python3.$minor" >/dev/null && echo "3.$minor"; done; true'
                    found = box.run(["sh", "-c", script], timeout=60).stdout.split()
                self._pythons = tuple(found)
        return self._pythons

    def prepare(
        self, spec: EnvSpec, tree: Iterable[bytes], cancel: Event | None = None
    ) -> PreparedEnv:
        """Make or find an environment; see `ports.Sandbox.prepare`.

        Raises:
            SetupFailed: the setup failed or timed out.
            UserError: the Python does not exist, or an image was requested.
            OutsideError: the service failed.
        """
        if spec.image:
            raise UserError(
                "a remote box has no images; leave `image` out, or name a template in REGREEN_SANDBOX_RUNTIME"
            )
        python = short_version(spec.python)
        digest = hashlib.sha256(f"{self._template} {python} {RECIPE_VERSION}".encode()).hexdigest()
        base_key = f"base-{digest[:32]}"
        base = self._find_or_build(base_key, lambda: self._build_base(base_key, python))
        if not spec.setup:
            return PreparedEnv(base_key, "e2b", python, base)
        key, output = environment_key(base_key, spec), ""

        def build() -> str:
            nonlocal output
            refuse_guarded_setup(spec, self._guards)
            snapshot, output = self._set_up(key, base, spec, tree, cancel)
            return snapshot

        return PreparedEnv(key, "e2b", python, self._find_or_build(key, build), output)

    def open(
        self, env: PreparedEnv, tree: Iterable[bytes], limits: BoxLimits | None = None
    ) -> BackendBox:
        """A fresh box; see `ports.Sandbox.open`. The limits on memory, CPU, processes and disk are not applied.

        Raises:
            OutsideError: the service failed.
        """
        checked = layout.check_limits(limits or BoxLimits())
        self._mark_if_own(env.key)
        box = E2BBox(lambda: E2BBackend.create(env.image, network=checked.network), checked)
        try:
            box.lay_out(tree, from_setup=True)
        except BaseException:
            box.close()
            raise
        return box

    def doctor(self) -> list[DoctorCheck]:
        """What is enforced and what is not, and what a live box is allowed."""
        detail = (
            "enforced: output, time, a lease of 15 minutes; not enforced: the limits on memory, CPU, processes and disk "
            "(they are the template's), an own list of system calls; for your own code on the command line, refused by "
            "`serve`"
        )
        with self.open(self.prepare(EnvSpec(), ()), ()) as box:
            found = box.run(["sh", "-c", _LIVE_CHECK], timeout=60)
        broken = found.stdout or found.detail
        return [
            DoctorCheck(
                "limits are exact",
                "sandbox",
                False,
                False,
                detail,
                "use Docker for pull requests of others",
            ),
            DoctorCheck(
                "the service was reached in our tests",
                "sandbox",
                False,
                False,
                "no: the contract was tried against a local stand-in",
                "treat what it isolates as the service's promise",
            ),
            DoctorCheck(
                "a box has no network and no rights",
                "sandbox",
                not broken,
                True,
                broken or "held",
                "use Docker",
            ),
        ]

    def prune(self, rules: Retention | None = None) -> int:
        """Remove unused and surplus snapshots that this machine made; return how many.

        Raises:
            OutsideError: the service failed.
        """
        with _asking_service("the remote environments could not be pruned"):
            known = {
                key: snapshot for key, snapshot in _list_snapshots() if self._ledger.knows(key)
            }
            stored = [
                StoredEnvironment(key, 0, self._ledger.find_last_use(key, 0.0)) for key in known
            ]
            surplus = choose_environments_to_remove(stored, rules or Retention(), time.time())
            for env in surplus:
                Machine.delete_snapshot(known[env.name])
                self._ledger.forget_environment(env.name)
        return len(surplus)

    # -- environments -----------------------------------------------------------------------------------------

    def _find_or_build(self, key: str, build: Callable[[], str]) -> str:
        with self._locks[key]:
            with _asking_service("the remote sandbox cannot be asked"):
                found = dict(_list_snapshots(key)).get(key)
            if found:
                self._mark_if_own(key)
                return found
            snapshot = build()
            self._ledger.mark_used(key)
        return snapshot

    def _mark_if_own(self, key: str) -> None:
        """Record the use of a snapshot that was made here; others of the account have their own Regreen."""
        if self._ledger.knows(key):
            self._ledger.mark_used(key)

    def _build_base(self, key: str, python: str | None) -> str:
        """The plain environment of an interpreter: a venv with pip."""
        cell = E2BBackend.create(self._template, network=False)
        with BackendBox(cell, layout.SETUP_LIMITS) as box:
            cell.run_as_root(_MAKE_PLACES)
            program = "python3" + (python or "3")[1:]
            find = ["/bin/sh", "-c", 'command -v "$1"', "sh", program]
            if python and not box.execute_raw(find, timeout=60, env={}).passed:
                message = f"the template {self._template} has no Python {python}; name another in REGREEN_SANDBOX_RUNTIME"
                raise UserError(message)
            make = ["/bin/sh", "-c", box_scripts.VENV_SCRIPT, "sh", program, ""]
            made = box.execute_raw(make, timeout=300.0, env={})
            if not made.passed:
                message = (
                    f"the base environment could not be made: {made.stderr[-300:] or made.detail}"
                )
                raise OutsideError(message)
            return cell.take_snapshot(f"regreen-{key}")

    def _set_up(
        self, key: str, base: str, spec: EnvSpec, tree: Iterable[bytes], cancel: Event | None
    ) -> tuple[str, str]:
        """Run the setup; return the snapshot of what it left, and what it printed."""
        tar = layout.nonempty_stream(tree)
        cell = E2BBackend.create(base, network=True)
        with BackendBox(cell, layout.SETUP_LIMITS) as box:
            kind = "none" if tar is None else "tree"
            argv = ["/bin/sh", "-c", box_scripts.SETUP_SCRIPT, "sh", spec.setup or "", kind]
            # Of this machine's package indexes and certificates nothing is told: they may hold credentials.
            done = box.execute_raw(
                argv, timeout=spec.timeout_s, env=dict(spec.env), stdin=tar, cancel=cancel
            )
            raise_if_setup_failed(done)
            return cell.take_snapshot(f"regreen-{key}"), (done.stdout + done.stderr)[-4000:]


def _list_snapshots(key: str = "") -> Iterator[tuple[str, str]]:
    """Keys and ids of our snapshots: all, or those of one key."""
    pages = Machine.list_snapshots(name=f"regreen-{key}") if key else Machine.list_snapshots()
    while pages.has_next:
        for snapshot in pages.next_items():
            for name in snapshot.names:
                short = name.rpartition("/")[2].partition(":")[0]
                if short.startswith("regreen-"):
                    yield short.removeprefix("regreen-"), snapshot.snapshot_id
