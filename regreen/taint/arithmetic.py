"""Operators: what two values make together."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Sequence

from regreen.taint import secrecy
from regreen.taint.interpreter import Interpreter
from regreen.taint.models import sources
from regreen.taint.state import AbstractState, HeapObject
from regreen.taint.values import (
    MAX_CONSTANT_LENGTH,
    TOP,
    AbstractValue,
    ExternalRef,
    Scalar,
    Taint,
    join_values,
    make_constant,
    make_tainted,
    mark_safe,
)

_BINARY_OPERATORS: dict[type[ast.operator], Callable[[object, object], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}


_MAX_STARTS = 16
_MAX_BITS = 512
# The kinds of formatting that raise for what is no number.
NUMERIC_CONVERSIONS = frozenset("dfFeEgGxXobn%")
_FORMAT_CONVERSION = re.compile(r"%(?:\((\w+)\))?[-+ #0]*(?:\d+)?(?:\.\d+)?(.)", re.DOTALL)


def concatenate_values(pieces: Sequence[AbstractValue]) -> AbstractValue:
    """One text out of several."""
    taints = frozenset(t for piece in pieces for t in piece.taints)
    texts: list[str] = []
    whole = True
    for piece in pieces:
        only = piece.single_constant
        if not only or isinstance(only[0], bytes):
            whole = False
            texts.append(piece.prefix)
            break
        texts.append(str(only[0]))
    text = "".join(texts)[:MAX_CONSTANT_LENGTH]
    if whole:
        return make_constant(text)
    codes = frozenset(
        ref
        for piece in pieces
        for ref in piece.things
        if isinstance(ref, ExternalRef) and sources.MAC_NAME.match(ref.name)
    )
    found = AbstractValue(None, taints, codes, text)
    return mark_safe(found, _sinks_safe_by_prefix(pieces)) if taints else found


def _sinks_safe_by_prefix(pieces: Sequence[AbstractValue]) -> frozenset[str]:
    """The sinks that one of several known beginnings, whichever it is, makes harmless."""
    starts = [""]
    for piece in pieces:
        known = piece.known_constants
        if not known or len(known) * len(starts) > _MAX_STARTS:
            break
        starts = [start + str(constant) for start in starts for constant in known]
    found = [sources.sinks_safe_by_prefix(start) for start in starts]
    return frozenset.intersection(*found) if len(found) > 1 else frozenset()


def combine_operands(  # noqa: PLR0911
    interp: Interpreter, node: ast.AST, op: ast.operator, left: AbstractValue, right: AbstractValue
) -> AbstractValue:
    """`left op right`."""
    markup = [
        v for v in (left, right) if any(sources.is_markup(name) for name in v.external_names())
    ]
    if markup and isinstance(op, ast.Add | ast.Mod):
        taints = left.taints | right.taints | interp.state.collect_taints(right)
        return mark_safe(AbstractValue(None, taints, markup[0].things), sources.HTML_SINKS)
    a, b = left.known_constants, right.known_constants
    if a and b and len(a) * len(b) <= 16:
        results = [_apply_operator_to_constants(op, x, y) for x in a for y in b]
        return join_values(*results)
    if isinstance(op, ast.Add):
        if left.heap_keys() or right.heap_keys():
            return _concatenate_lists(interp, node, left, right)
        if not (left.taints or right.taints or left.prefix or a):
            return TOP
        whole = concatenate_values([left, right])
        # The same draw on both sides: a text that grows in a loop.
        return secrecy.compose_draws(whole) if left.taints & right.taints else whole
    if isinstance(op, ast.BitOr) and left.heap_keys() and right.heap_keys():
        return _concatenate_lists(interp, node, left, right, "set")
    if isinstance(op, ast.Sub) and right.heap_keys():
        given = interp.state.any_element(left)
        return interp.allocate_object(node, HeapObject("difference", entries={"of": given}))
    if isinstance(op, ast.Mod) and (left.prefix or left.single_text is not None):
        return _evaluate_percent_format(left, right, interp.state)
    if isinstance(op, ast.Div) and any("pathlib" in name for name in left.external_names()):
        taints = left.taints | right.taints
        return AbstractValue(None, taints, left.things, left.prefix or "")
    taints = left.taints | right.taints | interp.state.collect_taints(right)
    remaining = taints if isinstance(op, ast.Mod | ast.Mult | ast.Div) else _numeric_taints(taints)
    return (
        make_tainted(remaining, left.prefix if isinstance(op, ast.Mod) else "")
        if remaining
        else TOP
    )


def _numeric_taints(taints: frozenset[Taint]) -> frozenset[Taint]:
    """What arithmetic keeps: a text does not survive it, a predictable number does."""
    return frozenset(t for t in taints if t.origin == "weak-random")


def _apply_operator_to_constants(op: ast.operator, left: Scalar, right: Scalar) -> AbstractValue:
    function = _BINARY_OPERATORS.get(type(op))
    if function is None or _is_result_too_large(op, left, right):
        return TOP
    try:
        result = function(left, right)
    except (TypeError, ValueError, ArithmeticError, LookupError):
        return TOP
    return make_constant(result) if isinstance(result, str | bytes | int | float | bool) else TOP


def _is_result_too_large(op: ast.operator, left: Scalar, right: Scalar) -> bool:
    if isinstance(op, ast.Pow | ast.LShift):
        return not all(isinstance(x, int) and 0 <= x <= _MAX_BITS for x in (left, right))
    if isinstance(op, ast.Mult):
        sized = [x for x in (left, right) if isinstance(x, str | bytes)]
        counts = [x for x in (left, right) if isinstance(x, int)]
        return bool(sized and counts) and len(sized[0]) * counts[0] > MAX_CONSTANT_LENGTH
    # "%999999999d" would fill the memory.
    return isinstance(op, ast.Mod) and isinstance(left, str | bytes)


def _evaluate_percent_format(
    left: AbstractValue, right: AbstractValue, state: AbstractState
) -> AbstractValue:
    text = left.single_text if left.single_text is not None else left.prefix
    taints = left.taints | _taints_of_formatted_operands(left.single_text, right, state)
    prefix = text.split("%", 1)[0]
    if not prefix and text.startswith("%s"):
        values = (*(state.known_elements(right) or ()), right)
        prefix = values[0].single_text or values[0].prefix
    return make_tainted(taints, prefix) if taints else AbstractValue(None, prefix=prefix)


def _taints_of_formatted_operands(
    text: str | None, right: AbstractValue, state: AbstractState
) -> frozenset[Taint]:
    """The taints of what `%` puts into a text: `%d` only takes numbers."""
    kinds = [match[2] for match in _FORMAT_CONVERSION.finditer(text or "") if match[2] != "%"]
    items = state.known_elements(right) or (right,)
    if len(items) != len(kinds):
        return state.collect_taints(right)
    found = frozenset[Taint]()
    for kind, item in zip(kinds, items, strict=True):
        taints = state.collect_taints(item)
        found |= _numeric_taints(taints) if kind in NUMERIC_CONVERSIONS else taints
    return found


def _concatenate_lists(
    interp: Interpreter,
    node: ast.AST,
    left: AbstractValue,
    right: AbstractValue,
    kind: str = "list",
) -> AbstractValue:
    first, second = interp.state.known_elements(left), interp.state.known_elements(right)
    if first is not None and second is not None:
        return interp.allocate_object(node, HeapObject(kind, items=(*first, *second)))
    rest = join_values(interp.state.any_element(left), interp.state.any_element(right))
    return interp.allocate_object(node, HeapObject(kind, items=None, rest=rest))
