"""Which part of a change, taken back, makes the failing command pass: whole pieces first, then lines of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from regreen.fixers.case import Case
from regreen.fixers.checks.change import parse_python
from regreen.fixers.diffs import diff_files
from regreen.fixers.engine import Engine
from regreen.fixers.hunks import Piece, Test, lines_of, pieces, smallest, with_only

UNASKED = 5
"""Lines that may go without a person's word."""
_MOST_TRIES = 3  # pieces that would each be enough
_MOST_PIECES = 400
_MOST_CUT = 200  # lines of a part that is cut into lines: pairing them takes the cube of their number
_SHARE = 0.5  # of the time left, for all candidates: what is found has to be verified


@dataclass(frozen=True)
class Part:
    """A part of a change that is enough to take back.

    `lines` counts what it touches; `where` names its places; `is_all` where that is more than one small piece and the change has nothing else; `is_cut`
    where it is finer than the pieces that the change was made in.
    """

    patch: str
    lines: int
    where: str
    is_all: bool = False
    is_cut: bool = False


def parts_of(now: Mapping[str, str], then: Mapping[str, str]) -> list[Piece]:
    """The pieces in which two states differ; empty where they are too many to be tried."""
    found = pieces(now, then)
    return found if len(found) <= _MOST_PIECES else []


def guilty_parts(case: Case, now: Mapping[str, str], then: Mapping[str, str]) -> Iterator[Part]:
    """The parts of a change whose undoing turns the command green, each found when it is asked for.

    Each piece that is enough alone, the smallest first and only a few of them; where none is, what delta debugging
    leaves of all. A part of more lines than may go unasked is offered cut down to its guilty lines first.

    Args:
        case: the failing command, at the commit that has the change.
        now: source files as they are, by path.
        then: the same files with the change undone.
    """
    engine = Engine(case)
    until = case.stop.now() + case.stop.left * _SHARE

    def test(options: Sequence[Sequence[Piece]]) -> list[bool]:
        candidates = [with_only(now, then, option) for option in options]
        sound = [at for at, one in enumerate(candidates) if _compiles(now, one)]
        verdicts = engine.try_all(
            [candidates[at] for at in sound],
            stop_at_green=True,
            seconds=until - case.stop.now(),
        )
        if len(verdicts) == len(sound):
            good = {at for at, one in zip(sound, verdicts, strict=True) if one.green}
            return [at in good for at in range(len(options))]
        reached = sound[len(verdicts)]  # the first that was not tried
        good = {at for at, one in zip(sound, verdicts, strict=False) if one.green}
        return [at in good for at in range(reached)]

    parts = parts_of(now, then)
    for guilty in _guilty_sets(parts, test):
        whole = _part(now, then, guilty, is_all=len(guilty) == len(parts))
        if UNASKED < whole.lines <= _MOST_CUT:
            lines = lines_of(guilty, now, then)
            least = smallest(lines, test) if len(lines) > 1 and any(test([lines])) else lines
            cut = _part(now, then, least, is_cut=True)
            if cut.lines < whole.lines:
                yield cut
        yield whole


def _guilty_sets(parts: list[Piece], test: Test) -> Iterator[list[Piece]]:
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


def _part(
    now: Mapping[str, str],
    then: Mapping[str, str],
    guilty: Sequence[Piece],
    *,
    is_all: bool = False,
    is_cut: bool = False,
) -> Part:
    changed = with_only(now, then, guilty)
    patch = diff_files(
        {path: text.encode() for path, text in now.items()},
        {path: text.encode() for path, text in changed.items()},
    )
    where = ", ".join(f"{piece.path}:{piece.i1 + 1}" for piece in guilty[:4])
    lines = sum(piece.size for piece in guilty)
    return Part(patch, lines, where, is_all and (len(guilty) > 1 or lines > UNASKED), is_cut)


def _compiles(now: Mapping[str, str], changed: Mapping[str, str]) -> bool:
    """Whether no Python file stops being one: half a statement is not worth a run."""
    return all(
        parse_python(text) is not None
        for path, text in changed.items()
        if path.endswith(".py") and parse_python(now[path]) is not None
    )
