"""The search as benchmarks outside of this project drive it: a linear history, one outcome at a time.

These names are part of the interface (`docs/interface.md`); nothing in the product uses them. `random.seed` makes the
free evidence of `make_with_evidence` repeatable.
"""

from __future__ import annotations

import random

from regreen.bisect.commit_graph import BEFORE_RANGE, linear_graph
from regreen.bisect.search import CulpritSearch, calibrate_distribution, calibrate_probability


class LinearSearch:
    """Commits 0 (oldest) to n-1; -1 is the good end."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._search = CulpritSearch(linear_graph(n))

    def next_batch(self, k: int = 1) -> list[int]:
        """At most `k` commits to test now; a commit may occur twice."""
        return self._search.next_batch(k)

    def observe(self, index: int, failed: bool) -> None:
        """Update with one outcome."""
        self._search.observe_outcome(index, failed=bool(failed))

    def posterior(self) -> list[float]:
        """Return n + 1 probabilities; the last one: no culprit in this range."""
        return calibrate_distribution(
            [*self._search.commit_probabilities(), self._search.none + self._search.before]
        )

    def best(self) -> tuple[int, float]:
        """The likeliest of these, with its probability."""
        index, probability = self._search.likeliest_commit()
        elsewhere = self._search.none + self._search.before
        if probability >= elsewhere:
            return index, calibrate_probability(probability)
        return self.n, calibrate_probability(elsewhere)


def make(n: int, fn: float, fp: float) -> LinearSearch:  # noqa: ARG001 # the search learns the rates by itself
    """A search without any evidence beyond the range.

    Args:
        n: how many commits the history has.
        fn: how often a broken commit passes.
        fp: how often a good commit fails.
    """
    return LinearSearch(n)


def make_with_evidence(
    n: int, fn: float, fp: float, at_bad: int = 5, at_good: int = 30
) -> LinearSearch:
    """A search with free evidence: runs at the bad end, and the test's history on good commits."""
    search = LinearSearch(n)
    for _ in range(at_bad):
        search.observe(n - 1, random.random() < 1 - fn)  # noqa: S311 # a simulation
    for _ in range(at_good):
        search.observe(BEFORE_RANGE, random.random() < fp)  # noqa: S311 # a simulation
    return search
