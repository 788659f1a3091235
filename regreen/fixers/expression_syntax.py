"""The grammar of GitHub's expressions: values, the tree of an expression, the parser, and the way back to text."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from regreen.fixers.expression_values import ExpressionError, Value, to_number, to_string

MAX_DEPTH = 50
"""GitHub's own limit on nesting."""
MAX_LENGTH = 21_000
"""GitHub's own limit on an expression's length."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A value."""

    value: Value


@dataclass(frozen=True, slots=True)
class Name:
    """A context: github, env, matrix."""

    name: str


@dataclass(frozen=True, slots=True)
class Index:
    """`of[key]` and `of.key`; `key` None is the filter `.*`."""

    of: Node
    key: Node | None


@dataclass(frozen=True, slots=True)
class Not:
    """`!of`."""

    of: Node


@dataclass(frozen=True, slots=True)
class Binary:
    """`left operator right`."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Call:
    """A function, its name in lower case."""

    name: str
    arguments: tuple[Node, ...]


Node: TypeAlias = "Literal | Name | Index | Not | Binary | Call"

STATUS_FUNCTIONS: Final = frozenset({"success", "failure", "always", "cancelled"})
_ARITY: Final[dict[str, tuple[int, int]]] = {
    "contains": (2, 2), "startswith": (2, 2), "endswith": (2, 2), "format": (1, 255), "join": (1, 2),
    "tojson": (1, 1), "fromjson": (1, 1), "hashfiles": (1, 255), "case": (3, 255),
    "success": (0, 255), "failure": (0, 255), "always": (0, 0), "cancelled": (0, 0),
}  # fmt: skip


_TOKEN = re.compile(
    r"\s*(?:(?P<string>'(?:[^']|'')*')"
    r"|(?P<number>(?:0x[0-9a-fA-F]+|0o[0-7]+|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?Infinity(?![\w-])))(?![\w])"
    r"|(?P<name>[A-Za-z_][\w-]*)"
    r"|(?P<operator><=|>=|==|!=|&&|\|\||[!<>()\[\].,*]))"
)
_MAX_ROW = 200
"""More operators in one row than anybody writes; it keeps the evaluator's recursion shallow."""
_BINDING: Final = {"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, "<=": 4, ">": 4, ">=": 4}
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
    node = parser.expression(0, 0)
    parser.end()
    if _depth(node) > MAX_DEPTH:
        message = f"expression {text.strip()[:80]!r}: nests deeper than {MAX_DEPTH}"
        raise ExpressionError(message)
    return node


def _depth(node: Node) -> int:
    """How deep an expression nests; a row of the same `&&` or `||` counts once, as GitHub counts."""
    match node:
        case Literal() | Name():
            return 1
        case Index(of, key):
            return 1 + max(_depth(of), _depth(key) if key is not None else 1)
        case Not(of):
            return 1 + _depth(of)
        case Call(_, arguments):
            return 1 + max((_depth(one) for one in arguments), default=0)
        case Binary(operator, left, right):
            deepest = _depth(right)
            while (
                operator in {"&&", "||"} and isinstance(left, Binary) and left.operator == operator
            ):
                deepest, left = max(deepest, _depth(left.right)), left.left
            return 1 + max(deepest, _depth(left))


class _Parser:
    """Operator precedence, by hand."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._at = 0

    def expression(self, binding: int, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self._error("nests too deep")
        left = self._unary(depth)
        operators = 0
        while (operator := self._peek()) in _BINDING and _BINDING[operator] > binding:
            self._at += 1
            operators += 1
            if operators > _MAX_ROW:
                raise self._error("is too long")
            left = Binary(operator, left, self.expression(_BINDING[operator], depth + 1))
        return left

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise self._error("unexpected " + repr(self._peek()))

    def _unary(self, depth: int) -> Node:
        if self._take("!"):
            if depth > MAX_DEPTH:
                raise self._error("nests too deep")
            return Not(self._unary(depth + 1))
        return self._postfix(self._primary(depth), depth)

    def _primary(self, depth: int) -> Node:
        if self._at >= len(self._tokens):
            raise self._error("ends too early")
        kind, token = self._tokens[self._at]
        self._at += 1
        if kind == "string":
            return Literal(token[1:-1].replace("''", "'"))
        if kind == "number":
            return Literal(to_number(token))
        if kind == "name":
            return self._named(token, depth)
        if token == "(":  # noqa: S105 - a bracket, no secret
            inner = self.expression(0, depth + 1)
            self._expect(")")
            return inner
        raise self._error("unexpected " + repr(token))

    def _named(self, name: str, depth: int) -> Node:
        if self._peek() == "(":
            return self._call(name, depth)
        return Literal(_CONSTANTS[name]) if name in _CONSTANTS else Name(name)

    def _call(self, name: str, depth: int) -> Node:
        function = name.lower()
        if function not in _ARITY:
            raise self._error("unknown function " + name)
        self._expect("(")
        arguments: list[Node] = []
        while not self._take(")"):
            if arguments:
                self._expect(",")
            arguments.append(self.expression(0, depth + 1))
        least, most = _ARITY[function]
        if not least <= len(arguments) <= most:
            raise self._error(" ".join([name, "takes", str(least), "to", str(most), "arguments"]))
        if function == "case" and len(arguments) % 2 == 0:
            raise self._error("case needs pairs and a default")
        return Call(function, tuple(arguments))

    def _postfix(self, node: Node, depth: int) -> Node:
        steps = 0
        while True:
            if self._take("."):
                node = self._property(node)
            elif self._take("["):
                if self._take("*"):
                    node = Index(node, None)
                else:
                    node = Index(node, self.expression(0, depth + 1))
                self._expect("]")
            else:
                return node
            steps += 1
            if steps > MAX_DEPTH:
                raise self._error("nests too deep")

    def _property(self, node: Node) -> Node:
        if self._take("*"):
            return Index(node, None)
        if self._at < len(self._tokens) and self._tokens[self._at][1].isidentifier() | (
            self._tokens[self._at][0] == "name"
        ):
            self._at += 1
            return Index(node, Literal(self._tokens[self._at - 1][1]))
        raise self._error("a name or * must follow the dot")

    def _peek(self) -> str:
        kind, token = self._tokens[self._at] if self._at < len(self._tokens) else ("end", "")
        return token if kind in {"operator", "name"} else ""

    def _take(self, token: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at] == ("operator", token):
            self._at += 1
            return True
        return False

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise self._error(repr(token) + " is missing")

    def _error(self, what: str) -> ExpressionError:
        return ExpressionError(f"expression {self._text.strip()[:80]!r}: {what}")


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at, end)
        if match is None or match.lastgroup is None:
            message = f"expression {text.strip()[:80]!r}: unexpected {text[at:end].strip()[:1]!r}"
            raise ExpressionError(message)
        tokens.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return tokens


def show(node: Node) -> str:  # noqa: PLR0911 - one line a kind of node
    """An expression as one would write it."""
    match node:
        case Literal(value):
            return (
                "'" + value.replace("'", "''") + "'"
                if isinstance(value, str)
                else _shown_value(value)
            )
        case Name(name):
            return name
        case Index(of, None):
            return f"{show(of)}.*"
        case Index(of, Literal(str() as key)) if re.fullmatch(r"[A-Za-z_][\w-]*", key):
            return f"{show(of)}.{key}"
        case Index(of, key):
            return f"{show(of)}[{show(key) if key is not None else '*'}]"
        case Not(of):
            return f"!{_grouped(of)}"
        case Binary(operator, left, right):
            return f"{_grouped(left)} {operator} {_grouped(right)}"
        case Call(name, arguments):
            return f"{name}({', '.join(show(one) for one in arguments)})"


def _grouped(node: Node) -> str:
    return f"({show(node)})" if isinstance(node, Binary) else show(node)


def _shown_value(value: Value) -> str:
    return "null" if value is None else to_string(value)
