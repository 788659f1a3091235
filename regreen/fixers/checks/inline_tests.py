"""Tests that stand in the source: the examples of a docstring, and the tests at the end of a Rust module."""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator

from regreen.fixers.checks.change import FileChange, Level, Reason

_RUST_TESTS = re.compile(r"^\s*#\[(?:cfg\(test\)|test|tokio::test)", re.MULTILINE)


def inline_tests_kept(file: FileChange, usual: Level) -> Iterator[Reason]:
    """Existing examples and inline tests stay as they are; new ones may be added."""
    if file.old is None or file.new is None:
        return
    if file.suffix == ".rs":
        yield from _rust(file, usual)
    elif file.old_tree is not None and file.new_tree is not None:
        yield from _examples(file, usual)


def _rust(file: FileChange, usual: Level) -> Iterator[Reason]:
    start = _RUST_TESTS.search(file.old or "")
    if start is None:
        return
    first = (file.old or "").count("\n", 0, start.start()) + 1
    gone = [line for number, line in file.removed if number >= first and line.strip()]
    if gone:
        what = f"{file.path}: an existing line of a test changes: {gone[0].strip()[:80]}"
        yield Reason("tests_unchanged", what, usual)


def _examples(file: FileChange, usual: Level) -> Iterator[Reason]:
    after = _documented(file.new_tree)
    for name, examples in _documented(file.old_tree).items():
        lost = [one for one in examples if one not in after.get(name, [])]
        if lost and name in after:
            what = f"{file.path}: an example of {name}'s documentation changes: {lost[0][0].strip()[:60]}"
            yield Reason("tests_unchanged", what, usual)


def _documented(tree: ast.Module | None) -> dict[str, list[tuple[str, str]]]:
    """The examples of each docstring, by the name of what it documents; what does not read as examples has none."""
    found: dict[str, list[tuple[str, str]]] = {}
    for node in ast.walk(tree) if tree else ():
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        text = ast.get_docstring(node) or ""
        if ">>>" not in text:
            continue
        try:
            examples = doctest.DocTestParser().get_examples(text)
        except ValueError:
            continue
        name = getattr(node, "name", "the module")
        found.setdefault(name, []).extend((one.source, one.want) for one in examples)
    return found
