"""What can happen on GitHub that concerns us: a closed union, in the past tense."""

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
class Where:
    """The repository an event belongs to. `installation` is 0 where the payload does not say."""

    repo: str
    repo_id: int
    installation: int
    default_branch: str = "main"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did it."""

    login: str
    is_bot: bool


@dataclass(frozen=True, slots=True)
class PullRequestChanged:
    """A pull request was opened, pushed to, retitled, drafted or closed."""

    where: Where
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


@dataclass(frozen=True, slots=True)
class CommentPosted:
    """Somebody wrote on an issue, a pull request or a line of one. `review` comments answer with a reply."""

    where: Where
    actor: Actor
    number: int
    on_pull: bool
    review: bool
    comment_id: int
    body: str
    association: str
    edited: bool
    reply_to: int | None = None


@dataclass(frozen=True, slots=True)
class ThreadChanged:
    """A review thread was resolved or opened again; `comments` are the ids in it."""

    where: Where
    actor: Actor
    number: int
    comments: tuple[int, ...]
    resolved: bool


@dataclass(frozen=True, slots=True)
class CheckFailed:
    """CI went red. `run_id` is the workflow run, None for a check run of another CI system, which is the App `app`."""

    where: Where
    actor: Actor
    name: str
    head_sha: str
    head_branch: str
    run_id: int | None
    attempt: int
    pulls: tuple[int, ...]
    fork: bool = False
    app: str = ""


@dataclass(frozen=True, slots=True)
class CheckPassed:
    """A workflow run went green."""

    where: Where
    name: str
    head_sha: str
    head_branch: str


@dataclass(frozen=True, slots=True)
class CheckRerequested:
    """Somebody pressed "re-run" on our check run or check suite."""

    where: Where
    actor: Actor
    head_sha: str
    pulls: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ButtonPressed:
    """Somebody pressed one of our check run's buttons."""

    where: Where
    actor: Actor
    identifier: str
    head_sha: str
    pulls: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MergeGroupRequested:
    """The merge queue wants our check on its own head."""

    where: Where
    head_sha: str


@dataclass(frozen=True, slots=True)
class Pushed:
    """A branch moved; `after` is all zeros where it was deleted."""

    where: Where
    actor: Actor
    branch: str
    after: str


@dataclass(frozen=True, slots=True)
class InstallationChanged:
    """The App was installed, removed, suspended, given permissions, or its repositories changed."""

    installation: int
    account: str
    change: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RepositoryChanged:
    """A repository was renamed, transferred, archived or deleted; `before` is its old full name."""

    where: Where
    change: str
    before: str | None = None


@dataclass(frozen=True, slots=True)
class Pinged:
    """GitHub tries the webhook."""

    zen: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A schedule is due. Not from GitHub: `bot/schedule.py` makes it."""

    where: Where
    schedule: str
    due: str


Event = (
    PullRequestChanged
    | CommentPosted
    | ThreadChanged
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
