"""The `jobs` table is the only queue: deliveries wait in it as an inbox, and the tables of DBOS go."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_DBOS_TABLES = (
    "operation_outputs",
    "workflow_events",
    "workflow_events_history",
    "streams",
    "notifications",
    "workflow_input",
    "workflow_output",
    "workflow_status",
    "workflow_schedules",
    "queues",
    "application_versions",
    "dbos_migrations",
)


def upgrade() -> None:
    """Add the columns, free the jobs that wait, and drop the tables of the engine before."""
    for table, column in (("deliveries", "pending"), ("jobs", "unsettled"), ("jobs", "lost")):
        op.add_column(table, sa.Column(column, sa.Integer(), nullable=False, server_default="0"))
    pending, unsettled = sa.text("pending = 1"), sa.text("unsettled = 1")
    op.create_index(
        "deliveries_pending",
        "deliveries",
        ["received"],
        sqlite_where=pending,
        postgresql_where=pending,
    )
    op.create_index(
        "jobs_unsettled", "jobs", ["id"], sqlite_where=unsettled, postgresql_where=unsettled
    )
    waiting = sa.text("state = 'waiting'")
    op.drop_index("jobs_by_state", "jobs")
    op.create_index(
        "jobs_waiting",
        "jobs",
        ["queue", "priority", "created", "due"],
        sqlite_where=waiting,
        postgresql_where=waiting,
    )
    started = "state IN ('waiting', 'running') AND started IS NOT NULL"
    op.execute(f"UPDATE jobs SET unsettled = 1 WHERE {started}")  # noqa: S608 - no outside text
    op.execute("UPDATE jobs SET worker = NULL WHERE state = 'waiting'")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP SCHEMA IF EXISTS dbos CASCADE")
        return
    for table in _DBOS_TABLES:
        op.execute(f"DROP TABLE IF EXISTS {table}")
