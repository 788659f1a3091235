"""Which schedules are due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from regreen.bot.jobs.engine import find_due_ticks
from regreen.domain.events import RepositoryRef
from regreen.domain.repo_config import Schedule

_PLACE = RepositoryRef("octo/hello", 1, 2)
_NIGHTLY = Schedule(name="nightly", cron="0 3 * * *", test="pytest")


def _at(hour: int, minute: int = 0, second: int = 0, day: int = 10) -> datetime:
    return datetime(2026, 1, day, hour, minute, second, tzinfo=UTC)


def test_a_schedule_is_due_once_in_its_minute() -> None:
    (tick,) = find_due_ticks({_PLACE: [_NIGHTLY]}, _at(2, 59, 50), _at(3, 0, 10))
    assert (tick.schedule, tick.due, tick.where) == ("nightly", "2026-01-10T03:00Z", _PLACE)
    assert not find_due_ticks({_PLACE: [_NIGHTLY]}, _at(3, 0, 10), _at(3, 0, 30))


def test_a_tick_on_the_minute_itself_is_due() -> None:
    assert find_due_ticks({_PLACE: [_NIGHTLY]}, _at(2, 59, 59), _at(3))
    assert not find_due_ticks({_PLACE: [_NIGHTLY]}, _at(3), _at(3, 0, 1))


def test_what_was_slept_through_is_run_once_and_only_if_recent() -> None:
    every_minute = Schedule(name="often", cron="* * * * *", test="pytest")
    assert len(find_due_ticks({_PLACE: [every_minute]}, _at(3), _at(5))) == 1
    assert not find_due_ticks({_PLACE: [_NIGHTLY]}, _at(2), _at(22))


def test_two_schedules_of_two_repositories() -> None:
    other = RepositoryRef("octo/other", 2, 2)
    ticks = find_due_ticks({_PLACE: [_NIGHTLY], other: [_NIGHTLY]}, _at(2, 59), _at(3, 1))
    assert [t.where.repo for t in ticks] == ["octo/hello", "octo/other"]


def test_nothing_scheduled_is_never_due() -> None:
    assert find_due_ticks({}, _at(1), _at(1) + timedelta(days=3)) == ()


def test_a_schedule_that_names_no_date_does_not_stop_the_others() -> None:
    never = _NIGHTLY.model_copy(update={"name": "never", "cron": "0 0 30 2 *"})
    other = RepositoryRef("octo/other", 2, 2)
    ticks = find_due_ticks({_PLACE: [never, _NIGHTLY], other: [_NIGHTLY]}, _at(2, 59), _at(3, 1))
    assert [(t.where.repo, t.schedule) for t in ticks] == [
        ("octo/hello", "nightly"),
        ("octo/other", "nightly"),
    ]
