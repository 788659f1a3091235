"""`mode: observe`: a client that keeps what a job would write to GitHub for the dashboard, and writes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from regreen.domain.errors import UserError
from regreen.domain.github import CheckRun, Comment, FileComment, GitHub, InlineComment, Issue

KeepWrite = Callable[[str, str, str], None]
"""Keeps what was not written: what it is, a key that finds an earlier version again, and its text."""
READS = frozenset(
    {
        "repo",
        "server",
        "repository",
        "pull",
        "pulls",
        "file",
        "permission",
        "threads",
        "review_comments",
        "workflow_run",
        "jobs",
        "job_log",
        "runs",
        "find_merged_pull",
        "find_issue",
        "issue_text",
    }
)
"""What a client offers that changes nothing on GitHub."""

_NOTHING_PUSHED = "Regreen only observes this repository: nothing was pushed"


class OnlyObserved(UserError):
    """Regreen only observes this repository, so nothing is pushed there."""


def observe_writes(
    client: GitHub,
    observes: Callable[[], bool],
    read_only: Callable[[], GitHub],
    keep: KeepWrite,
    *,
    author: str,
) -> GitHub:
    """A client whose writes are kept instead of made where `observes` says so, which is asked before the first one.

    Args:
        client: reads, and writes where that is wanted.
        observes: whether the repository is only observed.
        read_only: a client whose token may only read: what git is given then.
        keep: keeps a write for the dashboard.
        author: who the answers name.
    """
    return cast("GitHub", _ObservedClient(client, observes, read_only, keep, author))


@dataclass(frozen=True, eq=False)
class _ObservedClient:
    """Reads go through; each method of the protocol that writes has a stand-in below."""

    client: GitHub
    observes: Callable[[], bool]
    read_only: Callable[[], GitHub]
    keep: KeepWrite
    author: str

    @cached_property
    def is_observed(self) -> bool:
        return self.observes()

    def __getattr__(self, name: str) -> Any:
        if name not in READS and self.is_observed:
            return getattr(WithheldWrites(self.read_only, self.keep, self.author), name)
        return getattr(self.client, name)


def is_observed(github: GitHub) -> bool:
    """Whether this client writes nothing."""
    return isinstance(github, _ObservedClient) and github.is_observed


@dataclass(frozen=True)
class WithheldWrites:
    """The writing half of `GitHub`: every text is kept, nothing is written."""

    _read_only: Callable[[], GitHub]
    _keep: KeepWrite
    _author: str

    def token(self) -> str:
        """A token that may only read."""
        return self._read_only().token()

    def post_comment(self, number: int, marker: str, body: str) -> Comment:
        """Keep a comment."""
        self._keep(f"comment on #{number}", marker, body)
        return Comment(0, body, self._author)

    def reply(self, number: int, comment_id: int, marker: str, body: str) -> Comment:
        """Keep an answer in a thread."""
        self._keep(f"answer to comment {comment_id} of #{number}", marker, body)
        return Comment(0, body, self._author)

    def react(self, *_: object, **_options: object) -> None:
        """Leave a reaction out."""

    def post_check_run(self, check: CheckRun) -> int:
        """Keep a check run."""
        title = f"check run {check.name}: {check.conclusion or 'running'}"
        text = f"{check.title}\n\n{check.summary}\n\n{check.text}".strip()
        self._keep(title, check.external_id, text)
        return 0

    def post_review(
        self,
        number: int,
        head_sha: str,
        marker: str,
        body: str,
        comments: tuple[InlineComment, ...],
    ) -> bool:
        """Keep a review with its comments."""
        lines = [f"{one.path}:{one.line}\n\n{one.body}" for one in comments]
        title = f"review of #{number} at {head_sha[:12]}"
        self._keep(title, marker, "\n\n---\n\n".join([body, *lines]))
        return True

    def rewrite_reviews(self, *_: object) -> None:
        """Leave earlier reviews as they are."""

    def post_file_comment(self, number: int, head_sha: str, comment: FileComment) -> bool:
        """Keep a comment on a file."""
        title = f"comment on {comment.path} of #{number} at {head_sha[:12]}"
        self._keep(title, comment.marker, comment.body)
        return True

    def post_issue(self, marker: str, title: str, body: str, *_: object) -> Issue:
        """Keep an issue."""
        self._keep(f"issue: {title}", marker, body)
        return Issue(0, title, body, "open")

    def resolve(self, *_: object, reopen: bool = False) -> None:
        """Leave a thread as it is."""

    def rerun_failed_jobs(self, run_id: int) -> None:
        """Keep that the failed jobs of a run would run again."""
        self._keep(f"failed jobs of run {run_id} would run again", f"rerun-{run_id}", "")

    def delete_branch(self, *_: object) -> bool:
        """Leave a branch."""
        return False

    def close_pull(self, number: int) -> None:
        """Leave a pull request open."""
        self._keep(f"#{number} would be closed", f"close-{number}", "")

    def close_issue(self, number: int) -> None:
        """Leave an issue open."""
        self._keep(f"issue #{number} would be closed", f"close-{number}", "")

    def upload_sarif(self, *_: object) -> None:
        """Leave code scanning alone."""

    def create_commit(self, *_: object, **_options: object) -> str:
        """Refuse to commit.

        Raises:
            OnlyObserved: always.
        """
        raise OnlyObserved(_NOTHING_PUSHED)

    def move_branch(self, *_: object, **_options: object) -> None:
        """Refuse to move a branch.

        Raises:
            OnlyObserved: always.
        """
        raise OnlyObserved(_NOTHING_PUSHED)

    def open_pull(self, *, head: str, title: str, body: str, **_: object) -> None:
        """Keep a pull request; the flow ends here.

        Raises:
            OnlyObserved: always.
        """
        self._keep(f"draft pull request: {title}", head, body)
        raise OnlyObserved(_NOTHING_PUSHED)
