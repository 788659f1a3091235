"""Maintenance: checks the sandbox, loads schedules, asks for missed deliveries again, deletes old rows."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, replace
from datetime import timedelta

from pydantic import ValidationError

from regreen.bot.jobs.event_jobs import make_orders
from regreen.bot.jobs.runner import Job
from regreen.bot.jobs.serialization import deserialize_work
from regreen.bot.services import Services
from regreen.domain.errors import OutsideError, UserError
from regreen.domain.events import (
    InstallationChanged,
    Maintenance,
    Pinged,
    RepositoryChanged,
    RepositoryRef,
    Work,
)
from regreen.domain.github import READ_SCOPE, RateLimited
from regreen.domain.records import Order
from regreen.domain.repo_config import Schedule
from regreen.domain.state_records import (
    ReadRepository,
    RenamedRepository,
    RepositorySchedules,
    ServiceState,
)
from regreen.secrets.markdown_sanitizer import count_noun

_REDELIVERY_WINDOW = timedelta(days=3)
# failures that waiting does not repair; another version of Regreen may
_FINAL_DELIVERY_STATUSES = frozenset({400, 413})
_MAX_REDELIVERIES = 4

_log = logging.getLogger(__name__)


def read_and_store_schedules(services: Services, where: RepositoryRef) -> str:
    """Read a repository's configuration and remember its schedules."""
    installation = where.installation or services.app.installation_of(where.repo)
    github = services.app.github(where.repo, installation, READ_SCOPE)
    repository = github.repository()
    place = replace(where, installation=installation)
    loaded = services.load_repo_config(place, github, repository)
    listed = () if repository.archived else loaded.config.bisect.schedules
    place = RepositoryRef(
        repository.full_name, repository.id, installation, repository.default_branch
    )
    if not listed:
        forget_repository(services, place.repo)
        return "no schedules"
    schedules = json.dumps([s.model_dump(mode="json") for s in listed])
    services.store.save(RepositorySchedules(**asdict(place), schedules=schedules))
    return count_noun(len(listed), "schedule")


def forget_repository(services: Services, repo: str) -> None:
    """Forget the schedules of a repository."""
    services.store.remove(RepositorySchedules, repo=repo)


def parse_schedules(known: RepositorySchedules) -> tuple[Schedule, ...]:
    """The schedules of a repository as last read.

    Raises:
        ValidationError: this version rejects one of them.
    """
    return tuple(Schedule.model_validate(s) for s in json.loads(known.schedules))


def load_stored_schedules(services: Services) -> dict[RepositoryRef, tuple[Schedule, ...]]:
    """Every repository's schedules as last read; schedules that this version rejects are forgotten and logged."""
    schedules = {}
    for known in services.store.find_all(RepositorySchedules):
        try:
            listed = parse_schedules(known)
        except ValidationError as error:
            _log.warning("%s: its schedules are not run: %s", known.repo, error.errors()[0]["msg"])
            forget_repository(services, known.repo)
            continue
        where = RepositoryRef(known.repo, known.repo_id, known.installation, known.default_branch)
        schedules[where] = listed
    return schedules


def handle_installation_change(services: Services, job: Job, event: InstallationChanged) -> str:
    """Add the new repositories and forget the removed ones."""
    if event.change in {"deleted", "suspend"}:
        removed = [
            w.repo for w in load_stored_schedules(services) if w.installation == event.installation
        ]
        services.store.abandon(installation=event.installation, except_job=job.record.id)
    else:
        removed = list(event.removed)
        for repo in removed:
            services.store.abandon(repo=repo)
    for repo in removed:
        forget_repository(services, repo)
    for repository_id in event.removed_ids:
        services.mirrors.remove(repository_id)
    if event.change not in {"created", "added", "unsuspend", "new_permissions_accepted"}:
        return "removed " + count_noun(len(removed), "repository", "repositories")
    known = list(event.added)
    if event.change in {"unsuspend", "new_permissions_accepted"}:
        known = [r.full_name for r in services.app.repositories(event.installation)]
    learnt = _learn_all_schedules(services, job, known, event.installation)
    return "synced " + count_noun(learnt, "repository", "repositories")


def handle_repository_change(
    services: Services,
    job: Job,
    event: RepositoryChanged,
) -> str:
    """Handle a renamed or deleted repository."""
    forget_repository(services, event.before or event.where.repo)
    if event.change in {"deleted", "archived"}:
        stopped = services.store.abandon(repo=event.where.repo, except_job=job.record.id)
        if event.change == "deleted":
            services.mirrors.remove(event.where.repo_id)
        return "stopped " + count_noun(len(stopped), "job")
    if event.before is not None:
        _store_former_name(services, event.before, event.where)
        services.order(_orders_after_rename(services, job, event.before, event.where))
        services.store.rename(event.before, event.where.repo)
    return read_and_store_schedules(services, event.where)


def with_current_repository(services: Services, work: Work) -> Work:
    """The event with the repository's present name: late deliveries still carry the old one."""
    if isinstance(work, InstallationChanged | Pinged | Maintenance | RepositoryChanged):
        return work
    renamed = _find_renamed(services, work.where.repo_id)
    if renamed is None or work.where.repo not in renamed.before:
        return work
    now = renamed.repo
    same_owner = now.partition("/")[0] == work.where.repo.partition("/")[0]
    installation = work.where.installation if same_owner else services.app.installation_of(now)
    return replace(work, where=replace(work.where, repo=now, installation=installation))


def _find_renamed(services: Services, repo_id: int) -> RenamedRepository | None:
    """A repository's name and its earlier names, as far as Regreen received the renames."""
    return services.store.find(RenamedRepository, repo_id=repo_id) if repo_id else None


def _store_former_name(services: Services, before: str, where: RepositoryRef) -> None:
    known = _find_renamed(services, where.repo_id)
    names = {*(known.before if known else ()), before} - {where.repo}
    services.store.save(RenamedRepository(where.repo_id, where.repo, tuple(sorted(names))))


def _orders_after_rename(
    services: Services, job: Job, before: str, where: RepositoryRef
) -> tuple[Order, ...]:
    """The repository's waiting jobs as new orders: the old jobs carry a name that no longer exists."""
    orders: list[Order] = []
    for stopped in services.store.abandon(repo=before, except_job=job.record.id):
        record = services.store.job(stopped)
        work = deserialize_work(record.event) if record is not None else None
        if work is not None and not isinstance(work, InstallationChanged | Pinged | Maintenance):
            moved = replace(work, where=where)
            orders += make_orders(moved, f"renamed/{stopped}")
    return tuple(orders)


def read_all_schedules(services: Services, job: Job) -> str:
    """Read every repository's configuration at start, because pushes may have been missed."""
    count = 0
    for installation in services.app.installations():
        if not installation.suspended:
            known = [r.full_name for r in services.app.repositories(installation.id)]
            count += _learn_all_schedules(services, job, known, installation.id)
    return "read " + count_noun(count, "configuration")


def _learn_all_schedules(services: Services, job: Job, repos: list[str], installation: int) -> int:
    """Read each repository; a job that is postponed or retried resumes where it stopped."""
    been = {read.repo for read in services.store.find_all(ReadRepository, job=job.record.id)}
    learnt = len(been.intersection(repos))
    for repo in repos:
        if repo in been:
            continue
        try:
            read_and_store_schedules(services, RepositoryRef(repo, 0, installation))
        except RateLimited:
            raise  # there may be more repositories than GitHub's hourly limit allows to read
        except (OutsideError, UserError) as error:
            # one repository that cannot be read must not keep the others from being read
            _log.warning("%s: its configuration cannot be read: %s", repo, error)
        else:
            learnt += 1
        services.store.add(ReadRepository(job.record.id, repo))
        job.reset_attempts()
    return learnt


def test_and_record_sandbox(services: Services) -> str:
    """Attack the sandbox unless it is proven, record the result, and remove what killed processes left."""
    missing = services.sandbox.describe_missing()
    services.store.save(ServiceState("sandbox", missing))
    return (
        missing
        or f"the sandbox's self-test passed; removed {count_noun(services.sandbox.remove_leftovers(), 'container')}"
    )


def redeliver_missed(services: Services) -> str:
    """Ask GitHub to send failed deliveries again that we do not have."""
    since = services.clock.now() - _REDELIVERY_WINDOW
    missed = [
        d for d in services.app.failed_deliveries(since) if services.store.delivery(d.guid) is None
    ]
    wanted = [
        d for d in missed if d.tries < _MAX_REDELIVERIES or d.status not in _FINAL_DELIVERY_STATUSES
    ]
    for delivery in wanted:
        services.app.redeliver(delivery)
    hopeless = f"; {len(missed) - len(wanted)} were refused each time" if missed != wanted else ""
    return f"asked for {count_noun(len(wanted), 'delivery', 'deliveries')} again{hopeless}"


def prune_old_data(services: Services) -> str:
    """Delete old rows, and local copies of repositories that were not used for long."""
    now, days = services.clock.now(), services.settings.results_days
    results_before = now - timedelta(days=days) if days else None
    before = now - timedelta(days=services.settings.history_days)
    rows = services.store.prune(before, results_before)
    copies = services.mirrors.remove_unused(now)
    return f"removed {count_noun(rows, 'old row')} and {count_noun(copies, 'local copy', 'local copies')}"
