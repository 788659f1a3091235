"""What must survive a restart, in SQLite or PostgreSQL: the same statements on both."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from regreen.adapters import tables as t
from regreen.adapters.job_rows import JobRows
from regreen.adapters.memory_rows import MemoryRows
from regreen.adapters.metric_rows import MetricRows
from regreen.adapters.page_rows import PageRows
from regreen.adapters.result_rows import ResultRows
from regreen.adapters.rows import LIVE
from regreen.errors import OutsideError
from regreen.records import Totals

# Memory that only the job that wrote it, or the comment it answered, ever asks for again.
_PASSING = (
    "review",
    "fix-result",
    "fix-tries/",
    "reply/",
    "commands/",
    "learnt/",
    "giving-up",
    "pace",
    "github-limit",
    "dashboard-session",
)
_PIECE = 2000
_SCHEMA_LOCK = 0x7265677265656E  # "regreen"


class Database(JobRows, ResultRows, MemoryRows, PageRows, MetricRows):
    """Satisfies `records.Store`, `listing.Shelf` and `listing.Watched`."""

    def create(self) -> None:
        """Make the tables that are not there, one process at a time."""
        with self._begin() as connection:
            if self.engine.dialect.name == "postgresql":
                lock = sa.text("SELECT pg_advisory_xact_lock(:key)")
                connection.execute(lock, {"key": _SCHEMA_LOCK})
            t.metadata.create_all(connection)
            # the indexes too that a later version gave to a table that was there
            for index in (i for table in t.metadata.sorted_tables for i in table.indexes):
                index.create(connection, checkfirst=True)

    def prune(self, before: datetime, results_before: datetime | None = None) -> int:
        """Forget deliveries, ended jobs and answers older than that, and results, their cost and their runs; how many rows.

        What was dismissed, what was learnt and the audit log stay.

        Args:
            before: what only says how something came about goes before that.
            results_before: what came out of it; None: it stays.
        """
        cut = before.timestamp()
        passing = sa.or_(*(t.memory.c.space.startswith(s) for s in _PASSING))
        gone: list[tuple[sa.Table, sa.ColumnElement[bool]]] = [
            (t.deliveries, t.deliveries.c.received < cut),
            (t.jobs, sa.and_(t.jobs.c.created < cut, t.jobs.c.state.not_in(LIVE))),
            (t.answers, t.answers.c.at < cut),
            (t.lines, sa.and_(t.lines.c.at < cut, t.lines.c.key.startswith("progress/"))),
            (t.memory, sa.and_(t.memory.c.at < cut, passing)),
            (t.workers, t.workers.c.seen < cut),
        ]
        if results_before is not None:
            old = results_before.timestamp()
            gone += [(table, table.c.at < old) for table in (t.documents, t.ledger, t.lines)]
        return sum(self._forget(table, which) for table, which in gone)

    def _forget(self, table: sa.Table, which: sa.ColumnElement[bool]) -> int:
        """Delete rows a piece at a time: whoever waits to write is let in between."""
        key = list(table.primary_key.columns)
        piece = sa.select(*key).where(which).limit(_PIECE)
        statement = sa.delete(table).where(sa.tuple_(*key).in_(piece))
        total = 0
        while True:
            with self._begin() as connection:
                gone = connection.execute(statement).rowcount
            total += gone
            if gone < _PIECE:
                return total

    def job_counts(self) -> list[tuple[str, str, int]]:
        """How many jobs there are of each kind and state."""
        query = sa.select(t.jobs.c.kind, t.jobs.c.state, sa.func.count()).group_by(
            t.jobs.c.kind, t.jobs.c.state
        )
        with self._begin() as connection:
            return [(kind, state, number) for kind, state, number in connection.execute(query)]

    def totals(self) -> Totals:
        """A few sums for the metrics."""
        now = self._now()
        waiting = sa.select(sa.func.min(t.jobs.c.due)).where(
            t.jobs.c.state == "waiting", t.jobs.c.due <= now
        )
        spent = sa.select(
            sa.func.coalesce(sa.func.sum(t.ledger.c.usd), 0.0),
            sa.func.coalesce(sa.func.sum(t.ledger.c.calls), 0),
        )
        with self._begin() as connection:
            count = connection.execute(sa.select(sa.func.count()).select_from(t.deliveries))
            oldest = connection.execute(waiting).scalar_one()
            usd, calls = connection.execute(spent).one()
            return Totals(
                deliveries=count.scalar_one(),
                usd=float(usd),
                calls=int(calls),
                oldest_waiting_s=now - oldest if oldest is not None else 0.0,
            )

    def is_healthy(self) -> bool:
        """Whether the database answers a write."""
        try:
            self.put("health", "probe", str(self._now()))
        except OutsideError:
            return False
        return True
