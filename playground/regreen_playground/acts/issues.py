"""What happens to issues, comments, reactions and labels, and the events that follow."""

from __future__ import annotations

from typing import Protocol

from regreen_playground.acts.telling import tell_issue, tell_pull
from regreen_playground.events import emit
from regreen_playground.shape import issues as shape
from regreen_playground.things import (
    REACTIONS,
    App,
    Comment,
    Issue,
    Json,
    Label,
    Reaction,
    Repository,
    User,
)
from regreen_playground.world import Refused, World

BODY_LIMIT = 65_536


class HasReactions(Protocol):
    """Anything one can react to."""

    reactions: list[Reaction]


def too_long(resource: str, body: str) -> None:
    """Refuse a body beyond GitHub's limit."""
    if len(body) > BODY_LIMIT:
        detail: Json = {
            "resource": resource,
            "code": "custom",
            "field": "body",
            "message": f"body is too long (maximum is {BODY_LIMIT} characters)",
        }
        raise Refused(422, "Validation Failed", [detail])


def number_next(repository: Repository) -> int:
    """The next issue or pull number."""
    return max(repository.issues, default=0) + 1


def new_issue(
    world: World,
    repository: Repository,
    user: User,
    *,
    title: str,
    body: str | None,
    app: App | None,
) -> Issue:
    """An issue (or the issue half of a pull), with no event yet."""
    too_long("Issue", body or "")
    issue = Issue(
        id=world.new_id(),
        number=number_next(repository),
        repository=repository,
        title=title,
        body=body,
        user=user,
        created=world.now(),
        updated=world.now(),
        app=app,
    )
    repository.issues[issue.number] = issue
    return issue


def open_issue(
    world: World,
    repository: Repository,
    user: User,
    title: str,
    *,
    body: str | None = None,
    labels: list[str] | None = None,
    app: App | None = None,
) -> Issue:
    """Open an issue."""
    issue = new_issue(world, repository, user, title=title, body=body, app=app)
    for name in labels or []:
        issue.labels.append(label_named(world, repository, name))
    tell_issue(world, issue, "opened", user)
    return issue


def update_issue(
    world: World,
    issue: Issue,
    user: User,
    *,
    title: str | None,
    body: str | None,
    clear_body: bool = False,
) -> None:
    """Change title or body."""
    changes: Json = {}
    if title is not None and title != issue.title:
        changes["title"] = {"from": issue.title}
        issue.title = title
    if (body is not None or clear_body) and body != issue.body:
        too_long("Issue", body or "")
        changes["body"] = {"from": issue.body or ""}
        issue.body = body
    if changes:
        issue.updated = world.now()
        if issue.pull is None:
            tell_issue(world, issue, "edited", user, {"changes": changes})


def set_state(
    world: World, issue: Issue, user: User, state: str, reason: str | None = None
) -> bool:
    """Close or reopen; whether anything changed. Pulls tell of it themselves."""
    if state == issue.state:
        return False
    issue.updated = world.now()
    if state == "closed":
        issue.state, issue.closed, issue.closed_by = "closed", world.now(), user
        issue.state_reason = None if issue.pull else reason or "completed"
    else:
        issue.state, issue.closed, issue.closed_by = "open", None, None
        issue.state_reason = None if issue.pull else "reopened"
    if issue.pull is None:
        tell_issue(world, issue, "closed" if state == "closed" else "reopened", user)
    return True


def comment(world: World, issue: Issue, user: User, body: str, app: App | None = None) -> Comment:
    """Comment on an issue or pull."""
    if not body.strip():
        missing: Json = {"resource": "IssueComment", "code": "missing_field", "field": "body"}
        raise Refused(422, "Validation Failed", [missing])
    too_long("IssueComment", body)
    made = Comment(world.new_id(), user, body, world.now(), world.now(), app)
    issue.comments.append(made)
    issue.updated = world.now()
    _tell_comment(world, issue, made, "created", user)
    return made


def edit_comment(world: World, issue: Issue, one: Comment, user: User, body: str) -> None:
    """Change a comment's text."""
    too_long("IssueComment", body)
    old, one.body, one.updated = one.body, body, world.now()
    _tell_comment(world, issue, one, "edited", user, more={"changes": {"body": {"from": old}}})


def delete_comment(world: World, issue: Issue, one: Comment, user: User) -> None:
    """Remove a comment."""
    issue.comments.remove(one)
    _tell_comment(world, issue, one, "deleted", user)


def react(world: World, to: HasReactions, user: User, content: str) -> tuple[Reaction, bool]:
    """React; the reaction, and whether it is new (the same one twice is the first)."""
    if content not in REACTIONS:
        raise Refused(422, "Validation Failed", [f"content must be one of {', '.join(REACTIONS)}"])
    for known in to.reactions:
        if known.user is user and known.content == content:
            return known, False
    made = Reaction(world.new_id(), user, content, world.now())
    to.reactions.append(made)
    return made, True


def label_named(world: World, repository: Repository, name: str) -> Label:
    """The repository's label of this name, made if new."""
    known = repository.labels.get(name.lower())
    if known is None:
        known = repository.labels[name.lower()] = Label(world.new_id(), name)
    return known


def add_label(world: World, issue: Issue, name: str, sender: User) -> Label:
    """Put a label on an issue or pull."""
    made = label_named(world, issue.repository, name)
    if made not in issue.labels:
        issue.labels.append(made)
        _tell_label(world, issue, made, "labeled", sender)
    return made


def remove_label(world: World, issue: Issue, one: Label, sender: User) -> None:
    """Take a label off."""
    issue.labels.remove(one)
    _tell_label(world, issue, one, "unlabeled", sender)


def _tell_label(world: World, issue: Issue, one: Label, action: str, sender: User) -> None:
    shown = shape.label(world, issue.repository, one)
    if issue.pull is None:
        tell_issue(world, issue, action, sender, {"label": shown})
    else:
        tell_pull(world, issue.pull, action, sender, {"label": shown})


def _tell_comment(
    world: World,
    issue: Issue,
    one: Comment,
    action: str,
    sender: User,
    *,
    more: Json | None = None,
) -> None:
    payload: Json = {
        "issue": shape.issue(world, issue),
        "comment": shape.comment(world, issue, one),
        **(more or {}),
    }
    emit(world, issue.repository, "issue_comment", action, payload, sender)
