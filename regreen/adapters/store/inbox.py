"""The inbox: stores deliveries before they are answered, with one statement each, and a flush for several together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from regreen.adapters.store import tables as t
from regreen.domain.errors import OutsideError
from regreen.domain.records import DeliveryRecord

# GitHub hangs up after ten seconds. A commit is safe in SQLite's write-ahead log; the next writer on another connection
# copies the log into the database's own file once it has a thousand pages, but on this one a client waits for an answer.
_PREPARE = {
    "sqlite": ("PRAGMA busy_timeout={ms}", "PRAGMA wal_autocheckpoint=4000"),
    "postgresql": ("SET LOCAL lock_timeout = {ms}", "SET LOCAL statement_timeout = {ms}"),
}


class DeliveryInbox:
    """Writes deliveries through the driver itself: SQLAlchemy's overhead takes longer here than the statement.

    Args:
        engine: the database.
        patience_s: how long another connection may hold the database, in seconds.
    """

    def __init__(self, engine: sa.Engine, patience_s: float = 7.0) -> None:
        self._engine = engine
        milliseconds = int(patience_s * 1000)
        self._prepare = [s.format(ms=milliseconds) for s in _PREPARE[engine.dialect.name]]

    @cached_property
    def _statement(self) -> tuple[str, Sequence[str] | None]:
        """The insertion as SQL, and the order of its parameters for a driver that takes them by position."""
        dialect = sqlite if self._engine.dialect.name == "sqlite" else postgresql
        insert = dialect.insert(t.deliveries).on_conflict_do_nothing()
        compiled: Any = insert.compile(dialect=self._engine.dialect)
        return str(compiled), compiled.positiontup

    def accept_all(self, deliveries: Sequence[DeliveryRecord]) -> list[bool]:
        """Store deliveries in one transaction; return for each whether it was new.

        Raises:
            OutsideError: the database rejects them or does not answer.
        """
        dbapi: Any = self._engine.dialect.dbapi
        try:
            connection = self._engine.raw_connection()
            try:
                return self._insert_deliveries(connection, deliveries)
            finally:
                connection.close()  # rolls back what is not committed
        except (dbapi.IntegrityError, dbapi.ProgrammingError, dbapi.DataError):
            raise  # ours, not the database's
        except (dbapi.Error, sa.exc.SQLAlchemyError) as error:
            msg = f"the database failed: {str(error).splitlines()[0][:200]}"
            raise OutsideError(msg) from error

    def _insert_deliveries(
        self, connection: Any, deliveries: Sequence[DeliveryRecord]
    ) -> list[bool]:
        cursor = connection.cursor()
        for statement in self._prepare:
            cursor.execute(statement)
        sql, order = self._statement
        answers = []
        for delivery in deliveries:
            row = {
                "id": delivery.id,
                "name": delivery.name,
                "repo": delivery.repo,
                "event": delivery.event,
                "received": delivery.received.timestamp(),
                "pending": 1,
            }
            cursor.execute(sql, row if order is None else [row[name] for name in order])
            answers.append(cursor.rowcount == 1)
        connection.commit()
        return answers
