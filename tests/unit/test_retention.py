"""Which prepared environments go."""

from __future__ import annotations

import os
import time
from pathlib import Path
from threading import Event

import pytest

from regreen.adapters.sandbox.retention import (
    StoredEnvironment,
    UsageLedger,
    check_environments,
    choose_environments_to_remove,
)
from regreen.domain.errors import Cancelled
from regreen.domain.models import Retention

NOW = 1_000_000_000.0
DAY = 86400.0


def names(kept: list[StoredEnvironment], rules: Retention) -> list[str]:
    return [one.name for one in choose_environments_to_remove(kept, rules, NOW)]


def test_what_nobody_has_used_for_long_goes() -> None:
    kept = [
        StoredEnvironment("old", 1, NOW - 15 * DAY),
        StoredEnvironment("young", 1, NOW - 13 * DAY),
    ]
    assert names(kept, Retention(days=14)) == ["old"]


def test_over_the_size_the_longest_unused_go_until_the_rest_fits() -> None:
    kept = [StoredEnvironment(str(days), 10, NOW - days * DAY) for days in (1, 2, 3, 4)]
    assert names(kept, Retention(days=30, most_bytes=20)) == ["4", "3"]


def test_over_the_count_the_longest_unused_go() -> None:
    kept = [StoredEnvironment(str(days), 10, NOW - days * DAY) for days in (1, 2, 3)]
    assert names(kept, Retention(days=30, count=2)) == ["3"]


def test_what_was_used_within_the_hour_stays_whatever_its_size() -> None:
    assert (
        names([StoredEnvironment("huge", 10**15, NOW - 1800)], Retention(most_bytes=1, count=0))
        == []
    )


def test_the_ledger_remembers_use_and_size(tmp_path: Path) -> None:
    ledger = UsageLedger(tmp_path / "used")
    assert ledger.find_last_use("regreen-env:x", 7.0) == 7.0
    ledger.mark_used("regreen-env:x", 42)
    ledger.mark_used("regreen-env:x")
    assert ledger.recorded_size("regreen-env:x") == 42
    assert time.time() - ledger.find_last_use("regreen-env:x", 0.0) < 60


def test_what_is_held_is_not_free_and_then_is(tmp_path: Path) -> None:
    ledger = UsageLedger(tmp_path)
    held = ledger.hold_environment("one")
    with ledger.lock_if_unused("one") as free:
        assert not free
    os.close(held)
    with ledger.lock_if_unused("one") as free:
        assert free


def test_one_look_a_day(tmp_path: Path) -> None:
    ledger = UsageLedger(tmp_path)
    assert ledger.claim_daily_cleanup()
    assert not ledger.claim_daily_cleanup()


def test_doctor_says_how_many_and_how_large() -> None:
    line = check_environments([StoredEnvironment("a", 3 * 1024**3, time.time() - 2 * DAY)])
    assert line.detail == "1, 3.0 GiB together, the longest unused for 2.0 days"


def test_who_waits_for_another_to_make_an_environment_can_be_cancelled(tmp_path: Path) -> None:
    cancel = Event()
    cancel.set()
    ledger = UsageLedger(tmp_path)
    with (
        ledger.lock_for_build("one"),
        ledger.lock_for_build("two"),
        pytest.raises(Cancelled, match="another prepared"),
        UsageLedger(tmp_path).lock_for_build("one", cancel),
    ):
        pass  # pragma: no cover
    with UsageLedger(tmp_path).lock_for_build("one", cancel):
        pass
