"""Lists and sums mean the same on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from regreen.adapters.clock import SystemClock
from regreen.adapters.store import tables
from regreen.adapters.store.connection import engine_for
from regreen.adapters.store.database import Database
from regreen.domain.list_queries import ListQuery, QueueState, RepositoryMonth, TokenTotals
from regreen.domain.models import Cost
from regreen.domain.records import AuditEntry, DeliveryRecord, LedgerLine, Order, ResultDocument
from tests.jobs import accept, claim

_NOW = datetime.now(UTC)
_DAY = timedelta(days=1)


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    url = f"sqlite:///{tmp_path / 'x.sqlite'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres")
    database = Database(engine_for(url), SystemClock())
    tables.metadata.drop_all(database.engine)
    database.create_or_upgrade_tables()
    yield database
    database.engine.dispose()


def _order(name: str, repo: str = "o/r", kind: str = "fix") -> Order:
    job = f"{kind}/{repo}/7/{name}"
    return Order(job, kind, repo, 7, 1, "work", repo, 1, "{}")  # type: ignore[arg-type]


def test_pages_follow_each_other_without_a_gap(store: Database) -> None:
    store.store_orders([_order(f"{n:02}") for n in range(25)])
    seen, after = [], ""
    while True:
        page = store.list_jobs(
            ListQuery(repo="o/r", number=7, state="waiting", after=after, limit=10)
        )
        seen += [job.id for job in page.rows]
        after = page.after
        if not after:
            break
    assert seen == [f"fix/o/r/7/{n:02}" for n in reversed(range(25))]
    assert store.list_jobs(ListQuery(repos=("o/x",))).rows == []
    assert store.list_jobs(ListQuery(repos=())).rows == []


def test_words_are_found_in_any_case_and_are_no_pattern(store: Database) -> None:
    store.store_orders([_order("a"), _order("b")])
    store.end("fix/o/r/7/a", "done", "Fixed 100% of it")
    assert [j.id for j in store.list_jobs(ListQuery(words="fixed 100%")).rows] == ["fix/o/r/7/a"]
    assert (
        store.list_jobs(ListQuery(words="%")).rows == store.list_jobs(ListQuery(words="100%")).rows
    )


def test_the_months_sums_are_each_repositorys_own(store: Database) -> None:
    store.store_orders([_order("a", "o/idle")])
    store.charge(LedgerLine(_NOW, "j", "o/paid", 1, "fix", "m", Cost(0.5, 1, 2, 3, 4)))
    store.charge(LedgerLine(_NOW - 60 * _DAY, "j", "o/once", 1, "fix", "m", Cost(9.0, 1, 2, 3, 4)))
    for number, (repo, kind) in enumerate([("o/found", "review"), ("o/found", "review"), ("o/found", "bisect"), ("o/paid", "fix")]):  # fmt: skip
        store.save_document(ResultDocument(kind, repo, 1, str(number), "j", _NOW, {}))  # type: ignore[arg-type]
    store.save_document(ResultDocument("fix", "o/once", 1, "old", "j", _NOW - 60 * _DAY, {}))
    assert store.months(_NOW - 30 * _DAY, _NOW - _DAY) == [
        RepositoryMonth("o/found", reviews=2, bisections=1),
        RepositoryMonth("o/idle"),
        RepositoryMonth("o/paid", fixes=1, usd=0.5, usd_today=0.5),
    ]


def test_every_list_and_sum(store: Database) -> None:
    job = _order("a")
    accept(store, DeliveryRecord("d", "push", "o/r", "{}", _NOW), [job, _order("t", kind="tick")])  # fmt: skip
    claim(store, job.id, "main")
    store.note_progress(job.id, "fetching")
    store.note_progress(job.id, "fetching")
    store.note_progress(job.id, "testing")
    store.end(job.id, "done", "fixed")
    store.end("tick/o/r/7/t", "done", "green again", outcome="green")
    store.store_orders([_order("waits")])
    for at, usd in ((_NOW, 0.5), (_NOW - 2 * _DAY, 0.25), (_NOW - 40 * _DAY, 9.0)):
        store.charge(LedgerLine(at, job.id, "o/r", 7, "fix", "m", Cost(usd, 1, 20, 3, 4)))
    store.save_document(ResultDocument("fix", "o/r", 7, "s", job.id, _NOW, {"outcome": "fixed"}))
    store.log(AuditEntry(_NOW, job.id, "o/r", 7, "ann", "fix", "x"))
    assert store.months(_NOW - 30 * _DAY, _NOW - _DAY) == [RepositoryMonth("o/r", fixes=1, usd=0.75, usd_today=0.5)]  # fmt: skip
    runs = store.schedule_runs(_NOW - _DAY)
    assert [(one.repo, one.note, one.outcome) for one in runs] == [("o/r", "green again", "green")]
    assert [line for _, line in store.list_job_progress(job.id)] == ["fetching", "testing"]
    assert [d.subject for d in store.results_of(job.id)] == ["s"]
    assert len(store.list_ledger(ListQuery(job=job.id)).rows) == 3
    assert [a.asked_by for a in store.list_actions(ListQuery(words="ANN")).rows] == ["ann"]
    assert [d.id for d in store.list_deliveries(ListQuery(kind="push")).rows] == ["d"]
    assert [d.kind for d in store.list_documents(ListQuery(kind="fix", words="FIXED")).rows] == [
        "fix"
    ]
    (work,) = store.queues()
    assert work == QueueState("work", 1, work.oldest_s, 0)
    assert {s.kind: s.count for s in store.job_durations()} == {"fix": 1}
    assert store.tokens() == TokenTotals(60, 9, 12)
    assert store.cancel_jobs(["fix/o/r/7/waits"])
    assert not store.cancel_jobs([job.id])
