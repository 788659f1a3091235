"""The tables of the store. Times are seconds since 1970 in UTC, so that every database orders them alike."""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData()

deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("repo", sa.String(255)),
    sa.Column("event", sa.Text, nullable=False),
    sa.Column("received", sa.Float, nullable=False, index=True),
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
    sa.Index("jobs_by_state", "state", "priority", "created"),
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

memory = sa.Table(
    "memory",
    metadata,
    sa.Column("space", sa.String(300), primary_key=True),
    sa.Column("key", sa.String(400), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)

lines = sa.Table(
    "lines",
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
