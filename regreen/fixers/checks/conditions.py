"""Whether a condition still holds wherever an older one held, as far as their texts show."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator

_OPERATORS = {
    "===": operator.eq, "!==": operator.ne, "==": operator.eq, "!=": operator.ne,
    "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
}  # fmt: skip
_COMPARED = re.compile(
    r"^(?P<left>.+?)\s*(?P<op>===|!==|==|!=|<=|>=|<|>)\s*(?P<number>-?\d[\d_]*(?:\.\d+)?)$"
)
_LONG = 2000
_SIDES = re.compile(r"^(?P<left>[^<>=!]+?)\s*(?P<op>==|!=|<=|>=|<|>)\s*(?P<right>[^<>=!]+)$")
# which comparisons of the same two sides hold wherever one does
_FOLLOWS = {
    ">": (">", ">=", "!="), "<": ("<", "<=", "!="), "==": ("==", ">=", "<="),
    ">=": (">=",), "<=": ("<=",), "!=": ("!=",),
}  # fmt: skip
_OR, _AND = re.compile(r"\|\||\bor\b"), re.compile(r"&&|\band\b")


def refuses_as_much(old: str, new: str) -> bool:
    """Whether every state that fulfils `old` fulfils `new`; a False may only mean that it cannot be seen.

    Both are conditions in a C-like language or in Python: alternatives are held against each other part by part,
    comparisons with numbers by their ranges. Conditions too long to be written by hand are not compared.
    """
    if len(old) + len(new) > _LONG:
        return old == new
    alternatives = [list(_parts(one, _AND)) for one in _parts(new, _OR)]
    return all(
        any(_implies(list(_parts(one, _AND)), other) for other in alternatives)
        for one in _parts(old, _OR)
    )


def _implies(held: list[str], asked: list[str]) -> bool:
    return all(any(_covers(one, other) for one in held) for other in asked)


def _covers(held: str, asked: str) -> bool:
    """Whether one plain condition follows from another."""
    if _plain(held) == _plain(asked):
        return True
    nothing = held.removesuffix(" is None") if held.endswith(" is None") else None
    if nothing is not None and asked == f"not {nothing}":
        return True
    sides, wanted = _SIDES.match(held), _SIDES.match(asked)
    if sides and wanted and _same_sides(sides, wanted):
        return wanted["op"] in _FOLLOWS.get(sides["op"], ())
    one, other = _COMPARED.match(held), _COMPARED.match(asked)
    if one is None or other is None or _plain(one["left"]) != _plain(other["left"]):
        return False
    limits = [float(found["number"].replace("_", "")) for found in (one, other)]
    points = [limit + step for limit in limits for step in (-0.5, 0, 0.5)]
    first, second = _OPERATORS[one["op"]], _OPERATORS[other["op"]]
    return all(second(point, limits[1]) for point in points if first(point, limits[0]))


def _same_sides(one: re.Match[str], other: re.Match[str]) -> bool:
    return all(_plain(one[side]) == _plain(other[side]) for side in ("left", "right"))


def _plain(text: str) -> str:
    return re.sub(r"\s+", "", text)


def _parts(text: str, splitter: re.Pattern[str]) -> Iterator[str]:
    """Cut at the splitter wherever it stands outside brackets and strings."""
    text = _unwrapped(text.strip())
    start = 0
    for found in splitter.finditer(text):
        if _is_outside(text[: found.start()]):
            yield _unwrapped(text[start : found.start()].strip())
            start = found.end()
    yield _unwrapped(text[start:].strip())


def _unwrapped(text: str) -> str:
    while text.startswith("(") and text.endswith(")") and _is_outside(text[1:-1]):
        inner = text[1:-1]
        depth = 0
        for sign in inner:
            depth += {"(": 1, ")": -1}.get(sign, 0)
            if depth < 0:
                return text
        text = inner.strip()
    return text


def _is_outside(before: str) -> bool:
    brackets = sum(before.count(sign) for sign in "([{") - sum(before.count(sign) for sign in ")]}")
    return brackets == 0 and before.count("'") % 2 == 0 and before.count('"') % 2 == 0
