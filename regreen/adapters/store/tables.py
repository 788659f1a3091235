"""The tables of the store. Times are seconds since 1970 in UTC, so that every database sorts them alike."""

from __future__ import annotations

import re
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import sqlalchemy as sa

from regreen.domain.state_records import STATE_RECORDS, StateRecord

metadata = sa.MetaData()

schema_version = sa.Table(
    "alembic_version",  # Alembic's own name for it
    metadata,
    sa.Column("version_num", sa.String(32), primary_key=True),
)

deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("repo", sa.String(255)),
    sa.Column("event", sa.Text, nullable=False),
    sa.Column("received", sa.Float, nullable=False, index=True),
    sa.Column("pending", sa.Integer, nullable=False, server_default="0"),
    sa.Index(
        "deliveries_pending",
        "received",
        sqlite_where=sa.text("pending = 1"),
        postgresql_where=sa.text("pending = 1"),
    ),
)

jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("id", sa.String(400), primary_key=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("repo", sa.String(255), nullable=False),
    sa.Column("number", sa.Integer),
    sa.Column("installation", sa.BigInteger, nullable=False),
    sa.Column("queue", sa.String(16), nullable=False),
    sa.Column("key", sa.String(300), nullable=False),
    sa.Column("priority", sa.Integer, nullable=False),
    sa.Column("event", sa.Text, nullable=False),
    sa.Column("replaces", sa.String(400)),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("due", sa.Float, nullable=False),
    sa.Column("started", sa.Float),
    sa.Column("ended", sa.Float),
    sa.Column("worker", sa.String(128)),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("progress", sa.Text, nullable=False),
    sa.Column("rank", sa.BigInteger, nullable=False, server_default="0"),
    # 1 from the first start until a worker has recorded the end; of a cancelled job, until its traces are ended too
    sa.Column("unsettled", sa.Integer, nullable=False, server_default="0"),
    sa.Column("lost", sa.Integer, nullable=False, server_default="0"),
    sa.Column("outcome", sa.String(16), nullable=False, server_default=""),
    sa.Index(
        "jobs_unsettled",
        "id",
        sqlite_where=sa.text("unsettled = 1"),
        postgresql_where=sa.text("unsettled = 1"),
    ),
    sa.Index(
        "jobs_waiting",  # in the order in which they are claimed
        "queue",
        "priority",
        "created",
        "due",
        sqlite_where=sa.text("state = 'waiting'"),
        postgresql_where=sa.text("state = 'waiting'"),
    ),
    sa.Index("jobs_by_replaces", "replaces", "state"),
    sa.Index("jobs_by_number", "repo", "number", "created"),
    sa.Index("jobs_by_time", "created"),
    sa.Index("jobs_by_repo", "repo", "created"),
    sa.Index("jobs_by_state_and_time", "state", "created"),
    sa.Index(
        "jobs_of_schedules",
        "created",
        sqlite_where=sa.text("kind = 'tick'"),
        postgresql_where=sa.text("kind = 'tick'"),
    ),
)

workers = sa.Table(
    "workers",
    metadata,
    sa.Column("id", sa.String(128), primary_key=True),
    sa.Column("seen", sa.Float, nullable=False),
)

answers = sa.Table(
    "answers",
    metadata,
    sa.Column("key", sa.String(128), primary_key=True),
    sa.Column("answer", sa.Text, nullable=False),
    sa.Column("at", sa.Float, nullable=False, index=True),
)

ledger = sa.Table(
    "ledger",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("job", sa.String(400), nullable=False),
    sa.Column("repo", sa.String(255), nullable=False),
    sa.Column("number", sa.Integer),
    sa.Column("purpose", sa.String(128), nullable=False),
    sa.Column("model", sa.String(128), nullable=False),
    sa.Column("usd", sa.Float, nullable=False),
    sa.Column("calls", sa.Integer, nullable=False),
    sa.Column("input_tokens", sa.Integer, nullable=False),
    sa.Column("output_tokens", sa.Integer, nullable=False),
    sa.Column("cached_tokens", sa.Integer, nullable=False),
    sa.Column("sent", sa.Text, nullable=False, server_default="[]"),
    sa.Column("masked", sa.Integer, nullable=False, server_default="0"),
    sa.Index("ledger_by_job", "job"),
    sa.Index("ledger_by_repo_with_cost", "repo", "at", "usd"),
)

documents = sa.Table(
    "documents",
    metadata,
    sa.Column("kind", sa.String(16), primary_key=True),
    sa.Column("repo", sa.String(255), primary_key=True),
    sa.Column("subject", sa.String(300), primary_key=True),
    sa.Column("number", sa.Integer),
    sa.Column("job", sa.String(400), nullable=False),
    sa.Column("at", sa.Float, nullable=False, index=True),
    sa.Column("body", sa.Text, nullable=False),
    sa.Index("documents_by_kind", "kind", "at"),
    sa.Index("documents_by_repo", "repo", "kind", "at"),
    sa.Index("documents_by_job", "job"),
)

progress = sa.Table(
    "progress",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("job", sa.String(400), nullable=False, index=True),
    sa.Column("line", sa.Text, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)

observations = sa.Table(
    "observations",  # the runs of bisections, by the digest of what was run
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("key", sa.String(300), nullable=False, index=True),
    sa.Column("line", sa.Text, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)

counters = sa.Table(
    "counters",
    metadata,
    sa.Column("name", sa.String(128), primary_key=True),
    sa.Column("number", sa.BigInteger, nullable=False),
)

turns = sa.Table(
    "turns",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("name", sa.String(128), nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Index("turns_by_name", "name", "at"),
)

actions = sa.Table(
    "actions",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("job", sa.String(400), nullable=False),
    sa.Column("repo", sa.String(255), nullable=False, index=True),
    sa.Column("number", sa.Integer),
    sa.Column("asked_by", sa.String(128), nullable=False),
    sa.Column("action", sa.String(64), nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
)


# One table for each type of `state_records`: a column for each field, and when the record was first stored, which a type
# that wants to know it has as its field `stored`.

_COLUMN_TYPES: dict[object, sa.types.TypeEngine[Any]] = {
    str: sa.Text(),
    int: sa.BigInteger(),
    float: sa.Float(),
    bool: sa.Boolean(),
}


def _make_record_table(kind: type[StateRecord]) -> sa.Table:
    columns = [
        sa.Column(
            name,
            _column_type(hint),
            primary_key=name in kind.KEY,
            nullable=_is_optional(hint),
            autoincrement=False,
        )
        for name, hint in record_fields(kind).items()
        if name != "stored"
    ]
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()
    return sa.Table(name, metadata, *columns, sa.Column("stored", sa.Float, nullable=False))


def record_fields(kind: type[StateRecord]) -> dict[str, Any]:
    """The fields of a record type with their types, in order."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}  # type: ignore[arg-type]


def _is_optional(hint: object) -> bool:
    return isinstance(hint, UnionType) and NoneType in get_args(hint)


def _column_type(hint: object) -> sa.types.TypeEngine[Any]:
    """The column of a field; tuples and nested values are stored as JSON."""
    if _is_optional(hint):
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    if get_origin(hint) is Literal:
        return sa.Text()
    return _COLUMN_TYPES.get(hint, sa.JSON(none_as_null=True))


record_tables = {kind: _make_record_table(kind) for kind in STATE_RECORDS}
