"""Decides which commits may be set up and run, whom their environments serve, and which commit a command means."""

from __future__ import annotations

from dataclasses import dataclass

from regreen.bot.jobs.serialization import deserialize_work
from regreen.domain.errors import UserError
from regreen.domain.events import CommentPosted, PullRequestChanged
from regreen.domain.github import PullRequest, Repository
from regreen.domain.models import Trust
from regreen.domain.ports import Mirror
from regreen.domain.records import JobRecord, Store
from regreen.domain.state_records import Approval

FORK_WAITS = "before a person with write access has read it"
"""What each text says of a commit that waits for `/approve`."""


@dataclass(frozen=True, slots=True)
class Clearance:
    """Permission to set up and run commits: `trust` and `scope` say whom the prepared environments serve.

    Only this module makes one, and nothing that runs a repository's code is built without one.
    """

    trust: Trust
    scope: str


class NotCleared(UserError):
    """Nobody with write access has approved this commit; the text says how to do that."""


def record_approval(store: Store, repo: str, number: int, sha: str, login: str) -> None:
    """Record that somebody with write access approves this commit of a pull request."""
    store.save(Approval(repo, number, sha, login))


def require_clearance(
    store: Store,
    git: Mirror,
    repository: Repository,
    pull: PullRequest | None,
    *revisions: str,
    patched: bool = False,
) -> Clearance:
    """Decide whether these commits may be set up and run. Every flow that runs untrusted code calls this first.

    A commit on a branch or tag of the repository was pushed by somebody with write access. Any other commit is
    a stranger's and needs an approval (`approve`) on its pull request.

    `pull` is the pull request of the work, None for a branch of the repository. `revisions` are all that
    will be run, without ancestors of others. `patched`: trees that were changed here will be run too.

    Raises:
        NotCleared: a commit is a stranger's, and nobody has approved it.
        UserError: a revision is unknown.
    """
    name = repository.full_name
    shas = [git.resolve(revision) for revision in revisions]
    for sha in shas:
        number = pull.number if pull else 0
        if not git.is_on_branch(sha) and not store.find(
            Approval, repo=name, number=number, sha=sha
        ):
            msg = (
                f"{sha[:12]} is on no branch of this repository, so its code is not run {FORK_WAITS} "
                "and says `/approve` on its pull request"
            )
            raise NotCleared(msg)
    if pull is not None:
        return Clearance("pull_request", f"{name}/fork/{pull.number}" if pull.fork else name)
    main = git.resolve(f"refs/heads/{repository.default_branch}")
    if patched or not all(git.is_ancestor(sha, main) for sha in shas):
        return Clearance("pull_request", f"{name}/repair" if patched else name)
    return Clearance("default_branch", name)


def refuse_command_for_old_head(command: str, commit: str, pull: PullRequest) -> None:
    """Refuse a command that was given for a commit other than the pull request's present head.

    `commit` is the one that the command was given for; "" if unknown.

    Raises:
        UserError: the commits differ; the text names both and says how to go on.
    """
    if commit == pull.head_sha:
        return
    was = f"was given for {commit[:12]}" if commit else "came while the pull request was changed"
    how = f"say `/approve {pull.head_sha[:12]}`" if command == "approve" else "give it again"
    msg = f"`/{command}` {was}, and the head is {pull.head_sha[:12]} now: look at that commit and {how}"
    raise UserError(msg)


def find_head_seen_by_author(
    store: Store, record: JobRecord, event: CommentPosted, head: str
) -> str:
    """The head that the author of a comment saw; "" if unknown.

    That is the newest head of which GitHub told us before the comment arrived, unless it is younger than the comment.
    `head` is the present one, and the result if GitHub told us of none.
    """
    known = [
        ((change.at, past.created), change.head_sha)
        for past in store.jobs(kinds=("review",), repo=record.repo, number=event.number)
        if isinstance(change := deserialize_work(past.event), PullRequestChanged)
    ]
    earlier = [
        (when, sha)
        for when, sha in known
        if when[1] <= record.created and (not event.at or when[0] <= event.at)
    ]
    if not earlier:
        return "" if known else head
    newest = max(when for when, _ in earlier)
    heads = [sha for when, sha in earlier if when == newest]
    return head if head in heads else heads[0]
