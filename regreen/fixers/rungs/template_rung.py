"""The template rung: small edits at suspect lines. On real bugs they are mostly hints."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence

from regreen.code.hunks import diff_file
from regreen.code.python_calls import parse_python
from regreen.domain.languages import SourceEdit
from regreen.domain.models import RungName
from regreen.fixers.case import JudgeProposal, Proposal, RepairCase, RungResult
from regreen.fixers.localization import rank_lines
from regreen.fixers.warm_engine import WarmEngine
from regreen.fixers.workspace import read_original
from regreen.gate.judge import changed_files
from regreen.isolation import name_failed_input, run_in_child
from regreen.languages.registry import find_edits, find_mutation

_SEARCH_SECONDS = 60.0
_MAX_LINES = 50
_MAX_EDITS = 3000
_LONGEST = 200_000  # characters of a file
_MOST_HELD = 64_000_000  # characters of all candidates together
_MAX_HINTS = 3
_MIN_NOTICED_SHARE = 0.8
PlausibleEdit = tuple[str, SourceEdit, str]


class TemplateRung:
    """Searches for one-line edits that turn the failing tests green."""

    name: RungName = "template"

    def propose_fix(self, case: RepairCase, judge: JudgeProposal) -> RungResult:
        """Propose an edit only if it lies in the change, is the only one of an exhausted search, and is well tested."""
        engine = WarmEngine(case)
        if not engine.is_warm:
            return RungResult(
                note="template search needs a plain pytest command", outcome="skipped"
            )
        engine.calibrate_limits()
        plausible, exhausted = search_edits(case, engine)
        if not plausible:
            rest = "" if exhausted else "; not all could be tried"
            return RungResult(note=f"none of the one-line edits tried turns the tests green{rest}")
        hints = tuple(_format_hint(case, edit) for edit in plausible[:_MAX_HINTS])
        path, edit, text = plausible[0]
        if (
            len(plausible) > 1
            or not exhausted
            or not _is_in_change(case, path, edit.line)
            or not _tests_notice_faults(engine, path, text, edit)
        ):
            return RungResult(
                hints=hints,
                note=f"{len(plausible)} one-line edits turn the tests green; passed on as hints",
            )
        patch = diff_file(path, (read_original(case, path) or "").encode(), text.encode())
        proposal = Proposal(
            self.name,
            patch,
            f"{edit.name} at {path}:{edit.line}",
            f"the line {path}:{edit.line} is wrong",
        )
        judgement = judge(proposal)
        if judgement.is_accepted:  # a hint would be about the very patch that is offered
            return RungResult(judgement, outcome=judgement.outcome)
        return RungResult(None, hints, outcome=judgement.outcome)


def search_edits(
    case: RepairCase,
    engine: WarmEngine,
    *,
    most_plausible: int = 8,
    seconds: float = _SEARCH_SECONDS,
    thorough: bool = True,
) -> tuple[list[PlausibleEdit], bool]:
    """Plausible edits, the likeliest first, and whether the whole space was tried.

    Without `thorough` the search ends when it has gone on after the first find for as long as that took.
    """
    scores = {(path, line): score for path, line, score in rank_lines(case, engine)[:_MAX_LINES]}
    texts = {
        path: read_original(case, path) or "" for path in dict.fromkeys(path for path, _ in scores)
    }
    with name_failed_input("the suspect lines"):
        likely, exhausted = run_in_child(
            _select_likely_edits, texts, scores, set(_changed_lines(case))
        )
    todo = [(path, edit, edit.apply_to(texts[path])) for path, edit in likely]
    verdicts = engine.try_all(
        [{path: text} for path, _, text in todo],
        most_green=most_plausible,
        as_long_again=not thorough,
        swaps_first=True,
        seconds=min(seconds, case.stop.left),
    )
    found = [todo[at] for at, verdict in enumerate(verdicts) if verdict.green]
    all_tried = len(verdicts) == len(todo) and all(verdict.how != "untried" for verdict in verdicts)
    with name_failed_input("what was found"):
        return run_in_child(_sort_by_new_lint_findings, found, texts), exhausted and all_tried


def _select_likely_edits(
    texts: Mapping[str, str],
    scores: Mapping[tuple[str, int], float],
    changed: Collection[tuple[str, int]],
) -> tuple[list[tuple[str, SourceEdit]], bool]:
    """The edits of the suspect lines, the likeliest first, within a limit of memory, and whether these are all."""
    todo: list[tuple[float, str, SourceEdit]] = []
    for path, text in texts.items():
        if len(text) > _LONGEST:
            continue
        make_edits = find_edits(path)
        lines = [line for where, line in scores if where == path]
        for edit in make_edits(text, lines) if make_edits is not None else ():
            place = path, edit.line
            weight = scores.get(place, 0.0) * edit.prior * (3 if place in changed else 1)
            todo.append((weight, path, edit))
    todo.sort(key=lambda weighted: -weighted[0])
    left, chosen = _MOST_HELD, list[tuple[str, SourceEdit]]()
    for _, path, edit in todo[:_MAX_EDITS]:
        left -= len(texts[path]) + len(edit.new)
        if left < 0:
            break
        chosen.append((path, edit))
    return chosen, len(chosen) == len(todo)


def _sort_by_new_lint_findings(
    found: Sequence[PlausibleEdit], texts: Mapping[str, str]
) -> list[PlausibleEdit]:
    """Sort edits that bring new lint findings or unread names after the others."""
    from regreen.gate.checks.lint import find_new_errors

    def penalty(plausible_edit: PlausibleEdit) -> int:
        path, _, text = plausible_edit
        before = texts[path]
        fresh = find_new_errors(path, before, text, "F841,F811,B018,B007,RET503")
        return len(fresh) + len(_find_unread_names(text) - _find_unread_names(before))

    return sorted(found, key=penalty)


def _find_unread_names(text: str) -> set[str]:
    """Names that are assigned and never read: a repair seldom adds one."""
    names = [
        node
        for node in ast.walk(parse_python(text) or ast.Module([], []))
        if isinstance(node, ast.Name)
    ]
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    return {node.id for node in names if isinstance(node.ctx, ast.Store)} - read


def _changed_lines(case: RepairCase) -> list[tuple[str, int]]:
    if case.base is None:
        return []
    return [
        (file.path, number)
        for file in changed_files(case.git, case.base, case.rev)
        for number, _ in file.added_lines
    ]


def _is_in_change(case: RepairCase, path: str, line: int) -> bool:
    return (path, line) in set(_changed_lines(case))


def _tests_notice_faults(engine: WarmEngine, path: str, text: str, edit: SourceEdit) -> bool:
    """Whether the tests notice mutants of the repaired line."""
    make_mutants = find_mutation(path, warm=True)
    mutants = run_in_child(make_mutants, text, [edit.line]) if make_mutants is not None else ()
    trial = [{path: mutant.apply_to(text)} for mutant in mutants]
    verdicts = engine.try_all(trial, seconds=30)
    return bool(verdicts) and sum(
        not verdict.green for verdict in verdicts
    ) >= _MIN_NOTICED_SHARE * len(verdicts)


def _format_hint(case: RepairCase, edit_with_text: PlausibleEdit) -> str:
    path, edit, text = edit_with_text
    before = (read_original(case, path) or "").splitlines()
    after = text.splitlines()
    was = before[edit.line - 1].strip() if edit.line <= len(before) else ""
    now = after[edit.line - 1].strip() if edit.line <= len(after) else ""
    return f"{path}:{edit.line}: with `{now[:120]}` for `{was[:120]}` the tests pass; seldom the right repair, but look there"
