"""How sure to be of a claim: a small logistic model over what was seen, never a number from a model's mouth.

The weights begin at a prior and are fitted on outcomes as those come in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import mul

from regreen.models import Signals

Weights = tuple[float, ...]
"""One number for each of `features`."""

# The prior: of the issues that one of twelve review tools raised alone .20 held, of those that two others raised
# too .62; a reader that tries to refute and cannot is worth about as much again. A test that fails on the head and
# passes on the base settles it. At best .19 of the comments of tools led to a change, of those of people .60, and most
# of both were true: so far apart are what is worth saying and what perhaps is not.
_ALONE = math.log(0.20 / 0.80)
PRIOR: Weights = (
    _ALONE,  # always
    math.log(0.62 / 0.38) - _ALONE,  # two readings agree
    0.5,  # three do
    2.4,  # the second reader: it holds
    -0.6,  # unsure
    -2.6,  # refuted
    0.8,  # how sure the claimants are
    5.0,  # proven by a test
    1.2,  # red on the head, nothing to compare with
    -4.0,  # the test passes on the head
    math.log(0.19 / 0.81) - math.log(0.60 / 0.40),  # if true, perhaps they change the code
    -2.6,  # they do not
)
_SPREAD: Weights = (0.5, 0.5, 0.3, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5)
"""How far each weight may move on little evidence (the standard deviation of its prior)."""
_LOWEST, _HIGHEST = 0.01, 0.99
_STEPS = 25
_LEAST_STEP = 1e-6


def confidence(signals: Signals, weights: Weights = PRIOR) -> float:
    """The probability that a maintainer who tries it agrees with the claim, between .01 and .99."""
    return min(_HIGHEST, max(_LOWEST, _sigmoid(_dot(features(signals), weights))))


def features(signals: Signals) -> Weights:
    """What the model looks at. A verdict weighs by how certain its reader is: none at .5, whole at .9 and above."""
    weight = min(1.0, max(0.0, (signals.certainty - 0.5) / 0.4))
    return (
        1.0,
        float(signals.readers >= 2),
        float(signals.readers >= 3),
        weight * (signals.verdict == "holds"),
        # true, and not brought by the change: few act on it, and those who do are right
        weight * (signals.verdict in {"unsure", "as_before"}),
        weight * (signals.verdict == "refuted"),
        signals.sure - 0.6,
        float(signals.proof == "proven"),
        float(signals.proof == "red_on_head"),
        float(signals.proof == "disproven"),
        float(signals.worth == "perhaps"),
        float(signals.worth == "no"),
    )


def fit(outcomes: Iterable[tuple[Signals, bool, float]], prior: Weights = PRIOR) -> Weights:
    """The likeliest weights, given the prior and outcomes (signals, right or not, how much that tells).

    Newton's method on the logistic likelihood with a Gaussian prior: without outcomes the prior, with few a little
    of them, with hundreds theirs. A step that would make the weights less likely is halved: where all that looks alike
    was right, a whole one jumps past the summit and never comes back.
    """
    rows = [(features(signals), float(right), weight) for signals, right, weight in outcomes]
    size = len(prior)
    weights = list(prior)
    for _ in range(_STEPS if rows else 0):
        gradient = [(w - p) / s**2 for w, p, s in zip(weights, prior, _SPREAD, strict=True)]
        bend = [[1 / s**2 if i == j else 0.0 for j in range(size)] for i, s in enumerate(_SPREAD)]
        for x, right, weight in rows:
            p = _sigmoid(_dot(x, weights))
            seen = [i for i in range(size) if x[i]]
            for i in seen:
                gradient[i] += weight * (p - right) * x[i]
                for j in seen:
                    bend[i][j] += weight * p * (1 - p) * x[i] * x[j]
        step = _solved(bend, gradient)
        here, part = _unlikeliness(weights, rows, prior), 1.0
        there = _moved(weights, step, part)
        while part > _LEAST_STEP and _unlikeliness(there, rows, prior) > here:
            part /= 2
            there = _moved(weights, step, part)
        weights = there
        if max(map(abs, step)) < 1e-9:
            break
    return tuple(weights)


def _moved(weights: Sequence[float], step: Sequence[float], part: float) -> list[float]:
    return [w - part * d for w, d in zip(weights, step, strict=True)]


def _unlikeliness(
    weights: Sequence[float], rows: Sequence[tuple[Weights, float, float]], prior: Weights
) -> float:
    """What the fit makes small: the negative logarithm of likelihood and prior, up to a constant."""
    total = sum(((w - p) / s) ** 2 / 2 for w, p, s in zip(weights, prior, _SPREAD, strict=True))
    for x, right, weight in rows:
        z = _dot(x, weights)
        total += weight * (max(z, 0.0) + math.log1p(math.exp(-abs(z))) - right * z)
    return total


def gap(pairs: Sequence[tuple[float, bool]], edges: Sequence[float] = (0.0, 0.2, 0.5, 0.8, 1.01)) -> float:  # fmt: skip
    """How far stated confidence and the share that was right lie apart, weighed by how many claims each bin has."""
    total = 0.0
    for low, high in pairwise(edges):
        inside = [(c, r) for c, r in pairs if low <= c < high]
        total += abs(sum(c for c, _ in inside) - sum(r for _, r in inside))
    return total / max(1, len(pairs))


def _solved(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Gaussian elimination; the prior keeps the matrix positive definite, so no pivot is nothing."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for i in range(size):
        pivot = rows[i][i]
        rows[i] = [v / pivot for v in rows[i]]
        for k in range(size):
            if k != i and rows[k][i]:
                factor = rows[k][i]
                rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    return [row[-1] for row in rows]


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(map(mul, one, other))


def _sigmoid(value: float) -> float:
    bounded = min(40.0, max(-40.0, value))
    return 1 / (1 + math.exp(-bounded))
