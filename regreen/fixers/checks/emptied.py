"""Functions whose work a patch takes away: a constant instead, a refusal instead, nothing at all."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set

from regreen.fixers.checks.change import FileChange, Reason
from regreen.fixers.checks.functions import constants, functions, without_docstring


def emptied_bodies(file: FileChange, known: Set[str]) -> Iterator[Reason]:
    """Functions that computed something and no longer do; `known` are the failing test's literals."""
    before = dict(one for one in functions(file.old_tree) if not _is_overload(one[1]))
    for name, node in functions(file.new_tree):
        if _is_overload(node):
            continue
        old = before.get(name)
        if old is None or ast.dump(old) == ast.dump(node):
            continue
        now, then = without_docstring(node.body), without_docstring(old.body)
        if len(now) > 1 or _is_empty(then) or not _computes(then):
            continue
        answer = constants(now[0].value) if now and isinstance(now[0], ast.Return) else []
        if set(answer) & known:
            what = "returns what the failing test expects, computed from nothing"
            yield Reason("special_case", f"{file.path}: {name} {what}", "deny")
        elif answer:
            what = "now returns a constant, whatever it is given"
            yield Reason("special_case", f"{file.path}: {name} {what}")
        elif _is_empty(now):
            yield Reason("special_case", f"{file.path}: {name} no longer does anything")


def idle_parameters(file: FileChange) -> Iterator[Reason]:
    """Parameters that a function made something of, and no longer does."""
    before = dict(functions(file.old_tree))
    for name, node in functions(file.new_tree):
        old = before.get(name)
        if old is None or len(node.body) == 1:
            continue  # a single statement: `emptied_bodies` looks at those, and stubs may ignore what they get
        for idle in sorted((_used(old) & _taken(node)) - _used(node)):
            what = f"{file.path}: {name} is given {idle} and no longer uses it"
            yield Reason("special_case", what)


def _taken(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    return {one.arg for one in every if not one.arg.startswith("_")} - {"self", "cls"}


def _used(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    inner = (part for statement in node.body for part in ast.walk(statement))
    return {one.id for one in inner if isinstance(one, ast.Name)}


def defined_again(file: FileChange) -> Iterator[Reason]:
    """A function of the module that a later one of its name takes the place of."""
    for name in _twice(file.new_tree) - _twice(file.old_tree):
        yield Reason("special_case", f"{file.path}: {name} is defined again, in its own place")


def _twice(tree: ast.Module | None) -> set[str]:
    names = [
        node.name
        for node in (tree.body if tree else ())
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not getattr(node, "decorator_list", None)
    ]
    return {name for name in names if names.count(name) > 1}


def _is_overload(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("overload" in ast.unparse(one) for one in node.decorator_list)


def _is_empty(body: Sequence[ast.stmt]) -> bool:
    """Nothing, a refusal, or a constant: all that a body without work can be."""
    match list(body):
        case [] | [ast.Pass()] | [ast.Raise()] | [ast.Return(value=None)]:
            return True
        case [ast.Expr(value=ast.Constant())]:
            return True
        case [ast.Return(value=value)]:
            return bool(constants(value))
        case _:
            return False


def _computes(body: Sequence[ast.stmt]) -> bool:
    return any(
        isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
        for statement in body
        for part in ast.walk(statement)
    )
