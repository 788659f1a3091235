"""The shrink rung: which part of the change itself, taken back, makes the command green.

A few lines are proposed outright; more only to a person, who knows whether the rest still makes sense.
"""

from __future__ import annotations

from regreen.fixers.case import Case, Climbed, Judge, Judgement, Proposal, RungName
from regreen.fixers.checks.paths import is_source
from regreen.fixers.gate import changed_files
from regreen.fixers.take_back import UNASKED, Part, guilty_parts, parts_of

_MOST_LINES = 20  # that a person is asked about


class Shrink:
    """Delta-debugs the change under repair; a patch only where very little has to be taken back."""

    name: RungName = "shrink"

    def climb(self, case: Case, judge: Judge) -> Climbed:
        """Find the smallest part to take back; propose it if it is not much, else pass it on as a hint."""
        if case.base is None:
            note = "no base was given, so there is no change to shrink"
            return Climbed(note=note, outcome="skipped")
        now, then = _texts(case)
        if not parts_of(now, then):
            none = now == then
            return Climbed(
                note="the change touches no existing source" if none else "the change is too large"
            )
        hints: list[str] = []
        refused: Judgement | None = None
        for part in guilty_parts(case, now, then):
            hints.append(
                f"taking back {_lines(part)} of the change ({part.where}) makes the command green:\n{part.patch[:3000]}"
            )
            if part.lines > _MOST_LINES or part.is_all:
                note = (
                    f"the guilty part of the change has {part.lines} lines: too much to take back"
                )
                return Climbed(hints=tuple(hints), note=note)
            judgement = judge(self._proposal(case, part))
            if judgement.stands:
                return Climbed(judgement, tuple(hints), outcome=judgement.outcome)
            refused = judgement
        if refused is not None:
            return Climbed(hints=tuple(hints), outcome=refused.outcome)
        return Climbed(note="taking the change's source back does not help")

    def _proposal(self, case: Case, part: Part) -> Proposal:
        small = part.lines <= UNASKED and (not part.is_cut or case.tests_hold())
        asks = f"takes back {_lines(part)} of the change: look whether the rest still makes sense"
        return Proposal(
            self.name,
            part.patch,
            f"took back {part.lines} of the change's lines at {part.where}",
            f"the change at {part.where} broke it",
            approval=None if small else asks,
        )


def _lines(part: Part) -> str:
    return f"{part.lines} line{'s' if part.lines != 1 else ''}"


def _texts(case: Case) -> tuple[dict[str, str], dict[str, str]]:
    """The change's source files now, and as they were before it."""
    now: dict[str, str] = {}
    then: dict[str, str] = {}
    assert case.base is not None  # noqa: S101 - the caller has looked
    for file in changed_files(case.git, case.base, case.rev):
        mine = is_source(file.path) and file.path not in case.trial.overlay and not file.binary
        if mine and file.old is not None and file.new is not None:
            now[file.path], then[file.path] = file.new, file.old
    return now, then
