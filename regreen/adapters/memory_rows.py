"""What jobs remember: values under keys, lines in the order they came."""

from __future__ import annotations

import sqlalchemy as sa

from regreen.adapters import tables as t
from regreen.adapters.rows import Rows


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
