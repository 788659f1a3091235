"""The grammar of GitHub's expressions: values, the tree of an expression, the parser, and the way back to text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from regreen.domain.errors import UserError

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
    "contains": (2, 2), "startswith": (2, 2), "endswith": (2, 2), "format": (1, 255), "join": (1, 2),
    "tojson": (1, 1), "fromjson": (1, 1), "hashfiles": (1, 255), "case": (3, 255),
    "success": (0, 255), "failure": (0, 255), "always": (0, 0), "cancelled": (0, 0),
}  # fmt: skip


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


def _same_or(compare: Callable[[Value, Value], bool], left: Value, right: Value) -> bool:
    if isinstance(left, (list, dict)) or isinstance(right, (list, dict)):
        return left is right
    return compare(left, right) or is_equal(left, right)


COMPARISONS: Final[dict[str, Callable[[Value, Value], bool]]] = {
    "==": is_equal,
    "!=": lambda a, b: not is_equal(a, b),
    "<": _is_less,
    "<=": lambda a, b: _same_or(_is_less, a, b),
    ">": lambda a, b: _is_less(b, a),
    ">=": lambda a, b: _same_or(lambda x, y: _is_less(y, x), a, b),
}
