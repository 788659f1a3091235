"""What every part of the store needs: one transaction at a time, the database's troubles as ours, rows once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from regreen.codebase.redaction import Clean, redact
from regreen.errors import OutsideError
from regreen.ports import Clock

LIVE = ("waiting", "running")


class Rows:
    """The tables' rows in SQLite or PostgreSQL: the same statements on both."""

    def __init__(self, engine: sa.Engine, clock: Clock, clean: Clean = redact) -> None:
        self.engine = engine
        self._clean = clean
        self._clock = clock
        dialect = sqlite if engine.dialect.name == "sqlite" else postgresql
        self._insert: Callable[[sa.Table], Any] = dialect.insert

    @contextmanager
    def _begin(self) -> Iterator[sa.Connection]:
        """One transaction; the database's own troubles become `OutsideError`."""
        try:
            with self.engine.begin() as connection:
                yield connection
        except (sa.exc.IntegrityError, sa.exc.ProgrammingError, sa.exc.DataError):
            raise  # ours, not the database's
        except (sa.exc.DatabaseError, sa.exc.InterfaceError, sa.exc.TimeoutError) as error:
            said = str(getattr(error, "orig", None) or error).split("\n", 1)[0][:200]
            msg = f"the database failed: {said}"
            raise OutsideError(msg) from error

    def _is_new(self, connection: sa.Connection, table: sa.Table, row: dict[str, Any]) -> bool:
        """Insert a row unless its key is there; whether it was not."""
        key = next(iter(table.primary_key.columns))
        # the count of rows is not told alike by every driver; what is returned is
        insert = self._insert(table).values(row).on_conflict_do_nothing().returning(key)
        return connection.execute(insert).first() is not None

    def _now(self) -> float:
        return self._clock.now().timestamp()


def time_of(seconds: float) -> datetime:
    """Seconds since 1970 as a time."""
    return datetime.fromtimestamp(seconds, UTC)


def time_or_none(seconds: float | None) -> datetime | None:
    """The same, None where there is none."""
    return None if seconds is None else time_of(seconds)
