"""What is believed of each commit: exact Bayes over the culprit and the failure rates, on the commit graph.

A hypothesis is a culprit (or none, or before) with a pair of failure rates. Commits that every test so far treats
alike form a group and share one likelihood, so the work depends on the number of tests, hardly on the number
of commits. The state is a function of the graph, the prior and the list of observations alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import mul

from regreen.bisect.graph import BEFORE, Graph
from regreen.bisect.rates import Rates, prior
from regreen.bisect.suspicion import floored

NONE_PRIOR = 0.05
BEFORE_PRIOR = 0.10
_NOTHING = 1e-4


class Group:
    """Commits that no test has told apart: their bits, their prior mass, one likelihood for each pair of rates.

    `mass` is what the choice of tests reckons with, `said` what is stated (see `rates.Rates.doubt`).
    """

    __slots__ = ("_members", "mask", "mass", "row", "said", "weight")

    def __init__(self, mask: int, weight: float, row: list[float]) -> None:
        self.mask = mask
        self.weight = weight
        self.row = row
        self.mass = self.said = 0.0
        self._members: list[int] | None = None

    @property
    def members(self) -> list[int]:
        """The commits, oldest first."""
        if self._members is None:
            self._members = list(bits(self.mask))
        return self._members


class Belief:
    """The probabilities, given what was observed.

    Args:
        history: the range.
        weights: how much likelier one commit is than another before any test; 0: it cannot be the culprit.
            They are `floored`: weights that mislead cost two tests at most where the failure is deterministic.
        rates: the prior over failure rates.
        none: prior of "nothing here broke it".
        before: prior of "it was broken before this range".
    """

    def __init__(
        self,
        history: Graph,
        *,
        weights: Sequence[float] | None = None,
        rates: Sequence[Rates] | None = None,
        none: float = NONE_PRIOR,
        before: float = BEFORE_PRIOR,
    ) -> None:
        self.graph = history
        self._rates = tuple(rates or prior())
        self.if_bad = [pair.if_bad for pair in self._rates]
        self.if_good = [pair.if_good for pair in self._rates]
        self._bad_pass = [1 - rate for rate in self.if_bad]
        self._good_pass = [1 - rate for rate in self.if_good]
        self._doubt = [pair.doubt for pair in self._rates]
        self.classes = _classes(floored(weights) if weights is not None else [1.0] * len(history))
        every = 0
        for mask, _ in self.classes:
            every |= mask
        start = [pair.weight for pair in self._rates]
        total = self.weigh(every)
        share = (1 - none - before) / total if total else 0.0
        self._share = share
        self.groups = (
            [Group(every, total * share, [w * total * share for w in start])] if total else []
        )
        self.if_none = [w * none for w in start]
        self.if_before = [w * before for w in start]
        self.tested: set[int] = set()
        self._settle()

    # --- what was seen -------------------------------------------------------------------------

    def observe(self, point: int, *, failed: bool) -> None:
        """Take one outcome at a commit (or at `BEFORE`) into account."""
        if point not in self.tested:
            self.tested.add(point)
            self._split(self.graph.inside(point))
        inside = self.graph.inside(point)
        holds = self.if_bad if failed else self._bad_pass
        lacks = self.if_good if failed else self._good_pass
        for group in self.groups:
            group.row = list(map(mul, group.row, holds if group.mask & inside else lacks))
        self.if_none = list(map(mul, self.if_none, lacks))
        self.if_before = list(map(mul, self.if_before, holds))
        self._settle()

    def _split(self, inside: int) -> None:
        groups: list[Group] = []
        for group in self.groups:
            within, without = group.mask & inside, group.mask & ~inside
            if not within or not without:
                groups.append(group)
                continue
            for mask in (within, without):
                weight = self.weigh(mask) * self._share
                scale = weight / group.weight
                groups.append(Group(mask, weight, [value * scale for value in group.row]))
        self.groups = groups

    def _settle(self) -> None:
        """Scale everything so that the probabilities sum to one."""
        masses = [sum(group.row) for group in self.groups]
        total = math.fsum((*masses, *self.if_none, *self.if_before))
        scale = 1 / total
        for group, mass in zip(self.groups, masses, strict=True):
            group.row = [value * scale for value in group.row]
            group.mass = mass * scale
        self.if_none = [value * scale for value in self.if_none]
        self.if_before = [value * scale for value in self.if_before]
        said = [dot(group.row, self._doubt) for group in self.groups]
        none, before = dot(self.if_none, self._doubt), dot(self.if_before, self._doubt)
        whole = math.fsum((*said, none, before))
        for group, mass in zip(self.groups, said, strict=True):
            group.said = mass / whole
        self.none, self.before = none / whole, before / whole

    # --- what is believed ----------------------------------------------------------------------

    def posterior(self) -> list[float]:
        """The probability of each commit, parents before children."""
        result = [0.0] * len(self.graph)
        for group in self.groups:
            for mask, weight in self.classes:
                each = self._each(group, weight)
                for at in bits(group.mask & mask):
                    result[at] = each
        return result

    def best(self) -> tuple[int, float]:
        """The likeliest commit (the newest of equals) and its probability; (`BEFORE`, 0.0) where none can be."""
        found, most = BEFORE, 0.0
        for group in self.groups:
            for mask, weight in self.classes:
                each = self._each(group, weight)
                if each > most and group.mask & mask:
                    found, most = (group.mask & mask).bit_length() - 1, each
        return found, most

    def contains(self, point: int) -> float:
        """The probability that a commit contains the culprit, or that it was there before the range."""
        inside = self.graph.inside(point)
        shares = (
            g.said * self.weigh(g.mask & inside) * self._share / g.weight for g in self.groups
        )
        return math.fsum((self.before, *shares))

    def likeliest_group(self) -> tuple[int, float]:
        """The commits that no test so far has told apart and that are likeliest together: bits, probability."""
        if not self.groups:
            return 0, 0.0
        group = max(self.groups, key=lambda group: group.said)
        return group.mask, group.said

    def credible(self, confidence: float) -> list[tuple[int, float]]:
        """The smallest set of commits that holds the culprit with `confidence`, likeliest first.

        Where commits together are less likely than that, because nothing here may have broken it: all that matter.
        """
        ranked = sorted(enumerate(self.posterior()), key=lambda pair: (-pair[1], -pair[0]))
        chosen: list[tuple[int, float]] = []
        mass = 0.0
        for at, probability in ranked:
            if mass >= confidence or probability < _NOTHING / len(ranked):
                break
            chosen.append((at, probability))
            mass += probability
        return chosen

    def entropy(self) -> float:
        """Bits still missing about the culprit."""
        missing = 0.0
        for group in self.groups:
            for mask, weight in self.classes:
                each = self._each(group, weight)
                if each > 0:
                    missing -= (group.mask & mask).bit_count() * each * math.log2(each)
        for mass in (self.none, self.before):
            missing -= mass * math.log2(mass) if mass > 0 else 0.0
        return missing

    def _each(self, group: Group, weight: float) -> float:
        """The probability of one commit of `weight` in a group."""
        return group.said * weight * self._share / group.weight

    def weigh(self, mask: int) -> float:
        """The prior weight of some commits together."""
        return sum(weight * (mask & members).bit_count() for members, weight in self.classes)

    def failure_rates(self) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
        """Rates with their probability: at commits that contain the culprit, and at those that do not."""
        pooled = [sum(values) for values in zip(*(group.row for group in self.groups), strict=True)]
        pooled = pooled or [0.0] * len(self._rates)
        bad = [one + two for one, two in zip(pooled, self.if_before, strict=True)]
        good = [one + two for one, two in zip(pooled, self.if_none, strict=True)]
        return _pool(self.if_bad, bad), _pool(self.if_good, good)


def bits(mask: int) -> Iterable[int]:
    """The positions of the bits that are set, lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def dot(one: Sequence[float], other: Sequence[float]) -> float:
    """The sum of the products."""
    total: float = sum(map(mul, one, other))
    return total


def _classes(weights: Sequence[float]) -> list[tuple[int, float]]:
    """Commits of equal weight as one mask each; those of weight 0 in none."""
    masks: dict[float, int] = {}
    for at, weight in enumerate(weights):
        if weight > 0:
            masks[weight] = masks.get(weight, 0) | 1 << at
    return [(mask, weight) for weight, mask in masks.items()]


def _pool(rates: list[float], masses: list[float]) -> list[tuple[float, float]]:
    pooled: dict[float, float] = {}
    for rate, mass in zip(rates, masses, strict=True):
        pooled[rate] = pooled.get(rate, 0.0) + mass
    return sorted(pooled.items())
