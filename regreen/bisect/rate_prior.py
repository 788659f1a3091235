"""The prior over failure rates: a finite set of pairs of rates.

A test at a commit that contains the culprit fails with the first rate of a pair, at any other commit with the
second. About half of all regressions are assumed to be deterministic, one in six to be flaky but clean before, the
rest to be flaky on both sides. Large jumps are likelier than small ones, and so are clean ones; a jump that is too
small to blame a commit has no weight: that makes "nothing broke here" decidable.

Tests are chosen by these weights, but reported probabilities weigh unsteady failures more (`doubt`): nearly all
wrong answers in simulation were given early, when the few runs of a flaky test happened to look like
those of a steady one. benchmarks/bisect.md has the measurements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

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
        if _is_jump(bad, good)
    ]
    return (
        RateHypothesis(_DETERMINISTIC, 1 - _MIN_PROBABILITY, _MIN_PROBABILITY),
        *_scale_weights(clean, _CLEAN),
        *_scale_weights(flaky, _FLAKY),
    )


def relax_for_proof(rates: Sequence[RateHypothesis]) -> tuple[RateHypothesis, ...]:
    """The prior for a search whose answer is proven before it is reported.

    The proof runs the culprit and its parents again, and contradicting runs go back into the search. So the proof
    removes most of the doubt: its cube root is kept.
    """
    return tuple(replace(pair, doubt=pair.doubt ** (1 / 3)) for pair in rates)


def _is_jump(bad: float, good: float) -> bool:
    """Whether the test got so much worse that a commit may be blamed."""
    slack = 1e-9
    return bad - good >= 0.25 - slack or (bad >= 4 * good - slack and bad - good >= 0.09 - slack)


def _scale_weights(rows: list[tuple[float, float, float]], share: float) -> list[RateHypothesis]:
    total = sum(weight for weight, _, _ in rows)
    return [
        RateHypothesis(
            share * weight / total,
            min(bad, 1 - _MIN_PROBABILITY),
            max(good, _MIN_PROBABILITY),
            _doubt_factor(bad, good),
        )
        for weight, bad, good in rows
    ]


def _doubt_factor(bad: float, good: float) -> float:
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


def learn_prior(
    past: Sequence[RateHistory], rates: Sequence[RateHypothesis] | None = None
) -> tuple[RateHypothesis, ...]:
    """The prior after some bisections, oldest first: pairs of rates that fit them weigh more.

    Each bisection spreads one unit of weight over the pairs that could have led to its counts; the default prior
    weighs as much as ten bisections.
    """
    pairs = tuple(rates or default_prior())
    latest = past[-_MAX_BISECTIONS:]
    weights = [_PRIOR_STRENGTH * pair.weight for pair in pairs]
    for record in latest:
        weights = [
            have + share
            for have, share in zip(weights, _pair_likelihoods(pairs, record), strict=True)
        ]
    whole = sum(weights)
    return tuple(
        replace(pair, weight=weight / whole) for pair, weight in zip(pairs, weights, strict=True)
    )


def _pair_likelihoods(pairs: Sequence[RateHypothesis], past: RateHistory) -> list[float]:
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
