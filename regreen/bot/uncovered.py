"""The new lines of a pull request that no test runs, and how many of them a proposed test would run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from regreen.adapters.git import GitRepository
from regreen.bot.desk import Desk
from regreen.bot.running import Job
from regreen.codebase.trial import Trial
from regreen.forge import Pull
from regreen.reviewers.coverage import Coverage
from regreen.reviewers.review import ReviewJob, context_of

Lines = Mapping[str, frozenset[int]]
"""Line numbers by path."""


@dataclass(frozen=True, slots=True)
class Gain:
    """How many of the lines that nobody ran a test runs, of how many."""

    run: int
    of: int


def uncovered(desk: Desk, repo: str, pull: Pull) -> Lines:
    """What the latest review of this very head measured; empty where none did."""
    found = desk.store.documents(kind="review", repo=repo, number=pull.number, limit=20)
    latest = next((d.body for d in found if d.body.get("head") == pull.head_sha), {})
    rows = (latest.get("coverage") or {}).get("uncovered") or []
    return {row["path"]: frozenset(row["lines"]) for row in rows}


def wish(lines: Lines, wanted: str) -> str:
    """What is asked for: a test of `wanted`, or of what nobody tests."""
    listed = [f"{path}: {', '.join(map(str, sorted(numbers)))}" for path, numbers in lines.items()]
    if wanted:
        return f"Write a test for `{wanted}`."
    if not listed:
        return "Write a test for what this changes."
    return "Write a test that runs these new lines, which no test runs yet:\n" + "\n".join(listed)


def gain(
    desk: Desk, job: Job, git: GitRepository, pull: Pull, trial: Trial, *, lines: Lines
) -> Gain | None:
    """Run `trial` (the new test alone) with coverage beside it; None where that measured nothing."""
    work = ReviewJob(base=pull.base_sha, head=pull.head_sha, tests=trial, run_tests=True)
    context, _ = context_of(work, git=git, sandbox=desk.sandbox(), model=None)
    job.say("measuring what the new test runs")
    report = Coverage().run(context).coverage
    if report is None:
        return None
    still = {row.path: frozenset(row.lines) for row in report.uncovered}
    left = sum(len(numbers & still.get(path, frozenset())) for path, numbers in lines.items())
    total = sum(map(len, lines.values()))
    return Gain(total - left, total)
