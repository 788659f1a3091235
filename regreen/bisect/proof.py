"""Proves a culprit: runs it and its parents again, and reverts it on the bad end."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from regreen.bisect.commit_runner import SLOWER_KIND, CommitRunner
from regreen.bisect.posterior import RateHistory
from regreen.bisect.result import CulpritVerification
from regreen.bisect.session import BisectSession
from regreen.bisect.verdict_memory import CommitRun
from regreen.code.paths import is_source
from regreen.domain.ports import Git
from regreen.secrets.markdown_sanitizer import count_noun

_REQUIRED_ODDS = 99.0
_MAX_RUNS = 20
_MAX_LATER_RUNS = 4


@dataclass(frozen=True, slots=True)
class CulpritProof:
    """Whether the culprit is proven, and how; the runs of a failed proof count as evidence.

    `since` is what later commits show, if the revert settles nothing.
    """

    holds: bool
    verified: CulpritVerification
    since: LaterCommits | None = None


def prove_culprit(
    session: BisectSession, culprit: int, *, git: Git, runner: CommitRunner, bad: str
) -> CulpritProof:
    """Run the culprit and its parents again; if the search still blames it, revert it on the bad end."""
    for sha in (session.commit_at(culprit), *git.commit(session.commit_at(culprit)).parents[:1]):
        runner.prepare_run(sha)
    reverted = git.revert(session.commit_at(culprit), bad)
    if reverted is not None:
        runner.prepare_run(reverted)
    runs = _rerun_culprit(session, culprit, git, runner)
    doubtful = [run for run in runs if not _is_as_expected(session, culprit, run)]
    uncounted = [] if doubtful else runs
    if doubtful:
        session.count_runs(runs)
        if not session.is_sure_of(culprit):
            outcomes = "; ".join(
                f"{run.sha[:12]}: {session.classify_run(run)[0]}" for run in doubtful
            )
            detail = f"running {session.commit_at(culprit)[:12]} and its parents again did not bear it out ({outcomes})"
            return CulpritProof(False, CulpritVerification(("rerun",), False, detail))
    else:
        session.weigh_runs(runs)
        if not session.is_sure_of(culprit):
            session.store_weighed_runs(runs)
            return CulpritProof(False, CulpritVerification(("rerun",), False, ""))
    if len(runs) < 2:
        session.log.list_later_runs("proof", uncounted)
        detail = "neither it nor its parents could be run again"
        return CulpritProof(True, CulpritVerification((), False, detail))
    detail = _describe_outcomes(session, runs)
    taken_back = _test_revert(session, session.commit_at(culprit), git, runner, bad)
    detail = f"{detail}; {taken_back.detail}"
    if taken_back.works:
        session.log.list_later_runs("proof", uncounted)
        return CulpritProof(True, CulpritVerification(("rerun", "revert"), True, detail))
    looked = check_later_commits(session, culprit, runner)
    doubts = [run for run in looked.runs if _is_repaired(session, run)]
    if doubts and looked.mended is None:
        session.count_runs(looked.runs)
        if not session.is_sure_of(culprit):
            session.store_weighed_runs(uncounted)
            detail = f"{detail}; {doubts[0].sha[:12]} passed once, and contains it"
            return CulpritProof(False, CulpritVerification(("rerun",), False, detail))
    elif looked.runs and not doubts:
        uncounted = [*uncounted, *looked.runs]
        shown = _describe_outcomes(session, list(looked.runs))
        detail = f"{detail}; of the commits that contain it, {shown}"
    session.log.list_later_runs("proof", uncounted)
    return CulpritProof(True, CulpritVerification(("rerun",), True, detail), looked)


@dataclass(frozen=True, slots=True)
class _RevertResult:
    works: bool
    detail: str


@dataclass(frozen=True, slots=True)
class LaterCommits:
    """A test of the commits after a culprit; `mended` is one that passes although it contains the culprit."""

    runs: tuple[CommitRun, ...]
    mended: str | None = None


def check_later_commits(session: BisectSession, culprit: int, runner: CommitRunner) -> LaterCommits:
    """Check that every commit since the culprit fails, at the places that the search tested least.

    A similar fault may have come and gone before the present one: then a commit in
    between passes repeatedly.
    """
    needed = max(2, _count_proof_runs(session)[1])
    runs: list[CommitRun] = []
    tested = {session.point_at(run.sha) for run in session.log.runs}
    for at in _least_tested(session, culprit, tested):
        runs.append(runner.explore_commit(session.commit_at(at)))
        if not _is_repaired(session, runs[-1]):
            continue
        again = [runner(session.commit_at(at)) for _ in range(needed)]
        runs += again
        mended = all(_is_repaired(session, run) for run in again)
        return LaterCommits(tuple(runs), session.commit_at(at) if mended else None)
    return LaterCommits(tuple(runs))


def _is_repaired(session: BisectSession, run: CommitRun) -> bool:
    outcome, _ = session.classify_run(run)
    return outcome == ("fail" if session.find_fix else "pass")


def _least_tested(session: BisectSession, culprit: int, tested: set[int]) -> list[int]:
    """Commits that contain the culprit, each in the middle of the longest untested stretch."""
    last = len(session.history) - 1
    line = [
        at
        for at in range(culprit, last + 1)
        if session.history.contains[at] >> culprit & 1
        and (at in {culprit, last} or at not in session.barred)
    ]
    looked = sorted({0, len(line) - 1} | {at for at, point in enumerate(line) if point in tested})
    chosen: list[int] = []
    for _ in range(_MAX_LATER_RUNS):
        gaps = [(after - before, before) for before, after in pairwise(looked)]
        width, start = max(gaps, default=(0, 0))
        if width < 2:
            break
        middle = start + width // 2
        chosen.append(line[middle])
        looked = sorted([*looked, middle])
    return chosen


def count_outcomes(session: BisectSession, culprit: int) -> RateHistory:
    """The results of the runs with and without the culprit, for the rate prior of the next bisection."""
    counts = {(with_it, failed): 0 for with_it in (True, False) for failed in (True, False)}
    for run in session.log.runs:
        outcome, point = session.classify_run(run)[0], session.point_at(run.sha)
        if outcome in {"pass", "fail"}:
            with_it = bool(session.history.contained_commits(point) >> culprit & 1)
            counts[with_it, (outcome == "fail") != session.find_fix] += 1
    return RateHistory(
        counts[True, True], counts[True, False], counts[False, True], counts[False, False]
    )


def _rerun_culprit(
    session: BisectSession, culprit: int, git: Git, runner: CommitRunner
) -> list[CommitRun]:
    """Run the culprit until it fails again, and each parent as often as its passes must be to convince."""
    hits, passes = _count_proof_runs(session)
    runs: list[CommitRun] = []
    for _ in range(hits):
        runs.append(runner(session.commit_at(culprit)))
        if _is_as_expected(session, culprit, runs[-1]):
            break
    parents = git.commit(session.commit_at(culprit)).parents
    for parent in parents[:1] if session.first_parent else parents:
        for _ in range(passes):
            runs.append(runner(parent))
            if session.classify_run(runs[-1])[0] in {"untestable", "infra"}:
                break
    return runs


def _is_as_expected(session: BisectSession, culprit: int, run: CommitRun) -> bool:
    outcome, _ = session.classify_run(run)
    if outcome in {"untestable", "infra"}:
        return run.sha != session.commit_at(culprit)
    return ((outcome == "fail") != session.find_fix) == (run.sha == session.commit_at(culprit))


def _count_proof_runs(session: BisectSession) -> tuple[int, int]:
    """How many runs show the culprit's failure once, and make passes elsewhere significant."""
    bad, good = (_mean_rate(rates) for rates in session.state.failure_rates())
    bad = min(bad, 0.999)
    hits = math.ceil(math.log(1 / _REQUIRED_ODDS) / math.log(1 - bad))
    passes = math.ceil(
        math.log(_REQUIRED_ODDS) / math.log(max(1.0001, (1 - min(good, 0.99)) / (1 - bad)))
    )
    return min(hits, _MAX_RUNS), min(passes, _MAX_RUNS)


def _test_revert(
    session: BisectSession, culprit: str, git: Git, runner: CommitRunner, bad: str
) -> _RevertResult:
    """Revert the commit on the bad end, whole and then its source alone, and run the result."""
    tried: list[str] = []
    for extent, chosen in (("whole", ()), ("its source alone", changed_source_paths(git, culprit))):
        if extent != "whole" and not chosen:
            continue
        commit = git.revert(culprit, bad, paths=chosen)
        if commit is None:
            conflict = f"reverting it conflicts on {bad[:12]}, or touches a link or a submodule"
            tried = (
                [f"{conflict}, even for the source files alone"]
                if tried == [conflict]
                else [*tried, conflict + (" for the source files alone" if chosen else "")]
            )
            continue
        runs = _run_until_doubt(session, runner, commit)
        session.log.list_later_runs("revert", runs, culprit)
        outcomes = {session.classify_run(run)[0] for run in runs}
        wanted = "fail" if session.find_fix else "pass"
        if outcomes == {wanted}:
            times = f" ({len(runs)} of {len(runs)} runs)" if len(runs) > 1 else ""
            does = _choose_verbs(session)[wanted]
            part = " in its source alone" if chosen else ""
            detail = f"with it reverted{part} on {bad[:12]} the command {does}{times}"
            return _RevertResult(True, detail)
        reason = session.classify_run(runs[-1])[1]
        tried.append(f"reverting it ({extent}) on {bad[:12]} does not help: {reason}")
    return _RevertResult(False, "; ".join(tried) or "nothing to revert")


def _run_until_doubt(session: BisectSession, runner: CommitRunner, commit: str) -> list[CommitRun]:
    """Runs at a reverted head: as many as convince, fewer after one that contradicts."""
    wanted = "fail" if session.find_fix else "pass"
    runs: list[CommitRun] = []
    for _ in range(_count_proof_runs(session)[1]):
        runs.append(runner(commit))
        if session.classify_run(runs[-1])[0] != wanted:
            break
    return runs


def changed_source_paths(git: Git, sha: str) -> tuple[str, ...]:
    """The paths of a commit that are neither test nor document: those conflict often, and no fault lies in them."""
    return tuple(path for path in git.changed_paths(sha) if is_source(path))


def _describe_outcomes(session: BisectSession, runs: list[CommitRun]) -> str:
    """How the commits of these runs ended, in all runs that the result lists for them."""
    log = session.log
    proofs = [run for part, run, _ in log.later if part == "proof"]
    listed = {id(run): run for run in (*log.reused, *log.runs, *proofs, *runs)}.values()
    commits = list(dict.fromkeys(run.sha for run in runs))
    known = [run for sha in commits for run in listed if run.sha == sha]
    counts = Counter((run.sha[:12], session.classify_run(run)[0]) for run in known)
    whole = Counter(run.sha[:12] for run in known)
    verbs = _choose_verbs(session)
    return ", ".join(
        f"{sha} {verbs.get(outcome, f'is {outcome}')} in {count} of {count_noun(whole[sha], 'run')}"
        for (sha, outcome), count in counts.items()
    )


def _choose_verbs(session: BisectSession) -> dict[str, str]:
    """What a command does where it passes, and where it fails; one that is timed passes everywhere."""
    if any(failure.kind == SLOWER_KIND for failure in session.judge.wanted):
        return {"pass": "is not slower", "fail": "is slower"}
    return {"pass": "passes", "fail": "fails"}


def _mean_rate(rates: list[tuple[float, float]]) -> float:
    total = sum(mass for _, mass in rates)
    return sum(rate * mass for rate, mass in rates) / total if total else 0.5
