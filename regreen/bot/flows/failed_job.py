"""Turns a failed check into a command that runs here: its run, failed job, log and workflow file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from regreen import isolation
from regreen.actions.job_plan import PlannedStep
from regreen.actions.other_jobs import OtherJob, plan_other_jobs
from regreen.actions.step_trial import (
    apply_conclusions,
    find_default_step,
    find_failed_step,
    make_failed_step_trial,
    select_constraints,
)
from regreen.actions.workflow import plan_workflow
from regreen.bisect.verdict_memory import CommitRun
from regreen.domain.errors import OutsideError, UserError
from regreen.domain.github import (
    GitHub,
    GitHubServer,
    NotAllowed,
    RateLimited,
    WorkflowJob,
    WorkflowRun,
)
from regreen.domain.models import Failure, RunResult, Trust
from regreen.domain.ports import Git
from regreen.logs import failure_signature
from regreen.logs.ci_log import CiLog, extract_command_output, parse_log, read_log
from regreen.logs.failure_signature import FailureSignature
from regreen.runs.trial import Trial
from regreen.secrets.redaction import redact_quickly

_MAX_LOG_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class FailedJob:
    """One failed job. `trial` is None if the job cannot run here; `reason` says why."""

    name: str
    step: str
    url: str
    trial: Trial | None
    failures: tuple[Failure, ...] = ()
    reason: str = ""
    log: CiLog | None = None
    other_jobs: tuple[OtherJob, ...] = ()


def find_failed_jobs(
    github: GitHub,
    git: Git,
    run: WorkflowRun,
    *,
    scope: str,
    trust: Trust,
    pythons: Sequence[str],
    limit: int = 5,
) -> tuple[FailedJob, ...]:
    """The failed jobs of a run, `limit` at most, those that can be run here first."""
    failed = [job for job in github.jobs(run.id) if job.conclusion in {"failure", "timed_out"}]
    jobs = [
        _read_failed_job(github, git, run, job, scope=scope, trust=trust, pythons=pythons)
        for job in failed[:limit]
    ]
    return tuple(sorted(jobs, key=lambda red: red.trial is None))


def _read_failed_job(
    github: GitHub,
    git: Git,
    run: WorkflowRun,
    job: WorkflowJob,
    *,
    scope: str,
    trust: Trust,
    pythons: Sequence[str],
) -> FailedJob:
    failed = next((s for s in job.steps if s.conclusion in {"failure", "timed_out"}), None)
    step = failed.name if failed else ""
    red = FailedJob(job.name, step, job.html_url, None)
    text = _download_log(github, job)
    here = _PlanningContext(git, github.repo, github.server, scope, trust, tuple(pythons))
    try:
        log = read_log(text, step or None)
        red = replace(red, step=step or log.step, failures=log.failures, log=log)
        with isolation.name_failed_input("the workflow"):
            return isolation.run_in_child(_add_planned_trial, red, run, job, log, here)
    except UserError as error:
        return replace(red, reason=str(error))


@dataclass(frozen=True)
class _PlanningContext:
    """The place for which a job is planned, and the interpreters that are available."""

    git: Git
    repository: str
    server: GitHubServer
    scope: str
    trust: Trust
    pythons: tuple[str, ...]


def _add_planned_trial(
    red: FailedJob, run: WorkflowRun, job: WorkflowJob, log: CiLog, here: _PlanningContext
) -> FailedJob:
    files = partial(here.git.show, run.head_sha)
    text = files(run.path) if run.path else None
    if text is None:
        return replace(red, reason=f"its workflow file {run.path or ''} is not in the repository")
    plans = plan_workflow(
        text.decode("utf-8", "replace"),
        event=run.event,
        files=files,
        repository=here.repository,
        shown=job.name,
        server=here.server,
    )
    # GitHub shows a job of a reusable workflow as "caller / job"
    chosen = next((p for p in plans if job.name in {p.name, p.id}), None)
    if chosen is None:
        return replace(red, reason=f"no job of the workflow file is shown as {job.name!r}")
    if not chosen.supported:
        reason = "; ".join(f"{u.what}: {u.why}" for u in chosen.unsupported)
        return replace(red, reason=reason)
    chosen = apply_conclusions(chosen, [(step.name, step.conclusion) for step in job.steps])
    step = find_failed_step(chosen, red.step, command=log.command) or find_default_step(chosen)
    if step is None:
        return replace(red, reason="the job has no step that runs a command")
    trial = make_failed_step_trial(
        chosen, step, log, files, trust=here.trust, scope=here.scope, pythons=here.pythons
    )
    every = plan_workflow(
        text.decode("utf-8", "replace"),
        event=run.event,
        files=files,
        repository=here.repository,
        server=here.server,
    )
    others = plan_other_jobs(every, chosen, step, trial, here.pythons)
    return replace(red, trial=trial, other_jobs=others)


def find_green_versions(
    github: GitHub, git: Git, run: WorkflowRun, job: str, *, branch: str
) -> tuple[str, ...]:
    """The packages that the job had in the last green run of its workflow on a branch; () where no log says so."""
    green = next(
        (one for one in github.runs(branch, run.path) if one.conclusion == "success"), None
    )
    named = next((one for one in github.jobs(green.id) if one.name == job), None) if green else None
    if named is None:
        return ()
    try:
        installed = read_log(_download_log(github, named)).installed
    except UserError:
        return ()
    return select_constraints(installed, partial(git.show, run.head_sha))


def _download_log(github: GitHub, job: WorkflowJob) -> bytes:
    try:
        text = github.job_log(job.id, _MAX_LOG_BYTES)
    except RateLimited:
        raise
    except OutsideError:
        # logs expire, and a run may never have written one; the plan alone may be enough
        text = b""
    clean = redact_quickly(text.decode("utf-8", "surrogateescape"))
    return clean.encode("utf-8", "surrogateescape")


# Results that CI already has: commits at which a workflow step ran the same command, and how the step ended.

_MAX_RUNS = 20  # each costs one request to GitHub
_MAX_LOGS = 5  # each is downloaded
_MAX_HISTORY_LOG_BYTES = 2 * 1024 * 1024
# a job as GitHub shows it, and the names that a step of it may have
_StepLocation = tuple[str, frozenset[str]]


def find_ci_runs(github: GitHub, git: Git, branch: str, command: str) -> tuple[CommitRun, ...]:
    """The commits of a branch at which `command` ran as a step of its own with the same result everywhere.

    The logs of failures next to the newest passing commit are read: a log shows whether the failure is the one that
    the bisection looks for. A log with nothing but an exit status is left out.
    """
    try:
        runs = github.runs(branch)
    except NotAllowed:  # an installation may not have granted it yet: the search goes on without
        return ()
    places = {
        path: _find_step_locations(
            git, next(run for run in runs if run.path == path), command, github
        )
        for path in dict.fromkeys(run.path for run in runs if run.path)
    }
    fitting = [run for run in runs if places.get(run.path)][:_MAX_RUNS]
    passed: dict[str, CommitRun] = {}
    failed: list[tuple[str, int]] = []
    newer = 0  # failures that are newer than every passing commit
    for run in fitting:
        ended, job = _find_step_conclusion(github.jobs(run.id), places[run.path])
        if ended == "success":
            passing = CommitRun(run.head_sha, "pass", None, 0.0, "passed in CI", elsewhere=True)
            passed.setdefault(run.head_sha, passing)
        elif ended == "failure":
            newer += not passed
            failed.append((run.head_sha, job))
    telling = [*reversed(failed[:newer]), *failed[newer:]]
    read = (_read_failed_run(github, sha, job, command) for sha, job in telling[:_MAX_LOGS])
    return (*passed.values(), *(run for run in read if run is not None))


def _read_failed_run(github: GitHub, sha: str, job: int, command: str) -> CommitRun | None:
    """How the command failed in CI, as far as the log shows."""
    try:
        failure = isolation.run_in_child(
            _read_signature, github.job_log(job, _MAX_HISTORY_LOG_BYTES), command
        )
    except (OutsideError, UserError):  # logs are deleted after some months, or cannot be read
        return None
    if not failure.tests and not failure.kind:
        return None
    return CommitRun(sha, "fail", failure, 0.0, "failed in CI", elsewhere=True)


def _read_signature(log: bytes, command: str) -> FailureSignature:
    output = extract_command_output(log, command)
    code = parse_log(log, step=command.strip().splitlines()[0]).exit_code
    return failure_signature.read_signature(
        RunResult("exit", code or 1, output, "", truncated=False, seconds=0.0)
    )


def _find_step_locations(
    git: Git, run: WorkflowRun, command: str, github: GitHub
) -> list[_StepLocation]:
    """Where the workflow of the newest run runs the command."""
    text = git.show(run.head_sha, run.path)
    if text is None:
        return []
    try:
        files = partial(git.show, run.head_sha)
        plans = isolation.run_in_child(
            partial(plan_workflow, server=github.server),
            text.decode("utf-8", "replace"),
            None,
            run.event,
            files,
            github.repo,
        )
    except UserError:
        return []
    return [
        (job.name, _step_names(step))
        for job in plans
        for step in job.steps
        if step.kind == "run" and step.run.strip() == command.strip()
    ]


def _step_names(step: PlannedStep) -> frozenset[str]:
    """The names that GitHub may show for a step: its name, or what it runs."""
    first = step.run.strip().splitlines()[0]
    return frozenset({step.name, f"Run {first}"})


def _find_step_conclusion(
    jobs: Iterable[WorkflowJob], places: Sequence[_StepLocation]
) -> tuple[str | None, int]:
    """How the step ended in every job that ran it (None: not run, or different results), and the id of one such job."""
    conclusions = [
        (step.conclusion, job.id)
        for job in jobs
        for name, steps in places
        if job.name == name
        for step in job.steps
        if step.name in steps
    ]
    ends = {conclusion for conclusion, _ in conclusions}
    return (ends.pop(), conclusions[0][1]) if len(ends) == 1 else (None, 0)
