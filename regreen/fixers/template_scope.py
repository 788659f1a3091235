"""A parsed Python text with offsets, and what each of its functions has to offer in another thing's place."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Source:
    """A parsed text with offsets, and what each function has in scope."""

    def __init__(self, text: str, tree: ast.Module) -> None:
        self.text = text
        self.tree = tree
        self.starts = [0]
        for line in text.split("\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)
        self._lines = text.split("\n")

    def at(self, line: int, column: int) -> int:
        """Offset of a position as ast gives it: columns count UTF-8 bytes."""
        row = self._lines[line - 1]
        if row.isascii():
            return self.starts[line - 1] + column
        return self.starts[line - 1] + len(row.encode()[:column].decode("utf-8", "ignore"))

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """The offsets of a node."""
        return self.at(node.lineno, node.col_offset), self.at(
            node.end_lineno or node.lineno, node.end_col_offset or 0
        )

    def of(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node."""
        start, stop = self.span(node)
        return self.text[start:stop]


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function, those inside others included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def own_nodes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """Nodes of a function's body, without its documentation, its head, and functions inside it."""
    body = function.body
    first = body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        body = body[1:]
    waiting: list[ast.AST] = [node for node in body if not isinstance(node, _FUNCTIONS)]
    while waiting:
        node = waiting.pop(0)
        yield node
        waiting += [
            child for child in ast.iter_child_nodes(node) if not isinstance(child, _FUNCTIONS)
        ]


class Scope:
    """What a function offers to put in another's place: names, attributes, small expressions, statements."""

    def __init__(self, source: Source, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        enclosing = [
            one for one in functions(source.tree) if one is not function and _inside(function, one)
        ]
        names: list[str] = []
        for scope in (function, *enclosing):
            names += [
                arg.arg
                for arg in (*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs)
            ]
            names += [
                node.id
                for node in ast.walk(scope)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            ]
        self.names = list(dict.fromkeys(name for name in names if name not in {"self", "cls", "_"}))
        own = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        own |= {arg.arg for arg in function.args.args}
        self.outer = {name for name in self.names if name not in own}
        self.attributes = list(
            dict.fromkeys(
                node.attr for node in ast.walk(source.tree) if isinstance(node, ast.Attribute)
            )
        )
        small = [
            source.of(node)
            for node in ast.walk(function)
            if isinstance(node, ast.Call | ast.Subscript | ast.Attribute | ast.BinOp)
            and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
            and node.lineno == node.end_lineno
            and len(source.of(node)) <= 30
        ]
        self.expressions = list(dict.fromkeys(small))[:12]
        self.collectors = list(
            dict.fromkeys(
                f"{source.of(node.func.value)}.{node.func.attr}"
                for node in ast.walk(function)
                if isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in {"append", "add"}
            )
        )
        self.lists = list(
            dict.fromkeys(
                target.id
                for node in ast.walk(function)
                if isinstance(node, ast.Assign)
                and isinstance(node.value, ast.List | ast.Set | ast.Call)
                for target in node.targets
                if isinstance(target, ast.Name)
            )
        )
        self.sets = {
            target.id
            for scope in (function, *enclosing)
            for node in ast.walk(scope)
            if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Name)
            and node.value.func.id == "set"
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        self.statements = list(
            dict.fromkeys(
                source.of(node)
                for node in ast.walk(function)
                if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.Return)
                and node.lineno == node.end_lineno
                and node is not function.body[0]
            )
        )[:12]


def _inside(inner: ast.AST, outer: ast.AST) -> bool:
    return any(node is inner for node in ast.walk(outer))
