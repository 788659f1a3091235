"""The functions of GitHub's expressions, on values that are known."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final

from regreen.fixers.expression_values import (
    UNKNOWN,
    EvaluationFailed,
    Value,
    equal,
    folded,
    to_string,
)


def _contains(values: list[Value]) -> Value:
    where, what = values
    if isinstance(where, list):
        return any(equal(one, what) for one in where)
    if isinstance(where, dict) or isinstance(what, (list, dict)):
        return False
    return folded(to_string(what)) in folded(to_string(where))


def _starts(values: list[Value]) -> Value:
    if any(isinstance(one, (list, dict)) for one in values):
        return False
    return folded(to_string(values[0])).startswith(folded(to_string(values[1])))


def _ends(values: list[Value]) -> Value:
    if any(isinstance(one, (list, dict)) for one in values):
        return False
    return folded(to_string(values[0])).endswith(folded(to_string(values[1])))


_MAX_TEXT = 1024 * 1024
_FORMAT_PART = re.compile(r"\{\{|\}\}|\{(\d+)\}|[{}]")


def _format(values: list[Value]) -> Value:
    text = to_string(values[0])

    def replaced(match: re.Match[str]) -> str:
        if match[0] in {"{{", "}}"}:
            return match[0][0]
        if match[1] is None or int(match[1][:5]) >= len(values) - 1:
            message = f"format: {match[0]!r} in {text[:60]!r} names no argument"
            raise EvaluationFailed(message)
        return to_string(values[1 + int(match[1])])

    pieces: list[str] = []
    at = 0
    for match in _FORMAT_PART.finditer(text):
        pieces += [text[at : match.start()], replaced(match)]
        at = match.end()
    return _bounded("", [*pieces, text[at:]])


def _join(values: list[Value]) -> Value:
    separator = (
        "," if len(values) < 2 or isinstance(values[1], (list, dict)) else to_string(values[1])
    )
    if isinstance(values[0], dict):
        return ""
    parts = (
        [to_string(one) for one in values[0]]
        if isinstance(values[0], list)
        else [to_string(values[0])]
    )
    return _bounded(separator, parts)


def _bounded(separator: str, parts: list[str]) -> str:
    """Parts joined, unless that would fill the memory."""
    if sum(len(one) + len(separator) for one in parts) > _MAX_TEXT:
        message = f"a text longer than {_MAX_TEXT} characters"
        raise EvaluationFailed(message)
    return separator.join(parts)


def _to_json(values: list[Value]) -> Value:
    return json.dumps(plain(values[0]), indent=2, ensure_ascii=False)


def plain(value: Value) -> object:
    """A value as JSON has it: whole numbers as integers."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return None if value is UNKNOWN else value


def _from_json(values: list[Value]) -> Value:
    text = to_string(values[0])
    try:
        return from_plain(json.loads(text))
    except (ValueError, RecursionError) as error:
        message = f"fromJSON: not JSON: {text[:60]!r}"
        raise EvaluationFailed(message) from error


def from_plain(value: object) -> Value:
    """Values as expressions know them: every number a float, every key a string."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, (list, tuple)):
        return [from_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {str(key): from_plain(one) for key, one in value.items()}
    return UNKNOWN if value is UNKNOWN else str(value)


FUNCTIONS: Final[dict[str, Callable[[list[Value]], Value]]] = {
    "contains": _contains, "startswith": _starts, "endswith": _ends, "format": _format, "join": _join,
    "tojson": _to_json, "fromjson": _from_json,
}  # fmt: skip
