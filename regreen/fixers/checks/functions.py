"""Parts of a module's syntax by name: functions with their dotted names, scopes, defaults, literals."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.Module | None) -> Iterator[tuple[str, Function]]:
    """Every function with its dotted name, methods and inner functions included."""

    def visit(body: Sequence[ast.stmt], prefix: str) -> Iterator[tuple[str, Function]]:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{prefix}{node.name}", node
                yield from visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.ClassDef):
                yield from visit(node.body, f"{prefix}{node.name}.")

    yield from visit(tree.body if tree else [], "")


def scoped(tree: ast.AST | None, scope: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Every node with the dotted name of the function or class that it stands in."""
    for node in ast.iter_child_nodes(tree) if tree else ():
        name = (
            node.name
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            else ""
        )
        yield scope, node
        yield from scoped(node, f"{scope}.{name}" if name else scope)


def defaults(node: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    """The parameters that have a default, with it."""
    plain = [*node.posonlyargs, *node.args]
    pairs = [
        *zip(plain[len(plain) - len(node.defaults) :], node.defaults, strict=True),
        *zip(node.kwonlyargs, node.kw_defaults, strict=True),
    ]
    yield from ((argument.arg, default) for argument, default in pairs if default is not None)


def without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements that do something."""
    first = body[0] if body else None
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if documented else body


def constants(node: ast.expr | None) -> list[str]:
    """The literals that an expression consists of; empty where it computes anything."""
    match node:
        case ast.Constant(value=value):
            return [repr(value)]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return [repr(-value)]
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            inner = [constants(part) for part in parts]
            return [item for one in inner for item in one] if all(inner) else []
        case ast.Dict(keys=keys, values=values):
            inner = [constants(part) for part in (*keys, *values) if part is not None]
            return [item for one in inner for item in one] if all(inner) else []
        case _:
            return []
