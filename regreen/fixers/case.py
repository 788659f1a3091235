"""The values of a repair: the job, the failure, the attempts and the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from regreen.actions.other_jobs import OtherJob
from regreen.bisect.verdict_memory import VerdictMemory
from regreen.domain.errors import AnalysisFailed
from regreen.domain.job_control import StopCondition
from regreen.domain.models import RUNG_ORDER, Cost, Failure, RungName
from regreen.domain.ports import Box, Git, Model, Sandbox
from regreen.gate.judge import PROTECTED_PATHS, GateReport
from regreen.gate.publishing import CheckKind, classify_check
from regreen.gate.suite import ProjectSuite
from regreen.isolation import run_in_child
from regreen.languages.registry import TEST_LISTENERS
from regreen.runs.test_runs import CommandRun, run_fresh
from regreen.runs.trial import Trial, open_box

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

HypothesisOutcome = Literal["kept", "eliminated", "untried"]
OtherJobOutcome = Literal["passed", "red_before", "red", "broken", "not_run"]

QUICK_MINUTES = 10.0


@dataclass(frozen=True)
class FixJob:
    """One failing command at one commit, and what a repair of it may cost and touch.

    `base` is where the change under repair starts (a pull request's base, or the last good commit); without
    it there is nothing to shrink, and the revert rung looks for a good commit by going back. `given_tests`
    are paths that are the specification: never touched. `attempts_before` counts the repairs that were tried at this commit already.
    `quick_minutes` is the limit where no model is asked and the command takes less than two minutes.
    `expected` is what CI's log says failed; then the same has to fail here. `allow_network`: a command that cannot
    work without a network may have one while it runs. `tests` is how the repository says that all its tests run.
    `memory` holds the runs of a bisection, from which one that was interrupted goes on. `live`: where the sandbox
    answers from memory, the one in which a patch passes once more before it counts as proven. `other_jobs` of the
    workflow are held against a patch that passes.
    """

    trial: Trial
    rev: str
    base: str | None = None
    rungs: tuple[RungName, ...] = RUNG_ORDER
    max_usd: float = 1.0
    max_minutes: float = 20.0
    quick_minutes: float | None = None
    protected_paths: tuple[str, ...] = PROTECTED_PATHS
    max_changed_lines: int = 40
    given_tests: tuple[str, ...] = ()
    hint: str = ""
    reruns: int = 3
    attempts_before: int = 0
    expected: tuple[Failure, ...] = ()
    allow_network: bool = False
    tests: Trial | None = None
    memory: VerdictMemory | None = None
    live: Sandbox | None = None
    other_jobs: tuple[OtherJob, ...] = ()


@dataclass(frozen=True, slots=True)
class OtherJobRun:
    """How another job of the failing workflow ended with the patch; `detail` says what fails, or why it was not run.

    "red": the checks behind the failing step, of which nothing is known from before.
    """

    name: str
    outcome: OtherJobOutcome
    detail: str = ""


@dataclass(frozen=True, slots=True)
class InitialFailure:
    """How the command failed before anything was changed."""

    command: str
    exit_code: int | None
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True)
class PatchedRuns:
    """How the command ended with the patch, `reruns` times in fresh boxes; `kept` tests passed before and still pass."""

    exit_code: int | None
    reruns: int
    failures: tuple[Failure, ...] = ()
    kept: int = 0


@dataclass(frozen=True, slots=True)
class GuiltyCommit:
    """The commit that broke it; `date` is ISO 8601, `probability` a bisection's."""

    sha: str
    subject: str = ""
    author: str = ""
    date: str = ""
    probability: float | None = None

    @classmethod
    def read_commit(cls, git: Git, sha: str, probability: float | None = None) -> GuiltyCommit:
        """What the repository says of a commit that broke it."""
        commit = git.commit(sha)
        return cls(sha, commit.subject, commit.author, commit.date.isoformat(), probability)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: its outcome and the gate's report. `trail` is its transcript, for the report."""

    rung: RungName
    summary: str
    outcome: AttemptOutcome
    seconds: float = 0.0
    usd: float = 0.0
    patch: str | None = None
    detail: str = ""
    trail: tuple[str, ...] = ()
    after: PatchedRuns | None = None
    gate: GateReport | None = None


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What a model took for the cause, and the command that decides it; `result` is what that command printed.

    It is kept where the command exits with 0, and eliminated where it exits otherwise.
    """

    claim: str
    experiment: str
    outcome: HypothesisOutcome
    result: str = ""


@dataclass(frozen=True, slots=True)
class MutationScore:
    """How many mutants of the changed lines the tests notice: the strength of a green run."""

    mutants: int
    killed: int
    survivors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FixResult:
    """The result of a repair; the keys are those of `regreen fix --format json`.

    `rev` is the commit that failed, `setup` what a person would prepare it with; `environment` says where that is known
    from, None where a workflow's step was run. `repeat` are the commands that repeat the failure, and the run with the patch.
    """

    outcome: FixOutcome
    rung: RungName | None = None
    patch: str | None = None
    cause: str | None = None
    culprit: GuiltyCommit | None = None
    before: InitialFailure = field(default_factory=lambda: InitialFailure("", None))
    after: PatchedRuns | None = None
    gate: GateReport | None = None
    attempts: tuple[Attempt, ...] = ()
    hints: tuple[str, ...] = ()
    cost: Cost = field(default_factory=Cost)
    seconds: float = 0.0
    strength: MutationScore | None = None
    reflection: str | None = None
    reason: str = ""
    rev: str = ""
    setup: str = ""
    environment: dict[str, Any] | None = None
    repeat: tuple[str, ...] = ()
    other_jobs: tuple[OtherJobRun, ...] = ()
    hypotheses: tuple[Hypothesis, ...] = ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """A patch that a rung proposes, with its cause and who is guilty; `completes`: it carries a change on to its callers."""

    rung: RungName
    patch: str
    summary: str
    cause: str
    culprit: GuiltyCommit | None = None
    usd: float = 0.0
    reflection: str | None = None
    approval: str | None = None
    trail: tuple[str, ...] = ()
    completes: bool = False


@dataclass(frozen=True, slots=True)
class PatchVerdict:
    """The verdict on a proposal after its runs and the gate; `why` is one line for the next attempt."""

    proposal: Proposal
    outcome: AttemptOutcome
    why: str
    after: PatchedRuns | None = None
    gate: GateReport | None = None
    strength: MutationScore | None = None
    other_jobs: tuple[OtherJobRun, ...] = ()

    @property
    def is_accepted(self) -> bool:
        """Whether the proposal passes the gate, perhaps only with a person's approval."""
        return self.outcome in {"accepted", "needs_human"}


@dataclass(frozen=True, slots=True)
class RungResult:
    """The result of one rung: the verdict that stands, if any, and hints for the next rungs."""

    judgement: PatchVerdict | None = None
    hints: tuple[str, ...] = ()
    note: str = ""
    outcome: AttemptOutcome = "nothing_proposed"
    culprit: GuiltyCommit | None = None
    cause: str | None = None
    cost: Cost = field(default_factory=Cost)
    trail: tuple[str, ...] = ()
    hypotheses: tuple[Hypothesis, ...] = ()


@dataclass(frozen=True)
class RepairCase:
    """A reproduced failure with everything that a rung may use to repair it."""

    job: FixJob
    rev: str
    before: InitialFailure
    passing: Mapping[str, str]
    git: Git
    sandbox: Sandbox
    stop: StopCondition
    output: str = ""
    base: str | None = None
    model: Model | None = None
    say: Callable[[str], None] = lambda _: None
    hints: tuple[str, ...] = ()
    culprit: GuiltyCommit | None = None
    flaky: frozenset[str] = frozenset()
    wide: Trial | None = None
    setup_failed: bool = False
    suite: ProjectSuite | None = None
    red: CommandRun | None = None

    @property
    def trial(self) -> Trial:
        """The failing command with its preparation."""
        return self.job.trial

    def run_fresh(
        self, trial: Trial, rev: str, *, listen: bool = False, sandbox: Sandbox | None = None
    ) -> CommandRun:
        """Run a command once in a fresh box, of `sandbox` where it is given; see `test_runs.run_fresh`."""
        return run_fresh(
            trial,
            rev,
            git=self.git,
            sandbox=sandbox or self.sandbox,
            listeners=TEST_LISTENERS if listen else (),
            cancel=self.stop.cancel,
        )

    def open_box(self) -> Box:
        """A fresh box with the commit under repair, prepared for the failing command."""
        return open_box(
            self.trial, self.rev, git=self.git, sandbox=self.sandbox, cancel=self.stop.cancel
        )

    @cached_property
    def check(self) -> tuple[CheckKind, str]:
        """What the failing command checks, and the reason where that is unclear."""
        try:
            return run_in_child(
                classify_check,
                self.before.failures,
                dict(self.red.tests) if self.red else {},
                dict(self.red.touched) if self.red else {},
                self.output,
                bool(self.job.given_tests),
                frozenset(entry.path for entry in self.git.tree(self.rev)),
            )
        except AnalysisFailed as error:
            return "unclear", f"its output could not be read: {error}"


JudgeProposal = Callable[[Proposal], PatchVerdict]


def find_best_patch(proposals: Iterable[Proposal], judge: JudgeProposal) -> PatchVerdict | None:
    """The verdict on the first accepted proposal, else on the smallest that a person may accept."""
    best: PatchVerdict | None = None
    for proposal in proposals:
        verdict = judge(proposal)
        if verdict.outcome == "accepted":
            return verdict
        if verdict.is_accepted and (best is None or _count_lines(verdict) < _count_lines(best)):
            best = verdict
    return best


def _count_lines(verdict: PatchVerdict) -> int:
    return sum(line.startswith(("+", "-")) for line in verdict.proposal.patch.splitlines())
