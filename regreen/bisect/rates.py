"""What is believed of failure rates before anything was run: a finite prior over pairs of rates.

A test at a commit that contains the culprit fails with the first rate of a pair, at any other commit with the
second. Three in five regressions are taken to be deterministic, a fifth to be flaky but clean before, the rest to
be flaky on both sides. Large jumps are likelier than small ones, and a jump that is too small to blame anybody for
has no weight: that is what makes "nothing broke here" decidable. benchmarks/bisect.md has the measurements.
"""

from __future__ import annotations

from dataclasses import dataclass

_FLOOR = 1e-6  # no single outcome may rule the truth out
_BAD = (1.0, 0.98, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
_GOOD = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
_DETERMINISTIC, _CLEAN, _FLAKY = 0.60, 0.18, 0.22


@dataclass(frozen=True, slots=True)
class Rates:
    """One hypothesis of how often the test fails, and its prior weight."""

    weight: float
    if_bad: float
    if_good: float


def prior() -> tuple[Rates, ...]:
    """The default prior; weights sum to one."""
    clean = [(bad**0.3, bad, 0.0) for bad in _BAD[1:]]
    flaky = [
        ((bad - good) ** 2, bad, good) for bad in _BAD for good in _GOOD if _is_jump(bad, good)
    ]
    return (
        Rates(_DETERMINISTIC, 1 - _FLOOR, _FLOOR),
        *_scaled(clean, _CLEAN),
        *_scaled(flaky, _FLAKY),
    )


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
        )
        for weight, bad, good in rows
    ]
