"""What the product remembers about repositories: one record type for each kind of fact, one table for each type.

The fields of a type are the columns of its table, `KEY` names those that identify a record, and `TEMPORARY` says
that old records may be deleted: they only explain how a result came about. A record with a `repo` moves when its
repository is renamed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar, Literal

from regreen.domain.models import Side, Signals


class StateRecord:
    """A fact that outlives a job."""

    __slots__ = ()
    KEY: ClassVar[tuple[str, ...]]
    TEMPORARY: ClassVar[bool] = False


# Reviews


@dataclass(frozen=True, slots=True)
class PostedFinding(StateRecord):
    """A posted finding: enough to recognise it and to see that it is fixed.

    Attributes:
        places: the keys of its places in the code, separated by spaces.
        code: the criticised code, normalised; "" if it cannot show that the finding is fixed.
    """

    KEY = ("repo", "number", "fingerprint")
    repo: str
    number: int
    fingerprint: str
    id: str
    title: str
    path: str = ""
    rule: str = ""
    dimension: str = ""
    places: str = ""
    code: str = ""
    confidence: float = 0.8
    signals: Signals | None = None
    suggestion: str = ""
    side: Side = "RIGHT"


@dataclass(frozen=True, slots=True)
class Dismissal(StateRecord):
    """A finding that somebody dismissed: it never returns. `stored` is when, in seconds since the epoch; the store sets it."""

    KEY = ("repo", "number", "fingerprint")
    repo: str
    number: int
    fingerprint: str
    login: str
    reason: str
    stored: float = field(default=0.0, compare=False)

    @property
    def at(self) -> datetime:
        """When it was dismissed."""
        return datetime.fromtimestamp(self.stored, UTC)


@dataclass(frozen=True, slots=True)
class UnresolvedThread(StateRecord):
    """The thread of a fixed or dismissed finding that could not be resolved yet."""

    KEY = ("repo", "number", "fingerprint")
    repo: str
    number: int
    fingerprint: str


OutcomeKind = Literal[
    "dismissed", "applied", "down", "up", "denied", "thanked", "mended", "resolved"
]

IS_RIGHT: Mapping[OutcomeKind, bool] = {
    "dismissed": False,
    "applied": True,
    "down": False,
    "up": True,
    "denied": False,
    "thanked": True,
    "mended": True,
    "resolved": False,
}
OUTCOME_WEIGHT: Mapping[OutcomeKind, float] = {"mended": 0.7, "resolved": 0.4}


@dataclass(frozen=True, slots=True)
class FindingOutcome(StateRecord):
    """What became of a posted finding, and its confidence when it was posted; `at` is an ISO time."""

    KEY = ("repo", "number", "fingerprint")
    repo: str
    number: int
    fingerprint: str
    rule: str
    confidence: float
    how: OutcomeKind
    at: str
    signals: Signals | None = None

    @property
    def right(self) -> bool:
        """Whether people agreed with it."""
        return IS_RIGHT[self.how]

    @property
    def weight(self) -> float:
        """Its weight: a line may be fixed, or a thread resolved, for other reasons."""
        return OUTCOME_WEIGHT.get(self.how, 1.0)


@dataclass(frozen=True, slots=True)
class ReviewedHead(StateRecord):
    """The conclusion of a commit's review, for the merge queue."""

    KEY = ("repo", "sha")
    repo: str
    sha: str
    conclusion: str


@dataclass(frozen=True, slots=True)
class UploadedReview(StateRecord):
    """A review whose findings GitHub's code scanning has taken."""

    KEY = ("review",)
    TEMPORARY = True
    review: str
    sha: str


@dataclass(frozen=True, slots=True)
class FinishedWork(StateRecord):
    """A finished piece of work as JSON, so that a second attempt only publishes it; `id` is of the job or its input.

    "repair_check": a check run says of a commit that it was not repaired.
    """

    KEY = ("kind", "id")
    TEMPORARY = True
    kind: Literal["review", "fix", "prove", "repair_check"]
    id: str
    body: str


@dataclass(frozen=True, slots=True)
class StoredCapsule(StateRecord):
    """A capsule's file for those who may read the repository; `public`: everybody may."""

    KEY = ("repo", "digest")
    TEMPORARY = True
    repo: str
    digest: str
    text: str
    public: bool


@dataclass(frozen=True, slots=True)
class WithheldWrite(StateRecord):
    """What a job would have written to GitHub in a repository that is only observed; `at` is an ISO time."""

    KEY = ("job", "key")
    TEMPORARY = True
    repo: str
    job: str
    key: str
    at: str
    title: str
    text: str


# Approvals and repairs


@dataclass(frozen=True, slots=True)
class Approval(StateRecord):
    """Somebody with write access lets this commit of a pull request run."""

    KEY = ("repo", "number", "sha")
    repo: str
    number: int
    sha: str
    login: str


@dataclass(frozen=True, slots=True)
class PendingPatch(StateRecord):
    """A patch that waits for an approval.

    Attributes:
        place: where it was shown: the number of an issue or pull request, or "@" and a commit.
        at: when it was shown, in seconds since 1970.
        branch: the branch that it repairs, whose tip was `sha`.
    """

    KEY = ("repo", "place")
    repo: str
    place: str
    at: float
    patch: str
    branch: str
    sha: str
    title: str
    body: str
    on_pull: bool
    workflow: str = ""


@dataclass(frozen=True, slots=True)
class OpenRepair(StateRecord):
    """The draft that repairs a branch; `text` is the digest of title and body as posted, None if unknown.

    `issue` is the one whose own command it repairs there, 0 where it repairs what CI runs. `closed`: it was closed or
    merged, and may be opened again.
    """

    KEY = ("repo", "branch", "issue")
    repo: str
    branch: str
    number: int
    draft: bool = False
    text: str | None = None
    workflow: str = ""
    issue: int = 0
    closed: bool = False


@dataclass(frozen=True, slots=True)
class RepairTry(StateRecord):
    """An automatic repair of a branch on one day, for the daily limit."""

    KEY = ("repo", "day", "branch", "sha")
    TEMPORARY = True
    repo: str
    day: str
    branch: str
    sha: str


@dataclass(frozen=True, slots=True)
class RepairAttempt(StateRecord):
    """A job that tried to repair a commit."""

    KEY = ("repo", "sha", "job")
    TEMPORARY = True
    repo: str
    sha: str
    job: str


@dataclass(frozen=True, slots=True)
class UnclaimedBranch(StateRecord):
    """A branch that a job pushed, until it has a pull request."""

    KEY = ("repo", "branch")
    repo: str
    branch: str
    job: str
    installation: int
    sha: str


@dataclass(frozen=True, slots=True)
class PushedCommits(StateRecord):
    """The commits that we pushed to a branch of ours, oldest first."""

    KEY = ("repo", "branch")
    repo: str
    branch: str
    commits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Revert(StateRecord):
    """The pull request that reverts a culprit; there is never a second one."""

    KEY = ("repo", "culprit")
    repo: str
    culprit: str
    pull: int


@dataclass(frozen=True, slots=True)
class RevertTry(StateRecord):
    """A culprit for which a revert was tried on one day, for the daily limit."""

    KEY = ("repo", "day", "culprit")
    TEMPORARY = True
    repo: str
    day: str
    culprit: str


@dataclass(frozen=True, slots=True)
class RevertProof(StateRecord):
    """How a culprit is reverted on a tip so that the gate allows it: `way` is "whole" or "source"."""

    KEY = ("repo", "culprit", "tip")
    repo: str
    culprit: str
    tip: str
    way: str


# Repositories and schedules


@dataclass(frozen=True, slots=True)
class LastValidConfig(StateRecord):
    """The last valid configuration of a repository, as YAML, "" where none was; `observed`: a later, broken file asks to observe."""

    KEY = ("repo",)
    repo: str
    text: str
    observed: bool = False


@dataclass(frozen=True, slots=True)
class MissingOrganisationConfig(StateRecord):
    """An organisation without a configuration, which is not asked again until an ISO time."""

    KEY = ("installation", "owner")
    installation: int
    owner: str
    until: str


@dataclass(frozen=True, slots=True)
class RepositorySchedules(StateRecord):
    """A repository with schedules; `schedules` is their JSON."""

    KEY = ("repo",)
    repo: str
    repo_id: int
    installation: int
    default_branch: str
    schedules: str


@dataclass(frozen=True, slots=True)
class ScheduleState(StateRecord):
    """The last results of a schedule.

    Attributes:
        green: the last commit that passed, "" if there is none.
        red: the commit that failed, "" if the schedule passes.
        issue: the issue of the latest regression.
        issues: the issues of all regressions since the schedule last passed.
    """

    KEY = ("repo", "schedule")
    repo: str
    schedule: str
    green: str = ""
    red: str = ""
    issue: int | None = None
    issues: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RenamedRepository(StateRecord):
    """A repository's present name and its earlier names."""

    KEY = ("repo_id",)
    repo_id: int
    repo: str
    before: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadRepository(StateRecord):
    """A repository whose schedules a maintenance job has read, so that the job resumes after it."""

    KEY = ("job", "repo")
    TEMPORARY = True
    job: str
    repo: str


# Commands


@dataclass(frozen=True, slots=True)
class CommandClaim(StateRecord):
    """The job that carries out a command of a comment, which may be edited."""

    KEY = ("repo", "comment", "command")
    TEMPORARY = True
    repo: str
    comment: int
    command: str
    job: str


@dataclass(frozen=True, slots=True)
class ReplyPart(StateRecord):
    """One command's part of a reply; `thread` names the comment or work that the reply answers."""

    KEY = ("repo", "number", "thread", "line")
    TEMPORARY = True
    repo: str
    number: int
    thread: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class CommandTimes(StateRecord):
    """When a person gave commands within the last hour, in seconds since 1970."""

    KEY = ("repo", "login")
    TEMPORARY = True
    repo: str
    login: str
    times: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class LastRefusal(StateRecord):
    """When a person without permission was last answered, in seconds since 1970, and for which command."""

    KEY = ("repo", "number", "login")
    TEMPORARY = True
    repo: str
    number: int
    login: str
    at: float
    command: str


@dataclass(frozen=True, slots=True)
class UnreportedFailure(StateRecord):
    """A failed job whose failure could not be reported yet."""

    KEY = ("job",)
    TEMPORARY = True
    job: str
    reason: str


# The service


@dataclass(frozen=True, slots=True)
class ServiceState(StateRecord):
    """The state of one part of the service: the last `tick` as an ISO time, or what is wrong with the `sandbox`."""

    KEY = ("name",)
    name: Literal["tick", "sandbox", "form secret"]
    value: str


@dataclass(frozen=True, slots=True)
class RateLimit(StateRecord):
    """GitHub's latest word on a rate limit; `resets` is in seconds since 1970."""

    KEY = ("owner", "resource")
    TEMPORARY = True
    owner: str
    resource: str
    left: int
    most: int
    resets: float


@dataclass(frozen=True, slots=True)
class DashboardSession(StateRecord):
    """A person who is signed in until an ISO time, and the repositories that they may read and write."""

    KEY = ("digest",)
    TEMPORARY = True
    digest: str
    login: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    until: str


STATE_RECORDS: tuple[type[StateRecord], ...] = (
    PostedFinding,
    Dismissal,
    UnresolvedThread,
    FindingOutcome,
    ReviewedHead,
    UploadedReview,
    FinishedWork,
    StoredCapsule,
    WithheldWrite,
    Approval,
    PendingPatch,
    OpenRepair,
    RepairTry,
    RepairAttempt,
    UnclaimedBranch,
    PushedCommits,
    Revert,
    RevertTry,
    RevertProof,
    LastValidConfig,
    MissingOrganisationConfig,
    RepositorySchedules,
    ScheduleState,
    RenamedRepository,
    ReadRepository,
    CommandClaim,
    ReplyPart,
    CommandTimes,
    LastRefusal,
    UnreportedFailure,
    ServiceState,
    RateLimit,
    DashboardSession,
)
