"""GitHub for the bot: the values that it reads and writes, and the protocol that adapters satisfy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import Event
from types import MappingProxyType
from typing import Literal, Protocol
from urllib.parse import urlsplit

from regreen.domain.errors import OutsideError, UserError
from regreen.domain.models import Side
from regreen.domain.ports import Mirror

Permission = Literal["none", "read", "triage", "write", "maintain", "admin"]
PERMISSION_LEVELS: tuple[Permission, ...] = ("none", "read", "triage", "write", "maintain", "admin")
Reaction = Literal["eyes", "rocket", "confused", "+1", "-1"]
Conclusion = Literal["success", "neutral", "failure", "skipped"]
AnnotationLevel = Literal["notice", "warning", "failure"]

TokenScope = Mapping[str, str]
"""What an installation token may do: permission name to "read" or "write"."""

READ_SCOPE: TokenScope = MappingProxyType({"contents": "read", "metadata": "read"})
REVIEW_SCOPE: TokenScope = MappingProxyType(
    {"contents": "read", "metadata": "read", "pull_requests": "write", "checks": "write"}
)
ISSUES_SCOPE: TokenScope = MappingProxyType({"metadata": "read", "issues": "read"})
CODE_SCANNING_SCOPE: TokenScope = MappingProxyType({"metadata": "read", "security_events": "write"})
COMMENT_SCOPE: TokenScope = MappingProxyType(
    {
        "contents": "read",
        "metadata": "read",
        "issues": "write",
        "pull_requests": "write",
        "checks": "write",
    }
)
FIX_SCOPE: TokenScope = MappingProxyType(
    {
        "contents": "write",
        "metadata": "read",
        "issues": "write",
        "pull_requests": "write",
        "actions": "read",
        "checks": "write",
    }
)
CAUSE_SCOPE: TokenScope = MappingProxyType(
    {
        "contents": "read",
        "metadata": "read",
        "issues": "write",
        "pull_requests": "write",
        "actions": "read",
        "checks": "write",
    }
)
RERUN_SCOPE: TokenScope = MappingProxyType({"metadata": "read", "actions": "write"})
BISECT_SCOPE: TokenScope = MappingProxyType(
    {
        "contents": "read",
        "metadata": "read",
        "issues": "write",
        "pull_requests": "write",
        "actions": "read",
    }
)


# GitHub treats resolving a thread as writing contents, for Apps:
# https://github.com/orgs/community/discussions/44650
RESOLVE_SCOPE: TokenScope = MappingProxyType(
    {"contents": "write", "metadata": "read", "pull_requests": "write"}
)


@dataclass(frozen=True, slots=True)
class GitHubServer:
    """One GitHub by the address of its REST API: github.com, a tenant of GHE.com, or an Enterprise Server.

    https://docs.github.com/enterprise-cloud@latest/admin/data-residency/network-details-for-ghecom
    """

    api_url: str = "https://api.github.com"

    @property
    def web_url(self) -> str:
        """Where people and git reach it."""
        parts = urlsplit(self.api_url)
        place = parts.netloc.removeprefix("api.")
        has_api_host = place == "github.com" or place.endswith(".ghe.com")
        return f"{parts.scheme}://{place if has_api_host else parts.netloc}"

    @property
    def graphql_url(self) -> str:
        """The address of its GraphQL API."""
        return f"{self.api_url.rstrip('/').removesuffix('/v3')}/graphql"

    def repository_url(self, repo: str) -> str:
        """The page of a repository."""
        return f"{self.web_url}/{repo}"

    def clone_url(self, repo: str) -> str:
        """Where git fetches and pushes a repository; the only host that is sent a token by git."""
        return f"{self.repository_url(repo)}.git"


class NotFound(OutsideError):
    """The object does not exist (any more), or is hidden from us: 404, 410."""


class NotAllowed(OutsideError):
    """The installation has not granted what this needs; the text names the permission."""


class RateLimited(OutsideError):
    """GitHub's limits are reached or near: postpone the work until they allow it. This is no failure."""


class ValidationFailed(UserError):
    """GitHub rejected a write as invalid (422). The text is GitHub's."""


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
class PullRequest:
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

    @property
    def fetch_command(self) -> str:
        """What a clone of the repository lacks to know a fork's commits; "" where it has them."""
        return f"git fetch origin pull/{self.number}/head" if self.fork else ""


def after_fetch(fetch: str, command: str) -> str:
    """A command behind the one that brings its commits to a clone, where that takes one; "" without a command."""
    return f"{fetch} && {command}" if fetch and command else command


@dataclass(frozen=True, slots=True)
class Annotation:
    """An annotation of a check run on lines of a file."""

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
    """The content of a check run. `conclusion` None: still running; `started` None: as GitHub knows it."""

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
    started: datetime | None = None


@dataclass(frozen=True, slots=True)
class InlineComment:
    """A comment of a review; its lines lie inside one hunk of the diff."""

    path: str
    start_line: int
    line: int
    side: Side
    body: str


@dataclass(frozen=True, slots=True)
class FileComment:
    """A comment on a whole file of a pull request; `marker` finds it again."""

    path: str
    marker: str
    body: str


@dataclass(frozen=True, slots=True)
class TreeChange:
    """A file that a commit changes: its mode and bytes, or the submodule's commit; neither: it is deleted."""

    path: str
    mode: str = "100644"
    content: bytes | None = None
    submodule: str = ""


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment as GitHub stores it."""

    id: int
    body: str
    author: str
    html_url: str = ""


@dataclass(frozen=True, slots=True)
class ReviewComment:
    """A comment on a line of a pull request, the one it answers, and the people who put a thumb up or down.

    `path`, `line` (None once the line is gone) and `hunk` (the diff above it) give its place.
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
class ReviewThread:
    """A review thread: its GraphQL id, state, and the first comment."""

    id: str
    resolved: bool
    comments: tuple[Comment, ...]


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """One run of a workflow; `path` is its file. `fork`: its branch belongs to another repository."""

    id: int
    name: str
    path: str
    event: str
    head_sha: str
    head_branch: str
    conclusion: str | None
    attempt: int
    html_url: str = ""
    fork: bool = False


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
    """An account where the App is installed."""

    id: int
    account: str
    suspended: bool


@dataclass(frozen=True, slots=True)
class FailedDelivery:
    """A webhook delivery that failed; `id` is for requesting it again, `guid` is its delivery id.

    `status` is that of the last answer (0: none came), `tries` how often it was sent.
    """

    id: int
    guid: str
    event: str
    at: datetime
    status: int
    tries: int


@dataclass(frozen=True, slots=True)
class SignedInUser:
    """A person who signed in: the readable repositories with the App, each with the person's permission."""

    login: str
    repos: Mapping[str, Permission]


class SignIn(Protocol):
    """Sign-in with GitHub."""

    def address(self, callback: str, state: str) -> str:
        """The address for the browser, which returns to `callback` with a code and `state`."""
        ...

    def person(self, code: str, callback: str) -> SignedInUser:
        """The person who returned with this code.

        Raises:
            UserError: the code is wrong, used or too old.
            OutsideError: GitHub cannot be reached.
        """
        ...


RewriteReview = Callable[[str, str, Mapping[str, str]], str]
"""The new text of a review, from its marker, its text, and the addresses of all of ours by their markers."""


class GitHub(Protocol):
    """One repository on GitHub, with a token for it alone. Writes carry a marker by which they are found again."""

    repo: str
    server: GitHubServer

    def repository(self) -> Repository:
        """The repository, under its present name."""
        ...

    def pull(self, number: int) -> PullRequest:
        """A pull request."""
        ...

    def pulls(self, *, head: str | None = None, head_sha: str | None = None) -> list[PullRequest]:
        """Open pull requests, of one head branch of this repository, or with one head commit."""
        ...

    def file(self, path: str, ref: str) -> bytes | None:
        """A file's bytes at a ref; None where there is none."""
        ...

    def permission(self, login: str) -> Permission:
        """A person's permission in the repository."""
        ...

    def post_comment(self, number: int, marker: str, body: str) -> Comment:
        """Write the comment that carries `marker`, or edit it if it exists."""
        ...

    def reply(self, number: int, comment_id: int, marker: str, body: str) -> Comment:
        """Answer in a review thread, or edit the answer that carries `marker`."""
        ...

    def react(self, comment_id: int, reaction: Reaction, *, review: bool) -> None:
        """Put a reaction on a comment."""
        ...

    def post_check_run(self, check: CheckRun) -> int:
        """Create or update the check run with `external_id`; return its id."""
        ...

    def post_review(
        self, number: int, head_sha: str, marker: str, body: str, comments: Sequence[InlineComment]
    ) -> bool:
        """Post one review pinned to `head_sha`, unless one with `marker` exists; return whether it was posted.

        Raises:
            ValidationFailed: GitHub rejects one of the comments.
        """
        ...

    def rewrite_reviews(self, number: int, rewrite: RewriteReview) -> None:
        """Replace the text of each of our reviews for which `rewrite` returns another one."""
        ...

    def post_file_comment(self, number: int, head_sha: str, comment: FileComment) -> bool:
        """Begin a thread on a file of a pull request, unless one with its marker exists; return whether it was posted.

        Raises:
            ValidationFailed: GitHub rejects it.
        """
        ...

    def threads(self, number: int) -> list[ReviewThread]:
        """The review threads of a pull request."""
        ...

    def review_comments(self, number: int) -> list[ReviewComment]:
        """Every comment on the lines of a pull request; thumbs are only read for our own."""
        ...

    def resolve(self, thread_id: str, *, reopen: bool = False) -> None:
        """Resolve a review thread, or open it again."""
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

    def runs(
        self, branch: str, path: str | None = None, limit: int = 50, *, finished: bool = True
    ) -> list[WorkflowRun]:
        """The completed workflow runs of a branch, newest first."""
        ...

    def rerun_failed_jobs(self, run_id: int) -> None:
        """Run the failed jobs of a completed workflow run once more.

        Raises:
            NotAllowed: the installation has not accepted `actions: write`, or the run cannot be repeated.
        """
        ...

    def create_commit(
        self, parent: str, changes: Sequence[TreeChange], message: str, *, sign_off: bool = False
    ) -> str:
        """Make a commit on `parent`, which GitHub signs for the App; return its id. No branch moves.

        `sign_off`: the message ends with the author's `Signed-off-by:`.
        """
        ...

    def move_branch(self, branch: str, sha: str, *, expect: str | None) -> None:
        """Create a branch, or move it from `expect` to `sha`.

        Raises:
            OutsideError: the branch is not at `expect` (None: does not exist).
        """
        ...

    def open_pull(
        self, *, head: str, base: str, title: str, body: str, draft: bool = True
    ) -> PullRequest:
        """Open a pull request from a branch of this repository, or update the open one."""
        ...

    def delete_branch(self, branch: str, sha: str) -> bool:
        """Delete a branch if its tip is `sha`; return whether it existed."""
        ...

    def close_pull(self, number: int) -> None:
        """Close a pull request."""
        ...

    def find_merged_pull(self, sha: str) -> PullRequest | None:
        """The merged pull request that brought a commit."""
        ...

    def post_issue(self, marker: str, title: str, body: str, labels: Sequence[str] = ()) -> Issue:
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

    def github(self, repo: str, installation: int, scope: TokenScope) -> GitHub:
        """A client for one repository with a token limited to `scope`."""
        ...

    def installation_of(self, repo: str) -> int:
        """The installation that covers a repository.

        Raises:
            NotFound: the App is not installed there.
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


class Mirrors(Protocol):
    """Local copies of repositories, one for each repository id."""

    def fetch(
        self,
        github: GitHub,
        repository: Repository,
        refs: Sequence[str] = (),
        cancel: Event | None = None,
    ) -> Mirror:
        """The repository, brought up to date; `refs` besides branches and tags ("refs/pull/7/head").

        `cancel` ends the fetch and every later git command of the result.

        Raises:
            Cancelled: `cancel` was set.
            OutsideError: GitHub cannot be reached, refuses, or takes too long.
        """
        ...

    def remove(self, repository_id: int) -> None:
        """Delete the copy of a repository that we may no longer read."""
        ...

    def remove_unused(self, now: datetime) -> int:
        """Delete the copies that no job has used for long; return how many."""
        ...
