"""What a GitHub is made of: users, repositories, pulls, checks, runs, Apps. Plain records that change over time."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from regreen_playground.gitstore import GitStore

Json = dict[str, object]
Level = Literal["none", "read", "triage", "write", "maintain", "admin"]
LEVELS: tuple[Level, ...] = ("none", "read", "triage", "write", "maintain", "admin")
REACTIONS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")


@dataclass(eq=False, slots=True)
class User:
    """A person, an organisation, or an App's bot account."""

    id: int
    login: str
    type: Literal["User", "Organization", "Bot"]
    name: str
    email: str
    token: str
    created: datetime


@dataclass(eq=False, slots=True)
class Reaction:
    """One emoji somebody left."""

    id: int
    user: User
    content: str
    created: datetime


@dataclass(eq=False, slots=True)
class Label:
    """A repository's label."""

    id: int
    name: str
    color: str = "ededed"
    description: str | None = None


@dataclass(eq=False, slots=True)
class Comment:
    """A comment under an issue or a pull request."""

    id: int
    user: User
    body: str
    created: datetime
    updated: datetime
    app: App | None = None
    reactions: list[Reaction] = field(default_factory=list)
    minimized: str | None = None


@dataclass(eq=False, slots=True)
class Issue:
    """An issue, or the issue half of a pull request (`pull` says which)."""

    id: int
    number: int
    repository: Repository
    title: str
    body: str | None
    user: User
    created: datetime
    updated: datetime
    app: App | None = None
    state: Literal["open", "closed"] = "open"
    state_reason: str | None = None
    closed: datetime | None = None
    closed_by: User | None = None
    locked: bool = False
    labels: list[Label] = field(default_factory=list)
    assignees: list[User] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    reactions: list[Reaction] = field(default_factory=list)
    pull: Pull | None = None


@dataclass(eq=False, slots=True)
class ReviewComment:
    """A comment on lines of a pull request's diff. `line` is None once a push made it outdated."""

    id: int
    user: User
    body: str
    path: str
    subject: Literal["line", "file"]
    side: str
    line: int | None
    start_side: str | None
    start_line: int | None
    original_line: int | None
    original_start_line: int | None
    position: int | None
    original_position: int | None
    hunk: str
    commit: str
    original_commit: str
    review_id: int
    created: datetime
    updated: datetime
    reply_to: int | None = None
    reactions: list[Reaction] = field(default_factory=list)
    minimized: str | None = None


@dataclass(eq=False, slots=True)
class Thread:
    """A conversation on one place of a diff."""

    id: int
    comments: list[ReviewComment]
    resolved_by: User | None = None

    @property
    def outdated(self) -> bool:
        """The lines it speaks of are no longer in the diff."""
        first = self.comments[0]
        return first.subject == "line" and first.line is None


@dataclass(eq=False, slots=True)
class Review:
    """One submitted (or pending) review."""

    id: int
    user: User
    body: str
    state: str
    commit: str
    submitted: datetime | None
    app: App | None = None


@dataclass(eq=False, slots=True)
class Pull:
    """The pull half of a pull request; its conversation is in `issue`."""

    id: int
    issue: Issue
    base: Repository
    base_ref: str
    base_sha: str
    head: Repository
    head_ref: str
    head_sha: str
    draft: bool = False
    maintainer_can_modify: bool = False
    merged: datetime | None = None
    merged_by: User | None = None
    merge_commit: str | None = None
    reviewers: list[User] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)
    threads: list[Thread] = field(default_factory=list)

    @property
    def number(self) -> int:
        """Its number in the repository."""
        return self.issue.number


@dataclass(eq=False, slots=True)
class CheckSuite:
    """All check runs of one App on one commit."""

    id: int
    app: App
    head_sha: str
    head_branch: str | None
    before: str | None
    created: datetime
    updated: datetime
    status: str = "queued"
    conclusion: str | None = None
    runs: list[CheckRun] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class CheckRun:
    """One check on a commit, with its report."""

    id: int
    suite: CheckSuite
    name: str
    status: str
    conclusion: str | None
    started: datetime
    completed: datetime | None
    external_id: str | None = None
    details_url: str | None = None
    title: str | None = None
    summary: str | None = None
    text: str | None = None
    annotations: list[Json] = field(default_factory=list)
    actions: list[Json] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Status:
    """A commit status, the older kind of check."""

    id: int
    sha: str
    context: str
    state: str
    description: str | None
    target_url: str | None
    user: User
    created: datetime


@dataclass(eq=False, slots=True)
class Step:
    """One step of a job, as GitHub reports it."""

    number: int
    name: str
    conclusion: str
    started: datetime
    completed: datetime


@dataclass(eq=False, slots=True)
class Job:
    """One job of a workflow run, with its log."""

    id: int
    run: WorkflowRun
    name: str
    attempt: int
    check: CheckRun
    created: datetime
    started: datetime
    status: str = "in_progress"
    conclusion: str | None = None
    completed: datetime | None = None
    labels: tuple[str, ...] = ("ubuntu-latest",)
    steps: list[Step] = field(default_factory=list)
    log: bytes = b""


@dataclass(eq=False, slots=True)
class Workflow:
    """A workflow file."""

    id: int
    name: str
    path: str
    created: datetime


@dataclass(eq=False, slots=True)
class WorkflowRun:
    """One run of a workflow on a commit."""

    id: int
    workflow: Workflow
    number: int
    event: str
    head_sha: str
    head_branch: str
    head: Repository
    actor: User
    suite: CheckSuite
    created: datetime
    updated: datetime
    attempt: int = 1
    status: str = "queued"
    conclusion: str | None = None
    jobs: list[Job] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Upload:
    """One SARIF file that was uploaded."""

    id: str
    commit: str
    ref: str
    document: Json
    created: datetime


@dataclass(eq=False, slots=True)
class Repository:
    """A repository: its git objects are a real bare repository."""

    id: int
    owner: User
    name: str
    git: GitStore
    private: bool
    default_branch: str
    created: datetime
    description: str | None = None
    parent: Repository | None = None
    archived: bool = False
    collaborators: dict[str, Level] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    issues: dict[int, Issue] = field(default_factory=dict)
    suites: list[CheckSuite] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)
    workflows: dict[str, Workflow] = field(default_factory=dict)
    runs: list[WorkflowRun] = field(default_factory=list)
    uploads: list[Upload] = field(default_factory=list)

    @property
    def full_name(self) -> str:
        """OWNER/NAME."""
        return f"{self.owner.login}/{self.name}"

    @property
    def pulls(self) -> dict[int, Pull]:
        """The pull requests by number."""
        return {n: issue.pull for n, issue in self.issues.items() if issue.pull is not None}

    def pulls_merged_issues(self) -> list[Issue]:
        """The issue halves of merged pulls: their authors are contributors."""
        return [pull.issue for pull in self.pulls.values() if pull.merged is not None]


@dataclass(eq=False, slots=True)
class App:
    """A registered GitHub App. `public_key` and `private_key` are PEM; GitHub keeps only the first."""

    id: int
    slug: str
    name: str
    owner: User
    bot: User
    client_id: str
    permissions: dict[str, str]
    events: tuple[str, ...]
    hook_url: str
    secret: str
    public_key: bytes
    created: datetime
    deliveries: list[Delivery] = field(default_factory=list)
    client_secret: str = ""


@dataclass(eq=False, slots=True)
class Installation:
    """An App on an account; `repositories` None means all of them."""

    id: int
    app: App
    account: User
    repositories: set[int] | None
    permissions: dict[str, str]
    created: datetime
    suspended: datetime | None = None

    def covers(self, repository: Repository) -> bool:
        """Whether the App is installed on this repository."""
        if self.account is not repository.owner:
            return False
        return self.repositories is None or repository.id in self.repositories


@dataclass(eq=False, slots=True)
class Token:
    """An installation access token; dies at `expires`."""

    text: str
    installation: Installation
    permissions: dict[str, str]
    repositories: set[int] | None
    expires: datetime

    def covers(self, repository: Repository) -> bool:
        """Whether it was made for this repository."""
        inside = self.repositories is None or repository.id in self.repositories
        return inside and self.installation.covers(repository)


@dataclass(eq=False, slots=True)
class Delivery:
    """One attempt (or intention) to deliver a webhook. A redelivery has a new id and the same guid."""

    id: int
    guid: str
    app: App
    event: str
    action: str | None
    body: bytes
    installation_id: int | None
    repository_id: int | None
    created: datetime
    redelivery: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    status_code: int = 0
    status: str = "pending"
    duration: float = 0.0
    response_headers: dict[str, str] = field(default_factory=dict)
    response: str = ""
