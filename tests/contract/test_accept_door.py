"""The way in on SQLite writes what the plain path and the engine write, all of it or nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from regreen.adapters.clock import SystemClock
from regreen.adapters.connection import engine_for
from regreen.adapters.database import Database
from regreen.adapters.door import Door
from regreen.bot.engine_rows import learn
from regreen.bot.jobs import Queue
from regreen.errors import OutsideError
from regreen.records import DeliveryRecord, Order


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    made = Database(engine_for(f"sqlite:///{tmp_path / 'regreen.sqlite'}"), SystemClock())
    made.create()
    yield made
    made.engine.dispose()


@pytest.fixture
def door(store: Database) -> Iterator[Door]:
    made = Door(str(store.engine.url.database), SystemClock(), patience_s=0.1)
    yield made
    made.close()


def _delivery(name: str) -> DeliveryRecord:
    return DeliveryRecord(name, "push", "octo/hello", "{}", datetime(2026, 1, 1, tzinfo=UTC))


def _order(name: str, replaces: str | None = None, delay: float = 0.0) -> Order:
    return Order(
        name, "review", "octo/hello", 7, 3, "review", "3/1", 1001, '{"a": 1}', delay, replaces
    )


def _nothing_more(_: Order) -> tuple[()]:
    return ()


def test_a_delivery_is_kept_once_with_its_jobs(store: Database, door: Door) -> None:
    items = [(_delivery("d"), [_order("a")]), (_delivery("d"), [_order("b")])]
    assert door.accept_all(items, _nothing_more) == [True, False]
    assert door.accept_all(items, _nothing_more) == [False, False]
    assert [job.id for job in store.jobs()] == ["a"]
    assert store.delivery("d") == _delivery("d")


def test_the_rows_are_those_of_the_plain_path(store: Database, door: Door) -> None:
    door.accept_all([(_delivery("d"), [_order("a", "r"), _order("b", delay=60)])], _nothing_more)
    store.accept(_delivery("e"), [_order("c"), _order("f", delay=60)], lambda *_: None)
    query = "SELECT * FROM jobs WHERE id = :id"
    with store.engine.begin() as connection:
        found = {
            name: dict(connection.execute(sa.text(query), {"id": name}).one()._mapping)
            for name in "abcf"
        }
    for ours, plain in (("a", "c"), ("b", "f")):
        wait, plain_wait = (found[n]["due"] - found[n]["created"] for n in (ours, plain))
        assert wait == pytest.approx(plain_wait)
        for name in ("id", "created", "due", "replaces"):
            assert type(found[ours].pop(name)) in {type(found[plain].pop(name)), str}
        assert found[ours] == found[plain]


def test_a_newer_job_ends_the_one_that_it_replaces(store: Database, door: Door) -> None:
    for name in ("old", "new"):
        door.accept_all([(_delivery(name), [_order(name, "review/7")])], _nothing_more)
    together = [(_delivery(n), [_order(n, "review/8")]) for n in ("one", "two")]
    door.accept_all(together, _nothing_more)
    assert {job.id: (job.state, job.note) for job in store.jobs()} == {
        "old": ("superseded", "a newer one came: new"),
        "new": ("waiting", ""),
        "one": ("superseded", "a newer one came: two"),
        "two": ("waiting", ""),
    }


def test_what_the_engine_does_not_take_is_not_kept(store: Database, door: Door) -> None:
    def broken(_: Order) -> list[tuple[str, list[Any]]]:
        return [("INSERT INTO nowhere VALUES (?)", [1])]

    with pytest.raises(OutsideError, match="no such table"):
        door.accept_all([(_delivery("d"), [_order("a")])], broken)
    assert store.delivery("d") is None
    assert door.accept_all([(_delivery("d"), [_order("a")])], _nothing_more) == [True]


def test_a_database_that_somebody_holds_is_waited_for_and_then_refused(
    store: Database, door: Door
) -> None:
    door.accept_all([(_delivery("c"), [])], _nothing_more)
    with sqlite3.connect(str(store.engine.url.database), isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OutsideError, match="locked"):
            door.accept_all([(_delivery("d"), [_order("a")])], _nothing_more)
        other.execute("ROLLBACK")
    other.close()
    assert door.accept_all([(_delivery("d"), [_order("a")])], _nothing_more) == [True]


def test_what_is_learnt_of_the_engine_is_what_it_writes(store: Database, door: Door) -> None:
    queue = Queue(store.engine)
    _make_the_engines_tables(store)
    rows = queue.rows
    assert rows is not None, "the engine has changed; accepting deliveries is slow now"
    late, plain_late = _order('late/é"', delay=600), _order("plain-late", delay=600)
    door.accept_all([(_delivery("d"), [_order("ours"), late])], rows)
    store.accept(_delivery("e"), [_order("plain"), plain_late], queue.enqueue)
    queue.close()
    with store.engine.begin() as connection:
        found = {
            row.workflow_uuid: dict(row._mapping)
            for row in connection.execute(
                sa.text(
                    "SELECT s.*, i.inputs FROM workflow_status s JOIN workflow_input i USING (workflow_uuid)"
                )
            )
        }
    for ours, theirs in (("ours", "plain"), (late.id, "plain-late")):
        assert ours in found[ours]["inputs"].replace('\\"', '"')
        when = ("created_at", "updated_at", "delay_until_epoch_ms")
        for name in when:
            assert abs((found[ours].pop(name) or 0) - (found[theirs].pop(name) or 0)) < 60_000
        for name in ("workflow_uuid", "creator_xid", "inputs"):
            assert type(found[ours].pop(name)) is type(found[theirs].pop(name))
        assert found[ours] == found[theirs]


def test_an_engine_that_writes_otherwise_is_asked_each_time(store: Database) -> None:
    def enqueue(connection: Any, order: Order) -> None:
        connection.execution_options()
        table = sa.table("queue", sa.column("id"), sa.column("length"))
        connection.execute(sa.insert(table), {"id": order.id, "length": order.priority * 2})

    assert learn(enqueue, store.engine.dialect) is None


def _make_the_engines_tables(store: Database) -> None:
    from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer

    config: DBOSConfig = {
        "name": "regreen",
        "system_database_engine": store.engine,
        "serializer": DBOSPortableJSONSerializer(),
        "log_level": "WARNING",
    }
    DBOS(config=config)
    DBOS.launch()
    DBOS.destroy()
