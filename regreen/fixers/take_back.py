"""Which part of a change, taken back, makes the failing command pass: whole pieces first, then lines of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from regreen.fixers.case import Case
from regreen.fixers.checks.change import parse_python
from regreen.fixers.diffs import diff_files
from regreen.fixers.engine import Engine
from regreen.fixers.hunks import Piece, Test, lines_of, pieces, smallest, with_only

UNASKED = 5
"""Lines that may go without a person's word."""
_MOST_TRIES = 3  # pieces that would each be enough
_MOST_ROUNDS = 4
_MOST_PIECES = 400
_MOST_CUT = 200  # lines of a part that is cut: pairing them takes the cube of their number
_SHARE = 0.5  # of the time left, for all candidates: what is found has to be verified


@dataclass(frozen=True)
class Part:
    """A part of a change that is enough to take back.

    `lines` counts what it touches; `where` names its places. `is_all`: the change has nothing else, and it is more
    than one small piece. `is_cut`: it is finer than the pieces that the change was made in.
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
    leaves of all. A part of more lines than may go unasked is offered cut down to its guilty lines first. Where the
    project's own tests have refused a part, the search begins again among those that keep the tests it broke.

    Args:
        case: the failing command, at the commit that has the change.
        now: source files as they are, by path.
        then: the same files with the change undone.
    """
    search = _Search(case, now, then)
    offered: set[str] = set()
    for _ in range(_MOST_ROUNDS):
        search.hold()
        for part in _found(search):
            if part.patch not in offered:
                offered.add(part.patch)
                yield part
                if search.learned():
                    break
        else:
            return


class _Search:
    """Tries subsets of a change's pieces, within one span of time."""

    def __init__(self, case: Case, now: Mapping[str, str], then: Mapping[str, str]) -> None:
        self.now, self.then = now, then
        self.parts = parts_of(now, then)
        self._case = case
        self._left = case.stop.left * _SHARE
        self._engine = Engine(case)
        self._held: frozenset[str] = frozenset()
        self._keeper: Engine | None = None

    def learned(self) -> bool:
        """Whether the project's tests have refused something since they were last held."""
        return self._case.suite is not None and self._case.suite.fallen != self._held

    @property
    def holds(self) -> bool:
        """Whether tests of the project's are held against what is tried."""
        return self._keeper is not None

    def hold(self) -> None:
        """From now on, what breaks a test that was broken before is no part to take back."""
        suite = self._case.suite
        if suite is None or not self.learned():
            return
        self._held = suite.fallen
        trial = suite.of(self._held)
        if trial is not None:
            job = replace(self._case.job, trial=trial)
            wanted = dict.fromkeys(self._held, "failed")  # they have to pass, like those that fail
            self._keeper = Engine(replace(self._case, job=job, passing=wanted, wide=None))

    def test(self, options: Sequence[Sequence[Piece]]) -> list[bool]:
        """Which of the subsets are enough to take back, up to the first that is; fewer where time ran out."""
        candidates = [with_only(self.now, self.then, option) for option in options]
        sound = [at for at, one in enumerate(candidates) if _compiles(self.now, one)]
        reached = len(options)
        if self._keeper is not None:
            sound, reached = self._green(self._keeper, candidates, sound, reached, first=False)
        green, reached = self._green(self._engine, candidates, sound, reached, first=True)
        return [at in green for at in range(reached)]

    def _green(
        self,
        engine: Engine,
        candidates: Sequence[Mapping[str, str]],
        tried: Sequence[int],
        reached: int,
        *,
        first: bool,
    ) -> tuple[list[int], int]:
        """The green ones among those tried, and how far all of them are decided."""
        started = self._case.stop.now()
        verdicts = engine.try_all(
            [candidates[at] for at in tried], stop_at_green=first, seconds=self._left
        )
        self._left -= self._case.stop.now() - started
        green = [at for at, one in zip(tried, verdicts, strict=False) if one.green]
        return green, tried[len(verdicts)] if len(verdicts) < len(tried) else reached


def _found(search: _Search) -> Iterator[Part]:
    now, then = search.now, search.then
    none = True
    for guilty in _guilty_sets(search.parts, search.test):
        none = False
        whole = _part(now, then, guilty, is_all=len(guilty) == len(search.parts))
        if UNASKED < whole.lines <= _MOST_CUT:
            lines = lines_of(guilty, now, then)
            enough = len(lines) > 1 and any(search.test([lines]))
            cut = _part(now, then, smallest(lines, search.test) if enough else lines, is_cut=True)
            if cut.lines < whole.lines:
                yield cut
        yield whole
    if none and search.holds and sum(one.size for one in search.parts) <= _MOST_CUT:
        # some lines of a hunk are to go and others to stay: no hunk is the answer, and neither are all of them
        lines = lines_of(search.parts, now, then)
        least = smallest(lines, search.test)
        if len(least) < len(lines):
            yield _part(now, then, least, is_cut=True)


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
