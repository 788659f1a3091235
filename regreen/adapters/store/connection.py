"""Opens a database by its URL: SQLite or PostgreSQL, configured for durable commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from regreen.domain.errors import OutsideError, UserError
from regreen.domain.ports import Clock
from regreen.secrets.redaction import CleanText, redact_secrets


def engine_for(url: str) -> sa.Engine:
    """An engine for a database URL, configured for durable commits.

    Raises:
        UserError: the URL names neither SQLite nor PostgreSQL.
    """
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError as error:
        msg = "REGREEN_DATABASE_URL is no database URL; try sqlite:////PATH"
        raise UserError(msg) from error
    if parsed.get_backend_name() == "sqlite":
        return _make_sqlite_engine(parsed)
    if parsed.get_backend_name() == "postgresql":
        return sa.create_engine(
            parsed.set(drivername="postgresql+psycopg"),
            pool_size=20,
            max_overflow=10,
            pool_pre_ping=True,
            pool_timeout=10,
            connect_args={"connect_timeout": 10},
        )
    msg = f"REGREEN_DATABASE_URL: {parsed.get_backend_name()} is not supported; use sqlite or postgresql"
    raise UserError(msg)


def _make_sqlite_engine(url: sa.URL) -> sa.Engine:
    if not url.database or url.database == ":memory:":
        msg = "REGREEN_DATABASE_URL: an SQLite database needs a file, sqlite:////PATH"
        raise UserError(msg)
    Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    # the connection used last is used again: the idle ones left by a peak hold no pages
    engine = sa.create_engine(
        url, pool_size=20, max_overflow=10, pool_timeout=10, pool_use_lifo=True
    )

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, record: object) -> None:  # noqa: ARG001 - SQLAlchemy's signature
        connection.isolation_level = "IMMEDIATE"
        for pragma in (
            "busy_timeout=30000",
            "foreign_keys=ON",
            "journal_mode=WAL",
            "synchronous=FULL",
            "cache_size=-512",  # for each connection; the system caches the file's pages once for all
        ):
            connection.execute(f"PRAGMA {pragma}").close()

    return engine


def ping_database(url: str) -> str:
    """Check that a database answers; return its URL without the password.

    Raises:
        UserError: the URL names neither SQLite nor PostgreSQL.
        OutsideError: it does not answer.
    """
    engine = engine_for(url)
    try:
        with engine.connect() as connection:
            connection.execute(sa.text("select 1"))
    except sa.exc.SQLAlchemyError as error:
        raise OutsideError(" ".join(str(error).split())[:200]) from error
    finally:
        engine.dispose()
    return engine.url.render_as_string()


# What every part of the store needs: transactions, errors as ours, inserts without duplicates.

LIVE_STATES = ("waiting", "running")


class StoreRows:
    """The tables' rows in SQLite or PostgreSQL: the same statements on both."""

    def __init__(self, engine: sa.Engine, clock: Clock, clean: CleanText = redact_secrets) -> None:
        self.engine = engine
        self._clean = clean
        self._clock = clock
        dialect = sqlite if engine.dialect.name == "sqlite" else postgresql
        self._insert: Callable[[sa.Table], Any] = dialect.insert

    @contextmanager
    def _begin_transaction(self) -> Iterator[sa.Connection]:
        """One transaction; the database's errors become `OutsideError`."""
        try:
            with self.engine.begin() as connection:
                yield connection
        except (sa.exc.IntegrityError, sa.exc.ProgrammingError, sa.exc.DataError):
            raise  # ours, not the database's
        except (sa.exc.DatabaseError, sa.exc.InterfaceError, sa.exc.TimeoutError) as error:
            cause = str(getattr(error, "orig", None) or error).split("\n", 1)[0][:200]
            msg = f"the database failed: {cause}"
            raise OutsideError(msg) from error

    def _is_new(self, connection: sa.Connection, table: sa.Table, row: dict[str, Any]) -> bool:
        """Insert a row unless its key exists; return whether it was new."""
        key = next(iter(table.primary_key.columns))
        # drivers count rows differently; returned rows are reliable
        insert = self._insert(table).values(row).on_conflict_do_nothing().returning(key)
        return connection.execute(insert).first() is not None

    def _current_seconds(self) -> float:
        return self._clock.now().timestamp()

    def _database_now(self) -> sa.ColumnElement[float]:
        """The database's time in seconds since 1970, which all workers share."""
        if self.engine.dialect.name == "postgresql":
            return sa.cast(sa.extract("epoch", sa.func.clock_timestamp()), sa.Float)
        return (sa.func.julianday("now") - 2440587.5) * 86400.0


def datetime_from_seconds(seconds: float) -> datetime:
    """Seconds since 1970 as a time."""
    return datetime.fromtimestamp(seconds, UTC)


def time_or_none(seconds: float | None) -> datetime | None:
    """Seconds since 1970 as a time; None if there is none."""
    return None if seconds is None else datetime_from_seconds(seconds)
