"""What CI already knows: commits at which a step of a workflow ran the very same command, and it passed."""

from __future__ import annotations

from collections.abc import Iterable

from regreen.errors import UserError
from regreen.fixers.workflow import Step, plan
from regreen.forge import GitHub, NotAllowed, WorkflowJob, WorkflowRun
from regreen.ports import Git

_MOST_RUNS = 20  # each asks GitHub once more
_Place = tuple[
    str, frozenset[str]
]  # a job as GitHub shows it, and the names that a step of it may have


def passed_in_ci(github: GitHub, git: Git, branch: str, command: str) -> tuple[str, ...]:
    """Commits of a branch where `command` passed as a step of its own, newest first.

    A failure in CI is not told: its log would have to be read to know whether it is the one that is looked for.
    """
    try:
        runs = github.runs(branch)
    except NotAllowed:  # an installation that has not granted it yet: the search does without
        return ()
    places = {
        path: _places(git, next(run for run in runs if run.path == path), command, github.repo)
        for path in dict.fromkeys(run.path for run in runs if run.path)
    }
    fitting = [run for run in runs if places.get(run.path)][:_MOST_RUNS]
    passed = (run.head_sha for run in fitting if _passed(github.jobs(run.id), places[run.path]))
    return tuple(dict.fromkeys(passed))


def _places(git: Git, run: WorkflowRun, command: str, repository: str) -> list[_Place]:
    """Where the newest run's workflow runs the command."""
    text = git.show(run.head_sha, run.path)
    if text is None:
        return []
    try:
        plans = plan(
            text.decode("utf-8", "replace"),
            event=run.event,
            files=lambda path: git.show(run.head_sha, path),
            repository=repository,
        )
    except UserError:
        return []
    return [
        (job.name, _names(step))
        for job in plans
        for step in job.steps
        if step.kind == "run" and step.run.strip() == command.strip()
    ]


def _names(step: Step) -> frozenset[str]:
    """What GitHub may call a step: its name, or what it runs."""
    first = step.run.strip().splitlines()[0]
    return frozenset({step.name, f"Run {first}"})


def _passed(jobs: Iterable[WorkflowJob], places: list[_Place]) -> bool:
    """Whether the step ran somewhere and passed wherever it ran."""
    seen = [
        step.conclusion
        for job in jobs
        for name, steps in places
        if job.name == name
        for step in job.steps
        if step.name in steps
    ]
    return bool(seen) and all(conclusion == "success" for conclusion in seen)
