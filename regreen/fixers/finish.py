"""What is done with a patch that works: leave out what it does not need, and see how well its lines are tested."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from regreen.fixers.case import Case, Strength
from regreen.fixers.checks.change import FileChange, parse_python
from regreen.fixers.checks.functions import without_docstring
from regreen.fixers.checks.paths import is_source
from regreen.fixers.diffs import diff_files
from regreen.fixers.engine import Engine
from regreen.fixers.faults import mutants
from regreen.fixers.hunks import Piece, pieces, smallest, with_only

_MOST_PIECES = 24
_MOST_MUTANTS = 12


def minimised(files: Sequence[FileChange], engine: Engine, seconds: float = 60.0) -> str | None:
    """The patch without the hunks it does not need; None where it needs them all, or that cannot be told."""
    before = {
        file.path: file.old for file in files if file.old is not None and file.new is not None
    }
    after = {file.path: file.new for file in files if file.old is not None and file.new is not None}
    every = pieces(before, after)
    others = [one for one in every if not is_source(one.path) or _is_said(one, before, after)]
    parts = [one for one in every if one not in others]
    if len(parts) < 2 or len(parts) > _MOST_PIECES or len(before) != len(files):
        return None

    def test(options: Sequence[Sequence[Piece]]) -> list[bool]:
        candidates = [with_only(before, after, [*option, *others]) for option in options]
        verdicts = engine.try_all(candidates, stop_at_green=True, seconds=seconds)
        return [verdict.green for verdict in verdicts]

    needed = smallest(parts, test)
    if len(needed) == len(parts):
        return None
    kept = with_only(before, after, [*needed, *others])
    return diff_files(
        {path: text.encode() for path, text in before.items()},
        {path: text.encode() for path, text in kept.items()},
    )


def _is_said(piece: Piece, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Whether it changes comments and docstrings alone: no test needs those, and they belong to the change."""
    if not piece.path.endswith(".py"):
        return False
    with_it = with_only(before, after, [piece])[piece.path]
    return _code(with_it) == _code(before[piece.path]) != ""


def _code(text: str) -> str:
    """A module's code without its docstrings, to compare; empty where it is no Python."""
    tree = parse_python(text)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = without_docstring(node.body)
    return ast.dump(tree) if tree else ""


def strength(case: Case, files: Sequence[FileChange], seconds: float = 40.0) -> Strength | None:
    """Faults put into the patched lines, and how many of them the tests notice; None where it cannot be told.

    `case` stands at the commit with the patch in.
    """
    engine = Engine(case)
    if not engine.is_warm:
        return None
    whole = {
        file.path: file.new for file in files if file.new is not None and file.path.endswith(".py")
    }
    candidates: list[dict[str, str]] = []
    names: list[str] = []
    for file in files:
        if file.new is None or not file.path.endswith(".py") or not is_source(file.path):
            continue
        for fault in mutants(file.new, [number for number, _ in file.added]):
            text = fault.on(file.new)
            candidates.append({**whole, file.path: text})
            line = (
                text.splitlines()[fault.line - 1].strip()
                if fault.line <= len(text.splitlines())
                else ""
            )
            names.append(f"{file.path}:{fault.line} {fault.name}: {line[:100]}")
    verdicts = engine.try_all(candidates[:_MOST_MUTANTS], seconds=min(seconds, case.stop.left))
    alive = tuple(name for name, verdict in zip(names, verdicts, strict=False) if verdict.green)
    return Strength(len(verdicts), len(verdicts) - len(alive), alive) if verdicts else None
