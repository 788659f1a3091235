"""The confidence of a claim: a small logistic model over observations, never a number from a model's answer.

The weights start at a prior and are fitted to outcomes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import mul

from regreen.domain.models import Signals

Weights = tuple[float, ...]
"""One number for each of `features`."""

# Near the fit to benchmarks/judged_claims.jsonl ("would be changed before merging"), which has no claim that was run and
# few that were refuted or not tried: those weights are set so that nothing is posted without a verdict or a proof. How
# many readings of one model agree told nothing there beyond the second reader's verdict.
PRIOR_WEIGHTS: Weights = (
    -1.1,  # always
    3.4,  # the second reader: it holds
    0.3,  # it is unsure
    -2.6,  # it refutes the claim
    4.5,  # how sure the claimant is
    5.0,  # proven by a test
    1.2,  # it fails on the head, with nothing to compare
    -4.0,  # the test passes on the head
    -1.5,  # true, but maintainers might not change the code
    -2.6,  # they would not
)
_PRIOR_SPREAD: Weights = (0.5,) * len(PRIOR_WEIGHTS)
"""How far each weight may move on little evidence (the standard deviation of its prior)."""
_RARE_DOUBT = 2.0
"""How much more "perhaps they would act" counts of what is rare: however sure its readers are, it is not posted."""
_LOWEST, _HIGHEST = 0.01, 0.99
_MAX_NEWTON_STEPS = 25
_MIN_STEP = 1e-6


def estimate_confidence(signals: Signals, weights: Weights = PRIOR_WEIGHTS) -> float:
    """The probability, between .01 and .99, that a maintainer who checks the claim agrees with it."""
    return min(_HIGHEST, max(_LOWEST, _sigmoid(_dot_product(extract_features(signals), weights))))


def extract_features(signals: Signals) -> Weights:
    """The model's features. A verdict weighs by its reader's certainty: nothing at .5, fully at .9 and above."""
    weight = min(1.0, max(0.0, (signals.certainty - 0.5) / 0.4))
    return (
        1.0,
        weight * (signals.verdict == "holds"),
        # true, but older than the change: few act on it, and those who do are right
        weight * (signals.verdict in {"unsure", "as_before"}),
        weight * (signals.verdict == "refuted"),
        signals.sure - 0.6,
        float(signals.proof == "proven"),
        float(signals.proof == "red_on_head"),
        float(signals.proof == "disproven"),
        (_RARE_DOUBT if signals.reach == "rare" else 1.0) * (signals.worth == "perhaps"),
        float(signals.worth == "no"),
    )


def fit_weights(
    outcomes: Iterable[tuple[Signals, bool, float]], prior: Weights = PRIOR_WEIGHTS
) -> Weights:
    """The likeliest weights, given the prior and outcomes (signals, right or not, weight).

    Newton's method on the logistic likelihood with a Gaussian prior: without outcomes the result is the prior, with
    hundreds the data decide. A step that makes the weights less likely is halved: if all similar claims
    were right, a full step overshoots the maximum and never returns.
    """
    rows = [
        (extract_features(signals), float(right), weight) for signals, right, weight in outcomes
    ]
    size = len(prior)
    weights = list(prior)
    for _ in range(_MAX_NEWTON_STEPS if rows else 0):
        gradient = [(w - p) / s**2 for w, p, s in zip(weights, prior, _PRIOR_SPREAD, strict=True)]
        bend = [
            [1 / s**2 if i == j else 0.0 for j in range(size)] for i, s in enumerate(_PRIOR_SPREAD)
        ]
        for x, right, weight in rows:
            p = _sigmoid(_dot_product(x, weights))
            active = [i for i in range(size) if x[i]]
            for i in active:
                gradient[i] += weight * (p - right) * x[i]
                for j in active:
                    bend[i][j] += weight * p * (1 - p) * x[i] * x[j]
        step = _solve_linear(bend, gradient)
        here, part = _negative_log_posterior(weights, rows, prior), 1.0
        stepped = _step_weights(weights, step, part)
        while part > _MIN_STEP and _negative_log_posterior(stepped, rows, prior) > here:
            part /= 2
            stepped = _step_weights(weights, step, part)
        weights = stepped
        if max(map(abs, step)) < 1e-9:
            break
    return tuple(weights)


def _step_weights(weights: Sequence[float], step: Sequence[float], part: float) -> list[float]:
    return [w - part * d for w, d in zip(weights, step, strict=True)]


def _negative_log_posterior(
    weights: Sequence[float], rows: Sequence[tuple[Weights, float, float]], prior: Weights
) -> float:
    """The objective of the fit: the negative logarithm of likelihood and prior, up to a constant."""
    total = sum(
        ((w - p) / s) ** 2 / 2 for w, p, s in zip(weights, prior, _PRIOR_SPREAD, strict=True)
    )
    for x, right, weight in rows:
        z = _dot_product(x, weights)
        total += weight * (max(z, 0.0) + math.log1p(math.exp(-abs(z))) - right * z)
    return total


def _solve_linear(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Gaussian elimination; the prior keeps the matrix positive definite, so no pivot is zero."""
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


def _dot_product(first: Sequence[float], second: Sequence[float]) -> float:
    return math.fsum(map(mul, first, second))


def _sigmoid(value: float) -> float:
    bounded = min(40.0, max(-40.0, value))
    return 1 / (1 + math.exp(-bounded))
