"""Minimizes a failure: the fewest tests that still fail, then the shortest test body with the same signature."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Event

from regreen.code.python_calls import is_module, parse_syntax_tree
from regreen.domain.errors import OutsideError, SetupFailed
from regreen.domain.models import Failure
from regreen.domain.ports import Git, Sandbox
from regreen.fixers.reproduction import run_once
from regreen.languages.test_commands import find_tools_of_test
from regreen.runs.ddmin import minimize_items
from regreen.runs.test_runs import CommandRun
from regreen.runs.trial import Trial, prepare_environment

ExceptionSignature = tuple[str, str]


@dataclass(frozen=True)
class MinimalFailure:
    """A failure as small as it got.

    `selection` are the tests that must run for it to show, the failing one last; `path` and `source` are the
    test file with a body cut to what the failure needs, None where nothing could be cut; `removed` counts the
    statements that were cut; `tries` the runs it took.
    """

    test: str
    signature: ExceptionSignature
    selection: tuple[str, ...]
    path: str | None = None
    source: str | None = None
    removed: int = 0
    tries: int = 0


def failure_signature(failure: Failure) -> ExceptionSignature:
    """What makes two failures the same: the exception's kind, and its message's first line without numbers."""
    first = failure.message.splitlines()[0] if failure.message else ""
    return failure.kind, "".join("0" if letter.isdigit() else letter for letter in first)[:200]


def minimize_failure(
    trial: Trial,
    rev: str,
    failure: Failure,
    *,
    git: Git,
    sandbox: Sandbox,
    before: Sequence[str] = (),
    max_tries: int = 60,
    cancel: Event | None = None,
) -> MinimalFailure:
    """Shrink a failing test: alone first, with the tests before it only where it needs them, then its body.

    pytest runs what has a node id, unittest what has a dotted name.

    Args:
        trial: the command that failed; its preparation is reused.
        rev: the failing revision.
        failure: the failing test, its id as pytest prints it.
        git: the repository.
        sandbox: where it runs.
        before: ids that ran before it, in order, for failures that need company.
        max_tries: how many runs it may take.
        cancel: set to stop.
    """
    attempts = _SelectionRuns(trial, rev, failure, git, sandbox, max_tries, cancel)
    selection = _select_tests(attempts, failure.test, before)
    smaller = MinimalFailure(
        failure.test, attempts.signature, tuple(selection), tries=attempts.made
    )
    path = failure.test.split("::", 1)[0] if "::" in failure.test else failure.path or ""
    content = git.show(rev, path) if is_module(path) else None
    if content is None or not attempts.alone:
        return replace(smaller, tries=attempts.made)
    source, removed = _minimize_body(
        attempts, content.decode("utf-8", "replace"), path, failure.test, selection
    )
    if not removed:
        return replace(smaller, tries=attempts.made)
    return replace(smaller, path=path, source=source, removed=removed, tries=attempts.made)


class _SelectionRuns:
    """Runs selections of tests, counts the runs, and compares the failure."""

    def __init__(  # noqa: PLR0917 - made in one place
        self,
        trial: Trial,
        rev: str,
        failure: Failure,
        git: Git,
        sandbox: Sandbox,
        most: int,
        cancel: Event | None,
    ) -> None:
        self.signature = failure_signature(failure)
        self.made = 0
        self.alone = False
        self._failure = failure
        self._tools = find_tools_of_test(failure.test, failure.path or "")
        self._trial, self._rev, self._git, self._sandbox = trial, rev, git, sandbox
        self._most, self._cancel = most, cancel
        self._env = prepare_environment(trial, rev, git=git, sandbox=sandbox, cancel=cancel)

    def still_fails(self, selection: Sequence[str], files: dict[str, str]) -> bool:
        """Whether the test fails with the same signature; False once the tries are used up."""
        cancelled = self._cancel is not None and self._cancel.is_set()
        if self._tools is None or self.made >= self._most or cancelled:
            return False
        self.made += 1
        overlay = {**self._trial.overlay, **{path: text.encode() for path, text in files.items()}}
        command = self._tools.run_tests(selection)
        trial = replace(self._trial, command=command, overlay=overlay)
        run = run_once(
            trial, self._rev, self._env, git=self._git, sandbox=self._sandbox, cancel=self._cancel
        )
        shows = self._has_same_failure(run)
        self.alone = self.alone or shows
        return shows

    def _has_same_failure(self, run: CommandRun) -> bool:
        return any(
            failure.test == self._failure.test and failure_signature(failure) == self.signature
            for failure in run.failures
        )


def _select_tests(attempts: _SelectionRuns, test: str, before: Sequence[str]) -> list[str]:
    """The test alone where that fails; else with the fewest of those before it."""
    if attempts.still_fails([test], {}):
        return [test]
    earlier = [earlier_test for earlier_test in before if earlier_test != test]
    if not earlier or not attempts.still_fails([*earlier, test], {}):
        return [test]
    return [*minimize_items(earlier, lambda some: attempts.still_fails([*some, test], {})), test]


def _minimize_body(
    attempts: _SelectionRuns, source: str, path: str, test: str, selection: Sequence[str]
) -> tuple[str, int]:
    """The file with the test's statements cut to those it needs: its own first, then those inside what is left."""
    removed = at = 0
    while True:
        bodies = statement_bodies(source, test)
        if at >= len(bodies):
            return source, removed
        spans = bodies[at]
        at += 1
        if at > 1 or len(spans) > 1:
            needed = _minimize_statements(attempts, source, path, spans, selection)
            source = remove_statements(source, spans, needed)
            removed += len(spans) - len(needed)


def _minimize_statements(
    attempts: _SelectionRuns,
    source: str,
    path: str,
    spans: Sequence[tuple[int, int]],
    selection: Sequence[str],
) -> list[tuple[int, int]]:
    def still_fails(kept: Sequence[tuple[int, int]]) -> bool:
        return attempts.still_fails(selection, {path: remove_statements(source, spans, kept)})

    return minimize_items(spans, still_fails)


def statement_bodies(source: str, test: str) -> list[list[tuple[int, int]]]:
    """The statements of a test function's body, and of each block within it, outermost first; lines, 1-based."""
    function = _find_test_function(source, test)
    if function is None:
        return []
    found: list[list[tuple[int, int]]] = []
    waiting: list[Sequence[ast.stmt]] = [function.body]
    while waiting:
        body = waiting.pop(0)
        found.append(_statement_lines(body))
        for node in body:
            waiting += [
                block
                for name in ("body", "orelse", "finalbody")
                if isinstance(block := getattr(node, name, None), list) and len(block) > 1
            ]
    return found


def _statement_lines(body: Sequence[ast.stmt]) -> list[tuple[int, int]]:
    return [
        (node.lineno, node.end_lineno or node.lineno) for node in body if not _is_docstring(node)
    ]


def statement_spans(source: str, test: str) -> list[tuple[int, int]]:
    """The lines (first, last; 1-based) of each statement in a test function's body, its docstring aside."""
    function = _find_test_function(source, test)
    return _statement_lines(function.body) if function is not None else []


def _find_test_function(source: str, test: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The test's function: `path::Class::test[x]` to pytest, `package.module.Class.test` to unittest."""
    try:
        tree: ast.AST = parse_syntax_tree(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    plain = test.partition("[")[0].partition(" ")[0]
    names = plain.split("::")[1:] if "::" in plain else plain.split(".")[-2:]
    for name in names:
        body = getattr(tree, "body", [])
        found = [
            node
            for node in body
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
            and node.name == name
        ]
        if not found:
            return None
        tree = found[-1]
    return tree if isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef)) else None


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def remove_statements(
    source: str, spans: Sequence[tuple[int, int]], kept: Sequence[tuple[int, int]]
) -> str:
    """The source without the statements at `spans` that are not in `kept`; a `pass` holds the place of the first cut."""
    lines = source.splitlines(keepends=True)
    chosen = set(kept)
    placed = bool(chosen)
    for first, last in spans:
        if (first, last) in chosen:
            continue
        indent = lines[first - 1][: len(lines[first - 1]) - len(lines[first - 1].lstrip())]
        for at in range(first - 1, last):
            lines[at] = ""
        if not placed:
            lines[first - 1] = f"{indent}pass\n"
            placed = True
    return "".join(lines)


# The description of a minimized failure.

_MOST_TRIES = 10
_MOST_LINES = 12


def describe_smaller_failure(
    trial: Trial,
    rev: str,
    failures: Sequence[Failure],
    *,
    git: Git,
    sandbox: Sandbox,
    cancel: Event | None = None,
) -> str | None:
    """One sentence, and a few lines of test, for the first failing test; None where nothing smaller is known.

    Args:
        trial: the command that fails.
        rev: the failing revision.
        failures: what fails, in the order it was printed.
        git: the repository.
        sandbox: where it runs.
        cancel: set to stop.
    """
    first = next((x for x in failures if find_tools_of_test(x.test, x.path or "")), None)
    if first is None:
        return None
    try:
        found = minimize_failure(
            trial, rev, first, git=git, sandbox=sandbox, max_tries=_MOST_TRIES, cancel=cancel
        )
    except (SetupFailed, OutsideError):
        return None
    return format_minimal_failure(found)


def format_minimal_failure(found: MinimalFailure) -> str | None:
    """The text about a minimized failure; None where nothing was removed."""
    if found.source is None:
        return None
    spans = statement_spans(found.source, found.test)
    lines = found.source.splitlines()
    body = [line for first, last in spans for line in lines[first - 1 : last] if line.strip()]
    if not body or len(body) > _MOST_LINES:
        return None
    shown = " ".join(found.selection)
    needed = "\n".join(body)
    return f"{shown} fails the same way with {found.removed} statements fewer; it takes only:\n{needed}"
