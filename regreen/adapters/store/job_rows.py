"""Deliveries, their jobs, and the workers that run the jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from regreen.adapters.store import tables as t
from regreen.adapters.store.connection import (
    LIVE_STATES,
    StoreRows,
    datetime_from_seconds,
    time_or_none,
)
from regreen.domain.records import (
    SUSPECT_ATTEMPTS,
    DeliveryRecord,
    JobKind,
    JobOutcome,
    JobRecord,
    JobState,
    Order,
)

_STOPPED_STATES = ("cancelled", "superseded")
# No comment says of these that one is in progress, so none has to say that it was stopped.
_KINDS_WITHOUT_REPLY: tuple[JobKind, ...] = ("review", "tick", "care")
_LOCK_SPACE = 0x616C6F6E  # "alon"
_REJECTED = 2
_IS_WAITING = t.jobs.c.state == sa.literal_column(
    "'waiting'"
)  # SQLite's partial indexes match literals only


class JobRows(StoreRows):
    """The part of the store for the job engine."""

    # Deliveries and orders

    def dispatch_deliveries(
        self, decide: Callable[[DeliveryRecord], Sequence[Order]], limit: int
    ) -> int:
        """Store the jobs of pending deliveries in the order of their arrival; return how many deliveries.

        Raises:
            Exception: what `decide` or a job's row raised; all of these deliveries are still pending.
        """
        c = t.deliveries.c
        query = sa.select(t.deliveries).where(c.pending == sa.literal_column("1"))
        query = query.order_by(c.received, c.id).limit(limit)
        with self._begin_transaction() as connection:
            rows = connection.execute(query).all()
            if not rows:
                return 0
            if self.engine.dialect.name == "postgresql":
                self._lock_until_commit(connection, "dispatch")
                rows = connection.execute(query).all()  # another worker may have been faster
            # decided before the first write, which locks SQLite: deliveries wait for that lock
            orders = [
                (order, row.received) for row in rows for order in decide(delivery_from_row(row))
            ]
            ids = [row.id for row in rows]
            connection.execute(sa.update(t.deliveries).where(c.id.in_(ids)).values(pending=0))
            self._insert_and_supersede(connection, orders)
        return len(rows)

    def reject_oldest_delivery(self) -> str | None:
        """Set the oldest pending delivery aside, which cannot be dispatched; return its id, None if there is none."""
        c = t.deliveries.c
        pending = c.pending == sa.literal_column("1")
        oldest = sa.select(c.id).where(pending).order_by(c.received, c.id).limit(1)
        with self._begin_transaction() as connection:
            update = sa.update(t.deliveries).where(c.id == oldest.scalar_subquery(), pending)
            return connection.execute(
                update.values(pending=_REJECTED).returning(c.id)
            ).scalar_one_or_none()

    def store_orders(self, orders: Sequence[Order]) -> None:
        """Store orders without a delivery."""
        with self._begin_transaction() as connection:
            if self.engine.dialect.name == "postgresql":
                # orders that replace each other must see each other
                self._lock_until_commit(connection, "dispatch")
            now = self._current_seconds()
            self._insert_and_supersede(connection, [(order, now) for order in orders])

    def _insert_and_supersede(
        self, connection: sa.Connection, orders: Sequence[tuple[Order, float]]
    ) -> None:
        """Store orders with their creation times, and end the jobs that they replace."""
        rows = [_job_row(order, created) for order, created in orders]
        new = self._insert_new(connection, self._new_jobs, rows)
        placed = list({order.id: order for order, _ in orders if order.id in new}.values())
        for values in _supersede_parameters(placed, self._current_seconds()):
            connection.execute(_SUPERSEDE_UPDATE, values)

    @staticmethod
    def _insert_new(
        connection: sa.Connection, statement: Any, rows: Sequence[dict[str, Any]]
    ) -> set[str]:
        """Insert rows unless their ids exist; return the new ids."""
        return set(connection.execute(statement, rows).scalars()) if rows else set()

    @cached_property
    def _new_jobs(self) -> Any:
        return self._insert(t.jobs).on_conflict_do_nothing().returning(t.jobs.c.id)

    def delivery(self, delivery_id: str) -> DeliveryRecord | None:
        """One delivery."""
        with self._begin_transaction() as connection:
            row = connection.execute(
                sa.select(t.deliveries).where(t.deliveries.c.id == delivery_id)
            ).one_or_none()
        return delivery_from_row(row) if row else None

    def deliveries(self, limit: int = 100) -> list[DeliveryRecord]:
        """The latest deliveries."""
        query = sa.select(t.deliveries).order_by(t.deliveries.c.received.desc()).limit(limit)
        with self._begin_transaction() as connection:
            return [delivery_from_row(row) for row in connection.execute(query)]

    # Jobs

    @staticmethod
    def _select_jobs(*where: sa.ColumnElement[bool]) -> sa.Select[Any]:
        cost = (
            sa.select(sa.func.coalesce(sa.func.sum(t.ledger.c.usd), 0.0))
            .where(t.ledger.c.job == t.jobs.c.id)
            .scalar_subquery()
        )
        return sa.select(t.jobs, cost.label("usd")).where(*where)

    def job(self, job_id: str) -> JobRecord | None:
        """One job."""
        with self._begin_transaction() as connection:
            row = connection.execute(self._select_jobs(t.jobs.c.id == job_id)).one_or_none()
        return job_from_row(row) if row else None

    def jobs(
        self,
        *,
        states: Sequence[JobState] = (),
        kinds: Sequence[JobKind] = (),
        repo: str | None = None,
        number: int | None = None,
        limit: int = 100,
    ) -> list[JobRecord]:
        """The latest jobs."""
        where: list[sa.ColumnElement[bool]] = [t.jobs.c.state.in_(states)] if states else []
        where += [t.jobs.c.kind.in_(kinds)] if kinds else []
        where += [t.jobs.c.repo == repo] if repo is not None else []
        where += [t.jobs.c.number == number] if number is not None else []
        with self._begin_transaction() as connection:
            query = self._select_jobs(*where).order_by(t.jobs.c.created.desc()).limit(limit)
            return [job_from_row(row) for row in connection.execute(query)]

    def due_queues(self, now: datetime) -> list[str]:
        """The queues with jobs that are due."""
        due = (_IS_WAITING, t.jobs.c.due <= now.timestamp())
        with self._begin_transaction() as connection:
            return sorted(
                connection.execute(sa.select(t.jobs.c.queue).distinct().where(*due)).scalars()
            )

    def claim_job(
        self,
        worker: str,
        now: datetime,
        *,
        queue: str = "",
        job_id: str = "",
        suspects: bool = True,
        except_jobs: Sequence[str] = (),
    ) -> JobRecord | None:
        """Mark the due job that goes first as running, count the attempt and return the job; None if there is none.

        A job whose key is that of a running job of its queue has to wait.
        """
        c, running = t.jobs.c, t.jobs.alias("running")
        is_excluded = sa.exists().where(
            running.c.state == "running", running.c.queue == c.queue, running.c.key == c.key
        )
        where = [_IS_WAITING, c.due <= now.timestamp(), ~is_excluded]
        where += [c.queue == queue] if queue else []
        where += [c.id == job_id] if job_id else []
        where += [c.id.not_in(except_jobs)] if except_jobs else []
        where += [] if suspects else [sa.or_(c.lost == 0, c.attempts < SUSPECT_ATTEMPTS)]
        first = sa.select(c.id).where(*where).order_by(c.priority, c.created, c.id).limit(1)
        with self._begin_transaction() as connection:
            if self.engine.dialect.name == "postgresql":
                # two workers must not claim two jobs with one key at once
                self._lock_until_commit(connection, "claim")
            claimed = connection.execute(
                sa.update(t.jobs)
                # again the state: PostgreSQL checks nothing else after it has waited for whoever cancels the job
                .where(c.id == first.scalar_subquery(), _IS_WAITING)
                .values(
                    state="running",
                    attempts=c.attempts + 1,
                    started=sa.func.coalesce(c.started, self._current_seconds()),
                    # an attempt after a wait begins now: the queue's time is no work of the job
                    due=sa.case((c.due > c.started, self._current_seconds()), else_=c.due),
                    worker=worker,
                    unsettled=1,
                )
                .returning(c.id)
            ).scalar_one_or_none()
            if claimed is None:
                return None
            row = connection.execute(self._select_jobs(c.id == claimed)).one()
        return job_from_row(row)

    def release_lost_jobs(
        self, worker: str, running: Sequence[str], silent: timedelta
    ) -> list[JobRecord]:
        """Put back the jobs that `worker` holds besides those it is `running`, and those of dead workers.

        A worker is dead without a heartbeat for `silent`. Returned are these jobs as they were, and the jobs that were
        cancelled or superseded when nobody ran them, each once.
        """
        c, now = t.jobs.c, self._database_now()
        alive = sa.select(t.workers.c.id).where(t.workers.c.seen >= now - silent.total_seconds())
        is_held = sa.and_(c.worker.is_not(None), c.worker != worker, c.worker.in_(alive))
        lost = (
            c.unsettled == sa.literal_column("1"),
            c.state != "waiting",
            ~is_held,
            c.id.not_in(running),
        )
        query = self._select_jobs(*lost).with_for_update(skip_locked=True, of=t.jobs)
        with self._begin_transaction() as connection:
            jobs = [job_from_row(row) for row in connection.execute(query)]
            if not jobs:
                return []
            # again the conditions: SQLite locks no rows, and another worker may have been faster
            released = set(
                connection.execute(
                    sa.update(t.jobs)
                    .where(c.id.in_([job.id for job in jobs]), *lost)
                    .values(
                        state=sa.case((c.state == "running", "waiting"), else_=c.state),
                        worker=sa.case((c.state == "running", sa.null()), else_=c.worker),
                        unsettled=sa.case((c.state == "running", 1), else_=0),
                        lost=c.lost + 1,
                    )
                    .returning(c.id)
                ).scalars()
            )
        return [job for job in jobs if job.id in released]

    def release_again(self, job: JobRecord) -> None:
        """Return this stopped job once more from `release_lost_jobs`: its end could not be reported."""
        c = t.jobs.c
        with self._begin_transaction() as connection:
            connection.execute(
                sa.update(t.jobs)
                .where(c.id == job.id, c.state.in_(_STOPPED_STATES))
                .values(unsettled=1)
            )

    def end(
        self,
        job_id: str,
        state: JobState,
        note: str,
        *,
        worker: str = "",
        outcome: JobOutcome = "",
    ) -> None:
        """Mark a job ended, unless it has ended; `worker`: only if the job is still this worker's."""
        c = t.jobs.c
        which = [c.id == job_id, *([c.worker == worker] if worker else [])]
        ended = {
            "state": state,
            "ended": self._current_seconds(),
            "note": self._clean(note),
            "outcome": outcome,
        }
        with self._begin_transaction() as connection:
            live = (*which, c.state.in_(LIVE_STATES))
            connection.execute(sa.update(t.jobs).where(*live).values(**ended))
            connection.execute(sa.update(t.jobs).where(*which).values(unsettled=0))

    def reschedule_job(
        self, job: JobRecord, due: datetime, note: str, *, counted: bool = True
    ) -> None:
        """Put a running job back for another attempt, if it is still its worker's."""
        less = 0 if counted else 1
        c = t.jobs.c
        with self._begin_transaction() as connection:
            connection.execute(
                sa.update(t.jobs)
                .where(c.id == job.id, c.state == "running", c.worker == job.worker)
                .values(
                    state="waiting",
                    due=due.timestamp(),
                    note=self._clean(note),
                    outcome=job.outcome,
                    attempts=c.attempts - less,
                    worker=None,
                    lost=0,
                )
            )

    def reset_attempts(self, job_id: str) -> None:
        """Reset the attempts of a running job, which has made durable progress."""
        with self._begin_transaction() as connection:
            connection.execute(
                sa.update(t.jobs)
                .where(t.jobs.c.id == job_id, t.jobs.c.state == "running", t.jobs.c.attempts > 1)
                .values(attempts=1)
            )

    def note_progress(self, job_id: str, text: str) -> None:
        """Record a job's present step."""
        line = self._clean(text)[:500]
        with self._begin_transaction() as connection:
            update = sa.update(t.jobs).where(t.jobs.c.id == job_id, t.jobs.c.progress != line)
            if connection.execute(update.values(progress=line)).rowcount:
                row = {"job": job_id, "line": line, "at": self._current_seconds()}
                connection.execute(sa.insert(t.progress).values(row))

    def find_stopped_jobs(self, job_ids: Sequence[str], worker: str | None) -> list[str]:
        """Which of these jobs `worker` should not run any more: cancelled, superseded, or taken over."""
        if not job_ids:
            return []
        c = t.jobs.c
        query = sa.select(c.id).where(
            c.id.in_(job_ids),
            c.state.not_in(_STOPPED_STATES),
            c.worker.is_not_distinct_from(worker),
        )
        with self._begin_transaction() as connection:
            wanted = set(connection.execute(query).scalars())
        return [job_id for job_id in job_ids if job_id not in wanted]

    def cancel_jobs(self, job_ids: Sequence[str], note: str = "cancelled") -> list[str]:
        """Cancel those of these jobs that have not ended; return their ids. `note`: who or what cancelled them."""
        return self._cancel_jobs(note, t.jobs.c.id.in_(job_ids), is_announced=True)

    def abandon(
        self, *, repo: str | None = None, installation: int | None = None, except_job: str = ""
    ) -> list[str]:
        """Cancel the unfinished jobs of a repository or installation that is out of reach; return the ids."""
        which = t.jobs.c.repo == repo if repo is not None else t.jobs.c.installation == installation
        return self._cancel_jobs("cancelled: access was lost", which, t.jobs.c.id != except_job)

    def _cancel_jobs(
        self, note: str, *which: sa.ColumnElement[bool], is_announced: bool = False
    ) -> list[str]:
        """Cancel the unfinished jobs among these; `is_announced`: a reply may say already that one is in progress."""
        has_reply = t.jobs.c.kind.not_in(_KINDS_WITHOUT_REPLY)
        unsettled = {"unsettled": sa.case((has_reply, 1), else_=t.jobs.c.unsettled)}
        where = (*which, t.jobs.c.state.in_(LIVE_STATES))
        with self._begin_transaction() as connection:
            ids = list(connection.execute(sa.select(t.jobs.c.id).where(*where)).scalars())
            update = sa.update(t.jobs).where(t.jobs.c.id.in_(ids), t.jobs.c.state.in_(LIVE_STATES))
            cancelled = set(
                connection.execute(
                    update.values(
                        state="cancelled",
                        ended=self._current_seconds(),
                        note=self._clean(note),
                        **(unsettled if is_announced else {}),
                    ).returning(t.jobs.c.id)
                ).scalars()
            )
        return [job_id for job_id in ids if job_id in cancelled]

    # Workers

    def record_heartbeat(self, worker: str) -> None:
        """Record that a worker is alive, by the database's clock, because workers' clocks differ."""
        now = self._database_now()
        with self._begin_transaction() as connection:
            connection.execute(
                self._insert(t.workers)
                .values(id=worker, seen=now)
                .on_conflict_do_update(index_elements=["id"], set_={"seen": now})
            )

    @staticmethod
    def _lock_until_commit(connection: sa.Connection, name: str) -> None:
        lock = sa.text("SELECT pg_advisory_xact_lock(:space, hashtext(:name))")
        connection.execute(lock, {"space": _LOCK_SPACE, "name": name})


def delivery_from_row(row: Any) -> DeliveryRecord:
    """A delivery's row as a value."""
    return DeliveryRecord(
        row.id, row.name, row.repo, row.event, datetime_from_seconds(row.received)
    )


def job_from_row(row: Any, usd: float | None = None) -> JobRecord:
    """A job's row as a value; `usd` is used if the row has no cost."""
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
        created=datetime_from_seconds(row.created),
        due=datetime_from_seconds(row.due),
        started=time_or_none(row.started),
        ended=time_or_none(row.ended),
        worker=row.worker,
        note=row.note,
        progress=row.progress,
        usd=float(row.usd) if usd is None else usd,
        lost=row.lost,
        outcome=row.outcome,
    )


# The statements that store work: a job's row, and the end of superseded jobs.

_OF, _BY = sa.bindparam("of", "", sa.String), sa.bindparam("by", "", sa.String)
_AT, _WHY = sa.bindparam("at", 0.0, sa.Float), sa.bindparam("why", "", sa.String)
_NEWEST_RANK = sa.bindparam("newest", 0, sa.BigInteger)
_RIVAL_JOBS = t.jobs.alias("rivals")
_HIGHEST_RANK = (
    sa.select(sa.func.max(_RIVAL_JOBS.c.rank))
    .where(_RIVAL_JOBS.c.replaces == _OF, _RIVAL_JOBS.c.state.in_(LIVE_STATES))
    .scalar_subquery()
)
# a delivery that comes late, or again, may bring a job that is superseded at once
_SUPERSEDE_UPDATE = (
    sa.update(t.jobs)
    .where(t.jobs.c.replaces == _OF, t.jobs.c.state.in_(LIVE_STATES))
    .where(
        sa.or_(
            t.jobs.c.rank < _HIGHEST_RANK,
            sa.and_(t.jobs.c.rank <= _NEWEST_RANK, t.jobs.c.id != _BY),
        ),
    )
    .values(
        state="superseded",
        ended=_AT,
        note=sa.case((t.jobs.c.id == _BY, "a newer job for the same work was there"), else_=_WHY),
    )
)


def _job_row(order: Order, created: float) -> dict[str, Any]:
    """A new job as a row."""
    return {
        "id": order.id,
        "kind": order.kind,
        "repo": order.repo,
        "number": order.number,
        "installation": order.installation,
        "queue": order.queue,
        "key": order.key,
        "priority": order.priority,
        "event": order.event,
        "replaces": order.replaces,
        "rank": order.rank,
        "state": "waiting",
        "attempts": 0,
        "created": created,
        "due": created + order.delay,
        "note": "",
        "progress": "",
    }


def _supersede_parameters(placed: Iterable[Order], now: float) -> list[dict[str, Any]]:
    """The parameters of `_SUPERSEDE_UPDATE`: of jobs that replace each other, the newest one stays."""
    newest = {
        order.replaces: order
        for order in sorted(placed, key=lambda order: order.rank)
        if order.replaces is not None
    }
    return [
        {
            "of": of,
            "by": by.id,
            "newest": by.rank,
            "at": now,
            "why": "a newer job for the same work replaced it",
        }
        for of, by in newest.items()
    ]
