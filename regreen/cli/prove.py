"""`regreen prove`: whether the new and altered tests of a change prove it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regreen.cli.env import complete_local_trial
from regreen.cli.options import (
    TrialOptions,
    format_option,
    format_replay,
    load_config_at,
    quiet_option,
    repo_option,
    sandbox_option,
    store_capsule,
    time_limit_option,
    trial_options,
)
from regreen.cli.review import resolve_change
from regreen.cli.terminal import print_answer, report_progress
from regreen.domain.job_control import TimeLimit
from regreen.packages.python_version import choose_python_version

if TYPE_CHECKING:
    from regreen.proofs.prove import ProofResult


def _answer_late(options: Mapping[str, Any], reason: str, _seconds: float) -> str:
    from regreen.bot.messages.proofs import format_proof
    from regreen.proofs.prove import ProofResult

    late = ProofResult("inconclusive", reason)
    if options["form"] == "json":
        return json.dumps(make_document(late, {}, None), indent=2)
    return format_proof(late)


@click.command("prove")
@repo_option()
@click.option("--base", metavar="REV", help="What it is compared with; default: as for review.")
@click.option("--head", metavar="REV", help="The change; WORKTREE: the files as they stand.")
@click.option("--title", default="", help="The pull request's title, whose claims are checked.")
@click.option("--body", default="", help="Its description.")
@click.option(
    "--mutants",
    type=click.IntRange(0, 1000),
    metavar="N",
    help="Faults that are put into the changed lines; default: prove.mutants.",
)
@trial_options()
@time_limit_option(_answer_late)
@sandbox_option("kind")
@format_option("form", "text", "json")
@quiet_option()
def command(
    *,
    repo: Path,
    base: str | None,
    head: str | None,
    title: str,
    body: str,
    mutants: int | None,
    options: TrialOptions,
    limit: TimeLimit,
    kind: str,
    form: str,
) -> int:
    """Run a change's new and altered tests with and without it: do they prove it?"""
    from regreen.adapters.git.repository import GitRepository
    from regreen.adapters.sandbox.selection import choose_sandbox
    from regreen.bot.messages.proofs import format_proof
    from regreen.code.path_settings import find_changed_paths
    from regreen.proofs.prove import ProofJob, prove_change
    from regreen.secrets.redaction import redact_all, redact_secrets

    git = GitRepository.open(repo)
    named, at = resolve_change(git, repo, base, head, None)
    origin = git.merge_base(named, at) or named
    settings = load_config_at(git, origin).prove
    sandbox = choose_sandbox(kind)
    job = ProofJob(
        options.make_trial(()),
        origin,
        at,
        title,
        body,
        settings.mutants if mutants is None else mutants,
    )
    environment: dict[str, object] = {}
    spent = 0.0

    def prepare() -> ProofJob:
        nonlocal environment, spent
        started = time.monotonic()
        done = complete_local_trial(
            job.trial,
            at,
            git=git,
            sandbox=sandbox,
            minutes=limit.minutes_left / 2,
            cancel=limit.cancel,
            touched=find_changed_paths(git, origin, at),
        )
        python = done.trial.python or choose_python_version(git, at, sandbox.pythons())
        environment, spent = done.document, time.monotonic() - started
        minutes = min(settings.minutes, limit.minutes_left)
        return replace(job, trial=replace(done.trial, python=python), minutes=minutes)

    result = prove_change(
        job, git=git, sandbox=sandbox, say=report_progress, cancel=limit.cancel, prepare=prepare
    )
    limit.begin_answer()
    place = store_capsule(result.capsule) if result.capsule else None
    result = replace(
        result,
        seconds={**result.seconds, "environment": spent + result.seconds["environment"]},
        capsule=None,
    )
    if form == "json":
        click.echo(json.dumps(redact_all(make_document(result, environment, place)), indent=2))
    else:
        again = f"\nrepeat it: regreen replay {format_replay(place, repo)}" if place else ""
        print_answer(redact_secrets(format_proof(result) + again), headline=True)
    return 0 if result.verdict in {"proven", "nothing_to_prove"} else 1


def make_document(
    result: ProofResult, environment: dict[str, object], capsule: Path | None
) -> dict[str, object]:
    """The JSON document of a proof."""
    surroundings = {
        "environment": environment or None,
        "capsule": str(capsule) if capsule else None,
    }
    return {"version": 1, **asdict(result), **surroundings}
