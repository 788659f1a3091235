"""`regreen gate`: judge a patch alone, by looking, and with a failing command at hand by running it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from regreen.cli.env import complete_local_trial
from regreen.cli.options import (
    TrialOptions,
    format_option,
    quiet_option,
    repo_option,
    sandbox_option,
    time_limit_option,
    trial_options,
)
from regreen.cli.terminal import print_answer, report_progress
from regreen.code.file_change import CheckReason
from regreen.domain.errors import UserError
from regreen.domain.job_control import TimeLimit
from regreen.domain.ports import Sandbox
from regreen.gate.judge import PROTECTED_PATHS, GateReport
from regreen.packages.python_version import choose_python_version
from regreen.runs.trial import Trial


def _answer_late(options: Mapping[str, Any], reason: str, _seconds: float) -> str:
    late = CheckReason("verified", f"not made: {reason}", "needs_human")
    return _format_report(GateReport("needs_human", (late,)), options["form"], {})


@click.command("gate")
@repo_option()
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
@trial_options()
@click.option(
    "--protected",
    multiple=True,
    default=PROTECTED_PATHS,
    metavar="GLOB",
    help="Paths where a person decides.",
)
@time_limit_option(_answer_late, default=30.0)
@sandbox_option("kind")
@format_option("form", "text", "json")
@quiet_option()
def command(
    *,
    repo: Path,
    base: str,
    patch_file: Path,
    failures_file: Path | None,
    options: TrialOptions,
    protected: tuple[str, ...],
    limit: TimeLimit,
    kind: str,
    form: str,
) -> int:
    """Judge a patch: allow, needs_human or deny, with the reasons."""
    from regreen.adapters.git.repository import GitRepository
    from regreen.fixers.judge_patch import judge_patch, parse_initial_failure

    git = GitRepository.open(repo)
    rev = git.resolve(base)
    patch = _read_patch(patch_file)
    before = parse_initial_failure(_read_json_document(failures_file)) if failures_file else None
    trial: Trial | None = None
    tests: Trial | None = None
    sandbox: Sandbox | None = None
    environment: dict[str, object] = {}
    if before is not None and before.command:
        from regreen.adapters.sandbox.selection import choose_sandbox

        sandbox = choose_sandbox(kind)
        done = complete_local_trial(
            options.make_trial(("bash", "-c", before.command)),
            rev,
            git=git,
            sandbox=sandbox,
            minutes=limit.minutes_left,
            cancel=limit.cancel,
        )
        environment = done.document
        python = done.trial.python or choose_python_version(git, rev, sandbox.pythons())
        trial = replace(done.trial, python=python)
        tests = options.load_suite_trial(git, rev, python, setup=trial.setup)
    report = judge_patch(
        patch,
        rev,
        git=git,
        before=before,
        trial=trial,
        tests=tests,
        sandbox=sandbox,
        protected=protected,
        say=report_progress,
        minutes=limit.minutes_left,
    )
    limit.begin_answer()
    if form == "json":
        click.echo(_format_report(report, form, environment))
    else:
        print_answer(_format_report(report, form, environment))
    return 0 if report.verdict == "allow" else 1


def _read_patch(path: Path) -> str:
    """The patch as git has it: any encoding, any line ends.

    Raises:
        UserError: there is none in the file.
    """
    from regreen.code.diff import parse

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


def _read_json_document(path: Path) -> dict[str, object]:
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


def _format_report(report: GateReport, form: str, environment: dict[str, object]) -> str:
    if form == "json":
        return json.dumps(
            {"version": 1, **asdict(report), "environment": environment or None}, indent=2
        )
    lines = [
        report.verdict,
        *(f"  {reason.check} ({reason.level}): {reason.detail}" for reason in report.reasons),
    ]
    return "\n".join(lines)
