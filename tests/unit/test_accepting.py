"""Deliveries that come together are written together, and none is answered before it is written."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from regreen.app.web import GroupCommit
from regreen.domain.errors import OutsideError
from regreen.domain.records import DeliveryRecord


class _Database:
    """Keeps ids; refuses "poison", and everything while it is full."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.batches: list[int] = []
        self.is_full = False
        self.gate = threading.Event()
        self.gate.set()

    def accept_all(self, items: Sequence[DeliveryRecord]) -> list[bool]:
        self.gate.wait(5)
        self.batches.append(len(items))
        names = [delivery.id for delivery in items]
        if self.is_full:
            raise OutsideError("disk full")
        if "poison" in names:
            raise ValueError("cannot be encoded")
        answers = [name not in self.kept for name in names]
        self.kept += names
        return answers


@pytest.fixture
def database() -> _Database:
    return _Database()


@pytest.fixture
def door(database: _Database) -> GroupCommit:
    return GroupCommit(database.accept_all)


def _delivery(name: str) -> DeliveryRecord:
    return DeliveryRecord(name, "ping", None, "{}", datetime(2026, 1, 1, tzinfo=UTC))


def _together(door: GroupCommit, names: list[str]) -> dict[str, bool | str]:
    said: dict[str, bool | str] = {}

    def accept(name: str) -> None:
        try:
            said[name] = door.accept_delivery(_delivery(name))
        except OutsideError as error:
            said[name] = str(error)

    threads = [threading.Thread(target=accept, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return said


def test_new_and_known_are_told_apart(door: GroupCommit) -> None:
    assert door.accept_delivery(_delivery("a"))
    assert not door.accept_delivery(_delivery("a"))


def test_what_comes_meanwhile_shares_one_transaction(
    door: GroupCommit, database: _Database
) -> None:
    database.gate.clear()
    opener = threading.Timer(0.3, database.gate.set)
    opener.start()
    said = _together(door, [f"d{i}" for i in range(20)])
    opener.join()
    assert all(said.values())
    assert len(database.batches) < 20


def test_a_full_disk_is_told_to_everybody(door: GroupCommit, database: _Database) -> None:
    database.is_full = True
    assert set(_together(door, ["a", "b"]).values()) == {"disk full"}
    database.is_full = False
    assert door.accept_delivery(_delivery("a"))


def test_one_that_cannot_be_written_takes_no_other_with_it(
    door: GroupCommit, database: _Database
) -> None:
    database.gate.clear()
    opener = threading.Timer(0.3, database.gate.set)
    opener.start()
    said = _together(door, ["a", "poison", "b", "c"])
    opener.join()
    assert said.pop("poison") == "the delivery cannot be written"
    assert said == {"a": True, "b": True, "c": True}
    assert door.accept_delivery(_delivery("later"))


def test_who_comes_while_one_writes_has_a_turn_too(door: GroupCommit, database: _Database) -> None:
    database.gate.clear()
    opener = threading.Timer(0.2, database.gate.set)
    opener.start()
    names = [f"d{i}" for i in range(200)]
    assert set(_together(door, names).values()) == {True}
    opener.join()
    assert sorted(database.kept) == sorted(names)
    assert max(database.batches) <= 64


def test_nobody_waits_for_ever(database: _Database) -> None:
    door = GroupCommit(database.accept_all, longest_wait_s=0.05)
    database.gate.clear()
    opener = threading.Timer(0.5, database.gate.set)
    opener.start()
    said = _together(door, ["a", "b", "c"])
    opener.join()
    # the one that writes waits for the database itself
    assert sorted(map(str, said.values())) == ["True", *["the database takes too long"] * 2]
    assert door.accept_delivery(_delivery("later"))
    assert "later" in database.kept


def test_nothing_that_happens_to_the_writer_looks_like_a_success(database: _Database) -> None:
    class Stop(BaseException):
        pass

    def stopped(items: Sequence[DeliveryRecord]) -> list[bool]:
        database.gate.wait(5)
        if database.is_full:
            raise Stop
        return database.accept_all(items)

    door = GroupCommit(stopped)
    database.gate.clear()
    database.is_full = True
    said: list[str] = []

    def accept(name: str) -> None:
        try:
            said.append(str(door.accept_delivery(_delivery(name))))
        except (OutsideError, Stop) as error:
            said.append(type(error).__name__)

    threads = [threading.Thread(target=accept, args=(f"d{i}",)) for i in range(6)]
    for thread in threads:
        thread.start()
    database.gate.set()
    for thread in threads:
        thread.join()
    assert set(said) <= {"Stop", "OutsideError"}
    assert len(said) == 6
    database.is_full = False
    assert door.accept_delivery(_delivery("later"))
