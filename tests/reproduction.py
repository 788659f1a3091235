"""Runs a planned step in fresh boxes and judges the runs, as the stories about CI's failures need it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from threading import Event
from typing import Literal

from regreen.actions.service_containers import find_substituted_services
from regreen.actions.step_trial import enable_network
from regreen.domain.errors import SetupFailed
from regreen.domain.models import Failure
from regreen.domain.ports import Git, Sandbox
from regreen.fixers.reproduction import (
    Reproduction,
    find_lacking_network,
    judge_reproduction,
    judge_setup_failure,
    run_once,
)
from regreen.logs.ci_log import CiLog
from regreen.runs.trial import Trial, prepare_environment

BaseState = Literal["green", "red", "red_otherwise"]


@dataclass(frozen=True)
class FreshReproduction(Reproduction):
    """A reproduction, how the same command does on the base, and whether the runs had a network."""

    base: BaseState | None = None
    network: bool = False


def reproduce_failure(
    trial: Trial,
    rev: str,
    *,
    git: Git,
    sandbox: Sandbox,
    runs: int = 3,
    cancel: Event | None = None,
    expected: CiLog | None = None,
    base: str | None = None,
    allow_network: bool = False,
) -> FreshReproduction:
    """Run the trial `runs` times in fresh boxes; `allow_network`: with a network where it cannot work without."""
    wanted = expected.failures if expected is not None else ()
    try:
        env = prepare_environment(trial, rev, git=git, sandbox=sandbox, cancel=cancel)
    except SetupFailed as error:
        return _extend(judge_setup_failure(error, wanted))
    seen = [run_once(trial, rev, env, git=git, sandbox=sandbox, cancel=cancel)]
    if allow_network and find_lacking_network(seen[0], wanted):
        trial, seen = enable_network(trial), []
    while len(seen) < max(1, runs):
        seen.append(run_once(trial, rev, env, git=git, sandbox=sandbox, cancel=cancel))
    result = judge_reproduction(seen, expected)
    detail = result.detail
    if trial.limits.network:
        detail += "; with a network while it ran, for it cannot work without one"
    if others := find_substituted_services("\n".join(run.output for run in seen)):
        detail += f"; service {'; service '.join(others)}"
    compared = base is not None and result.verdict in {"reproduced", "flaky"}
    state = _check_base(trial, base or "", result.failures, git, sandbox) if compared else None
    return _extend(result, detail, state, network=trial.limits.network)


def _extend(
    result: Reproduction,
    detail: str | None = None,
    base: BaseState | None = None,
    *,
    network: bool = False,
) -> FreshReproduction:
    own = {field.name: getattr(result, field.name) for field in fields(result)}
    own["detail"] = result.detail if detail is None else detail
    return FreshReproduction(**own, base=base, network=network)


def _check_base(
    trial: Trial, base: str, failures: Sequence[Failure], git: Git, sandbox: Sandbox
) -> BaseState:
    try:
        env = prepare_environment(trial, base, git=git, sandbox=sandbox)
    except SetupFailed:
        return "red_otherwise"
    run = run_once(trial, base, env, git=git, sandbox=sandbox)
    if not run.failed:
        return "green"
    ours = {failure.test for failure in failures}
    return "red" if ours <= {failure.test for failure in run.failures} else "red_otherwise"
