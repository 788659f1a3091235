"""Finds the schedules that are due by their cron lines."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from croniter import CroniterError, croniter

from regreen.domain.events import RepositoryRef, Tick
from regreen.domain.repo_config import Schedule

_MAX_DELAY = timedelta(hours=6)

_log = logging.getLogger(__name__)


def find_due_ticks(
    schedules: Mapping[RepositoryRef, Iterable[Schedule]], after: datetime, until: datetime
) -> tuple[Tick, ...]:
    """The ticks with `after < t <= until`, at most one for each schedule: missed ones are not made up.

    A schedule whose cron line never matches is left out and logged; the others are still due.
    """
    start = max(after, until - _MAX_DELAY)
    ticks = []
    for where, listed in schedules.items():
        for schedule in listed:
            try:
                last = _last_cron_time(schedule.cron, until)
            except CroniterError as error:
                _log.warning("%s: schedule %s never runs: %s", where.repo, schedule.name, error)
                continue
            if start < last <= until:
                ticks.append(Tick(where, schedule.name, last.strftime("%Y-%m-%dT%H:%MZ")))
    return tuple(ticks)


def _last_cron_time(cron: str, until: datetime) -> datetime:
    """The latest time at or before `until` that the cron line matches."""
    # get_prev excludes its start, and a tick on the minute itself is due
    before = until.astimezone(UTC) + timedelta(microseconds=1)
    time: datetime = croniter(cron, before).get_prev(datetime)
    return time
