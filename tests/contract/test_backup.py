"""What docs/operating.md says of backup, restore and upgrade, done."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from regreen.adapters.clock import SystemClock
from regreen.adapters.store.connection import engine_for
from regreen.adapters.store.database import Database
from regreen.domain.records import AuditEntry, Order
from regreen.domain.state_records import Approval


def _order(name: str) -> Order:
    return Order(f"fix/o/r/1/{name}", "fix", "o/r", 1, 1, "work", "o/r", 1, "{}")


def _opened(url: str) -> Database:
    store = Database(engine_for(url), SystemClock())
    store.create_or_upgrade_tables()
    return store


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="sqlite3 is not installed")
def test_sqlite_is_copied_while_it_runs_and_put_back(tmp_path: Path) -> None:
    home = tmp_path / "home"
    store = _opened(f"sqlite:///{home}/regreen.sqlite")
    store.store_orders([_order("before")])  # still in the write-ahead log
    copy = tmp_path / "copy.sqlite"
    subprocess.run(["sqlite3", str(home / "regreen.sqlite"), f".backup {copy}"], check=True)
    store.store_orders([_order("after")])
    store.engine.dispose()
    for name in ("regreen.sqlite", "regreen.sqlite-wal", "regreen.sqlite-shm"):
        (home / name).unlink(missing_ok=True)
    shutil.copy(copy, home / "regreen.sqlite")
    restored = _opened(f"sqlite:///{home}/regreen.sqlite")
    assert [job.id for job in restored.jobs()] == ["fix/o/r/1/before"]
    restored.save(Approval("octo/hello", 8, "abc", "ann"))
    restored.engine.dispose()


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="sqlite3 is not installed")
def test_the_audit_log_is_exported_as_the_page_on_data_says(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text()
    command = next(line for line in page.splitlines() if line.startswith("sqlite3 "))
    query = command.split('"')[1]
    store = _opened(f"sqlite:///{tmp_path}/regreen.sqlite")
    store.log(AuditEntry(datetime.now(UTC), "j", "o/r", 1, "ann", "fix", "draft #2"))
    store.engine.dispose()
    exported = subprocess.run(
        ["sqlite3", "-json", str(tmp_path / "regreen.sqlite"), query],
        check=True, capture_output=True,
    )  # fmt: skip
    (row,) = json.loads(exported.stdout)
    assert (row["asked_by"], row["action"], row["detail"]) == ("ann", "fix", "draft #2")


@pytest.mark.skipif(shutil.which("pg_dump") is None, reason="pg_dump is not installed")
def test_postgresql_is_dumped_while_it_runs_and_restored_into_an_empty_one(
    postgres: str, tmp_path: Path
) -> None:
    """The two commands of the page, as they stand there; jobs that wait are those that wait afterwards."""
    page = (Path(__file__).parents[2] / "docs" / "operating.md").read_text()
    dump, restore = (line for line in page.splitlines() if line.startswith(("pg_dump", "pg_restore")))  # fmt: skip
    server = sa.create_engine(_driver(postgres), isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        for name in ("before", "after"):
            connection.execute(sa.text(f"DROP DATABASE IF EXISTS {name}"))
            connection.execute(sa.text(f"CREATE DATABASE {name}"))
    url = postgres.rpartition("/")[0]
    store = _opened(f"{url}/before")
    store.store_orders([_order("waits"), _order("done")])
    store.end("fix/o/r/1/done", "done", "fixed")
    store.save(Approval("octo/hello", 7, "abc", "ann"))
    _shell(dump, f"{url}/before", tmp_path)
    store.store_orders([_order("later")])
    _shell(restore, f"{url}/after", tmp_path)
    restored = _opened(f"{url}/after")
    assert {job.id: job.state for job in restored.jobs()} == {
        "fix/o/r/1/waits": "waiting",
        "fix/o/r/1/done": "done",
    }
    assert restored.find_all(Approval) == [Approval("octo/hello", 7, "abc", "ann")]
    restored.log(AuditEntry(datetime.now(UTC), "j", "o/r", 1, "ann", "fix", ""))  # numbers go on
    restored.save(Approval("octo/hello", 8, "abc", "ann"))
    for one in (store.engine, restored.engine, server):
        one.dispose()


def _driver(url: str) -> str:
    return url.replace("postgresql:", "postgresql+psycopg:")


def _shell(command: str, url: str, where: Path) -> None:
    env = os.environ | {"REGREEN_DATABASE_URL": url}
    subprocess.run(["sh", "-c", command], cwd=where, env=env, check=True, timeout=60)
