"""Checks that a program makes of itself: tolerances, time limits, retries, and code that can no longer run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from regreen.fixers.checks.change import FileChange, Reason
from regreen.fixers.checks.functions import defaults, scoped
from regreen.fixers.checks.paths import is_document, is_test

_LAX = re.compile(
    r"(?:^|_)(?:tol|tolerance|eps|epsilon|rtol|atol|delta|timeouts?|deadline|retries|retry|max_attempts|attempts|max_retries)(?:$|_)",
    re.IGNORECASE,
)
_GROWN = 2.0


def limits_kept(files: Sequence[FileChange]) -> list[Reason]:
    """A wider tolerance, a longer wait, or work that is cut off: for a person to see."""
    reasons: list[Reason] = []
    for file in files:
        if (
            file.old_tree is None
            or file.new_tree is None
            or is_test(file.path)
            or is_document(file.path)
        ):
            continue
        reasons += _wider(file)
        reasons += _unreachable(file)
    return reasons


def _wider(file: FileChange) -> Iterator[Reason]:
    before, after = dict(_limits(file.old_tree)), dict(_limits(file.new_tree))
    for key, now in after.items():
        was = before.get(key)
        if was is not None and now > was * _GROWN and now - was > 0:
            what = f"{file.path}: {key[1]} goes from {was:g} to {now:g}"
            yield Reason("silenced", what)


def _limits(tree: ast.Module | None) -> Iterator[tuple[tuple[str, str, int], float]]:
    """Numbers that bound something: by the name they go by, or beside `abs(...)`; numbered where one name holds many."""
    seen: dict[tuple[str, str], int] = {}

    def numbered(scope: str, name: str) -> tuple[str, str, int]:
        seen[scope, name] = seen.get((scope, name), 0) + 1
        return scope, name, seen[scope, name]

    for scope, node in scoped(tree):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Constant(value=int() | float() as value)
            ):
                pairs = [(name, value)]
            case ast.AnnAssign(
                target=ast.Name(id=name), value=ast.Constant(value=int() | float() as value)
            ):
                pairs = [(name, value)]
            case ast.keyword(arg=str() as name, value=ast.Constant(value=int() | float() as value)):
                pairs = [(name, value)]
            case ast.Compare(
                left=ast.Call(func=ast.Name(id="abs")),
                ops=[ast.Lt() | ast.LtE()],
                comparators=[ast.Constant(value=int() | float() as value)],
            ):
                pairs = [("the tolerance", value)]
            case ast.arguments():
                pairs = [
                    (argument, default.value)
                    for argument, default in defaults(node)
                    if isinstance(default, ast.Constant) and isinstance(default.value, int | float)
                ]
            case _:
                continue
        for name, value in pairs:
            if not isinstance(value, bool) and (name == "the tolerance" or _LAX.search(name)):
                yield numbered(scope, name), float(value)


def _unreachable(file: FileChange) -> Iterator[Reason]:
    before = {ast.dump(node) for node in _cut_off(file.old_tree)}
    for node in _cut_off(file.new_tree):
        if ast.dump(node) not in before:
            yield Reason("special_case", f"{file.path}:{node.lineno} can no longer be reached")


def _cut_off(tree: ast.Module | None) -> Iterator[ast.stmt]:
    """The first statement behind one that leaves, and what `if False` guards."""
    for node in ast.walk(tree) if tree else ():
        for body in (
            getattr(node, "body", None),
            getattr(node, "orelse", None),
            getattr(node, "finalbody", None),
        ):
            if not isinstance(body, list):
                continue
            for one, following in pairwise(body):
                if isinstance(
                    one, ast.Return | ast.Raise | ast.Continue | ast.Break
                ) and not _is_yield(following):
                    yield following
        if (
            isinstance(node, ast.If | ast.While)
            and isinstance(node.test, ast.Constant)
            and not node.test.value
        ):
            yield node.body[0]


def _is_yield(node: ast.stmt) -> bool:
    """`return` before a `yield` is how an empty generator is written."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield | ast.YieldFrom)
