"""Finds the part of a change whose revert makes the failing command pass: whole pieces first, then lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from regreen.code.file_change import parse_python
from regreen.code.hunks import ChangePiece, apply_pieces, diff_files, split_into_lines, split_pieces
from regreen.code.python_calls import is_module
from regreen.fixers.case import RepairCase
from regreen.fixers.warm_engine import WarmEngine
from regreen.runs.ddmin import SubsetTest, minimize_in_batches

MAX_UNASKED_LINES = 5
"""Lines that may go without a person's word."""
_MOST_TRIES = 3  # pieces that would each be enough
_MOST_ROUNDS = 4
_MOST_PIECES = 400
_MOST_CUT = 200  # lines of a part that is cut: pairing them takes the cube of their number
_TIME_SHARE = 0.5  # of the time left, for all candidates: what is found has to be verified


@dataclass(frozen=True)
class RevertedPart:
    """A part of a change whose revert is enough.

    `lines` counts what it touches; `where` names its places. `is_all`: the change has nothing else, and it is more
    than one small piece. `is_cut`: it is finer than the pieces that the change was made in.
    """

    patch: str
    lines: int
    where: str
    is_all: bool = False
    is_cut: bool = False


def split_difference(now: Mapping[str, str], then: Mapping[str, str]) -> list[ChangePiece]:
    """The pieces in which two states differ; empty if there are too many to try."""
    found = split_pieces(now, then)
    return found if len(found) <= _MOST_PIECES else []


def find_guilty_parts(
    case: RepairCase, now: Mapping[str, str], then: Mapping[str, str]
) -> Iterator[RevertedPart]:
    """The parts of a change whose undoing turns the command green, each found when it is asked for.

    Each piece that is enough alone, the smallest first and only a few of them; where none is, what delta debugging
    leaves of all. A part of more lines than may go unasked is offered cut down to its guilty lines first. Where the
    project's own tests have refused a part, the search begins again among those that keep the tests it broke.

    Args:
        case: the failing command, at the commit that has the change.
        now: source files as they are, by path.
        then: the same files with the change undone.
    """
    search = _PartSearch(case, now, then)
    offered: set[str] = set()
    for _ in range(_MOST_ROUNDS):
        search.guard_broken_tests()
        for part in _search_parts(search):
            if part.patch not in offered:
                offered.add(part.patch)
                yield part
                if search.has_new_refusals():
                    break
        else:
            return


class _PartSearch:
    """Tries subsets of a change's pieces within a time limit."""

    def __init__(self, case: RepairCase, now: Mapping[str, str], then: Mapping[str, str]) -> None:
        self.now, self.then = now, then
        self.parts = split_difference(now, then)
        self._case = case
        self._left = case.stop.left * _TIME_SHARE
        self._engine = WarmEngine(case)
        self._held: frozenset[str] = frozenset()
        self._keeper: WarmEngine | None = None

    def has_new_refusals(self) -> bool:
        """Whether the project's tests have refused a part since the last check."""
        return self._case.suite is not None and self._case.suite.fallen != self._held

    @property
    def guards_suite(self) -> bool:
        """Whether candidates are also run against tests that an earlier part broke."""
        return self._keeper is not None

    def guard_broken_tests(self) -> None:
        """Reject candidates that break a test which an earlier part broke."""
        suite = self._case.suite
        if suite is None or not self.has_new_refusals():
            return
        self._held = suite.fallen
        trial = suite.select_tests(self._held)
        if trial is not None:
            job = replace(self._case.job, trial=trial)
            wanted = dict.fromkeys(self._held, "failed")  # they have to pass, like those that fail
            self._keeper = WarmEngine(replace(self._case, job=job, passing=wanted, wide=None))

    def try_options(self, options: Sequence[Sequence[ChangePiece]]) -> list[bool]:
        """Which subsets are enough, up to the first that is; fewer if time ran out."""
        candidates = [apply_pieces(self.now, self.then, option) for option in options]
        sound = [
            at for at, candidate in enumerate(candidates) if _still_compiles(self.now, candidate)
        ]
        reached = len(options)
        if self._keeper is not None:
            sound, reached = self._find_green(self._keeper, candidates, sound, reached, first=False)
        green, reached = self._find_green(self._engine, candidates, sound, reached, first=True)
        return [at in green for at in range(reached)]

    def _find_green(
        self,
        engine: WarmEngine,
        candidates: Sequence[Mapping[str, str]],
        tried: Sequence[int],
        reached: int,
        *,
        first: bool,
    ) -> tuple[list[int], int]:
        """The green candidates among those tried, and up to which index all are decided."""
        started = self._case.stop.now()
        verdicts = engine.try_all(
            [candidates[at] for at in tried], stop_at_green=first, seconds=self._left
        )
        self._left -= self._case.stop.now() - started
        green = [at for at, verdict in zip(tried, verdicts, strict=False) if verdict.green]
        return green, tried[len(verdicts)] if len(verdicts) < len(tried) else reached


def _search_parts(search: _PartSearch) -> Iterator[RevertedPart]:
    now, then = search.now, search.then
    none = True
    for guilty in _find_guilty_sets(search.parts, search.try_options):
        none = False
        whole = _make_part(now, then, guilty, is_all=len(guilty) == len(search.parts))
        if MAX_UNASKED_LINES < whole.lines <= _MOST_CUT:
            lines = split_into_lines(guilty, now, then)
            enough = len(lines) > 1 and any(search.try_options([lines]))
            cut = _make_part(
                now,
                then,
                minimize_in_batches(lines, search.try_options) if enough else lines,
                is_cut=True,
            )
            if cut.lines < whole.lines:
                yield cut
        yield whole
    if (
        none
        and search.guards_suite
        and sum(piece.line_count for piece in search.parts) <= _MOST_CUT
    ):
        # no set of whole hunks is enough: only some lines of a hunk have to go
        lines = split_into_lines(search.parts, now, then)
        least = minimize_in_batches(lines, search.try_options)
        if len(least) < len(lines):
            yield _make_part(now, then, least, is_cut=True)


def _find_guilty_sets(
    parts: list[ChangePiece], test: SubsetTest[ChangePiece]
) -> Iterator[list[ChangePiece]]:
    rest = sorted(parts, key=lambda piece: piece.line_count)
    found = 0
    while rest and found < _MOST_TRIES:
        verdicts = test([[piece] for piece in rest])
        at = next((number for number, good in enumerate(verdicts) if good), None)
        if at is None:
            break
        found += 1
        yield [rest[at]]
        rest = rest[at + 1 :]
    if not found and len(parts) > 1 and any(test([parts])):
        yield minimize_in_batches(parts, test)


def _make_part(
    now: Mapping[str, str],
    then: Mapping[str, str],
    guilty: Sequence[ChangePiece],
    *,
    is_all: bool = False,
    is_cut: bool = False,
) -> RevertedPart:
    changed = apply_pieces(now, then, guilty)
    patch = diff_files(
        {path: text.encode() for path, text in now.items()},
        {path: text.encode() for path, text in changed.items()},
    )
    where = ", ".join(f"{piece.path}:{piece.i1 + 1}" for piece in guilty[:4])
    lines = sum(piece.line_count for piece in guilty)
    return RevertedPart(
        patch, lines, where, is_all and (len(guilty) > 1 or lines > MAX_UNASKED_LINES), is_cut
    )


def _still_compiles(now: Mapping[str, str], changed: Mapping[str, str]) -> bool:
    """Whether every Python file still parses: half a statement is not worth a run."""
    return all(
        parse_python(text) is not None
        for path, text in changed.items()
        if is_module(path) and parse_python(now[path]) is not None
    )
