"""How probable each cause of one test's failure is, from its runs on head and base with unknown failure rates (ADR 19)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Cause = Literal["change", "main", "world", "flaky", "gone"]
Place = Literal["head", "base", "head_old_versions"]
Link = Literal["line", "statement", "test", "file", "none"]
"""How a failure is linked to the change: its traceback goes through an added line; or through a changed function, or the
failing line or message names one; or the test names one; or a changed file is named or gone through; or nothing."""

_PLACES: tuple[Place, ...] = ("head", "base", "head_old_versions")
_SURE = 1 - 1e-6  # no single run may rule a cause out
_RATES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_NOISE = (0.02, 0.05, 0.1, 0.2)
_FLAKY_SKEW = 1.5  # tests that fail mostly are rarely kept
# What a wrong verdict costs decides how sure it has to be: only "change" blames somebody.
_SAID_AT: dict[Cause, float] = {
    "change": 0.99,
    "main": 0.95,
    "world": 0.95,
    "flaky": 0.99,
    "gone": 2.0,
}
_NEW_TEST_SAID_AT = 0.975  # flaky or not, it is the change's own test
_LINK_FACTORS: dict[Link, float] = {
    "line": 30.0,
    "statement": 12.0,
    "test": 6.0,
    "file": 1.0,
    "none": 0.25,
}
_DOCUMENTS_FACTOR = 0.05
_TOGETHER_FACTORS = ((20, 0.1), (5, 0.25))  # of flaky, where so many tests fail together
_FIXED_FACTOR = 0.15
_LIMIT_FACTOR = 0.2
_NEEDS_OTHERS = 0.03  # what fails every time, but only after other tests
_WORLD_WEIGHT = 0.11
_NAMED_PACKAGE_FACTOR = 8.0


@dataclass(frozen=True, slots=True)
class CauseHypothesis:
    """One cause with the failure rates that it implies, by place."""

    cause: Cause
    rates: tuple[float, float, float]
    weight: float


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known beside the runs: it moves the prior.

    `documents_only`: the change has nothing else. `together`: so many tests fail. `is_new`: the base does not have the
    test. `is_fixed`: it fails with an error that no chance makes, such as a missing import. `is_limit`: it ran out of
    time or memory. `moved`: packages have other versions than in the last green run; `names_moved`: it names one.
    """

    link: Link = "none"
    documents_only: bool = False
    together: int = 1
    is_new: bool = False
    is_fixed: bool = False
    is_limit: bool = False
    moved: bool = False
    names_moved: bool = False

    @property
    def is_linked(self) -> bool:
        """Whether the change may reach what fails: it brings the test, or something links the two."""
        return self.is_new or (self.link != "none" and not self.documents_only)


@dataclass
class CausePosterior:
    """The probability of each cause of one test's failure; `failed` and `passed` count runs by place.

    `passes_alone`: it failed among others on head and passed without them.
    """

    known: Circumstances = field(default_factory=Circumstances)
    failed: dict[Place, int] = field(default_factory=lambda: dict.fromkeys(_PLACES, 0))
    passed: dict[Place, int] = field(default_factory=lambda: dict.fromkeys(_PLACES, 0))

    passes_alone: bool = False

    @classmethod
    def of_head_runs(cls, *, failed: int, passed: int) -> CausePosterior:
        """The posterior after runs on head alone."""
        found = cls()
        found.failed["head"], found.passed["head"] = failed, passed
        return found

    def observe_outcome(self, place: Place, *, failed: bool) -> None:
        """Count one run."""
        counts = self.failed if failed else self.passed
        counts[place] += 1

    def count_runs(self, *places: Place) -> int:
        """How many runs were counted at these places."""
        return sum(self.failed[place] + self.passed[place] for place in places)

    def probabilities(self) -> dict[Cause, float]:
        """The probability of each cause, given the runs so far."""
        return self._probability_by_cause(made_by_change=False)

    def find_cause(self) -> Cause | None:
        """The cause that is probable enough to be said; None while none is, or while nothing failed here.

        A test that is flaky on head alone was made so by the change, so it is no error to blame the change for it.
        """
        if not any(self.failed.values()):
            return None
        cause, probability = max(
            self._probability_by_cause(made_by_change=not self.passed["head"]).items(),
            key=lambda item: item[1],
        )
        # What a verdict says of a place has to have been seen there, however probable it is before.
        seen = {
            "change": self.count_runs("head") >= 2,
            "main": self.failed["base"] > 0,
            "world": self.passed["head_old_versions"] > 0,
        }
        if not seen.get(cause, True):
            return None
        enough = _NEW_TEST_SAID_AT if cause == "change" and self.known.is_new else _SAID_AT[cause]
        return cause if probability >= enough else None

    @property
    def may_be_made_flaky(self) -> bool:
        """Whether the change may have made a flaky test so: it is linked to the test, which never failed on the base."""
        return self.known.is_linked and not self.failed["base"]

    def choose_next_place(self) -> Place:
        """Where the next run tells most: head twice, because a flake shows there soonest; then where there were fewer runs."""
        if self.known.is_new or self.count_runs("head") < 2:
            return "head"
        if self.known.moved and self.failed["base"] and not self.count_runs("head_old_versions"):
            return "head_old_versions"
        return "base" if self.count_runs("base") < self.count_runs("head") else "head"

    def _probability_by_cause(self, *, made_by_change: bool) -> dict[Cause, float]:
        masses: dict[Cause, float] = dict.fromkeys(_SAID_AT, 0.0)
        for one in make_hypotheses(self.known):
            alone = (
                made_by_change
                and one.cause == "flaky"
                and one.rates[1] < 1e-5
                and not self.known.is_new
            )
            masses["change" if alone else one.cause] += one.weight * self._likelihood(one)
        whole = sum(masses.values())
        return {cause: mass / whole for cause, mass in masses.items()}

    def estimate_rate(self, *places: Place) -> tuple[float, float, float]:
        """The failure rate at these places, else at all: mean, and a central interval of 90 % (uniform prior)."""
        failed = sum(self.failed[place] for place in places or _PLACES)
        passed = sum(self.passed[place] for place in places or _PLACES)
        grid = [(at + 0.5) / 1000 for at in range(1000)]
        masses = [rate**failed * (1 - rate) ** passed for rate in grid]
        whole, running = sum(masses), 0.0
        low, high = 0.0, 1.0
        for rate, mass in zip(grid, masses, strict=True):
            before, running = running, running + mass / whole
            low = rate if before < 0.05 <= running else low
            high = rate if before < 0.95 <= running else high
        return (failed + 1) / (failed + passed + 2), low, high

    def _likelihood(self, hypothesis: CauseHypothesis) -> float:
        value = 1.0
        for place, rate in zip(_PLACES, hypothesis.rates, strict=True):
            value *= rate ** self.failed[place] * (1 - rate) ** self.passed[place]
        if self.passes_alone:
            value *= _NEEDS_OTHERS if hypothesis.rates[0] == _SURE else 1 - hypothesis.rates[0]
        return value


def make_hypotheses(known: Circumstances) -> Sequence[CauseHypothesis]:
    """The prior, for a test that was seen red once: which rates each cause implies, and how probable they are."""
    change = 0.42 * _LINK_FACTORS[known.link] * (2.0 if known.is_new else 1.0)
    change *= _DOCUMENTS_FACTOR if known.documents_only else 1.0
    flaky = next((factor for count, factor in _TOGETHER_FACTORS if known.together >= count), 1.0)
    flaky *= _FIXED_FACTOR if known.is_fixed else _LIMIT_FACTOR if known.is_limit else 1.0
    world = (_WORLD_WEIGHT if known.moved else 0.0) * (
        _NAMED_PACKAGE_FACTOR if known.names_moved else 1.0
    )
    skew = [(1 - rate) ** _FLAKY_SKEW for rate in _RATES]
    shares = [(rate, share / sum(skew)) for rate, share in zip(_RATES, skew, strict=True)]
    always, never = _SURE, 1 - _SURE
    return (
        CauseHypothesis("change", (always, never, always), 0.85 * change),
        *(
            CauseHypothesis("change", (always, rate, always), 0.15 * change / len(_NOISE))
            for rate in _NOISE
        ),
        CauseHypothesis("main", (always, always, always), 0.0 if known.is_new else 0.22),
        CauseHypothesis("world", (always, always, never), world),
        *(
            CauseHypothesis("flaky", (rate, rate, rate), 0.30 * flaky * share)
            for rate, share in shares
        ),
        *(
            CauseHypothesis("flaky", (rate, never, rate), 0.04 * flaky * share)
            for rate, share in shares
        ),
        CauseHypothesis("gone", (never, never, never), 0.06),
    )
