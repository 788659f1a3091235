"""Which changed package broke it, where all that a commit did is to move versions: bisection over the upgrades.

The upgrades between two lock files are a line, like commits: "the first j of them done". The search is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from regreen.bisect.graph import BEFORE, line
from regreen.bisect.lockfiles import Upgrade, partly, upgrades
from regreen.bisect.memory import Run
from regreen.bisect.runner import Judge
from regreen.bisect.search import Search, calibrated
from regreen.codebase.trial import Trial


@dataclass(frozen=True, slots=True)
class Blamed:
    """The upgrade that broke it, how sure that is, and in how many runs it was found."""

    upgrade: Upgrade | None
    probability: float
    tests: int


def blame(
    trial: Trial,
    path: str,
    old: str,
    new: str,
    *,
    run: Callable[[Trial], Run],
    judge: Judge,
    confidence: float = 0.99,
    max_tests: int = 60,
) -> Blamed:
    """Find the upgrade, by running the same commit with the pinned versions changed step by step.

    Args:
        trial: the command; its setup installs what `path` pins.
        path: where the file lies that pins versions.
        old: its content where the command passes.
        new: its content where it fails.
        run: runs a trial at the commit that fails.
        judge: tells the failure looked for from others.
        confidence: the probability at which an upgrade is named.
        max_tests: give up after so many runs.
    """
    changes = upgrades(path, old, new)
    if len(changes) < 2:
        return Blamed(changes[0] if changes else None, 1.0 if changes else 0.0, 0)
    search = Search(line(len(changes)))
    barred: set[int] = set()
    tests = 0
    while tests < max_tests:
        best, probability = search.best()
        if calibrated(probability) >= confidence:
            return Blamed(changes[best], calibrated(probability), tests)
        if search.none + search.before >= confidence:
            break
        points = search.next_batch(barred=barred)
        if not points:
            break
        content = partly(path, old, new, points[0] - BEFORE)
        overlay = {**trial.overlay, path: content.encode()}
        outcome, _ = judge(run(replace(trial, overlay=overlay)))
        tests += 1
        if outcome in {"pass", "fail"}:
            search.observe(points[0], failed=outcome == "fail")
        else:
            barred.add(points[0])
    return Blamed(None, calibrated(search.best()[1]), tests)
