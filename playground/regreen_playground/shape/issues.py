"""Issues, comments, reactions and labels as GitHub's JSON shows them."""

from __future__ import annotations

from urllib.parse import quote

from regreen_playground.shape.apps import via
from regreen_playground.shape.commits import api, web
from regreen_playground.shape.people import maybe, maybe_user, user, when
from regreen_playground.things import REACTIONS, Comment, Issue, Json, Label, Reaction, Repository
from regreen_playground.world import World, association


def reaction(world: World, one: Reaction) -> Json:
    """One reaction."""
    return {
        "id": one.id,
        "node_id": f"REA_{one.id}",
        "user": user(world, one.user),
        "content": one.content,
        "created_at": when(one.created),
    }


def rollup(url: str, reactions: list[Reaction]) -> Json:
    """The counts of reactions that everything one can react to carries."""
    counts: Json = {name: sum(one.content == name for one in reactions) for name in REACTIONS}
    return {"url": f"{url}/reactions", "total_count": len(reactions), **counts}


def label(world: World, repository: Repository, one: Label) -> Json:
    """One label."""
    return {
        "id": one.id,
        "node_id": f"LA_{one.id}",
        "url": f"{api(world, repository)}/labels/{quote(one.name)}",
        "name": one.name,
        "color": one.color,
        "default": False,
        "description": one.description,
    }


def issue(world: World, one: Issue) -> Json:
    """An issue, or a pull seen as an issue."""
    repository = one.repository
    url = f"{api(world, repository)}/issues/{one.number}"
    page = "pull" if one.pull else "issues"
    assignees = [user(world, who) for who in one.assignees]
    shown: Json = {
        "url": url,
        "repository_url": api(world, repository),
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "timeline_url": f"{url}/timeline",
        "html_url": f"{web(world, repository)}/{page}/{one.number}",
        "id": one.id,
        "node_id": f"I_{one.id}",
        "number": one.number,
        "title": one.title,
        "user": user(world, one.user),
        "labels": [label(world, repository, each) for each in one.labels],
        "state": one.state,
        "state_reason": one.state_reason,
        "locked": one.locked,
        "active_lock_reason": None,
        "assignee": assignees[0] if assignees else None,
        "assignees": assignees,
        "milestone": None,
        "comments": len(one.comments),
        "created_at": when(one.created),
        "updated_at": when(one.updated),
        "closed_at": maybe(one.closed),
        "author_association": association(repository, one.user),
        "body": one.body,
        "reactions": rollup(url, one.reactions),
        "performed_via_github_app": via(world, one.app),
    }
    if one.pull is not None:
        html = f"{web(world, repository)}/pull/{one.number}"
        shown["draft"] = one.pull.draft
        shown["pull_request"] = {
            "url": f"{api(world, repository)}/pulls/{one.number}",
            "html_url": html,
            "diff_url": f"{html}.diff",
            "patch_url": f"{html}.patch",
            "merged_at": maybe(one.pull.merged),
        }
    return shown


def full_issue(world: World, one: Issue) -> Json:
    """An issue asked for by number."""
    return {**issue(world, one), "closed_by": maybe_user(world, one.closed_by)}


def comment(world: World, on: Issue, one: Comment) -> Json:
    """A comment under an issue or pull."""
    repository = on.repository
    url = f"{api(world, repository)}/issues/comments/{one.id}"
    page = "pull" if on.pull else "issues"
    return {
        "url": url,
        "html_url": f"{web(world, repository)}/{page}/{on.number}#issuecomment-{one.id}",
        "issue_url": f"{api(world, repository)}/issues/{on.number}",
        "id": one.id,
        "node_id": f"IC_{one.id}",
        "user": user(world, one.user),
        "created_at": when(one.created),
        "updated_at": when(one.updated),
        "author_association": association(repository, one.user),
        "body": one.body,
        "reactions": rollup(url, one.reactions),
        "performed_via_github_app": via(world, one.app),
    }
