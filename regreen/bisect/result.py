"""What a bisection found, in the words of its JSON document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["found", "narrowed", "none", "before", "undecided", "not_reproduced"]
Seen = Literal["fail", "pass", "untestable", "infra"]


@dataclass(frozen=True, slots=True)
class Culprit:
    """The commit that is blamed; `date` is ISO 8601."""

    sha: str
    subject: str
    author: str
    date: str


@dataclass(frozen=True, slots=True)
class Suspect:
    """One commit of the smallest set that holds the culprit with the asked confidence."""

    sha: str
    probability: float


@dataclass(frozen=True, slots=True)
class Point:
    """One commit of the range and its probability.

    `broken` is the probability that the command fails at it, however long it is broken; `parents` are places in the
    posterior, -1 for a parent that is older than the range.
    """

    sha: str
    p: float
    broken: float = 0.0
    parents: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Verified:
    """What was done to prove the culprit, whether it held, in how many further runs."""

    by: tuple[Literal["rerun", "revert"], ...]
    ok: bool
    detail: str
    tests: int = 0


@dataclass(frozen=True, slots=True)
class RatesSeen:
    """How often the test fails with the culprit and without: mean, and the bounds of the middle 90 %."""

    fail_if_bad: tuple[float, float, float]
    fail_if_good: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Searched:
    """The range: every commit in `good..bad` (`good` itself not counted)."""

    good: str | None
    bad: str
    commits: int
    merges: int


@dataclass(frozen=True, slots=True)
class Observation:
    """One test as it was counted; `reused` says that an earlier bisection had run it."""

    sha: str
    outcome: Seen
    signature: str | None
    seconds: float
    reason: str
    reused: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """What was believed after one run: the likeliest commit, as uncertain as among `left`, and the mass over the range.

    `columns` goes from the oldest commit to the newest, a commit each or, in a long range, some together.
    """

    sha: str
    outcome: Seen
    best: str | None
    probability: float
    left: int
    columns: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Dependency:
    """The package whose version broke it, where the culprit did nothing but move versions."""

    path: str
    name: str
    old: str | None
    new: str | None
    probability: float
    tests: int


@dataclass(frozen=True, slots=True)
class Bisection:
    """Everything a bisection found out. `tests` are the runs of the search; those of the proof stand in `verified`."""

    outcome: Outcome
    culprit: Culprit | None
    probability: float
    credible_set: tuple[Suspect, ...]
    verified: Verified | None
    via_merge: str | None
    tests: int
    builds: int
    rounds: int
    untestable: tuple[str, ...]
    rates: RatesSeen
    range: Searched
    observations: tuple[Observation, ...]
    posterior: tuple[Point, ...]
    seconds: float
    command: str = ""
    python: str | None = None
    signature: str | None = None
    find_fix: bool = False
    notes: tuple[str, ...] = ()
    dependency: Dependency | None = None
    narrowing: tuple[Step, ...] = ()
