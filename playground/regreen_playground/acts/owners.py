"""What owners do with repositories and installations, and the events that follow."""

from __future__ import annotations

from collections.abc import Iterable

from regreen_playground.events import emit, queue
from regreen_playground.shape import apps as shape_apps
from regreen_playground.shape.people import user as shape_user
from regreen_playground.things import Installation, Json, Repository
from regreen_playground.world import World


def rename(world: World, repository: Repository, name: str) -> None:
    """Give a repository another name; its history, issues and pulls stay."""
    with world.lock:
        before = repository.name
        del world.repositories[repository.full_name.lower()]
        repository.name = name
        world.repositories[repository.full_name.lower()] = repository
        changes: Json = {"repository": {"name": {"from": before}}}
        payload: Json = {"changes": changes}
        emit(world, repository, "repository", "renamed", payload, repository.owner)


def transfer(world: World, repository: Repository, to: str, installed: Installation) -> None:
    """Give a repository to another owner, whose installation covers it from then on."""
    with world.lock:
        before = repository.owner
        del world.repositories[repository.full_name.lower()]
        repository.owner = world.user(to)
        world.repositories[repository.full_name.lower()] = repository
        installed.account = repository.owner
        old: Json = {"user": shape_user(world, before)}
        payload: Json = {"changes": {"owner": {"from": old}}}
        emit(world, repository, "repository", "transferred", payload, before)


def archive(world: World, repository: Repository) -> None:
    """Make it read-only."""
    with world.lock:
        repository.archived = True
        emit(world, repository, "repository", "archived", {}, repository.owner)


def delete(world: World, repository: Repository) -> None:
    """Remove it. The App hears of it while it still has the name."""
    with world.lock:
        emit(world, repository, "repository", "deleted", {}, repository.owner)
        del world.repositories[repository.full_name.lower()]


def suspend(world: World, installation: Installation) -> None:
    """Let the App do nothing for a while."""
    with world.lock:
        installation.suspended = world.now()
        _tell(world, installation, "suspend")


def unsuspend(world: World, installation: Installation) -> None:
    """Let it go on."""
    with world.lock:
        installation.suspended = None
        _tell(world, installation, "unsuspend")


def uninstall(world: World, installation: Installation) -> None:
    """Remove the App from an account."""
    with world.lock:
        del world.installations[installation.id]
        _tell(world, installation, "deleted", world.repositories.values())


def _tell(
    world: World, installation: Installation, action: str, covered: Iterable[Repository] = ()
) -> None:
    shown: list[Json] = [
        {
            "id": one.id,
            "node_id": f"R_{one.id}",
            "name": one.name,
            "full_name": one.full_name,
            "private": one.private,
        }
        for one in covered
        if installation.covers(one)
    ]
    body: Json = {
        "action": action,
        "installation": shape_apps.installation(world, installation),
        "repositories": shown,
        "requester": None,
        "sender": shape_user(world, installation.account),
    }
    queue(world, installation.app, "installation", action, body, installation)
