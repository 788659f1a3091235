"""Minimizes a failure: the fewest tests that still fail, then the shortest test body with the same signature.

A patch is made as small in the same way.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import TypeVar

from regreen.code.file_change import PatchedFile
from regreen.code.hunks import ChangePiece, apply_pieces, diff_files, split_into_pieces
from regreen.code.paths import is_source
from regreen.code.python_calls import is_module, parse_python, parse_syntax_tree
from regreen.domain.errors import AnalysisFailed, OutsideError, SetupFailed
from regreen.domain.models import Failure
from regreen.domain.ports import Git, Sandbox
from regreen.fixers.case import MutationScore, RepairCase
from regreen.fixers.reproduction import run_once
from regreen.fixers.warm_engine import WarmEngine
from regreen.gate.facts import drop_docstring
from regreen.languages.registry import find_mutation, find_tools_of_test, has_capability
from regreen.runs.test_runs import CommandRun
from regreen.runs.trial import Trial, prepare_environment

# Delta debugging (Zeller's ddmin): the part of a list that is needed, with no item that can be left out.

Item = TypeVar("Item")
SubsetTest = Callable[[Sequence[Sequence[Item]]], list[bool]]
"""Tries several parts at once, in their order. It may stop after the first that holds, or where time ran out."""


def minimize_in_batches(
    items: Sequence[Item], test: SubsetTest[Item], *, parts_alone: bool = True
) -> list[Item]:
    """The items that still test true, from which none can be left out.

    Args:
        items: what is there. All together must test true; otherwise the answer does, unless it is all of them again.
        test: tries a batch of parts.
        parts_alone: try each part by itself too, not only all the others without it: a quick way to few items,
            worth it where a batch costs little more than one run.
    """
    current = list(items)
    pieces = 2
    while len(current) > 1:
        size = max(1, len(current) // pieces)
        starts = range(0, len(current), size)
        parts = [current[at : at + size] for at in starts] if parts_alone else []
        others = [current[:at] + current[at + size :] for at in starts]
        options = parts if len(parts) == 2 else [*parts, *others]
        verdicts = test(options)
        hit = next((number for number, holds in enumerate(verdicts) if holds), None)
        if hit is not None:
            current = options[hit]
            pieces = 2 if hit < len(parts) else max(2, pieces - 1)
        elif size == 1 or len(verdicts) < len(options):
            break
        else:
            pieces = min(len(current), pieces * 2)
    return current


def minimize_items(
    items: Sequence[Item], still_fails: Callable[[Sequence[Item]], bool]
) -> list[Item]:
    """The items without which it no longer fails, found one run at a time.

    Args:
        items: what is there; all together must fail.
        still_fails: tries a part of them, in their order.
    """
    if items and still_fails([]):
        return []

    def test_in_turn(options: Sequence[Sequence[Item]]) -> list[bool]:
        verdicts: list[bool] = []
        for option in options:
            verdicts.append(still_fails(option))
            if verdicts[-1]:
                break
        return verdicts

    return minimize_in_batches(items, test_in_turn, parts_alone=False)


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
        command = self._tools.run_tests(selection, self._trial.command)
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
    except (SyntaxError, ValueError, RecursionError, MemoryError):
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


_MOST_PIECES = 24
_MOST_MUTANTS = 12


def minimize_patch(
    files: Sequence[PatchedFile], engine: WarmEngine, seconds: float = 60.0
) -> tuple[str, tuple[str, ...]]:
    """The patch without unneeded hunks, and their places; empty where all are needed or it cannot be decided."""
    before = {
        file.path: file.old for file in files if file.old is not None and file.new is not None
    }
    after = {file.path: file.new for file in files if file.old is not None and file.new is not None}
    fresh = {file.path: file.new for file in files if file.old is None and file.new is not None}
    try:
        every = split_into_pieces(before, after)
    except AnalysisFailed:
        return "", ()
    others = [
        piece
        for piece in every
        if not is_source(piece.path) or _changes_only_comments(piece, before, after)
    ]
    parts = [piece for piece in every if piece not in others]
    if len(parts) < 2 or len(parts) > _MOST_PIECES or len(before) + len(fresh) != len(files):
        return "", ()
    new_source = {path: text for path, text in fresh.items() if is_source(path)}

    def test(options: Sequence[Sequence[ChangePiece]]) -> list[bool]:
        candidates = [
            {**apply_pieces(before, after, [*option, *others]), **new_source} for option in options
        ]
        verdicts = engine.try_all(candidates, most_green=1, seconds=seconds)
        return [verdict.green for verdict in verdicts]

    needed = minimize_in_batches(parts, test)
    idle = [piece for piece in parts if piece not in needed]
    if not idle or not all(test([needed])):
        return "", ()
    minimal = {**apply_pieces(before, after, [*needed, *others]), **fresh}
    smaller = diff_files(
        {path: text.encode() for path, text in before.items()},
        {path: text.encode() for path, text in minimal.items()},
    )
    return smaller, tuple(f"the lines at {piece.path}:{piece.j1 + 1}" for piece in idle)


def _changes_only_comments(
    piece: ChangePiece, before: Mapping[str, str], after: Mapping[str, str]
) -> bool:
    """Whether it changes only comments and docstrings, which no test needs but the patch keeps."""
    if not has_capability(piece.path, "syntax tree"):
        return False
    with_it = apply_pieces(before, after, [piece])[piece.path]
    return _code_without_docstrings(with_it) == _code_without_docstrings(before[piece.path]) != ""


def _code_without_docstrings(text: str) -> str:
    """A dump of the module's code without docstrings, for comparison; empty if it does not parse."""
    tree = parse_python(text)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = drop_docstring(node.body)
    return ast.dump(tree) if tree else ""


def measure_strength(
    case: RepairCase, files: Sequence[PatchedFile], seconds: float = 40.0
) -> MutationScore | None:
    """How many mutants of the patched lines the tests notice; None where it cannot be measured.

    `case` stands at the commit with the patch in.
    """
    engine = WarmEngine(case)
    if not engine.is_warm:
        return None
    whole = {
        file.path: file.new
        for file in files
        if file.new is not None and find_mutation(file.path, warm=True) is not None
    }
    candidates: list[dict[str, str]] = []
    names: list[str] = []
    for file in files:
        make_mutants = find_mutation(file.path, warm=True)
        if file.new is None or make_mutants is None or not is_source(file.path):
            continue
        for fault in make_mutants(file.new, [number for number, _ in file.added_lines]):
            text = fault.apply_to(file.new)
            candidates.append({**whole, file.path: text})
            line = (
                text.splitlines()[fault.line - 1].strip()
                if fault.line <= len(text.splitlines())
                else ""
            )
            names.append(f"{file.path}:{fault.line} {fault.name}: {line[:100]}")
    verdicts = engine.try_all(candidates[:_MOST_MUTANTS], seconds=min(seconds, case.stop.left))
    alive = tuple(name for name, verdict in zip(names, verdicts, strict=False) if verdict.green)
    return MutationScore(len(verdicts), len(verdicts) - len(alive), alive) if verdicts else None
