"""Looking after ourselves: whether the sandbox holds, which repositories have schedules, deliveries that were missed, rows that are old."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import timedelta

from regreen.bot.asks import Care, Work
from regreen.bot.configuration import load
from regreen.bot.desk import Desk
from regreen.bot.envelope import unpack
from regreen.bot.plan import orders
from regreen.bot.running import Job
from regreen.bot.say.markup import counted
from regreen.errors import OutsideError, UserError
from regreen.forge import READ, Paced
from regreen.records import Order
from regreen.repo_config import Schedule
from regreen.webhooks.events import InstallationChanged, Pinged, RepositoryChanged, Where

SANDBOX_NOTE = ("health", "sandbox")
"""Where the store says why no foreign code is run here; empty: it is."""
_SCHEDULES = "schedules"
_MOVED = "moved"
_REDELIVERY_WINDOW = timedelta(days=3)
_REFUSED = frozenset(
    {400, 413}
)  # by what they are: time changes nothing, another version of Regreen may
_MOST_TRIES = 4

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
    return counted(len(listed), "schedule")


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


def installation_changed(desk: Desk, job: Job, event: InstallationChanged) -> str:
    """Learn the new repositories, forget the ones that are gone."""
    if event.change in {"deleted", "suspend"}:
        gone = [w.repo for w in schedules(desk) if w.installation == event.installation]
        desk.store.abandon(installation=event.installation, except_job=job.record.id)
    else:
        gone = list(event.removed)
        for repo in gone:
            desk.store.abandon(repo=repo)
    for repo in gone:
        forget(desk, repo)
    if event.change not in {"created", "added", "unsuspend", "new_permissions_accepted"}:
        return "forgot " + counted(len(gone), "repository", "repositories")
    known = list(event.added)
    if event.change in {"unsuspend", "new_permissions_accepted"}:
        known = [r.full_name for r in desk.app.repositories(event.installation)]
    learnt = _learn_all(desk, job, known, event.installation)
    return "learnt " + counted(learnt, "repository", "repositories")


def repository_changed(
    desk: Desk, job: Job, event: RepositoryChanged, order: Callable[[tuple[Order, ...]], None]
) -> str:
    """A repository has another name, or is gone."""
    forget(desk, event.before or event.where.repo)
    if event.change in {"deleted", "archived"}:
        stopped = desk.store.abandon(repo=event.where.repo, except_job=job.record.id)
        return f"forgotten; stopped {len(stopped)} jobs"
    if event.before is not None:
        desk.store.put(_MOVED, str(event.where.repo_id), json.dumps(asdict(event.where)))
        order(_under_its_new_name(desk, job, event.before, event.where))
        desk.store.rename(event.before, event.where.repo)
    return learn(desk, event.where)


def as_it_is_now(desk: Desk, work: Work) -> Work:
    """An event of a repository that has another name or owner by now: late deliveries still tell the old one."""
    if isinstance(work, InstallationChanged | Pinged | Care | RepositoryChanged):
        return work
    kept = desk.store.get(_MOVED, str(work.where.repo_id)) if work.where.repo_id else None
    return replace(work, where=Where(**json.loads(kept))) if kept else work


def _under_its_new_name(desk: Desk, job: Job, before: str, where: Where) -> tuple[Order, ...]:
    """What waited for the repository, asked for again: the jobs themselves name one that is no more."""
    found: list[Order] = []
    for stopped in desk.store.abandon(repo=before, except_job=job.record.id):
        record = desk.store.job(stopped)
        work = unpack(record.event) if record is not None else None
        if work is not None and not isinstance(work, InstallationChanged | Pinged | Care):
            moved = replace(work, where=where)
            found += orders(moved, f"renamed/{stopped}")
    return tuple(found)


def read_schedules_anew(desk: Desk, job: Job) -> str:
    """At start: read every repository's configuration; pushes may have been missed."""
    count = 0
    for installation in desk.app.installations():
        if not installation.suspended:
            known = [r.full_name for r in desk.app.repositories(installation.id)]
            count += _learn_all(desk, job, known, installation.id)
    return "read " + counted(count, "configuration")


def _learn_all(desk: Desk, job: Job, repos: list[str], installation: int) -> int:
    """Learn each repository; a job that is put off or tried again goes on where it was."""
    space = f"learnt/{job.record.id}"
    been = {repo for repo, _ in desk.store.items(space)}
    learnt = len(been.intersection(repos))
    for repo in repos:
        if repo in been:
            continue
        try:
            learn(desk, Where(repo, 0, installation))
        except Paced:
            raise  # there may be more repositories than GitHub lets us read in an hour
        except (OutsideError, UserError) as error:
            # one repository that cannot be read must not keep the others from being read
            _log.warning("%s: its configuration cannot be read: %s", repo, error)
        else:
            learnt += 1
        desk.store.put(space, repo, "")
        job.got_further()
    return learnt


def try_sandbox(desk: Desk) -> str:
    """Attack the sandbox unless it has held already, note what came out, and sweep what killed processes left."""
    missing = desk.sandbox.missing()
    desk.store.put(*SANDBOX_NOTE, missing)
    return missing or f"the sandbox holds; swept {counted(desk.sandbox.sweep(), 'box', 'boxes')}"


def redeliver_missed(desk: Desk) -> str:
    """Have GitHub send again what it could not deliver and we do not have."""
    since = desk.clock.now() - _REDELIVERY_WINDOW
    missed = [d for d in desk.app.failed_deliveries(since) if desk.store.delivery(d.guid) is None]
    wanted = [d for d in missed if d.tries < _MOST_TRIES or d.status not in _REFUSED]
    for delivery in wanted:
        desk.app.redeliver(delivery)
    hopeless = f"; {len(missed) - len(wanted)} were refused each time" if missed != wanted else ""
    return f"asked for {counted(len(wanted), 'delivery', 'deliveries')} again{hopeless}"


def prune(desk: Desk) -> str:
    """Forget rows that nobody will look at any more."""
    now, days = desk.clock.now(), desk.settings.results_days
    results_before = now - timedelta(days=days) if days else None
    before = now - timedelta(days=desk.settings.history_days)
    return f"forgot {desk.store.prune(before, results_before)} rows"
