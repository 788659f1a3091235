"""One-token and one-line edits of Python source: hints for a repair, and mutants to test a patch's tests with.

Every edit replaces a span of the text and leaves the rest, comments included, as it was. `edits.toml` holds the
edits; this module finds the nodes that they apply to, and the texts that fill them.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import combinations, pairwise, product
from typing import Any

from regreen.code.python_calls import parse_python
from regreen.domain.languages import SourceEdit

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Span = tuple[int, int]
_FUNCTION_NODES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


@cache
def _load_table() -> dict[str, Any]:
    return tomllib.loads((files("regreen.languages.python") / "edits.toml").read_text())


def make_edits(text: str, lines: Sequence[int] | None = None) -> list[SourceEdit]:
    """Every edit that the templates know, at the given lines (all where None); each changes the text."""
    tree = parse_python(text)
    if tree is None:
        return []
    source = ParsedSource(text, tree)
    wanted = None if lines is None else set(lines)
    found: dict[tuple[int, int, str], SourceEdit] = {}
    for function in walk_functions(tree):
        templates = _FunctionTemplates(source, function)
        for node in walk_own_nodes(function):
            number = getattr(node, "lineno", None)
            if number is None or (wanted is not None and number not in wanted):
                continue
            for edit in templates.edit_node(node):
                if source.text[edit.start : edit.stop] != edit.new:
                    found.setdefault((edit.start, edit.stop, edit.new), edit)
    return list(found.values())


class ParsedSource:
    """A parsed text with the offsets of its nodes."""

    def __init__(self, text: str, tree: ast.Module) -> None:
        self.text = text
        self.tree = tree
        self.starts = [0]
        self._lines = text.split("\n")
        for line in self._lines:
            self.starts.append(self.starts[-1] + len(line) + 1)

    def offset_at(self, line: int, column: int) -> int:
        """Offset of a position as ast gives it: columns count UTF-8 bytes, and no byte order mark."""
        row = self._lines[line - 1]
        if row.isascii():
            return self.starts[line - 1] + column
        if line == 1 and row.startswith("\ufeff"):
            column += len("\ufeff".encode())
        return self.starts[line - 1] + len(row.encode()[:column].decode("utf-8", "ignore"))

    def node_span(self, node: ast.expr | ast.stmt) -> Span:
        """The offsets of a node."""
        end = self.offset_at(node.end_lineno or node.lineno, node.end_col_offset or 0)
        return self.offset_at(node.lineno, node.col_offset), end

    def node_text(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node."""
        start, stop = self.node_span(node)
        return self.text[start:stop]


def walk_functions(tree: ast.Module) -> Iterator[FunctionNode]:
    """Every function, those inside others included."""
    for node in ast.walk(tree):
        if isinstance(node, FunctionNode):
            yield node


def walk_own_nodes(function: FunctionNode) -> Iterator[ast.AST]:
    """Nodes of a function's body, without its docstring, its head, and functions inside it."""
    body = function.body
    first = body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        body = body[1:]
    waiting: list[ast.AST] = [node for node in body if not isinstance(node, _FUNCTION_NODES)]
    while waiting:
        node = waiting.pop(0)
        yield node
        annotation = getattr(node, "annotation", None)  # of a variable: it is never run
        waiting += [
            child
            for child in ast.iter_child_nodes(node)
            if child is not annotation and not isinstance(child, _FUNCTION_NODES)
        ]


class _FunctionTemplates:
    """The edits of one function's nodes, filled with what the function has in scope."""

    def __init__(self, source: ParsedSource, function: FunctionNode) -> None:
        self.source = source
        self._text = source.node_text
        self._edits: Mapping[str, Mapping[str, tuple[str, float]]] = _load_table()["edits"]
        nodes = list(ast.walk(function))
        enclosing = [
            scope
            for scope in walk_functions(source.tree)
            if scope is not function and any(inner is function for inner in ast.walk(scope))
        ]
        names: list[str] = []
        for scope in (function, *enclosing):
            args = scope.args
            names += [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
            names += [
                node.id
                for node in ast.walk(scope)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            ]
        self.names = [name for name in dict.fromkeys(names) if name not in {"self", "cls", "_"}]
        own = {node.id for node in nodes if isinstance(node, ast.Name)}
        own |= {arg.arg for arg in function.args.args}
        self.outer = {name for name in self.names if name not in own}
        self.attributes = dict.fromkeys(
            node.attr for node in ast.walk(source.tree) if isinstance(node, ast.Attribute)
        )
        self.collectors = dict.fromkeys(
            f"{self._text(node.func.value)}.{node.func.attr}"
            for node in nodes
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in {"append", "add"}
        )
        self.lists = _find_assigned_names(
            nodes, lambda value: isinstance(value, ast.List | ast.Set | ast.Call)
        )
        visible = [*nodes, *(node for scope in enclosing for node in ast.walk(scope))]
        self.sets = _find_assigned_names(visible, _is_set_call)

    def edit_node(self, node: ast.AST) -> Iterator[SourceEdit]:
        """The edits of one node."""
        if isinstance(node, ast.expr):
            yield from self._edit_expression(node)
        elif isinstance(node, ast.stmt):
            yield from self._edit_statement(node)
            yield from self._insert_statements(node)

    def _fill(
        self,
        shape: str,
        node: ast.expr | ast.stmt,
        span: Span | None = None,
        **parts: str | Sequence[str],
    ) -> Iterator[SourceEdit]:
        """The edits of a shape: in place of the node, or of a span of it, with these parts for the placeholders."""
        start, stop = span or self.source.node_span(node)
        text = self._text(node)
        choices: dict[str, Sequence[str]] = {
            "node": [text],
            "name": self.names,
            "other": [name for name in self.names if name != text],
        }
        choices |= {key: [part] if isinstance(part, str) else part for key, part in parts.items()}
        for template, (kind, prior) in self._edits[shape].items():
            used = dict.fromkeys(_PLACEHOLDER.findall(template))
            for values in product(*(choices[key] for key in used)):
                new = template.format(**dict(zip(used, values, strict=True)))
                yield SourceEdit(start, stop, new, kind, node.lineno, prior)

    def _replace_operator(
        self,
        sides: tuple[ast.expr, ast.expr],
        old: str,
        new: Sequence[str],
        *,
        kind: str,
        prior: float,
    ) -> Iterator[SourceEdit]:
        """Replace an operator that stands between two operands."""
        left, right = sides
        start, stop = self.source.node_span(left)[1], self.source.node_span(right)[0]
        at = self.source.text.find(old, start, stop)
        if at >= 0:
            line = left.end_lineno or left.lineno
            for other in new:
                yield SourceEdit(at, at + len(old), other, kind, line, prior)

    def _edit_expression(self, node: ast.expr) -> Iterator[SourceEdit]:  # noqa: C901, PLR0912
        text, operators = self._text, _load_table()["other_operators"]
        match node:
            case ast.Compare(left=left, ops=ops, comparators=rights):
                for sides, op in zip(pairwise([left, *rights]), ops, strict=True):
                    symbol = _read_symbol(ast.Compare(ast.Name("a"), [op], [ast.Name("b")]))
                    yield from self._replace_operator(
                        sides, symbol, operators[symbol], kind="comparison", prior=0.9
                    )
            case ast.BinOp(left=left, op=op, right=right):
                yield from self._edit_operation(node, left, op, right)
            case ast.BoolOp(op=op, values=values):
                old, inverse = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
                yield from self._replace_operator(
                    (values[0], values[1]), old, [inverse], kind="boolean", prior=0.8
                )
                words = [text(value) for value in values]
                shorter = [
                    f" {old} ".join(words[:at] + words[at + 1 :]) for at in range(len(words))
                ]
                yield from self._fill("boolean", node, without_one=shorter)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield from self._fill("negation", node, operand=text(operand))
            case ast.Constant(value=bool() as value):
                yield from self._fill("flag", node, value=str(not value))
            case ast.Constant(value=int() as value):
                near = [other for other in (value + 1, value - 1, 0, 1) if other != value]
                yield from self._fill("number", node, value=[*map(str, dict.fromkeys(near))])
            case ast.Constant(value=None):
                yield from self._fill("none", node)
            case ast.Name(id=name, ctx=ast.Load()):
                yield from self._fill("name", node)
                if name in self.names:
                    yield from self._fill("local_name", node)
            case ast.Attribute(value=value, attr=attr, ctx=ast.Load()):
                others = [other for other in self.attributes if other != attr]
                paired = [other for other in others if _share_first_or_last_word(attr, other)]
                unpaired = [other for other in others if other not in paired]
                yield from self._fill(
                    "attribute", node, owner=text(value), paired=paired, unpaired=unpaired
                )
            case ast.Call():
                yield from self._edit_call(node)
            case _:
                yield from self._edit_container(node)

    def _edit_container(self, node: ast.expr) -> Iterator[SourceEdit]:
        text = self._text
        match node:
            case ast.Subscript(
                slice=ast.Tuple(elts=[left, right]) as index, ctx=ast.Load() | ast.Store()
            ):
                first, second = text(left), text(right)
                yield from self._fill("index_pair", index, first=first, second=second)
                yield from self._fill("pair_subscript", node, part=[first, second])
            case ast.Subscript(slice=index, ctx=ast.Load() | ast.Store()):
                if not isinstance(index, ast.Slice):
                    yield from self._fill("index", index)
            case ast.List(elts=[]):
                yield from self._fill("empty_list", node)
            case ast.Tuple(elts=[left, right], ctx=ast.Load()):
                span = self.source.node_span(left)[0], self.source.node_span(right)[1]
                yield from self._fill("pair", node, span, first=text(left), second=text(right))
            case ast.Yield(value=ast.expr() as value):
                yield from self._fill("yield", node, value=text(value))
                if isinstance(value, ast.Call) and value.args:
                    yield from self._fill("yielded_call", node, argument=text(value.args[0]))
            case ast.YieldFrom(value=value):
                yield from self._fill("yield_from", node, value=text(value))
            case ast.ListComp() | ast.List():
                yield from self._fill("list", node)
            case _:
                pass

    def _edit_operation(
        self, node: ast.BinOp, left: ast.expr, op: ast.operator, right: ast.expr
    ) -> Iterator[SourceEdit]:
        symbol, others = _other_operators(op)
        yield from self._replace_operator((left, right), symbol, others, kind="operator", prior=0.6)
        known = [symbol] if others else []
        yield from self._fill(
            "operation", node, left=self._text(left), right=self._text(right), operator=known
        )
        for side in (left, right):
            if isinstance(side, ast.Call) and isinstance(side.func, ast.Name):
                yield from self._fill("called_operand", side)
        for side in (left, right) if isinstance(op, ast.Mult) else ():
            yield from self._fill("factor", side)

    def _edit_call(self, node: ast.Call) -> Iterator[SourceEdit]:
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else ""
        name = called.id if isinstance(called, ast.Name) else name
        stop = self.source.node_span(called)[1]
        for other in _load_table()["sibling_functions"].get(name, ()):
            yield SourceEdit(stop - len(name), stop, other, "sibling", node.lineno, 0.8)
        args = [arg for arg in node.args if not isinstance(arg, ast.Starred)]
        for left, right in combinations(args, 2):
            (start, end), (begin, stop) = map(self.source.node_span, (left, right))
            swapped = f"{self._text(right)}{self.source.text[end:begin]}{self._text(left)}"
            yield SourceEdit(start, stop, swapped, "arguments", node.lineno, 0.8)
        for arg in args:
            yield from self._fill("argument", arg)
            if isinstance(arg, ast.Subscript | ast.Name):
                yield from self._fill("indexed_argument", arg)
            if isinstance(arg, ast.Name):
                yield from self._fill("name_argument", arg)
        if len(args) == 1 and not node.keywords:
            yield from self._fill("wrapper", node, argument=self._text(args[0]))
        if isinstance(called, ast.Attribute) and name == "get":
            yield from self._fill("lookup", node)
        if isinstance(called, ast.Name) and not name.istitle() and len(args) <= 2:
            yield from self._fill("short_call", node)

    def _edit_statement(self, node: ast.stmt) -> Iterator[SourceEdit]:
        text = self._text
        match node:
            case ast.If(test=test) | ast.While(test=test):
                yield from self._edit_condition(test)
            case ast.AugAssign(target=target, op=op, value=value):
                _, others = _other_operators(op)
                yield from self._fill(
                    "update", node, target=text(target), operator=others, value=text(value)
                )
            case ast.Return(value=ast.expr() as value):
                yield from self._fill("return", node)
                if isinstance(value, ast.Constant):
                    yield from self._fill("return_constant", node)
                if isinstance(value, ast.ListComp | ast.List | ast.BinOp):
                    yield from self._fill("return_sequence", node, value=text(value))
                if isinstance(value, ast.BinOp):
                    yield from self._fill("return_operation", node, right=text(value.right))
            case ast.Assign(targets=[target], value=value):
                yield from self._edit_assignment(node, target, value)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=attr), args=[arg])):
                if attr in {"update", "extend", "append", "add"}:
                    yield from self._fill("collection", node, owner=text(owner), argument=text(arg))
            case _:
                pass

    def _edit_condition(self, test: ast.expr) -> Iterator[SourceEdit]:
        words = self._text(test)
        members = [name for name in self.names if f"{name}." in words]
        unread = [name for name in self.names if name not in members]
        yield from self._fill("condition", test, member=members, unread=unread)
        match test:
            case ast.Constant():
                yield from self._fill("constant_condition", test)
            case ast.Compare(
                left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=int() as value), *_]
            ):
                yield from self._fill(
                    "equal_to_number", test, left=self._text(left), next=str(value + 1)
                )
            case _:
                pass

    def _edit_assignment(
        self, node: ast.Assign, target: ast.expr, value: ast.expr
    ) -> Iterator[SourceEdit]:
        name, words = self._text(target), self._text(value)
        shape = "value_from_target" if name in words else "new_value"
        yield from self._fill(shape, value, target=name, bound=["max", "min"])
        yield from self._fill("value", value, bound=["max", "min"])
        if isinstance(target, ast.Name) and name not in words:
            yield from self._fill("assignment", node, target=name, value=words)
        if isinstance(target, ast.Subscript):
            index = target.slice
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
            yield from self._fill("target", target, part=[*map(self._text, parts)])

    def _insert_statements(self, node: ast.stmt) -> Iterator[SourceEdit]:
        """Insert a statement before or after this one, or delete this one."""
        start, stop = self.source.node_span(node)
        indent = self.source.text[self.source.starts[node.lineno - 1] : start]
        if indent.strip():
            return
        simple = isinstance(node, ast.Assign | ast.AugAssign | ast.Expr)
        if simple and node.lineno == node.end_lineno:
            yield SourceEdit(start, stop, "pass", "deletion", node.lineno, 0.3)
        for text, prior in self._new_statements():
            yield SourceEdit(start, start, f"{text}\n{indent}", "insertion", node.lineno, prior)
            if simple or isinstance(node, ast.For | ast.While | ast.If):
                after = f"\n{indent}{text}"
                yield SourceEdit(stop, stop, after, "insertion", node.lineno, prior * 0.9)

    def _new_statements(self) -> Iterator[tuple[str, float]]:
        for name in self.names:
            for collector in self.collectors:
                if not collector.startswith(f"{name}."):
                    yield f"{collector}({name})", 0.5
            for holder in self.lists:
                if holder != name and f"{holder}.append" not in self.collectors:
                    yield f"{holder}.append({name})", 0.3
            for holder in self.sets:
                if holder != name:
                    yield f"{holder}.add({name})", 0.5 if name not in self.outer else 0.4
            for other in self.names:
                if other != name:
                    yield f"{other} = {name}", 0.35


def _find_assigned_names(
    nodes: Sequence[ast.AST], is_wanted: Callable[[ast.expr], bool]
) -> list[str]:
    """The names that are assigned such a value."""
    found = [
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and is_wanted(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    return list(dict.fromkeys(found))


def _is_set_call(value: ast.expr) -> bool:
    return (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "set"
    )


def _other_operators(op: ast.operator) -> tuple[str, Sequence[str]]:
    """The symbol of an operator, and its alternatives."""
    symbol = _read_symbol(ast.BinOp(ast.Name("a"), op, ast.Name("b")))
    return symbol, _load_table()["other_operators"].get(symbol, ())


def _read_symbol(operation: ast.expr) -> str:
    """The symbol between `a` and `b`."""
    return ast.unparse(operation)[2:-2]


def _share_first_or_last_word(name: str, other: str) -> bool:
    """As `first_row` and `last_row`, or `row_start` and `row_end`, do: names of a pair share an end."""
    return (
        name.rsplit("_", 1)[-1] == other.rsplit("_", 1)[-1]
        or name.split("_", maxsplit=1)[0] == other.split("_", maxsplit=1)[0]
    )


# Mutants: small faults put into a text on purpose, which tests that mean those lines should notice.

_MUTATION_NAMES = {
    "comparison",
    "operator",
    "boolean",
    "negation",
    "constant",
    "off by one",
    "arguments",
    "sibling",
    "deletion",
}


def make_mutants(text: str, lines: Sequence[int], most: int = 12) -> list[SourceEdit]:
    """Small faults put into the given lines, a few a line: what tests that mean those lines should notice."""
    found = [edit for edit in make_edits(text, lines) if edit.name in _MUTATION_NAMES]
    found += _mutate_constants(text, set(lines))
    chosen: list[SourceEdit] = []
    for number in dict.fromkeys(lines):
        here = [edit for edit in found if edit.line == number]
        kinds: dict[str, SourceEdit] = {}
        for edit in here:
            kinds.setdefault(edit.name, edit)
        chosen += list(kinds.values())[:4]
    return chosen[:most]


def _mutate_constants(text: str, lines: set[int]) -> Iterator[SourceEdit]:
    """Other values for the constants of modules and classes, and for defaults of parameters."""
    tree = parse_python(text)
    source = ParsedSource(text, tree) if tree else None
    for node in _find_constants(tree):
        if source is None or node.lineno not in lines or node.lineno != node.end_lineno:
            continue
        other = _changed_constant(node.value)
        if other is not None:
            start, stop = source.node_span(node)
            yield SourceEdit(start, stop, other, "constant", node.lineno, 0.5)


def _find_constants(tree: ast.AST | None) -> Iterator[ast.Constant]:
    for node in ast.iter_child_nodes(tree) if tree else ():
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from (one for one in ast.walk(node.args) if isinstance(one, ast.Constant))
            case ast.ClassDef():
                yield from _find_constants(node)
            case ast.Assign(value=value) | ast.AnnAssign(value=value) if value is not None:
                yield from (one for one in ast.walk(value) if isinstance(one, ast.Constant))
            case ast.If() | ast.Try() | ast.With():
                yield from _find_constants(node)
            case _:
                pass


def _changed_constant(value: object) -> str | None:
    match value:
        case bool():
            return str(not value)
        case int() | float():
            return repr(value + 1)
        case str():
            return repr(f"{value}x")
        case _:
            return None
