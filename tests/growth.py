"""How the cost of a piece of work grows with its input, measured in processor time."""

from __future__ import annotations

import time
from collections.abc import Callable


def growth(prepare: Callable[[int], Callable[[], object]], small: int = 16_000) -> float:
    """How many times as much four times the input costs: the lowest of some measurements.

    Args:
        prepare: makes the work of a size in letters; making it is not measured.
        small: the smaller of the two sizes.
    """
    little, much = prepare(small), prepare(4 * small)
    best = float("inf")
    for _ in range(4):
        base = max(_seconds(little) for _ in range(2))
        best = min(best, _seconds(much) / max(base, 0.001))  # less is noise
        if best < 5:
            break
    return best


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
