"""The sandbox that foreign code may be let into: chosen when it is first needed, attacked, and only then trusted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol, runtime_checkable

from regreen import __version__
from regreen.adapters.retention import Retention
from regreen.errors import NoSandbox, OutsideError
from regreen.ports import Clock, Sandbox

_LOOK_AGAIN = timedelta(minutes=10)
_HOLDS_FOR = timedelta(minutes=30)


@runtime_checkable
class Sweeps(Protocol):
    """A sandbox that can remove what a killed process left behind."""

    def sweep(self) -> int:
        """Remove boxes that nobody owns any more; how many there were."""
        ...


@runtime_checkable
class Prunes(Protocol):
    """A sandbox that keeps what it prepared, and can remove what nobody uses."""

    def prune(self, rules: Retention | None = None) -> int:
        """Remove environments that have to go; how many went."""
        ...


class Sandboxes:
    """One sandbox for the whole process. A backend that lets one attack through is none.

    Args:
        choose: makes the sandbox; raises NoSandbox where there is none.
        attack: attacks it; "" when it holds, else the first attack that got through.
        clock: the time; a machine that failed is looked at again ten minutes later.
        proof: a file that says that the sandbox held, so that a start soon after another one does not attack it
            again; None: every process attacks.
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
        self._looked: datetime | None = None

    def watched(self, watch: Callable[[Sandbox], Sandbox]) -> Sandboxes:
        """The same sandbox, with somebody who looks on when it is used."""
        return _Watched(self, watch)

    def __call__(self) -> Sandbox:
        """The sandbox.

        Raises:
            NoSandbox: none works here, or it does not hold; the text says which attack got through.
            OutsideError: the engine does not answer just now.
        """
        with self._lock:
            if self._held is not None:
                return self._held
            now = self._clock.now()
            if self._looked is None or now - self._looked >= _LOOK_AGAIN:
                self._look()
                self._looked = now
            if self._held is None:
                raise NoSandbox(self._missing)
            return self._held

    def _look(self) -> None:
        try:
            found = self._choose()
        except NoSandbox as error:
            self._missing = str(error)
            return
        if self._held_lately(found):
            self._held = found
            return
        through = self._attack(found)
        if through:
            self._missing = (
                f"the sandbox '{found.name}' does not hold ({through}), so no foreign code is run; "
                "see `regreen doctor`"
            )
        else:
            self._held = found
            self._write_proof(found)

    def _held_lately(self, found: Sandbox) -> bool:
        if self._proof is None:
            return False
        try:
            subject, _, at = self._proof.read_text().strip().rpartition(" ")
            age = self._clock.now() - datetime.fromisoformat(at)
        except (OSError, ValueError):
            return False
        return subject == _subject(found) and timedelta() <= age < _HOLDS_FOR

    def _write_proof(self, found: Sandbox) -> None:
        if self._proof is None:
            return
        self._proof.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._proof.with_suffix(".new")
        fresh.write_text(f"{_subject(found)} {self._clock.now().isoformat()}\n")
        fresh.replace(self._proof)

    def missing(self) -> str:
        """Why no foreign code is run here; "" where it is."""
        try:
            self()
        except (NoSandbox, OutsideError) as error:
            return " ".join(str(error).split())
        return ""

    def sweep(self) -> int:
        """Remove what killed processes left behind, and environments that nobody uses; how many boxes that were."""
        try:
            sandbox = self()
        except NoSandbox:
            return 0
        if isinstance(sandbox, Prunes):
            sandbox.prune(self._retention)
        return sandbox.sweep() if isinstance(sandbox, Sweeps) else 0


class _Watched(Sandboxes):
    """Sandboxes whose use somebody looks on at; what is known of them is known once."""

    def __init__(self, inner: Sandboxes, watch: Callable[[Sandbox], Sandbox]) -> None:
        self._inner = inner
        self._watch = watch

    def __call__(self) -> Sandbox:
        """See `Sandboxes`."""
        return self._watch(self._inner())

    def missing(self) -> str:
        """See `Sandboxes`."""
        return self._inner.missing()

    def sweep(self) -> int:
        """See `Sandboxes`."""
        return self._inner.sweep()


def _subject(found: Sandbox) -> str:
    """What was proven: this backend, by this version, on this machine since it was switched on."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = "unknown"
    return f"{found.name} {__version__} {boot}"
