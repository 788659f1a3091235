"""The probability of each commit, before and after its tests: exact Bayes over the culprit and the failure rates, on the commit graph.

A hypothesis is a culprit (or none, or before) with a pair of failure rates. Commits that no test so far has
distinguished form a group and share one likelihood, so the work depends on the number of tests and hardly on the
number of commits. The state is a function of the graph, the prior and the list of observations alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import mul

from regreen.bisect.commit_graph import BEFORE_RANGE, CommitGraph

_MIN_PROBABILITY = 1e-6  # no single outcome may rule the truth out
_BAD_RATES = (1.0, 0.98, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
_GOOD_RATES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
_DETERMINISTIC, _CLEAN, _FLAKY = 0.53, 0.18, 0.29


@dataclass(frozen=True, slots=True)
class RateHypothesis:
    """One hypothesis of how often the test fails, with its prior weight.

    `doubt` is the factor on its weight for reported probabilities, compared with choosing the next test.
    """

    weight: float
    if_bad: float
    if_good: float
    doubt: float = 1.0


def default_prior() -> tuple[RateHypothesis, ...]:
    """The default prior; weights sum to one."""
    clean = [(bad**0.3, bad, 0.0) for bad in _BAD_RATES[1:]]
    flaky = [
        ((bad - good) ** 2.5 / good**0.1, bad, good)
        for bad in _BAD_RATES
        for good in _GOOD_RATES
        if _is_blamable_jump(bad, good)
    ]
    return (
        RateHypothesis(_DETERMINISTIC, 1 - _MIN_PROBABILITY, _MIN_PROBABILITY),
        *_make_weighted_hypotheses(clean, _CLEAN),
        *_make_weighted_hypotheses(flaky, _FLAKY),
    )


def soften_doubt_for_proof(rates: Sequence[RateHypothesis]) -> tuple[RateHypothesis, ...]:
    """The prior for a search whose answer is proven before it is reported.

    The proof runs the culprit and its parents again, and contradicting runs go back into the search. So the proof
    removes most of the doubt: its cube root is kept.
    """
    return tuple(replace(pair, doubt=pair.doubt ** (1 / 3)) for pair in rates)


def _is_blamable_jump(bad: float, good: float) -> bool:
    """Whether the test got so much worse that a commit may be blamed."""
    slack = 1e-9
    return bad - good >= 0.25 - slack or (bad >= 4 * good - slack and bad - good >= 0.09 - slack)


def _make_weighted_hypotheses(
    rows: list[tuple[float, float, float]], share: float
) -> list[RateHypothesis]:
    total = sum(weight for weight, _, _ in rows)
    return [
        RateHypothesis(
            share * weight / total,
            min(bad, 1 - _MIN_PROBABILITY),
            max(good, _MIN_PROBABILITY),
            _weigh_doubt(bad, good),
        )
        for weight, bad, good in rows
    ]


def _weigh_doubt(bad: float, good: float) -> float:
    """The doubt: larger the more often a broken commit passes, and larger again if good commits often fail."""
    if bad > 0.92:
        often = 1.0
    elif bad > 0.75:
        often = 1.5
    else:
        often = 2.0 if bad > 0.55 else 4.0
    return often * (3.0 if good > 0.15 else 1.0)


# Failure rates of a repository's past bisections, as the prior for its next one.

_PRIOR_STRENGTH = 10.0  # this many past bisections count as much as the default prior
_MAX_BISECTIONS = 20  # the default prior keeps a third of the weight, so that an unusual test costs 1.6 bits at most


@dataclass(frozen=True, slots=True)
class RateHistory:
    """The runs of a bisection that found its culprit: counts with and without the culprit."""

    failed_with: int
    passed_with: int
    failed_without: int
    passed_without: int


def learn_prior(past: Sequence[RateHistory]) -> tuple[RateHypothesis, ...]:
    """The prior after some bisections, oldest first: pairs of rates that fit them weigh more.

    Each bisection spreads one unit of weight over the pairs that could have led to its counts; the default prior
    weighs as much as ten bisections.
    """
    pairs = default_prior()
    latest = past[-_MAX_BISECTIONS:]
    weights = [_PRIOR_STRENGTH * pair.weight for pair in pairs]
    for record in latest:
        weights = [
            have + share
            for have, share in zip(weights, _pair_posteriors(pairs, record), strict=True)
        ]
    whole = sum(weights)
    return tuple(
        replace(pair, weight=weight / whole) for pair, weight in zip(pairs, weights, strict=True)
    )


def _pair_posteriors(pairs: Sequence[RateHypothesis], past: RateHistory) -> list[float]:
    """The likelihood of each pair, given the counts."""
    logs = [
        math.log(pair.weight)
        + past.failed_with * math.log(pair.if_bad)
        + past.passed_with * math.log1p(-pair.if_bad)
        + past.failed_without * math.log(pair.if_good)
        + past.passed_without * math.log1p(-pair.if_good)
        for pair in pairs
    ]
    highest = max(logs)
    shares = [math.exp(value - highest) for value in logs]
    whole = sum(shares)
    return [share / whole for share in shares]


NONE_PRIOR = 0.05
BEFORE_PRIOR = 0.10
_NEGLIGIBLE_PROBABILITY = 1e-4


class CommitGroup:
    """Commits that no test has distinguished: their bits, their prior mass, one likelihood for each pair of rates.

    `mass` is used to choose tests, `reported` is the mass that is reported (see `RateHypothesis.doubt`).
    """

    __slots__ = ("_members", "mask", "mass", "reported", "row", "weight")

    def __init__(self, mask: int, weight: float, row: list[float]) -> None:
        self.mask = mask
        self.weight = weight
        self.row = row
        self.mass = self.reported = 0.0
        self._members: list[int] | None = None

    @property
    def members(self) -> list[int]:
        """The commits, oldest first."""
        if self._members is None:
            self._members = list(set_bits(self.mask))
        return self._members


class CulpritPosterior:
    """The probabilities, given the observations.

    Args:
        history: the range.
        weights: how much likelier one commit is than another before any test; 0: it cannot be the culprit.
            No weight counts for less than a quarter of an even share: misleading weights cost at most two tests if the failure is deterministic.
        rates: the prior over failure rates.
        none: prior of "nothing here broke it".
        before: prior of "it was broken before this range".
    """

    def __init__(
        self,
        history: CommitGraph,
        *,
        weights: Sequence[float] | None = None,
        rates: Sequence[RateHypothesis] | None = None,
        none: float = NONE_PRIOR,
        before: float = BEFORE_PRIOR,
    ) -> None:
        self.graph = history
        self._rates = tuple(rates or default_prior())
        self.if_bad = [pair.if_bad for pair in self._rates]
        self.if_good = [pair.if_good for pair in self._rates]
        self._bad_pass = [1 - rate for rate in self.if_bad]
        self._good_pass = [1 - rate for rate in self.if_good]
        self._doubt = [pair.doubt for pair in self._rates]
        self.classes = _group_by_weight(
            mix_with_uniform(weights) if weights is not None else [1.0] * len(history)
        )
        every = 0
        for mask, _ in self.classes:
            every |= mask
        start = [pair.weight for pair in self._rates]
        total = self.sum_prior_weights(every)
        share = (1 - none - before) / total if total else 0.0
        self._share = share
        self.groups = (
            [CommitGroup(every, total * share, [w * total * share for w in start])] if total else []
        )
        self.if_none = [w * none for w in start]
        self.if_before = [w * before for w in start]
        self.tested: set[int] = set()
        self._normalize_weights()

    # --- observations --------------------------------------------------------------------------

    def observe_outcome(self, point: int, *, failed: bool) -> None:
        """Update with one outcome at a commit (or at `BEFORE`)."""
        if point not in self.tested:
            self.tested.add(point)
            self._split_groups(self.graph.contained_commits(point))
        inside = self.graph.contained_commits(point)
        holds = self.if_bad if failed else self._bad_pass
        lacks = self.if_good if failed else self._good_pass
        for group in self.groups:
            group.row = list(map(mul, group.row, holds if group.mask & inside else lacks))
        self.if_none = list(map(mul, self.if_none, lacks))
        self.if_before = list(map(mul, self.if_before, holds))
        self._normalize_weights()

    def _split_groups(self, inside: int) -> None:
        groups: list[CommitGroup] = []
        for group in self.groups:
            within, without = group.mask & inside, group.mask & ~inside
            if not within or not without:
                groups.append(group)
                continue
            for mask in (within, without):
                weight = self.sum_prior_weights(mask) * self._share
                scale = weight / group.weight
                groups.append(CommitGroup(mask, weight, [value * scale for value in group.row]))
        self.groups = groups

    def _normalize_weights(self) -> None:
        """Scale all weights to the sum one."""
        masses = [sum(group.row) for group in self.groups]
        total = math.fsum((*masses, *self.if_none, *self.if_before))
        scale = 1 / total
        for group, mass in zip(self.groups, masses, strict=True):
            group.row = [value * scale for value in group.row]
            group.mass = mass * scale
        self.if_none = [value * scale for value in self.if_none]
        self.if_before = [value * scale for value in self.if_before]
        stated = [dot_product(group.row, self._doubt) for group in self.groups]
        none, before = (
            dot_product(self.if_none, self._doubt),
            dot_product(self.if_before, self._doubt),
        )
        whole = math.fsum((*stated, none, before))
        for group, mass in zip(self.groups, stated, strict=True):
            group.reported = mass / whole
        self.none, self.before = none / whole, before / whole

    # --- probabilities -------------------------------------------------------------------------

    def commit_probabilities(self) -> list[float]:
        """The probability of each commit, parents before children."""
        result = [0.0] * len(self.graph)
        for group in self.groups:
            for mask, weight in self.classes:
                each = self._single_probability(group, weight)
                for at in set_bits(group.mask & mask):
                    result[at] = each
        return result

    def likeliest_commit(self) -> tuple[int, float]:
        """The likeliest commit (the newest of equals) and its probability; (`BEFORE`, 0.0) if none is possible."""
        best, most = BEFORE_RANGE, 0.0
        for group in self.groups:
            for mask, weight in self.classes:
                each = self._single_probability(group, weight)
                if each > most and group.mask & mask:
                    best, most = (group.mask & mask).bit_length() - 1, each
        return best, most

    def containment_probability(self, point: int) -> float:
        """The probability that a commit contains the culprit, or that the fault is older than the range."""
        inside = self.graph.contained_commits(point)
        shares = (
            g.reported * self.sum_prior_weights(g.mask & inside) * self._share / g.weight
            for g in self.groups
        )
        return math.fsum((self.before, *shares))

    def likeliest_group(self) -> tuple[int, float]:
        """The likeliest group of commits that no test has distinguished: bits, probability."""
        if not self.groups:
            return 0, 0.0
        group = max(self.groups, key=lambda group: group.reported)
        return group.mask, group.reported

    def credible_set(self, confidence: float) -> list[tuple[int, float]]:
        """The smallest set of commits that holds the culprit with `confidence`, likeliest first.

        If all commits together are less likely than that, because the range may hold no culprit: all that matter.
        """
        ranked = sorted(
            enumerate(self.commit_probabilities()), key=lambda pair: (-pair[1], -pair[0])
        )
        chosen: list[tuple[int, float]] = []
        mass = 0.0
        for at, probability in ranked:
            if mass >= confidence or probability < _NEGLIGIBLE_PROBABILITY / len(ranked):
                break
            chosen.append((at, probability))
            mass += probability
        return chosen

    def entropy(self) -> float:
        """The entropy of the culprit, in bits."""
        missing = 0.0
        for group in self.groups:
            for mask, weight in self.classes:
                each = self._single_probability(group, weight)
                if each > 0:
                    missing -= (group.mask & mask).bit_count() * each * math.log2(each)
        for mass in (self.none, self.before):
            missing -= mass * math.log2(mass) if mass > 0 else 0.0
        return missing

    def _single_probability(self, group: CommitGroup, weight: float) -> float:
        """The probability of one commit of `weight` in a group."""
        return group.reported * weight * self._share / group.weight

    def sum_prior_weights(self, mask: int) -> float:
        """The sum of the prior weights of some commits."""
        return sum(weight * (mask & members).bit_count() for members, weight in self.classes)

    def failure_rates(self) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
        """The rates with their probability: at commits that contain the culprit, and at the others."""
        pooled = [sum(values) for values in zip(*(group.row for group in self.groups), strict=True)]
        pooled = pooled or [0.0] * len(self._rates)
        bad = [first + second for first, second in zip(pooled, self.if_before, strict=True)]
        good = [first + second for first, second in zip(pooled, self.if_none, strict=True)]
        return _pool_rates(self.if_bad, bad), _pool_rates(self.if_good, good)


def set_bits(mask: int) -> Iterable[int]:
    """The positions of the set bits, lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def dot_product(first: Sequence[float], second: Sequence[float]) -> float:
    """The dot product."""
    total: float = sum(map(mul, first, second))
    return total


def _group_by_weight(weights: Sequence[float]) -> list[tuple[int, float]]:
    """One mask for all commits of equal weight; commits of weight 0 are in none."""
    masks: dict[float, int] = {}
    for at, weight in enumerate(weights):
        if weight > 0:
            masks[weight] = masks.get(weight, 0) | 1 << at
    return [(mask, weight) for weight, mask in masks.items()]


def _pool_rates(rates: list[float], masses: list[float]) -> list[tuple[float, float]]:
    pooled: dict[float, float] = {}
    for rate, mass in zip(rates, masses, strict=True):
        pooled[rate] = pooled.get(rate, 0.0) + mass
    return sorted(pooled.items())


# Prior weights of commits, limited so that wrong weights cannot mislead the search by much.

_MAX_PRIOR_SHARE = 0.75
"""The share of the prior that follows the weights; the rest is spread evenly, so that being wrong costs two bits."""


def mix_with_uniform(weights: Sequence[float]) -> list[float]:
    """The weights, mixed with a uniform distribution and rounded to powers of two around 1; weights of 0 stay 0.

    However wrong the weights are, no possible culprit gets less than a quarter of a uniform share, less the
    rounding. Powers of two, because the search handles commits of equal weight together.
    """
    allowed = sum(weight > 0 for weight in weights)
    whole = sum(weights)
    if not whole:
        return [0.0] * len(weights)
    return [
        2.0 ** round(math.log2(_MAX_PRIOR_SHARE * weight * allowed / whole + 1 - _MAX_PRIOR_SHARE))
        if weight > 0
        else 0.0
        for weight in weights
    ]
