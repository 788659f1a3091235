"""One suite for the store on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest
import sqlalchemy as sa

from regreen.adapters.github.rate_limits import CONTENT_LIMITS
from regreen.adapters.store.connection import engine_for
from regreen.adapters.store.database import Database
from regreen.adapters.store.inbox import DeliveryInbox
from regreen.adapters.store.tables import record_fields
from regreen.domain.errors import OutsideError, UserError
from regreen.domain.models import Cost, SentPart, Signals
from regreen.domain.records import AuditEntry, DeliveryRecord, LedgerLine, Order, ResultDocument
from regreen.domain.state_records import (
    STATE_RECORDS,
    Approval,
    Dismissal,
    LastValidConfig,
    OpenRepair,
    RateLimit,
    RepairAttempt,
    Revert,
    RevertTry,
    StateRecord,
    UploadedReview,
)
from tests.jobs import accept, claim, lose

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
    database.create_or_upgrade_tables()
    yield database
    from regreen.adapters.store.tables import metadata

    metadata.drop_all(engine)
    engine.dispose()


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
    assert accept(store, _delivery("d"), [_order("a")])
    assert not accept(store, _delivery("d"), [_order("b")])
    assert [j.id for j in store.jobs()] == ["a"]
    assert store.delivery("d") == _delivery("d")


def test_sixteen_at_once_are_one(store: Database) -> None:
    results: list[bool] = []
    gate = threading.Barrier(16)

    def deliver() -> None:
        gate.wait()
        results.append(accept(store, _delivery("d"), [_order("a")]))

    threads = [threading.Thread(target=deliver) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [False] * 15 + [True]


def test_what_cannot_be_dispatched_stays_pending(store: Database) -> None:
    def broken(_: DeliveryRecord) -> list[Order]:
        raise OutsideError("no")

    inbox = DeliveryInbox(store.engine)
    assert inbox.accept_all([_delivery("d"), _delivery("e"), _delivery("d")]) == [True, True, False]
    with pytest.raises(OutsideError):
        store.dispatch_deliveries(broken, 100)
    assert store.jobs() == []
    decided = []

    def decide(delivery: DeliveryRecord) -> list[Order]:
        decided.append(delivery.id)
        return []

    assert [store.dispatch_deliveries(decide, 100) for _ in range(2)] == [2, 0]
    assert decided == ["d", "e"]


def test_jobs_begin_to_wait_when_their_delivery_arrived(store: Database, clock: _Clock) -> None:
    DeliveryInbox(store.engine).accept_all([_delivery("d")])
    clock.sleep(60)
    store.dispatch_deliveries(lambda _: [_order("a", delay=5)], 100)
    (job,) = store.jobs()
    assert (job.created, job.due) == (_START, _START + timedelta(seconds=5))


def test_an_older_order_that_comes_late_is_superseded_itself(store: Database) -> None:
    def ranked(name: str, rank: int) -> Order:
        return replace(_order(name, replaces="fix/main/ci"), rank=rank)

    store.store_orders([ranked("newer", 5)])
    store.store_orders([ranked("older", 3)])
    accept(store, _delivery("d"), [ranked("oldest", 1)])
    assert {j.id: j.state for j in store.jobs()} == {
        "newer": "waiting",
        "older": "superseded",
        "oldest": "superseded",
    }
    store.store_orders([ranked("newest", 9), ranked("between", 7)])
    live = [j.id for j in store.jobs(states=("waiting",))]
    assert live == ["newest"]


def test_a_newer_order_supersedes_waiting_and_running_ones(store: Database) -> None:
    store.store_orders([_order("a", replaces="r"), replace(_order("x"), key="other")])
    assert [claim(store, name, "w") is not None for name in ("a", "x")] == [True, True]
    assert store.find_stopped_jobs(["a", "x"], "w") == []
    store.store_orders([_order("b", replaces="r")])
    assert store.find_stopped_jobs(["a", "x"], "w") == ["a"]
    assert claim(store, "a", "w") is None
    store.end("a", "done", "too late")
    superseded = store.job("a")
    assert superseded is not None
    assert superseded.state == "superseded"
    assert superseded.note == "a newer job for the same work replaced it"


def test_the_next_job_is_the_most_urgent_that_is_due(store: Database, clock: _Clock) -> None:
    store.store_orders([_order("late", delay=60), _order("push"), _order("asked", priority=1)])
    assert store.due_queues(clock.now()) == ["review"]
    names = []
    while (job := store.claim_job("w", clock.now(), queue="review")) is not None:
        store.end(job.id, "done", "", worker="w")
        names.append(job.id)
    assert names == ["asked", "push"]
    assert store.due_queues(clock.now()) == []
    assert store.claim_job("w", clock.now() + timedelta(seconds=61), queue="talk") is None
    assert store.claim_job("w", clock.now() + timedelta(seconds=61)) is not None


def test_jobs_with_one_key_run_one_at_a_time(store: Database, clock: _Clock) -> None:
    other = replace(_order("other"), key="octo/hello#8")
    store.store_orders([_order("a"), _order("b"), other])
    claimed = [store.claim_job("w", clock.now()) for _ in range(3)]
    assert [job and job.id for job in claimed] == ["a", "other", None]
    store.end("a", "done", "", worker="w")
    following = store.claim_job("w", clock.now())
    assert following is not None
    assert following.id == "b"


def test_workers_that_claim_at_once_get_different_jobs_and_respect_keys(
    url: str, store: Database, clock: _Clock
) -> None:
    store.store_orders([replace(_order(f"{n:02}"), key=f"key {n // 2}") for n in range(24)])
    claimed, lock = list[str](), threading.Lock()
    stores = [Database(engine_for(url), clock) for _ in range(4)]

    def work(worker: str, own: Database) -> None:
        while (job := own.claim_job(worker, clock.now())) is not None:
            with lock:
                claimed.append(job.id)

    threads = [threading.Thread(target=work, args=(str(n), own)) for n, own in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for own in stores:
        own.engine.dispose()
    assert sorted(claimed) == [f"{n:02}" for n in range(0, 24, 2)]


def test_attempts_are_counted_and_a_job_can_wait_again(store: Database, clock: _Clock) -> None:
    store.store_orders([_order("a")])
    for attempt in (1, 2):
        job = claim(store, "a", f"w{attempt}")
        assert job is not None
        assert (job.attempts, job.worker) == (attempt, f"w{attempt}")
        store.reschedule_job(job, clock.now() + timedelta(seconds=5), "502")
    assert store.claim_job("w", clock.now()) is None


def test_cancelling_ends_what_is_named_and_has_not_ended(store: Database) -> None:
    store.store_orders([_order("a"), _order("b"), _order("over")])
    assert store.cancel_jobs(["over"]) == ["over"]
    assert store.cancel_jobs(["a", "over", "unknown"]) == ["a"]
    assert claim(store, "b", "w") is not None


def test_the_jobs_of_silent_workers_are_put_back(store: Database, clock: _Clock) -> None:
    names = ("a", "b", "c", "mine", "lost")
    store.store_orders([replace(_order(name), key=name) for name in names])
    for name, worker in zip(names, ("alive", "dead", "dead", "w", "w"), strict=True):
        assert claim(store, name, worker) is not None
    for worker in ("dead", "alive", "w"):
        store.record_heartbeat(worker)
    assert store.release_lost_jobs("w", ["mine", "lost"], timedelta(minutes=1)) == []
    _was_last_seen_earlier(store, timedelta(minutes=5))
    store.record_heartbeat("alive")
    store.cancel_jobs(["c"])
    released = store.release_lost_jobs("w", ["mine"], timedelta(minutes=1))
    assert {(j.id, j.state, j.worker) for j in released} == {
        ("b", "running", "dead"),
        ("c", "cancelled", "dead"),
        ("lost", "running", "w"),
    }
    assert {j.id: (j.state, j.lost) for j in store.jobs()} == {
        "a": ("running", 0),
        "b": ("waiting", 1),
        "c": ("cancelled", 1),
        "mine": ("running", 0),
        "lost": ("waiting", 1),
    }
    assert store.release_lost_jobs("w", ["mine"], timedelta(minutes=1)) == [], "each once"


def test_a_job_that_was_cancelled_before_its_next_attempt_is_handed_out_to_be_ended(
    store: Database, clock: _Clock
) -> None:
    store.store_orders([_order("begun"), replace(_order("new"), key="k")])
    begun = claim(store, "begun", "w")
    assert begun is not None
    store.reschedule_job(begun, clock.now(), "GitHub is away")
    store.cancel_jobs(["begun", "new"])
    minute = timedelta(minutes=1)
    assert [j.id for j in store.release_lost_jobs("w", [], minute)] == ["begun"]
    assert store.release_lost_jobs("w", [], minute) == []


def test_a_worker_that_comes_back_to_life_changes_nothing_of_a_job_that_was_taken_over(
    store: Database, clock: _Clock
) -> None:
    store.store_orders([_order("a")])
    zombie = claim(store, "a", "zombie")
    assert zombie is not None
    store.release_lost_jobs("w", [], timedelta(minutes=1))
    assert store.find_stopped_jobs(["a"], "zombie") == ["a"]
    assert claim(store, "a", "w") is not None
    store.end("a", "failed", "too late", worker="zombie")
    store.reschedule_job(zombie, clock.now(), "too late")
    job = store.job("a")
    assert job is not None
    assert (job.state, job.worker, job.note) == ("running", "w", "")


def _was_last_seen_earlier(store: Database, by: timedelta) -> None:
    """As if all workers had been silent for so long."""
    with store.engine.begin() as connection:
        moved = sa.text("UPDATE workers SET seen = seen - :seconds")
        connection.execute(moved, {"seconds": by.total_seconds()})


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_clock_that_goes_wrong_makes_nobody_dead(
    store: Database, clock: _Clock, ahead: timedelta
) -> None:
    skewed = _Clock()
    skewed.sleep(ahead.total_seconds())
    other = Database(store.engine, skewed)
    store.store_orders([_order("a"), replace(_order("b"), key="b")])
    claim(store, "a", "one")
    store.record_heartbeat("one")
    claim(other, "b", "two")
    other.record_heartbeat("two")
    minute = timedelta(minutes=1)
    assert store.release_lost_jobs("three", [], minute) == []
    assert other.release_lost_jobs("three", [], minute) == []
    _was_last_seen_earlier(store, timedelta(minutes=2))
    other.record_heartbeat("two")
    assert [j.id for j in other.release_lost_jobs("three", [], minute)] == ["a"]


def test_writers_whose_clocks_differ_keep_their_pace_together(postgres: str) -> None:
    """SQLite serves one machine, whose processes share its clock."""
    fast = _Clock()
    fast.sleep(3600)
    engine = engine_for(postgres)
    one, two = (Database(engine, clock) for clock in (_Clock(), fast))
    one.create_or_upgrade_tables()
    limits = ((60.0, 2),)
    assert [store.take_turn("writes", limits, 100) < 1 for store in (two, one, two)] == [
        True,
        True,
        False,
    ]
    engine.dispose()


def test_money_is_summed_by_repository_number_and_day(store: Database) -> None:
    def charge(number: int | None, usd: float, days: int = 0) -> None:
        at = _START - timedelta(days=days)
        cost = Cost(usd, 1, 10, 5, 0)
        store.charge(LedgerLine(at, "a", "octo/hello", number, "review", "m", cost))

    charge(7, 0.25)
    charge(8, 0.5)
    charge(7, 1.0, days=2)
    assert store.total_spent("octo/hello", _START) == pytest.approx(0.75)
    assert store.total_spent("octo/hello", _START - timedelta(days=9), 7) == pytest.approx(1.25)
    assert store.total_spent("octo/other", _START) == 0.0
    store.store_orders([_order("a")])
    job = store.job("a")
    assert job is not None
    assert job.usd == pytest.approx(1.75)
    assert store.totals().calls == 3


def test_the_time_of_a_days_jobs_is_added_up(store: Database, clock: _Clock) -> None:
    midnight = _START
    clock.time = midnight - timedelta(minutes=10)
    store.store_orders(
        [_order("over midnight"), replace(_order("elsewhere"), repo="octo/other", key="other")]
    )
    assert claim(store, "over midnight", "w") is not None
    assert claim(store, "elsewhere", "w") is not None
    clock.time = midnight + timedelta(minutes=5)
    store.end("over midnight", "done", "", worker="w")
    store.store_orders([_order("running"), replace(_order("waiting"), key="later")])
    assert claim(store, "running", "w") is not None
    clock.time += timedelta(minutes=2)
    assert store.total_job_seconds("octo/hello", midnight) == pytest.approx(7 * 60)
    assert store.total_job_seconds("octo/other", midnight) == pytest.approx(7 * 60)
    assert store.total_job_seconds("octo/hello", clock.time) == 0.0
    clock.time += timedelta(days=2)
    midnight = clock.time
    store.store_orders([replace(_order("limited"), repo="octo/slow", key="slow")])
    begun = claim(store, "limited", "w")
    assert begun is not None
    store.reschedule_job(begun, clock.time + timedelta(hours=10), "no calls left", counted=False)
    clock.time += timedelta(hours=10)
    assert claim(store, "limited", "w") is not None
    clock.time += timedelta(minutes=1)
    store.end("limited", "done", "", worker="w")
    assert store.total_job_seconds("octo/slow", midnight) == pytest.approx(60), "waits are no work"


def test_answers_and_memory(store: Database) -> None:
    store.cache_answer("k", "first")
    store.cache_answer("k", "second")
    assert store.cached_answer("k") == "first"


def test_state_records_are_found_replaced_and_removed(store: Database) -> None:
    first, other = Approval("a_/r", 7, "abc", "ann"), Approval("ax/r", 7, "abc", "bob")
    assert store.add(first)
    assert not store.add(Approval("a_/r", 7, "abc", "eve"))
    store.save(other)
    assert store.find(Approval, repo="a_/r", number=7, sha="abc") == first
    assert store.find_all(Approval, repos_of="a_") == [first]
    store.save(Approval("a_/r", 7, "abc", "eve"))
    assert [approval.login for approval in store.find_all(Approval)] == ["eve", "bob"]
    store.remove(Approval, repo="a_/r")
    assert store.find_all(Approval) == [other]


_SAMPLES = {
    str: "é\u2028x", int: 2**40, float: 0.1, bool: True, int | None: None, str | None: None,
    tuple[str, ...]: ("a", "b"), tuple[int, ...]: (1, 2), tuple[float, ...]: (0.5,),
    Signals | None: Signals(2, 3, certainty=0.25),
}  # fmt: skip


@pytest.mark.parametrize("kind", STATE_RECORDS, ids=lambda kind: kind.__name__)
def test_every_state_record_comes_back_as_it_was_stored(
    store: Database, kind: type[StateRecord]
) -> None:
    values = {
        name: _SAMPLES[hint] if hint in _SAMPLES else get_args(hint)[0]
        for name, hint in record_fields(kind).items()
    }
    record = kind(**values)
    store.save(record)
    store.save(record)
    assert store.find_all(kind) == [record]
    assert set(kind.KEY) <= values.keys()


def test_a_renamed_repository_takes_its_records_along(store: Database) -> None:
    store.save(Approval("o/old", 7, "abc", "ann"))
    store.save(Approval("o/old", 8, "abc", "ann"))
    store.save(Approval("o/new", 7, "abc", "bob"))
    store.save(Approval("o/older", 7, "abc", "eve"))
    store.save(LastValidConfig("o/old", "{}"))
    store.save(LastValidConfig("o/new", "before"))
    store.save(RateLimit("o/old", "core", 1, 2, 3.0))
    store.rename("o/old", "o/new")
    assert {(a.repo, a.number, a.login) for a in store.find_all(Approval)} == {
        ("o/new", 7, "ann"), ("o/new", 8, "ann"), ("o/older", 7, "eve")
    }  # fmt: skip
    assert store.find_all(LastValidConfig) == [LastValidConfig("o/new", "{}")]


def test_observations_stay_in_order(store: Database) -> None:
    for line in ("one", "two", "three"):
        store.add_observation("k", line)
    assert store.observations("k") == ["one", "two", "three"]
    assert store.observations("other") == []


def test_a_document_replaces_its_older_self(store: Database) -> None:
    def document(body: dict[str, object]) -> ResultDocument:
        return ResultDocument("review", "octo/hello", 7, "7@abc", "a", _START, body)

    store.save_document(document({"n": 1}))
    store.save_document(document({"n": 2, "text": "\u2028 é \u0001"}))
    (kept,) = store.documents(kind="review", repo="octo/hello", number=7)
    assert kept == document({"n": 2, "text": "\u2028 é \u0001"})


def test_the_audit_log_and_pruning(store: Database) -> None:
    store.log(AuditEntry(_START, "a", "octo/hello", 7, "ann", "/fix", "hint"))
    accept(store, _delivery("d"), [_order("a"), _order("b")])
    store.end("a", "done", "")
    assert store.prune(_START + timedelta(days=1)) == 2
    assert [j.id for j in store.jobs()] == ["b"]
    assert [a.action for a in store.actions(repo="octo/hello")] == ["/fix"]


def test_results_have_a_time_of_their_own(store: Database, clock: _Clock) -> None:
    def result(subject: str, at: datetime) -> ResultDocument:
        return ResultDocument("review", "octo/hello", 7, subject, "job", at, {"said": subject})

    store.save_document(result("old", _START))
    store.save_document(result("new", _START + timedelta(days=700)))
    dismissal = Dismissal("octo/hello", 7, "finding", "ann", "")
    store.save(dismissal)
    store.add_observation("verdict:1", "{}")
    cost = Cost(usd=1.0, calls=1, input_tokens=1, output_tokens=1, cached_tokens=0)
    sent = (SentPart("the change", "shop/a.py", "1-9, 12"), SentPart("the issue's title and text"))
    line = LedgerLine(_START, "job", "octo/hello", 7, "review", "model", cost, sent, masked=2)
    store.charge(line)
    assert store.ledger() == [line]
    for number in range(2100):
        store.cache_answer(f"answer-{number}", "{}")
    clock.time = _START + timedelta(days=700)
    assert store.prune(clock.time) == 2100
    assert len(store.documents()) == 2
    assert store.prune(clock.time, clock.time - timedelta(days=365)) == 3
    assert [d.subject for d in store.documents()] == ["new"]
    assert store.observations("verdict:1") == []
    assert store.find_all(Dismissal) == [dismissal]


def test_notes_for_one_commit_or_one_day_are_not_kept_for_ever(store: Database) -> None:
    repo = "octo/hello"
    temporary = (
        UploadedReview("7@abc", "abc"),
        RepairAttempt(repo, "abc", "fix/1"),
        RevertTry(repo, "2026-01-10", "abc"),
    )
    lasting = (
        Revert(repo, "abc", 3),  # a commit that was reverted once stays known
        OpenRepair(repo, "main", 4),
        Dismissal(repo, 7, "finding", "ann", ""),
    )
    for record in (*temporary, *lasting):
        store.save(record)
    assert store.prune(_START + timedelta(days=1)) == 3
    assert [store.find_all(type(r)) for r in temporary] == [[], [], []]
    assert [store.find_all(type(r)) for r in lasting] == [[r] for r in lasting]


def test_counts_and_health(store: Database) -> None:
    store.store_orders([_order("a"), _order("b")])
    claim(store, "b", "w")
    assert sorted(store.job_counts()) == [("review", "running", 1), ("review", "waiting", 1)]


def test_a_locked_or_unreachable_database_is_the_outside_worlds_fault(
    tmp_path: Path, clock: _Clock
) -> None:
    engine = engine_for("postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(OutsideError):
        Database(engine, clock).create_or_upgrade_tables()
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


def test_getting_further_counts_attempts_anew(store: Database) -> None:
    store.store_orders([_order("a")])
    store.reset_attempts("a")
    for _ in range(4):
        lose(store, "a")
    assert claim(store, "a", "w") is not None
    store.reset_attempts("a")
    store.release_lost_jobs("w", [], timedelta(minutes=1))
    again = claim(store, "a", "w")
    assert again is not None
    assert again.attempts == 2


def test_turns_are_taken_from_one_row_by_all_processes(url: str, store: Database) -> None:
    """Two processes, each with a store of its own, write as one would: a second apart, 80 a minute."""
    clock = _Clock()
    ours = Database(engine_for(url), clock)
    theirs = Database(engine_for(url), clock)
    for _ in range(45):
        for one in (ours, theirs):
            one.take_turn("installation/1", CONTENT_LIMITS, 3600.0)
    assert min(_apart(ours)) > 0.999
    assert max(_apart(ours)) < 20, "with no pause but the machine's own"
    assert ours.take_turn("installation/2", CONTENT_LIMITS, 3600.0) == 0.0
    assert ours.take_turn("installation/1", CONTENT_LIMITS, 30.0) > 30.0
    with ours.engine.begin() as connection:
        connection.execute(sa.text("UPDATE turns SET at = at - 7200"))
    assert theirs.take_turn("installation/1", CONTENT_LIMITS, 30.0) == 0.0
    ours.engine.dispose()
    theirs.engine.dispose()


def _apart(store: Database) -> list[float]:
    """The seconds between one writer's turns."""
    with store.engine.connect() as connection:
        query = sa.text("SELECT at FROM turns WHERE name = 'installation/1' ORDER BY at")
        at = list(connection.execute(query).scalars())
    return [after - before for before, after in pairwise(at)]


def test_turns_taken_at_the_same_instant_are_apart(url: str, store: Database) -> None:
    clock, taken, lock = _Clock(), list[float](), threading.Lock()
    stores = [Database(engine_for(url), clock) for _ in range(4)]

    def take(one: Database) -> None:
        for _ in range(10):
            wait = one.take_turn("installation/1", CONTENT_LIMITS, 3600.0)
            with lock:
                taken.append(wait)

    threads = [threading.Thread(target=take, args=(one,)) for one in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in stores:
        one.engine.dispose()
    assert len(taken) == 40
    assert min(_apart(store)) > 0.999


def test_orders_of_equal_rank_replace_each_other(store: Database) -> None:
    for name in ("first", "second"):
        store.store_orders([replace(_order(name, replaces="fix/main/ci"), rank=1001)])
    states = {job.id: job.state for job in store.jobs()}
    assert states == {"first": "superseded", "second": "waiting"}


def test_a_job_that_is_cancelled_during_a_claim_stays_cancelled(store: Database) -> None:
    if store.engine.dialect.name == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    store.store_orders([_order("a")])
    claimed: list[object] = []
    worker = threading.Thread(target=lambda: claimed.append(claim(store, "a", "w")))
    with store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE jobs SET state = 'cancelled' WHERE id = 'a'"))
        worker.start()
        worker.join(0.5)
        assert worker.is_alive(), "the claim waits for the row"
    worker.join(10)
    assert claimed == [None]
    (job,) = store.jobs()
    assert job.state == "cancelled"


def test_a_pending_delivery_is_never_pruned(store: Database) -> None:
    DeliveryInbox(store.engine).accept_all([_delivery("d")])
    store.prune(_START + timedelta(days=400))
    assert store.delivery("d") is not None
