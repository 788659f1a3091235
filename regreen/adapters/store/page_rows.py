"""Pages over the rows of the store, each found by an index from the end of the previous page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from regreen.adapters.store import tables as t
from regreen.adapters.store.connection import StoreRows, datetime_from_seconds
from regreen.adapters.store.job_rows import delivery_from_row, job_from_row
from regreen.adapters.store.result_rows import (
    action_from_row,
    document_from_row,
    ledger_line_from_row,
)
from regreen.domain.list_queries import ListQuery, Page, RepositoryMonth, ScheduleRun
from regreen.domain.records import AuditEntry, DeliveryRecord, JobRecord, LedgerLine, ResultDocument

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
            sa.select(c.repo, c.created, c.id, c.state, c.note)
            .where(c.kind == sa.literal_column("'tick'"), c.created >= since.timestamp())
            .order_by(c.created.desc())
            .limit(_MAX_SCHEDULE_RUNS)
        )
        with self._begin_transaction() as connection:
            return [
                ScheduleRun(
                    row.repo, datetime_from_seconds(row.created), row.id, row.state, row.note
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
    return sa.union(*(sa.select(repos.c.repo).where(repos.c.repo.is_not(None)) for repos in each)).subquery()  # fmt: skip


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
) -> list[sa.ColumnElement[bool]]:  # fmt: skip
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
