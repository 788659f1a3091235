"""What jobs remember: values under keys, lines in the order they came."""

from __future__ import annotations

import re

import sqlalchemy as sa

from regreen.adapters import tables as t
from regreen.adapters.pace import Limits, wait_for
from regreen.adapters.rows import Rows

_TURNS_LOCK = 0x7475726E  # "turn"


class MemoryRows(Rows):
    """The part of the store that makes a second attempt walk as the first did."""

    # Memory

    def get(self, space: str, key: str) -> str | None:
        """A remembered value."""
        with self._begin() as connection:
            query = sa.select(t.memory.c.value).where(
                t.memory.c.space == space, t.memory.c.key == key
            )
            return connection.execute(query).scalar_one_or_none()

    def put(self, space: str, key: str, value: str) -> None:
        """Remember a value."""
        row = {"space": space, "key": key, "value": value, "at": self._now()}
        with self._begin() as connection:
            connection.execute(
                self._insert(t.memory)
                .values(row)
                .on_conflict_do_update(index_elements=["space", "key"], set_={"value": value})
            )

    def put_new(self, space: str, key: str, value: str) -> bool:
        """Remember a value unless there is one; whether it was new."""
        row = {"space": space, "key": key, "value": value, "at": self._now()}
        with self._begin() as connection:
            return self._is_new(connection, t.memory, row)

    def items(self, space: str, prefix: str = "") -> list[tuple[str, str]]:
        """Remembered keys that start so, with their values, oldest first."""
        query = (
            sa.select(t.memory.c.key, t.memory.c.value)
            .where(t.memory.c.space == space, t.memory.c.key.startswith(prefix, autoescape=True))
            .order_by(t.memory.c.at, t.memory.c.key)
        )
        with self._begin() as connection:
            return [(row.key, row.value) for row in connection.execute(query)]

    def delete(self, space: str, key: str) -> None:
        """Forget a value."""
        with self._begin() as connection:
            connection.execute(
                sa.delete(t.memory).where(t.memory.c.space == space, t.memory.c.key == key)
            )

    def lines(self, key: str) -> list[str]:
        """The lines kept under `key`, oldest first."""
        query = sa.select(t.lines.c.line).where(t.lines.c.key == key).order_by(t.lines.c.id)
        with self._begin() as connection:
            return list(connection.execute(query).scalars())

    def append(self, key: str, line: str) -> None:
        """Keep one more line under `key`."""
        row = {"key": key, "line": line, "at": self._now()}
        with self._begin() as connection:
            connection.execute(sa.insert(t.lines).values(row))

    def rename(self, before: str, after: str) -> None:
        """A repository has another name: what is remembered of it goes along."""
        named = re.compile(rf"(?:^|(?<=/)){re.escape(before)}(?=$|[#/@])")
        table, holds = t.memory, f"%{before}%"
        with self._begin() as connection:
            for row in connection.execute(
                sa.select(table).where(sa.or_(table.c.space.like(holds), table.c.key.like(holds)))
            ).all():
                place = (named.sub(after, row.space), named.sub(after, row.key))
                if place == (row.space, row.key):
                    continue
                here = (table.c.space == row.space) & (table.c.key == row.key)
                taken = (table.c.space == place[0]) & (table.c.key == place[1])
                connection.execute(sa.delete(table).where(taken))
                moved = sa.update(table).where(here).values(space=place[0], key=place[1])
                connection.execute(moved)
            for owned in (t.documents, t.ledger, t.jobs):
                connection.execute(
                    sa.update(owned).where(owned.c.repo == before).values(repo=after)
                )

    # Turns, which all processes take from the same row of them

    def turn(self, name: str, limits: Limits, longest: float) -> float:
        """Take the next turn of `name`; the seconds until it comes. Longer than `longest`: none was taken."""
        now = self._now()
        with self._begin() as connection:
            if self.engine.dialect.name == "postgresql":
                lock = sa.text("SELECT pg_advisory_xact_lock(:space, hashtext(:name))")
                connection.execute(lock, {"space": _TURNS_LOCK, "name": name})
            # writing first is what locks SQLite before it is read
            past = now - max(span for span, _ in limits)
            connection.execute(
                sa.delete(t.turns).where(t.turns.c.name == name, t.turns.c.at < past)
            )
            query = sa.select(t.turns.c.at).where(t.turns.c.name == name)
            newest = query.order_by(t.turns.c.at.desc()).limit(max(most for _, most in limits))
            wait = wait_for(list(connection.execute(newest).scalars()), limits, now)
            if wait <= longest:
                connection.execute(sa.insert(t.turns).values(name=name, at=now + wait))
        return wait
