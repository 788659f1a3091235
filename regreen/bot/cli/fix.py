"""`regreen fix`: make a failing command pass, with proof."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from regreen.bot.cli.arguments import check_folder_of, overlay_of, suite_at, variables_of
from regreen.bot.cli.model import model_of
from regreen.bot.cli.options import answered_as, run_in
from regreen.bot.cli.terminal import answer, say
from regreen.codebase.manifests import python_for
from regreen.codebase.trial import Trial
from regreen.errors import UserError
from regreen.fixers.case import RUNGS, Fix, FixJob, RungName
from regreen.ports import Git, Sandbox

if TYPE_CHECKING:
    from regreen.fixers.ci_log import CiLog

_HAPPY = {"fixed", "already_green"}


@click.command("fix")
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="DIR",
    help="The repository.",
)
@click.option("--rev", default="HEAD", help="The red commit.")
@click.option("--base", metavar="REV", help="Where the change that broke it starts.")
@click.option("--setup", metavar="CMD", help="Run once, with network, before the command.")
@click.option(
    "--env", multiple=True, metavar="K=V", help="A variable for the setup and the command."
)
@click.option(
    "--overlay",
    multiple=True,
    metavar="FILE[:DEST]",
    help="A file to lay over every checkout; never changed.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    default=900.0,
    metavar="S",
    help="For one run of the command.",
)
@click.option(
    "--max-usd",
    type=click.FloatRange(min=0),
    default=1.0,
    metavar="X",
    help="What model calls may cost, in dollars.",
)
@click.option(
    "--max-minutes",
    type=click.FloatRange(min=0.1),
    default=20.0,
    metavar="N",
    help="Stop after so long.",
)
@click.option("--no-model", is_flag=True, help="Never ask a model.")
@click.option(
    "--rungs", default=",".join(RUNGS), metavar="LIST", help="What is tried, the cheapest first."
)
@click.option(
    "--workflow",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Take the command from this workflow, found from here or from the repository's root.",
)
@click.option("--job", "job_id", metavar="ID", help="The job in the workflow.")
@click.option(
    "--step",
    type=click.IntRange(min=1),
    metavar="N",
    help="The failed step; default: the last that runs something.",
)
@click.option(
    "--log",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The failed job's log: the same has to fail here, at the versions of that day.",
)
@click.option(
    "--allow-network",
    is_flag=True,
    help="A command that cannot work without a network may have one.",
)
@click.option(
    "--patch-out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the patch to this file.",
)
@click.option(
    "--apply", "apply_it", is_flag=True, help="Apply the patch to the working tree of --repo."
)
@answered_as("form", "text", "json", "markdown")
@run_in("kind")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND...")
def command(
    *,
    repo: Path,
    rev: str,
    base: str | None,
    setup: str | None,
    env: tuple[str, ...],
    overlay: tuple[str, ...],
    timeout: float,
    max_usd: float,
    max_minutes: float,
    no_model: bool,
    rungs: str,
    workflow: Path | None,
    job_id: str | None,
    step: int | None,
    log: Path | None,
    allow_network: bool,
    patch_out: Path | None,
    apply_it: bool,
    form: str,
    kind: str,
    argv: tuple[str, ...],
) -> int:
    """Make a failing command pass, with proof: the cheapest honest patch wins."""
    from regreen.adapters.git import GitRepository
    from regreen.adapters.sandbox import choose
    from regreen.fixers.fix import fix

    chosen = _rungs(rungs, no_model=no_model)
    if bool(argv) == bool(workflow):
        raise UserError("say what fails: either -- COMMAND..., or --workflow FILE --job ID")
    if workflow is None and (job_id or step is not None):
        raise UserError("--job and --step choose from a workflow; name it with --workflow FILE")
    variables = variables_of(env)
    laid = overlay_of(overlay)
    check_folder_of(patch_out, "--patch-out")
    git = GitRepository.open(repo)
    at = git.resolve(rev)
    sandbox = choose(kind)
    told = _log_of(log)
    if told is not None and not told.failures:
        say(f"{log} shows no failure that can be read, so what fails here is not compared with it")
    if workflow is not None:
        trial = _from_workflow(
            git, at, sandbox, workflow=_found(workflow, repo), job_id=job_id, step=step, log=told
        )
        trial = replace(
            trial,
            env=(*trial.env, *variables),
            timeout=timeout,
            overlay=MappingProxyType({**trial.overlay, **laid}),
        )
    else:
        trial = Trial(
            shell_of(argv),
            setup=setup,
            env=variables,
            timeout=timeout,
            overlay=MappingProxyType(laid),
        )
    python = python_of(git, at, sandbox)
    trial = trial if trial.python else replace(trial, python=python)
    trusted = git.resolve(base) if base else at
    job = FixJob(
        trial,
        at,
        base,
        rungs=chosen,
        max_usd=max_usd,
        max_minutes=max_minutes,
        given_tests=tuple(laid),
        expected=told.failures if told is not None else (),
        allow_network=allow_network,
        tests=suite_at(git, trusted, setup=setup, env=variables, python=python),
    )
    result = fix(
        job,
        git=git,
        sandbox=sandbox,
        model=model_of(max_usd) if "model" in chosen else None,
        progress=say,
    )
    if patch_out is not None and result.patch:
        patch_out.write_bytes(result.patch.encode("utf-8", "surrogateescape"))
    if apply_it and result.patch and result.outcome == "fixed":
        apply_to(repo, result.patch)
    if form == "json":
        click.echo(shown(result, form))
    else:
        answer(shown(result, form), headline=form == "text")
    return 0 if result.outcome in _HAPPY else 1


def shell_of(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The argv to run; one word with blanks or operators in it is a line for the shell."""
    if len(argv) == 1 and any(char in argv[0] for char in " \t\n;&|<>$`"):
        return ("bash", "-c", argv[0])
    return argv


def python_of(git: Git, rev: str, sandbox: Sandbox) -> str | None:
    """The Python that the repository asks for, where the sandbox has it."""
    offered = getattr(sandbox, "pythons", None)
    return python_for(git, rev, offered()) if callable(offered) else None


def apply_to(repo: Path, patch: str) -> None:
    """Apply a patch to the working tree.

    Raises:
        UserError: it does not apply there.
    """
    done = subprocess.run(
        [
            "git",
            "-c",
            "core.hooksPath=/dev/null",
            "-C",
            str(repo),
            "apply",
            "--whitespace=nowarn",
            "-",
        ],
        input=patch.encode("utf-8", "surrogateescape"),
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        msg = f"the patch does not apply to the working tree: {done.stderr.decode(errors='replace').strip()}; take it with --patch-out"
        raise UserError(msg)


def shown(result: Fix, form: str) -> str:
    """The result as the chosen format shows it."""
    from regreen.fixers.report import markdown, text

    if form == "json":
        document = {"version": 1, **asdict(result)}
        if document["after"]:
            del document["after"]["kept"]  # for people; the document's keys are fixed
        return json.dumps(document, indent=2)
    return markdown(result) if form == "markdown" else text(result)


def _rungs(listed: str, *, no_model: bool) -> tuple[RungName, ...]:
    names = [name.strip() for name in listed.split(",") if name.strip()]
    unknown = [name for name in names if name not in RUNGS]
    if unknown or not names:
        msg = f"--rungs takes some of {','.join(RUNGS)}, not {', '.join(unknown) or 'nothing'}"
        raise UserError(msg)
    return tuple(name for name in RUNGS if name in names and not (no_model and name == "model"))


def _found(workflow: Path, repo: Path) -> Path:
    """The workflow file, wherever the command was given.

    Raises:
        UserError: there is none.
    """
    for place in (workflow, repo / workflow):
        if place.is_file():
            return place
    msg = f"there is no workflow {workflow}, neither here nor in {repo}"
    raise UserError(msg)


def _from_workflow(
    git: Git,
    rev: str,
    sandbox: Sandbox,
    *,
    workflow: Path,
    job_id: str | None,
    step: int | None,
    log: CiLog | None = None,
) -> Trial:
    """The trial that a workflow's step amounts to; of a matrix, the first cell that can be had here."""
    from regreen.fixers.ci_trial import (
        failed_step,
        trial_for,
        version_of_the_project,
        versions_of_the_day,
    )
    from regreen.fixers.workflow import plan

    try:
        text = workflow.read_text(encoding="utf-8-sig", errors="replace")
        jobs = plan(text, job=job_id, files=lambda path: git.show(rev, path))
    except UserError as error:
        msg = f"{workflow}: {error}"
        raise UserError(msg) from error
    names = sorted({job.id for job in jobs})
    if len(names) != 1:
        msg = f"{workflow} has these jobs: {', '.join(names) or 'none'}; name one with --job"
        raise UserError(msg)
    chosen = next((job for job in jobs if job.supported), jobs[0])
    offered = getattr(sandbox, "pythons", tuple)
    if log is None:
        return trial_for(chosen, step, pythons=offered())
    failed = failed_step(chosen, log.step, command=log.command) if step is None else step
    held = versions_of_the_day(log.installed, lambda path: git.show(rev, path))
    own = version_of_the_project(log.built, lambda path: git.show(rev, path))
    return trial_for(chosen, failed, pythons=offered(), constraints=held, variables=own)


def _log_of(path: Path | None) -> CiLog | None:
    if path is None:
        return None
    from regreen.fixers.ci_log import parse, read_lines

    with path.open("rb") as file:
        return parse(read_lines(file))
