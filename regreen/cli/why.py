"""`regreen why`: who caused a failure, decided by running it; and `regreen replay`: repeat what a capsule holds."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError

import click

from regreen.cli.env import complete_local_trial
from regreen.cli.options import (
    TrialOptions,
    find_merge_base,
    format_option,
    format_replay,
    quiet_option,
    repo_option,
    resolve_revision,
    sandbox_option,
    store_capsule,
    time_limit_option,
    trial_options,
)
from regreen.cli.terminal import print_answer, report_progress, report_warning
from regreen.domain.errors import UserError
from regreen.domain.job_control import StopCondition, TimeLimit

if TYPE_CHECKING:
    from regreen.domain.ports import Box, Git
    from regreen.logs.ci_log import CiLog
    from regreen.runs.capsule import Capsule
    from regreen.runs.trial import Trial

_DEFAULT_BASES = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
_DOWNLOAD_SECONDS = 30.0
_LOG = click.Path(exists=True, dir_okay=False, path_type=Path)


def _answer_late(options: Mapping[str, Any], reason: str, _seconds: float) -> str:
    from regreen.bot.messages.causes import format_cause, make_cause_document
    from regreen.causes.investigation import RedCause

    document = make_cause_document(RedCause("unknown", reason, "look"))
    shown = {**document, "environment": None}
    return json.dumps(shown, indent=2) if options["form"] == "json" else format_cause(document)


@click.command("why")
@repo_option()
@click.option(
    "--base", metavar="REV", help="The branch that the change is for; left out: the default branch."
)
@click.option(
    "--head",
    default="HEAD",
    metavar="REV",
    help="Where it fails; WORKTREE: the files as they stand.",
)
@click.option("--log", type=_LOG, metavar="FILE", help="The CI log of the failing run.")
@click.option(
    "--green-log",
    type=_LOG,
    metavar="FILE",
    help="The CI log of the last green run: its package versions are tried.",
)
@click.option(
    "--runs", type=click.IntRange(2, 100), default=12, metavar="N", help="Stop after so many runs."
)
@trial_options()
@time_limit_option(_answer_late)
@sandbox_option("kind")
@format_option("form", "text", "json")
@quiet_option()
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, required=True, metavar="-- COMMAND...")
def command(
    *,
    repo: Path,
    base: str | None,
    head: str,
    log: Path | None,
    green_log: Path | None,
    runs: int,
    options: TrialOptions,
    limit: TimeLimit,
    kind: str,
    form: str,
    argv: tuple[str, ...],
) -> int:
    """Say who caused a failure of COMMAND: the change, main, a flaky test, a package, or the infrastructure.

    The failing tests run alone on head and on the merge base, as often as it takes to tell. Exit code 0: the cause was
    found; 1: it is not known, and the reason is given.
    """
    from regreen.actions.step_trial import select_constraints
    from regreen.adapters.git.repository import GitRepository
    from regreen.adapters.sandbox.selection import choose_sandbox
    from regreen.bot.messages.causes import format_cause, make_cause_document
    from regreen.causes.investigation import Investigation, RedCase
    from regreen.secrets.redaction import redact_all

    git = GitRepository.open(repo)
    at = resolve_revision(git, repo, head)
    tip, merge_base = _find_merge_base(git, base, at)
    sandbox = choose_sandbox(kind)
    failed, green = _read_log(log), _read_log(green_log)
    done = complete_local_trial(
        options.make_trial(argv),
        at,
        git=git,
        sandbox=sandbox,
        minutes=limit.minutes_left,
        cancel=limit.cancel,
    )
    versions = select_constraints(green.installed, lambda path: git.show(at, path)) if green else ()
    case = RedCase(done.trial, at, merge_base, failed, tuple(versions), runs, tip)
    stop = StopCondition(limit.deadline, limit.cancel)
    found = Investigation(
        case, git=git, sandbox=sandbox, stop=stop, say=report_progress
    ).find_cause()
    limit.begin_answer()
    place = store_capsule(found.capsule) if found.capsule else None
    document = redact_all(
        {
            **make_cause_document(found, str(place) if place else None),
            "environment": done.document,
        }
    )
    if form == "json":
        click.echo(json.dumps(document, indent=2))
    else:
        shown = {**document, "capsule": format_replay(place, repo) if place else None}
        if done.trial.command != argv:
            shown["command"] = f"{done.trial.command_line} (in place of the one that was given)"
        print_answer(format_cause(shown), headline=True)
    return 1 if found.verdict == "unknown" else 0


def _find_merge_base(git: Git, base: str | None, head: str) -> tuple[str, str]:
    """The branch that the change is for, and where the change left it."""
    for name in (base,) if base else _DEFAULT_BASES:
        try:
            branch = git.resolve(name)
        except UserError:
            if base:
                raise
            continue
        if (found := find_merge_base(git, branch, head)) is None:
            message = f"{name} and {head[:12]} have no common history; name another --base"
            raise UserError(message)
        return branch, found
    raise UserError("there is no default branch to compare with; name it with --base")


def _read_log(path: Path | None) -> CiLog | None:
    from regreen.logs.ci_log import read_log

    if path is None:
        return None
    with path.open("rb") as file:
        return read_log(file)


@click.command("replay")
@click.argument("source", metavar="CAPSULE|URL")
@repo_option()
@click.option(
    "--shell", "opens_shell", is_flag=True, help="Stop in the sandbox before the command."
)
@click.option("--offline", is_flag=True, help="The setup may reach no package index.")
@sandbox_option("kind")
@format_option("form", "text", "json")
@quiet_option()
def replay_command(
    *, source: str, repo: Path, opens_shell: bool, offline: bool, kind: str, form: str
) -> int:
    """Repeat a capsule in the sandbox: same, different, or what is missing.

    Reads no settings file. A capsule is untrusted: its digest must match, and what it names runs in the sandbox only.
    """
    from regreen.adapters.git.repository import GitRepository
    from regreen.adapters.sandbox.selection import choose_sandbox
    from regreen.runs.capsule import decode_capsule, load_capsule, replay_capsule

    is_url = source.startswith(("https://", "http://127.0.0.1:", "http://localhost:"))
    if "://" in source and not is_url:
        message = f"{source}: a capsule comes from an https address or a file; download it and name its file"
        raise UserError(message)
    capsule = decode_capsule(download_capsule(source)) if is_url else load_capsule(Path(source))
    git = GitRepository.open(repo)
    report_progress(f"repeating {capsule.digest[:12]} ({capsule.kind}) at {capsule.commit[:12]}")
    result = replay_capsule(
        capsule,
        git=git,
        sandbox=choose_sandbox(kind),
        offline=offline,
        attach=partial(_serve_shell, quiet=form == "json") if opens_shell else None,
    )
    document = {
        "version": 1,
        "verdict": result.verdict,
        "expected": _make_capsule_document(capsule),
        "seen": result.seen,
        "missing": list(result.missing),
    }
    if form == "json":
        click.echo(json.dumps(document, indent=2))
    else:
        lines = [
            result.verdict or "not repeated",
            *(f"  missing: {word}" for word in result.missing),
        ]
        lines += [f"  {name}: {value}" for name, value in result.seen.items()]
        print_answer("\n".join(lines), headline=True)
    return 0 if result.verdict in {"same", None} else 1


def _make_capsule_document(capsule: Capsule) -> dict[str, object]:
    expected = capsule.expected
    return {
        "outcome": expected.outcome,
        "times": expected.times,
        "runs": expected.runs,
        "signature": expected.signature.text if expected.signature else None,
        "commit": capsule.commit,
        "tree": capsule.tree,
        "environment": asdict(capsule.environment),
    }


def download_capsule(url: str) -> bytes:
    """The first bytes that a URL gives, with no credential.

    Raises:
        UserError: it cannot be had.
    """
    from regreen.runs.capsule import MAX_CAPSULE_BYTES

    try:
        with urllib.request.urlopen(url, timeout=_DOWNLOAD_SECONDS) as answer:  # noqa: S310 - https, or the own machine
            return bytes(answer.read(MAX_CAPSULE_BYTES + 1))
    except (OSError, ValueError) as error:
        needs_reader = isinstance(error, HTTPError) and error.code in {401, 403}
        remedy = (
            "a private repository's capsule is for those who are signed in: open the address in a browser, sign in, save the file, and run `regreen replay FILE`"
            if needs_reader
            else "download the capsule and name its file"
        )
        message = f"cannot get {url}: {error}; {remedy}"
        raise UserError(message) from error


def _serve_shell(box: Box, trial: Trial, *, quiet: bool) -> None:
    """Run the lines of standard input in the box, each in a shell of its own, until the input ends.

    `quiet`: their output goes to standard error, for standard output holds the document alone.
    """
    click.echo(
        f"the command is: {trial.command_line}\nin the sandbox at /work; end with Ctrl-D", err=True
    )
    while True:
        try:
            line = click.prompt(
                "regreen", prompt_suffix="$ ", default="", show_default=False, err=True
            )
        except click.Abort:
            return
        done = box.run(("sh", "-c", line), timeout=trial.timeout, env=dict(trial.env))
        shown = f"{done.stdout}{done.stderr}"
        if quiet:
            report_warning(shown)
        else:
            print_answer(shown)
        if done.ended != "exit":
            report_progress(f"the sandbox was ended: {done.ended}")
            return
