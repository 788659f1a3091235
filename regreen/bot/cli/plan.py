"""`regreen plan`: says how a workflow file would be reproduced."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from regreen.bot.cli.options import answered_as
from regreen.bot.cli.terminal import answer
from regreen.errors import UserError
from regreen.fixers.expressions import plain
from regreen.fixers.job_plan import Files, JobPlan, Step
from regreen.fixers.workflow import plan


@click.command(help="Say how a workflow file would be reproduced.")
@click.argument("workflow", type=click.Path(path_type=Path))
@click.option("--job", default=None, help="Only this job (its id in the file).")
@click.option(
    "--event",
    type=click.Choice(["push", "pull_request"]),
    default="push",
    help="What sets the workflow off.",
)
@answered_as("shape", "text", "json")
def command(workflow: Path, job: str | None, event: str, shape: str) -> int:
    """Exit 0 with the plan; 2, with the line, where GitHub would refuse the file."""
    try:
        text = workflow.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        message = f"cannot read {workflow}: {error.strerror}; give the path of a workflow file"
        raise UserError(message) from error
    try:
        jobs = plan(text, job=job, event=event, files=_files_around(workflow))
    except UserError as error:
        message = f"{workflow}: {error}"
        raise UserError(message) from error
    if not jobs:
        message = f"{workflow}: not a workflow: there is no job under `jobs:`"
        raise UserError(message)
    if shape == "json":
        click.echo(json.dumps({"version": 1, "jobs": [document(one) for one in jobs]}))
    else:
        answer("\n".join(_text(one) for one in jobs))
    return 0


def document(job: JobPlan) -> dict[str, object]:
    """A plan as its JSON document."""
    return {**asdict(job), "matrix": plain(job.matrix)}


def _files_around(workflow: Path) -> Files:
    """The files of the repository that holds the workflow: local actions and reusable workflows are looked up there."""
    here = workflow.resolve().parent
    root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), None)
    if root is None:
        is_github = here.name == "workflows" and here.parent.name == ".github"
        root = here.parent.parent if is_github else here

    def read(path: str) -> bytes | None:
        target = (root / path).resolve()
        if not target.is_relative_to(root) or not target.is_file():
            return None
        return target.read_bytes()

    return read


def _text(job: JobPlan) -> str:
    state = "can be reproduced" if job.supported else "cannot be reproduced"
    lines = [
        f"{job.name}: {state}{' (its own condition is false for this event)' if job.skipped else ''}"
    ]
    lines += [f"  in the way: {one.what}: {one.why}" for one in job.unsupported]
    lines += [f"  {step.number:3} {step.kind:5} {step.name}{_aside(step)}" for step in job.steps]
    return "\n".join(lines)


def _aside(step: Step) -> str:
    return f"  ({step.why})" if step.why else ""
