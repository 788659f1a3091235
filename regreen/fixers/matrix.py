"""A job's matrix: the cells it makes, and the names that GitHub shows for them."""

from __future__ import annotations

import itertools
import json

from regreen.fixers.expressions import Value, to_string

MAX_CELLS = 256
"""GitHub's own limit of jobs in one matrix."""
_MAX_NAME = 100

Cell = dict[str, Value]


def cells(matrix: dict[str, Value]) -> list[Cell]:
    """Every combination: the product, without what `exclude` names, with what `include` adds."""
    axes = {
        key: _axis(values) for key, values in matrix.items() if key not in {"include", "exclude"}
    }
    product: list[Cell] = [{}]
    if axes:
        combinations = itertools.islice(itertools.product(*axes.values()), 4 * MAX_CELLS)
        product = [dict(zip(axes, values, strict=True)) for values in combinations]
    excluded = _entries(matrix.get("exclude"))
    product = [cell for cell in product if not any(_matches(cell, one) for one in excluded)]
    if not axes:
        product = []
    return _with_includes(product, _entries(matrix.get("include")))[:MAX_CELLS]


def _axis(values: Value) -> list[Value]:
    return values if isinstance(values, list) else [values]


def _entries(value: Value) -> list[Cell]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _matches(cell: Cell, entry: Cell) -> bool:
    return all(key in cell and _same(cell[key], value) for key, value in entry.items())


def _same(one: Value, other: Value) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return all(key in one and _same(one[key], value) for key, value in other.items())
    if isinstance(one, (dict, list)) or isinstance(other, (dict, list)):
        return json.dumps(one, default=str) == json.dumps(other, default=str)
    return to_string(one) == to_string(other)


def _with_includes(product: list[Cell], includes: list[Cell]) -> list[Cell]:
    """An include that fits cells of the product extends them; one that fits none is a cell of its own."""
    extended = [dict(cell) for cell in product]
    alone: list[Cell] = []
    for entry in includes:
        fitted = False
        for original, cell in zip(product, extended, strict=True):
            if all(
                key not in original or _same(original[key], value) for key, value in entry.items()
            ):
                cell.update({key: value for key, value in entry.items() if key not in original})
                fitted = True
        if not fitted:
            alone.append(dict(entry))
    return extended + alone


def default_name(name: str, cell: Cell) -> str:
    """`name (3.11, ubuntu-latest)`, cut as GitHub cuts it."""
    words = [word for value in cell.values() for word in _leaves(value) if word]
    if not words:
        return name
    full = f"{name} ({', '.join(words)})"
    return full if len(full) <= _MAX_NAME else full[: _MAX_NAME - 3] + "..."


def _leaves(value: Value) -> list[str]:
    if isinstance(value, list):
        return [word for one in value for word in _leaves(one)]
    if isinstance(value, dict):
        return [word for one in value.values() for word in _leaves(one)]
    return [to_string(value)]
