"""A job's matrix: the cells it makes, and the names that GitHub shows for them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence

from regreen.actions.expressions.evaluation import (
    UNKNOWN,
    ContextName,
    IndexAccess,
    LiteralValue,
    Node,
    Value,
    split_template,
    to_string,
)

MAX_CELLS = 256
"""GitHub's own limit of jobs in one matrix."""
_MAX_NAME = 100

MatrixCell = dict[str, Value]


def expand_matrix(matrix: dict[str, Value]) -> list[MatrixCell]:
    """Every combination: the product, without what `exclude` names, with what `include` adds."""
    axes = {
        key: _axis_values(values)
        for key, values in matrix.items()
        if key not in {"include", "exclude"}
    }
    product: list[MatrixCell] = [{}]
    if axes:
        combinations = itertools.islice(itertools.product(*axes.values()), 4 * MAX_CELLS)
        product = [dict(zip(axes, values, strict=True)) for values in combinations]
    excluded = _list_entries(matrix.get("exclude"))
    product = [cell for cell in product if not any(_matches_entry(cell, item) for item in excluded)]
    if not axes:
        product = []
    return _with_includes(product, _list_entries(matrix.get("include")))[:MAX_CELLS]


def _axis_values(values: Value) -> list[Value]:
    return values if isinstance(values, list) else [values]


def _list_entries(value: Value) -> list[MatrixCell]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _matches_entry(cell: MatrixCell, entry: MatrixCell) -> bool:
    return all(key in cell and _is_same_value(cell[key], value) for key, value in entry.items())


def _is_same_value(item: Value, other: Value) -> bool:
    if isinstance(item, dict) and isinstance(other, dict):
        return all(key in item and _is_same_value(item[key], value) for key, value in other.items())
    if isinstance(item, (dict, list)) or isinstance(other, (dict, list)):
        return json.dumps(item, default=str) == json.dumps(other, default=str)
    return to_string(item) == to_string(other)


def _with_includes(product: list[MatrixCell], includes: list[MatrixCell]) -> list[MatrixCell]:
    """An include that fits cells of the product extends them; one that fits none is a cell of its own."""
    extended = [dict(cell) for cell in product]
    alone: list[MatrixCell] = []
    for entry in includes:
        fitted = False
        for original, cell in zip(product, extended, strict=True):
            if all(
                key not in original or _is_same_value(original[key], value)
                for key, value in entry.items()
            ):
                cell.update({key: value for key, value in entry.items() if key not in original})
                fitted = True
        if not fitted:
            alone.append(dict(entry))
    return extended + alone


def default_name(name: str, cell: MatrixCell) -> str:
    """`name (3.11, ubuntu-latest)`, cut as GitHub cuts it."""
    words = [word for value in cell.values() for word in _leaf_texts(value) if word]
    if not words:
        return name
    full = f"{name} ({', '.join(words)})"
    return full if len(full) <= _MAX_NAME else full[: _MAX_NAME - 3] + "..."


def _leaf_texts(value: Value) -> list[str]:
    if isinstance(value, list):
        return [word for item in value for word in _leaf_texts(item)]
    if isinstance(value, dict):
        return [word for item in value.values() for word in _leaf_texts(item)]
    return [to_string(value)]


# Reads a matrix cell off the name that GitHub shows, where another job's script computed the matrix.

_MAX_VALUES = 30


def find_shown_cell(
    id_: str, template: str, matrix: Value, used: Sequence[str], shown: str
) -> MatrixCell | None:
    """The cell of a job that GitHub shows as `shown`; None where the name does not tell it.

    Args:
        id_: the job's key in the file.
        template: its `name:`, "" where it has none.
        matrix: what is known of `strategy.matrix`; unknown values stand for themselves.
        used: the keys of the matrix that the job speaks of, in their order.
        shown: the name on GitHub.
    """
    if "${{" in template:
        return _match_template(template, shown)
    listed = re.fullmatch(rf"{re.escape(template or id_)} \((.+)\)", shown)
    if listed is None or listed[1].endswith("..."):
        return None
    values = listed[1].split(", ")
    keys = _matrix_axes(matrix) or list(used)
    if len(keys) != len(values) or len(values) > _MAX_VALUES:
        return None
    return dict(zip(keys, values, strict=True))


def _matrix_axes(matrix: Value) -> list[str]:
    if not isinstance(matrix, dict) or matrix.get("include") is UNKNOWN:
        return []
    return [key for key in matrix if key not in {"include", "exclude"}]


def _match_template(template: str, shown: str) -> MatrixCell | None:
    """The values that put into the template make the name; the shortest where there is a choice."""
    pattern = ""
    paths: list[tuple[str, ...]] = []
    for part in split_template(template):
        if isinstance(part, str):
            pattern += re.escape(part)
        elif (path := _matrix_path(part)) is not None:
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
    cell: MatrixCell = {}
    for path, value in zip(paths, found.groups(), strict=True):
        _set_value(cell, path, value)
    return cell


def _matrix_path(node: Node) -> tuple[str, ...] | None:
    """`matrix.a.b` as ("a", "b")."""
    keys: list[str] = []
    while isinstance(node, IndexAccess) and isinstance(node.key, LiteralValue):
        keys.insert(0, to_string(node.key.value))
        node = node.of
    return (
        tuple(keys)
        if isinstance(node, ContextName) and node.name.lower() == "matrix" and keys
        else None
    )


def _set_value(cell: MatrixCell, path: tuple[str, ...], value: str) -> None:
    where: dict[str, Value] = cell
    for key in path[:-1]:
        inner = where.setdefault(key, {"*": UNKNOWN})
        if not isinstance(inner, dict):
            return
        where = inner
    where[path[-1]] = value


def find_matrix_keys(job: Value) -> list[str]:
    """The keys of the matrix that a job's text uses, each once, in their order."""
    found = re.findall(r"\bmatrix\.([\w-]+)|\bmatrix\[['\"]([^'\"]+)['\"]\]", _collect_text(job))
    return list(dict.fromkeys(item or other for item, other in found))


def _collect_text(value: Value) -> str:
    if isinstance(value, dict):
        return "\n".join(_collect_text(item) for item in value.values())
    if isinstance(value, list):
        return "\n".join(_collect_text(item) for item in value)
    return value if isinstance(value, str) else ""
