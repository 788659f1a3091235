"""How much likelier some commits are than others before any test, kept from misleading the search by much."""

from __future__ import annotations

import math
from collections.abc import Sequence

_TRUSTED = 0.75
"""The share of the prior that follows the weights; the rest is spread evenly, so that being wrong costs two bits."""


def floored(weights: Sequence[float]) -> list[float]:
    """The weights, mixed with an even spread and rounded to powers of two around 1; weights of 0 stay 0.

    However wrong the weights are, no commit that may be the culprit gets less than a quarter of an even share, less
    the rounding. Powers of two, because the search handles commits of equal weight together.
    """
    allowed = sum(weight > 0 for weight in weights)
    whole = sum(weights)
    if not whole:
        return [0.0] * len(weights)
    return [
        2.0 ** round(math.log2(_TRUSTED * weight * allowed / whole + 1 - _TRUSTED))
        if weight > 0
        else 0.0
        for weight in weights
    ]
