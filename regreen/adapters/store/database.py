"""The store in SQLite or PostgreSQL: the same statements on both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import Any, get_args

import sqlalchemy as sa

from regreen.adapters.github.rate_limits import RateLimits, wait_for
from regreen.adapters.store import tables as t
from regreen.adapters.store.connection import LIVE_STATES, StoreRows
from regreen.adapters.store.job_rows import JobRows
from regreen.adapters.store.migrations import upgrade_schema
from regreen.adapters.store.page_rows import PageRows
from regreen.adapters.store.result_rows import ResultRows
from regreen.domain.list_queries import JobDurations, QueueState, TokenTotals
from regreen.domain.records import Record, StoreTotals
from regreen.domain.state_records import STATE_RECORDS, StateRecord

# Sums over the rows for `/metrics`: the same from every process.


class MetricRows(StoreRows):
    """The part of the store for metrics."""

    def queues(self) -> list[QueueState]:
        """Each queue with work: due jobs, the age of the oldest, running jobs."""
        c, now = t.jobs.c, self._current_seconds()
        is_due = sa.and_(c.state == "waiting", c.due <= now)
        query = sa.select(
            c.queue,
            sa.func.sum(sa.case((is_due, 1), else_=0)),
            sa.func.min(sa.case((is_due, c.due))),
            sa.func.sum(sa.case((c.state == "running", 1), else_=0)),
        )
        with self._begin_transaction() as connection:
            rows = connection.execute(query.where(c.state.in_(LIVE_STATES)).group_by(c.queue)).all()
        return [
            QueueState(queue, int(waiting), now - oldest if oldest is not None else 0.0, int(runs))
            for queue, waiting, oldest, runs in rows
        ]

    def job_durations(self) -> list[JobDurations]:
        """The waiting and running times of ended jobs by kind, of those that are still stored."""
        c = t.jobs.c
        query = sa.select(
            c.kind,
            sa.func.count(),
            sa.func.sum(c.ended - c.started),
            sa.func.sum(c.started - c.created),
        ).where(c.state.in_(("done", "failed")), c.started.is_not(None))
        with self._begin_transaction() as connection:
            rows = connection.execute(query.group_by(c.kind)).all()
        return [
            JobDurations(kind, count, took or 0.0, waited or 0.0)
            for kind, count, took, waited in rows
        ]

    def tokens(self) -> TokenTotals:
        """The tokens of all model calls."""
        c = t.ledger.c
        sums = (sa.func.coalesce(sa.func.sum(x), 0) for x in (c.input_tokens, c.output_tokens, c.cached_tokens))  # fmt: skip
        with self._begin_transaction() as connection:
            read, written, cached = connection.execute(sa.select(*sums)).one()
        return TokenTotals(int(read), int(written), int(cached))

    def add_counts(self, counts: Mapping[str, int]) -> None:
        """Add to counters that only grow, from any process."""
        c = t.counters.c
        with self._begin_transaction() as connection:
            # sorted: two processes must not wait for each other
            for name, number in sorted(counts.items()):
                row = self._insert(t.counters).values(name=name, number=number)
                connection.execute(
                    row.on_conflict_do_update(
                        index_elements=["name"], set_={"number": c.number + row.excluded.number}
                    )
                )

    def counters(self) -> dict[str, int]:
        """Every counter."""
        with self._begin_transaction() as connection:
            return {name: int(number) for name, number in connection.execute(sa.select(t.counters))}


# State records, observations, and turns.

_TURNS_LOCK = 0x7475726E  # "turn"


class StateRows(StoreRows):
    """The part of the store with state records: the same statements for every type."""

    def save(self, record: StateRecord) -> None:
        """Store a record; it replaces the one with its key."""
        row = self._record_row(record)
        changes = {name: row[name] for name in row if name not in {*record.KEY, "stored"}}
        insert = self._insert(t.record_tables[type(record)]).values(row)
        with self._begin_transaction() as connection:
            connection.execute(
                insert.on_conflict_do_update(index_elements=record.KEY, set_=changes)
                if changes
                else insert.on_conflict_do_nothing()
            )

    def add(self, record: StateRecord) -> bool:
        """Store a record unless there is one with its key; return whether it was new."""
        with self._begin_transaction() as connection:
            return self._is_new(connection, t.record_tables[type(record)], self._record_row(record))

    def find(self, kind: type[Record], /, **values: object) -> Record | None:
        """The oldest record of a type with these values, None if there is none."""
        return next(iter(self.find_all(kind, repos_of="", **values)), None)

    def find_all(
        self, kind: type[Record], /, *, repos_of: str = "", **values: object
    ) -> list[Record]:
        """The records of a type with these values, oldest first; `repos_of`: only of repositories of this account."""
        table, hints = t.record_tables[kind], t.record_fields(kind)
        query = sa.select(table).where(*_equal_to(table, values))
        if repos_of:
            query = query.where(table.c.repo.startswith(f"{repos_of}/", autoescape=True))
        with self._begin_transaction() as connection:
            rows = connection.execute(query.order_by(table.c.stored, *table.primary_key)).all()
        return [
            kind(**{name: _restore(hint, getattr(row, name)) for name, hint in hints.items()})
            for row in rows
        ]

    def remove(self, kind: type[StateRecord], /, **values: object) -> None:
        """Delete the records of a type with these values."""
        table = t.record_tables[kind]
        with self._begin_transaction() as connection:
            connection.execute(sa.delete(table).where(*_equal_to(table, values)))

    def _record_row(self, record: StateRecord) -> dict[str, Any]:
        row = {name: getattr(record, name) for name in t.record_fields(type(record))}
        for name, value in row.items():
            if is_dataclass(value) and not isinstance(value, type):
                row[name] = asdict(value)
        return {**row, "stored": self._current_seconds()}

    def rename(self, before: str, after: str) -> None:
        """Move everything of a renamed repository; what the new name has already is replaced."""
        with self._begin_transaction() as connection:
            for kind, table in t.record_tables.items():
                if "repo" not in table.c:
                    continue
                moving = sa.select(table).where(table.c.repo == before).subquery()
                same = [table.c[name] == moving.c[name] for name in kind.KEY if name != "repo"]
                taken = sa.exists().select_from(moving).where(*same)
                connection.execute(sa.delete(table).where(table.c.repo == after, taken))
                connection.execute(
                    sa.update(table).where(table.c.repo == before).values(repo=after)
                )
            for owned in (t.documents, t.ledger, t.jobs):
                connection.execute(
                    sa.update(owned).where(owned.c.repo == before).values(repo=after)
                )

    # Observations

    def observations(self, key: str) -> list[str]:
        """The observations under a digest, oldest first."""
        c = t.observations.c
        query = sa.select(c.line).where(c.key == key).order_by(c.id)
        with self._begin_transaction() as connection:
            return list(connection.execute(query).scalars())

    def add_observation(self, key: str, line: str) -> None:
        """Append an observation under a digest."""
        row = {"key": key, "line": line, "at": self._current_seconds()}
        with self._begin_transaction() as connection:
            connection.execute(sa.insert(t.observations).values(row))

    # Turns, which all processes take from one row

    def take_turn(self, name: str, limits: RateLimits, longest: float) -> float:
        """Take the next turn of `name`; return the seconds until it comes. If that exceeds `longest`, none is taken."""
        now = self._current_seconds()  # on SQLite all processes share the machine's clock
        with self._begin_transaction() as connection:
            if self.engine.dialect.name == "postgresql":
                now = connection.execute(sa.select(self._database_now())).scalar_one()
                lock = sa.text("SELECT pg_advisory_xact_lock(:space, hashtext(:name))")
                connection.execute(lock, {"space": _TURNS_LOCK, "name": name})
            # a write locks SQLite before the read
            past = now - max(span for span, _ in limits)
            connection.execute(
                sa.delete(t.turns).where(t.turns.c.name == name, t.turns.c.at < past)
            )
            query = sa.select(t.turns.c.at).where(t.turns.c.name == name)
            newest = query.order_by(t.turns.c.at.desc()).limit(max(most for _, most in limits))
            wait = wait_for(list(connection.execute(newest).scalars()), limits, now)
            if wait <= longest:
                connection.execute(sa.insert(t.turns).values(name=name, at=now + wait))
        return wait


def _equal_to(table: sa.Table, values: Mapping[str, object]) -> list[sa.ColumnElement[bool]]:
    return [table.c[name] == value for name, value in values.items()]


def _restore(hint: Any, value: Any) -> Any:
    """A column's value as the field has it: JSON has neither tuples nor nested values."""
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, dict):
        (nested,) = (part for part in get_args(hint) if is_dataclass(part))
        return nested(**value)  # type: ignore[operator]
    return value


_DELETE_BATCH_ROWS = 2000


class Database(JobRows, ResultRows, StateRows, PageRows, MetricRows):
    """Satisfies `records.Store`, `list_queries.DashboardStore` and `list_queries.MetricsStore`."""

    def create_tables(self) -> None:
        """Create or migrate the tables; one process at a time.

        Raises:
            UserError: a newer Regreen made the database.
            OutsideError: the database does not answer.
        """
        with self._begin_transaction() as connection:
            upgrade_schema(connection)

    def prune(self, before: datetime, results_before: datetime | None = None) -> int:
        """Delete old deliveries, ended jobs and answers, and results with cost and runs; return how many rows.

        Dismissals, outcomes and the audit log stay.

        Args:
            before: older rows that only explain how a result came about are deleted.
            results_before: older results are deleted; None: they stay.
        """
        cut = before.timestamp()
        rows: list[tuple[sa.Table, sa.ColumnElement[bool]]] = [
            (t.deliveries, sa.and_(t.deliveries.c.received < cut, t.deliveries.c.pending != 1)),
            (t.jobs, sa.and_(t.jobs.c.created < cut, t.jobs.c.state.not_in(LIVE_STATES))),
            (t.answers, t.answers.c.at < cut),
            (t.progress, t.progress.c.at < cut),
            (t.workers, t.workers.c.seen < cut),
        ]
        temporary = (t.record_tables[kind] for kind in STATE_RECORDS if kind.TEMPORARY)
        rows += [(table, table.c.stored < cut) for table in temporary]
        if results_before is not None:
            old = results_before.timestamp()
            rows += [(table, table.c.at < old) for table in (t.documents, t.ledger, t.observations)]
        return sum(self._delete_rows(table, which) for table, which in rows)

    def _delete_rows(self, table: sa.Table, which: sa.ColumnElement[bool]) -> int:
        """Delete rows in batches, so that other writers get their turn in between."""
        key = list(table.primary_key.columns)
        piece = sa.select(*key).where(which).limit(_DELETE_BATCH_ROWS)
        statement = sa.delete(table).where(sa.tuple_(*key).in_(piece))
        total = 0
        while True:
            with self._begin_transaction() as connection:
                deleted = connection.execute(statement).rowcount
            total += deleted
            if deleted < _DELETE_BATCH_ROWS:
                return total

    def job_counts(self) -> list[tuple[str, str, int]]:
        """The number of jobs of each kind and state."""
        query = sa.select(t.jobs.c.kind, t.jobs.c.state, sa.func.count()).group_by(
            t.jobs.c.kind, t.jobs.c.state
        )
        with self._begin_transaction() as connection:
            return [(kind, state, number) for kind, state, number in connection.execute(query)]

    def totals(self) -> StoreTotals:
        """A few sums for the metrics."""
        now = self._current_seconds()
        waiting = sa.select(sa.func.min(t.jobs.c.due)).where(
            t.jobs.c.state == "waiting", t.jobs.c.due <= now
        )
        spent = sa.select(
            sa.func.coalesce(sa.func.sum(t.ledger.c.usd), 0.0),
            sa.func.coalesce(sa.func.sum(t.ledger.c.calls), 0),
        )
        with self._begin_transaction() as connection:
            count = connection.execute(sa.select(sa.func.count()).select_from(t.deliveries))
            oldest = connection.execute(waiting).scalar_one()
            usd, calls = connection.execute(spent).one()
            return StoreTotals(
                deliveries=count.scalar_one(),
                usd=float(usd),
                calls=int(calls),
                oldest_waiting_s=now - oldest if oldest is not None else 0.0,
            )
