"""The rows of the store page by page, each page found by an index from where the last one ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from regreen.adapters import tables as t
from regreen.adapters.job_rows import delivery_of, job_of, trail_key
from regreen.adapters.result_rows import action_of, document_of, line_of
from regreen.adapters.rows import Rows, time_of
from regreen.listing import Look, Month, Page, Sought
from regreen.records import Action, DeliveryRecord, Document, JobRecord, LedgerLine

DEEPEST, DEEPEST_RESULTS = 5_000, 2_000
"""Words are looked for in the newest so many rows that fit the other filters: a page is never slow."""

_LOOKS = 1_000
_MONTH_KINDS = ("review", "fix", "bisect")
_RED, _SCHEDULES, _BEYOND_THEM = "red", "schedule/", "schedule0"


class PageRows(Rows):
    """The part of the store that people leaf through."""

    def list_jobs(self, sought: Sought) -> Page[JobRecord]:
        """Jobs, by when they were ordered; what they cost is summed for this page alone."""
        c = t.jobs.c
        where = [*_seen(c, sought), *_same(c, kind=sought.kind, state=sought.state)]
        rows, after = self._page(
            t.jobs, where, sought, (c.created, c.id), (c.id, c.note, c.progress)
        )
        costs = self._costs([row.id for row in rows])
        return Page([job_of(row, costs.get(row.id, 0.0)) for row in rows], after)

    def list_deliveries(self, sought: Sought) -> Page[DeliveryRecord]:
        """Deliveries, by when they came."""
        c = t.deliveries.c
        where = [*_visible(c, sought), *_same(c, repo=sought.repo, name=sought.kind)]
        rows, after = self._page(t.deliveries, where, sought, (c.received, c.id), (c.id, c.event))
        return Page([delivery_of(row) for row in rows], after)

    def list_documents(self, sought: Sought) -> Page[Document]:
        """Results, by when they came out."""
        c = t.documents.c
        where = [*_seen(c, sought), *_same(c, kind=sought.kind)]
        rows, after = self._page(t.documents, where, sought, (c.at, c.job), (c.subject, c.body))
        return Page([document_of(row) for row in rows], after)

    def list_ledger(self, sought: Sought) -> Page[LedgerLine]:
        """Model calls."""
        c = t.ledger.c
        where = [*_seen(c, sought), *_same(c, purpose=sought.kind, job=sought.job)]
        rows, after = self._page(t.ledger, where, sought, (c.id, c.id), (c.purpose, c.model))
        return Page([line_of(row) for row in rows], after)

    def list_actions(self, sought: Sought) -> Page[Action]:
        """The audit log."""
        c = t.actions.c
        where = [*_seen(c, sought), *_same(c, action=sought.kind, job=sought.job)]
        words = (c.asked_by, c.detail, c.action)
        rows, after = self._page(t.actions, where, sought, (c.id, c.id), words)
        return Page([action_of(row) for row in rows], after)

    def results_of(self, job_id: str) -> list[Document]:
        """What one job found out."""
        query = sa.select(t.documents).where(t.documents.c.job == job_id).order_by(t.documents.c.at)
        with self._begin() as connection:
            return [document_of(row) for row in connection.execute(query)]

    def trail(self, job_id: str) -> list[tuple[datetime, str]]:
        """What a job said that it was doing, oldest first."""
        c = t.lines.c
        query = sa.select(c.at, c.line).where(c.key == trail_key(job_id)).order_by(c.id.desc())
        with self._begin() as connection:
            rows = connection.execute(query.limit(200)).all()
        return [(time_of(row.at), row.line) for row in reversed(rows)]

    def months(self, since: datetime, today: datetime) -> list[Month]:
        """Every repository that has jobs, or had a result or a model call since a moment, with its sums since then.

        Asked repository by repository: each sum is then one walk along an index that holds all it needs, where
        grouping a month's rows sorts them all first.
        """
        d, m = t.documents.c, t.ledger.c
        repo = _every_repo()
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
        with self._begin() as connection:
            rows = connection.execute(query).all()
        return [
            Month(name, reviews, fixes, bisections, usd, usd_today)
            for name, jobs, usd, usd_today, reviews, fixes, bisections, calls in sorted(
                map(tuple, rows)
            )
            if jobs or calls or reviews or fixes or bisections
        ]

    def looks(self, since: datetime) -> list[Look]:
        """What schedules saw since then, newest first."""
        c = t.jobs.c
        query = (
            sa.select(c.repo, c.created, c.id, c.state, c.note)
            .where(c.kind == sa.literal_column("'tick'"), c.created >= since.timestamp())
            .order_by(c.created.desc())
            .limit(_LOOKS)
        )
        with self._begin() as connection:
            return [
                Look(row.repo, time_of(row.created), row.id, row.state, row.note)
                for row in connection.execute(query)
            ]

    def regressions(self) -> list[tuple[str, str]]:
        """The schedules that are red, as `REPOSITORY/NAME`, each with what was noted, as JSON."""
        c = t.memory.c
        query = sa.select(c.space, c.value).where(
            c.key == _RED, c.space >= _SCHEDULES, c.space < _BEYOND_THEM
        )
        with self._begin() as connection:
            rows = connection.execute(query.order_by(c.space)).all()
        return [(row.space.removeprefix(_SCHEDULES), row.value) for row in rows]

    def _page(
        self,
        table: sa.Table,
        where: Sequence[sa.ColumnElement[bool]],
        sought: Sought,
        order: tuple[sa.Column[Any], sa.Column[Any]],
        words: Sequence[sa.Column[Any]],
    ) -> tuple[Sequence[Any], str]:
        """Rows by the two columns of `order`, newest first, and the place where they end if there are more."""
        at, last = order
        conditions = [*where, *_beyond(sought.after, at, last)]
        query = sa.select(table).where(*conditions).order_by(at.desc(), last.desc())
        if sought.words:
            most = DEEPEST_RESULTS if table is t.documents else DEEPEST
            near = query.limit(most).subquery()
            holds = [near.c[w.name].icontains(sought.words, autoescape=True) for w in words]
            newest = (near.c[at.name].desc(), near.c[last.name].desc())
            query = sa.select(near).where(sa.or_(*holds)).order_by(*newest)
        with self._begin() as connection:
            rows = connection.execute(query.limit(sought.limit + 1)).all()
        if len(rows) <= sought.limit:
            return rows, ""
        rows = rows[: sought.limit]
        end = rows[-1]._mapping
        return rows, f"{end[at.name]!r},{end[last.name]}"

    def _costs(self, ids: Sequence[str]) -> dict[str, float]:
        c = t.ledger.c
        query = sa.select(c.job, sa.func.sum(c.usd)).where(c.job.in_(ids)).group_by(c.job)
        with self._begin() as connection:
            return {job: float(usd) for job, usd in connection.execute(query)}


def _every_repo() -> sa.Subquery:
    """Every repository that has a job, a result or a model call."""
    each = (_each_repo(table) for table in (t.jobs, t.documents, t.ledger))
    return sa.union(*(sa.select(found.c.repo).where(found.c.repo.is_not(None)) for found in each)).subquery()  # fmt: skip


def _each_repo(table: sa.Table) -> sa.CTE:
    """Every repository of a table, from one index entry to the next other one instead of through all of them."""
    c = table.c
    name = f"each_of_{table.name}"
    first = sa.select(sa.func.min(c.repo).label("repo")).cte(name, recursive=True)
    after = sa.select(sa.func.min(c.repo)).where(c.repo > first.c.repo).scalar_subquery()
    return first.union_all(sa.select(after).where(first.c.repo.is_not(None)))


def _visible(columns: Any, sought: Sought) -> list[sa.ColumnElement[bool]]:
    return [] if sought.repos is None else [columns.repo.in_(sought.repos)]


def _seen(columns: Any, sought: Sought) -> list[sa.ColumnElement[bool]]:
    number = [] if sought.number is None else [columns.number == sought.number]
    return [*_visible(columns, sought), *_same(columns, repo=sought.repo), *number]


def _same(columns: Any, **wanted: str) -> list[sa.ColumnElement[bool]]:
    return [columns[name] == value for name, value in wanted.items() if value]


def _beyond(
    after: str, at: sa.Column[Any], last: sa.Column[Any]
) -> list[sa.ColumnElement[bool]]:  # fmt: skip
    """What comes after a place; a place that somebody made up is none."""
    moment, _, name = after.partition(",")
    try:
        seconds = float(moment)
        key: str | int = int(name) if isinstance(last.type, sa.Integer) else name
    except ValueError:
        return []
    return [sa.tuple_(at, last) < sa.tuple_(sa.literal(seconds), sa.literal(key, last.type))]
