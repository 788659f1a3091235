"""Deliveries, the jobs they lead to, and the workers that run them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from regreen.adapters import placing
from regreen.adapters import tables as t
from regreen.adapters.rows import LIVE, Rows, time_of, time_or_none
from regreen.records import DeliveryRecord, JobRecord, JobState, Order

_STOPPED = ("cancelled", "superseded")
_ALONE = 0x616C6F6E  # "alon"

# GitHub hangs up after ten seconds
_PATIENCE = "SET LOCAL lock_timeout = '6s'; SET LOCAL statement_timeout = '7s'"

Enqueue = Callable[[Any, Order], None]


class JobRows(Rows):
    """The part of the store that the engine works from."""

    # Deliveries and orders

    def accept(self, delivery: DeliveryRecord, orders: Sequence[Order], enqueue: Enqueue) -> bool:
        """Store a delivery with its orders, once."""
        return self.accept_all([(delivery, orders)], enqueue)[0]

    def accept_all(
        self, items: Sequence[tuple[DeliveryRecord, Sequence[Order]]], enqueue: Enqueue
    ) -> list[bool]:
        """Store deliveries with their orders in one transaction; for each, whether it was new."""
        rows = [placing.delivery_row(delivery) for delivery, _ in items]
        with self._begin() as connection:
            if self.engine.dialect.name == "postgresql":
                connection.exec_driver_sql(_PATIENCE)
            new = self._insert_new(connection, self._new_deliveries, rows)
            answers, placed = [], list[Order]()
            for delivery, orders in items:
                answers.append(delivery.id in new)
                if delivery.id in new:
                    new.discard(delivery.id)  # the same one twice at once: the second is a repeat
                    placed += orders
            self._place(connection, placed, enqueue)
        return answers

    def order(self, orders: Sequence[Order], enqueue: Enqueue) -> None:
        """Store orders that no delivery brought."""
        with self._begin() as connection:
            self._place(connection, orders, enqueue)

    def _place(self, connection: sa.Connection, orders: Sequence[Order], enqueue: Enqueue) -> None:
        now = self._now()
        rows = [placing.job_row(order, now) for order in orders]
        new = self._insert_new(connection, self._new_jobs, rows)
        placed = list({order.id: order for order in orders if order.id in new}.values())
        for values in placing.superseded(placed, now):
            connection.execute(placing.SUPERSEDE, values)
        for order in placed:
            enqueue(connection, order)

    @staticmethod
    def _insert_new(
        connection: sa.Connection, statement: Any, rows: Sequence[dict[str, Any]]
    ) -> set[str]:
        """Insert rows unless their ids are there; which ids were not."""
        return set(connection.execute(statement, rows).scalars()) if rows else set()

    @cached_property
    def _new_deliveries(self) -> Any:
        """Made once: to build a statement costs more than to run it."""
        insert = self._insert(t.deliveries).on_conflict_do_nothing()
        return insert.returning(t.deliveries.c.id)

    @cached_property
    def _new_jobs(self) -> Any:
        return self._insert(t.jobs).on_conflict_do_nothing().returning(t.jobs.c.id)

    def delivery(self, delivery_id: str) -> DeliveryRecord | None:
        """One delivery."""
        with self._begin() as connection:
            row = connection.execute(
                sa.select(t.deliveries).where(t.deliveries.c.id == delivery_id)
            ).one_or_none()
        return delivery_of(row) if row else None

    def deliveries(self, limit: int = 100) -> list[DeliveryRecord]:
        """The latest deliveries."""
        query = sa.select(t.deliveries).order_by(t.deliveries.c.received.desc()).limit(limit)
        with self._begin() as connection:
            return [delivery_of(row) for row in connection.execute(query)]

    # Jobs

    @staticmethod
    def _jobs(*where: sa.ColumnElement[bool]) -> sa.Select[Any]:
        cost = (
            sa.select(sa.func.coalesce(sa.func.sum(t.ledger.c.usd), 0.0))
            .where(t.ledger.c.job == t.jobs.c.id)
            .scalar_subquery()
        )
        return sa.select(t.jobs, cost.label("usd")).where(*where)

    def job(self, job_id: str) -> JobRecord | None:
        """One job."""
        with self._begin() as connection:
            row = connection.execute(self._jobs(t.jobs.c.id == job_id)).one_or_none()
        return job_of(row) if row else None

    def jobs(
        self,
        *,
        states: Sequence[JobState] = (),
        repo: str | None = None,
        number: int | None = None,
        limit: int = 100,
    ) -> list[JobRecord]:
        """The latest jobs."""
        where: list[sa.ColumnElement[bool]] = [t.jobs.c.state.in_(states)] if states else []
        where += [t.jobs.c.repo == repo] if repo is not None else []
        where += [t.jobs.c.number == number] if number is not None else []
        with self._begin() as connection:
            query = self._jobs(*where).order_by(t.jobs.c.created.desc()).limit(limit)
            return [job_of(row) for row in connection.execute(query)]

    def next_job(self, now: datetime) -> JobRecord | None:
        """The waiting job that is due and goes first."""
        with self._begin() as connection:
            due = (t.jobs.c.state == "waiting", t.jobs.c.due <= now.timestamp())
            query = self._jobs(*due).order_by(t.jobs.c.priority, t.jobs.c.created)
            row = connection.execute(query.limit(1)).one_or_none()
        return job_of(row) if row else None

    def begin(self, job_id: str, worker: str) -> JobRecord | None:
        """Mark a job running and count the attempt; None where it has ended."""
        with self._begin() as connection:
            marked = connection.execute(
                sa.update(t.jobs)
                .where(t.jobs.c.id == job_id, t.jobs.c.state.in_(LIVE))
                .values(
                    state="running",
                    attempts=t.jobs.c.attempts + 1,
                    started=sa.func.coalesce(t.jobs.c.started, self._now()),
                    worker=worker,
                )
            )
            if marked.rowcount == 0:
                return None
            row = connection.execute(self._jobs(t.jobs.c.id == job_id)).one()
        return job_of(row)

    def end(self, job_id: str, state: JobState, note: str) -> None:
        """Mark a job ended, unless it has ended."""
        with self._begin() as connection:
            connection.execute(
                sa.update(t.jobs)
                .where(t.jobs.c.id == job_id, t.jobs.c.state.in_(LIVE))
                .values(state=state, ended=self._now(), note=self._clean(note))
            )

    def wait_again(self, job_id: str, due: datetime, note: str, *, counted: bool = True) -> None:
        """Put a running job back, to be tried again."""
        less = 0 if counted else 1
        with self._begin() as connection:
            connection.execute(
                sa.update(t.jobs)
                .where(t.jobs.c.id == job_id, t.jobs.c.state == "running")
                .values(
                    state="waiting",
                    due=due.timestamp(),
                    note=self._clean(note),
                    attempts=t.jobs.c.attempts - less,
                )
            )

    def overdue(self, before: datetime, limit: int = 200) -> list[JobRecord]:
        """Jobs that are not ended and were due before then, those that run first."""
        with self._begin() as connection:
            query = self._jobs(t.jobs.c.state.in_(LIVE), t.jobs.c.due < before.timestamp())
            begun_first = query.order_by(t.jobs.c.started.is_(None), t.jobs.c.due).limit(limit)
            return [job_of(row) for row in connection.execute(begun_first)]

    def got_further(self, job_id: str) -> None:
        """A running job has something that outlives it: its attempts count from here again."""
        with self._begin() as connection:
            connection.execute(
                sa.update(t.jobs)
                .where(t.jobs.c.id == job_id, t.jobs.c.state == "running", t.jobs.c.attempts > 1)
                .values(attempts=1)
            )

    def note_progress(self, job_id: str, text: str) -> None:
        """What a job is doing now."""
        line = self._clean(text)[:500]
        with self._begin() as connection:
            said = sa.update(t.jobs).where(t.jobs.c.id == job_id, t.jobs.c.progress != line)
            if connection.execute(said.values(progress=line)).rowcount:
                row = {"key": trail_key(job_id), "line": line, "at": self._now()}
                connection.execute(sa.insert(t.lines).values(row))

    def stopped(self, job_ids: Sequence[str]) -> list[str]:
        """Which of these were cancelled or superseded."""
        if not job_ids:
            return []
        query = sa.select(t.jobs.c.id).where(t.jobs.c.id.in_(job_ids), t.jobs.c.state.in_(_STOPPED))
        with self._begin() as connection:
            return list(connection.execute(query).scalars())

    def cancel(
        self, repo: str, number: int | None, except_job: str = "", *, comments: bool = True
    ) -> list[str]:
        """Cancel what waits or runs for an issue or pull request, what was said there included or not; the ids."""
        which = (t.jobs.c.repo == repo, t.jobs.c.number == number, t.jobs.c.id != except_job)
        return self._cancel(*which, *([] if comments else [t.jobs.c.kind != "comment"]))

    def abandon(
        self, *, repo: str | None = None, installation: int | None = None, except_job: str = ""
    ) -> list[str]:
        """Cancel what waits or runs for a repository or an installation that is out of reach; the ids."""
        which = t.jobs.c.repo == repo if repo is not None else t.jobs.c.installation == installation
        return self._cancel(which, t.jobs.c.id != except_job)

    def cancel_job(self, job_id: str) -> bool:
        """Cancel one job; whether it had not ended."""
        return bool(self._cancel(t.jobs.c.id == job_id))

    def _cancel(self, *which: sa.ColumnElement[bool]) -> list[str]:
        where = (*which, t.jobs.c.state.in_(LIVE))
        with self._begin() as connection:
            ids = list(connection.execute(sa.select(t.jobs.c.id).where(*where)).scalars())
            connection.execute(
                sa.update(t.jobs)
                .where(t.jobs.c.id.in_(ids))
                .values(state="cancelled", ended=self._now(), note="cancelled")
            )
        return ids

    # Workers

    def beat(self, worker: str, now: datetime) -> None:
        """A worker is alive."""
        row = {"id": worker, "seen": now.timestamp()}
        with self._begin() as connection:
            connection.execute(
                self._insert(t.workers)
                .values(row)
                .on_conflict_do_update(index_elements=["id"], set_={"seen": row["seen"]})
            )

    @contextmanager
    def alone(self, name: str) -> Iterator[bool]:
        """Keep every other process out of what goes by this name; False where one is in there.

        SQLite serves one process.
        """
        if self.engine.dialect.name != "postgresql":
            yield True
            return
        lock = sa.text("SELECT pg_try_advisory_xact_lock(:space, hashtext(:name))")
        with self._begin() as connection:
            yield bool(connection.execute(lock, {"space": _ALONE, "name": name}).scalar_one())

    def dead_workers(self, before: datetime) -> list[str]:
        """Workers not seen since `before` that hold jobs: those that run, and those that wait to be tried again."""
        query = (
            sa.select(t.jobs.c.worker)
            .distinct()
            .outerjoin(t.workers, t.workers.c.id == t.jobs.c.worker)
            .where(
                t.jobs.c.state.in_(LIVE),
                t.jobs.c.worker.is_not(None),
                sa.func.coalesce(t.workers.c.seen, 0.0) < before.timestamp(),
            )
        )
        with self._begin() as connection:
            return [w for w in connection.execute(query).scalars() if w is not None]


def trail_key(job_id: str) -> str:
    """Under which the lines of a job's progress are kept; a column holds 300 characters."""
    return f"progress/{job_id}"[:300]


def delivery_of(row: Any) -> DeliveryRecord:
    """A delivery's row as a value."""
    return DeliveryRecord(row.id, row.name, row.repo, row.event, time_of(row.received))


def job_of(row: Any, usd: float | None = None) -> JobRecord:
    """A job's row as a value; `usd` where the row does not have it."""
    return JobRecord(
        id=row.id,
        kind=row.kind,
        repo=row.repo,
        number=row.number,
        installation=row.installation,
        queue=row.queue,
        key=row.key,
        priority=row.priority,
        event=row.event,
        replaces=row.replaces,
        state=row.state,
        attempts=row.attempts,
        created=time_of(row.created),
        due=time_of(row.due),
        started=time_or_none(row.started),
        ended=time_or_none(row.ended),
        worker=row.worker,
        note=row.note,
        progress=row.progress,
        usd=float(row.usd) if usd is None else usd,
    )
