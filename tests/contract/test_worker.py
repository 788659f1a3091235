"""The engine's worker as it is: a job that has to wait for long makes room, and nobody's wait is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from regreen.adapters.clock import SystemClock
from regreen.adapters.connection import engine_for
from regreen.adapters.database import Database
from regreen.bot.jobs import Queue, Worker
from regreen.bot.running import Job, Runner
from regreen.forge import Paced
from regreen.records import Order

_FOUR = 4  # of the talk queue's jobs run at once


class _Hand:
    """Does what the jobs ask for: those of "busy" may not write for an hour."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.put_off: list[str] = []

    def __call__(self, job: Job) -> str:
        if job.record.repo == "busy" and len(self.put_off) < _FOUR:
            self.put_off.append(job.record.id)
            raise Paced("no more writes now", retry_after=self.wait)
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
    made.create()
    yield made
    made.engine.dispose()


def _order(repo: str, number: int) -> Order:
    name = f"comment/{repo}/{number}"
    return Order(name, "comment", repo, number, 1, "talk", f"{repo}#{number}", 1, "{}")


def _worker(store: Database, hand: _Hand, home: Path) -> Worker:
    runner = Runner(
        store=store, clock=SystemClock(), handle=hand, failed=lambda *_: None, worker="one"
    )
    return Worker(
        engine=store.engine, store=store, runner=runner, clock=SystemClock(), home=home,
        tick=lambda: None,
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
    hand, queue = _Hand(), Queue(store.engine)
    worker = _worker(store, hand, tmp_path)
    worker.start()
    try:
        store.order([_order("busy", n) for n in range(_FOUR)], queue.enqueue)
        _until(lambda: len(hand.put_off) == _FOUR)
        store.order([_order("other", n) for n in range(3)], queue.enqueue)
        _until(lambda: len(hand.done) == 3)
        assert {name.split("/")[1] for name in hand.done} == {"other"}
        assert [j.state for j in store.jobs(repo="busy")] == ["waiting"] * _FOUR
    finally:
        worker.stop()
        queue.close()


@pytest.mark.soak
def test_a_long_wait_comes_to_its_end(store: Database, tmp_path: Path) -> None:
    hand, queue = _Hand(), Queue(store.engine)
    hand.wait = 10.5
    worker = _worker(store, hand, tmp_path)
    worker.start()
    try:
        store.order([_order("busy", n + 10) for n in range(_FOUR)], queue.enqueue)
        _until(lambda: len(hand.done) == _FOUR)
        assert sorted(hand.done) == sorted(hand.put_off)
    finally:
        worker.stop()
        queue.close()


@pytest.mark.soak
def test_a_job_that_the_engine_lost_is_found_again(store: Database, tmp_path: Path) -> None:
    hand, queue = _Hand(), Queue(store.engine)
    worker = _worker(store, hand, tmp_path)
    store.order([replace(_order("lost", 1), delay=-100.0)], lambda *_: None)
    worker.start()
    try:
        _until(lambda: bool(hand.done), 90)
        assert hand.done == ["comment/lost/1"]
    finally:
        worker.stop()
        queue.close()
