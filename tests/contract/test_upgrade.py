"""An upgrade: the database of an earlier release goes on with all that it holds; one of a later release is left alone."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from regreen.adapters.clock import SystemClock
from regreen.adapters.store.connection import engine_for
from regreen.adapters.store.database import Database
from regreen.adapters.store.migrations import SCHEMA_VERSION, upgrade_schema
from regreen.adapters.store.tables import (
    metadata,
    observations,
    progress,
    record_tables,
    schema_version,
)
from regreen.domain.errors import UserError
from regreen.domain.models import Signals
from regreen.domain.records import JobKind, Order
from regreen.domain.state_records import (
    STATE_RECORDS,
    Approval,
    Dismissal,
    MissingOrganisationConfig,
    OpenRepair,
    PendingPatch,
    PostedFinding,
    PushedCommits,
    RateLimit,
    RenamedRepository,
    ReplyPart,
    RepositorySchedules,
    ScheduleState,
    StoredCapsule,
    WithheldWrite,
)

RELEASE = Path(__file__).parents[1] / "data" / "databases" / "release-0.1.0.sql"
"""Made by release 0.1.0: a repair's draft is open, a finding is dismissed, a schedule is known, a review waits."""


SCHEMA_0003 = RELEASE.with_name("schema-0003.sql")
"""Made by the last program with string keys, from the one before: one value of every kind, and jobs in each state."""


@pytest.fixture
def released(tmp_path: Path) -> str:
    return _database(tmp_path, RELEASE)


def _database(folder: Path, dump: Path) -> str:
    file = folder / "regreen.sqlite"
    connection = sqlite3.connect(file)
    connection.executescript(dump.read_text())
    connection.close()
    return f"sqlite:///{file}"


def _opened(url: str) -> Database:
    store = Database(engine_for(url), SystemClock())
    store.create_or_upgrade_tables()
    return store


def _differences(store: Database) -> list[object]:
    """What Alembic would change to come from the database to our tables; the job engine's tables are its own."""
    with store.engine.connect() as connection:
        ours = {
            "include_name": lambda name, kind, _: kind != "table" or name in metadata.tables,
            "include_object": lambda _, name, *__: name != schema_version.name,
        }
        return list(compare_metadata(MigrationContext.configure(connection, opts=ours), metadata))


def _version(store: Database) -> str:
    with store.engine.connect() as connection:
        return str(connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar())


def test_the_database_of_the_first_release_is_brought_up_to_date(released: str) -> None:
    store = _opened(released)
    assert _version(store) == SCHEMA_VERSION
    assert _differences(store) == []
    (waiting,) = store.jobs(states=("waiting",))
    assert (waiting.kind, waiting.repo, waiting.number) == ("review", "acme/shop", 2)
    assert [repair.branch for repair in store.find_all(OpenRepair)] == ["change"]
    assert [d.fingerprint[:8] for d in store.find_all(Dismissal, number=1)] == ["5e5c6407"]
    (known,) = store.find_all(RepositorySchedules)
    assert [s["name"] for s in json.loads(known.schedules)] == ["nightly"]
    store.create_or_upgrade_tables()  # the next start
    assert _version(store) == SCHEMA_VERSION
    store.engine.dispose()


def test_typed_tables_take_over_every_value_of_the_schema_before(tmp_path: Path) -> None:
    store = _opened(_database(tmp_path, SCHEMA_0003))
    assert _differences(store) == []
    empty = {kind for kind in STATE_RECORDS if not store.find_all(kind)}
    assert empty == {MissingOrganisationConfig, RateLimit, StoredCapsule, WithheldWrite}, (
        "the rest is read again within minutes"
    )
    repo, topic, commit = "acme/shop", "topic", "c" * 40
    assert store.find(OpenRepair, branch=topic) == OpenRepair(
        repo, topic, 12, True, "f" * 64, ".github/workflows/ci.yml"
    )
    patch = store.find(PendingPatch, repo=repo, place="8")
    assert patch is not None
    assert (patch.sha, patch.on_pull, patch.title) == (commit, True, "Fix it")
    assert store.find_all(Approval) == [Approval(repo, 7, "b" * 40, "alice")]
    assert [(d.number, d.login, d.reason) for d in store.find_all(Dismissal)] == [
        (1, "alice", "test data"),
        (7, "alice", "its thread was resolved"),
    ]
    posted = store.find(PostedFinding, repo=repo, number=7, id="abcd1234")
    assert posted is not None
    assert (posted.signals, posted.suggestion, posted.side) == (Signals(2, 3), "x=1", "RIGHT")
    assert store.find_all(ScheduleState) == [
        ScheduleState(repo, "nightly", "1" * 40, "2" * 40, 31, (30, 31)),
        ScheduleState(repo, "weekly", "", "3" * 40, 33, (33,)),
    ]
    assert store.find_all(PushedCommits) == [
        PushedCommits(repo, "regreen/fix-12", ("e" * 40, "f" * 40))
    ]
    assert store.find_all(RenamedRepository) == [RenamedRepository(1001, repo, ("acme/old-shop",))]
    assert [r.thread for r in store.find_all(ReplyPart, number=1)] == [
        "comment-1034",
        "comment-1077",
    ]
    assert store.observations("verdict:1") == ['{"a": 1}']
    progress = store.list_job_progress("fix/acme/shop/8/33333333-cccc")
    assert [line for _, line in progress] == ["fetching the repository"]
    store.engine.dispose()


def test_the_jobs_of_the_engine_before_are_taken_up_by_the_new_one(tmp_path: Path) -> None:
    store = _opened(_database(tmp_path, SCHEMA_0003))
    assert {job.id.rpartition("/")[2]: job.state for job in store.jobs(limit=5)} == {
        "11111111-aaaa": "superseded",
        "22222222-bbbb": "waiting",
        "33333333-cccc": "running",
        "44444444-dddd": "waiting",
        "55555555-eeee": "done",
    }
    names = sa.inspect(store.engine).get_table_names()
    assert "workflow_status" not in names
    (ran,) = store.release_lost_jobs("main", [], timedelta(minutes=1))
    assert ran.id == "fix/acme/shop/8/33333333-cccc"
    claimed = []
    while (job := store.claim_job("main", datetime(2100, 1, 1, tzinfo=UTC))) is not None:
        store.end(job.id, "done", "", worker="main")
        claimed.append(job.id.rpartition("/")[2])
    assert claimed[:2] == ["44444444-dddd", "33333333-cccc"], "what people asked for goes first"
    assert {"22222222-bbbb", "df8fa700-60a4-41a1-83db-8998824eb8d8"} == set(claimed[2:])
    assert store.dispatch_deliveries(lambda _: pytest.fail("dispatched long ago"), 100) == 0
    store.engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'regreen.sqlite'}"
    return str(request.getfixturevalue("postgres"))


_OLD_TABLES = (
    "CREATE TABLE memory (space VARCHAR(300), key VARCHAR(400), value TEXT, at FLOAT, PRIMARY KEY (space, key))",
    "CREATE TABLE lines (id INTEGER PRIMARY KEY, key VARCHAR(300), line TEXT, at FLOAT)",
)


def test_a_new_database_has_the_newest_schema(url: str) -> None:
    store = _opened(url)
    assert _version(store) == SCHEMA_VERSION
    assert _differences(store) == []
    _drop(store)


_OLD_ENDS: tuple[tuple[JobKind, str, str], ...] = (
    ("fix", "not started: this repository's jobs have used their minutes", "refused"),
    ("review", "the configuration cannot be read: line 2: unknown key", "unreadable"),
    ("tick", "green again: closed #7", "green"),
    ("tick", "still red, and the issue says why", "red"),
    ("tick", "red: #7, found", "red"),
    ("tick", "failed once and not again: flaky", "flaky"),
    ("fix", "green", ""),
)
"""The notes of jobs that ended before the outcome had a column, and what they mean."""


def test_a_database_without_a_version_is_migrated_from_the_first(url: str) -> None:
    store = _opened(url)
    store.store_orders([Order("a", "fix", "o/r", 1, 1, "work", "o/r", 1, "{}")])
    for number, (kind, note, _) in enumerate(_OLD_ENDS):
        store.store_orders([Order(f"{number}", kind, "o/r", 1, 1, "work", "o/r", 1, "{}")])
        store.end(f"{number}", "done", note)
    with store.engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE alembic_version"))
        for table in (*record_tables.values(), progress, observations):
            table.drop(connection)
        connection.execute(sa.text(_OLD_TABLES[0]))
        connection.execute(sa.text(_OLD_TABLES[1]))
        connection.execute(
            sa.text("INSERT INTO memory VALUES ('approved/o/r', '7@abc', 'ann', 1.0)")
        )
        for index in ("deliveries_pending", "jobs_unsettled", "jobs_waiting"):
            connection.execute(sa.text(f"DROP INDEX {index}"))
        connection.execute(sa.text("CREATE INDEX jobs_by_state ON jobs (state, priority, created)"))
        connection.execute(sa.text("ALTER TABLE deliveries DROP COLUMN pending"))
        for column in ("rank", "unsettled", "lost", "outcome"):
            connection.execute(sa.text(f"ALTER TABLE jobs DROP COLUMN {column}"))
        for column in ("sent", "masked"):
            connection.execute(sa.text(f"ALTER TABLE ledger DROP COLUMN {column}"))
    store.create_or_upgrade_tables()
    assert _version(store) == SCHEMA_VERSION
    assert _differences(store) == []
    assert [job.id for job in store.jobs(states=("waiting",))] == ["a"]
    ended = {job.id: job.outcome for job in store.jobs(states=("done",))}
    assert [ended[f"{number}"] for number in range(len(_OLD_ENDS))] == [
        end for *_, end in _OLD_ENDS
    ]
    assert store.find_all(Approval) == [Approval("o/r", 7, "abc", "ann")]
    _drop(store)


def test_a_migration_that_fails_changes_nothing(url: str) -> None:
    store = _opened(url)
    with store.engine.begin() as connection:  # what 0002 changes is not there
        connection.execute(sa.text("DROP TABLE alembic_version"))
    with pytest.raises(sa.exc.DatabaseError), store.engine.begin() as connection:
        upgrade_schema(connection)
    assert not sa.inspect(store.engine).has_table("alembic_version")
    _drop(store)


def test_a_database_of_a_newer_release_is_refused_in_one_line(url: str) -> None:
    store = _opened(url)
    with store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0999'"))
    with pytest.raises(UserError, match="schema 0999, which a newer Regreen made") as refused:
        store.create_or_upgrade_tables()
    assert "\n" not in str(refused.value)
    assert _version(store) == "0999"
    _drop(store)


def _drop(store: Database) -> None:
    metadata.drop_all(store.engine)
    store.engine.dispose()
