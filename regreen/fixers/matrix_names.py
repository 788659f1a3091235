"""Reads a matrix cell off the name that GitHub shows, where another job's script computed the matrix."""

from __future__ import annotations

import re
from collections.abc import Sequence

from regreen.fixers.expressions import UNKNOWN, Index, Literal, Name, Node, Value, split, to_string
from regreen.fixers.matrix import Cell

_MOST_VALUES = 30


def cell_shown(
    id_: str, template: str, matrix: Value, used: Sequence[str], shown: str
) -> Cell | None:
    """The cell of a job that GitHub shows as `shown`; None where the name does not tell it.

    Args:
        id_: the job's key in the file.
        template: its `name:`, "" where it has none.
        matrix: what is known of `strategy.matrix`; unknown values stand for themselves.
        used: the keys of the matrix that the job speaks of, in their order.
        shown: the name on GitHub.
    """
    if "${{" in template:
        return _by_template(template, shown)
    listed = re.fullmatch(rf"{re.escape(template or id_)} \((.+)\)", shown)
    if listed is None or listed[1].endswith("..."):
        return None
    values = listed[1].split(", ")
    keys = _axes(matrix) or list(used)
    if len(keys) != len(values) or len(values) > _MOST_VALUES:
        return None
    return dict(zip(keys, values, strict=True))


def _axes(matrix: Value) -> list[str]:
    if not isinstance(matrix, dict) or matrix.get("include") is UNKNOWN:
        return []
    return [key for key in matrix if key not in {"include", "exclude"}]


def _by_template(template: str, shown: str) -> Cell | None:
    """The values that put into the template make the name; the shortest where there is a choice."""
    pattern = ""
    paths: list[tuple[str, ...]] = []
    for part in split(template):
        if isinstance(part, str):
            pattern += re.escape(part)
        elif (path := _path(part)) is not None:
            pattern += (
                rf"(?P=v{paths.index(path)})" if path in paths else rf"(?P<v{len(paths)}>.+?)"
            )
            if path not in paths:
                paths.append(path)
        else:
            pattern += ".*?"
    if not paths or len(paths) > 6 or len(shown) > 300:
        return None
    found = re.fullmatch(pattern.strip(), shown.strip())
    if found is None:
        return None
    cell: Cell = {}
    for path, value in zip(paths, found.groups(), strict=True):
        _put(cell, path, value)
    return cell


def _path(node: Node) -> tuple[str, ...] | None:
    """`matrix.a.b` as ("a", "b")."""
    keys: list[str] = []
    while isinstance(node, Index) and isinstance(node.key, Literal):
        keys.insert(0, to_string(node.key.value))
        node = node.of
    return (
        tuple(keys) if isinstance(node, Name) and node.name.lower() == "matrix" and keys else None
    )


def _put(cell: Cell, path: tuple[str, ...], value: str) -> None:
    where: dict[str, Value] = cell
    for key in path[:-1]:
        inner = where.setdefault(key, {"*": UNKNOWN})
        if not isinstance(inner, dict):
            return
        where = inner
    where[path[-1]] = value


def spoken_of(job: Value) -> list[str]:
    """The keys of the matrix that a job's text uses, each once, in their order."""
    found = re.findall(r"\bmatrix\.([\w-]+)|\bmatrix\[['\"]([^'\"]+)['\"]\]", _text(job))
    return list(dict.fromkeys(one or other for one, other in found))


def _text(value: Value) -> str:
    if isinstance(value, dict):
        return "\n".join(_text(one) for one in value.values())
    if isinstance(value, list):
        return "\n".join(_text(one) for one in value)
    return value if isinstance(value, str) else ""
