"""Events and requests as JSON for the queue: plain names and values, so that rows survive a deploy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any, cast, get_args

from regreen.domain.errors import UserError
from regreen.domain.events import (
    Actor,
    BisectRequest,
    CauseRequest,
    CommentRef,
    Event,
    FixRequest,
    Maintenance,
    MaintenanceTask,
    NewTestRequest,
    ProofRequest,
    QuestionRequest,
    RepositoryRef,
    ReviewRequest,
    Work,
    WorkRequest,
)

# The stored names: a class may be renamed, stored rows may not.
_NAMES_OF_REQUESTS: Mapping[type, str] = MappingProxyType(
    {
        ReviewRequest: "Review",
        FixRequest: "Fix",
        BisectRequest: "Bisect",
        CauseRequest: "Why",
        ProofRequest: "Prove",
        NewTestRequest: "WriteTest",
        QuestionRequest: "Ask",
        Maintenance: "Care",
    }
)
_KIND_CLASSES: Mapping[str, type] = MappingProxyType(
    {
        _NAMES_OF_REQUESTS.get(kind, kind.__name__): kind
        for kind in (*get_args(Event), *get_args(WorkRequest))
    }
)
_PART_CLASSES: Mapping[str, type] = MappingProxyType(
    {"where": RepositoryRef, "actor": Actor, "author": Actor, "comment": CommentRef}
)


def serialize_work(work: Work) -> str:
    """Serialize an event or request to JSON."""
    return json.dumps(
        {"kind": _name_of(work), **_field_values(work)},
        default=_field_values,
        separators=(",", ":"),
    )


def _name_of(work: Work) -> str:
    return _NAMES_OF_REQUESTS.get(type(work), type(work).__name__)


def _field_values(value: Any) -> dict[str, Any]:
    """A value's fields; `asdict` would copy them for every delivery before it is answered."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def deserialize_work(text: str) -> Work:
    """Parse an event or request.

    Raises:
        UserError: another version of Regreen wrote it.
    """
    data = json.loads(text)
    kind = _KIND_CLASSES.get(data.pop("kind", ""))
    is_unknown_task = kind is Maintenance and data.get("task") not in get_args(MaintenanceTask)
    if kind is None or is_unknown_task:
        raise UserError("this job was written by another version of Regreen; run its command again")
    try:
        return cast(
            "Work", kind(**{key: _restore_value(key, value) for key, value in data.items()})
        )
    except TypeError as error:
        message = "this job was written by another version of Regreen; run its command again"
        raise UserError(message) from error


def _restore_value(key: str, value: Any) -> Any:
    if isinstance(value, dict) and key in _PART_CLASSES:
        return _PART_CLASSES[key](**value)
    return tuple(value) if isinstance(value, list) else value
