"""The schema of the store's database, and the Alembic migrations that bring an older database up to it."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from regreen.adapters.store import tables
from regreen.domain.errors import UserError

SCHEMA_VERSION = "0010"
"""The newest revision under `versions/`: what this program expects of a database."""

FIRST_VERSION = "0001"
"""The schema of release 0.1.0, which recorded no version."""

_SCHEMA_LOCK = 0x7265677265656E  # "regreen"


def upgrade_schema(connection: sa.Connection) -> None:
    """Bring a database to this program's schema inside one transaction: create it, migrate it, or leave it.

    Args:
        connection: without a transaction; the caller commits. One process at a time passes the first line.

    Raises:
        UserError: a newer Regreen or another program made the database.
    """
    _lock_schema(connection)
    names = sa.inspect(connection).get_table_names()
    if tables.schema_version.name in names:
        version = connection.execute(sa.select(tables.schema_version)).scalar_one_or_none()
    else:
        version = FIRST_VERSION if "jobs" in names else None
        if version is None:
            tables.metadata.create_all(connection)
        _run_alembic(connection, "stamp", version or SCHEMA_VERSION)
        version = version or SCHEMA_VERSION
    if version != SCHEMA_VERSION:
        _run_alembic(connection, "upgrade", SCHEMA_VERSION, version=version)


def _lock_schema(connection: sa.Connection) -> None:
    if connection.dialect.name == "postgresql":
        lock = sa.text("SELECT pg_advisory_xact_lock(:key)")
        connection.execute(lock, {"key": _SCHEMA_LOCK})
    else:
        # Python's driver begins no transaction before a statement that changes the schema
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _run_alembic(
    connection: sa.Connection, action: str, target: str, *, version: str | None = None
) -> None:
    # imported here, because a start with an up-to-date database needs none of it
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    if version is not None:
        try:
            ScriptDirectory.from_config(config).get_revision(version)
        except CommandError as error:
            message = (
                f"the database has schema {version}, which a newer Regreen made; this one knows {SCHEMA_VERSION}: "
                "start that release again, or restore the copy of the database made before its upgrade"
            )
            raise UserError(message) from error
    (command.stamp if action == "stamp" else command.upgrade)(config, target)
