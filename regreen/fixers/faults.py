"""Small faults put into a text on purpose: tests that mean those lines should notice them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from regreen.fixers.checks.change import parse_python
from regreen.fixers.template_scope import Source
from regreen.fixers.templates import Edit, edits

MUTATIONS = {
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


def mutants(text: str, lines: Sequence[int], most: int = 12) -> list[Edit]:
    """Small faults put into the given lines, a few a line: what tests that mean those lines should notice."""
    found = [edit for edit in edits(text, lines) if edit.name in MUTATIONS]
    found += _outside_functions(text, set(lines))
    chosen: list[Edit] = []
    for number in dict.fromkeys(lines):
        here = [edit for edit in found if edit.line == number]
        kinds: dict[str, Edit] = {}
        for edit in here:
            kinds.setdefault(edit.name, edit)
        chosen += list(kinds.values())[:4]
    return chosen[:most]


def _outside_functions(text: str, lines: set[int]) -> Iterator[Edit]:
    """Other values for the constants of modules and classes, and for defaults of parameters."""
    tree = parse_python(text)
    source = Source(text, tree) if tree else None
    for node in _values(tree):
        if source is None or node.lineno not in lines or node.lineno != node.end_lineno:
            continue
        other = _other(node.value)
        if other is not None:
            start, stop = source.span(node)
            yield Edit(start, stop, other, "constant", node.lineno, 0.5)


def _values(tree: ast.AST | None) -> Iterator[ast.Constant]:
    for node in ast.iter_child_nodes(tree) if tree else ():
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from (one for one in ast.walk(node.args) if isinstance(one, ast.Constant))
            case ast.ClassDef():
                yield from _values(node)
            case ast.Assign(value=value) | ast.AnnAssign(value=value) if value is not None:
                yield from (one for one in ast.walk(value) if isinstance(one, ast.Constant))
            case ast.If() | ast.Try() | ast.With():
                yield from _values(node)
            case _:
                pass


def _other(value: object) -> str | None:
    match value:
        case bool():
            return str(not value)
        case int() | float():
            return repr(value + 1)
        case str():
            return repr(f"{value}x")
        case _:
            return None
