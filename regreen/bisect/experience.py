"""Failure rates as past bisections of a repository showed them: the prior for its next one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from regreen.bisect.rates import Rates, prior

_STRENGTH = 10.0  # so many past bisections count as much as the default prior
_LATEST = 20  # the default prior keeps a third of the weight, so that it costs 1.6 bits at most to be unlike the past


@dataclass(frozen=True, slots=True)
class Past:
    """What the runs of a bisection that found its culprit came to, on either side of it."""

    failed_with: int
    passed_with: int
    failed_without: int
    passed_without: int


def learned(past: Sequence[Past], rates: Sequence[Rates] | None = None) -> tuple[Rates, ...]:
    """The prior after some bisections, oldest first: pairs of rates that fit them weigh more.

    Each bisection spreads one unit of weight over the pairs that could have led to its counts; the default prior
    has as much weight as ten of them.
    """
    pairs = tuple(rates or prior())
    latest = past[-_LATEST:]
    weights = [_STRENGTH * pair.weight for pair in pairs]
    for one in latest:
        weights = [have + share for have, share in zip(weights, _shares(pairs, one), strict=True)]
    whole = sum(weights)
    return tuple(
        replace(pair, weight=weight / whole) for pair, weight in zip(pairs, weights, strict=True)
    )


def _shares(pairs: Sequence[Rates], past: Past) -> list[float]:
    """How likely each pair is, given the counts."""
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
