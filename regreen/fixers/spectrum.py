"""Which lines failing tests run and passing tests do not: Ochiai's measure."""

from __future__ import annotations

import math
from collections import Counter

from regreen.fixers.case import Case
from regreen.fixers.checks.paths import is_source
from regreen.fixers.engine import Engine


def ranked(case: Case, engine: Engine | None = None) -> list[tuple[str, int, float]]:
    """Source lines as (path, line, suspicion), most suspect first; empty where nothing could be traced."""
    engine = engine or Engine(case)
    runs = engine.spectrum()
    failing = set(engine.failing)
    total = sum(1 for test, _ in runs if test in failing)
    red: Counter[tuple[str, int]] = Counter()
    green: Counter[tuple[str, int]] = Counter()
    for test, lines in runs:
        for path, numbers in lines.items():
            if (
                is_source(path)
                and path.endswith(".py")
                and not path.startswith((".regreen", ".venv"))
            ):
                (red if test in failing else green).update((path, number) for number in numbers)
    found = [
        (path, line, times / math.sqrt(total * (times + green[path, line])))
        for (path, line), times in red.items()
    ]
    return sorted(found, key=lambda one: (-one[2], one[0], one[1]))
