"""Makes a failure small: the fewest tests that still fail, then the shortest test body with the same signature."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import TypeVar

from regreen.codebase.python_code import syntax_tree
from regreen.codebase.trial import Trial, prepare
from regreen.fixers.reproduce import Run, run_once
from regreen.models import Failure
from regreen.ports import Git, Sandbox

Item = TypeVar("Item")
Signature = tuple[str, str]


@dataclass(frozen=True)
class Minimal:
    """A failure as small as it got.

    `selection` are the tests that must run for it to show, the failing one last; `path` and `source` are the
    test file with a body cut to what the failure needs, None where nothing could be cut; `removed` counts the
    statements that were cut; `tries` the runs it took.
    """

    test: str
    signature: Signature
    selection: tuple[str, ...]
    path: str | None = None
    source: str | None = None
    removed: int = 0
    tries: int = 0


def signature_of(failure: Failure) -> Signature:
    """What makes two failures the same: the exception's kind, and its message's first line without numbers."""
    first = failure.message.splitlines()[0] if failure.message else ""
    return failure.kind, "".join("0" if letter.isdigit() else letter for letter in first)[:200]


def ddmin(items: Sequence[Item], still_fails: Callable[[Sequence[Item]], bool]) -> list[Item]:
    """The items without which it no longer fails, by delta debugging; no single one of them can be left out.

    Args:
        items: what is there; all together must fail.
        still_fails: tries a part of them, in their order.
    """
    kept = list(items)
    if kept and still_fails([]):
        return []
    pieces = 2
    while len(kept) >= 2:
        size = max(1, len(kept) // pieces)
        chunks = [kept[at : at + size] for at in range(0, len(kept), size)]
        for at in range(len(chunks)):
            rest = [item for other, chunk in enumerate(chunks) if other != at for item in chunk]
            if still_fails(rest):
                kept, pieces = rest, max(pieces - 1, 2)
                break
        else:
            if size == 1:
                break
            pieces = min(pieces * 2, len(kept))
    return kept


def minimise(
    trial: Trial,
    rev: str,
    failure: Failure,
    *,
    git: Git,
    sandbox: Sandbox,
    before: Sequence[str] = (),
    max_tries: int = 60,
    cancel: Event | None = None,
) -> Minimal:
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
    attempts = _Attempts(trial, rev, failure, git, sandbox, max_tries, cancel)
    selection = _select(attempts, failure.test, before)
    smaller = Minimal(failure.test, attempts.signature, tuple(selection), tries=attempts.made)
    path = failure.test.split("::", 1)[0] if "::" in failure.test else failure.path or ""
    content = git.show(rev, path) if path.endswith(".py") else None
    if content is None or not attempts.alone:
        return replace(smaller, tries=attempts.made)
    source, removed = _cut_body(
        attempts, content.decode("utf-8", "replace"), path, failure.test, selection
    )
    if not removed:
        return replace(smaller, tries=attempts.made)
    return replace(smaller, path=path, source=source, removed=removed, tries=attempts.made)


class _Attempts:
    """Runs selections of tests, counting, and says whether the same failure shows."""

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
        self.signature = signature_of(failure)
        self.made = 0
        self.alone = False
        self._failure = failure
        self._trial, self._rev, self._git, self._sandbox = trial, rev, git, sandbox
        self._most, self._cancel = most, cancel
        self._env = prepare(trial, rev, git=git, sandbox=sandbox, cancel=cancel)

    def fails(self, selection: Sequence[str], files: dict[str, str]) -> bool:
        """Whether the test fails with the same signature; False once the tries are used up."""
        if self.made >= self._most or (self._cancel is not None and self._cancel.is_set()):
            return False
        self.made += 1
        overlay = {**self._trial.overlay, **{path: text.encode() for path, text in files.items()}}
        command = ("sh", "-c", _RUN_ONE, "sh", *_runner(self._failure.test), *selection)
        trial = replace(self._trial, command=command, overlay=overlay)
        run = run_once(
            trial, self._rev, self._env, git=self._git, sandbox=self._sandbox, cancel=self._cancel
        )
        shows = self._shows(run)
        self.alone = self.alone or shows
        return shows

    def _shows(self, run: Run) -> bool:
        return any(
            one.test == self._failure.test and signature_of(one) == self.signature
            for one in run.failures
        )


# The project's own environment where uv or venv made one, else the box's.
_RUN_ONE = 'if [ -x .venv/bin/python ]; then exec .venv/bin/python "$@"; fi; exec python "$@"'


def _runner(test: str) -> tuple[str, ...]:
    if "::" in test:
        return ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly")
    return ("-m", "unittest")


def _select(attempts: _Attempts, test: str, before: Sequence[str]) -> list[str]:
    """The test alone where that fails; else with the fewest of those before it."""
    if attempts.fails([test], {}):
        return [test]
    earlier = [one for one in before if one != test]
    if not earlier or not attempts.fails([*earlier, test], {}):
        return [test]
    return [*ddmin(earlier, lambda some: attempts.fails([*some, test], {})), test]


def _cut_body(
    attempts: _Attempts, source: str, path: str, test: str, selection: Sequence[str]
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
            kept = _needed(attempts, source, path, spans, selection)
            source = without(source, spans, kept)
            removed += len(spans) - len(kept)


def _needed(
    attempts: _Attempts,
    source: str,
    path: str,
    spans: Sequence[tuple[int, int]],
    selection: Sequence[str],
) -> list[tuple[int, int]]:
    def still_fails(kept: Sequence[tuple[int, int]]) -> bool:
        return attempts.fails(selection, {path: without(source, spans, kept)})

    return ddmin(spans, still_fails)


def statement_bodies(source: str, test: str) -> list[list[tuple[int, int]]]:
    """The statements of a test function's body, and of each block within it, outermost first; lines, 1-based."""
    function = _function(source, test)
    if function is None:
        return []
    found: list[list[tuple[int, int]]] = []
    waiting: list[Sequence[ast.stmt]] = [function.body]
    while waiting:
        body = waiting.pop(0)
        found.append(_spans(body))
        for node in body:
            waiting += [
                block
                for name in ("body", "orelse", "finalbody")
                if isinstance(block := getattr(node, name, None), list) and len(block) > 1
            ]
    return found


def _spans(body: Sequence[ast.stmt]) -> list[tuple[int, int]]:
    return [
        (node.lineno, node.end_lineno or node.lineno) for node in body if not _is_docstring(node)
    ]


def statement_spans(source: str, test: str) -> list[tuple[int, int]]:
    """The lines (first, last; 1-based) of each statement in a test function's body, its docstring aside."""
    function = _function(source, test)
    return _spans(function.body) if function is not None else []


def _function(source: str, test: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The test's function: `path::Class::test[x]` to pytest, `package.module.Class.test` to unittest."""
    try:
        tree: ast.AST = syntax_tree(source)
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


def without(source: str, spans: Sequence[tuple[int, int]], kept: Sequence[tuple[int, int]]) -> str:
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
