"""`regreen ci-log`: reads the failures out of a CI job's log."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click

from regreen.cli.options import format_option
from regreen.cli.terminal import print_answer
from regreen.domain.errors import UserError
from regreen.domain.models import Failure
from regreen.logs.ci_log import CiLog, read_log


@click.command(
    "ci-log", help="Read the failures out of a CI job's log (FILE, or - for standard input)."
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--step", default=None, help="The failing step's name, where you know it.")
@format_option("shape", "text", "json")
def command(file: Path, step: str | None, shape: str) -> int:
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
