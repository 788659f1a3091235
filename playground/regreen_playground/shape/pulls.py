"""Pull requests, reviews and their comments as GitHub's JSON shows them."""

from __future__ import annotations

from regreen_playground.difflines import changes
from regreen_playground.shape.commits import api, web
from regreen_playground.shape.issues import label, rollup
from regreen_playground.shape.people import maybe, maybe_user, repository, user, when
from regreen_playground.things import Json, Pull, Repository, Review, ReviewComment
from regreen_playground.world import World, association


def merge_base(pull: Pull) -> str:
    """What a pull's diff starts from."""
    return pull.base.git.merge_base(pull.base_sha, pull.head_sha) or pull.base_sha


def _branch(world: World, repo: Repository, ref: str, sha: str) -> Json:
    return {
        "label": f"{repo.owner.login}:{ref}",
        "ref": ref,
        "sha": sha,
        "user": user(world, repo.owner),
        "repo": repository(world, repo),
    }


def pull(world: World, one: Pull) -> Json:
    """A pull request as lists and events about reviews show it."""
    issue = one.issue
    url = f"{api(world, one.base)}/pulls/{one.number}"
    issue_url = f"{api(world, one.base)}/issues/{one.number}"
    html = f"{web(world, one.base)}/pull/{one.number}"
    statuses = f"{api(world, one.base)}/statuses/{one.head_sha}"
    assignees = [user(world, who) for who in issue.assignees]
    links = {
        "self": url,
        "html": html,
        "issue": issue_url,
        "comments": f"{issue_url}/comments",
        "review_comments": f"{url}/comments",
        "review_comment": f"{api(world, one.base)}/pulls/comments{{/number}}",
        "commits": f"{url}/commits",
        "statuses": statuses,
    }
    return {
        "url": url,
        "id": one.id,
        "node_id": f"PR_{one.id}",
        "html_url": html,
        "diff_url": f"{html}.diff",
        "patch_url": f"{html}.patch",
        "issue_url": issue_url,
        "number": one.number,
        "state": issue.state,
        "locked": issue.locked,
        "title": issue.title,
        "user": user(world, issue.user),
        "body": issue.body,
        "created_at": when(issue.created),
        "updated_at": when(issue.updated),
        "closed_at": maybe(issue.closed),
        "merged_at": maybe(one.merged),
        "merge_commit_sha": one.merge_commit,
        "assignee": assignees[0] if assignees else None,
        "assignees": assignees,
        "requested_reviewers": [user(world, who) for who in one.reviewers],
        "requested_teams": [],
        "labels": [label(world, one.base, each) for each in issue.labels],
        "milestone": None,
        "draft": one.draft,
        "commits_url": f"{url}/commits",
        "review_comments_url": f"{url}/comments",
        "review_comment_url": f"{api(world, one.base)}/pulls/comments{{/number}}",
        "comments_url": f"{issue_url}/comments",
        "statuses_url": statuses,
        "head": _branch(world, one.head, one.head_ref, one.head_sha),
        "base": _branch(world, one.base, one.base_ref, one.base_sha),
        "_links": {name: {"href": href} for name, href in links.items()},
        "author_association": association(one.base, issue.user),
        "auto_merge": None,
        "active_lock_reason": None,
    }


def full_pull(world: World, one: Pull) -> Json:
    """A pull request asked for by number, with its counts."""
    files = changes(one.base.git, merge_base(one), one.head_sha)
    unmerged = one.merged is None and one.issue.state == "open"
    mergeable = one.base.git.merge(one.base_sha, one.head_sha) is not None if unmerged else None
    states = {True: "clean", False: "dirty", None: "unknown"}
    return {
        **pull(world, one),
        "merged": one.merged is not None,
        "mergeable": mergeable,
        "rebaseable": mergeable,
        "mergeable_state": states[mergeable],
        "merged_by": maybe_user(world, one.merged_by),
        "comments": len(one.issue.comments),
        "review_comments": sum(len(thread.comments) for thread in one.threads),
        "maintainer_can_modify": one.maintainer_can_modify,
        "commits": one.base.git.count(one.head_sha, one.base_sha),
        "additions": sum(each.additions for each in files),
        "deletions": sum(each.deletions for each in files),
        "changed_files": len(files),
    }


def minimal_pull(world: World, one: Pull) -> Json:
    """A pull request as check runs and workflow runs name it."""
    return {
        "id": one.id,
        "number": one.number,
        "url": f"{api(world, one.base)}/pulls/{one.number}",
        "head": _minimal_branch(world, one.head, one.head_ref, one.head_sha),
        "base": _minimal_branch(world, one.base, one.base_ref, one.base_sha),
    }


def _minimal_branch(world: World, repo: Repository, ref: str, sha: str) -> Json:
    named = {"id": repo.id, "url": api(world, repo), "name": repo.name}
    return {"ref": ref, "sha": sha, "repo": named}


def review(world: World, on: Pull, one: Review) -> Json:
    """One review."""
    html = f"{web(world, on.base)}/pull/{on.number}#pullrequestreview-{one.id}"
    url = f"{api(world, on.base)}/pulls/{on.number}"
    shown: Json = {
        "id": one.id,
        "node_id": f"PRR_{one.id}",
        "user": user(world, one.user),
        "body": one.body,
        "state": one.state,
        "html_url": html,
        "pull_request_url": url,
        "author_association": association(on.base, one.user),
        "_links": {"html": {"href": html}, "pull_request": {"href": url}},
        "commit_id": one.commit,
    }
    if one.submitted is not None:
        shown["submitted_at"] = when(one.submitted)
    return shown


def review_comment(world: World, on: Pull, one: ReviewComment) -> Json:
    """One comment on a diff."""
    url = f"{api(world, on.base)}/pulls/comments/{one.id}"
    html = f"{web(world, on.base)}/pull/{on.number}#discussion_r{one.id}"
    pull_url = f"{api(world, on.base)}/pulls/{on.number}"
    shown: Json = {
        "url": url,
        "pull_request_review_id": one.review_id,
        "id": one.id,
        "node_id": f"PRRC_{one.id}",
        "diff_hunk": one.hunk,
        "path": one.path,
        "commit_id": one.commit,
        "original_commit_id": one.original_commit,
        "user": user(world, one.user),
        "body": one.body,
        "created_at": when(one.created),
        "updated_at": when(one.updated),
        "html_url": html,
        "pull_request_url": pull_url,
        "author_association": association(on.base, one.user),
        "_links": {
            "self": {"href": url},
            "html": {"href": html},
            "pull_request": {"href": pull_url},
        },
        "reactions": rollup(url, one.reactions),
        "start_line": one.start_line,
        "original_start_line": one.original_start_line,
        "start_side": one.start_side,
        "side": one.side,
        "position": one.position if one.position is not None else 1,
        "original_position": one.original_position or 1,
        "subject_type": one.subject,
    }
    # An outdated comment has no line, one on a file has neither, and GitHub's description knows no null here.
    if one.line is not None:
        shown["line"] = one.line
    if one.original_line is not None:
        shown["original_line"] = one.original_line
    if one.reply_to is not None:
        shown["in_reply_to_id"] = one.reply_to
    return shown
