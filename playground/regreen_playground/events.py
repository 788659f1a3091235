"""Webhook events: who hears of what, and the bytes that will be signed and sent."""

from __future__ import annotations

import json
import uuid

from regreen_playground.shape.people import repository as shape_repository
from regreen_playground.shape.people import user as shape_user
from regreen_playground.things import App, Delivery, Installation, Json, Repository, User
from regreen_playground.world import World

# Sent to every App whether or not it subscribed.
ALWAYS = {"installation", "installation_repositories", "github_app_authorization", "ping"}


def emit(  # noqa: PLR0917 - where, what and by whom: a call reads as a sentence
    world: World,
    repository: Repository,
    event: str,
    action: str | None,
    payload: Json,
    sender: User,
    *,
    only: App | None = None,
) -> None:
    """Queue an event for every App installed on the repository that asked for it (or `only` for one)."""
    for installation in world.installations_on(repository):
        app = installation.app
        if installation.suspended or (only is not None and app is not only):
            continue
        if event not in app.events and event not in ALWAYS:
            continue
        body: Json = {
            **({"action": action} if action else {}),
            **payload,
            "repository": shape_repository(world, repository),
            "sender": shape_user(world, sender),
            "installation": {"id": installation.id, "node_id": f"IN_{installation.id}"},
        }
        queue(world, app, event, action, body, installation, repository)


def queue(  # noqa: PLR0917 - as above
    world: World,
    app: App,
    event: str,
    action: str | None,
    body: Json,
    installation: Installation | None = None,
    repository: Repository | None = None,
) -> Delivery:
    """Make a delivery and put it in the outbox."""
    delivery = Delivery(
        id=world.new_id(),
        guid=str(uuid.uuid4()),
        app=app,
        event=event,
        action=action,
        body=json.dumps(body).encode(),
        installation_id=installation.id if installation else None,
        repository_id=repository.id if repository else None,
        created=world.now(),
    )
    app.deliveries.append(delivery)
    world.outbox.append(delivery)
    world.posted.set()
    return delivery


def again(world: World, old: Delivery) -> Delivery:
    """Queue the same delivery once more: a new id, the same guid and bytes."""
    fresh = Delivery(
        id=world.new_id(),
        guid=old.guid,
        app=old.app,
        event=old.event,
        action=old.action,
        body=old.body,
        installation_id=old.installation_id,
        repository_id=old.repository_id,
        created=world.now(),
        redelivery=True,
    )
    old.app.deliveries.append(fresh)
    world.outbox.append(fresh)
    world.posted.set()
    return fresh
