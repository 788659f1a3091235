"""How probable each cause of one test's failure is, from its runs on head and base with unknown failure rates (ADR 19)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Cause = Literal["change", "main", "flaky", "gone"]
Place = Literal["head", "base"]

_SURE = 1 - 1e-6  # no single run may rule a cause out
_RATES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_NOISE = (0.02, 0.05, 0.1, 0.2)
_FLAKY_SKEW = 1.5  # tests that fail mostly are rarely kept
_BLAMED_AT: dict[Cause, float] = {"change": 0.995, "main": 0.98, "flaky": 0.99, "gone": 2.0}
_TOUCHING_FACTOR = 1.5
_DOCUMENTS_FACTOR = 0.05
_MANY_TESTS = 5
_MANY_FACTOR = 0.25


@dataclass(frozen=True, slots=True)
class CauseHypothesis:
    """One cause with the failure rates that it implies."""

    cause: Cause
    on_head: float
    on_base: float
    weight: float


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known before the runs: it moves the prior.

    `touches`: the failure's traceback goes through a file of the change, or the test names one. `documents_only`: the change has nothing
    else. `together`: so many tests fail. `is_new`: the base does not have the test.
    """

    touches: bool = False
    documents_only: bool = False
    together: int = 1
    is_new: bool = False


@dataclass
class CausePosterior:
    """The probability of each cause of one test's failure; `failed` and `passed` count runs by place."""

    known: Circumstances = field(default_factory=Circumstances)
    failed: dict[Place, int] = field(default_factory=lambda: {"head": 0, "base": 0})
    passed: dict[Place, int] = field(default_factory=lambda: {"head": 0, "base": 0})

    def observe_outcome(self, place: Place, *, failed: bool) -> None:
        """Count one run."""
        counts = self.failed if failed else self.passed
        counts[place] += 1

    def probabilities(self) -> dict[Cause, float]:
        """The probability of each cause, given the runs so far."""
        masses: dict[Cause, float] = {"change": 0.0, "main": 0.0, "flaky": 0.0, "gone": 0.0}
        for one in make_hypotheses(self.known):
            masses[one.cause] += one.weight * self._likelihood(one)
        whole = sum(masses.values())
        return {cause: mass / whole for cause, mass in masses.items()}

    def find_cause(self) -> Cause | None:
        """The cause that is probable enough to be said; None while none is, or while nothing failed here."""
        if not any(self.failed.values()):
            return None
        cause, probability = max(self.probabilities().items(), key=lambda item: item[1])
        return cause if probability >= _BLAMED_AT[cause] else None

    def estimate_rate(self) -> tuple[float, float, float]:
        """The failure rate over all places: mean, and a central interval of 90 % (uniform prior)."""
        failed, passed = sum(self.failed.values()), sum(self.passed.values())
        grid = [(at + 0.5) / 1000 for at in range(1000)]
        masses = [rate**failed * (1 - rate) ** passed for rate in grid]
        whole, running = sum(masses), 0.0
        low, high = 0.0, 1.0
        for rate, mass in zip(grid, masses, strict=True):
            before, running = running, running + mass / whole
            low = rate if before < 0.05 <= running else low
            high = rate if before < 0.95 <= running else high
        return (failed + 1) / (failed + passed + 2), low, high

    def _likelihood(self, one: CauseHypothesis) -> float:
        value = 1.0
        for place, rate in (("head", one.on_head), ("base", one.on_base)):
            value *= rate ** self.failed[place] * (1 - rate) ** self.passed[place]  # type: ignore[index]
        return value


def make_hypotheses(known: Circumstances) -> Sequence[CauseHypothesis]:
    """The prior, for a test that was seen red once: which rates each cause implies, and how probable they are."""
    change = 0.42 * (_TOUCHING_FACTOR if known.touches else 1.0) * (2.0 if known.is_new else 1.0)
    change *= _DOCUMENTS_FACTOR if known.documents_only else 1.0
    flaky = _MANY_FACTOR if known.together >= _MANY_TESTS else 1.0
    skew = [(1 - rate) ** _FLAKY_SKEW for rate in _RATES]
    shares = [(rate, share / sum(skew)) for rate, share in zip(_RATES, skew, strict=True)]
    return (
        CauseHypothesis("change", _SURE, 1 - _SURE, 0.85 * change),
        *(CauseHypothesis("change", _SURE, rate, 0.15 * change / len(_NOISE)) for rate in _NOISE),
        CauseHypothesis("main", _SURE, _SURE, 0.0 if known.is_new else 0.22),
        *(CauseHypothesis("flaky", rate, rate, 0.30 * flaky * share) for rate, share in shares),
        *(
            CauseHypothesis("flaky", rate, 1 - _SURE, 0.04 * flaky * share)
            for rate, share in shares
        ),
        CauseHypothesis("gone", 1 - _SURE, 1 - _SURE, 0.06),
    )
