"""The events of issues and of pull requests; what is done to one may be told as the other's."""

from __future__ import annotations

from regreen_playground.events import emit
from regreen_playground.shape import issues, pulls
from regreen_playground.things import Issue, Json, Pull, User
from regreen_playground.world import World


def tell_issue(
    world: World, issue: Issue, action: str, sender: User, more: Json | None = None
) -> None:
    """Emit an `issues` event."""
    payload: Json = {"issue": issues.issue(world, issue), **(more or {})}
    emit(world, issue.repository, "issues", action, payload, sender)


def tell_pull(
    world: World, pull: Pull, action: str, sender: User, more: Json | None = None
) -> None:
    """Emit a `pull_request` event."""
    payload: Json = {
        "number": pull.number,
        "pull_request": pulls.full_pull(world, pull),
        **(more or {}),
    }
    emit(world, pull.base, "pull_request", action, payload, sender)
