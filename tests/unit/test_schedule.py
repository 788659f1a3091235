"""Which schedules are due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from regreen.bot.schedule import due
from regreen.repo_config import Schedule
from regreen.webhooks.events import Where

_PLACE = Where("octo/hello", 1, 2)
_NIGHTLY = Schedule(name="nightly", cron="0 3 * * *", test="pytest")


def _at(hour: int, minute: int = 0, second: int = 0, day: int = 10) -> datetime:
    return datetime(2026, 1, day, hour, minute, second, tzinfo=UTC)


def test_a_schedule_is_due_once_in_its_minute() -> None:
    (tick,) = due({_PLACE: [_NIGHTLY]}, _at(2, 59, 50), _at(3, 0, 10))
    assert (tick.schedule, tick.due, tick.where) == ("nightly", "2026-01-10T03:00Z", _PLACE)
    assert not due({_PLACE: [_NIGHTLY]}, _at(3, 0, 10), _at(3, 0, 30))


def test_a_tick_on_the_minute_itself_is_due() -> None:
    assert due({_PLACE: [_NIGHTLY]}, _at(2, 59, 59), _at(3))
    assert not due({_PLACE: [_NIGHTLY]}, _at(3), _at(3, 0, 1))


def test_what_was_slept_through_is_run_once_and_only_if_recent() -> None:
    every_minute = Schedule(name="often", cron="* * * * *", test="pytest")
    assert len(due({_PLACE: [every_minute]}, _at(3), _at(5))) == 1
    assert not due({_PLACE: [_NIGHTLY]}, _at(2), _at(22))


def test_two_schedules_of_two_repositories() -> None:
    other = Where("octo/other", 2, 2)
    ticks = due({_PLACE: [_NIGHTLY], other: [_NIGHTLY]}, _at(2, 59), _at(3, 1))
    assert [t.where.repo for t in ticks] == ["octo/hello", "octo/other"]


def test_nothing_scheduled_is_never_due() -> None:
    assert due({}, _at(1), _at(1) + timedelta(days=3)) == ()
