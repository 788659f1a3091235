"""What a test at a commit costs, so that the search can weigh it against what it would tell."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence

from regreen.bisect.graph import BEFORE
from regreen.bisect.memory import Run

_OFF_TRUNK = 1.1  # CI has tested the first parents, and one of them names the pull request
_HOPELESS = 0.04  # the chance that a commit between two untestable ones can be tested


def build_cost(runs: Sequence[Run]) -> float:
    """How many runs a setup that was not made before is worth, as seen so far."""
    seen: set[str] = set()
    first: list[float] = []
    again: list[float] = []
    for run in runs:
        (again if run.sha in seen else first).append(run.seconds)
        seen.add(run.sha)
    if not first or not again or not sum(again):
        return 0.0
    return max(0.0, (sum(first) / len(first)) / (sum(again) / len(again)) - 1)


def prices(
    *,
    tried: Collection[int],
    testable: Collection[int],
    untestable: Collection[int],
    trunk: Collection[int],
    build: float,
) -> Callable[[int], float]:
    """The price of each point: a run and maybe a build, divided by the chance that the commit can be tested.

    Commits that cannot be tested come in stretches: between one that could and one that could not, the chance falls
    from one to the other, so that the search halves its way to the edge instead of feeling along it.

    Args:
        tried: points that ran before; their setup is made.
        testable: points whose runs counted.
        untestable: points whose runs did not.
        trunk: the first parents.
        build: see `build_cost`.
    """
    known = sorted({*testable, *untestable})
    bad = frozenset(untestable)

    def price(point: int) -> float:
        paid = 1.0 + (0.0 if point in tried else build)
        if point != BEFORE and point not in trunk:
            paid *= _OFF_TRUNK
        return paid / _chance(point, known, bad) if bad else paid

    return price


def _chance(point: int, known: Sequence[int], bad: Collection[int]) -> float:
    """The chance that a commit can be tested, by its nearest neighbours in the order of history."""
    at = bisect_left(known, point)
    if at < len(known) and known[at] == point:
        return _HOPELESS if point in bad else 1.0
    older = known[at - 1] if at else None
    newer = known[at] if at < len(known) else None
    if older is None or newer is None:
        nearest = older if newer is None else newer
        return 0.5 if nearest in bad else 1.0
    if (older in bad) == (newer in bad):
        return _HOPELESS if older in bad else 1.0
    failing, working = (older, newer) if older in bad else (newer, older)
    return max(_HOPELESS, abs(point - failing) / abs(working - failing))
