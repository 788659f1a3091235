"""`regreen env`: how a repository is set up and tested, as inferred; and the same for the commands that run something."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from io import StringIO
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import click

from regreen.cli.options import (
    env_option,
    format_option,
    load_config_at,
    parse_variables,
    quiet_option,
    repo_option,
    resolve_revision,
    sandbox_option,
    time_limit_option,
)
from regreen.cli.terminal import print_answer, report_note, report_progress
from regreen.domain.errors import UserError
from regreen.domain.job_control import TimeLimit

if TYPE_CHECKING:
    from regreen.domain.ports import Git, Sandbox
    from regreen.domain.repo_config import TestsConfig
    from regreen.environment.preparation import CompletedTrial
    from regreen.runs.trial import Trial

# A suite that still runs after so long has started, which is the question here.
_TEST_SECONDS = 60.0


def complete_local_trial(
    trial: Trial,
    rev: str,
    *,
    git: Git,
    sandbox: Sandbox,
    minutes: float,
    cancel: Event | None = None,
    given: TestsConfig | None = None,
    change: str | None = None,
    touched: Collection[str] = (),
    today: date | None = None,
) -> CompletedTrial:
    """`complete_trial` with the configuration that `rev` has, or with `given`; each step is printed.

    Where `change`, a commit on top of `rev`, says something else about its environment, a note says so.

    Raises:
        UserError: the configuration is invalid.
        Cancelled: `cancel` was set.
        OutsideError: the sandbox engine failed.
    """
    from regreen.environment.preparation import complete_trial

    done = complete_trial(
        trial,
        rev,
        tests=given or load_config_at(git, rev).tests,
        git=git,
        sandbox=sandbox,
        minutes=minutes,
        today=today or datetime.now(UTC).date(),
        say=report_progress,
        cancel=cancel,
        change=change,
        touched=touched,
    )
    if done.altered:
        return done.add_note(
            f"the setup is inferred from the base {rev[:12]} and reads {done.altered}, which this change alters: a "
            "test may fail for that"
        )
    if not done.unused:
        return done
    return done.add_note(
        f"the environment is inferred from the base {rev[:12]}: this change says something else ({done.unused}), "
        "which is not used"
    )


def _answer_late(options: Mapping[str, Any], reason: str, _seconds: float) -> str:
    from regreen.domain.environments import Environment

    document = {"version": 1, **Environment("").make_document(), "works": False, "reason": reason}
    is_json = options.get("form") == "json"
    return json.dumps(document, indent=2) if is_json else _format_text(document)


@click.command("env")
@repo_option()
@click.option("--rev", default="HEAD", help="The commit; WORKTREE: the files as they stand.")
@click.option(
    "--try/--no-try",
    "tries",
    default=True,
    help="Run the setup and the test command in the sandbox.",
)
@env_option()
@time_limit_option(_answer_late)
@sandbox_option("kind")
@format_option("form", "text", "json")
@quiet_option()
def command(
    *,
    repo: Path,
    rev: str,
    tries: bool,
    env: tuple[str, ...],
    limit: TimeLimit,
    kind: str,
    form: str,
) -> int:
    """Say how the repository is set up and tested, where that is known from, and whether it works."""
    from regreen.adapters.git.repository import GitRepository
    from regreen.adapters.sandbox.selection import choose_sandbox
    from regreen.runs.trial import Trial

    git = GitRepository.open(repo)
    at = resolve_revision(git, repo, rev)
    trial = Trial((), env=parse_variables(env), timeout=_TEST_SECONDS)
    document: dict[str, object] = {"version": 1}
    if tries:
        document |= _try_environment(trial, at, git, choose_sandbox(kind), limit)
    else:
        document |= _infer_only(at, git)
    limit.begin_answer()
    if form == "json":
        click.echo(json.dumps(document, indent=2))
    else:
        print_answer(_format_text(document), headline=True)
    return 0 if document["works"] in {True, None} else 1


@click.command("init")
@repo_option()
@sandbox_option("kind")
@time_limit_option(_answer_late)
def init_command(*, repo: Path, kind: str, limit: TimeLimit) -> int:
    """Write .github/regreen.yml with the setup and the test command that were inferred, once they work."""
    from ruamel.yaml import YAML
    from ruamel.yaml.scalarstring import LiteralScalarString

    from regreen.adapters.git.repository import GitRepository
    from regreen.adapters.sandbox.selection import choose_sandbox
    from regreen.code.repo_config_file import parse_repo_config
    from regreen.domain.repo_config import CONFIG_PATH
    from regreen.runs.trial import Trial

    git = GitRepository.open(repo)
    place = git.find_work_tree(repo) / CONFIG_PATH
    if place.is_symlink() or place.exists() or place.parent.is_symlink():
        message = f"{place} is there already; `regreen env` says what is inferred, to compare"
        raise UserError(message)
    rev = git.resolve("HEAD")
    trial = Trial((), timeout=_TEST_SECONDS)
    # as if the commit were of today: bound to its day, the setup could install nothing newer for later commits
    now = git.commit(rev).date.date()
    document = _try_environment(trial, rev, git, choose_sandbox(kind), limit, today=now)
    limit.begin_answer()
    if not document["works"]:
        report_note(f"nothing was written: {document['reason']}")
        return 1
    named = {"setup": str(document["setup"] or ""), "command": str(document["test"])}
    tests = {
        key: LiteralScalarString(text) if "\n" in text else text
        for key, text in named.items()
        if text
    }
    out, yaml = StringIO(), YAML()
    yaml.width = 4096  # one command, one line
    yaml.dump({"tests": tests}, out)
    text = f"# Inferred from {document['source']} at {rev[:12]}.\n{out.getvalue()}"
    parse_repo_config(text)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
    click.echo(f"wrote {place}; commit it")
    return 0


def _infer_only(rev: str, git: Git) -> dict[str, object]:
    from regreen.adapters.sandbox.host import find_pythons
    from regreen.domain.environments import Environment
    from regreen.environment.inference import infer_environments

    pythons = tuple(find_pythons())
    found = infer_environments(git, rev, pythons=pythons, today=datetime.now(UTC).date())
    reason = "not tried" if found else "no file says how the repository is set up or tested"
    shown = found[0] if found else Environment("")
    return {**shown.make_document(), "works": None if found else False, "reason": reason}


def _try_environment(
    trial: Trial,
    rev: str,
    git: Git,
    sandbox: Sandbox,
    limit: TimeLimit,
    *,
    today: date | None = None,
) -> dict[str, object]:
    """Set up, run the tests once, and say whether they started."""
    from regreen.domain.errors import SetupFailed
    from regreen.environment.preparation import describe_failure, describe_start
    from regreen.runs.test_runs import run_fresh

    minutes = limit.minutes_left
    done = complete_local_trial(
        trial, rev, git=git, sandbox=sandbox, minutes=minutes, cancel=limit.cancel, today=today
    )
    document = done.document
    if not document.get("test"):
        return {**document, "works": False, "reason": "no file says how the repository is tested"}
    if not done.works and done.notes:
        return {**document, "works": False, "reason": done.notes[-1]}
    left = max(1.0, 60 * limit.minutes_left)
    limited = replace(
        done.trial, timeout=min(done.trial.timeout, left), setup_timeout=min(900.0, left)
    )
    try:
        run = run_fresh(limited, rev, git=git, sandbox=sandbox, cancel=limit.cancel)
    except SetupFailed as error:
        return {**document, "works": False, "reason": describe_failure(error)}
    why = describe_start(limited, run)
    how: str = "green" if run.is_green else run.result.ended
    if run.result.ended == "exit" and not run.is_green:
        how = f"{len(run.failing) or 'some'} failing, exit {run.result.exit_code}"
    return {**document, "works": why is None, "reason": why or f"the tests start ({how})"}


def _format_text(document: dict[str, object]) -> str:
    sources = document.get("sources")
    places = sources if isinstance(sources, dict) else {}
    works = document["works"]
    lines = [
        f"{'works' if works else 'does not work' if works is False else 'inferred'}: {document['reason']}"
    ]
    for name in ("interpreter", "image", "setup", "test"):
        if value := document.get(name):
            rows = str(value).splitlines()
            lines.append(f"  {name:<12} {rows[0]}  (from {places.get(name, document['source'])})")
            lines += [f"  {'':<12} {row}" for row in rows[1:]]
    notes = document.get("notes")
    lines += [f"  note         {note}" for note in notes] if isinstance(notes, list) else []
    return "\n".join(lines)
