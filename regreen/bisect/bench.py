"""The search as benchmarks drive it: a line of commits, one outcome at a time.

`random.seed` makes the free evidence of `make_with_evidence` repeatable.
"""

from __future__ import annotations

import random

from regreen.bisect.graph import BEFORE, line
from regreen.bisect.search import Search, calibrated, stated


class Linear:
    """Commits 0 (oldest) to n-1; -1 is the good end."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._search = Search(line(n))

    def next_batch(self, k: int = 1) -> list[int]:
        """At most `k` commits to test now; a commit may come twice."""
        return self._search.next_batch(k)

    def observe(self, index: int, failed: bool) -> None:
        """Take one outcome into account."""
        self._search.observe(index, failed=bool(failed))

    def posterior(self) -> list[float]:
        """Give n + 1 probabilities; the last one: no culprit in this range."""
        return stated([*self._search.posterior(), self._search.none + self._search.before])

    def best(self) -> tuple[int, float]:
        """The likeliest of these, and its probability."""
        index, probability = self._search.best()
        elsewhere = self._search.none + self._search.before
        if probability >= elsewhere:
            return index, calibrated(probability)
        return self.n, calibrated(elsewhere)


def make(n: int, fn: float, fp: float) -> Linear:  # noqa: ARG001 - the rates stay unknown to the search
    """A search that knows nothing but the range."""
    return Linear(n)


def make_with_evidence(n: int, fn: float, fp: float, at_bad: int = 5, at_good: int = 30) -> Linear:
    """A search that was told what costs nothing: runs at the bad end, and the test's history on good commits."""
    search = Linear(n)
    for _ in range(at_bad):
        search.observe(n - 1, random.random() < 1 - fn)  # noqa: S311 - a simulation
    for _ in range(at_good):
        search.observe(BEFORE, random.random() < fp)  # noqa: S311 - a simulation
    return search
