"""The worker as it is: a job that has to wait for long makes room, and nobody's wait is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from regreen.adapters.clock import SystemClock
from regreen.adapters.store.connection import engine_for
from regreen.adapters.store.database import Database
from regreen.adapters.store.tables import metadata
from regreen.bot.jobs.engine import JobWorker
from regreen.bot.jobs.runner import Job, JobRunner
from regreen.domain.errors import UserError
from regreen.domain.github import RateLimited
from regreen.domain.ports import Clock
from regreen.domain.records import Order
from tests.jobs import claim
from tests.soak.fast_serve import FastClock

_FOUR = 4  # of the talk queue's jobs run at once


class _Hand:
    """Does what the jobs ask for: those of "busy" may not write for an hour."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.put_off: list[str] = []

    def __call__(self, job: Job) -> str:
        if job.record.repo == "busy" and len(self.put_off) < _FOUR:
            self.put_off.append(job.record.id)
            raise RateLimited("no more writes now", retry_after=self.wait)
        self.done.append(job.record.id)
        return "said"

    wait = 3600.0


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'regreen.sqlite'}"
    return str(request.getfixturevalue("postgres"))


@pytest.fixture
def store(url: str) -> Iterator[Database]:
    made = Database(engine_for(url), SystemClock())
    made.create_or_upgrade_tables()
    yield made
    metadata.drop_all(made.engine)
    made.engine.dispose()


def _order(repo: str, number: int) -> Order:
    name = f"comment/{repo}/{number}"
    return Order(name, "comment", repo, number, 1, "talk", f"{repo}#{number}", 1, "{}")


def _worker(store: Database, hand: _Hand, home: Path, clock: Clock | None = None) -> JobWorker:
    clock = clock or SystemClock()
    runner = JobRunner(store=store, clock=clock, handle=hand, failed=lambda *_: None, worker="one")
    return JobWorker(
        store=store, runner=runner, clock=clock, home=home,
        dispatch=lambda: None, tick=lambda: None,
    )  # fmt: skip


def _until(holds: Callable[[], bool], seconds: float = 60) -> None:
    over = threading.Event()
    for _ in range(int(seconds * 20)):
        if holds():
            return
        over.wait(0.05)
    raise AssertionError("it never came")


def test_who_may_not_write_for_an_hour_keeps_nobody_waiting(
    store: Database, tmp_path: Path
) -> None:
    hand = _Hand()
    worker = _worker(store, hand, tmp_path)
    worker.start()
    try:
        store.store_orders([_order("busy", n) for n in range(_FOUR)])
        _until(lambda: len(hand.put_off) == _FOUR)
        store.store_orders([_order("other", n) for n in range(3)])
        _until(lambda: len(hand.done) == 3)
        assert {name.split("/")[1] for name in hand.done} == {"other"}
        assert [j.state for j in store.jobs(repo="busy")] == ["waiting"] * _FOUR
    finally:
        worker.stop()


def test_a_chore_that_fails_keeps_no_other_from_its_turn(store: Database, tmp_path: Path) -> None:
    called = []

    def fails(name: str) -> Callable[[], None]:
        def chore() -> None:
            called.append(name)
            raise ValueError(name)

        return chore

    clock = FastClock(5)
    runner = JobRunner(
        store=store, clock=clock, handle=_Hand(), failed=lambda *_: None, worker="one",
        hand_over=fails("hand over"),
    )  # fmt: skip
    worker = JobWorker(
        store=store, runner=runner, clock=clock, home=tmp_path,
        dispatch=lambda: None, tick=fails("tick"),
    )  # fmt: skip
    worker.start()
    try:
        _until(lambda: called.count("hand over") == 2)
        assert called == ["hand over", "tick", "hand over"], "each at its own time, not each second"
    finally:
        worker.stop()


def test_what_another_process_runs_by_itself_is_left_to_it_until_it_dies(
    store: Database, tmp_path: Path
) -> None:
    """`regreen redeliver` beside a server: another worker holds the job."""
    hand, clock = _Hand(), FastClock(60)
    redelivered, lost = (replace(_order(name, 1), delay=-100.0) for name in ("again", "lost"))
    store.store_orders([redelivered, lost])
    claim(store, redelivered.id, "redeliver-here-1")
    store.record_heartbeat("redeliver-here-1")
    worker = _worker(store, hand, tmp_path, clock)
    worker.start()
    try:
        _until(lambda: hand.done == [lost.id])
        with store.engine.begin() as connection:
            connection.execute(sa.text("UPDATE workers SET seen = 0 WHERE id LIKE 'redeliver%'"))
        _until(lambda: sorted(hand.done) == [redelivered.id, lost.id])
    finally:
        worker.stop()


@pytest.mark.soak
def test_a_long_wait_comes_to_its_end(store: Database, tmp_path: Path) -> None:
    hand = _Hand()
    hand.wait = 10.5
    worker = _worker(store, hand, tmp_path)
    worker.start()
    try:
        store.store_orders([_order("busy", n + 10) for n in range(_FOUR)])
        _until(lambda: len(hand.done) == _FOUR)
        assert sorted(hand.done) == sorted(hand.put_off)
    finally:
        worker.stop()


def test_what_ran_when_the_process_died_runs_again_at_the_next_start(
    store: Database, tmp_path: Path
) -> None:
    hand = _Hand()
    store.store_orders([_order("other", 1)])
    assert claim(store, "comment/other/1", "one") is not None
    worker = _worker(store, hand, tmp_path)
    worker.start()
    try:
        _until(lambda: bool(hand.done))
        (job,) = store.jobs()
        assert (job.attempts, job.lost) == (2, 1)
    finally:
        worker.stop()


def test_a_database_that_was_away_costs_no_job(store: Database, tmp_path: Path) -> None:
    hand = _Hand()
    worker = _worker(store, hand, tmp_path)
    worker.start()
    try:
        with store.engine.begin() as connection:
            connection.execute(sa.text("ALTER TABLE jobs RENAME TO elsewhere"))
        threading.Event().wait(1.5)
        with store.engine.begin() as connection:
            connection.execute(sa.text("ALTER TABLE elsewhere RENAME TO jobs"))
        store.store_orders([_order("other", 1)])
        _until(lambda: bool(hand.done))
    finally:
        worker.stop()


def test_a_second_process_under_the_same_name_is_refused(store: Database, tmp_path: Path) -> None:
    first, second = (_worker(store, _Hand(), tmp_path) for _ in range(2))
    first.start()
    try:
        with pytest.raises(UserError, match="another process works as 'one'"):
            second.start()
    finally:
        first.stop()
