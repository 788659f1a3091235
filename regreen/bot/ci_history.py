"""What CI already knows: commits at which a step of a workflow ran the very same command, and how that ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from regreen.bisect import signature
from regreen.bisect.memory import Run
from regreen.errors import OutsideError, UserError
from regreen.fixers.ci_log import output_of, parse
from regreen.fixers.job_plan import Step
from regreen.fixers.workflow import plan
from regreen.forge import GitHub, NotAllowed, WorkflowJob, WorkflowRun
from regreen.models import RunResult
from regreen.ports import Git

_MOST_RUNS = 20  # each asks GitHub once more
_MOST_LOGS = 5  # each is downloaded
_LOG_BYTES = 2 * 1024 * 1024
_Place = tuple[
    str, frozenset[str]
]  # a job as GitHub shows it, and the names that a step of it may have


def seen_in_ci(github: GitHub, git: Git, branch: str, command: str) -> tuple[Run, ...]:
    """The commits of a branch where `command` ran as a step of its own and ended alike wherever it ran.

    Of the failures those around the newest commit that passed are read: the log says whether one is the failure that
    is looked for. One that says nothing but an exit status is left out.
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
    passed: dict[str, Run] = {}
    failed: list[tuple[str, int]] = []
    newer = 0  # of the failures, those newer than every commit that passed
    for run in fitting:
        ended, job = _ended(github.jobs(run.id), places[run.path])
        if ended == "success":
            seen = Run(run.head_sha, "pass", None, 0.0, "passed in CI", elsewhere=True)
            passed.setdefault(run.head_sha, seen)
        elif ended == "failure":
            newer += not passed
            failed.append((run.head_sha, job))
    telling = [*reversed(failed[:newer]), *failed[newer:]]
    read = (_failure(github, sha, job, command) for sha, job in telling[:_MOST_LOGS])
    return (*passed.values(), *(run for run in read if run is not None))


def _failure(github: GitHub, sha: str, job: int, command: str) -> Run | None:
    """How the command failed there, as far as the log says it."""
    try:
        log = github.job_log(job, _LOG_BYTES)
    except (OutsideError, UserError):  # logs are deleted after some months
        return None
    output = output_of(log, command)
    code = parse(log, step=command.strip().splitlines()[0]).exit_code
    seen = signature.read(RunResult("exit", code or 1, output, "", truncated=False, seconds=0.0))
    if not seen.tests and not seen.kind:
        return None
    return Run(sha, "fail", seen, 0.0, "failed in CI", elsewhere=True)


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


def _ended(jobs: Iterable[WorkflowJob], places: Sequence[_Place]) -> tuple[str | None, int]:
    """How the step ended wherever it ran, None where it did not run or ended in two ways; and a job that ran it."""
    seen = [
        (step.conclusion, job.id)
        for job in jobs
        for name, steps in places
        if job.name == name
        for step in job.steps
        if step.name in steps
    ]
    ends = {conclusion for conclusion, _ in seen}
    return (ends.pop(), seen[0][1]) if len(ends) == 1 else (None, 0)
