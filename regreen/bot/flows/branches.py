"""Our branches on GitHub: recorded before the push, and deleted if no pull request is opened for them."""

from __future__ import annotations

import logging

from regreen.bot.jobs.runner import Job
from regreen.bot.observe import OnlyObserved, is_observed
from regreen.bot.services import Services
from regreen.domain.errors import OutsideError, UserError
from regreen.domain.events import RepositoryRef
from regreen.domain.github import FIX_SCOPE, GitHub, NotFound, PullRequest, TreeChange
from regreen.domain.ports import Mirror
from regreen.domain.state_records import PushedCommits, UnclaimedBranch
from regreen.secrets.markdown_sanitizer import count_noun

_MAX_PUSHED_COMMITS = 20  # how many of our commits are remembered for a branch
_LIVE_STATES = frozenset({"waiting", "running"})

_log = logging.getLogger(__name__)


class BranchTaken(UserError):
    """Somebody has changed our branch or pull request, so it stays as it is; the text says how."""


def branch_tip(git: Mirror, branch: str) -> str | None:
    """The commit at the tip of a branch; None if the branch does not exist."""
    try:
        return git.resolve(f"refs/heads/{branch}")
    except UserError:
        return None


def is_our_branch(services: Services, repo: str, branch: str, sha: str | None) -> bool:
    """Whether our branch with the tip `sha` (None: deleted) holds only commits that we pushed."""
    return sha is None or sha in _pushed_commits(services, repo, branch)


def _pushed_commits(services: Services, repo: str, branch: str) -> tuple[str, ...]:
    known = services.store.find(PushedCommits, repo=repo, branch=branch)
    return known.commits if known else ()


def push_branch(
    services: Services,
    job: Job,
    git: Mirror,
    commit: str,
    branch: str,
    *,
    github: GitHub,
    sign_off: bool = False,
    message: str = "",
) -> None:
    """Put a commit of ours on a branch of ours, made by GitHub, which signs it.

    The branch is recorded first, so that a failed job does not leak it.

    Raises:
        BranchTaken: somebody else has pushed there.
        OnlyObserved: nothing may be written to the repository.
        OutsideError: the branch has moved since `git` was fetched, or GitHub fails.
    """
    tip = branch_tip(git, branch)
    if not is_our_branch(services, github.repo, branch, tip):
        msg = f"{branch} has commits that Regreen did not push, so nothing was pushed there"
        raise BranchTaken(msg)
    record, (parent, *_) = job.record, git.commit(commit).parents
    changes = _list_changes(git, commit)
    sha = github.create_commit(parent, changes, message or git.message(commit), sign_off=sign_off)
    services.store.save(UnclaimedBranch(github.repo, branch, record.id, record.installation, sha))
    pushed = (*_pushed_commits(services, github.repo, branch), sha)
    services.store.save(PushedCommits(github.repo, branch, pushed[-_MAX_PUSHED_COMMITS:]))
    github.move_branch(branch, sha, expect=tip)


def _list_changes(git: Mirror, commit: str) -> list[TreeChange]:
    """What a commit changes against its parent."""
    entries = {entry.path: entry for entry in git.tree(commit)}
    changed = {path: entries.get(path) for path in git.changed_paths(commit)}
    files = [e for e in changed.values() if e is not None and e.mode != "160000"]
    content = dict(zip((e.path for e in files), git.blobs([e.sha for e in files]), strict=True))
    return [
        TreeChange(path)
        if entry is None
        else TreeChange(path, entry.mode, content.get(path), "" if path in content else entry.sha)
        for path, entry in changed.items()
    ]


def release_branch(services: Services, repo: str, pull: PullRequest) -> None:
    """Forget a branch that has a pull request now: it is not ours alone any more."""
    services.store.remove(UnclaimedBranch, repo=repo, branch=pull.head_ref)


def delete_leftover_branches(services: Services, job_id: str | None = None) -> str:
    """Delete the branches without a pull request that a job (default: any ended job) left behind.

    A branch that somebody else has pushed to stays.
    """
    taken = 0
    for left in services.store.find_all(UnclaimedBranch):
        if job_id is None:
            job = services.store.job(left.job)
            is_left = job is None or job.state not in _LIVE_STATES
        else:
            is_left = left.job == job_id
        if not is_left:
            continue
        try:
            taken += _delete_branch(services, left)
        except (OutsideError, UserError) as error:
            _log.warning(
                "the branch %s of %s is not deleted yet: %s", left.branch, left.repo, error
            )
        else:
            services.store.remove(UnclaimedBranch, repo=left.repo, branch=left.branch)
    return "removed " + count_noun(taken, "stale branch", "stale branches")


def _delete_branch(services: Services, left: UnclaimedBranch) -> bool:
    try:
        github = services.github_client(RepositoryRef(left.repo, 0, left.installation), FIX_SCOPE)
        if is_observed(github):
            raise OnlyObserved("Regreen only observes this repository")
        if github.pulls(head=left.branch):
            return False
        return github.delete_branch(left.branch, left.sha)
    except NotFound:
        return False
