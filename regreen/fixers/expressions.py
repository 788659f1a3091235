"""GitHub's expressions: `${{ ... }}` evaluated, and, where a value comes only at run time, left over.

Three-valued: `UNKNOWN` stands for what nobody can know before the job runs (secrets, outputs of steps).
`reduce` works out what it can and gives back the rest as an expression.
"""

from __future__ import annotations

import math
from typing import TypeGuard

from regreen.fixers.expression_functions import FUNCTIONS, from_plain, plain
from regreen.fixers.expression_syntax import (
    STATUS_FUNCTIONS,
    Binary,
    Call,
    Index,
    Literal,
    Name,
    Node,
    Not,
    parse,
    show,
)
from regreen.fixers.expression_values import (
    COMPARE,
    UNKNOWN,
    Context,
    EvaluationFailed,
    ExpressionError,
    Value,
    to_number,
    to_string,
    truthy,
)

__all__ = [
    "UNKNOWN",
    "Binary",
    "Call",
    "Context",
    "EvaluationFailed",
    "ExpressionError",
    "Index",
    "Literal",
    "Name",
    "Node",
    "Not",
    "Value",
    "condition",
    "decide",
    "evaluate",
    "fill",
    "from_plain",
    "parse",
    "plain",
    "reduce",
    "show",
    "split",
    "to_number",
    "to_string",
    "truthy",
    "value_of",
]


class _Filtered(list["Value"]):
    """What `.*` gives: the next property is taken of each element."""


def evaluate(text: str | Node, context: Context) -> Value:
    """The value of an expression; UNKNOWN where it hangs on something unknown.

    Raises:
        ExpressionError: the expression is malformed, or a function refuses its arguments.
    """
    node = parse(text) if isinstance(text, str) else text
    rest = reduce(node, context)
    return rest.value if isinstance(rest, Literal) else UNKNOWN


def reduce(node: Node, context: Context) -> Node:
    """Work out all that is known; what remains is an expression over what is not."""
    match node:
        case Literal():
            return node
        case Name(name):
            value = _context(name, context)
            return node if value is UNKNOWN else Literal(value)
        case Index(of, key):
            return _reduce_index(node, of, key, context)
        case Not(of):
            inner = reduce(of, context)
            return Literal(not truthy(inner.value)) if _known(inner) else Not(inner)
        case Binary(operator, left, right):
            return _reduce_binary(operator, left, right, context)
        case Call(name, arguments):
            return _reduce_call(name, arguments, context)


def _context(name: str, context: Context) -> Value:
    if name in context:
        return context[name]
    lowered = name.lower()
    for known, value in context.items():
        if known.lower() == lowered:
            return value
    message = f"expression: there is no context named {name!r}"
    raise ExpressionError(message)


def _known(node: Node) -> TypeGuard[Literal]:
    return isinstance(node, Literal) and not _has_unknown(node.value)


def _has_unknown(value: Value) -> bool:
    return value is UNKNOWN


def _reduce_index(node: Index, of: Node, key: Node | None, context: Context) -> Node:
    base = reduce(of, context)
    at = reduce(key, context) if key is not None else None
    if not _known(base) or (at is not None and not _known(at)):
        return Index(base, at)
    value = _item(base.value, at.value) if isinstance(at, Literal) else _all_items(base.value)
    return node if value is UNKNOWN else Literal(value)


def _item(value: Value, key: Value) -> Value:
    if isinstance(value, _Filtered):
        return _Filtered([found for one in value if (found := _item(one, key)) is not None])
    if isinstance(key, (list, dict)):
        return None
    if isinstance(value, dict):
        wanted = to_string(key)
        if wanted in value:
            return value[wanted]
        lowered = wanted.lower()
        found = next((one for name, one in value.items() if name.lower() == lowered), None)
        return value.get("*") if found is None and value.get("*") is UNKNOWN else found
    if isinstance(value, list):
        index = to_number(key)
        if not math.isnan(index) and 0 <= index < len(value):
            return value[int(index)]
    return None


def _all_items(value: Value) -> Value:
    if isinstance(value, _Filtered):
        return _Filtered(
            [
                inner
                for one in value
                if isinstance(items := _all_items(one), list)
                for inner in items
            ]
        )
    if isinstance(value, dict):
        return UNKNOWN if value.get("*") is UNKNOWN else _Filtered(value.values())
    return _Filtered(value) if isinstance(value, list) else _Filtered()


def _reduce_binary(operator: str, left: Node, right: Node, context: Context) -> Node:
    one = reduce(left, context)
    if operator in {"&&", "||"}:
        if _known(one):
            return reduce(right, context) if truthy(one.value) == (operator == "&&") else one
        other = reduce(right, context)
        if operator == "&&" and _known(other) and other.value is False:
            return other
        if operator == "||" and _known(other) and other.value is True:
            return other
        return Binary(operator, one, other)
    other = reduce(right, context)
    if _known(one) and _known(other):
        return Literal(COMPARE[operator](one.value, other.value))
    return Binary(operator, one, other)


def _reduce_call(name: str, arguments: tuple[Node, ...], context: Context) -> Node:
    if name in STATUS_FUNCTIONS:
        value = context.get(f"{name}()", UNKNOWN)
        return Call(name, arguments) if value is UNKNOWN else Literal(value)
    if name == "case":
        return _reduce_case(arguments, context)
    rest = tuple(reduce(argument, context) for argument in arguments)
    if name == "hashfiles" and all(_known(one) for one in rest):
        return Literal(_HASH)
    values = [one.value for one in rest if _known(one)]
    return Literal(FUNCTIONS[name](values)) if len(values) == len(rest) else Call(name, rest)


_HASH = "0" * 64
"""hashFiles only ever names caches, and caches start empty here."""


def _reduce_case(arguments: tuple[Node, ...], context: Context) -> Node:
    for at in range(0, len(arguments) - 1, 2):
        asked = reduce(arguments[at], context)
        if not _known(asked):
            return Call("case", (asked, *(reduce(one, context) for one in arguments[at + 1 :])))
        if not isinstance(asked.value, bool):
            message = "case: each condition must be true or false"
            raise ExpressionError(message)
        if asked.value:
            return reduce(arguments[at + 1], context)
    return reduce(arguments[-1], context)


def split(text: str) -> list[str | Node]:
    """Text and expressions, in turn.

    Raises:
        ExpressionError: an expression is malformed or not closed.
    """
    parts: list[str | Node] = []
    at = 0
    while (start := text.find("${{", at)) >= 0:
        end = _closing(text, start + 3)
        if start > at:
            parts.append(text[at:start])
        parts.append(parse(text[start + 3 : end]))
        at = end + 2
    if at < len(text) or not parts:
        parts.append(text[at:])
    return parts


def _closing(text: str, at: int) -> int:
    """Where the expression's `}}` is; one inside a string does not count."""
    quoted = False
    for index in range(at, len(text)):
        if text[index] == "'":
            quoted = not quoted
        elif not quoted and text.startswith("}}", index):
            return index
    message = f"expression {text[at : at + 60].strip()!r}: '}}}}' is missing"
    raise ExpressionError(message)


def fill(text: str, context: Context) -> list[str | Node]:
    """Text with what is known put in; what is left over stays an expression, texts in a row are joined."""
    parts: list[str | Node] = []
    for part in split(text):
        rest = part if isinstance(part, str) else reduce(part, context)
        if isinstance(rest, Literal):
            rest = to_string(rest.value)
        if isinstance(rest, str) and parts and isinstance(parts[-1], str):
            parts[-1] += rest
        else:
            parts.append(rest)
    return parts


def value_of(text: str, context: Context) -> Value:
    """A scalar of the workflow: keeps its type where it is one expression and nothing else."""
    parts = split(text)
    if len(parts) == 1 and not isinstance(parts[0], str):
        return evaluate(parts[0], context)
    filled = fill(text, context)
    return filled[0] if len(filled) == 1 and isinstance(filled[0], str) else UNKNOWN


def condition(text: str | bool | float | None, context: Context) -> Node:
    """What an `if:` asks, worked out as far as it is known; `success()` is added where no status is asked for."""
    node = _condition_node(text)
    if not _asks_status(node):
        node = Binary("&&", Call("success", ()), node)
    return decide(reduce(node, context))


def decide(node: Node) -> Node:
    """The same answer to "does it hold?", shorter: here only truth counts, not the value."""
    if isinstance(node, Binary) and node.operator in {"&&", "||"}:
        left, right = decide(node.left), decide(node.right)
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Literal) and one.value is not UNKNOWN:
                settles = truthy(one.value) == (node.operator == "||")
                return Literal(node.operator == "||") if settles else other
        return Binary(node.operator, left, right)
    if isinstance(node, Not):
        inner = decide(node.of)
        return Literal(not truthy(inner.value)) if _known(inner) else Not(inner)
    return Literal(truthy(node.value)) if _known(node) else node


def _condition_node(text: str | bool | float | None) -> Node:
    if text is None or text == "":
        return Call("success", ())
    if not isinstance(text, str):
        return Literal(text)
    if "${{" not in text:
        return parse(text)
    parts = split(text.strip())
    if len(parts) == 1:
        return parts[0] if not isinstance(parts[0], str) else Literal(parts[0])
    # Text around an expression makes a string, and a string that is not empty is true: GitHub's own trap.
    return Literal("text")


def _asks_status(node: Node) -> bool:
    match node:
        case Call(name, arguments):
            return name in STATUS_FUNCTIONS or any(_asks_status(one) for one in arguments)
        case Not(of):
            return _asks_status(of)
        case Binary(_, left, right):
            return _asks_status(left) or _asks_status(right)
        case Index(of, key):
            return _asks_status(of) or (key is not None and _asks_status(key))
        case Literal() | Name():
            return False
