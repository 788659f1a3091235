"""Cron: which looks at which branches are due. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from croniter import croniter

from regreen.repo_config import Schedule
from regreen.webhooks.events import Tick, Where

_LATEST = timedelta(hours=6)


def due(
    schedules: Mapping[Where, Iterable[Schedule]], after: datetime, until: datetime
) -> tuple[Tick, ...]:
    """The ticks of the stretch `after < t <= until`, at most one a schedule: what was slept through is not made up."""
    start = max(after, until - _LATEST)
    found = []
    for where, listed in schedules.items():
        for schedule in listed:
            last = _last(schedule.cron, until)
            if start < last <= until:
                found.append(Tick(where, schedule.name, last.strftime("%Y-%m-%dT%H:%MZ")))
    return tuple(found)


def _last(cron: str, until: datetime) -> datetime:
    """The latest time at or before `until` that the cron line names."""
    # get_prev excludes its start, and a tick on the minute itself is due
    before = until.astimezone(UTC) + timedelta(microseconds=1)
    found: datetime = croniter(cron, before).get_prev(datetime)
    return found
