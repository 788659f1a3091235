"""GitHub as the bot sees it: the values it reads and writes there, and the protocol that adapters satisfy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Literal, Protocol

from regreen.errors import OutsideError, UserError
from regreen.models import Side

Permission = Literal["none", "read", "triage", "write", "maintain", "admin"]
PERMISSIONS: tuple[Permission, ...] = ("none", "read", "triage", "write", "maintain", "admin")
Reaction = Literal["eyes", "rocket", "confused", "+1", "-1"]
Conclusion = Literal["success", "neutral", "failure", "skipped"]
AnnotationLevel = Literal["notice", "warning", "failure"]

Scope = Mapping[str, str]
"""What an installation token may do: permission name to "read" or "write"."""

READ: Scope = MappingProxyType({"contents": "read", "metadata": "read"})
REVIEW: Scope = MappingProxyType(
    {"contents": "read", "metadata": "read", "pull_requests": "write", "checks": "write"}
)
ISSUES: Scope = MappingProxyType({"metadata": "read", "issues": "read"})
CODE_SCANNING: Scope = MappingProxyType({"metadata": "read", "security_events": "write"})
TALK: Scope = MappingProxyType(
    {
        "contents": "read",
        "metadata": "read",
        "issues": "write",
        "pull_requests": "write",
        "checks": "write",
    }
)
FIX: Scope = MappingProxyType(
    {
        "contents": "write",
        "metadata": "read",
        "issues": "write",
        "pull_requests": "write",
        "actions": "read",
        "checks": "write",
    }
)
BISECT: Scope = MappingProxyType(
    {
        "contents": "read",
        "metadata": "read",
        "issues": "write",
        "pull_requests": "write",
        "actions": "read",
    }
)


# GitHub counts the resolving of a thread as writing contents, for Apps:
# https://github.com/orgs/community/discussions/44650
RESOLVE: Scope = MappingProxyType(
    {"contents": "write", "metadata": "read", "pull_requests": "write"}
)


class Gone(OutsideError):
    """What was asked for is not there (any more), or hidden from us: 404, 410."""


class NotAllowed(OutsideError):
    """The installation has not granted what this needs; the text names the permission."""


class Paced(OutsideError):
    """GitHub's limits, reached or kept away from: put off until they allow it. That is no failure."""


class Refused(UserError):
    """GitHub says that a write is not valid (422). The text is GitHub's."""


@dataclass(frozen=True, slots=True)
class Repository:
    """One repository."""

    full_name: str
    id: int
    default_branch: str
    clone_url: str
    private: bool = False
    archived: bool = False
    html_url: str = ""


@dataclass(frozen=True, slots=True)
class Pull:
    """One pull request as it is now."""

    number: int
    title: str
    body: str
    state: Literal["open", "closed"]
    draft: bool
    merged: bool
    author: str
    author_is_bot: bool
    head_sha: str
    head_ref: str
    base_sha: str
    base_ref: str
    fork: bool
    html_url: str = ""


@dataclass(frozen=True, slots=True)
class Annotation:
    """A remark of a check run at lines of a file."""

    path: str
    start_line: int
    end_line: int
    level: AnnotationLevel
    title: str
    message: str


@dataclass(frozen=True, slots=True)
class Button:
    """A button of a check run: label <= 20 characters, description <= 40, identifier <= 20."""

    label: str
    description: str
    identifier: str


@dataclass(frozen=True, slots=True)
class CheckRun:
    """What a check run shows. `conclusion` None: still running."""

    name: str
    head_sha: str
    external_id: str
    title: str
    summary: str
    conclusion: Conclusion | None = None
    text: str = ""
    annotations: tuple[Annotation, ...] = ()
    buttons: tuple[Button, ...] = ()
    details_url: str = ""


@dataclass(frozen=True, slots=True)
class InlineComment:
    """A comment of a review; its lines lie inside one hunk of the diff."""

    path: str
    start_line: int
    line: int
    side: Side
    body: str


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment as GitHub keeps it."""

    id: int
    body: str
    author: str
    html_url: str = ""


@dataclass(frozen=True, slots=True)
class Remark:
    """A comment on a line of a pull request, the one it answers, and who put a thumb up or down.

    `path`, `line` (None once the line is gone) and `hunk` (the diff above it) say where it stands.
    """

    id: int
    body: str
    author: str
    by_bot: bool
    ours: bool
    reply_to: int | None
    up: tuple[str, ...] = ()
    down: tuple[str, ...] = ()
    path: str = ""
    line: int | None = None
    hunk: str = ""


@dataclass(frozen=True, slots=True)
class Thread:
    """A review thread: its GraphQL id, state, and the first comment."""

    id: str
    resolved: bool
    comments: tuple[Comment, ...]


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """One run of a workflow; `path` is its file."""

    id: int
    name: str
    path: str
    event: str
    head_sha: str
    head_branch: str
    conclusion: str | None
    attempt: int
    html_url: str = ""


@dataclass(frozen=True, slots=True)
class WorkflowStep:
    """One step of a job as GitHub ran it."""

    number: int
    name: str
    conclusion: str | None


@dataclass(frozen=True, slots=True)
class WorkflowJob:
    """One job of a workflow run."""

    id: int
    name: str
    conclusion: str | None
    steps: tuple[WorkflowStep, ...]
    html_url: str = ""


@dataclass(frozen=True, slots=True)
class Issue:
    """One issue."""

    number: int
    title: str
    body: str
    state: str
    html_url: str = ""


@dataclass(frozen=True, slots=True)
class Installation:
    """Where the App is installed."""

    id: int
    account: str
    suspended: bool


@dataclass(frozen=True, slots=True)
class FailedDelivery:
    """A webhook delivery that GitHub could not bring; `id` asks for it again, `guid` is its delivery id.

    `status` is the last answer's (0: none came), `tries` how often it was sent.
    """

    id: int
    guid: str
    event: str
    at: datetime
    status: int
    tries: int


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who signed in: the repositories that they may read and the App is installed on, with their right."""

    login: str
    repos: Mapping[str, Permission]


class SignIn(Protocol):
    """Signing people in with GitHub."""

    def address(self, callback: str, state: str) -> str:
        """Where to send the browser; it comes back to `callback` with a code and `state`."""
        ...

    def person(self, code: str, callback: str) -> Person:
        """Who came back with this code.

        Raises:
            UserError: the code is wrong, used up or too old.
            OutsideError: GitHub cannot be reached.
        """
        ...


class GitHub(Protocol):
    """One repository on GitHub, with a token for it alone. Writes are found again by their marker."""

    repo: str

    def repository(self) -> Repository:
        """The repository, under its present name."""
        ...

    def pull(self, number: int) -> Pull:
        """A pull request."""
        ...

    def pulls(self, *, head: str | None = None, head_sha: str | None = None) -> list[Pull]:
        """Open pull requests, of one head branch of this repository, or with one head commit."""
        ...

    def file(self, path: str, ref: str) -> bytes | None:
        """A file's bytes at a ref; None where there is none."""
        ...

    def permission(self, login: str) -> Permission:
        """What somebody may do in the repository."""
        ...

    def comment(self, number: int, marker: str, body: str) -> Comment:
        """Write the comment that carries `marker`, or edit it where it is there."""
        ...

    def reply(self, number: int, comment_id: int, marker: str, body: str) -> Comment:
        """Answer in a review thread, or edit the answer that carries `marker`."""
        ...

    def react(self, comment_id: int, reaction: Reaction, *, review: bool) -> None:
        """Put a reaction on a comment."""
        ...

    def check_run(self, check: CheckRun) -> int:
        """Make the check run with `external_id`, or bring it up to date; its id."""
        ...

    def review(
        self, number: int, head_sha: str, marker: str, body: str, comments: Sequence[InlineComment]
    ) -> None:
        """Post one review pinned to `head_sha`, unless one with `marker` is there.

        Raises:
            Refused: GitHub does not accept one of the comments.
        """
        ...

    def threads(self, number: int) -> list[Thread]:
        """The review threads of a pull request."""
        ...

    def remarks(self, number: int) -> list[Remark]:
        """Every comment on the lines of a pull request; thumbs are read on our own."""
        ...

    def resolve(self, thread_id: str) -> None:
        """Resolve a review thread."""
        ...

    def workflow_run(self, run_id: int) -> WorkflowRun:
        """One run of a workflow."""
        ...

    def jobs(self, run_id: int) -> list[WorkflowJob]:
        """The jobs of a run's latest attempt."""
        ...

    def job_log(self, job_id: int, limit: int = 16 * 1024 * 1024) -> bytes:
        """A job's log, its last `limit` bytes."""
        ...

    def runs(self, branch: str, path: str | None = None, limit: int = 50) -> list[WorkflowRun]:
        """The completed workflow runs of a branch, newest first."""
        ...

    def open_pull(self, *, head: str, base: str, title: str, body: str, draft: bool = True) -> Pull:
        """Open a pull request from a branch of this repository, or bring the open one up to date."""
        ...

    def delete_branch(self, branch: str, sha: str) -> bool:
        """Delete a branch if it still stands at `sha`; whether it was there."""
        ...

    def close_pull(self, number: int) -> None:
        """Close a pull request."""
        ...

    def issue(self, marker: str, title: str, body: str, labels: Sequence[str] = ()) -> Issue:
        """Open the issue that carries `marker`, or edit the open one that does."""
        ...

    def find_issue(self, marker: str) -> Issue | None:
        """The open issue that carries `marker`."""
        ...

    def close_issue(self, number: int) -> None:
        """Close an issue."""
        ...

    def issue_text(self, number: int) -> Issue:
        """An issue (or a pull request as an issue)."""
        ...

    def upload_sarif(self, commit: str, ref: str, sarif: str) -> None:
        """Hand a SARIF document to code scanning."""
        ...

    def token(self) -> str:
        """The installation token, for git over HTTPS only."""
        ...


class App(Protocol):
    """The App itself: its installations and its missed deliveries."""

    @property
    def slug(self) -> str:
        """The App's name in URLs; it writes as `SLUG[bot]`."""
        ...

    def github(self, repo: str, installation: int, scope: Scope) -> GitHub:
        """A client for one repository whose token can do no more than `scope`."""
        ...

    def installation_of(self, repo: str) -> int:
        """The installation that covers a repository.

        Raises:
            Gone: the App is not installed there.
        """
        ...

    def repositories(self, installation: int) -> list[Repository]:
        """The repositories that an installation covers."""
        ...

    def installations(self) -> list[Installation]:
        """Every installation."""
        ...

    def failed_deliveries(self, since: datetime) -> list[FailedDelivery]:
        """Deliveries that failed and have not succeeded since, oldest first."""
        ...

    def redeliver(self, delivery: FailedDelivery) -> None:
        """Ask GitHub to deliver once more."""
        ...
