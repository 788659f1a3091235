"""The template rung: small known edits at suspect lines. It seldom publishes: on real bugs its finds are mostly hints."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from regreen.fixers.case import Case, Climbed, Judge, Proposal, RungName
from regreen.fixers.checks.change import parse_python
from regreen.fixers.diffs import diff_file
from regreen.fixers.engine import Engine
from regreen.fixers.faults import mutants
from regreen.fixers.gate import changed_files
from regreen.fixers.spectrum import ranked
from regreen.fixers.templates import Edit, edits
from regreen.fixers.workspace import original

_SECONDS = 60.0
_LINES = 50
_MOST = 3000
_HINTS = 3
_NOTICED = 0.8
Found = tuple[str, Edit, str]


class Template:
    """Searches for one-line edits that turn the failing tests green."""

    name: RungName = "template"

    def climb(self, case: Case, judge: Judge) -> Climbed:
        """Publish a find only if it lies in the change itself, is the only one of an exhausted search, and is well tested."""
        engine = Engine(case)
        if not engine.is_warm:
            return Climbed(note="template search needs a plain pytest command", outcome="skipped")
        engine.calibrate()
        plausible, exhausted = search(case, engine)
        if not plausible:
            return Climbed(note="no one-line edit turns the tests green")
        hints = tuple(_hint(case, one) for one in plausible[:_HINTS])
        path, edit, text = plausible[0]
        if (
            len(plausible) > 1
            or not exhausted
            or not _in_change(case, path, edit.line)
            or not _noticed(engine, path, text, edit)
        ):
            return Climbed(
                hints=hints,
                note=f"{len(plausible)} one-line edits turn the tests green; passed on as hints",
            )
        patch = diff_file(path, (original(case, path) or "").encode(), text.encode())
        proposal = Proposal(
            self.name,
            patch,
            f"{edit.name} at {path}:{edit.line}",
            f"the line {path}:{edit.line} is wrong",
        )
        judgement = judge(proposal)
        return Climbed(judgement if judgement.stands else None, hints, outcome=judgement.outcome)


def search(
    case: Case,
    engine: Engine,
    *,
    most_plausible: int = 8,
    seconds: float = _SECONDS,
    thorough: bool = True,
) -> tuple[list[Found], bool]:
    """Plausible edits in the order of their likeliness, and whether the whole space was tried.

    Without `thorough` the search ends when it has gone on after the first find for as long as that took.
    """
    scores = {(path, line): score for path, line, score in ranked(case, engine)[:_LINES]}
    changed = {(path, line) for path, line in _changed_lines(case)}
    todo: list[tuple[float, str, Edit, str]] = []
    for path in dict.fromkeys(path for path, _ in scores):
        text = original(case, path)
        if text is None or len(text) > 200_000:
            continue
        lines = [line for where, line in scores if where == path]
        for edit in edits(text, lines):
            weight = (
                scores.get((path, edit.line), 0.0)
                * edit.prior
                * (3 if (path, edit.line) in changed else 1)
            )
            todo.append((weight, path, edit, edit.on(text)))
    todo.sort(key=lambda one: -one[0])
    exhausted = len(todo) <= _MOST
    todo = todo[:_MOST]
    verdicts = engine.try_all(
        [{path: text} for _, path, _, text in todo],
        most_green=most_plausible,
        as_long_again=not thorough,
        swaps_first=True,
        seconds=min(seconds, case.stop.left),
    )
    green = [todo[at] for at, verdict in enumerate(verdicts) if verdict.green]
    found = [(path, edit, text) for _, path, edit, text in green]
    all_tried = len(verdicts) == len(todo) and all(one.how != "untried" for one in verdicts)
    return rank(case, found), exhausted and all_tried


def rank(case: Case, found: Sequence[Found]) -> list[Found]:
    """Finds that leave a name unused, or a way out of a function without an answer, come after the others."""
    from regreen.fixers.checks.lint import new_findings

    def penalty(one: Found) -> int:
        path, _, text = one
        before = original(case, path)
        fresh = new_findings(path, before, text, "F841,F811,B018,B007,RET503")
        return len(fresh) + len(_orphans(text) - _orphans(before or ""))

    return sorted(found, key=penalty)


def _orphans(text: str) -> set[str]:
    """Names that are given a value and never read: a repair seldom makes one."""
    names = [
        node
        for node in ast.walk(parse_python(text) or ast.Module([], []))
        if isinstance(node, ast.Name)
    ]
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    return {node.id for node in names if isinstance(node.ctx, ast.Store)} - read


def _changed_lines(case: Case) -> list[tuple[str, int]]:
    if case.base is None:
        return []
    return [
        (file.path, number)
        for file in changed_files(case.git, case.base, case.rev)
        for number, _ in file.added
    ]


def _in_change(case: Case, path: str, line: int) -> bool:
    return (path, line) in set(_changed_lines(case))


def _noticed(engine: Engine, path: str, text: str, edit: Edit) -> bool:
    """Whether the tests notice faults put into the mended line."""
    trial = [{path: one.on(text)} for one in mutants(text, [edit.line])]
    verdicts = engine.try_all(trial, seconds=30)
    return bool(verdicts) and sum(not one.green for one in verdicts) >= _NOTICED * len(verdicts)


def _hint(case: Case, one: Found) -> str:
    path, edit, text = one
    before = (original(case, path) or "").splitlines()
    after = text.splitlines()
    was = before[edit.line - 1].strip() if edit.line <= len(before) else ""
    now = after[edit.line - 1].strip() if edit.line <= len(after) else ""
    return f"{path}:{edit.line}: with `{now[:120]}` for `{was[:120]}` the tests pass; seldom the right repair, but look there"
