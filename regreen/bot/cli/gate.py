"""`regreen gate`: judge a patch alone, by looking, and with a failing command at hand by running it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType

import click

from regreen.bot.cli.arguments import overlay_of, suite_at, variables_of
from regreen.bot.cli.fix import python_of
from regreen.bot.cli.options import answered_as, run_in
from regreen.bot.cli.terminal import answer, say
from regreen.codebase.trial import Trial
from regreen.errors import UserError
from regreen.fixers.gate import PROTECTED, GateReport
from regreen.ports import Sandbox


@click.command("gate")
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="DIR",
    help="The repository.",
)
@click.option("--base", required=True, metavar="REV", help="The commit that the patch is for.")
@click.option(
    "--patch",
    "patch_file",
    required=True,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    metavar="FILE",
    help="The patch, a unified diff; - for standard input.",
)
@click.option(
    "--failures",
    "failures_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE.json",
    help="A `before` object: its command is run, its failures must go.",
)
@click.option("--setup", metavar="CMD", help="Run once, with network, before the command.")
@click.option(
    "--env", multiple=True, metavar="K=V", help="A variable for the setup and the command."
)
@click.option(
    "--overlay", multiple=True, metavar="FILE[:DEST]", help="A file to lay over every checkout."
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    default=900.0,
    metavar="S",
    help="For one run of the command.",
)
@click.option(
    "--protected",
    multiple=True,
    default=PROTECTED,
    metavar="GLOB",
    help="Paths where a person decides.",
)
@run_in("kind")
@answered_as("form", "text", "json")
def command(
    *,
    repo: Path,
    base: str,
    patch_file: Path,
    failures_file: Path | None,
    setup: str | None,
    env: tuple[str, ...],
    overlay: tuple[str, ...],
    timeout: float,
    protected: tuple[str, ...],
    kind: str,
    form: str,
) -> int:
    """Judge a patch: allow, needs_human or deny, with the reasons."""
    from regreen.adapters.git import GitRepository
    from regreen.fixers.judge import before_of, judge_patch

    variables = variables_of(env)
    git = GitRepository.open(repo)
    rev = git.resolve(base)
    patch = _patch_of(patch_file)
    before = before_of(_document(failures_file)) if failures_file else None
    trial: Trial | None = None
    tests: Trial | None = None
    sandbox: Sandbox | None = None
    if before is not None and before.command:
        from regreen.adapters.sandbox import choose

        sandbox = choose(kind)
        python = python_of(git, rev, sandbox)
        tests = suite_at(git, rev, setup=setup, env=variables, python=python)
        trial = Trial(
            ("bash", "-c", before.command),
            setup=setup,
            env=variables,
            timeout=timeout,
            python=python,
            overlay=MappingProxyType(overlay_of(overlay)),
        )
    report = judge_patch(
        patch,
        rev,
        git=git,
        before=before,
        trial=trial,
        tests=tests,
        sandbox=sandbox,
        protected=protected,
        say=say,
    )
    if form == "json":
        click.echo(_shown(report, form))
    else:
        answer(_shown(report, form))
    return 0 if report.verdict == "allow" else 1


def _patch_of(path: Path) -> str:
    """The patch as git has it: any encoding, any line ends.

    Raises:
        UserError: there is none in the file.
    """
    from regreen.codebase.diff import parse

    named = "standard input" if str(path) == "-" else str(path)
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        msg = f"cannot read the patch {named}: {error.strerror}"
        raise UserError(msg) from error
    text = data.decode("utf-8", "surrogateescape")
    if not parse(text).files:
        msg = f"{named} holds no patch; make one with `git diff`, and pass the file with --patch"
        raise UserError(msg)
    return text


def _document(path: Path) -> dict[str, object]:
    try:
        document = json.loads(path.read_text())
    except ValueError as error:
        msg = f"{path} is not JSON: {error}"
        raise UserError(msg) from error
    if isinstance(document, dict) and isinstance(document.get("before"), dict):
        document = document["before"]
    if not isinstance(document, dict):
        msg = f"{path} must hold a `before` object"
        raise UserError(msg)
    return document


def _shown(report: GateReport, form: str) -> str:
    if form == "json":
        return json.dumps({"version": 1, **asdict(report)}, indent=2)
    lines = [
        report.verdict,
        *(f"  {reason.check} ({reason.level}): {reason.detail}" for reason in report.reasons),
    ]
    return "\n".join(lines)
