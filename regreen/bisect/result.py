"""The result of a bisection, with the field names of its JSON document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

STOPPED_AT_LIMIT = "stopped at the time limit"
"""The note of a result that the time limit cut short."""

BisectionOutcome = Literal["found", "narrowed", "none", "before", "undecided", "not_reproduced"]
RunOutcome = Literal["fail", "pass", "untestable", "infra"]
RunPart = Literal["search", "proof", "revert", "suspect", "package", "interpreter"]
"""What a run was for: the search, the proof, the bad end without the culprit or
without an earlier suspect, one package, the choice of a Python."""


@dataclass(frozen=True, slots=True)
class BlamedCommit:
    """The blamed commit; `date` is ISO 8601."""

    sha: str
    subject: str
    author: str
    date: str


@dataclass(frozen=True, slots=True)
class Suspect:
    """One commit of the smallest set that holds the culprit with the requested confidence."""

    sha: str
    probability: float


@dataclass(frozen=True, slots=True)
class RangePoint:
    """One commit of the range and its probability.

    `broken` is the probability that the command fails at it, for whatever culprit; `parents` are indexes into the
    posterior, -1 for a parent that is older than the range.
    """

    sha: str
    p: float
    broken: float = 0.0
    parents: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CulpritVerification:
    """How the culprit was proven, and whether the proof held."""

    by: tuple[Literal["rerun", "revert"], ...]
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class FailureRates:
    """How often the test fails with the culprit and without: mean, and bounds of the middle 90 %."""

    fail_if_bad: tuple[float, float, float]
    fail_if_good: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class SearchedRange:
    """The range: every commit in `good..bad` (without `good` itself)."""

    good: str | None
    bad: str
    commits: int
    merges: int


@dataclass(frozen=True, slots=True)
class Observation:
    """One run and what it was for; `reused`: an earlier bisection or CI ran it; `reverted`: which commit it was without."""

    sha: str
    outcome: RunOutcome
    signature: str | None
    seconds: float
    reason: str
    reused: bool = False
    part: RunPart = "search"
    reverted: str | None = None


@dataclass(frozen=True, slots=True)
class SearchStep:
    """The posterior after one run: the likeliest commit, the uncertainty as of `left` equal commits, and the mass.

    `columns` goes from the oldest commit to the newest, one commit each or, in a long range, several.
    """

    sha: str
    outcome: RunOutcome
    best: str | None
    probability: float
    left: int
    columns: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class BlamedDependency:
    """The package whose version broke it, if the culprit only changed versions."""

    path: str
    name: str
    old: str | None
    new: str | None
    probability: float
    tests: int


@dataclass(frozen=True, slots=True)
class Bisection:
    """The complete result. `tests` counts the runs of the search, which are the `observations` that are not reused.

    `later_runs` are all others, which count for no commit of the search: those of the proof above all. `environment` says how the commits were set up, and where that is known from; `repeat` is the command that repeats the
    run of the culprit.
    """

    outcome: BisectionOutcome
    culprit: BlamedCommit | None
    probability: float
    credible_set: tuple[Suspect, ...]
    verified: CulpritVerification | None
    via_merge: str | None
    tests: int
    builds: int
    rounds: int
    untestable: tuple[str, ...]
    rates: FailureRates
    range: SearchedRange
    observations: tuple[Observation, ...]
    posterior: tuple[RangePoint, ...]
    seconds: float
    command: str = ""
    python: str | None = None
    signature: str | None = None
    find_fix: bool = False
    slower: float | None = None
    notes: tuple[str, ...] = ()
    dependency: BlamedDependency | None = None
    narrowing: tuple[SearchStep, ...] = ()
    environment: dict[str, Any] | None = None
    repeat: str | None = None
    later_runs: tuple[Observation, ...] = ()

    @property
    def runs(self) -> int:
        """How often the command ran for this result; what was known before is not among it."""
        return self.tests + len(self.later_runs)
