"""Sums over the rows for `/metrics`: the same whichever process answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from regreen.adapters import tables as t
from regreen.adapters.rows import LIVE, Rows
from regreen.listing import Limit, QueueState, Spans, Tokens

_LIMITS = "github-limit"
_DAY_S = 86_400


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

    def add(self, counts: Mapping[str, int]) -> None:
        """Add to counters that only grow, whichever process it is that counts."""
        c = t.counters.c
        with self._begin() as connection:
            for name, number in sorted(
                counts.items()
            ):  # sorted: two processes must not wait for each other
                row = self._insert(t.counters).values(name=name, number=number)
                connection.execute(
                    row.on_conflict_do_update(
                        index_elements=["name"], set_={"number": c.number + row.excluded.number}
                    )
                )

    def counters(self) -> dict[str, int]:
        """Every counter."""
        with self._begin() as connection:
            return {name: int(number) for name, number in connection.execute(sa.select(t.counters))}

    def keep_limits(self, limits: Sequence[Limit]) -> None:
        """Keep what GitHub said last of its limits."""
        now = self._now()
        with self._begin() as connection:
            for limit in limits:
                kept = json.dumps([limit.left, limit.most, limit.resets])
                row = {
                    "space": _LIMITS,
                    "key": f"{limit.owner} {limit.resource}",
                    "value": kept,
                    "at": now,
                }
                connection.execute(
                    self._insert(t.memory)
                    .values(row)
                    .on_conflict_do_update(
                        index_elements=["space", "key"], set_={"value": kept, "at": now}
                    )
                )

    def limits(self) -> list[Limit]:
        """What GitHub said last of each limit; one that nobody used for a day says nothing any more."""
        c, now = t.memory.c, self._now()
        query = sa.select(c.key, c.value).where(c.space == _LIMITS, c.at > now - _DAY_S)
        with self._begin() as connection:
            rows = connection.execute(query.order_by(c.key)).all()
        found = []
        for key, value in rows:
            owner, _, resource = key.partition(" ")
            left, most, resets = json.loads(value)
            # past that moment GitHub gives the whole again
            found.append(Limit(owner, resource, most if resets < now else left, most, resets))
        return found
