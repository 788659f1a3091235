"""The sandbox for untrusted code: chosen at first use, attacked, and used only if it holds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol, runtime_checkable

from regreen import __version__
from regreen.domain.errors import NoSandbox, OutsideError, UserError
from regreen.domain.models import Retention
from regreen.domain.ports import Clock, Sandbox

_RETRY_INTERVAL = timedelta(minutes=10)
_PROOF_VALIDITY = timedelta(minutes=30)


@runtime_checkable
class SweepableSandbox(Protocol):
    """A sandbox that can remove what killed processes left behind."""

    def sweep(self) -> int:
        """Remove boxes without an owner; return how many."""
        ...


@runtime_checkable
class PrunableSandbox(Protocol):
    """A sandbox that keeps prepared environments, and can remove unused ones."""

    def prune(self, rules: Retention | None = None) -> int:
        """Remove expired environments; return how many."""
        ...


class SandboxProvider:
    """The one sandbox of a process. A backend that lets one attack through is rejected.

    Args:
        attack: attacks it; "" when it holds, else the first attack that got through.
        clock: the time; a machine that failed is checked again ten minutes later.
        proof: a file that records that the sandbox held, so that a restart shortly afterwards does not repeat the
            attacks; None: every process attacks.
        retention: which prepared environments are kept.
    """

    def __init__(
        self,
        choose: Callable[[], Sandbox],
        attack: Callable[[Sandbox], str],
        clock: Clock,
        proof: Path | None = None,
        retention: Retention | None = None,
    ) -> None:
        self._choose = choose
        self._attack = attack
        self._clock = clock
        self._proof = proof
        self._retention = retention
        self._lock = threading.Lock()
        self._held: Sandbox | None = None
        self._missing = ""
        self._public = ""
        self._looked: datetime | None = None

    def with_tracing(self, watch: Callable[[Sandbox], Sandbox]) -> SandboxProvider:
        """The same sandbox wrapped by an observer of its use."""
        return _TracedSandboxProvider(self, watch)

    def __call__(self) -> Sandbox:
        """The sandbox.

        Raises:
            NoSandbox: none works here, or it does not hold; the text is fit for GitHub, and names no attack.
            OutsideError: the engine does not answer at the moment.
        """
        with self._lock:
            if self._held is not None:
                return self._held
            now = self._clock.now()
            if self._looked is None or now - self._looked >= _RETRY_INTERVAL:
                self._choose_sandbox()
                self._looked = now
            if self._held is None:
                raise NoSandbox(self._public)
            return self._held

    def _choose_sandbox(self) -> None:
        try:
            sandbox = self._choose()
        except UserError as error:  # no sandbox here, or an invalid setting
            self._missing = self._public = str(error)
            return
        if self._was_proven_recently(sandbox):
            self._held = sandbox
            return
        through = self._attack(sandbox)
        if through:
            self._missing = (
                f"the sandbox '{sandbox.name}' does not hold ({through}), so no foreign code is run; "
                "see `regreen doctor`"
            )
            # whoever can read a comment must not learn what the attack read
            self._public = (
                "the sandbox of Regreen's machine does not hold, so no foreign code is run; "
                "the dashboard tells its operator why"
            )
        else:
            self._held = sandbox
            self._write_proof(sandbox)

    def _was_proven_recently(self, sandbox: Sandbox) -> bool:
        if self._proof is None:
            return False
        try:
            subject, _, at = self._proof.read_text().strip().rpartition(" ")
            age = self._clock.now() - datetime.fromisoformat(at)
        except (OSError, ValueError):
            return False
        return subject == _proof_subject(sandbox) and timedelta() <= age < _PROOF_VALIDITY

    def _write_proof(self, sandbox: Sandbox) -> None:
        if self._proof is None:
            return
        self._proof.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._proof.with_suffix(".new")
        fresh.write_text(f"{_proof_subject(sandbox)} {self._clock.now().isoformat()}\n")
        fresh.replace(self._proof)

    def describe_missing(self) -> str:
        """Why untrusted code cannot run here, with the attack that succeeded, for the operator; "" if it can."""
        try:
            self()
        except NoSandbox:
            return " ".join(self._missing.split())
        except OutsideError as error:
            return " ".join(str(error).split())
        return ""

    def remove_leftovers(self) -> int:
        """Remove what killed processes left and unused environments; return the number of boxes."""
        try:
            sandbox = self()
        except NoSandbox:
            return 0
        if isinstance(sandbox, PrunableSandbox):
            sandbox.prune(self._retention)
        return sandbox.sweep() if isinstance(sandbox, SweepableSandbox) else 0


class _TracedSandboxProvider(SandboxProvider):
    """A sandbox provider whose sandbox is observed; it shares the knowledge of the original."""

    def __init__(self, inner: SandboxProvider, watch: Callable[[Sandbox], Sandbox]) -> None:
        self._inner = inner
        self._watch = watch

    def __call__(self) -> Sandbox:
        """See `SandboxProvider`."""
        return self._watch(self._inner())

    def describe_missing(self) -> str:
        """See `SandboxProvider`."""
        return self._inner.describe_missing()

    def remove_leftovers(self) -> int:
        """See `SandboxProvider`."""
        return self._inner.remove_leftovers()


def _proof_subject(sandbox: Sandbox) -> str:
    """The subject of a proof: this backend, this version, this machine since its boot."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = "unknown"
    return f"{sandbox.name} {__version__} {boot}"
