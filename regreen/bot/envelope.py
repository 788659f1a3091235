"""Events and asks as JSON, for the queue: plain names and values, so that rows outlive a deploy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any, cast, get_args

from regreen.bot.asks import CommentRef, Demand, Work
from regreen.errors import UserError
from regreen.webhooks.events import Actor, Event, Where

_KINDS: Mapping[str, type] = MappingProxyType(
    {kind.__name__: kind for kind in (*get_args(Event), *get_args(Demand))}
)
_PARTS: Mapping[str, type] = MappingProxyType(
    {"where": Where, "actor": Actor, "author": Actor, "comment": CommentRef}
)


def pack(work: Work) -> str:
    """An event or ask as JSON."""
    return json.dumps(
        {"kind": type(work).__name__, **_fields(work)}, default=_fields, separators=(",", ":")
    )


def _fields(value: Any) -> dict[str, Any]:
    """A value's fields as they are; `asdict` would copy them, for every delivery, before it is answered."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def unpack(text: str) -> Work:
    """The event or ask again.

    Raises:
        UserError: another version of Regreen wrote it.
    """
    data = json.loads(text)
    kind = _KINDS.get(data.pop("kind", ""))
    if kind is None:
        raise UserError("this job was written by another version of Regreen; run its command again")
    try:
        return cast("Work", kind(**{key: _value(key, value) for key, value in data.items()}))
    except TypeError as error:
        message = "this job was written by another version of Regreen; run its command again"
        raise UserError(message) from error


def _value(key: str, value: Any) -> Any:
    if isinstance(value, dict) and key in _PARTS:
        return _PARTS[key](**value)
    return tuple(value) if isinstance(value, list) else value
