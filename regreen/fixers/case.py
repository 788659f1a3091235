"""The words of a repair: what is asked, what was seen, what was tried, what came out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from regreen.codebase.trial import Trial
from regreen.fixers.gate import PROTECTED, GateReport
from regreen.fixers.stop import Stop
from regreen.fixers.suite import Suite
from regreen.models import Cost, Failure
from regreen.ports import Git, Model, Sandbox

RungName = Literal["recipe", "revert", "shrink", "template", "model"]
FixOutcome = Literal[
    "fixed",
    "flaky",
    "not_reproduced",
    "gave_up",
    "needs_human",
    "denied",
    "out_of_budget",
    "already_green",
]
AttemptOutcome = Literal[
    "accepted",
    "needs_human",
    "denied",
    "still_red",
    "does_not_apply",
    "nothing_proposed",
    "gave_up",
    "out_of_budget",
    "skipped",
    "infra",
]

RUNGS: tuple[RungName, ...] = ("recipe", "revert", "shrink", "template", "model")


@dataclass(frozen=True)
class FixJob:
    """One failing command at one commit, and what a repair of it may cost and touch.

    `base` is where the change under repair starts (a pull request's base, or the last good commit); without
    it there is nothing to shrink, and the revert rung looks for a good commit by going back. `given_tests`
    are paths that are the specification: never touched. `good` is a commit known to be green, where a
    nightly run remembers one. `attempts_before` counts the repairs that were tried at this commit already.
    `expected` is what CI's log says failed; then the same has to fail here. `allow_network`: a command that cannot
    work without a network may have one while it runs. `tests` is how the repository says that all its tests run.
    """

    trial: Trial
    rev: str
    base: str | None = None
    good: str | None = None
    rungs: tuple[RungName, ...] = RUNGS
    max_usd: float = 1.0
    max_minutes: float = 20.0
    protected_paths: tuple[str, ...] = PROTECTED
    max_changed_lines: int = 40
    given_tests: tuple[str, ...] = ()
    hint: str = ""
    reruns: int = 3
    attempts_before: int = 0
    expected: tuple[Failure, ...] = ()
    allow_network: bool = False
    tests: Trial | None = None


@dataclass(frozen=True, slots=True)
class Before:
    """How the command failed before anything was changed."""

    command: str
    exit_code: int | None
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True)
class After:
    """How the same command ended with the patch, in fresh boxes, `reruns` times; `kept` tests that passed pass still."""

    exit_code: int | None
    reruns: int
    failures: tuple[Failure, ...] = ()
    kept: int = 0


@dataclass(frozen=True, slots=True)
class Culprit:
    """The commit that broke it."""

    sha: str
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One thing that was tried: how it ended, what the gate said. `trail` is its transcript, for whoever reads later."""

    rung: RungName
    summary: str
    outcome: AttemptOutcome
    seconds: float = 0.0
    usd: float = 0.0
    patch: str | None = None
    detail: str = ""
    trail: tuple[str, ...] = ()
    after: After | None = None
    gate: GateReport | None = None


@dataclass(frozen=True, slots=True)
class Strength:
    """How much a green run says about the changed lines: of the mutants of them, how many the tests notice."""

    mutants: int
    killed: int
    survivors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fix:
    """What a repair came to; the keys are those of `regreen fix --format json`.

    `rev` is the commit that failed, `setup` what a person would prepare it with.
    """

    outcome: FixOutcome
    rung: RungName | None = None
    patch: str | None = None
    cause: str | None = None
    culprit: Culprit | None = None
    before: Before = field(default_factory=lambda: Before("", None))
    after: After | None = None
    gate: GateReport | None = None
    attempts: tuple[Attempt, ...] = ()
    hints: tuple[str, ...] = ()
    cost: Cost = field(default_factory=Cost)
    seconds: float = 0.0
    strength: Strength | None = None
    reflection: str | None = None
    reason: str = ""
    rev: str = ""
    setup: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A patch that a rung believes in. `cause` is one sentence; `culprit` where a commit was found guilty."""

    rung: RungName
    patch: str
    summary: str
    cause: str
    culprit: Culprit | None = None
    usd: float = 0.0
    reflection: str | None = None
    approval: str | None = None
    trail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """What running a proposal and the gate came to; `why` says it in one line, for the next attempt."""

    proposal: Proposal
    outcome: AttemptOutcome
    why: str
    after: After | None = None
    gate: GateReport | None = None
    strength: Strength | None = None

    @property
    def stands(self) -> bool:
        """The proposal made the command green honestly, though a person may have to agree."""
        return self.outcome in {"accepted", "needs_human"}


@dataclass(frozen=True, slots=True)
class Climbed:
    """What one rung came to: the judgement that stands, or none, and what it learned for the next rungs."""

    judgement: Judgement | None = None
    hints: tuple[str, ...] = ()
    note: str = ""
    outcome: AttemptOutcome = "nothing_proposed"
    culprit: Culprit | None = None
    cause: str | None = None
    cost: Cost = field(default_factory=Cost)
    trail: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """A reproduced failure with everything a rung may use to mend it."""

    job: FixJob
    rev: str
    base: str | None
    before: Before
    output: str
    passing: Mapping[str, str]
    git: Git
    sandbox: Sandbox
    model: Model | None
    stop: Stop
    say: Callable[[str], None]
    hints: tuple[str, ...] = ()
    culprit: Culprit | None = None
    flaky: frozenset[str] = frozenset()
    wide: Trial | None = None
    setup_failed: bool = False
    found: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    suite: Suite | None = None

    @property
    def trial(self) -> Trial:
        """The failing command with its preparation."""
        return self.job.trial

    def tests_hold(self) -> bool:
        """Whether tests of the project that pass are held against a patch, beside the command that fails."""
        if self.suite is None:
            return "passed" in self.passing.values()
        return self.suite.baseline() is not None


Judge = Callable[[Proposal], Judgement]
