"""Sums over the rows for `/metrics`: the same whichever process answers."""

from __future__ import annotations

import sqlalchemy as sa

from regreen.adapters import tables as t
from regreen.adapters.rows import LIVE, Rows
from regreen.listing import QueueState, Spans, Tokens


class MetricRows(Rows):
    """The part of the store that machines watch."""

    def queues(self) -> list[QueueState]:
        """Each queue that holds work: how much waits and is due, since when, how much runs."""
        c, now = t.jobs.c, self._now()
        is_due = sa.and_(c.state == "waiting", c.due <= now)
        query = sa.select(
            c.queue,
            sa.func.sum(sa.case((is_due, 1), else_=0)),
            sa.func.min(sa.case((is_due, c.due))),
            sa.func.sum(sa.case((c.state == "running", 1), else_=0)),
        )
        with self._begin() as connection:
            rows = connection.execute(query.where(c.state.in_(LIVE)).group_by(c.queue)).all()
        return [
            QueueState(queue, int(waiting), now - oldest if oldest is not None else 0.0, int(runs))
            for queue, waiting, oldest, runs in rows
        ]

    def spans(self) -> list[Spans]:
        """How long ended jobs of each kind waited and took, of those that are kept."""
        c = t.jobs.c
        query = sa.select(
            c.kind,
            sa.func.count(),
            sa.func.sum(c.ended - c.started),
            sa.func.sum(c.started - c.created),
        ).where(c.state.in_(("done", "failed")), c.started.is_not(None))
        with self._begin() as connection:
            rows = connection.execute(query.group_by(c.kind)).all()
        return [
            Spans(kind, count, took or 0.0, waited or 0.0) for kind, count, took, waited in rows
        ]

    def tokens(self) -> Tokens:
        """What all model calls took in and gave out."""
        c = t.ledger.c
        sums = (sa.func.coalesce(sa.func.sum(x), 0) for x in (c.input_tokens, c.output_tokens, c.cached_tokens))  # fmt: skip
        with self._begin() as connection:
            read, written, cached = connection.execute(sa.select(*sums)).one()
        return Tokens(int(read), int(written), int(cached))
