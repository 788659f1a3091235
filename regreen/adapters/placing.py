"""What accepting writes down: a delivery's row, a job's row, and the end of what a newer job replaces."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from regreen.adapters import tables as t
from regreen.adapters.rows import LIVE
from regreen.records import DeliveryRecord, Order

_OF, _BY = sa.bindparam("of", "", sa.String), sa.bindparam("by", "", sa.String)
_AT, _WHY = sa.bindparam("at", 0.0, sa.Float), sa.bindparam("why", "", sa.String)
SUPERSEDE = (
    sa.update(t.jobs)
    .where(t.jobs.c.replaces == _OF, t.jobs.c.id != _BY, t.jobs.c.state.in_(LIVE))
    .values(state="superseded", ended=_AT, note=_WHY)
)


def delivery_row(delivery: DeliveryRecord) -> dict[str, Any]:
    """A delivery as its row."""
    return {
        "id": delivery.id,
        "name": delivery.name,
        "repo": delivery.repo,
        "event": delivery.event,
        "received": delivery.received.timestamp(),
    }


def job_row(order: Order, now: float) -> dict[str, Any]:
    """A new job as its row."""
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
        "state": "waiting",
        "attempts": 0,
        "created": now,
        "due": now + order.delay,
        "note": "",
        "progress": "",
    }


def superseded(placed: Iterable[Order], now: float) -> list[dict[str, Any]]:
    """With what `SUPERSEDE` is run: of several that replace each other the last one stays."""
    last = {order.replaces: order.id for order in placed if order.replaces is not None}
    return [
        {"of": replaces, "by": by, "at": now, "why": f"a newer one came: {by}"}
        for replaces, by in last.items()
    ]
