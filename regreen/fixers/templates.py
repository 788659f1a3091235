"""One-token and one-line edits of Python source: hints for a repair, and mutants to try a patch's tests with.

Every edit replaces a span of the text and leaves the rest, comments included, as it was.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from regreen.fixers.checks.change import parse_python
from regreen.fixers.template_scope import Scope, Source, functions, own_nodes


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace `text[start:stop]` by `new`; `prior` is how likely such an edit is a repair, `line` is 1-based."""

    start: int
    stop: int
    new: str
    name: str
    line: int
    prior: float

    def on(self, text: str) -> str:
        """The text with the edit made."""
        return text[: self.start] + self.new + text[self.stop :]


_COMPARE: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">", ">="), ast.LtE: ("<", ">=", ">"), ast.Gt: (">=", "<", "<="), ast.GtE: (">", "<=", "<"),
    ast.Eq: ("!=", "<=", ">="), ast.NotEq: ("==",), ast.Is: ("is not",), ast.IsNot: ("is",), ast.In: ("not in",), ast.NotIn: ("in",),
}  # fmt: skip
_COMPARE_WORDS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is", ast.IsNot: "is not",
    ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_BINARY: dict[type[ast.operator], tuple[str, ...]] = {
    ast.Add: ("-",), ast.Sub: ("+",), ast.Mult: ("/", "//", "+"), ast.Div: ("//", "*"), ast.FloorDiv: ("/", "%"), ast.Mod: ("//",),
    ast.BitXor: ("&", "|"), ast.BitAnd: ("|", "^"), ast.BitOr: ("&", "^"), ast.LShift: (">>",), ast.RShift: ("<<",), ast.Pow: ("*",),
}  # fmt: skip
_WORDS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.BitXor: "^", ast.BitAnd: "&",
    ast.BitOr: "|", ast.LShift: "<<", ast.RShift: ">>", ast.Pow: "**",
}  # fmt: skip
_SIBLINGS = {
    "any": ("all",), "all": ("any",), "min": ("max",), "max": ("min",), "append": ("extend", "add"), "extend": ("append", "update"),
    "startswith": ("endswith",), "endswith": ("startswith",), "lower": ("upper",), "upper": ("lower",), "keys": ("values", "items"),
    "values": ("items", "keys"), "items": ("keys", "values"), "lstrip": ("rstrip", "strip"), "rstrip": ("lstrip", "strip"),
    "strip": ("rstrip", "lstrip"), "find": ("rfind",), "rfind": ("find",), "split": ("rsplit",), "rsplit": ("split",),
    "issubset": ("issuperset",), "issuperset": ("issubset",), "union": ("intersection",), "floor": ("ceil",), "ceil": ("floor",),
    "sorted": ("list",), "range": (), "pop": ("popleft",), "popleft": ("pop",),
}  # fmt: skip


def edits(text: str, lines: Sequence[int] | None = None) -> list[Edit]:
    """Every edit that the templates know, at the given lines (all where None); each changes the text."""
    tree = parse_python(text)
    if tree is None:
        return []
    source = Source(text, tree)
    wanted = None if lines is None else set(lines)
    found: dict[tuple[int, int, str], Edit] = {}
    for function in functions(tree):
        scope = Scope(source, function)
        for node in own_nodes(function):
            number = getattr(node, "lineno", None)
            if number is None or (wanted is not None and number not in wanted):
                continue
            for edit in _of_node(source, scope, node):
                if source.text[edit.start : edit.stop] != edit.new:
                    found.setdefault((edit.start, edit.stop, edit.new), edit)
    return list(found.values())


def _of_node(source: Source, scope: Scope, node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.expr):
        yield from _expression(source, scope, node)
    elif isinstance(node, ast.stmt):
        yield from _statement(source, scope, node)


def _edit(source: Source, node: ast.expr | ast.stmt, new: str, name: str, prior: float) -> Edit:
    start, stop = source.span(node)
    return Edit(start, stop, new, name, node.lineno, prior)


def _between(
    source: Source,
    sides: tuple[ast.expr, ast.expr],
    words: tuple[str, str],
    name: str,
    prior: float,
) -> Iterator[Edit]:
    """Replace an operator that stands between two operands."""
    (left, right), (old, new) = sides, words
    start, stop = source.span(left)[1], source.span(right)[0]
    at = source.text.find(old, start, stop)
    if at >= 0:
        yield Edit(at, at + len(old), new, name, left.end_lineno or left.lineno, prior)


def _expression(source: Source, scope: Scope, node: ast.expr) -> Iterator[Edit]:  # noqa: C901, PLR0912 - a table of shapes
    match node:
        case ast.Compare(left=left, ops=ops, comparators=rights):
            sides = [left, *rights]
            for number, op in enumerate(ops):
                for new in _COMPARE[type(op)]:
                    yield from _between(
                        source,
                        (sides[number], sides[number + 1]),
                        (_COMPARE_WORDS[type(op)], new),
                        "comparison",
                        0.9,
                    )
        case ast.BinOp():
            yield from _binary(source, scope.names, node)
        case ast.BoolOp(op=op, values=values):
            old, new = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
            yield from _between(source, (values[0], values[1]), (old, new), "boolean", 0.8)
            for value in values:
                rest = [source.of(one) for one in values if one is not value]
                yield _edit(source, node, f" {old} ".join(rest), "boolean drop", 0.5)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield _edit(source, node, source.of(operand), "negation", 0.7)
        case ast.Constant(value=value):
            yield from _constant(source, node, value)
        case ast.Name(id=name, ctx=ast.Load()):
            for other in scope.names:
                if other != name:
                    yield _edit(source, node, other, "variable", 0.6)
            if name in scope.names:
                yield from (
                    _edit(source, node, f"{name} {tail}", "off by one", 0.55)
                    for tail in ("+ 1", "- 1")
                )
        case ast.Attribute(value=value, attr=attr, ctx=ast.Load()):
            for other in scope.attributes:
                if other != attr:
                    yield _edit(
                        source,
                        node,
                        f"{source.of(value)}.{other}",
                        "attribute",
                        0.5 if _alike(attr, other) else 0.25,
                    )
        case ast.Call():
            yield from _call(source, scope, node)
        case ast.Subscript(slice=index, ctx=ast.Load() | ast.Store()):
            yield from _subscript(source, scope, node, index)
        case ast.List(elts=[]):
            yield _edit(source, node, "[[]]", "empty list", 0.5)
            yield from (_edit(source, node, f"[{name}]", "empty list", 0.6) for name in scope.names)
        case ast.Tuple(elts=[one, other], ctx=ast.Load()):
            yield _edit(
                source,
                node,
                source.of(node).replace(
                    f"{source.of(one)}, {source.of(other)}", f"{source.of(other)}, {source.of(one)}"
                ),
                "swap",
                0.6,
            )
        case ast.Yield(value=value) if value is not None:
            yield _edit(source, node, f"yield from {source.of(value)}", "yield", 0.7)
            if isinstance(value, ast.Call) and value.args:
                yield _edit(source, node, f"yield {source.of(value.args[0])}", "yield", 0.7)
        case ast.YieldFrom(value=value):
            yield _edit(source, node, f"yield {source.of(value)}", "yield", 0.7)
        case ast.ListComp() | ast.List():
            for name in scope.names:
                yield _edit(source, node, f"{name} + {source.of(node)}", "concatenation", 0.35)
        case _:
            pass
    yield from _bound(source, scope, node)


def _binary(
    source: Source,
    names: Sequence[str],
    node: ast.BinOp,
) -> Iterator[Edit]:
    left, op, right = node.left, node.op, node.right
    for new in _BINARY.get(type(op), ()):
        yield from _between(source, (left, right), (_WORDS[type(op)], new), "operator", 0.6)
    one, other = source.of(left), source.of(right)
    word = _WORDS.get(type(op))
    if word:
        yield _edit(source, node, f"{other} {word} {one}", "operands", 0.65)
    yield _edit(source, node, one, "operand drop", 0.5)
    yield _edit(source, node, other, "operand drop", 0.5)
    for side in (left, right):
        if isinstance(side, ast.Call) and isinstance(side.func, ast.Name):
            yield from (_edit(source, side, name, "variable", 0.5) for name in names)
    if isinstance(op, ast.Mult):
        yield from (
            _edit(source, side, f"({source.of(side)} - 1)", "off by one", 0.55)
            for side in (left, right)
        )


def _constant(source: Source, node: ast.Constant, value: object) -> Iterator[Edit]:
    if isinstance(value, bool):
        yield _edit(source, node, str(not value), "constant", 0.5)
    elif isinstance(value, int):
        for new in dict.fromkeys((value + 1, value - 1, 0, 1)):
            if new != value:
                yield _edit(source, node, str(new), "constant", 0.6)
    elif value is None:
        yield _edit(source, node, "[]", "constant", 0.2)


def _call(source: Source, scope: Scope, node: ast.Call) -> Iterator[Edit]:
    name = (
        node.func.attr
        if isinstance(node.func, ast.Attribute)
        else node.func.id
        if isinstance(node.func, ast.Name)
        else ""
    )
    stop = source.span(node.func)[1]
    for other in _SIBLINGS.get(name, ()):
        yield Edit(stop - len(name), stop, other, "sibling", node.lineno, 0.8)
    args = [arg for arg in node.args if not isinstance(arg, ast.Starred)]
    for left, right in combinations(args, 2):
        first, second = source.span(left), source.span(right)
        swapped = f"{source.of(right)}{source.text[first[1] : second[0]]}{source.of(left)}"
        yield Edit(first[0], second[1], swapped, "arguments", node.lineno, 0.8)
    for arg in args:
        text = source.of(arg)
        yield _edit(source, arg, f"{text} + 1", "off by one", 0.6)
        yield _edit(source, arg, f"{text} - 1", "off by one", 0.6)
        if isinstance(arg, ast.Subscript | ast.Name):
            yield _edit(source, arg, f"{text}[1:]", "slice", 0.55)
        if isinstance(arg, ast.Name):
            yield from (
                _edit(source, arg, f"{text} - {other}", "difference", 0.4)
                for other in scope.names
                if other != text
            )
    if len(args) == 1 and not node.keywords:
        yield _edit(source, node, source.of(args[0]), "unwrap", 0.45)
    if isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        for other in scope.names:
            yield _edit(source, node, other, "variable", 0.4)
    if isinstance(node.func, ast.Name) and not name.istitle() and len(args) <= 2:
        yield from (_edit(source, node, other, "variable", 0.3) for other in scope.names)


def _subscript(
    source: Source, scope: Scope, node: ast.Subscript, index: ast.expr
) -> Iterator[Edit]:
    if isinstance(index, ast.Tuple) and len(index.elts) == 2:
        one, other = (source.of(part) for part in index.elts)
        yield _edit(source, index, f"{other}, {one}", "swap", 0.75)
        for number, part in enumerate(index.elts):
            for shifted in ("- 1", "+ 1"):
                parts = [one, other]
                parts[number] = f"{source.of(part)} {shifted}"
                yield _edit(source, index, ", ".join(parts), "off by one", 0.7)
        for name in scope.names:
            yield from (
                _edit(source, node, f"{name}[{part}]", "subscript", 0.4) for part in (one, other)
            )
    elif not isinstance(index, ast.Slice):
        yield from (
            _edit(source, index, f"{source.of(index)} {tail}", "off by one", 0.5)
            for tail in ("- 1", "+ 1")
        )


def _bound(source: Source, scope: Scope, node: ast.expr) -> Iterator[Edit]:
    """Wider rewrites of whole small expressions: powers, slices, maxima."""
    text = source.of(node)
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in scope.names:
        yield _edit(source, node, f"{text} ** 2", "power", 0.3)
        yield _edit(source, node, f"{text}[1:]", "slice", 0.35)
        yield from (
            _edit(source, node, f"{text}[{other}:]", "slice", 0.35)
            for other in scope.names
            if other != text
        )


def _statement(source: Source, scope: Scope, node: ast.stmt) -> Iterator[Edit]:
    match node:
        case ast.If(test=test) | ast.While(test=test):
            yield from _condition(source, scope, test)
        case ast.AugAssign(target=target, op=op, value=value):
            for new in _BINARY.get(type(op), ()):
                yield _edit(
                    source, node, f"{source.of(target)} {new}= {source.of(value)}", "operator", 0.8
                )
        case ast.Return(value=value) if value is not None:
            yield from _returned(source, scope, node, value)
        case ast.Assign(targets=[target], value=value):
            words = source.of(value)
            name = source.of(target)
            for wrap in ("max", "min"):
                yield _edit(
                    source,
                    value,
                    f"{wrap}({name}, {words})",
                    "bound",
                    0.6 if name not in words else 0.3,
                )
                yield _edit(source, value, f"{wrap}(0, {words})", "bound", 0.5)
            if isinstance(target, ast.Name) and name not in words:
                yield _edit(source, node, f"{name} += {words}", "operator", 0.45)
            if isinstance(target, ast.Subscript):
                yield from _targets(source, scope, target)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=attr), args=[argument])):
            if attr in {"update", "extend", "append", "add"}:
                yield _edit(
                    source, node, f"{source.of(owner)} = {source.of(argument)}", "assignment", 0.7
                )
        case _:
            pass
    yield from _inserted(source, scope, node)


def _condition(source: Source, scope: Scope, test: ast.expr) -> Iterator[Edit]:
    text = source.of(test)
    yield _edit(source, test, f"not ({text})", "negation", 0.5)
    for name in scope.names:
        yield _edit(source, test, f"{text} or not {name}", "guard", 0.45)
        yield _edit(source, test, f"{text} and {name}", "guard", 0.4)
        yield _edit(
            source, test, f"{name} is None or {text}", "guard", 0.65 if f"{name}." in text else 0.4
        )
        yield _edit(source, test, f"{name} is not None and {text}", "guard", 0.5)
        if isinstance(test, ast.Constant):
            yield _edit(source, test, name, "condition", 0.8)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        right = test.comparators[0]
        if isinstance(right, ast.Constant) and isinstance(right.value, int):
            yield _edit(source, test, f"{source.of(test.left)} <= {right.value + 1}", "bound", 0.6)


def _returned(source: Source, scope: Scope, node: ast.Return, value: ast.expr) -> Iterator[Edit]:
    text = source.of(value)
    for name in scope.names:
        yield _edit(source, node, f"return {name}", "result", 0.4)
        if isinstance(value, ast.Constant):
            yield _edit(source, node, f"return {name} == 0", "result", 0.45)
            yield _edit(source, node, f"return not {name}", "result", 0.35)
        if isinstance(value, ast.ListComp | ast.List | ast.BinOp):
            yield _edit(source, node, f"return {name} + {text}", "concatenation", 0.5)
    if isinstance(value, ast.BinOp):
        yield _edit(source, node, f"return {source.of(value.right)}", "operand drop", 0.6)


def _targets(source: Source, scope: Scope, target: ast.Subscript) -> Iterator[Edit]:
    parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    for name in scope.names:
        for part in parts:
            yield _edit(source, target, f"{name}[{source.of(part)}]", "target", 0.55)


def _inserted(source: Source, scope: Scope, node: ast.stmt) -> Iterator[Edit]:
    """A statement put before or after this one, and this one taken away."""
    start, stop = source.span(node)
    line_start = source.starts[node.lineno - 1]
    indent = source.text[line_start:start]
    if indent.strip():
        return
    simple = isinstance(node, ast.Assign | ast.AugAssign | ast.Expr)
    if simple and node.lineno == node.end_lineno:
        yield Edit(start, stop, "pass", "deletion", node.lineno, 0.3)
    new: list[tuple[str, float]] = []
    for name in scope.names:
        new += [
            (f"{one}({name})", 0.5) for one in scope.collectors if not one.startswith(f"{name}.")
        ]
        new += [
            (f"{holder}.append({name})", 0.3)
            for holder in scope.lists
            if holder != name and f"{holder}.append" not in scope.collectors
        ]
        near = 0.5 if name not in scope.outer else 0.4
        new += [(f"{holder}.add({name})", near) for holder in scope.sets if holder != name]
        new += [(f"{other} = {name}", 0.35) for other in scope.names if other != name]
    for text, prior in new:
        if prior:
            yield Edit(start, start, f"{text}\n{indent}", "insertion", node.lineno, prior)
            if simple or isinstance(node, ast.For | ast.While | ast.If):
                yield Edit(stop, stop, f"\n{indent}{text}", "insertion", node.lineno, prior * 0.9)


def _alike(one: str, other: str) -> bool:
    """`incoming_nodes` and `outgoing_nodes`, `left` and `right`: names of a pair share an end."""
    return (
        one.rsplit("_", 1)[-1] == other.rsplit("_", 1)[-1]
        or one.split("_", maxsplit=1)[0] == other.split("_", maxsplit=1)[0]
    )
