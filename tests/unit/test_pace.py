"""GitHub's limits on creating content: who writes when, and what a job does that would wait too long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regreen.adapters.github.rate_limits import (
    CONTENT_LIMITS,
    RateLimits,
    WritePacer,
    seconds_until_next_turn,
)
from regreen.domain.github import RateLimited


class _Clock:
    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=sum(self.slept))

    def monotonic(self) -> float:
        return sum(self.slept)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@given(st.lists(st.floats(0, 30), min_size=1, max_size=700))
def test_no_window_ever_holds_more_than_github_allows(pauses: list[float]) -> None:
    now, past = 0.0, list[float]()
    for pause in pauses:
        now += pause
        past.insert(0, now + seconds_until_next_turn(past, CONTENT_LIMITS, now))
    for span, most in CONTENT_LIMITS:
        pairs = zip(past, past[most:], strict=False)
        assert all(newer - older >= span - 1e-6 for newer, older in pairs)


def test_a_short_wait_is_waited() -> None:
    clock = _Clock()
    WritePacer(clock, lambda _name, _limits, _longest: 2.5, "installation/1").wait_turn()
    assert clock.slept == [2.5]


def test_a_long_wait_makes_room_for_others() -> None:
    asked: list[tuple[str, RateLimits, float]] = []

    def turn(name: str, limits: RateLimits, longest: float) -> float:
        asked.append((name, limits, longest))
        return 1200.0

    with pytest.raises(
        RateLimited, match="500 writes an hour; the next is due in 1200 s"
    ) as caught:
        WritePacer(_Clock(), turn, "installation/1").wait_turn()
    assert caught.value.retry_after == 1200.0
    assert asked[0][:2] == ("installation/1", CONTENT_LIMITS)
