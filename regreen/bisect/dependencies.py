"""Which changed package broke it, where all that a commit did is to move versions: bisection over the upgrades.

The upgrades between two requirement files are a line, like commits: "the first j of them done". The search is the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from regreen.bisect.graph import BEFORE, line
from regreen.bisect.memory import Run
from regreen.bisect.runner import Judge
from regreen.bisect.search import Search, calibrated
from regreen.codebase.trial import Trial

_PINNED = re.compile(
    r"^(?P<name>[A-Za-z0-9][\w.-]{0,200})(?:\[[^\]\n]{0,200}\])?\s{0,8}==\s{0,8}(?P<version>[^\s;#\\]{1,100})"
)
_FILES = re.compile(
    r"(?:^|/)(?:[\w.-]*requirements[\w.-]*\.(?:txt|lock|in)|constraints[\w.-]*\.txt)$"
)


@dataclass(frozen=True, slots=True)
class Upgrade:
    """One package that changed; `old` or `new` is None where it came or went."""

    name: str
    old: str | None
    new: str | None

    def __str__(self) -> str:
        return f"{self.name} {self.old or 'absent'} -> {self.new or 'removed'}"


@dataclass(frozen=True, slots=True)
class Blamed:
    """The upgrade that broke it, how sure that is, and in how many runs it was found."""

    upgrade: Upgrade | None
    probability: float
    tests: int


def is_requirements(path: str) -> bool:
    """Whether a file pins versions, one a line, as pip reads them."""
    return _FILES.search(path) is not None


def upgrades(old: str, new: str) -> tuple[Upgrade, ...]:
    """What changed between two requirement files, in the order of the new one, removals last."""
    before, after = _pins(old), _pins(new)
    changed = [
        Upgrade(name, before.get(name), version)
        for name, version in after.items()
        if before.get(name) != version
    ]
    return (*changed, *(Upgrade(name, before[name], None) for name in before if name not in after))


def partly(old: str, new: str, done: int) -> str:
    """The new file with only the first `done` upgrades made."""
    changes = upgrades(old, new)
    undone = {upgrade.name: upgrade for upgrade in changes[done:]}
    blocks = _blocks(old)
    kept: list[str] = []
    for name, block in _entries(new):
        if name is None or name not in undone:
            kept.append(block)
        elif undone[name].old is not None:
            kept.append(blocks[name])
    kept += [blocks[upgrade.name] for upgrade in undone.values() if upgrade.new is None]
    return "\n".join(kept) + "\n"


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
    """Find the upgrade, by running the same commit with the requirement file changed step by step.

    Args:
        trial: the command; its setup installs what `path` pins.
        path: where the requirement file lies.
        old: its content where the command passes.
        new: its content where it fails.
        run: runs a trial at the commit that fails.
        judge: tells the failure looked for from others.
        confidence: the probability at which an upgrade is named.
        max_tests: give up after so many runs.
    """
    changes = upgrades(old, new)
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
        content = partly(old, new, points[0] - BEFORE)
        overlay = {**trial.overlay, path: content.encode()}
        outcome, _ = judge(run(replace(trial, overlay=overlay)))
        tests += 1
        if outcome in {"pass", "fail"}:
            search.observe(points[0], failed=outcome == "fail")
        else:
            barred.add(points[0])
    return Blamed(None, calibrated(search.best()[1]), tests)


def _pins(text: str) -> dict[str, str]:
    return {
        name: match["version"]
        for name, block in _entries(text)
        if name is not None and (match := _PINNED.match(block))
    }


def _blocks(text: str) -> dict[str, str]:
    return {name: block for name, block in _entries(text) if name is not None}


def _entries(text: str) -> list[tuple[str | None, str]]:
    """Lines with what continues them (hashes), under the package's normalised name; None for other lines."""
    entries: list[tuple[str | None, str]] = []
    open_block = False
    for row in text.splitlines():
        if open_block:
            name, block = entries[-1]
            entries[-1] = (name, f"{block}\n{row}")
        else:
            match = _PINNED.match(row)
            name = re.sub(r"[-_.]+", "-", match["name"]).lower() if match else None
            entries.append((name, row))
        open_block = row.rstrip().endswith("\\")
    return entries
