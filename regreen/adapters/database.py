"""What must survive a restart, in SQLite or PostgreSQL: the same statements on both."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from regreen.adapters import tables as t
from regreen.codebase.redaction import redact_all
from regreen.errors import OutsideError
from regreen.models import Cost
from regreen.ports import Clock
from regreen.records import (
    Action,
    DeliveryRecord,
    Document,
    JobRecord,
    JobState,
    LedgerLine,
    Order,
    Totals,
)

_LIVE = ("waiting", "running")
_STOPPED = ("cancelled", "superseded")
# Memory that only the job that wrote it, or the comment it answered, ever asks for again.
_PASSING = ("review", "fix-result", "fix-tries/", "reply/", "commands/", "pace")
_SCHEMA_LOCK = 0x7265677265656E  # "regreen"

Enqueue = Callable[[Any, Order], None]


class Database:
    """Satisfies `records.Store`."""

    def __init__(self, engine: sa.Engine, clock: Clock) -> None:
        self.engine = engine
        self._clock = clock
        dialect = sqlite if engine.dialect.name == "sqlite" else postgresql
        self._insert: Callable[[sa.Table], Any] = dialect.insert

    def create(self) -> None:
        """Make the tables that are not there, one process at a time."""
        with self._begin() as connection:
            if self.engine.dialect.name == "postgresql":
                lock = sa.text("SELECT pg_advisory_xact_lock(:key)")
                connection.execute(lock, {"key": _SCHEMA_LOCK})
            t.metadata.create_all(connection)

    @contextmanager
    def _begin(self) -> Iterator[sa.Connection]:
        """One transaction; the database's own troubles become `OutsideError`."""
        try:
            with self.engine.begin() as connection:
                yield connection
        except (
            sa.exc.OperationalError,
            sa.exc.InterfaceError,
            sa.exc.InternalError,
            sa.exc.TimeoutError,
        ) as error:
            msg = f"the database failed: {type(error).__name__}"
            raise OutsideError(msg) from error

    def _is_new(self, connection: sa.Connection, table: sa.Table, row: dict[str, Any]) -> bool:
        """Insert a row unless its key is there; whether it was not."""
        key = next(iter(table.primary_key.columns))
        # the count of rows is not told alike by every driver; what is returned is
        insert = self._insert(table).values(row).on_conflict_do_nothing().returning(key)
        return connection.execute(insert).first() is not None

    def _now(self) -> float:
        return self._clock.now().timestamp()

    # Deliveries and orders

    def accept(self, delivery: DeliveryRecord, orders: Sequence[Order], enqueue: Enqueue) -> bool:
        """Store a delivery with its orders, once."""
        return self.accept_all([(delivery, orders)], enqueue)[0]

    def accept_all(
        self, items: Sequence[tuple[DeliveryRecord, Sequence[Order]]], enqueue: Enqueue
    ) -> list[bool]:
        """Store deliveries with their orders in one transaction; for each, whether it was new."""
        answers = []
        with self._begin() as connection:
            for delivery, orders in items:
                row = {
                    "id": delivery.id,
                    "name": delivery.name,
                    "repo": delivery.repo,
                    "event": delivery.event,
                    "received": delivery.received.timestamp(),
                }
                is_new = self._is_new(connection, t.deliveries, row)
                if is_new:
                    self._place(connection, orders, enqueue)
                answers.append(is_new)
        return answers

    def order(self, orders: Sequence[Order], enqueue: Enqueue) -> None:
        """Store orders that no delivery brought."""
        with self._begin() as connection:
            self._place(connection, orders, enqueue)

    def _place(self, connection: sa.Connection, orders: Sequence[Order], enqueue: Enqueue) -> None:
        for order in orders:
            now = self._now()
            row = {
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
                "state": "waiting",
                "attempts": 0,
                "created": now,
                "due": now + order.delay,
                "note": "",
                "progress": "",
            }
            if not self._is_new(connection, t.jobs, row):
                continue
            if order.replaces is not None:
                self._supersede(connection, order, now)
            enqueue(connection, order)

    @staticmethod
    def _supersede(connection: sa.Connection, order: Order, now: float) -> None:
        connection.execute(
            sa.update(t.jobs)
            .where(
                t.jobs.c.replaces == order.replaces,
                t.jobs.c.id != order.id,
                t.jobs.c.state.in_(_LIVE),
            )
            .values(state="superseded", ended=now, note=f"a newer one came: {order.id}")
        )

    def delivery(self, delivery_id: str) -> DeliveryRecord | None:
        """One delivery."""
        with self._begin() as connection:
            row = connection.execute(
                sa.select(t.deliveries).where(t.deliveries.c.id == delivery_id)
            ).one_or_none()
        return _delivery(row) if row else None

    def deliveries(self, limit: int = 100) -> list[DeliveryRecord]:
        """The latest deliveries."""
        query = sa.select(t.deliveries).order_by(t.deliveries.c.received.desc()).limit(limit)
        with self._begin() as connection:
            return [_delivery(row) for row in connection.execute(query)]

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
        return _job(row) if row else None

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
            return [_job(row) for row in connection.execute(query)]

    def next_job(self, now: datetime) -> JobRecord | None:
        """The waiting job that is due and goes first."""
        with self._begin() as connection:
            due = (t.jobs.c.state == "waiting", t.jobs.c.due <= now.timestamp())
            query = self._jobs(*due).order_by(t.jobs.c.priority, t.jobs.c.created)
            row = connection.execute(query.limit(1)).one_or_none()
        return _job(row) if row else None

    def begin(self, job_id: str, worker: str) -> JobRecord | None:
        """Mark a job running and count the attempt; None where it has ended."""
        with self._begin() as connection:
            marked = connection.execute(
                sa.update(t.jobs)
                .where(t.jobs.c.id == job_id, t.jobs.c.state.in_(_LIVE))
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
        return _job(row)

    def end(self, job_id: str, state: JobState, note: str) -> None:
        """Mark a job ended, unless it has ended."""
        with self._begin() as connection:
            connection.execute(
                sa.update(t.jobs)
                .where(t.jobs.c.id == job_id, t.jobs.c.state.in_(_LIVE))
                .values(state=state, ended=self._now(), note=note)
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
                    note=note,
                    attempts=t.jobs.c.attempts - less,
                )
            )

    def note_progress(self, job_id: str, text: str) -> None:
        """What a job is doing now."""
        with self._begin() as connection:
            connection.execute(
                sa.update(t.jobs).where(t.jobs.c.id == job_id).values(progress=text[:500])
            )

    def stopped(self, job_ids: Sequence[str]) -> list[str]:
        """Which of these were cancelled or superseded."""
        if not job_ids:
            return []
        query = sa.select(t.jobs.c.id).where(t.jobs.c.id.in_(job_ids), t.jobs.c.state.in_(_STOPPED))
        with self._begin() as connection:
            return list(connection.execute(query).scalars())

    def cancel(self, repo: str, number: int | None, except_job: str = "") -> list[str]:
        """Cancel what waits or runs for an issue or pull request; the ids."""
        where = (
            t.jobs.c.repo == repo,
            t.jobs.c.number == number,
            t.jobs.c.id != except_job,
            t.jobs.c.state.in_(_LIVE),
        )
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

    def dead_workers(self, before: datetime) -> list[str]:
        """Workers not seen since `before` that still hold running jobs."""
        query = (
            sa.select(t.jobs.c.worker)
            .distinct()
            .outerjoin(t.workers, t.workers.c.id == t.jobs.c.worker)
            .where(
                t.jobs.c.state == "running",
                sa.func.coalesce(t.workers.c.seen, 0.0) < before.timestamp(),
            )
        )
        with self._begin() as connection:
            return [w for w in connection.execute(query).scalars() if w is not None]

    # The model's answers and the ledger

    def answer(self, key: str) -> str | None:
        """A model's answer by its request's hash."""
        with self._begin() as connection:
            query = sa.select(t.answers.c.answer).where(t.answers.c.key == key)
            return connection.execute(query).scalar_one_or_none()

    def keep_answer(self, key: str, answer: str) -> None:
        """Remember a model's answer."""
        row = {"key": key, "answer": answer, "at": self._now()}
        with self._begin() as connection:
            connection.execute(self._insert(t.answers).values(row).on_conflict_do_nothing())

    def charge(self, line: LedgerLine) -> None:
        """Write a model call to the ledger."""
        row = {
            "at": line.at.timestamp(),
            "job": line.job,
            "repo": line.repo,
            "number": line.number,
            "purpose": line.purpose,
            "model": line.model,
            "usd": line.cost.usd,
            "calls": line.cost.calls,
            "input_tokens": line.cost.input_tokens,
            "output_tokens": line.cost.output_tokens,
            "cached_tokens": line.cost.cached_tokens,
        }
        with self._begin() as connection:
            connection.execute(sa.insert(t.ledger).values(row))

    def spent(self, repo: str, since: datetime, number: int | None = None) -> float:
        """What model calls cost since then, in US dollars."""
        where = [t.ledger.c.repo == repo, t.ledger.c.at >= since.timestamp()]
        where += [t.ledger.c.number == number] if number is not None else []
        with self._begin() as connection:
            total = connection.execute(
                sa.select(sa.func.coalesce(sa.func.sum(t.ledger.c.usd), 0.0)).where(*where)
            ).scalar_one()
        return float(total)

    def ledger(self, limit: int = 100) -> list[LedgerLine]:
        """The latest model calls."""
        query = sa.select(t.ledger).order_by(t.ledger.c.id.desc()).limit(limit)
        with self._begin() as connection:
            return [_line(row) for row in connection.execute(query)]

    # Documents

    def keep(self, document: Document) -> None:
        """Keep a result, credentials taken out; the same kind, repository and subject replaces."""
        row = {
            "kind": document.kind,
            "repo": document.repo,
            "subject": document.subject,
            "number": document.number,
            "job": document.job,
            "at": document.at.timestamp(),
            "body": json.dumps(redact_all(json.loads(json.dumps(document.body, default=str)))),
        }
        changes = {k: row[k] for k in ("number", "job", "at", "body")}
        with self._begin() as connection:
            connection.execute(
                self._insert(t.documents)
                .values(row)
                .on_conflict_do_update(index_elements=["kind", "repo", "subject"], set_=changes)
            )

    def documents(
        self,
        *,
        kind: str | None = None,
        repo: str | None = None,
        number: int | None = None,
        limit: int = 50,
    ) -> list[Document]:
        """The latest results."""
        where = [t.documents.c.kind == kind] if kind is not None else []
        where += [t.documents.c.repo == repo] if repo is not None else []
        where += [t.documents.c.number == number] if number is not None else []
        query = sa.select(t.documents).where(*where).order_by(t.documents.c.at.desc()).limit(limit)
        with self._begin() as connection:
            return [_document(row) for row in connection.execute(query)]

    # Memory

    def get(self, space: str, key: str) -> str | None:
        """A remembered value."""
        with self._begin() as connection:
            query = sa.select(t.memory.c.value).where(
                t.memory.c.space == space, t.memory.c.key == key
            )
            return connection.execute(query).scalar_one_or_none()

    def put(self, space: str, key: str, value: str) -> None:
        """Remember a value."""
        row = {"space": space, "key": key, "value": value, "at": self._now()}
        with self._begin() as connection:
            connection.execute(
                self._insert(t.memory)
                .values(row)
                .on_conflict_do_update(index_elements=["space", "key"], set_={"value": value})
            )

    def put_new(self, space: str, key: str, value: str) -> bool:
        """Remember a value unless there is one; whether it was new."""
        row = {"space": space, "key": key, "value": value, "at": self._now()}
        with self._begin() as connection:
            return self._is_new(connection, t.memory, row)

    def items(self, space: str, prefix: str = "") -> list[tuple[str, str]]:
        """Remembered keys that start so, with their values, oldest first."""
        query = (
            sa.select(t.memory.c.key, t.memory.c.value)
            .where(t.memory.c.space == space, t.memory.c.key.startswith(prefix, autoescape=True))
            .order_by(t.memory.c.at, t.memory.c.key)
        )
        with self._begin() as connection:
            return [(row.key, row.value) for row in connection.execute(query)]

    def delete(self, space: str, key: str) -> None:
        """Forget a value."""
        with self._begin() as connection:
            connection.execute(
                sa.delete(t.memory).where(t.memory.c.space == space, t.memory.c.key == key)
            )

    def lines(self, key: str) -> list[str]:
        """The lines kept under `key`, oldest first."""
        query = sa.select(t.lines.c.line).where(t.lines.c.key == key).order_by(t.lines.c.id)
        with self._begin() as connection:
            return list(connection.execute(query).scalars())

    def append(self, key: str, line: str) -> None:
        """Keep one more line under `key`."""
        row = {"key": key, "line": line, "at": self._now()}
        with self._begin() as connection:
            connection.execute(sa.insert(t.lines).values(row))

    # Audit and care

    def log(self, action: Action) -> None:
        """Append to the audit log."""
        row = {
            "at": action.at.timestamp(),
            "job": action.job,
            "repo": action.repo,
            "number": action.number,
            "asked_by": action.asked_by,
            "action": action.action,
            "detail": action.detail,
        }
        with self._begin() as connection:
            connection.execute(sa.insert(t.actions).values(row))

    def actions(self, *, repo: str | None = None, limit: int = 200) -> list[Action]:
        """The latest lines of the audit log."""
        where = [t.actions.c.repo == repo] if repo is not None else []
        query = sa.select(t.actions).where(*where).order_by(t.actions.c.id.desc()).limit(limit)
        with self._begin() as connection:
            return [_action(row) for row in connection.execute(query)]

    def prune(self, before: datetime) -> int:
        """Forget deliveries, ended jobs and answers older than that."""
        cut = before.timestamp()
        gone = (
            sa.delete(t.deliveries).where(t.deliveries.c.received < cut),
            sa.delete(t.jobs).where(t.jobs.c.created < cut, t.jobs.c.state.not_in(_LIVE)),
            sa.delete(t.answers).where(t.answers.c.at < cut),
            sa.delete(t.memory).where(
                t.memory.c.at < cut, sa.or_(*(t.memory.c.space.startswith(s) for s in _PASSING))
            ),
        )
        with self._begin() as connection:
            return sum(connection.execute(statement).rowcount for statement in gone)

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


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _time_or_none(seconds: float | None) -> datetime | None:
    return None if seconds is None else _time(seconds)


def _delivery(row: Any) -> DeliveryRecord:
    return DeliveryRecord(row.id, row.name, row.repo, row.event, _time(row.received))


def _job(row: Any) -> JobRecord:
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
        created=_time(row.created),
        due=_time(row.due),
        started=_time_or_none(row.started),
        ended=_time_or_none(row.ended),
        worker=row.worker,
        note=row.note,
        progress=row.progress,
        usd=float(row.usd),
    )


def _line(row: Any) -> LedgerLine:
    cost = Cost(row.usd, row.calls, row.input_tokens, row.output_tokens, row.cached_tokens)
    return LedgerLine(_time(row.at), row.job, row.repo, row.number, row.purpose, row.model, cost)


def _document(row: Any) -> Document:
    return Document(
        kind=row.kind,
        repo=row.repo,
        number=row.number,
        subject=row.subject,
        job=row.job,
        at=_time(row.at),
        body=json.loads(row.body),
    )


def _action(row: Any) -> Action:
    return Action(
        _time(row.at), row.job, row.repo, row.number, row.asked_by, row.action, row.detail
    )
