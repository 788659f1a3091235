"""`regreen ci-log`: reads the failures out of a CI job's log."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click

from regreen.bot.cli.options import answered_as
from regreen.bot.cli.terminal import answer
from regreen.errors import UserError
from regreen.fixers.ci_log import CiLog, parse, read_lines
from regreen.models import Failure


@click.command(
    "ci-log", help="Read the failures out of a CI job's log (FILE, or - for standard input)."
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--step", default=None, help="The failing step's name, where you know it.")
@answered_as("shape", "text", "json")
def command(file: Path, step: str | None, shape: str) -> int:
    """Say what the log holds; a log without failures is an answer too."""
    log = _read(file, step)
    if shape == "json":
        click.echo(json.dumps({"version": 1, **asdict(log)}))
    else:
        answer(_text(log))
    return 0


def _read(file: Path, step: str | None) -> CiLog:
    if str(file) == "-":
        return parse(read_lines(sys.stdin.buffer), step=step)
    try:
        with file.open("rb") as stream:
            return parse(read_lines(stream), step=step)
    except OSError as error:
        message = f"cannot read {file}: {error.strerror}; give the path of a job's log"
        raise UserError(message) from error


def _text(log: CiLog) -> str:
    if not log.failures:
        return "no failure found in this log"
    head = f"{log.kind} failure in step: {log.step or '(the log names no step)'}"
    if log.exit_code is not None:
        head += f" (exit code {log.exit_code})"
    return "\n".join([head, *(_line(failure) for failure in log.failures)])


def _line(failure: Failure) -> str:
    place = f"{failure.path}:{failure.line}" if failure.line else failure.path or ""
    first = failure.message.splitlines()[0] if failure.message else ""
    return "  " + "  ".join(part for part in (failure.test or failure.kind, place, first) if part)
