"""The inbox: a delivery is one durable row, or the sender is told that it is none."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from regreen.adapters.clock import SystemClock
from regreen.adapters.store.connection import engine_for
from regreen.adapters.store.database import Database
from regreen.adapters.store.inbox import DeliveryInbox
from regreen.adapters.store.tables import metadata
from regreen.app.web import DeliveryIntake
from regreen.domain.errors import OutsideError
from regreen.domain.records import DeliveryRecord, Order
from regreen.domain.settings import Settings


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    url = f"sqlite:///{tmp_path / 'regreen.sqlite'}"
    if request.param == "postgresql":
        url = str(request.getfixturevalue("postgres"))
    made = Database(engine_for(url), SystemClock())
    metadata.drop_all(made.engine)
    made.create_or_upgrade_tables()
    yield made
    metadata.drop_all(made.engine)
    made.engine.dispose()


def _delivery(name: str, event: str = "{}") -> DeliveryRecord:
    return DeliveryRecord(name, "push", "octo/hello", event, datetime(2026, 1, 1, tzinfo=UTC))


def test_a_delivery_is_stored_once_and_as_it_came(store: Database) -> None:
    inbox = DeliveryInbox(store.engine)
    first = _delivery("d", '{"text": "\u2028 % é :x ?"}')
    assert inbox.accept_all([first, _delivery("e"), _delivery("d")]) == [True, True, False]
    assert inbox.accept_all([_delivery("d")]) == [False]
    assert store.delivery("d") == first
    assert len(store.deliveries()) == 2


def test_one_that_cannot_be_written_takes_its_whole_batch_along(store: Database) -> None:
    inbox = DeliveryInbox(store.engine)
    unwritable = DeliveryRecord("e", "push", None, None, datetime.now(UTC))  # type: ignore[arg-type]
    with pytest.raises(Exception, match=r"(?i)null"):
        inbox.accept_all([_delivery("d"), unwritable])
    assert store.deliveries() == []
    assert inbox.accept_all([_delivery("d")]) == [True]


def test_a_table_that_is_gone_is_no_success(store: Database) -> None:
    inbox = DeliveryInbox(store.engine)
    with store.engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE deliveries RENAME TO elsewhere"))
    with pytest.raises(Exception, match="deliveries"):
        inbox.accept_all([_delivery("d")])
    with store.engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE elsewhere RENAME TO deliveries"))
    assert inbox.accept_all([_delivery("d")]) == [True]


def test_a_database_that_somebody_holds_is_waited_for_and_then_refused(tmp_path: Path) -> None:
    store = Database(engine_for(f"sqlite:///{tmp_path / 'regreen.sqlite'}"), SystemClock())
    store.create_or_upgrade_tables()
    inbox = DeliveryInbox(store.engine, patience_s=0.1)
    with sqlite3.connect(str(store.engine.url.database), isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OutsideError, match="locked"):
            inbox.accept_all([_delivery("d")])
        other.execute("ROLLBACK")
    other.close()
    assert inbox.accept_all([_delivery("d")]) == [True]
    store.engine.dispose()


def test_a_commit_is_flushed_to_disk(store: Database) -> None:
    DeliveryInbox(store.engine).accept_all([_delivery("d")])
    with store.engine.connect() as connection:
        if store.engine.dialect.name == "sqlite":
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2
        else:
            assert connection.exec_driver_sql("SHOW synchronous_commit").scalar_one() == "on"


def test_a_delivery_that_cannot_be_dispatched_is_set_aside_and_the_others_go_on(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    intake = DeliveryIntake(store, SystemClock(), Settings(_env_file=None))
    order = Order(
        id="", kind="review", repo="octo/hello", number=7, installation=2, queue="review", key="k",
        priority=1, event="{}",
    )  # fmt: skip

    def decide(delivery: DeliveryRecord) -> tuple[Order, ...]:
        if delivery.id == "poison":
            raise ValueError("a bug")
        return (replace(order, id=f"job of {delivery.id}"),)

    monkeypatch.setattr(intake, "_decide_orders", decide)
    for name in ("first", "poison", "last"):
        DeliveryInbox(store.engine).accept_all([_delivery(name)])
    intake.dispatch_deliveries()
    assert {job.id for job in store.jobs()} == {"job of first", "job of last"}
    intake.dispatch_deliveries()
    assert len(store.jobs()) == 2
