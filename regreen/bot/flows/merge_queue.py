"""Reports on a merge group: the review of each of its pull requests, and commits without a review."""

from __future__ import annotations

import hashlib
import re

from regreen.bot import messages
from regreen.bot.jobs.runner import Job
from regreen.bot.services import Services
from regreen.domain.events import MergeGroupRequested
from regreen.domain.github import REVIEW_SCOPE, GitHub, NotFound
from regreen.domain.models import Commit
from regreen.domain.state_records import ReviewedHead

_QUEUE_BRANCH_PATTERN = re.compile(r"/pr-(\d{1,9})-[0-9a-f]{40,64}$")
_SQUASH_SUBJECT_PATTERN = re.compile(r"\(#(\d{1,9})\)$")


def check_merge_group(services: Services, job: Job, event: MergeGroupRequested) -> str:
    """Set the merge group's check run: success if everything was reviewed without findings."""
    github = services.github_client(event.where, REVIEW_SCOPE)
    repository = github.repository()
    git = services.mirrors.fetch(github, repository, cancel=job.cancel)
    commits = git.commits(event.base_sha, event.head_sha, first_parent=True)
    named = [(commit, _find_merged_pull(github, event, commit)) for commit in commits]
    refs = [f"refs/pull/{head[0]}/head" for _, head in named if head]
    git = services.mirrors.fetch(github, repository, refs, job.cancel)
    queued, reached = [], event.base_sha
    for commit, head in named:
        if head and git.merged_tree(reached, head[1]) == git.tree_id(commit.sha):
            # a commit message only counts if merging the head that it names gives this very tree
            reviewed = services.store.find(ReviewedHead, repo=github.repo, sha=head[1])
            queued.append(messages.QueuedPull(*head, reviewed.conclusion if reviewed else None))
            reached = commit.sha
    unknown = reached != event.head_sha
    job.check_cancelled()
    check = messages.merge_group_check(event.head_sha, _external_id(event), queued, unknown=unknown)
    github.post_check_run(check)
    return check.title


def report_unchecked_group(services: Services, event: MergeGroupRequested, reason: str) -> None:
    """End the check run of a failed job as neutral with the reason, so that the queue goes on."""
    github = services.github_client(event.where, REVIEW_SCOPE)
    github.post_check_run(
        messages.skipped_review_check(
            event.head_sha, _external_id(event), "the review failed", reason
        )
    )


def _find_merged_pull(
    github: GitHub, event: MergeGroupRequested, commit: Commit
) -> tuple[int, str] | None:
    """The pull request that a commit of the queue merges, and its head; None if the message names none."""
    if len(commit.parents) > 1:
        pulls = github.pulls(head_sha=commit.parents[1])
        return (pulls[0].number, pulls[0].head_sha) if pulls else None
    is_last = commit.sha == event.head_sha
    named = (
        _QUEUE_BRANCH_PATTERN.search(event.head_ref)
        if is_last
        else _SQUASH_SUBJECT_PATTERN.search(commit.subject)
    )
    if named is None:
        return None
    try:
        pull = github.pull(int(named[1]))
    except NotFound:
        return None
    return pull.number, pull.head_sha


def _external_id(event: MergeGroupRequested) -> str:
    return "queue-" + hashlib.sha256(event.head_sha.encode()).hexdigest()[:24]
