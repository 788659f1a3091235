"""The rows by which the engine knows a job, learnt from the engine itself.

It builds its statements anew for every job, which costs more than all else that accepting a delivery does. So it is
asked to enqueue made-up jobs into a connection that only listens. What it says is kept as text and values; the few
values that differ from job to job are filled in. What was learnt is tried on another made-up job: an engine that
does anything else with it is asked each time, as before.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from regreen.records import Order

Enqueue = Callable[[Any, Order], None]
Statement = tuple[str, Sequence[Any]]
Values = Mapping[str, Any]

_log = logging.getLogger(__name__)


def learn(enqueue: Enqueue, dialect: Any) -> Callable[[Order], list[Statement]] | None:
    """A function that tells what has to be written for a job; None where it would not be what the engine writes."""
    try:
        soon, late = (_hear(enqueue, dialect, _made_up(1, delay)) for delay in (0.0, 3600.0))
        holds = all(
            [_plain(one.values) for one in _hear(enqueue, dialect, other)]
            == [_plain(one.filled(other)) for one in learnt]
            for learnt, other in ((soon, _made_up(2, 0.0)), (late, _made_up(2, 3600.0)))
        )
    except (AttributeError, LookupError, TypeError) as error:
        _log.warning("the engine wants more of a connection than to be listened to: %s", error)
        return None
    if not holds:
        _log.warning("the engine writes jobs in another way than was learnt: it is asked each time")
        return None

    def rows(order: Order) -> list[Statement]:
        learnt = late if order.delay > 0 else soon
        return [(one.sql, list(one.filled(order).values())) for one in learnt]

    return rows


@dataclass(frozen=True, slots=True)
class _Heard:
    """One statement, with the values that it had for a made-up job."""

    sql: str
    values: Values
    order: Order

    def filled(self, order: Order) -> Values:
        """The values for another job, in the order of the statement's places."""
        return {
            name: _FILLED[name](self, order) if name in _FILLED else value
            for name, value in self.values.items()
        }

    def inputs(self, order: Order) -> str:
        """The arguments, of which the job's id is the only one."""
        made_up, real = (json.dumps(one.id, ensure_ascii=False) for one in (self.order, order))
        return str(self.values["inputs"]).replace(made_up, real)


def _until(_: _Heard, order: Order) -> int | None:
    return int((time.time() + order.delay) * 1000) if order.delay > 0 else None


_FILLED: Mapping[str, Callable[[_Heard, Order], Any]] = MappingProxyType(
    {
        "workflow_uuid": lambda _, order: order.id,
        "queue_name": lambda _, order: order.queue,
        "queue_partition_key": lambda _, order: order.key,
        "priority": lambda _, order: order.priority,
        "inputs": lambda heard, order: heard.inputs(order),
        "creator_xid": lambda *_: str(uuid.uuid4()),
        "delay_until_epoch_ms": _until,
    }
)


def _plain(values: Values) -> dict[str, Any]:
    """Without what is never the same twice: of these it counts whether they are there, and of what kind."""
    return {
        name: type(value) if name in {"creator_xid", "delay_until_epoch_ms"} else value
        for name, value in values.items()
    }


def _made_up(number: int, delay: float) -> Order:
    return Order(
        id=f'made-up/{number}/é"\\',
        kind="care",
        repo="",
        number=None,
        installation=0,
        queue=f"queue {number}",
        key=f"key {number}",
        priority=4710 + number,
        event="",
        delay=delay,
    )


def _hear(enqueue: Enqueue, dialect: Any, order: Order) -> list[_Heard]:
    listener = _Listener()
    enqueue(listener, order)
    found = []
    for statement, given in listener.heard:
        compiled = statement.compile(dialect=dialect, column_keys=list(given), **listener.options)
        values = compiled.construct_params(given)
        kept = {}
        for name in compiled.positiontup:
            convert = compiled.binds[name].type.dialect_impl(dialect).bind_processor(dialect)
            kept[name] = convert(values[name]) if convert is not None else values[name]
        found.append(_Heard(str(compiled), kept, order))
    return found


class _Listener:
    """As much of a connection as the engine needs to enqueue; nothing is there, and nothing is written."""

    dialect = None

    def __init__(self) -> None:
        self.heard: list[tuple[Any, dict[str, Any]]] = []
        self.options: dict[str, Any] = {}

    def get_execution_options(self) -> dict[str, Any]:
        """None so far."""
        return {}

    def execution_options(self, **options: Any) -> None:
        """Where its tables are."""
        self.options = {**options, "render_schema_translate": "schema_translate_map" in options}

    def execute(self, statement: Any, values: Mapping[str, Any]) -> _Listener:
        """Listen."""
        self.heard.append((statement, dict(values)))
        return self

    def fetchone(self) -> None:
        """No such job was there before."""
