"""Opens a database by its URL: SQLite or PostgreSQL, set up so that what was committed stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa

from regreen.errors import OutsideError, UserError


def engine_for(url: str) -> sa.Engine:
    """An engine for a database URL, set up so that what was committed stays.

    Raises:
        UserError: the URL names neither SQLite nor PostgreSQL.
    """
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError as error:
        msg = "REGREEN_DATABASE_URL is no database URL; try sqlite:////PATH"
        raise UserError(msg) from error
    if parsed.get_backend_name() == "sqlite":
        return _sqlite(parsed)
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


def _sqlite(url: sa.URL) -> sa.Engine:
    if not url.database or url.database == ":memory:":
        msg = "REGREEN_DATABASE_URL: an SQLite database needs a file, sqlite:////PATH"
        raise UserError(msg)
    Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    # the connection that was used last is used again: those that peaks have left behind hold no pages
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
            "cache_size=-512",  # a connection's own; the system keeps the file's pages once for all
        ):
            connection.execute(f"PRAGMA {pragma}").close()

    return engine


def ping(url: str) -> str:
    """Ask a database whether it answers; its URL, the password hidden.

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
