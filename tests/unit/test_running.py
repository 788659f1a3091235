"""One job from its row to its end, on a real store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from regreen.adapters.store.connection import engine_for
from regreen.adapters.store.database import Database
from regreen.bot.jobs.runner import MAX_ATTEMPTS, Job, JobRunner, run_due_jobs
from regreen.domain.errors import Cancelled, OutsideError, UserError
from regreen.domain.github import NotAllowed, RateLimited
from regreen.domain.records import JobRecord, Order
from tests.jobs import lose, run_job


class _Clock:
    def __init__(self) -> None:
        self.time = datetime(2026, 1, 10, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class _Bench:
    """A store, a runner whose work can be set, and what was told to users."""

    def __init__(self, home: Path) -> None:
        self.clock = _Clock()
        self.store = Database(engine_for(f"sqlite:///{home / 'x.sqlite'}"), self.clock)
        self.store.create_or_upgrade_tables()
        self.told: list[str] = []
        self.does: Callable[[Job], str] = lambda _: "fine"
        self.runner = JobRunner(
            store=self.store,
            clock=self.clock,
            handle=self._handle,
            failed=lambda _record, reason: self.told.append(reason),
            worker="w",
        )

    def _handle(self, job: Job) -> str:
        return self.does(job)

    def order(
        self, name: str = "a", replaces: str | None = None, key: str = "octo/hello#7"
    ) -> None:
        order = Order(
            id=name,
            kind="review",
            repo="octo/hello",
            number=7,
            installation=2,
            queue="review",
            key=key,
            priority=1,
            event="{}",
            replaces=replaces,
        )
        self.store.store_orders([order])

    def job(self, name: str = "a") -> JobRecord:
        found = self.store.job(name)
        assert found is not None
        return found


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[_Bench]:
    made = _Bench(tmp_path)
    yield made
    made.store.engine.dispose()


def _raises(error: Exception) -> Callable[[Job], str]:
    def work(job: Job) -> str:
        raise error

    return work


def test_a_job_is_done_once(bench: _Bench) -> None:
    bench.order()
    assert run_job(bench.runner, "a") is None
    assert (bench.job().state, bench.job().note, bench.job().attempts) == ("done", "fine", 1)
    assert run_job(bench.runner, "a") is None
    assert bench.job().attempts == 1


def test_what_somebody_can_put_right_is_told_and_not_tried_again(bench: _Bench) -> None:
    bench.order()
    bench.does = _raises(UserError("set tests.command"))
    assert run_job(bench.runner, "a") is None
    assert (bench.job().state, bench.told) == ("failed", ["set tests.command"])


def test_a_permission_that_is_not_granted_is_told_at_once(bench: _Bench) -> None:
    bench.order()
    bench.does = _raises(NotAllowed("the installation lacks issues: write"))
    assert run_job(bench.runner, "a") is None
    assert bench.told == ["the installation lacks issues: write"]


def test_the_outside_world_is_given_time_and_then_given_up(bench: _Bench) -> None:
    bench.order()
    bench.does = _raises(OutsideError("502"))
    waits = []
    while (wait := run_job(bench.runner, "a")) is not None:
        waits.append(wait)
    assert waits == [5.0, 30.0, 180.0, 900.0]
    assert bench.told == ["gave up after 5 attempts: 502"]


def test_github_says_how_long_to_wait(bench: _Bench) -> None:
    bench.order()
    bench.does = _raises(OutsideError("rate limit", retry_after=77))
    assert run_job(bench.runner, "a") == 77


def test_a_bug_ends_the_job_and_not_the_worker(
    bench: _Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.order()
    bench.does = _raises(ZeroDivisionError("x"))
    assert run_job(bench.runner, "a") is None
    assert "went wrong inside Regreen" in bench.told[0]
    assert "ZeroDivisionError" in caplog.text


def test_a_job_that_kills_its_worker_is_stopped_with_a_reason(bench: _Bench) -> None:
    bench.order()
    for _ in range(MAX_ATTEMPTS):
        lose(bench.store, "a")
    assert run_job(bench.runner, "a") is None
    assert bench.told == [f"stopped after {MAX_ATTEMPTS} attempts that did not end"]


def test_a_process_that_dies_while_it_tells_of_a_failure_tells_it_after_the_start(
    tmp_path: Path,
) -> None:
    bench = _Bench(tmp_path)
    bench.order()
    bench.does = _raises(UserError("set tests.command"))

    def dies(record: JobRecord, reason: str) -> None:
        raise SystemExit

    dying = JobRunner(
        store=bench.store, clock=bench.clock, handle=bench.does, failed=dies, worker="w"
    )
    with pytest.raises(SystemExit):
        run_job(dying, "a")
    assert bench.job().state == "running"
    bench.runner.take_back_lost_jobs()
    assert run_job(bench.runner, "a") is None
    assert (bench.job().state, bench.told) == ("failed", ["set tests.command"])
    bench.store.engine.dispose()


def test_one_that_kills_its_worker_does_not_take_its_neighbours_along(bench: _Bench) -> None:
    """Both were running when the process died, twice. The guilty one is tried alone from then on."""
    for name in ("guilty", "neighbour"):
        bench.order(name, key=name)
        for _ in range(2):
            lose(bench.store, name)
    bench.order("innocent", key="innocent")
    now = bench.clock.now()
    guilty, innocent = bench.runner.claim(now), bench.runner.claim(now)
    assert guilty is not None
    assert innocent is not None
    assert (guilty.record.id, innocent.record.id) == ("guilty", "innocent")
    assert bench.runner.claim(now) is None, "the neighbour waits"
    assert bench.runner.run(guilty) is None
    neighbour = bench.runner.claim(now)
    assert neighbour is not None
    assert neighbour.record.id == "neighbour"


def test_only_attempts_that_get_nowhere_are_counted(bench: _Bench) -> None:
    bench.order()

    def work(job: Job) -> str:
        job.reset_attempts()
        raise OutsideError("502")

    bench.does = work
    waits = [run_job(bench.runner, "a") for _ in range(12)]
    assert None not in waits
    assert bench.job().state == "waiting"


def test_a_database_that_fails_loses_no_job(tmp_path: Path) -> None:
    bench = _Bench(tmp_path)
    bench.order()
    database = tmp_path / "x.sqlite"
    job = bench.runner.claim()
    assert job is not None
    bench.store.engine.dispose()
    kept = database.read_bytes()
    for left in tmp_path.glob("x.sqlite-*"):
        left.unlink()
    database.write_bytes(b"no database at all" * 100)
    assert bench.runner.run(job) == 5.0
    assert bench.runner.running_jobs() == []
    with pytest.raises(OutsideError):
        bench.runner.claim()
    bench.store.engine.dispose()
    database.write_bytes(kept)
    bench.runner.take_back_lost_jobs()
    assert run_job(bench.runner, "a") is None
    assert bench.job().state == "done"
    bench.store.engine.dispose()


def test_a_newer_job_stops_the_older_one_while_it_runs(bench: _Bench) -> None:
    bench.order(replaces="r")
    seen = threading.Event()

    def work(job: Job) -> str:
        bench.order("b", replaces="r")
        bench.runner.propagate_cancellations()
        assert job.cancel.is_set()
        seen.set()
        job.check_cancelled()
        return "never"

    bench.does = work
    assert run_job(bench.runner, "a") is None
    assert seen.is_set()
    assert bench.job().state == "superseded"
    assert bench.told == []


def test_a_stop_of_the_process_is_no_end_of_the_job(bench: _Bench) -> None:
    bench.order()

    def work(job: Job) -> str:
        bench.runner.stop_all_jobs()
        raise Cancelled("the box was killed")

    bench.does = work
    assert run_job(bench.runner, "a") is not None
    assert (bench.job().state, bench.job().attempts) == ("waiting", 0)


def test_the_inline_engine_runs_retries_in_their_own_time(bench: _Bench) -> None:
    bench.order()
    bench.does = _raises(OutsideError("502"))
    assert run_due_jobs(bench.runner, bench.clock.now()) == 5
    assert bench.job().state == "failed"


def test_a_failure_is_told_when_github_is_back_and_nothing_is_done_again_for_it(
    bench: _Bench,
) -> None:
    done: list[str] = []
    away = [OutsideError("502"), RateLimited("none left", retry_after=60), OutsideError("502")]

    def work(job: Job) -> str:
        done.append(job.record.id)
        raise UserError("set tests.command")

    def tell(_: JobRecord, reason: str) -> None:
        if away:
            raise away.pop()
        bench.told.append(reason)

    bench.order()
    bench.does = work
    runner = JobRunner(
        store=bench.store, clock=bench.clock, handle=bench._handle, failed=tell, worker="w"
    )
    waits = [run_job(runner, "a") for _ in range(4)]
    assert waits == [900.0, 60, 900.0, None]
    assert (bench.told, done) == (["set tests.command"], ["a"])
    assert (bench.job().state, bench.job().note) == ("failed", "set tests.command")


def test_a_failure_that_can_never_be_told_ends_the_job_all_the_same(bench: _Bench) -> None:
    bench.order()
    bench.does = _raises(OutsideError("502"))
    runner = JobRunner(
        store=bench.store,
        clock=bench.clock,
        handle=bench._handle,
        failed=lambda *_: _raises(OutsideError("away"))(None),  # type: ignore[arg-type]
        worker="w",
    )
    waits = []
    while (wait := run_job(runner, "a")) is not None:
        waits.append(wait)
    assert waits == [5.0, 30.0, 180.0, 900.0, 900.0, 900.0, 900.0, 900.0]
    assert bench.job().state == "failed"


def test_the_end_of_a_stopped_job_is_reported_again_after_github_was_away(bench: _Bench) -> None:
    """And a bug in the report of one job does not keep the end of the next from being reported."""
    answers: list[Exception | None] = [OutsideError("502"), ValueError("a bug"), None]
    reported: list[str] = []

    def report(record: JobRecord) -> None:
        if error := answers.pop(0):
            raise error
        reported.append(record.id)

    runner = JobRunner(
        store=bench.store,
        clock=bench.clock,
        handle=bench.does,
        failed=lambda *_: None,
        worker="w",
        stopped=report,
    )
    for name in ("first", "second"):
        bench.order(name, key=name)
        lose(bench.store, name)
    for name in ("first", "second"):
        assert bench.store.cancel_jobs([name])
    runner.report_stopped_jobs(runner.take_back_lost_jobs())
    assert reported == []
    runner.report_stopped_jobs(runner.take_back_lost_jobs())
    assert len(reported) == 1
    assert runner.take_back_lost_jobs() == []


def test_a_job_that_comes_back_waits_for_its_old_thread(bench: _Bench) -> None:
    """A worker that was silent for too long loses its job, and may not run it twice at once when it is back."""
    bench.order()
    old = bench.runner.claim()
    assert old is not None
    with bench.store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE workers SET seen = 0"))
    bench.store.release_lost_jobs("another", [], timedelta(minutes=1))
    assert bench.job().state == "waiting"
    assert bench.runner.claim() is None
    bench.runner.forget(old)
    assert bench.runner.claim() is not None
