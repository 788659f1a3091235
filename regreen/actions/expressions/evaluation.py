"""GitHub's expressions: `${{ ... }}` evaluated, and, where a value exists only at run time, kept.

Three-valued: `UNKNOWN` is a value that is not known before the job runs (secrets, outputs of steps).
`reduce` works out what it can and gives back the rest as an expression.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeGuard

from regreen.domain.errors import UserError

# The grammar of GitHub's expressions: values, the tree of an expression, the parser, and the way back to text.

MAX_DEPTH = 50
"""GitHub's own limit on nesting."""
MAX_LENGTH = 21_000
"""GitHub's own limit on an expression's length."""


@dataclass(frozen=True, slots=True)
class LiteralValue:
    """A value."""

    value: Value


@dataclass(frozen=True, slots=True)
class ContextName:
    """A context: github, env, matrix."""

    name: str


@dataclass(frozen=True, slots=True)
class IndexAccess:
    """`of[key]` and `of.key`; `key` None is the filter `.*`."""

    of: Node
    key: Node | None


@dataclass(frozen=True, slots=True)
class Negation:
    """`!of`."""

    of: Node


@dataclass(frozen=True, slots=True)
class BinaryOperation:
    """`left operator right`."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function, its name in lower case."""

    name: str
    arguments: tuple[Node, ...]


Node: TypeAlias = (
    "LiteralValue | ContextName | IndexAccess | Negation | BinaryOperation | FunctionCall"
)

STATUS_FUNCTIONS: Final = frozenset({"success", "failure", "always", "cancelled"})
_FUNCTION_ARITY: Final[dict[str, tuple[int, int]]] = {
    "contains": (2, 2),
    "startswith": (2, 2),
    "endswith": (2, 2),
    "format": (1, 255),
    "join": (1, 2),
    "tojson": (1, 1),
    "fromjson": (1, 1),
    "hashfiles": (1, 255),
    "case": (3, 255),
    "success": (0, 255),
    "failure": (0, 255),
    "always": (0, 0),
    "cancelled": (0, 0),
}


_TOKEN_PATTERN = re.compile(
    r"\s*(?:(?P<string>'(?:[^']|'')*')"
    r"|(?P<number>(?:0x[0-9a-fA-F]+|0o[0-7]+|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?Infinity(?![\w-])))(?![\w])"
    r"|(?P<name>[A-Za-z_][\w-]*)"
    r"|(?P<operator><=|>=|==|!=|&&|\|\||[!<>()\[\].,*]))"
)
_MAX_ROW = 200
"""More operators in one row than anybody writes; it keeps the evaluator's recursion shallow."""
_BINDING_POWER: Final = {"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, "<=": 4, ">": 4, ">=": 4}
_CONSTANTS: Final[dict[str, Value]] = {
    "true": True,
    "false": False,
    "null": None,
    "NaN": math.nan,
    "Infinity": math.inf,
}


def parse(text: str) -> Node:
    """The tree of one expression, without its `${{ }}`.

    Raises:
        ExpressionError: GitHub would not take it.
    """
    if len(text) > MAX_LENGTH:
        message = f"an expression may have {MAX_LENGTH} characters, this one has {len(text)}"
        raise ExpressionError(message)
    parser = _Parser(text)
    node = parser.parse_expression(0, 0)
    parser.expect_end()
    if _nesting_depth(node) > MAX_DEPTH:
        message = f"expression {text.strip()[:80]!r}: nests deeper than {MAX_DEPTH}"
        raise ExpressionError(message)
    return node


def _nesting_depth(node: Node) -> int:
    """How deep an expression nests; a row of the same `&&` or `||` counts once, as GitHub counts."""
    match node:
        case LiteralValue() | ContextName():
            return 1
        case IndexAccess(of, key):
            return 1 + max(_nesting_depth(of), _nesting_depth(key) if key is not None else 1)
        case Negation(of):
            return 1 + _nesting_depth(of)
        case FunctionCall(_, arguments):
            return 1 + max((_nesting_depth(argument) for argument in arguments), default=0)
        case BinaryOperation(operator, left, right):
            deepest = _nesting_depth(right)
            while (
                operator in {"&&", "||"}
                and isinstance(left, BinaryOperation)
                and left.operator == operator
            ):
                deepest, left = max(deepest, _nesting_depth(left.right)), left.left
            return 1 + max(deepest, _nesting_depth(left))


class _Parser:
    """Operator precedence, by hand."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _split_tokens(text)
        self._at = 0

    def parse_expression(self, binding: int, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self._make_error("nests too deep")
        left = self._parse_unary(depth)
        operators = 0
        while (operator := self._peek_token()) in _BINDING_POWER and _BINDING_POWER[
            operator
        ] > binding:
            self._at += 1
            operators += 1
            if operators > _MAX_ROW:
                raise self._make_error("is too long")
            left = BinaryOperation(
                operator, left, self.parse_expression(_BINDING_POWER[operator], depth + 1)
            )
        return left

    def expect_end(self) -> None:
        if self._at < len(self._tokens):
            raise self._make_error("unexpected " + repr(self._peek_token()))

    def _parse_unary(self, depth: int) -> Node:
        if self._take_token("!"):
            if depth > MAX_DEPTH:
                raise self._make_error("nests too deep")
            return Negation(self._parse_unary(depth + 1))
        return self._parse_postfix(self._parse_primary(depth), depth)

    def _parse_primary(self, depth: int) -> Node:
        if self._at >= len(self._tokens):
            raise self._make_error("ends too early")
        kind, token = self._tokens[self._at]
        self._at += 1
        if kind == "string":
            return LiteralValue(token[1:-1].replace("''", "'"))
        if kind == "number":
            return LiteralValue(to_number(token))
        if kind == "name":
            return self._parse_name(token, depth)
        if token == "(":  # noqa: S105 - a bracket, no secret
            inner = self.parse_expression(0, depth + 1)
            self._expect_token(")")
            return inner
        raise self._make_error("unexpected " + repr(token))

    def _parse_name(self, name: str, depth: int) -> Node:
        if self._peek_token() == "(":
            return self._parse_call(name, depth)
        return LiteralValue(_CONSTANTS[name]) if name in _CONSTANTS else ContextName(name)

    def _parse_call(self, name: str, depth: int) -> Node:
        function = name.lower()
        if function not in _FUNCTION_ARITY:
            raise self._make_error("unknown function " + name)
        self._expect_token("(")
        arguments: list[Node] = []
        while not self._take_token(")"):
            if arguments:
                self._expect_token(",")
            arguments.append(self.parse_expression(0, depth + 1))
        least, most = _FUNCTION_ARITY[function]
        if not least <= len(arguments) <= most:
            raise self._make_error(
                " ".join([name, "takes", str(least), "to", str(most), "arguments"])
            )
        if function == "case" and len(arguments) % 2 == 0:
            raise self._make_error("case needs pairs and a default")
        return FunctionCall(function, tuple(arguments))

    def _parse_postfix(self, node: Node, depth: int) -> Node:
        steps = 0
        while True:
            if self._take_token("."):
                node = self._parse_property(node)
            elif self._take_token("["):
                if self._take_token("*"):
                    node = IndexAccess(node, None)
                else:
                    node = IndexAccess(node, self.parse_expression(0, depth + 1))
                self._expect_token("]")
            else:
                return node
            steps += 1
            if steps > MAX_DEPTH:
                raise self._make_error("nests too deep")

    def _parse_property(self, node: Node) -> Node:
        if self._take_token("*"):
            return IndexAccess(node, None)
        if self._at < len(self._tokens) and self._tokens[self._at][1].isidentifier() | (
            self._tokens[self._at][0] == "name"
        ):
            self._at += 1
            return IndexAccess(node, LiteralValue(self._tokens[self._at - 1][1]))
        raise self._make_error("a name or * must follow the dot")

    def _peek_token(self) -> str:
        kind, token = self._tokens[self._at] if self._at < len(self._tokens) else ("end", "")
        return token if kind in {"operator", "name"} else ""

    def _take_token(self, token: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at] == ("operator", token):
            self._at += 1
            return True
        return False

    def _expect_token(self, token: str) -> None:
        if not self._take_token(token):
            raise self._make_error(repr(token) + " is missing")

    def _make_error(self, what: str) -> ExpressionError:
        return ExpressionError(f"expression {self._text.strip()[:80]!r}: {what}")


def _split_tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN_PATTERN.match(text, at, end)
        if match is None or match.lastgroup is None:
            message = f"expression {text.strip()[:80]!r}: unexpected {text[at:end].strip()[:1]!r}"
            raise ExpressionError(message)
        tokens.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return tokens


def format_node(node: Node) -> str:  # noqa: PLR0911 - one line a kind of node
    """An expression as one would write it."""
    match node:
        case LiteralValue(value):
            return (
                "'" + value.replace("'", "''") + "'"
                if isinstance(value, str)
                else _format_value(value)
            )
        case ContextName(name):
            return name
        case IndexAccess(of, None):
            return f"{format_node(of)}.*"
        case IndexAccess(of, LiteralValue(str() as key)) if re.fullmatch(r"[A-Za-z_][\w-]*", key):
            return f"{format_node(of)}.{key}"
        case IndexAccess(of, key):
            return f"{format_node(of)}[{format_node(key) if key is not None else '*'}]"
        case Negation(of):
            return f"!{_format_grouped(of)}"
        case BinaryOperation(operator, left, right):
            return f"{_format_grouped(left)} {operator} {_format_grouped(right)}"
        case FunctionCall(name, arguments):
            return f"{name}({', '.join(format_node(argument) for argument in arguments)})"


def _format_grouped(node: Node) -> str:
    return f"({format_node(node)})" if isinstance(node, BinaryOperation) else format_node(node)


def _format_value(value: Value) -> str:
    return "null" if value is None else to_string(value)


# How GitHub's values turn into truth, numbers and text, and how they compare.


class ExpressionError(UserError):
    """An expression that GitHub would refuse too; the text names the place."""


class EvaluationFailed(ExpressionError):
    """A well-formed expression that refuses its values, so that only the job it stands in fails."""


class _UnknownValue:
    """The value that only the run itself knows."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _UnknownValue()

Value: TypeAlias = "bool | float | str | list[Value] | dict[str, Value] | _UnknownValue | None"
Context: TypeAlias = Mapping[str, Value]


def is_truthy(value: Value) -> bool:
    """False for false, 0, '', null and NaN; true for all else."""
    if isinstance(value, float):
        return value != 0 and not math.isnan(value)
    if isinstance(value, (list, dict)):
        return True
    return bool(value)


def to_number(value: Value) -> float:  # noqa: PLR0911 - one line a kind of value
    """GitHub's coercion to a number; NaN where there is none."""
    if value is None:
        return 0.0
    if isinstance(value, (bool, int, float)):
        return float(value)
    if not isinstance(value, str):
        return math.nan
    text = value.strip()
    if not text:
        return 0.0
    for prefix, base, digits in (("0x", 16, r"[0-9a-fA-F]+"), ("0o", 8, r"[0-7]+")):
        if text.startswith(prefix) and re.fullmatch(digits, text[2:]):
            return float(_signed_32(int(text[2:30], base)))
    if re.fullmatch(r"[+-]?(?:\d++\.?\d*+|\.\d+)(?:[eE][+-]?\d{1,4})?|[+-]?Infinity", text):
        return float(text)
    return math.nan


def _signed_32(number: int) -> int:
    """Hexadecimal and octal numbers are 32 bits wide and have a sign."""
    number &= 0xFFFFFFFF
    return number - 0x100000000 if number >= 0x80000000 else number


def to_string(value: Value) -> str:
    """A value as it appears inside text."""
    if value is None or value is UNKNOWN:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return _number_text(float(value))
    if isinstance(value, str):
        return value
    return "Array" if isinstance(value, list) else "Object"


def _number_text(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return "0"
    text = f"{number:.15g}"
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}E{int(exponent):+03d}" if e else mantissa


def is_equal(left: Value, right: Value) -> bool:
    """GitHub's loose equality: strings without case, other types by number, arrays and objects by identity."""
    if isinstance(left, str) and isinstance(right, str):
        return fold_case(left) == fold_case(right)
    if isinstance(left, (list, dict)) or isinstance(right, (list, dict)):
        return left is right
    if left is None and right is None:
        return True
    return to_number(left) == to_number(right)


def fold_case(text: str) -> str:
    """Text without case, letter by letter as .NET's ordinal comparison does it."""
    if text.isascii():
        return text.upper()
    return "".join(
        up if len(up := item.upper()) == 1 and not (item > "\x7f" > up) else item for item in text
    )


def _is_less(left: Value, right: Value) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return fold_case(left) < fold_case(right)
    return to_number(left) < to_number(right)


def _compare_or_is_equal(
    compare: Callable[[Value, Value], bool], left: Value, right: Value
) -> bool:
    if isinstance(left, (list, dict)) or isinstance(right, (list, dict)):
        return left is right
    return compare(left, right) or is_equal(left, right)


COMPARISONS: Final[dict[str, Callable[[Value, Value], bool]]] = {
    "==": is_equal,
    "!=": lambda a, b: not is_equal(a, b),
    "<": _is_less,
    "<=": lambda a, b: _compare_or_is_equal(_is_less, a, b),
    ">": lambda a, b: _is_less(b, a),
    ">=": lambda a, b: _compare_or_is_equal(lambda x, y: _is_less(y, x), a, b),
}


__all__ = [
    "UNKNOWN",
    "BinaryOperation",
    "Context",
    "ContextName",
    "EvaluationFailed",
    "ExpressionError",
    "FunctionCall",
    "IndexAccess",
    "LiteralValue",
    "Negation",
    "Node",
    "Value",
    "evaluate_expression",
    "evaluate_scalar",
    "fill_template",
    "format_node",
    "from_json_value",
    "is_truthy",
    "parse",
    "reduce_condition",
    "reduce_node",
    "simplify_condition",
    "split_template",
    "to_json_value",
    "to_number",
    "to_string",
]


class _FilteredArray(list["Value"]):
    """The result of `.*`: the next property is read from each element."""


def evaluate_expression(text: str | Node, context: Context) -> Value:
    """The value of an expression; UNKNOWN where it hangs on something unknown.

    Raises:
        ExpressionError: the expression is malformed, or a function refuses its arguments.
    """
    node = parse(text) if isinstance(text, str) else text
    rest = reduce_node(node, context)
    return rest.value if isinstance(rest, LiteralValue) else UNKNOWN


def reduce_node(node: Node, context: Context) -> Node:
    """Work out all that is known; what remains is an expression over what is not."""
    match node:
        case LiteralValue():
            return node
        case ContextName(name):
            value = _look_up_context(name, context)
            return node if value is UNKNOWN else LiteralValue(value)
        case IndexAccess(of, key):
            return _reduce_index(node, of, key, context)
        case Negation(of):
            inner = reduce_node(of, context)
            return LiteralValue(not is_truthy(inner.value)) if _is_known(inner) else Negation(inner)
        case BinaryOperation(operator, left, right):
            return _reduce_binary(operator, left, right, context)
        case FunctionCall(name, arguments):
            return _reduce_call(name, arguments, context)


def _look_up_context(name: str, context: Context) -> Value:
    if name in context:
        return context[name]
    lowered = name.lower()
    for known, value in context.items():
        if known.lower() == lowered:
            return value
    message = f"expression: there is no context named {name!r}"
    raise ExpressionError(message)


def _is_known(node: Node) -> TypeGuard[LiteralValue]:
    return isinstance(node, LiteralValue) and not _has_unknown(node.value)


def _has_unknown(value: Value) -> bool:
    return value is UNKNOWN


def _reduce_index(node: IndexAccess, base_node: Node, key: Node | None, context: Context) -> Node:
    base = reduce_node(base_node, context)
    at = reduce_node(key, context) if key is not None else None
    if not _is_known(base) or (at is not None and not _is_known(at)):
        return IndexAccess(base, at)
    value = (
        _get_item(base.value, at.value)
        if isinstance(at, LiteralValue)
        else _expand_all_items(base.value)
    )
    return node if value is UNKNOWN else LiteralValue(value)


def _get_item(value: Value, key: Value) -> Value:
    if isinstance(value, _FilteredArray):
        return _FilteredArray(
            [found for item in value if (found := _get_item(item, key)) is not None]
        )
    if isinstance(key, (list, dict)):
        return None
    if isinstance(value, dict):
        wanted = to_string(key)
        if wanted in value:
            return value[wanted]
        lowered = wanted.lower()
        found = next((item for name, item in value.items() if name.lower() == lowered), None)
        return value.get("*") if found is None and value.get("*") is UNKNOWN else found
    if isinstance(value, list):
        index = to_number(key)
        if not math.isnan(index) and 0 <= index < len(value):
            return value[int(index)]
    return None


def _expand_all_items(value: Value) -> Value:
    if isinstance(value, _FilteredArray):
        return _FilteredArray(
            [
                inner
                for item in value
                if isinstance(items := _expand_all_items(item), list)
                for inner in items
            ]
        )
    if isinstance(value, dict):
        return UNKNOWN if value.get("*") is UNKNOWN else _FilteredArray(value.values())
    return _FilteredArray(value) if isinstance(value, list) else _FilteredArray()


def _reduce_binary(operator: str, left: Node, right: Node, context: Context) -> Node:
    item = reduce_node(left, context)
    if operator in {"&&", "||"}:
        if _is_known(item):
            return (
                reduce_node(right, context) if is_truthy(item.value) == (operator == "&&") else item
            )
        other = reduce_node(right, context)
        if operator == "&&" and _is_known(other) and other.value is False:
            return other
        if operator == "||" and _is_known(other) and other.value is True:
            return other
        return BinaryOperation(operator, item, other)
    other = reduce_node(right, context)
    if _is_known(item) and _is_known(other):
        return LiteralValue(COMPARISONS[operator](item.value, other.value))
    return BinaryOperation(operator, item, other)


def _reduce_call(name: str, arguments: tuple[Node, ...], context: Context) -> Node:
    if name in STATUS_FUNCTIONS:
        value = context.get(f"{name}()", UNKNOWN)
        return FunctionCall(name, arguments) if value is UNKNOWN else LiteralValue(value)
    if name == "case":
        return _reduce_case_function(arguments, context)
    rest = tuple(reduce_node(argument, context) for argument in arguments)
    if name == "hashfiles" and all(_is_known(item) for item in rest):
        return LiteralValue(_PLACEHOLDER_HASH)
    values = [item.value for item in rest if _is_known(item)]
    return (
        LiteralValue(FUNCTIONS[name](values))
        if len(values) == len(rest)
        else FunctionCall(name, rest)
    )


_PLACEHOLDER_HASH = "0" * 64
"""hashFiles only ever names caches, and caches start empty here."""


def _reduce_case_function(arguments: tuple[Node, ...], context: Context) -> Node:
    for at in range(0, len(arguments) - 1, 2):
        asked = reduce_node(arguments[at], context)
        if not _is_known(asked):
            return FunctionCall(
                "case",
                (asked, *(reduce_node(argument, context) for argument in arguments[at + 1 :])),
            )
        if not isinstance(asked.value, bool):
            message = "case: each condition must be true or false"
            raise ExpressionError(message)
        if asked.value:
            return reduce_node(arguments[at + 1], context)
    return reduce_node(arguments[-1], context)


def split_template(text: str) -> list[str | Node]:
    """Text and expressions, in turn.

    Raises:
        ExpressionError: an expression is malformed or not closed.
    """
    parts: list[str | Node] = []
    at = 0
    while (start := text.find("${{", at)) >= 0:
        end = _find_expression_end(text, start + 3)
        if start > at:
            parts.append(text[at:start])
        parts.append(parse(text[start + 3 : end]))
        at = end + 2
    if at < len(text) or not parts:
        parts.append(text[at:])
    return parts


def _find_expression_end(text: str, start: int) -> int:
    """Where the expression's `}}` is; one inside a string does not count."""
    quoted = False
    for index in range(start, len(text)):
        if text[index] == "'":
            quoted = not quoted
        elif not quoted and text.startswith("}}", index):
            return index
    message = f"expression {text[start : start + 60].strip()!r}: '}}}}' is missing"
    raise ExpressionError(message)


def fill_template(text: str, context: Context) -> list[str | Node]:
    """Text with known values filled in; the rest stays an expression, adjacent texts are joined."""
    parts: list[str | Node] = []
    for part in split_template(text):
        rest = part if isinstance(part, str) else reduce_node(part, context)
        if isinstance(rest, LiteralValue):
            rest = to_string(rest.value)
        if isinstance(rest, str) and parts and isinstance(parts[-1], str):
            parts[-1] += rest
        else:
            parts.append(rest)
    return parts


def evaluate_scalar(text: str, context: Context) -> Value:
    """A scalar of the workflow: keeps its type where it is one expression and nothing else."""
    parts = split_template(text)
    if len(parts) == 1 and not isinstance(parts[0], str):
        return evaluate_expression(parts[0], context)
    filled = fill_template(text, context)
    return filled[0] if len(filled) == 1 and isinstance(filled[0], str) else UNKNOWN


def reduce_condition(text: str | bool | float | None, context: Context) -> Node:
    """The condition of an `if:`, evaluated as far as possible; `success()` is added if it names no status function."""
    node = _condition_node(text)
    if not _calls_status_function(node):
        node = BinaryOperation("&&", FunctionCall("success", ()), node)
    return simplify_condition(reduce_node(node, context))


def simplify_condition(node: Node) -> Node:
    """The same answer to "does it hold?", shorter: here only truth counts, not the value."""
    if isinstance(node, BinaryOperation) and node.operator in {"&&", "||"}:
        left, right = simplify_condition(node.left), simplify_condition(node.right)
        for item, other in ((left, right), (right, left)):
            if isinstance(item, LiteralValue) and item.value is not UNKNOWN:
                settles = is_truthy(item.value) == (node.operator == "||")
                return LiteralValue(node.operator == "||") if settles else other
        return BinaryOperation(node.operator, left, right)
    if isinstance(node, Negation):
        inner = simplify_condition(node.of)
        return LiteralValue(not is_truthy(inner.value)) if _is_known(inner) else Negation(inner)
    return LiteralValue(is_truthy(node.value)) if _is_known(node) else node


def _condition_node(text: str | bool | float | None) -> Node:
    if text is None or text == "":
        return FunctionCall("success", ())
    if not isinstance(text, str):
        return LiteralValue(text)
    if "${{" not in text:
        return parse(text)
    parts = split_template(text.strip())
    if len(parts) == 1:
        return parts[0] if not isinstance(parts[0], str) else LiteralValue(parts[0])
    # Text around an expression makes a string, and a string that is not empty is true: GitHub's own trap.
    return LiteralValue("text")


def _calls_status_function(node: Node) -> bool:
    match node:
        case FunctionCall(name, arguments):
            return name in STATUS_FUNCTIONS or any(
                _calls_status_function(argument) for argument in arguments
            )
        case Negation(of):
            return _calls_status_function(of)
        case BinaryOperation(_, left, right):
            return _calls_status_function(left) or _calls_status_function(right)
        case IndexAccess(of, key):
            return _calls_status_function(of) or (key is not None and _calls_status_function(key))
        case LiteralValue() | ContextName():
            return False


# The functions of GitHub's expressions, on values that are known.


def _call_contains(values: list[Value]) -> Value:
    where, what = values
    if isinstance(where, list):
        return any(is_equal(item, what) for item in where)
    if isinstance(where, dict) or isinstance(what, (list, dict)):
        return False
    return fold_case(to_string(what)) in fold_case(to_string(where))


def _call_startswith(values: list[Value]) -> Value:
    if any(isinstance(item, (list, dict)) for item in values):
        return False
    return fold_case(to_string(values[0])).startswith(fold_case(to_string(values[1])))


def _call_endswith(values: list[Value]) -> Value:
    if any(isinstance(item, (list, dict)) for item in values):
        return False
    return fold_case(to_string(values[0])).endswith(fold_case(to_string(values[1])))


_MAX_TEXT = 1024 * 1024
_FORMAT_PART = re.compile(r"\{\{|\}\}|\{(\d+)\}|[{}]")


def _call_format(values: list[Value]) -> Value:
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
    return _join_bounded("", [*pieces, text[at:]])


def _call_join(values: list[Value]) -> Value:
    separator = (
        "," if len(values) < 2 or isinstance(values[1], (list, dict)) else to_string(values[1])
    )
    if isinstance(values[0], dict):
        return ""
    parts = (
        [to_string(item) for item in values[0]]
        if isinstance(values[0], list)
        else [to_string(values[0])]
    )
    return _join_bounded(separator, parts)


def _join_bounded(separator: str, parts: list[str]) -> str:
    """Parts joined, unless that would fill the memory."""
    if sum(len(part) + len(separator) for part in parts) > _MAX_TEXT:
        message = f"a text longer than {_MAX_TEXT} characters"
        raise EvaluationFailed(message)
    return separator.join(parts)


def _call_tojson(values: list[Value]) -> Value:
    return json.dumps(to_json_value(values[0]), indent=2, ensure_ascii=False)


def to_json_value(value: Value) -> object:
    """A value as JSON has it: whole numbers as integers."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, list):
        return [to_json_value(item) for item in value]
    if isinstance(value, dict):
        return {key: to_json_value(item) for key, item in value.items()}
    return None if value is UNKNOWN else value


def _call_fromjson(values: list[Value]) -> Value:
    text = to_string(values[0])
    try:
        return from_json_value(json.loads(text))
    except (ValueError, RecursionError) as error:
        message = f"fromJSON: not JSON: {text[:60]!r}"
        raise EvaluationFailed(message) from error


def from_json_value(value: object) -> Value:
    """Values as expressions know them: every number a float, every key a string."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, (list, tuple)):
        return [from_json_value(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): from_json_value(item) for key, item in value.items()}
    return UNKNOWN if value is UNKNOWN else str(value)


FUNCTIONS: Final[dict[str, Callable[[list[Value]], Value]]] = {
    "contains": _call_contains,
    "startswith": _call_startswith,
    "endswith": _call_endswith,
    "format": _call_format,
    "join": _call_join,
    "tojson": _call_tojson,
    "fromjson": _call_fromjson,
}
