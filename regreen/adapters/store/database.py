"""The store in SQLite or PostgreSQL: the same statements on both, those of the pages included."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import Any, get_args

import sqlalchemy as sa

from regreen.adapters.github.rate_limits import RateLimits, seconds_until_next_turn
from regreen.adapters.store import tables as t
from regreen.adapters.store.connection import LIVE_STATES, StoreRows, datetime_from_seconds
from regreen.adapters.store.job_rows import JobRows, delivery_from_row, job_from_row
from regreen.adapters.store.migrations import upgrade_schema
from regreen.domain.list_queries import (
    JobDurations,
    ListQuery,
    Page,
    QueueState,
    RepositoryMonth,
    ScheduleRun,
    TokenTotals,
)
from regreen.domain.models import Cost, SentPart
from regreen.domain.records import (
    AuditEntry,
    DeliveryRecord,
    JobRecord,
    LedgerLine,
    Record,
    ResultDocument,
    StoreTotals,
)
from regreen.domain.state_records import STATE_RECORDS, StateRecord
from regreen.secrets.redaction import redact_all

# Cost and results: the model's answers, the ledger, documents, the audit log.


class ResultRows(StoreRows):
    """The part of the store with results for people."""

    # The model's answers and the ledger

    def cached_answer(self, key: str) -> str | None:
        """A model's answer by its request's hash."""
        with self._begin_transaction() as connection:
            query = sa.select(t.answers.c.answer).where(t.answers.c.key == key)
            return connection.execute(query).scalar_one_or_none()

    def cache_answer(self, key: str, answer: str) -> None:
        """Remember a model's answer."""
        row = {"key": key, "answer": answer, "at": self._current_seconds()}
        with self._begin_transaction() as connection:
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
            **asdict(line.cost),
            "sent": json.dumps([[part.what, part.path, part.lines] for part in line.sent]),
            "masked": line.masked,
        }
        with self._begin_transaction() as connection:
            connection.execute(sa.insert(t.ledger).values(row))

    def total_spent(self, repo: str, since: datetime, number: int | None = None) -> float:
        """The cost of model calls since then, in US dollars."""
        where = [t.ledger.c.repo == repo, t.ledger.c.at >= since.timestamp()]
        where += [t.ledger.c.number == number] if number is not None else []
        with self._begin_transaction() as connection:
            total = connection.execute(
                sa.select(sa.func.coalesce(sa.func.sum(t.ledger.c.usd), 0.0)).where(*where)
            ).scalar_one()
        return float(total)

    def total_job_seconds(self, repo: str, since: datetime) -> float:
        """How long a repository's jobs have taken since then, together; see `records.Store.total_job_seconds`."""
        c, start = t.jobs.c, since.timestamp()
        end = sa.func.coalesce(c.ended, self._current_seconds())
        # an attempt after a wait begins when it was due, not when the job was first started
        latest = sa.case((c.due > c.started, c.due), else_=c.started)
        begin = sa.case((latest > start, latest), else_=start)
        query = sa.select(sa.func.coalesce(sa.func.sum(end - begin), 0.0)).where(
            c.repo == repo,
            c.created >= start - 86_400.0,  # for the index; few wait longer
            c.started.is_not(None),
            c.state != "waiting",
            end > begin,
        )
        with self._begin_transaction() as connection:
            return float(connection.execute(query).scalar_one())

    def ledger(self, limit: int = 100) -> list[LedgerLine]:
        """The latest model calls."""
        query = sa.select(t.ledger).order_by(t.ledger.c.id.desc()).limit(limit)
        with self._begin_transaction() as connection:
            return [ledger_line_from_row(row) for row in connection.execute(query)]

    # Documents

    def save_document(self, document: ResultDocument) -> None:
        """Store a result without credentials; it replaces one of the same kind, repository and subject."""
        row = {
            "kind": document.kind,
            "repo": document.repo,
            "subject": document.subject,
            "number": document.number,
            "job": document.job,
            "at": document.at.timestamp(),
            "body": json.dumps(
                redact_all(json.loads(json.dumps(document.body, default=str)), self._clean)
            ),
        }
        changes = {k: row[k] for k in ("number", "job", "at", "body")}
        with self._begin_transaction() as connection:
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
    ) -> list[ResultDocument]:
        """The latest results."""
        where = [t.documents.c.kind == kind] if kind is not None else []
        where += [t.documents.c.repo == repo] if repo is not None else []
        where += [t.documents.c.number == number] if number is not None else []
        query = sa.select(t.documents).where(*where).order_by(t.documents.c.at.desc()).limit(limit)
        with self._begin_transaction() as connection:
            return [document_from_row(row) for row in connection.execute(query)]

    # The audit log

    def log(self, action: AuditEntry) -> None:
        """Append to the audit log."""
        row = {
            "at": action.at.timestamp(),
            "job": action.job,
            "repo": action.repo,
            "number": action.number,
            "asked_by": action.asked_by,
            "action": action.action,
            "detail": self._clean(action.detail),
        }
        with self._begin_transaction() as connection:
            connection.execute(sa.insert(t.actions).values(row))

    def actions(self, *, repo: str | None = None, limit: int = 200) -> list[AuditEntry]:
        """The latest lines of the audit log."""
        where = [t.actions.c.repo == repo] if repo is not None else []
        query = sa.select(t.actions).where(*where).order_by(t.actions.c.id.desc()).limit(limit)
        with self._begin_transaction() as connection:
            return [action_from_row(row) for row in connection.execute(query)]


def ledger_line_from_row(row: Any) -> LedgerLine:
    """A ledger's row as a value."""
    cost = Cost(row.usd, row.calls, row.input_tokens, row.output_tokens, row.cached_tokens)
    return LedgerLine(
        datetime_from_seconds(row.at),
        row.job,
        row.repo,
        row.number,
        row.purpose,
        row.model,
        cost,
        tuple(SentPart(*part) for part in json.loads(row.sent)),
        row.masked,
    )


def document_from_row(row: Any) -> ResultDocument:
    """A result's row as a value."""
    return ResultDocument(
        kind=row.kind,
        repo=row.repo,
        number=row.number,
        subject=row.subject,
        job=row.job,
        at=datetime_from_seconds(row.at),
        body=json.loads(row.body),
    )


def action_from_row(row: Any) -> AuditEntry:
    """An audit row as a value."""
    return AuditEntry(
        datetime_from_seconds(row.at),
        row.job,
        row.repo,
        row.number,
        row.asked_by,
        row.action,
        row.detail,
    )


DEEPEST, DEEPEST_RESULTS = 5_000, 2_000
"""Words are looked for in the newest so many rows that fit the other filters: a page is never slow."""

_MAX_SCHEDULE_RUNS = 1_000
_MAX_NUMBER = 2**63 - 1
_MONTH_KINDS = ("review", "fix", "bisect")


class PageRows(StoreRows):
    """The part of the store with paged lists."""

    def list_jobs(self, query: ListQuery) -> Page[JobRecord]:
        """Jobs by their creation time; their cost is only summed for this page."""
        c = t.jobs.c
        where = [
            *_matches_query(c, query),
            *_equals_wanted(c, kind=query.kind, state=query.state),
            *([c.kind.not_in(query.hidden)] if query.hidden and not query.kind else ()),
        ]
        rows, after = self._fetch_page(
            t.jobs, where, query, (c.created, c.id), (c.id, c.note, c.progress)
        )
        costs = self._sum_job_costs([row.id for row in rows])
        return Page([job_from_row(row, costs.get(row.id, 0.0)) for row in rows], after)

    def list_deliveries(self, query: ListQuery) -> Page[DeliveryRecord]:
        """Deliveries by their arrival time."""
        c = t.deliveries.c
        where = [
            *_in_visible_repos(c, query),
            *_equals_wanted(c, repo=query.repo, name=query.kind),
        ]
        rows, after = self._fetch_page(
            t.deliveries, where, query, (c.received, c.id), (c.id, c.event)
        )
        return Page([delivery_from_row(row) for row in rows], after)

    def list_documents(self, query: ListQuery) -> Page[ResultDocument]:
        """Results by their time."""
        c = t.documents.c
        where = [*_matches_query(c, query), *_equals_wanted(c, kind=query.kind)]
        rows, after = self._fetch_page(
            t.documents, where, query, (c.at, c.job), (c.subject, c.body)
        )
        return Page([document_from_row(row) for row in rows], after)

    def list_ledger(self, query: ListQuery) -> Page[LedgerLine]:
        """Model calls."""
        c = t.ledger.c
        where = [
            *_matches_query(c, query),
            *_equals_wanted(c, purpose=query.kind, job=query.job),
        ]
        rows, after = self._fetch_page(t.ledger, where, query, (c.id, c.id), (c.purpose, c.model))
        return Page([ledger_line_from_row(row) for row in rows], after)

    def list_actions(self, query: ListQuery) -> Page[AuditEntry]:
        """The audit log."""
        c = t.actions.c
        where = [*_matches_query(c, query), *_equals_wanted(c, action=query.kind, job=query.job)]
        words = (c.asked_by, c.detail, c.action)
        rows, after = self._fetch_page(t.actions, where, query, (c.id, c.id), words)
        return Page([action_from_row(row) for row in rows], after)

    def results_of(self, job_id: str) -> list[ResultDocument]:
        """The result of one job."""
        query = sa.select(t.documents).where(t.documents.c.job == job_id).order_by(t.documents.c.at)
        with self._begin_transaction() as connection:
            return [document_from_row(row) for row in connection.execute(query)]

    def list_job_progress(self, job_id: str) -> list[tuple[datetime, str]]:
        """The progress lines of a job, oldest first."""
        c = t.progress.c
        query = sa.select(c.at, c.line).where(c.job == job_id).order_by(c.id.desc())
        with self._begin_transaction() as connection:
            rows = connection.execute(query.limit(200)).all()
        return [(datetime_from_seconds(row.at), row.line) for row in reversed(rows)]

    def months(self, since: datetime, today: datetime) -> list[RepositoryMonth]:
        """Every repository with jobs, or with a result or model call since a moment, with its sums since then.

        One query for each repository: each sum then reads one range of a covering index, whereas grouping a
        month's rows sorts them all first.
        """
        d, m = t.documents.c, t.ledger.c
        repo = _select_repos()
        spent = sa.select(sa.func.coalesce(sa.func.sum(m.usd), 0.0)).where(m.repo == repo.c.repo)
        counts = [
            sa.select(sa.func.count()).where(
                d.repo == repo.c.repo, d.kind == kind, d.at >= since.timestamp()
            )
            for kind in _MONTH_KINDS
        ]
        columns = [
            spent.where(m.at >= since.timestamp()),
            spent.where(m.at >= today.timestamp()),
            *counts,
            sa.select(sa.func.count()).where(m.repo == repo.c.repo, m.at >= since.timestamp()),
        ]
        has_jobs = sa.exists().where(t.jobs.c.repo == repo.c.repo)
        query = sa.select(repo.c.repo, has_jobs, *(c.scalar_subquery() for c in columns))
        with self._begin_transaction() as connection:
            rows = connection.execute(query).all()
        return [
            RepositoryMonth(name, reviews, fixes, bisections, usd, usd_today)
            for name, jobs, usd, usd_today, reviews, fixes, bisections, calls in sorted(
                map(tuple, rows)
            )
            if jobs or calls or reviews or fixes or bisections
        ]

    def schedule_runs(self, since: datetime) -> list[ScheduleRun]:
        """The runs of schedules since then, newest first."""
        c = t.jobs.c
        query = (
            sa.select(c.repo, c.created, c.id, c.state, c.note, c.outcome)
            .where(c.kind == sa.literal_column("'tick'"), c.created >= since.timestamp())
            .order_by(c.created.desc())
            .limit(_MAX_SCHEDULE_RUNS)
        )
        with self._begin_transaction() as connection:
            return [
                ScheduleRun(
                    row.repo,
                    datetime_from_seconds(row.created),
                    row.id,
                    row.state,
                    row.note,
                    row.outcome,
                )
                for row in connection.execute(query)
            ]

    def _fetch_page(
        self,
        table: sa.Table,
        where: Sequence[sa.ColumnElement[bool]],
        query: ListQuery,
        order: tuple[sa.Column[Any], sa.Column[Any]],
        words: Sequence[sa.Column[Any]],
    ) -> tuple[Sequence[Any], str]:
        """Rows by the two columns of `order`, newest first, and the place where they end if there are more."""
        at, last = order
        conditions = [*where, *_after_position(query.after, at, last)]
        statement = sa.select(table).where(*conditions).order_by(at.desc(), last.desc())
        if query.words:
            most = DEEPEST_RESULTS if table is t.documents else DEEPEST
            near = statement.limit(most).subquery()
            holds = [near.c[w.name].icontains(query.words, autoescape=True) for w in words]
            newest = (near.c[at.name].desc(), near.c[last.name].desc())
            statement = sa.select(near).where(sa.or_(*holds)).order_by(*newest)
        with self._begin_transaction() as connection:
            rows = connection.execute(statement.limit(query.limit + 1)).all()
        if len(rows) <= query.limit:
            return rows, ""
        rows = rows[: query.limit]
        end = rows[-1]._mapping
        return rows, f"{end[at.name]!r},{end[last.name]}"

    def _sum_job_costs(self, ids: Sequence[str]) -> dict[str, float]:
        c = t.ledger.c
        query = sa.select(c.job, sa.func.sum(c.usd)).where(c.job.in_(ids)).group_by(c.job)
        with self._begin_transaction() as connection:
            return {job: float(usd) for job, usd in connection.execute(query)}


def _select_repos() -> sa.Subquery:
    """Every repository with a job, a result or a model call."""
    each = (_each_repo(table) for table in (t.jobs, t.documents, t.ledger))
    return sa.union(
        *(sa.select(repos.c.repo).where(repos.c.repo.is_not(None)) for repos in each)
    ).subquery()


def _each_repo(table: sa.Table) -> sa.CTE:
    """Every repository of a table, by jumping from one index entry to the next different one."""
    c = table.c
    name = f"each_of_{table.name}"
    first = sa.select(sa.func.min(c.repo).label("repo")).cte(name, recursive=True)
    after = sa.select(sa.func.min(c.repo)).where(c.repo > first.c.repo).scalar_subquery()
    return first.union_all(sa.select(after).where(first.c.repo.is_not(None)))


def _in_visible_repos(columns: Any, query: ListQuery) -> list[sa.ColumnElement[bool]]:
    return [] if query.repos is None else [columns.repo.in_(query.repos)]


def _matches_query(columns: Any, query: ListQuery) -> list[sa.ColumnElement[bool]]:
    number = [] if query.number is None else [columns.number == query.number]
    return [
        *_in_visible_repos(columns, query),
        *_equals_wanted(columns, repo=query.repo),
        *number,
    ]


def _equals_wanted(columns: Any, **wanted: str) -> list[sa.ColumnElement[bool]]:
    return [columns[name] == value for name, value in wanted.items() if value]


def _after_position(
    after: str, at: sa.Column[Any], last: sa.Column[Any]
) -> list[sa.ColumnElement[bool]]:
    """The condition for rows after a place; an invalid place is ignored."""
    moment, _, name = after.partition(",")
    try:
        seconds = float(moment)
        key: str | int = int(name) if isinstance(last.type, sa.Integer) else name
    except ValueError:
        return []
    if isinstance(key, int) and abs(key) > _MAX_NUMBER:
        return []
    return [sa.tuple_(at, last) < sa.tuple_(sa.literal(seconds), sa.literal(key, last.type))]


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
        sums = (
            sa.func.coalesce(sa.func.sum(x), 0)
            for x in (c.input_tokens, c.output_tokens, c.cached_tokens)
        )
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
            wait = seconds_until_next_turn(list(connection.execute(newest).scalars()), limits, now)
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

    def create_or_upgrade_tables(self) -> None:
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
