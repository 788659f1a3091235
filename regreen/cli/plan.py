"""`regreen plan` says how a workflow file would be reproduced; `regreen ci-log` reads the failures out of a job's log."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import click

from regreen import isolation
from regreen.actions.expressions.evaluation import to_json_value
from regreen.actions.job_plan import Files, JobPlan, PlannedStep
from regreen.actions.workflow import plan_workflow
from regreen.app.settings_loader import read_settings
from regreen.cli.options import format_option
from regreen.cli.terminal import print_answer
from regreen.domain.errors import UserError
from regreen.domain.models import Failure
from regreen.logs.ci_log import CiLog, read_log

_MAX_NAMES = 4


@click.command(help="Say how a workflow file would be reproduced.")
@click.argument("workflow", type=click.Path(path_type=Path))
@click.option("--job", default=None, help="Only this job (its id in the file).")
@click.option(
    "--event",
    type=click.Choice(["push", "pull_request"]),
    default="push",
    help="What sets the workflow off.",
)
@format_option("shape", "text", "json")
def command(workflow: Path, job: str | None, event: str, shape: str) -> int:
    """Exit 0 with the plan; 2, with the line, where GitHub would refuse the file."""
    try:
        text = workflow.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        message = f"cannot read {workflow}: {error.strerror}; give the path of a workflow file"
        raise UserError(message) from error
    server = read_settings().github
    try:
        with isolation.name_failed_input("the workflow"):
            jobs = isolation.run_in_child(
                partial(plan_workflow, server=server), text, job, event, _repository_files(workflow)
            )
    except UserError as error:
        message = f"{workflow}: {error}"
        raise UserError(message) from error
    if not jobs:
        message = f"{workflow}: not a workflow: there is no job under `jobs:`"
        raise UserError(message)
    if shape == "json":
        click.echo(json.dumps({"version": 1, "jobs": [job_plan_document(one) for one in jobs]}))
    else:
        print_answer(format_plans(jobs))
    return 0


def job_plan_document(job: JobPlan) -> dict[str, object]:
    """A plan as its JSON document."""
    return {**asdict(job), "matrix": to_json_value(job.matrix)}


def _repository_files(workflow: Path) -> Files:
    """The files of the repository that holds the workflow: local actions and reusable workflows are looked up there."""
    here = workflow.resolve().parent
    root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), None)
    if root is None:
        is_github = here.name == "workflows" and here.parent.name == ".github"
        root = here.parent.parent if is_github else here

    return partial(_read_below, root)


def _read_below(root: Path, path: str) -> bytes | None:
    target = (root / path).resolve()
    if not target.is_relative_to(root) or not target.is_file():
        return None
    return target.read_bytes()


def format_plans(jobs: Sequence[JobPlan]) -> str:
    """The plans for a terminal; entries of a matrix that would run alike stand together."""
    supported = sum(job.supported for job in jobs)
    groups: dict[tuple[str, ...], list[JobPlan]] = {}
    for job in jobs:
        groups.setdefault((job.id, *_describe_job(job)), []).append(job)
    lines = [f"{supported} of {len(jobs)} jobs can be reproduced"]
    for alike in groups.values():
        names = [job.name for job in alike]
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        lines += ["", f"{', '.join(names[:_MAX_NAMES])}{more}: {_describe_job(alike[0])[0]}"]
        lines += _describe_job(alike[0])[1:]
    return "\n".join(lines)


def _describe_job(job: JobPlan) -> list[str]:
    """Whether it can be reproduced, what blocks it, and its steps."""
    state = "can be reproduced" if job.supported else "cannot be reproduced"
    lines = [f"{state}{' (its own condition is false for this event)' if job.skipped else ''}"]
    lines += [f"  blocked by: {one.what}: {one.why}" for one in job.unsupported]
    lines += ["  instead: `regreen fix -- COMMAND` repairs one command of it"] * bool(
        job.unsupported
    )
    lines += [
        f"  {step.number:3} {step.kind:5} {_shorten_commits(step.name)}{_format_step_note(step)}"
        for step in job.steps
    ]
    return lines


def _shorten_commits(text: str) -> str:
    return re.sub(r"@([0-9a-f]{12})[0-9a-f]{28}\b", r"@\1", text)


def _format_step_note(step: PlannedStep) -> str:
    return f"  ({step.why})" if step.why else ""


@click.command(
    "ci-log", help="Read the failures out of a CI job's log (FILE, or - for standard input)."
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--step", default=None, help="The failing step's name, where you know it.")
@format_option("shape", "text", "json")
def ci_log_command(file: Path, step: str | None, shape: str) -> int:
    """Say what the log holds; a log without failures is an answer too."""
    log = _read_log(file, step)
    if shape == "json":
        click.echo(json.dumps({"version": 1, **asdict(log)}))
    else:
        print_answer(_format_log(log))
    return 0


def _read_log(file: Path, step: str | None) -> CiLog:
    if str(file) == "-":
        return read_log(sys.stdin.buffer, step)
    try:
        with file.open("rb") as stream:
            return read_log(stream, step)
    except OSError as error:
        message = f"cannot read {file}: {error.strerror}; give the path of a job's log"
        raise UserError(message) from error


def _format_log(log: CiLog) -> str:
    if not log.failures:
        return "no failure found in this log"
    head = f"{log.kind} failure in step: {log.step or '(the log names no step)'}"
    if log.exit_code is not None:
        head += f" (exit code {log.exit_code})"
    return "\n".join([head, *(_format_failure(failure) for failure in log.failures)])


def _format_failure(failure: Failure) -> str:
    place = f"{failure.path}:{failure.line}" if failure.line else failure.path or ""
    first = failure.message.splitlines()[0] if failure.message else ""
    return "  " + "  ".join(part for part in (failure.test or failure.kind, place, first) if part)
