"""The way in for deliveries on SQLite: a connection of its own, SQL that is made once, one transaction for all.

What SQLAlchemy does for a statement takes longer here than the statement, and on this path nothing else is left to
save. A connection of its own has its own patience, too: GitHub hangs up after ten seconds.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from regreen.adapters import placing
from regreen.adapters import tables as t
from regreen.errors import OutsideError
from regreen.ports import Clock
from regreen.records import DeliveryRecord, Order

Statement = tuple[str, Sequence[Any]]
RowsOf = Callable[[Order], Iterable[Statement]]
"""What the engine has to have written for a job."""


# What was committed is safe in the write-ahead log. Who writes next anywhere else brings it into the database's own
# file, once there are a thousand pages of it; here somebody waits for an answer.
_PAGES = 4000


class Door:
    """Stores deliveries with their jobs; one caller at a time.

    Args:
        path: the database's file; its tables are there.
        clock: the time.
        patience_s: how long somebody else may hold the database.
    """

    def __init__(self, path: str, clock: Clock, patience_s: float = 7.0) -> None:
        self._path = path
        self._clock = clock
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._delivery = _sql(_insert(t.deliveries))
        self._job = _sql(_insert(t.jobs), _FILLED_LATER)
        self._supersede, self._fixed = _sql_and_values(placing.SUPERSEDE)

    def accept_all(
        self, items: Sequence[tuple[DeliveryRecord, Sequence[Order]]], rows_of: RowsOf
    ) -> list[bool]:
        """Store deliveries with their jobs in one transaction; for each, whether it was new.

        Raises:
            OutsideError: the database does not take them.
        """
        with self._lock:
            try:
                return self._write(self._begin(), items, rows_of)
            except (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.DataError):
                self._let_go()
                raise  # ours, not the database's
            except sqlite3.Error as error:
                self._let_go()
                msg = f"the database failed: {error}"
                raise OutsideError(msg) from error
            except BaseException:
                self._let_go()
                raise

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._let_go()

    def _begin(self) -> sqlite3.Cursor:
        if self._connection is None:
            self._connection = sqlite3.connect(
                self._path, self._patience_s, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA synchronous=FULL").close()
            self._connection.execute(f"PRAGMA wal_autocheckpoint={_PAGES}").close()
        cursor = self._connection.cursor()
        cursor.execute("BEGIN IMMEDIATE")
        return cursor

    def _write(
        self,
        cursor: sqlite3.Cursor,
        items: Sequence[tuple[DeliveryRecord, Sequence[Order]]],
        rows_of: RowsOf,
    ) -> list[bool]:
        now = self._clock.now().timestamp()
        answers, placed = [], list[Order]()
        for delivery, orders in items:
            answers.append(self._is_new(cursor, self._delivery, placing.delivery_row(delivery)))
            if answers[-1]:
                jobs = ((order, placing.job_row(order, now)) for order in orders)
                placed += [order for order, row in jobs if self._is_new(cursor, self._job, row)]
        for values in placing.superseded(placed, now):
            cursor.execute(self._supersede, self._fixed | values)
        for order in placed:
            for sql, parameters in rows_of(order):
                # to the end, or the statement is still at work when the transaction ends
                cursor.execute(sql, parameters).fetchall()
        cursor.execute("COMMIT")
        return answers

    @staticmethod
    def _is_new(cursor: sqlite3.Cursor, sql: str, row: Mapping[str, Any]) -> bool:
        return cursor.execute(sql, row).rowcount == 1

    def _let_go(self) -> None:
        """Close the connection, which takes back what it has not committed; the next delivery opens another."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None


# A job that has only been ordered has none of these.
_FILLED_LATER = frozenset({"started", "ended", "worker"})


def _insert(table: sa.Table) -> Any:
    return sqlite.insert(table).on_conflict_do_nothing()


def _sql(statement: Any, without: frozenset[str] = frozenset()) -> str:
    names = [c.name for c in statement.table.columns if c.name not in without]
    return str(statement.compile(dialect=_DIALECT, column_keys=names))


def _sql_and_values(statement: Any) -> tuple[str, dict[str, Any]]:
    """The text, and the values that are part of it."""
    compiled = statement.compile(dialect=_DIALECT, compile_kwargs={"render_postcompile": True})
    return str(compiled), {k: v for k, v in compiled.params.items() if v is not None}


_DIALECT = sqlite.dialect(paramstyle="named")
