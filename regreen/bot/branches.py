"""Our branches on GitHub: noted before they are pushed, until a pull request stands for them, and else taken back."""

from __future__ import annotations

import json
import logging

from regreen.adapters.git import GitRepository
from regreen.bot.desk import Desk
from regreen.bot.running import Job
from regreen.errors import OutsideError, UserError
from regreen.forge import FIX, GitHub, Gone, Pull, Repository

_SPACE = "branches"
_LIVE = frozenset({"waiting", "running"})

_log = logging.getLogger(__name__)


def push(
    desk: Desk,
    job: Job,
    git: GitRepository,
    commit: str,
    branch: str,
    *,
    repository: Repository,
    github: GitHub,
) -> None:
    """Push a commit to a branch of ours. Whatever becomes of the job, the branch will be found again."""
    kept = {"job": job.record.id, "installation": job.record.installation, "sha": commit}
    desk.store.put(_SPACE, f"{github.repo}@{branch}", json.dumps(kept))
    git.push(repository.clone_url, commit, branch, github.token())


def stands(desk: Desk, repo: str, pull: Pull) -> None:
    """A pull request stands for its branch: it is not ours alone any more."""
    desk.store.delete(_SPACE, f"{repo}@{pull.head_ref}")


def take_back(desk: Desk, job_id: str | None = None) -> str:
    """Delete the branches that a job left behind with no pull request; of every job that has ended where none is named.

    A branch that somebody has pushed to since stays.
    """
    taken = 0
    for key, value in desk.store.items(_SPACE):
        left = json.loads(value)
        if job_id is None:
            job = desk.store.job(left["job"])
            is_left = job is None or job.state not in _LIVE
        else:
            is_left = left["job"] == job_id
        if not is_left:
            continue
        repo, _, branch = key.partition("@")
        try:
            taken += _delete(desk, repo, branch, left)
        except (OutsideError, UserError) as error:
            _log.warning("the branch %s of %s is not taken back yet: %s", branch, repo, error)
        else:
            desk.store.delete(_SPACE, key)
    return f"took back {taken} branches"


def _delete(desk: Desk, repo: str, branch: str, left: dict[str, object]) -> bool:
    try:
        installation = int(str(left["installation"])) or desk.app.installation_of(repo)
        github = desk.app.github(repo, installation, FIX)
        if github.pulls(head=branch):
            return False
        return github.delete_branch(branch, str(left["sha"]))
    except Gone:
        return False
