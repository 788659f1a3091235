"""One suite for the store on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from regreen.adapters.connection import engine_for
from regreen.adapters.database import Database
from regreen.adapters.pace import LIMITS
from regreen.errors import OutsideError, UserError
from regreen.models import Cost
from regreen.records import Action, DeliveryRecord, Document, LedgerLine, Order

_START = datetime(2026, 1, 10, 12, tzinfo=UTC)


class _Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.time = _START

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'regreen.sqlite'}"
    return str(request.getfixturevalue("postgres"))


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


@pytest.fixture
def store(url: str, clock: _Clock) -> Iterator[Database]:
    engine = engine_for(url)
    database = Database(engine, clock)
    database.create()
    yield database
    from regreen.adapters.tables import metadata

    metadata.drop_all(engine)
    engine.dispose()


def _nothing(connection: object, order: Order) -> None:
    """An engine that needs no telling."""


def _order(
    name: str, *, replaces: str | None = None, priority: int = 10, delay: float = 0
) -> Order:
    return Order(
        id=name,
        kind="review",
        repo="octo/hello",
        number=7,
        installation=2,
        queue="review",
        key="octo/hello#7",
        priority=priority,
        event="{}",
        delay=delay,
        replaces=replaces,
    )


def _delivery(name: str) -> DeliveryRecord:
    return DeliveryRecord(name, "pull_request", "octo/hello", "{}", _START)


def test_a_delivery_is_kept_once(store: Database) -> None:
    assert store.accept(_delivery("d"), [_order("a")], _nothing)
    assert not store.accept(_delivery("d"), [_order("b")], _nothing)
    assert [j.id for j in store.jobs()] == ["a"]
    assert store.delivery("d") == _delivery("d")


def test_sixteen_at_once_are_one(store: Database) -> None:
    results: list[bool] = []
    gate = threading.Barrier(16)

    def deliver() -> None:
        gate.wait()
        results.append(store.accept(_delivery("d"), [_order("a")], _nothing))

    threads = [threading.Thread(target=deliver) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [False] * 15 + [True]


def test_what_the_engine_refuses_is_not_kept(store: Database) -> None:
    def broken(connection: object, order: Order) -> None:
        raise OutsideError("no")

    with pytest.raises(OutsideError):
        store.accept(_delivery("d"), [_order("a")], broken)
    assert store.delivery("d") is None
    assert store.jobs() == []


def test_a_newer_order_supersedes_waiting_and_running_ones(store: Database) -> None:
    store.order([_order("a", replaces="r"), _order("x")], _nothing)
    store.begin("a", "w")
    store.order([_order("b", replaces="r")], _nothing)
    assert store.stopped(["a", "b", "x"]) == ["a"]
    assert store.begin("a", "w") is None
    store.end("a", "done", "too late")
    superseded = store.job("a")
    assert superseded is not None
    assert superseded.state == "superseded"


def test_the_next_job_is_the_most_urgent_that_is_due(store: Database, clock: _Clock) -> None:
    store.order([_order("late", delay=60), _order("push"), _order("asked", priority=1)], _nothing)
    names = []
    while (job := store.next_job(clock.now())) is not None:
        store.begin(job.id, "w")
        store.end(job.id, "done", "")
        names.append(job.id)
    assert names == ["asked", "push"]
    assert store.next_job(clock.now() + timedelta(seconds=61)) is not None


def test_attempts_are_counted_and_a_job_can_wait_again(store: Database, clock: _Clock) -> None:
    store.order([_order("a")], _nothing)
    for attempt in (1, 2):
        job = store.begin("a", f"w{attempt}")
        assert job is not None
        assert (job.attempts, job.worker) == (attempt, f"w{attempt}")
        store.wait_again("a", clock.now() + timedelta(seconds=5), "502")
    assert store.next_job(clock.now()) is None


def test_cancelling_spares_the_one_that_cancels(store: Database) -> None:
    store.order([_order("a"), _order("b"), _order("me")], _nothing)
    assert sorted(store.cancel("octo/hello", 7, "me")) == ["a", "b"]
    assert store.begin("me", "w") is not None


def test_dead_workers_are_those_that_hold_jobs_and_are_silent(
    store: Database, clock: _Clock
) -> None:
    store.order([_order("a"), _order("b")], _nothing)
    store.begin("a", "alive")
    store.begin("b", "dead")
    store.beat("dead", clock.now() - timedelta(minutes=5))
    store.beat("alive", clock.now() - timedelta(minutes=5))
    store.beat("alive", clock.now())
    store.beat("idle", clock.now() - timedelta(days=1))
    assert store.dead_workers(clock.now() - timedelta(minutes=1)) == ["dead"]
    store.wait_again("b", clock.now() + timedelta(minutes=5), "GitHub is away")
    assert store.dead_workers(clock.now() - timedelta(minutes=1)) == ["dead"]
    store.end("b", "done", "")
    assert store.dead_workers(clock.now() - timedelta(minutes=1)) == []


def test_money_is_summed_by_repository_number_and_day(store: Database) -> None:
    def charge(number: int | None, usd: float, days: int = 0) -> None:
        at = _START - timedelta(days=days)
        cost = Cost(usd, 1, 10, 5, 0)
        store.charge(LedgerLine(at, "a", "octo/hello", number, "review", "m", cost))

    charge(7, 0.25)
    charge(8, 0.5)
    charge(7, 1.0, days=2)
    assert store.spent("octo/hello", _START) == pytest.approx(0.75)
    assert store.spent("octo/hello", _START - timedelta(days=9), 7) == pytest.approx(1.25)
    assert store.spent("octo/other", _START) == 0.0
    store.order([_order("a")], _nothing)
    job = store.job("a")
    assert job is not None
    assert job.usd == pytest.approx(1.75)
    assert store.totals().calls == 3


def test_answers_and_memory(store: Database) -> None:
    store.keep_answer("k", "first")
    store.keep_answer("k", "second")
    assert store.answer("k") == "first"
    assert store.put_new("s", "a_b", "1")
    assert not store.put_new("s", "a_b", "2")
    store.put("s", "axb", "3")
    assert store.items("s", "a_") == [("a_b", "1")]
    store.delete("s", "a_b")
    assert store.get("s", "a_b") is None


def test_lines_stay_in_order(store: Database) -> None:
    for line in ("one", "two", "three"):
        store.append("k", line)
    assert store.lines("k") == ["one", "two", "three"]
    assert store.lines("other") == []


def test_a_document_replaces_its_older_self(store: Database) -> None:
    def document(body: dict[str, object]) -> Document:
        return Document("review", "octo/hello", 7, "7@abc", "a", _START, body)

    store.keep(document({"n": 1}))
    store.keep(document({"n": 2, "text": "\u2028 é \u0001"}))
    (kept,) = store.documents(kind="review", repo="octo/hello", number=7)
    assert kept == document({"n": 2, "text": "\u2028 é \u0001"})


def test_the_audit_log_and_pruning(store: Database) -> None:
    store.log(Action(_START, "a", "octo/hello", 7, "ann", "/fix", "hint"))
    store.accept(_delivery("d"), [_order("a"), _order("b")], _nothing)
    store.end("a", "done", "")
    assert store.prune(_START + timedelta(days=1)) == 2
    assert [j.id for j in store.jobs()] == ["b"]
    assert [a.action for a in store.actions(repo="octo/hello")] == ["/fix"]


def test_results_have_a_time_of_their_own(store: Database, clock: _Clock) -> None:
    def result(subject: str, at: datetime) -> Document:
        return Document("review", "octo/hello", 7, subject, "job", at, {"said": subject})

    store.keep(result("old", _START))
    store.keep(result("new", _START + timedelta(days=700)))
    store.put("dismissed/octo/hello", "finding", "ann")
    store.append("bisect/verdict:1", "{}")
    cost = Cost(usd=1.0, calls=1, input_tokens=1, output_tokens=1, cached_tokens=0)
    store.charge(LedgerLine(_START, "job", "octo/hello", 7, "review", "model", cost))
    for number in range(2100):
        store.keep_answer(f"answer-{number}", "{}")
    clock.time = _START + timedelta(days=700)
    assert store.prune(clock.time) == 2100
    assert len(store.documents()) == 2
    assert store.prune(clock.time, clock.time - timedelta(days=365)) == 3
    assert [d.subject for d in store.documents()] == ["new"]
    assert store.lines("bisect/verdict:1") == []
    assert store.get("dismissed/octo/hello", "finding") == "ann"


def test_counts_and_health(store: Database) -> None:
    store.order([_order("a"), _order("b")], _nothing)
    store.begin("b", "w")
    assert sorted(store.job_counts()) == [("review", "running", 1), ("review", "waiting", 1)]
    assert store.is_healthy()


def test_a_locked_or_unreachable_database_is_the_outside_worlds_fault(
    tmp_path: Path, clock: _Clock
) -> None:
    engine = engine_for("postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(OutsideError):
        Database(engine, clock).create()
    assert not Database(engine, clock).is_healthy()
    engine.dispose()


@pytest.mark.parametrize("url", ["mysql://x/y", "nonsense", "sqlite://", "sqlite:///:memory:"])
def test_what_is_no_database_for_us(url: str) -> None:
    with pytest.raises(UserError, match="REGREEN_DATABASE_URL"):
        engine_for(url)


def test_sqlite_is_set_up_to_keep_what_it_committed(tmp_path: Path) -> None:
    engine = engine_for(f"sqlite:///{tmp_path / 'deep' / 'x.sqlite'}")
    with engine.connect() as connection:
        for pragma, value in (("journal_mode", "wal"), ("synchronous", 2), ("busy_timeout", 30000)):
            assert connection.exec_driver_sql(f"PRAGMA {pragma}").scalar_one() == value
    engine.dispose()


def test_what_was_due_and_is_not_done_is_found(store: Database, clock: _Clock) -> None:
    store.order([_order("a"), _order("later", delay=600), _order("done")], _nothing)
    store.begin("done", "w")
    store.end("done", "done", "")
    clock.sleep(120)
    assert [j.id for j in store.overdue(clock.now() - timedelta(seconds=60))] == ["a"]


def test_getting_further_counts_attempts_anew(store: Database) -> None:
    store.order([_order("a")], _nothing)
    store.got_further("a")
    for _ in range(4):
        store.begin("a", "w")
    store.got_further("a")
    again = store.begin("a", "w")
    assert again is not None
    assert again.attempts == 2


def test_turns_are_taken_from_one_row_by_all_processes(url: str, store: Database) -> None:
    """Two processes, each with a store of its own, write as one would: a second apart, 80 a minute."""
    clock = _Clock()
    ours = Database(engine_for(url), clock)
    theirs = Database(engine_for(url), clock)
    waits = [
        one.turn("installation/1", LIMITS, 3600.0) for _ in range(45) for one in (ours, theirs)
    ]
    assert waits[:80] == [float(i) for i in range(80)]
    assert waits[80:82] == [80.0, 81.0]
    assert ours.turn("installation/2", LIMITS, 3600.0) == 0.0
    assert ours.turn("installation/1", LIMITS, 30.0) > 30.0
    clock.sleep(7200)
    assert theirs.turn("installation/1", LIMITS, 30.0) == 0.0
    ours.engine.dispose()
    theirs.engine.dispose()


def test_one_process_at_a_time_is_alone(url: str, store: Database) -> None:
    other = Database(engine_for(url), _Clock())
    with store.alone("sweep") as first, other.alone("sweep") as second:
        assert (first, second) == (True, store.engine.dialect.name == "sqlite")
        with other.alone("something else") as third:
            assert third
    with other.alone("sweep") as afterwards:
        assert afterwards
    other.engine.dispose()


def test_turns_taken_at_the_same_instant_are_apart(url: str, store: Database) -> None:
    clock, taken, lock = _Clock(), list[float](), threading.Lock()
    stores = [Database(engine_for(url), clock) for _ in range(4)]

    def take(one: Database) -> None:
        for _ in range(10):
            wait = one.turn("installation/1", LIMITS, 3600.0)
            with lock:
                taken.append(wait)

    threads = [threading.Thread(target=take, args=(one,)) for one in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in stores:
        one.engine.dispose()
    assert sorted(taken) == [float(i) for i in range(40)]
