"""The shrink rung: which part of the change itself, taken back, makes the command green.

A few lines are proposed outright; more only to a person, who knows whether the rest still makes sense.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from regreen.fixers.case import Case, Climbed, Judge, Judgement, Proposal, RungName
from regreen.fixers.checks.paths import is_source
from regreen.fixers.diffs import diff_files
from regreen.fixers.engine import Engine
from regreen.fixers.gate import changed_files
from regreen.fixers.hunks import Piece, Test, pieces, smallest, with_only

_SMALL = 5  # lines that may go unasked
_MOST_LINES = 20  # that a person is asked about
_MOST_TRIES = 3  # pieces that would each be enough
_MOST_PIECES = 400
_SHARE = 0.3


class Shrink:
    """Delta-debugs the change under repair; a patch only where very little has to be taken back."""

    name: RungName = "shrink"

    def climb(self, case: Case, judge: Judge) -> Climbed:
        """Find the smallest part to take back; propose it if it is not much, else pass it on as a hint."""
        if case.base is None:
            return Climbed(
                note="no base was given, so there is no change to shrink", outcome="skipped"
            )
        now, then = _texts(case)
        parts = pieces(now, then)
        if not parts or len(parts) > _MOST_PIECES:
            return Climbed(
                note="the change touches no existing source"
                if not parts
                else "the change is too large"
            )
        engine = Engine(case)
        seconds = case.stop.left * _SHARE

        def test(options: Sequence[Sequence[Piece]]) -> list[bool]:
            candidates = [with_only(now, then, option) for option in options]
            return [
                verdict.green
                for verdict in engine.try_all(candidates, stop_at_green=True, seconds=seconds)
            ]

        hints: list[str] = []
        refused: Judgement | None = None
        for guilty in _guilty_sets(parts, test):
            changed = with_only(now, then, guilty)
            patch = diff_files(
                {path: text.encode() for path, text in now.items()},
                {path: text.encode() for path, text in changed.items()},
            )
            lines = sum(piece.size for piece in guilty)
            where = ", ".join(f"{piece.path}:{piece.i1 + 1}" for piece in guilty[:4])
            hints.append(
                f"taking back {lines} line{'s' if lines != 1 else ''} of the change ({where}) makes the command green:\n{patch[:3000]}"
            )
            all_of_it = len(guilty) == len(parts) and (len(parts) > 1 or lines > _SMALL)
            if lines > _MOST_LINES or all_of_it:
                note = f"the guilty part of the change has {lines} lines: too much to take back"
                return Climbed(hints=tuple(hints), note=note)
            asks = (
                f"takes back {lines} lines of the change: look whether the rest still makes sense"
            )
            judgement = judge(
                Proposal(
                    self.name,
                    patch,
                    f"took back {lines} of the change's lines at {where}",
                    f"the change at {where} broke it",
                    approval=asks if lines > _SMALL else None,
                )
            )
            if judgement.stands:
                return Climbed(judgement, tuple(hints), outcome=judgement.outcome)
            refused = judgement
        if refused is not None:
            return Climbed(hints=tuple(hints), outcome=refused.outcome)
        return Climbed(note="taking the change's source back does not help")


def _guilty_sets(parts: list[Piece], test: Test) -> Iterator[list[Piece]]:
    """Each piece that is enough alone, the smallest first, a few of them; where none is, what ddmin leaves of all."""
    rest = sorted(parts, key=lambda one: one.size)
    found = 0
    while rest and found < _MOST_TRIES:
        verdicts = test([[one] for one in rest])
        at = next((number for number, good in enumerate(verdicts) if good), None)
        if at is None:
            break
        found += 1
        yield [rest[at]]
        rest = rest[at + 1 :]
    if not found and len(parts) > 1 and any(test([parts])):
        yield smallest(parts, test)


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
