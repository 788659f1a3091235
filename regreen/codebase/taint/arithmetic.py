"""Operators: what two values make together."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Sequence

from regreen.codebase.taint import heap, library
from regreen.codebase.taint.heap import allocate
from regreen.codebase.taint.run import Frame
from regreen.codebase.taint.state import Heaped, State
from regreen.codebase.taint.values import (
    LONGEST_CONSTANT,
    UNKNOWN,
    External,
    Scalar,
    Taint,
    Value,
    constant,
    join,
    made_safe,
    tainted,
)

_OPERATORS: dict[type[ast.operator], Callable[[object, object], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}


_MOST_STARTS = 16
# The kinds of formatting that raise for what is no number.
NUMERIC = frozenset("dfFeEgGxXobn%")
_CONVERSION = re.compile(r"%(?:\((\w+)\))?[-+ #0]*(?:\d+)?(?:\.\d+)?(.)", re.DOTALL)


def concatenated(pieces: Sequence[Value]) -> Value:
    """One text out of several."""
    taints = frozenset(t for piece in pieces for t in piece.taints)
    texts: list[str] = []
    whole = True
    for piece in pieces:
        only = piece.only
        if not only or isinstance(only[0], bytes):
            whole = False
            texts.append(piece.prefix)
            break
        texts.append(str(only[0]))
    text = "".join(texts)[:LONGEST_CONSTANT]
    if whole:
        return constant(text)
    codes = frozenset(
        one
        for piece in pieces
        for one in piece.things
        if isinstance(one, External) and library.MAC.match(one.name)
    )
    found = Value(None, taints, codes, text)
    return made_safe(found, _bounded(pieces)) if taints else found


def _bounded(pieces: Sequence[Value]) -> frozenset[str]:
    """The sinks that one of several known beginnings, whichever it is, makes harmless."""
    starts = [""]
    for piece in pieces:
        known = piece.known
        if not known or len(known) * len(starts) > _MOST_STARTS:
            break
        starts = [start + str(one) for start in starts for one in known]
    found = [library.bounded(start) for start in starts]
    return frozenset.intersection(*found) if len(found) > 1 else frozenset()


def combined(  # noqa: PLR0911, PLR0917
    frame: Frame,
    node: ast.AST,
    op: ast.operator,
    left: Value,
    right: Value,
    state: State,
) -> Value:
    """`left op right`."""
    markup = [v for v in (left, right) if any(library.is_markup(name) for name in v.names())]
    if markup and isinstance(op, ast.Add | ast.Mod):
        taints = left.taints | right.taints | heap.deep_taints(state, right)
        return made_safe(Value(None, taints, markup[0].things), library.HTML)
    a, b = left.known, right.known
    if a and b and len(a) * len(b) <= 16:
        results = [_computed(op, x, y) for x in a for y in b]
        return join(*results)
    if isinstance(op, ast.Add):
        if left.handles() or right.handles():
            return _added_lists(frame, node, left, right, state)
        return (
            concatenated([left, right])
            if left.taints or right.taints or left.prefix or a
            else UNKNOWN
        )
    if isinstance(op, ast.BitOr) and left.handles() and right.handles():
        return _added_lists(frame, node, left, right, state, "set")
    if isinstance(op, ast.Sub) and right.handles():
        given = heap.any_element(state, left)
        return allocate(frame, node, Heaped("difference", entries={"of": given}), state)
    if isinstance(op, ast.Mod) and (left.prefix or left.text is not None):
        return _percent(left, right, state)
    if isinstance(op, ast.Div) and any("pathlib" in name for name in left.names()):
        taints = left.taints | right.taints
        return Value(None, taints, left.things, left.prefix or "")
    taints = left.taints | right.taints | heap.deep_taints(state, right)
    kept = taints if isinstance(op, ast.Mod | ast.Mult | ast.Div) else _numbers(taints)
    return tainted(kept, left.prefix if isinstance(op, ast.Mod) else "") if kept else UNKNOWN


def _numbers(taints: frozenset[Taint]) -> frozenset[Taint]:
    """What arithmetic keeps: a text does not survive it, a predictable number does."""
    return frozenset(t for t in taints if t.origin == "weak-random")


def _computed(op: ast.operator, left: Scalar, right: Scalar) -> Value:
    function = _OPERATORS.get(type(op))
    if function is None or _too_large(op, left, right):
        return UNKNOWN
    try:
        result = function(left, right)
    except (TypeError, ValueError, ArithmeticError, LookupError):
        return UNKNOWN
    return constant(result) if isinstance(result, str | bytes | int | float | bool) else UNKNOWN


def _too_large(op: ast.operator, left: Scalar, right: Scalar) -> bool:
    if isinstance(op, ast.Mult):
        sized = [x for x in (left, right) if isinstance(x, str | bytes)]
        counts = [x for x in (left, right) if isinstance(x, int)]
        return bool(sized and counts) and len(sized[0]) * counts[0] > LONGEST_CONSTANT
    # "%999999999d" would fill the memory.
    return isinstance(op, ast.Mod) and isinstance(left, str | bytes)


def _percent(left: Value, right: Value, state: State) -> Value:
    text = left.text if left.text is not None else left.prefix
    taints = left.taints | _inserted(left.text, right, state)
    prefix = text.split("%", 1)[0]
    if not prefix and text.startswith("%s"):
        values = (*(heap.elements(state, right) or ()), right)
        prefix = values[0].text or values[0].prefix
    return tainted(taints, prefix) if taints else Value(None, prefix=prefix)


def _inserted(text: str | None, right: Value, state: State) -> frozenset[Taint]:
    """The taints of what `%` puts into a text: `%d` only takes numbers."""
    kinds = [match[2] for match in _CONVERSION.finditer(text or "") if match[2] != "%"]
    items = heap.elements(state, right) or (right,)
    if len(items) != len(kinds):
        return heap.deep_taints(state, right)
    found = frozenset[Taint]()
    for kind, item in zip(kinds, items, strict=True):
        taints = heap.deep_taints(state, item)
        found |= _numbers(taints) if kind in NUMERIC else taints
    return found


def _added_lists(  # noqa: PLR0917
    frame: Frame, node: ast.AST, left: Value, right: Value, state: State, kind: str = "list"
) -> Value:
    one, other = heap.elements(state, left), heap.elements(state, right)
    if one is not None and other is not None:
        return allocate(frame, node, Heaped(kind, items=(*one, *other)), state)
    rest = join(heap.any_element(state, left), heap.any_element(state, right))
    return allocate(frame, node, Heaped(kind, items=None, rest=rest), state)
