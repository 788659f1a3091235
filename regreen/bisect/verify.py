"""Proof of a culprit: run it and its parents again, and take it back on the bad end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath

from regreen.bisect.experience import Past
from regreen.bisect.hunt import Hunt
from regreen.bisect.memory import Run
from regreen.bisect.result import Verified
from regreen.bisect.runner import Runs
from regreen.ports import Git

_ODDS = 99.0
_MOST_RUNS = 20
_LOOKS = 4
_DOCUMENTS = frozenset({".md", ".rst", ".txt"})


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether the culprit stood up, and what was done; the runs of a proof that failed are evidence like any other.

    `since` is what the commits after it say, where taking it back settled nothing.
    """

    holds: bool
    verified: Verified
    since: Since | None = None


def prove(hunt: Hunt, culprit: int, *, git: Git, runner: Runs, bad: str) -> Proof:
    """Run the culprit and its parents again; if the search still blames it, revert it on the bad end."""
    for sha in (hunt.sha(culprit), *git.commit(hunt.sha(culprit)).parents[:1]):
        runner.expect(sha)
    reverted = git.revert(hunt.sha(culprit), bad)
    if reverted is not None:
        runner.expect(reverted)
    runs = _rerun(hunt, culprit, git, runner)
    doubtful = [run for run in runs if not _as_expected(hunt, culprit, run)]
    if doubtful:
        hunt.add(runs)
        if not hunt.is_sure_of(culprit):
            seen = "; ".join(f"{run.sha[:12]}: {hunt.outcome(run)[0]}" for run in doubtful)
            detail = f"running {hunt.sha(culprit)[:12]} and its parents again did not bear it out ({seen})"
            return Proof(False, Verified(("rerun",), False, detail, len(runs)))
    else:
        hunt.weigh(runs)
        if not hunt.is_sure_of(culprit):
            hunt.log.keep(runs)
            return Proof(False, Verified(("rerun",), False, "", len(runs)))
    if len(runs) < 2:
        return Proof(
            True, Verified((), False, "neither it nor its parents could be run again", len(runs))
        )
    detail = f"run again: {_tally(hunt, runs)}"
    taken_back = _revert(hunt, hunt.sha(culprit), git, runner, bad)
    detail, spent = f"{detail}; {taken_back.detail}", len(runs) + taken_back.runs
    if taken_back.works:
        return Proof(True, Verified(("rerun", "revert"), True, detail, spent))
    looked = since(hunt, culprit, runner)
    spent += len(looked.runs)
    doubts = [run for run in looked.runs if _is_mended(hunt, run)]
    if doubts and looked.mended is None:
        hunt.add(looked.runs)
        if not hunt.is_sure_of(culprit):
            if not doubtful:
                hunt.log.keep(runs)
            detail = f"{detail}; {doubts[0].sha[:12]} passed once, and contains it"
            return Proof(False, Verified(("rerun",), False, detail, spent))
    elif looked.runs and not doubts:
        detail = f"{detail}; {_tally(hunt, list(looked.runs))}, which contain it"
    return Proof(True, Verified(("rerun",), True, detail, spent), looked)


@dataclass(frozen=True, slots=True)
class _Reverted:
    works: bool
    detail: str
    runs: int = 0


@dataclass(frozen=True, slots=True)
class Since:
    """A look at the commits after a culprit; `mended` is one that does not fail, though it contains the culprit."""

    runs: tuple[Run, ...]
    mended: str | None = None


def since(hunt: Hunt, culprit: int, runner: Runs) -> Since:
    """Look whether it failed throughout since the culprit, where the search has looked least.

    Another fault that looks the same may have come and gone before the one that is there now: then a commit in
    between passes, again and again.
    """
    needed = max(2, _needed(hunt)[1])
    runs: list[Run] = []
    seen = {hunt.point(run.sha) for run in hunt.log.runs}
    for at in _least_seen(hunt, culprit, seen):
        runs.append(runner.explore(hunt.sha(at)))
        if not _is_mended(hunt, runs[-1]):
            continue
        again = [runner(hunt.sha(at)) for _ in range(needed)]
        runs += again
        mended = all(_is_mended(hunt, run) for run in again)
        return Since(tuple(runs), hunt.sha(at) if mended else None)
    return Since(tuple(runs))


def _is_mended(hunt: Hunt, run: Run) -> bool:
    outcome, _ = hunt.outcome(run)
    return outcome == ("fail" if hunt.find_fix else "pass")


def _least_seen(hunt: Hunt, culprit: int, seen: set[int]) -> list[int]:
    """Commits that contain the culprit, each in the middle of the longest stretch that nobody looked at."""
    last = len(hunt.history) - 1
    line = [
        at
        for at in range(culprit, last + 1)
        if hunt.history.contains[at] >> culprit & 1
        and (at in {culprit, last} or at not in hunt.barred)
    ]
    looked = sorted({0, len(line) - 1} | {at for at, point in enumerate(line) if point in seen})
    chosen: list[int] = []
    for _ in range(_LOOKS):
        gaps = [(after - before, before) for before, after in pairwise(looked)]
        width, start = max(gaps, default=(0, 0))
        if width < 2:
            break
        middle = start + width // 2
        chosen.append(line[middle])
        looked = sorted([*looked, middle])
    return chosen


def tally(hunt: Hunt, culprit: int) -> Past:
    """What the runs came to on either side of a culprit: experience for the repository's next bisection."""
    counts = {(with_it, failed): 0 for with_it in (True, False) for failed in (True, False)}
    for run in hunt.log.runs:
        outcome, point = hunt.outcome(run)[0], hunt.point(run.sha)
        if outcome in {"pass", "fail"}:
            with_it = bool(hunt.history.inside(point) >> culprit & 1)
            counts[with_it, (outcome == "fail") != hunt.find_fix] += 1
    return Past(counts[True, True], counts[True, False], counts[False, True], counts[False, False])


def _rerun(hunt: Hunt, culprit: int, git: Git, runner: Runs) -> list[Run]:
    """The culprit until it fails again, each parent as often as its passing would convince."""
    hits, passes = _needed(hunt)
    runs: list[Run] = []
    for _ in range(hits):
        runs.append(runner(hunt.sha(culprit)))
        if _as_expected(hunt, culprit, runs[-1]):
            break
    parents = git.commit(hunt.sha(culprit)).parents
    for parent in parents[:1] if hunt.first_parent else parents:
        for _ in range(passes):
            runs.append(runner(parent))
            if hunt.outcome(runs[-1])[0] in {"untestable", "infra"}:
                break
    return runs


def _as_expected(hunt: Hunt, culprit: int, run: Run) -> bool:
    outcome, _ = hunt.outcome(run)
    if outcome in {"untestable", "infra"}:
        return run.sha != hunt.sha(culprit)
    return ((outcome == "fail") != hunt.find_fix) == (run.sha == hunt.sha(culprit))


def _needed(hunt: Hunt) -> tuple[int, int]:
    """How many runs it takes to see the culprit fail once, and for passes elsewhere to be no chance."""
    bad, good = (_average(rates) for rates in hunt.state.failure_rates())
    bad = min(bad, 0.999)
    hits = math.ceil(math.log(1 / _ODDS) / math.log(1 - bad))
    passes = math.ceil(math.log(_ODDS) / math.log(max(1.0001, (1 - min(good, 0.99)) / (1 - bad))))
    return min(hits, _MOST_RUNS), min(passes, _MOST_RUNS)


def _revert(hunt: Hunt, culprit: str, git: Git, runner: Runs, bad: str) -> _Reverted:
    """Take the commit back on the bad end, whole and then its source alone; run that."""
    tried: list[str] = []
    spent = 0
    for what, chosen in (("whole", ()), ("its source alone", source_of(git, culprit))):
        if what != "whole" and not chosen:
            continue
        commit = git.revert(culprit, bad, paths=chosen)
        if commit is None:
            tried.append(f"reverting it ({what}) on {bad[:12]} conflicts")
            continue
        runs = _until_doubt(hunt, runner, commit)
        spent += len(runs)
        outcomes = {hunt.outcome(run)[0] for run in runs}
        wanted = "fail" if hunt.find_fix else "pass"
        if outcomes == {wanted}:
            times = f", {len(runs)} times" if len(runs) > 1 else ""
            does = "fails" if hunt.find_fix else "passes"
            detail = f"reverted ({what}) on {bad[:12]} the command {does}{times}"
            return _Reverted(True, detail, spent)
        reason = hunt.outcome(runs[-1])[1]
        tried.append(f"reverting it ({what}) on {bad[:12]} does not help: {reason}")
    return _Reverted(False, "; ".join(tried) or "nothing to revert", spent)


def _until_doubt(hunt: Hunt, runner: Runs, commit: str) -> list[Run]:
    """Runs at a reverted head: as many as convince, fewer once one speaks against."""
    wanted = "fail" if hunt.find_fix else "pass"
    runs: list[Run] = []
    for _ in range(_needed(hunt)[1]):
        runs.append(runner(commit))
        if hunt.outcome(runs[-1])[0] != wanted:
            break
    return runs


def source_of(git: Git, sha: str) -> tuple[str, ...]:
    """The paths of a commit that are neither test nor document."""
    return tuple(path for path in git.changed_paths(sha) if _is_source(path))


def _is_source(path: str) -> bool:
    """Neither test nor document: those conflict often, and no fault lies in them."""
    pure = PurePosixPath(path)
    name = pure.name.lower()
    if pure.suffix.lower() in _DOCUMENTS or name.startswith(
        ("changelog", "changes", "history", "news")
    ):
        return False
    folders = {part.lower() for part in pure.parts[:-1]}
    is_test = name.startswith("test_") or pure.stem.lower().endswith(("_test", ".test", ".spec"))
    return not is_test and not folders & {"test", "tests", "testing", "docs", "doc"}


def _tally(hunt: Hunt, runs: list[Run]) -> str:
    counts: dict[tuple[str, str], int] = {}
    for run in runs:
        key = (run.sha[:12], hunt.outcome(run)[0])
        counts[key] = counts.get(key, 0) + 1
    return ", ".join(
        f"{sha} {outcome}{f' x{count}' if count > 1 else ''}"
        for (sha, outcome), count in counts.items()
    )


def _average(rates: list[tuple[float, float]]) -> float:
    total = sum(mass for _, mass in rates)
    return sum(rate * mass for rate, mass in rates) / total if total else 0.5
