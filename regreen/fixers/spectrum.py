"""Ranks lines by Ochiai's measure: run by failing tests and seldom by passing ones."""

from __future__ import annotations

import math
from collections import Counter

from regreen.code.paths import is_source
from regreen.fixers.case import RepairCase
from regreen.fixers.warm_engine import WarmEngine
from regreen.languages.registry import has_capability


def rank_lines(case: RepairCase, engine: WarmEngine | None = None) -> list[tuple[str, int, float]]:
    """Source lines as (path, line, suspicion), most suspect first; empty where nothing could be traced."""
    engine = engine or WarmEngine(case)
    runs = engine.trace_tests()
    failing = set(engine.failing)
    total = sum(1 for test, _ in runs if test in failing)
    red: Counter[tuple[str, int]] = Counter()
    green: Counter[tuple[str, int]] = Counter()
    for test, lines in runs:
        for path, numbers in lines.items():
            if (
                is_source(path)
                and has_capability(path, "warm engine")
                and not path.startswith((".regreen", ".venv"))
            ):
                (red if test in failing else green).update((path, number) for number in numbers)
    found = [
        (path, line, times / math.sqrt(total * (times + green[path, line])))
        for (path, line), times in red.items()
    ]
    return sorted(found, key=lambda scored: (-scored[2], scored[0], scored[1]))
