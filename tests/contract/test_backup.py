"""What docs/operating.md says of backup, restore and upgrade, done."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import sqlalchemy as sa

from regreen.adapters.clock import SystemClock
from regreen.adapters.connection import engine_for
from regreen.adapters.database import Database
from regreen.records import Order


def _order(name: str) -> Order:
    return Order(f"fix/o/r/1/{name}", "fix", "o/r", 1, 1, "work", "o/r", 1, "{}")


def _opened(url: str) -> Database:
    store = Database(engine_for(url), SystemClock())
    store.create()
    return store


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="sqlite3 is not installed")
def test_sqlite_is_copied_while_it_runs_and_put_back(tmp_path: Path) -> None:
    home = tmp_path / "home"
    store = _opened(f"sqlite:///{home}/regreen.sqlite")
    store.order([_order("before")], lambda *_: None)  # still in the write-ahead log
    copy = tmp_path / "copy.sqlite"
    subprocess.run(["sqlite3", str(home / "regreen.sqlite"), f".backup {copy}"], check=True)
    store.order([_order("after")], lambda *_: None)
    store.engine.dispose()
    for name in ("regreen.sqlite", "regreen.sqlite-wal", "regreen.sqlite-shm"):
        (home / name).unlink(missing_ok=True)
    shutil.copy(copy, home / "regreen.sqlite")
    restored = _opened(f"sqlite:///{home}/regreen.sqlite")
    assert [job.id for job in restored.jobs()] == ["fix/o/r/1/before"]
    assert restored.is_healthy()
    restored.engine.dispose()


def test_an_older_database_gets_the_indexes_that_came_later(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/regreen.sqlite"
    store = _opened(url)
    store.order([_order("kept")], lambda *_: None)
    with store.engine.begin() as connection:
        connection.execute(sa.text("DROP INDEX jobs_by_repo"))
        connection.execute(sa.text("DROP INDEX documents_by_kind"))
        connection.execute(sa.text("DROP TABLE turns"))
    store.engine.dispose()
    upgraded = _opened(url)
    seen = sa.inspect(upgraded.engine)
    assert "jobs_by_repo" in {index["name"] for index in seen.get_indexes("jobs")}
    assert "documents_by_kind" in {index["name"] for index in seen.get_indexes("documents")}
    assert seen.has_table("turns")
    assert [job.id for job in upgraded.jobs()] == ["fix/o/r/1/kept"]
    upgraded.engine.dispose()
