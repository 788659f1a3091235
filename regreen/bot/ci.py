"""From a red check to a command that can be run here: the run, its failed job, its log, its workflow file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from regreen.codebase.redaction import redact_known
from regreen.codebase.trial import Trial
from regreen.errors import OutsideError, UserError
from regreen.fixers import ci_log
from regreen.fixers.ci_trial import (
    as_it_went,
    default_step,
    failed_step,
    trial_for,
    version_of_the_project,
    versions_of_the_day,
)
from regreen.fixers.job_plan import JobPlan
from regreen.fixers.workflow import plan
from regreen.forge import GitHub, Paced, WorkflowJob, WorkflowRun
from regreen.models import Failure, Trust
from regreen.ports import Git

_MOST_LOG = 16 * 1024 * 1024


@dataclass(frozen=True)
class Red:
    """What is red. `trial` None: it cannot be run here, and `reason` says why."""

    name: str
    step: str
    url: str
    trial: Trial | None
    failures: tuple[Failure, ...] = ()
    reason: str = ""


def red_of_run(
    github: GitHub, git: Git, run: WorkflowRun, *, scope: str, trust: Trust, pythons: Sequence[str]
) -> tuple[Red, ...]:
    """Every failed job of a run, those that can be run here first."""
    failed = [job for job in github.jobs(run.id) if job.conclusion in {"failure", "timed_out"}]
    found = [
        _red(github, git, run, job, scope=scope, trust=trust, pythons=pythons) for job in failed[:5]
    ]
    return tuple(sorted(found, key=lambda red: red.trial is None))


def _red(
    github: GitHub,
    git: Git,
    run: WorkflowRun,
    job: WorkflowJob,
    *,
    scope: str,
    trust: Trust,
    pythons: Sequence[str],
) -> Red:
    failed = next((s for s in job.steps if s.conclusion in {"failure", "timed_out"}), None)
    step = failed.name if failed else ""
    log = _log(github, job, step)
    red = Red(job.name, step or log.step, job.html_url, None, log.failures)
    text = git.show(run.head_sha, run.path) if run.path else None
    if text is None:
        return replace(red, reason=f"its workflow file {run.path or ''} is not in the repository")
    try:
        plans = plan(
            text.decode("utf-8", "replace"),
            event=run.event,
            files=lambda path: git.show(run.head_sha, path),
            repository=github.repo,
            shown=job.name,
        )
    except UserError as error:
        return replace(red, reason=str(error))
    held = versions_of_the_day(log.installed, lambda path: git.show(run.head_sha, path))
    own = version_of_the_project(log.built, lambda path: git.show(run.head_sha, path))
    day = _Day(held, own)
    return _planned(red, plans, job, log=log, day=day, scope=scope, trust=trust, pythons=pythons)


@dataclass(frozen=True)
class _Day:
    """What was installed on the day of the run: versions to hold to, the project's own as variables."""

    held: Sequence[str]
    own: Sequence[tuple[str, str]]


def _planned(
    red: Red,
    plans: Sequence[JobPlan],
    job: WorkflowJob,
    *,
    log: ci_log.CiLog,
    day: _Day,
    scope: str,
    trust: Trust,
    pythons: Sequence[str],
) -> Red:
    # GitHub shows a job of a reusable workflow as "caller / job"
    chosen = next((p for p in plans if job.name in {p.name, p.id}), None)
    if chosen is None:
        return replace(red, reason=f"no job of the workflow file is shown as {job.name!r}")
    if not chosen.supported:
        what = "; ".join(f"{u.what}: {u.why}" for u in chosen.unsupported)
        return replace(red, reason=what)
    chosen = as_it_went(chosen, [(step.name, step.conclusion) for step in job.steps])
    step = failed_step(chosen, red.step, command=log.command) or default_step(chosen)
    if step is None:
        return replace(red, reason="the job has no step that runs a command")
    try:
        trial = trial_for(
            chosen,
            step,
            trust=trust,
            scope=scope,
            pythons=pythons,
            constraints=day.held,
            variables=day.own,
        )
    except UserError as error:
        return replace(red, reason=str(error))
    return replace(red, trial=trial)


def _log(github: GitHub, job: WorkflowJob, step: str) -> ci_log.CiLog:
    try:
        text = github.job_log(job.id, _MOST_LOG)
    except Paced:
        raise
    except OutsideError:
        # logs expire, and a run may never have written one; the plan alone may do
        text = b""
    clean = redact_known(text.decode("utf-8", "surrogateescape"))
    return ci_log.parse(clean.encode("utf-8", "surrogateescape"), step=step or None)
