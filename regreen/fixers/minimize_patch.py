"""Minimizes a patch that works, and measures how well its lines are tested."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from regreen.code.file_change import PatchedFile, parse_python
from regreen.code.hunks import ChangePiece, apply_pieces, diff_files, split_pieces
from regreen.code.paths import is_source
from regreen.domain.errors import AnalysisFailed
from regreen.fixers.case import MutationScore, RepairCase
from regreen.fixers.warm_engine import WarmEngine
from regreen.gate.facts import drop_docstring
from regreen.languages.registry import find_mutation, has_capability
from regreen.runs.ddmin import minimize_in_batches

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
        every = split_pieces(before, after)
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
        verdicts = engine.try_all(candidates, stop_at_green=True, seconds=seconds)
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
        if file.new is not None and find_mutation(file.path) is not None
    }
    candidates: list[dict[str, str]] = []
    names: list[str] = []
    for file in files:
        make_mutants = find_mutation(file.path)
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
