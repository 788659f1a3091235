"""Apps, installations, tokens and deliveries as GitHub's JSON shows them."""

from __future__ import annotations

import json

from regreen_playground.shape.people import maybe, repository, user, when
from regreen_playground.things import App, Delivery, Installation, Json, Token
from regreen_playground.world import World


def integration(world: World, app: App) -> Json:
    """An App."""
    return {
        "id": app.id,
        "slug": app.slug,
        "node_id": f"A_{app.id}",
        "client_id": app.client_id,
        "owner": user(world, app.owner),
        "name": app.name,
        "description": None,
        "external_url": "https://example.com",
        "html_url": f"{world.web_url}/apps/{app.slug}",
        "created_at": when(app.created),
        "updated_at": when(app.created),
        "permissions": dict(app.permissions),
        "events": list(app.events),
    }


def via(world: World, app: App | None) -> Json | None:
    """The App behind an issue or comment; events younger than these payloads are left out, as on GitHub."""
    if app is None:
        return None
    young = {"merge_group", "workflow_job"}
    return {**integration(world, app), "events": [x for x in app.events if x not in young]}


def installation(world: World, one: Installation) -> Json:
    """An App's installation."""
    return {
        "id": one.id,
        "client_id": one.app.client_id,
        "account": {
            **user(world, one.account),
            "name": one.account.name,
            "slug": one.account.login,
            "created_at": when(one.account.created),
            "updated_at": when(one.account.created),
        },
        "repository_selection": "all" if one.repositories is None else "selected",
        "access_tokens_url": f"{world.api_url}/app/installations/{one.id}/access_tokens",
        "repositories_url": f"{world.api_url}/installation/repositories",
        "html_url": f"{world.web_url}/settings/installations/{one.id}",
        "app_id": one.app.id,
        "app_slug": one.app.slug,
        "target_id": one.account.id,
        "target_type": one.account.type,
        "permissions": dict(one.permissions),
        "events": list(one.app.events),
        "created_at": when(one.created),
        "updated_at": when(one.created),
        "single_file_name": None,
        "has_multiple_single_files": False,
        "single_file_paths": [],
        "suspended_by": None,
        "suspended_at": maybe(one.suspended),
    }


def token(world: World, one: Token) -> Json:
    """A fresh installation token."""
    shown: Json = {
        "token": one.text,
        "expires_at": when(one.expires),
        "permissions": dict(one.permissions),
        "repository_selection": "all" if one.repositories is None else "selected",
    }
    if one.repositories is not None:
        shown["repositories"] = [
            repository(world, each)
            for each in world.repositories.values()
            if each.id in one.repositories
        ]
    return shown


def delivery_item(one: Delivery) -> Json:
    """A delivery as the list shows it."""
    return {
        "id": one.id,
        "guid": one.guid,
        "delivered_at": when(one.created),
        "redelivery": one.redelivery,
        "duration": one.duration,
        "status": one.status,
        "status_code": one.status_code,
        "event": one.event,
        "action": one.action,
        "installation_id": one.installation_id,
        "repository_id": one.repository_id,
        "throttled_at": None,
    }


def delivery(one: Delivery) -> Json:
    """A delivery with what was sent and answered."""
    return {
        **delivery_item(one),
        "url": one.app.hook_url,
        "request": {"headers": dict(one.headers), "payload": json.loads(one.body)},
        "response": {"headers": dict(one.response_headers), "payload": one.response},
    }
