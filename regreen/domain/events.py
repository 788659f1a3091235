"""The GitHub events that Regreen handles: a closed union, named in the past tense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PullChange = Literal[
    "opened",
    "synchronize",
    "reopened",
    "ready_for_review",
    "converted_to_draft",
    "edited",
    "closed",
]


@dataclass(frozen=True, slots=True)
class RepositoryRef:
    """The repository of an event. `installation` is 0 if the payload has none."""

    repo: str
    repo_id: int
    installation: int
    default_branch: str = "main"


@dataclass(frozen=True, slots=True)
class Actor:
    """The account that caused an event."""

    login: str
    is_bot: bool


@dataclass(frozen=True, slots=True)
class PullRequestChanged:
    """A pull request was opened, pushed to, retitled, drafted or closed. `at` is GitHub's time of the event."""

    where: RepositoryRef
    actor: Actor
    number: int
    change: PullChange
    head_sha: str
    head_ref: str
    base_ref: str
    author: Actor
    draft: bool
    fork: bool
    merged: bool = False
    at: str = ""


@dataclass(frozen=True, slots=True)
class CommentPosted:
    """A comment was written on an issue, a pull request or a line of one. `review`: it belongs to a thread.

    `actor` wrote or edited it, `author` wrote it. `before` is the text before an edit, `at` GitHub's time of writing.
    """

    where: RepositoryRef
    actor: Actor
    number: int
    on_pull: bool
    review: bool
    comment_id: int
    body: str
    association: str
    edited: bool
    reply_to: int | None = None
    author: Actor | None = None
    before: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class ThreadChanged:
    """A review thread was resolved or reopened; `comments` are the ids in it."""

    where: RepositoryRef
    actor: Actor
    number: int
    comments: tuple[int, ...]
    resolved: bool


@dataclass(frozen=True, slots=True)
class PullRequestApproved:
    """Somebody approved a pull request at its commit `head_sha`."""

    where: RepositoryRef
    actor: Actor
    number: int
    head_sha: str


@dataclass(frozen=True, slots=True)
class CheckFailed:
    """CI failed. `run_id` is the workflow run, None for a check run of another CI system, which is the App `app`.

    `is_status`: it is a commit status, which has neither a log nor a pull request.
    """

    where: RepositoryRef
    actor: Actor
    name: str
    head_sha: str
    head_branch: str
    run_id: int | None
    attempt: int
    pulls: tuple[int, ...]
    fork: bool = False
    app: str = ""
    is_status: bool = False


@dataclass(frozen=True, slots=True)
class CheckPassed:
    """The workflow run `run_id` of the file `path` passed."""

    where: RepositoryRef
    name: str
    head_sha: str
    head_branch: str
    fork: bool = True
    path: str = ""
    run_id: int = 0


@dataclass(frozen=True, slots=True)
class CheckRerequested:
    """Somebody pressed "Re-run" on our check run or check suite."""

    where: RepositoryRef
    actor: Actor
    head_sha: str
    pulls: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ButtonPressed:
    """Somebody pressed a button of our check run."""

    where: RepositoryRef
    actor: Actor
    identifier: str
    head_sha: str
    pulls: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MergeGroupRequested:
    """The merge queue requests our check on its head, based on `base_sha`; `head_ref` names a pull request."""

    where: RepositoryRef
    head_sha: str
    base_sha: str = ""
    head_ref: str = ""


@dataclass(frozen=True, slots=True)
class Pushed:
    """A branch moved; `after` is all zeros if it was deleted."""

    where: RepositoryRef
    actor: Actor
    branch: str
    after: str


@dataclass(frozen=True, slots=True)
class InstallationChanged:
    """The App was installed, removed, suspended, granted permissions, or its repositories changed."""

    installation: int
    account: str
    change: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    removed_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RepositoryChanged:
    """A repository was renamed, transferred, archived or deleted; `before` is its old full name."""

    where: RepositoryRef
    change: str
    before: str | None = None


@dataclass(frozen=True, slots=True)
class Pinged:
    """GitHub tests the webhook."""

    zen: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A schedule is due. `bot/jobs/engine.py` makes this event, not GitHub."""

    where: RepositoryRef
    schedule: str
    due: str


Event = (
    PullRequestChanged
    | CommentPosted
    | ThreadChanged
    | PullRequestApproved
    | CheckFailed
    | CheckPassed
    | CheckRerequested
    | ButtonPressed
    | MergeGroupRequested
    | Pushed
    | InstallationChanged
    | RepositoryChanged
    | Pinged
    | Tick
)


# Requests by command or button, named in the imperative; jobs carry them like events.


@dataclass(frozen=True, slots=True)
class CommentRef:
    """The comment with the request, for the reply and the last reaction; `line` is the command's position in it.

    `command` is what was written there, which the reply names; `id` is 0 for a button, which has no comment, and
    `command` is then its label.
    """

    id: int
    review: bool
    line: int = 0
    command: str = ""


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """Review a pull request now; `full`: as if nothing had been posted before."""

    where: RepositoryRef
    number: int
    full: bool
    asked_by: str
    comment: CommentRef | None = None


@dataclass(frozen=True, slots=True)
class FixRequest:
    """Repair what fails on a pull request (at its head `sha`) or, for an issue, on the default branch."""

    where: RepositoryRef
    number: int
    on_pull: bool
    hint: str
    asked_by: str
    comment: CommentRef | None = None
    sha: str = ""


@dataclass(frozen=True, slots=True)
class BisectRequest:
    """Find the commit that broke `test` (default: the configured test command), or made it `slower` times slower.

    On a pull request, only commits up to its head `sha`.
    """

    where: RepositoryRef
    number: int
    good: str | None
    bad: str | None
    test: str | None
    asked_by: str
    comment: CommentRef | None = None
    sha: str = ""
    slower: float | None = None


@dataclass(frozen=True, slots=True)
class NewTestRequest:
    """Propose a test for the uncovered lines of a pull request at its head `sha`."""

    where: RepositoryRef
    number: int
    path: str
    asked_by: str
    comment: CommentRef | None = None
    sha: str = ""


@dataclass(frozen=True, slots=True)
class QuestionRequest:
    """Answer a question about a pull request or issue; an empty question asks for an explanation.

    `thread` is the review comment that the question replies to.
    """

    where: RepositoryRef
    number: int
    on_pull: bool
    question: str
    asked_by: str
    comment: CommentRef | None = None
    thread: int | None = None


@dataclass(frozen=True, slots=True)
class CauseRequest:
    """Say who caused the failure of a commit's checks; `asked_by` is empty where the check `name` failed and nobody asked.

    `number` is 0 where the event names no pull request. `run_id` is the failed workflow run, None for another CI system,
    which is the App `app`.
    """

    where: RepositoryRef
    number: int
    sha: str
    asked_by: str = ""
    comment: CommentRef | None = None
    name: str = ""
    run_id: int | None = None
    app: str = ""


@dataclass(frozen=True, slots=True)
class ProofRequest:
    """Say whether the tests of a pull request at its head `sha` prove its change."""

    where: RepositoryRef
    number: int
    asked_by: str
    comment: CommentRef | None = None
    sha: str = ""


MaintenanceTask = Literal["sandbox", "redeliver", "branches", "prune", "schedules", "digest"]


@dataclass(frozen=True, slots=True)
class Maintenance:
    """One task of maintenance: "redeliver" asks for missed deliveries, "branches" deletes unused ones."""

    task: MaintenanceTask


AnswerRequest = NewTestRequest | QuestionRequest
"""What a model answers in a comment; it waits in line with the reviews."""
WorkRequest = (
    ReviewRequest
    | FixRequest
    | BisectRequest
    | CauseRequest
    | ProofRequest
    | AnswerRequest
    | Maintenance
)
Work = Event | WorkRequest
