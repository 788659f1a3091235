"""Looking after ourselves: whether the sandbox holds, which repositories have schedules, deliveries that were missed, rows that are old."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from datetime import timedelta

from regreen.bot.configuration import load
from regreen.bot.desk import Desk
from regreen.errors import OutsideError, UserError
from regreen.forge import READ
from regreen.settings import Schedule
from regreen.webhooks.events import InstallationChanged, RepositoryChanged, Where

SANDBOX_NOTE = ("health", "sandbox")
"""Where the store says why no foreign code is run here; empty: it is."""
_SCHEDULES = "schedules"
_KEEP = timedelta(days=90)
_REDELIVERY_WINDOW = timedelta(days=3)

_log = logging.getLogger(__name__)


def learn(desk: Desk, where: Where) -> str:
    """Read a repository's configuration and remember its schedules."""
    installation = where.installation or desk.app.installation_of(where.repo)
    github = desk.app.github(where.repo, installation, READ)
    repository = github.repository()
    loaded = load(github, repository, app=desk.app, installation=installation, store=desk.store)
    listed = () if repository.archived else loaded.config.bisect.schedules
    place = Where(repository.full_name, repository.id, installation, repository.default_branch)
    if not listed:
        desk.store.delete(_SCHEDULES, place.repo)
        return "no schedules"
    data = {"where": asdict(place), "schedules": [s.model_dump(mode="json") for s in listed]}
    desk.store.put(_SCHEDULES, place.repo, json.dumps(data))
    return f"{len(listed)} schedules"


def forget(desk: Desk, repo: str) -> None:
    """Stop what was to happen for a repository."""
    desk.store.delete(_SCHEDULES, repo)


def schedules(desk: Desk) -> dict[Where, tuple[Schedule, ...]]:
    """Every repository's schedules, as last read."""
    found = {}
    for _, value in desk.store.items(_SCHEDULES):
        data = json.loads(value)
        listed = tuple(Schedule.model_validate(s) for s in data["schedules"])
        found[Where(**data["where"])] = listed
    return found


def installation_changed(desk: Desk, event: InstallationChanged) -> str:
    """Learn the new repositories, forget the ones that are gone."""
    if event.change in {"deleted", "suspend"}:
        gone = [w.repo for w in schedules(desk) if w.installation == event.installation]
    else:
        gone = list(event.removed)
    for repo in gone:
        forget(desk, repo)
    if event.change not in {"created", "added", "unsuspend", "new_permissions_accepted"}:
        return f"forgot {len(gone)} repositories"
    known = list(event.added)
    if event.change in {"unsuspend", "new_permissions_accepted"}:
        known = [r.full_name for r in desk.app.repositories(event.installation)]
    return f"learnt {_learn_all(desk, known, event.installation)} repositories"


def repository_changed(desk: Desk, event: RepositoryChanged) -> str:
    """A repository has another name, or is gone."""
    forget(desk, event.before or event.where.repo)
    if event.change in {"deleted", "archived"}:
        return "forgotten"
    return learn(desk, event.where)


def read_schedules_anew(desk: Desk) -> str:
    """At start: read every repository's configuration; pushes may have been missed."""
    count = 0
    for installation in desk.app.installations():
        if not installation.suspended:
            known = [r.full_name for r in desk.app.repositories(installation.id)]
            count += _learn_all(desk, known, installation.id)
    return f"read {count} configurations"


def _learn_all(desk: Desk, repos: list[str], installation: int) -> int:
    learnt = 0
    for repo in repos:
        try:
            learn(desk, Where(repo, 0, installation))
        except (OutsideError, UserError) as error:
            # one repository that cannot be read must not keep the others from being read
            _log.warning("%s: its configuration cannot be read: %s", repo, error)
        else:
            learnt += 1
    return learnt


def try_sandbox(desk: Desk) -> str:
    """Attack the sandbox unless it has held already, note what came out, and sweep what killed processes left."""
    missing = desk.sandbox.missing()
    desk.store.put(*SANDBOX_NOTE, missing)
    return missing or f"the sandbox holds; swept {desk.sandbox.sweep()} boxes"


def redeliver_missed(desk: Desk) -> str:
    """Have GitHub send again what it could not deliver and we do not have."""
    since = desk.clock.now() - _REDELIVERY_WINDOW
    missed = [d for d in desk.app.failed_deliveries(since) if desk.store.delivery(d.guid) is None]
    for delivery in missed:
        desk.app.redeliver(delivery)
    return f"asked for {len(missed)} deliveries again"


def prune(desk: Desk) -> str:
    """Forget rows that nobody will look at any more."""
    return f"forgot {desk.store.prune(desk.clock.now() - _KEEP)} rows"
