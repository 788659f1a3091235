"""Which commit broke it, as probabilities, and which commit to test next: pure, exact, replayable.

`belief` holds the probabilities, `choice` the next test; the state is a function of the graph, the prior and the
list of observations alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from regreen.bisect import choice
from regreen.bisect.belief import Belief
from regreen.bisect.choice import Cost

_CALIBRATION = 1.56


class Search(Belief):
    """Exact Bayes over culprit and failure rates, and the tests that it asks for."""

    def next_batch(
        self,
        count: int = 1,
        *,
        cost: Cost | None = None,
        in_flight: Iterable[int] = (),
        barred: Collection[int] = (),
    ) -> list[int]:
        """The tests worth most, for their cost, given those in flight; a commit may come more than once.

        Args:
            count: how many.
            cost: what testing a commit costs; alike where not given.
            in_flight: tests that run already.
            barred: commits that cannot be tested.
        """
        return choice.choose(self, count, cost=cost, in_flight=in_flight, barred=barred)

    def information(self, point: int) -> float:
        """Bits that one test at `point` tells about the culprit."""
        return choice.information(self, point)


def calibrated(probability: float) -> float:
    """What to state of a computed probability: its odds, half as high again.

    The doubt that goes into the computed one (`rates`) keeps the search from stopping early on what merely looks
    steady; once a failure has shown that it is flaky the same doubt is too much of it. This factor is measured: what
    is stated as 99 % was right as often or oftener (benchmarks/bisect.md).
    """
    odds = _CALIBRATION * probability
    return odds / (odds + 1 - probability)


def stated(probabilities: Sequence[float]) -> list[float]:
    """The distribution with its highest value `calibrated`, the rest scaled to fill."""
    highest = max(probabilities)
    if not 0 < highest < 1:
        return list(probabilities)
    at = probabilities.index(highest)
    said = calibrated(highest)
    scale = (1 - said) / (1 - highest)
    return [said if place == at else value * scale for place, value in enumerate(probabilities)]
