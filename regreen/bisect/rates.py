"""What is believed of failure rates before anything was run: a finite prior over pairs of rates.

A test at a commit that contains the culprit fails with the first rate of a pair, at any other commit with the
second. About half of all regressions are taken to be deterministic, one in six to be flaky but clean before, the
rest to be flaky on both sides. Large jumps are likelier than small ones, and so are clean ones; a jump that is too
small to blame anybody for has no weight: that is what makes "nothing broke here" decidable.

Tests are chosen by these weights, but what is stated weighs unsteady failures more (`Rates.doubt`): the wrong answers
that remained in simulation were nearly all given early, when the few runs of a flaky test happened to look like
those of a steady one. benchmarks/bisect.md has the measurements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

_FLOOR = 1e-6  # no single outcome may rule the truth out
_BAD = (1.0, 0.98, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
_GOOD = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
_DETERMINISTIC, _CLEAN, _FLAKY = 0.53, 0.18, 0.29


@dataclass(frozen=True, slots=True)
class Rates:
    """One hypothesis of how often the test fails, and its prior weight.

    `doubt` is how many times heavier it weighs when a probability is stated than when the next test is chosen.
    """

    weight: float
    if_bad: float
    if_good: float
    doubt: float = 1.0


def prior() -> tuple[Rates, ...]:
    """The default prior; weights sum to one."""
    clean = [(bad**0.3, bad, 0.0) for bad in _BAD[1:]]
    flaky = [
        ((bad - good) ** 2.5 / good**0.1, bad, good)
        for bad in _BAD
        for good in _GOOD
        if _is_jump(bad, good)
    ]
    return (
        Rates(_DETERMINISTIC, 1 - _FLOOR, _FLOOR),
        *_scaled(clean, _CLEAN),
        *_scaled(flaky, _FLAKY),
    )


def to_be_proved(rates: Sequence[Rates]) -> tuple[Rates, ...]:
    """The same, for a search whose answer is run again before it is given.

    The proof runs the culprit and its parents anew, and what speaks against it goes back into the search. So most of
    the doubt can be left to it: its cube root is kept.
    """
    return tuple(replace(pair, doubt=pair.doubt ** (1 / 3)) for pair in rates)


def _is_jump(bad: float, good: float) -> bool:
    """Whether the test got so much worse that a commit may be blamed."""
    slack = 1e-9
    return bad - good >= 0.25 - slack or (bad >= 4 * good - slack and bad - good >= 0.09 - slack)


def _scaled(rows: list[tuple[float, float, float]], share: float) -> list[Rates]:
    total = sum(weight for weight, _, _ in rows)
    return [
        Rates(
            share * weight / total,
            min(bad, 1 - _FLOOR),
            max(good, _FLOOR),
            _doubt(bad, good),
        )
        for weight, bad, good in rows
    ]


def _doubt(bad: float, good: float) -> float:
    """More, the oftener a broken commit passes, and more again where good commits fail often."""
    if bad > 0.92:
        often = 1.0
    elif bad > 0.75:
        often = 1.5
    else:
        often = 2.0 if bad > 0.55 else 4.0
    return often * (3.0 if good > 0.15 else 1.0)
