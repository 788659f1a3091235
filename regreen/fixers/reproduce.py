"""Runs a failed step again in the sandbox and says whether the same failure came back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import Literal

from regreen.codebase.in_git import argv_of
from regreen.codebase.trial import Trial, prepare
from regreen.errors import SetupFailed
from regreen.fixers import driver
from regreen.fixers.ci_log import CiLog, failures_in, parse
from regreen.fixers.ci_trial import Unsupported, default_step, failed_step, trial_for
from regreen.fixers.network import ALLOWED_BY, sign_of_want, with_network
from regreen.fixers.same_failure import is_same, missing, plain
from regreen.models import Env, Failure, RunResult
from regreen.ports import Git, Sandbox

Verdict = Literal["reproduced", "flaky", "not_reproduced", "unsupported", "infra"]
BaseState = Literal["green", "red", "red_otherwise"]


@dataclass(frozen=True)
class Run:
    """One run of the command in a fresh box."""

    ended: str
    exit_code: int | None
    failures: tuple[Failure, ...]
    output: str
    seconds: float
    truncated: bool = False

    @property
    def failed(self) -> bool:
        """It ran to its end and failed; a command that could not be tried (125) did not."""
        return self.ended in {"exit", "timeout", "oom", "flood"} and self.exit_code not in {
            0,
            driver.COULD_NOT_GET_THERE,
        }


@dataclass(frozen=True)
class Reproduction:
    """Whether the failure came back.

    `rate` is the share of runs that failed; `failures` are those of the failing runs, each once; `detail` is one
    sentence for people; `base` says how the same command does on the base: None where nobody asked. `network`: the
    runs had one, for the job cannot work without and the configuration allows it.
    """

    verdict: Verdict
    detail: str
    failures: tuple[Failure, ...] = ()
    runs: tuple[Run, ...] = ()
    rate: float = 0.0
    base: BaseState | None = None
    network: bool = False


# --- running it -------------------------------------------------------------------------------------------------------


def reproduce(
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
) -> Reproduction:
    """Run the trial `runs` times in fresh boxes and say whether the failure came back.

    Args:
        trial: from `trial_for`, or any.
        rev: the failing revision.
        git: the repository.
        sandbox: where it runs.
        runs: how often, at least once.
        cancel: set to stop.
        expected: what CI's log said; then the same tests must fail, not just any.
        base: a revision to compare with; its own failure is told apart.
        allow_network: the configuration lets a job that cannot work without a network have one while it runs.
    """
    try:
        env = prepare(trial, rev, git=git, sandbox=sandbox, cancel=cancel)
    except SetupFailed as error:
        return setup_verdict(error, expected.failures if expected is not None else ())
    seen = [run_once(trial, rev, env, git=git, sandbox=sandbox, cancel=cancel)]
    if allow_network and cannot_do_without(seen[0], expected.failures if expected else ()):
        trial = with_network(trial)
        seen = []
    while len(seen) < max(1, runs):
        seen.append(run_once(trial, rev, env, git=git, sandbox=sandbox, cancel=cancel))
    result = verdict(seen, expected)
    if trial.limits.network:
        detail = f"{result.detail}; with a network while it ran, for it cannot work without one"
        result = replace(result, detail=detail, network=True)
    if base is None or result.verdict not in {"reproduced", "flaky"}:
        return result
    judged = on_base(trial, base, result.failures, git=git, sandbox=sandbox, cancel=cancel)
    return replace(result, base=judged)


def run_once(
    trial: Trial, rev: str, env: Env, *, git: Git, sandbox: Sandbox, cancel: Event | None = None
) -> Run:
    """One run in a fresh box, its output read into failures."""
    with sandbox.open(env, git.archive(rev, trial.overlay), trial.limits) as box:
        result = box.run(argv_of(trial), timeout=trial.timeout, env=dict(trial.env), cancel=cancel)
    return read_run(result)


def read_run(result: RunResult) -> Run:
    """What a run's output tells."""
    output = result.stdout + ("\n" + result.stderr if result.stderr else "")
    failures: tuple[Failure, ...] = ()
    if not result.passed:
        failures = failures_in(output)
        if not failures and result.ended == "exit":
            failures = parse(output.encode()).failures
    return Run(result.ended, result.exit_code, failures, output, result.seconds, result.truncated)


def verdict(runs: Sequence[Run], expected: CiLog | None = None) -> Reproduction:
    """Judge runs of one command against what CI saw; pure."""
    if (named := unsupported_in(run.output for run in runs)) is not None:
        return Reproduction("unsupported", named, runs=tuple(runs))
    if any(run.ended in {"infra", "cancelled"} for run in runs):
        return Reproduction("infra", "the sandbox itself failed or was stopped", runs=tuple(runs))
    failing = [run for run in runs if run.failed]
    rate = len(failing) / len(runs) if runs else 0.0
    failures = _once(failing)
    if not failing:
        return Reproduction("not_reproduced", _why_not(runs), runs=tuple(runs))
    there = expected.failures if expected is not None else ()
    matching = [run for run in failing if is_same(run.failures, there)]
    never = _missing([one for run in matching for one in run.failures], there, matching)
    if not matching or never:
        detail = _otherwise(failing[0], failures, there, never if matching else ())
        return Reproduction("not_reproduced", detail, failures, tuple(runs), rate)
    whole = [run for run in matching if not _missing(run.failures, there, [run])]
    rate = len(whole) / len(runs)
    if len(whole) < len(runs) or not _agree(whole):
        detail = f"failed in {len(whole)} of {len(runs)} runs: {_shown(failures)}"
        return Reproduction("flaky", detail, failures, tuple(runs), rate)
    return Reproduction(
        "reproduced",
        f"failed the same way in {len(runs)} of {len(runs)} runs: {_shown(failures)}{_besides(failures, there)}",
        failures,
        tuple(runs),
        rate,
    )


def _missing(
    found: Sequence[Failure], there: Sequence[Failure], runs: Sequence[Run]
) -> tuple[str, ...]:
    """What failed in CI and did not here; nothing is said of it where a run's output was cut."""
    return () if any(run.truncated for run in runs) else missing(found, there)


def cannot_do_without(run: Run, expected: Sequence[Failure]) -> str:
    """The line that shows a run failing for want of a network, where it did not fail as CI did; "" otherwise."""
    if not run.failed or (expected and run.failures and is_same(run.failures, expected)):
        return ""
    return sign_of_want(run.output)


def _otherwise(
    run: Run, found: Sequence[Failure], there: Sequence[Failure], never: Sequence[str]
) -> str:
    """What was seen instead of CI's failure, or beside a part of it."""
    told = f"it failed, but otherwise than in CI: {_shown(found)}"
    if never:
        number = sum(1 for one in there if one.test)
        told = (
            f"of the {number} that failed in CI, {_names(never)} did not fail here: {_shown(found)}"
        )
    if line := sign_of_want(run.output):
        told += f"; it looks for a network, which it has only where {ALLOWED_BY} allows it: {line}"
    return told


def _besides(found: Sequence[Failure], there: Sequence[Failure]) -> str:
    """What fails here alone, where CI named what failed there."""
    wanted = {plain(one.test) for one in there if one.test}
    more = [one for one in found if wanted and one.test and plain(one.test) not in wanted]
    return f"; beside them, here alone: {_shown(more)}" if more else ""


def _agree(runs: Sequence[Run]) -> bool:
    """Whether every run failed in the same tests."""
    return len({frozenset(plain(one.test) for one in run.failures) for run in runs}) == 1


def _once(runs: Sequence[Run]) -> tuple[Failure, ...]:
    found: dict[tuple[str, str], Failure] = {}
    for run in runs:
        for failure in run.failures:
            found.setdefault((failure.test, failure.kind), failure)
    return tuple(found.values())


def _shown(failures: Sequence[Failure]) -> str:
    names = [failure.test or failure.kind for failure in failures]
    return _names(names) if names else "no failure that a tool named"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _why_not(runs: Sequence[Run]) -> str:
    if all(run.exit_code == driver.COULD_NOT_GET_THERE for run in runs) and runs:
        return "an earlier step failed, so the failing step was never reached"
    return f"it passed in {len(runs)} of {len(runs)} runs"


def unsupported_in(outputs: Iterable[str]) -> str | None:
    """What a shim of ours refused by name while the job ran."""
    for output in outputs:
        for line in output.splitlines():
            if driver.UNSUPPORTED_MARK in line:
                return line[line.index(driver.UNSUPPORTED_MARK) :].removeprefix("regreen: ")
    return None


def setup_verdict(error: SetupFailed, expected: Sequence[Failure]) -> Reproduction:
    """The network phase failed: the failure itself where CI failed there too, else a reason why not."""
    if (named := unsupported_in((error.output,))) is not None:
        return Reproduction("unsupported", named)
    log = parse(error.output.encode())
    failures = log.failures or (Failure("", "setup", str(error)),)
    run = Run("exit", 1, failures, error.output, 0.0)
    if log.kind == "infra":
        detail = f"the setup failed for its surroundings: {_shown(failures)}"
        return Reproduction("infra", detail, failures, (run,))
    shares_kind = {one.kind for one in failures} & {one.kind for one in expected}
    if shares_kind and is_same(failures, expected):
        detail = f"the setup fails as it did in CI: {_shown(failures)}"
        return Reproduction("reproduced", detail, failures, (run,), 1.0)
    detail = f"the setup failed before the step was reached: {_shown(failures)}"
    return Reproduction("not_reproduced", detail, failures, (run,))


def on_base(
    trial: Trial,
    base: str,
    failures: Sequence[Failure],
    *,
    git: Git,
    sandbox: Sandbox,
    cancel: Event | None = None,
) -> BaseState:
    """How the same command does on a base revision: green, red in the same tests, or red in others.

    Args:
        trial: the command that fails on the head.
        base: the revision to compare with.
        failures: what fails on the head.
        git: the repository.
        sandbox: where it runs.
        cancel: set to stop.
    """
    try:
        env = prepare(trial, base, git=git, sandbox=sandbox, cancel=cancel)
    except SetupFailed:
        return "red_otherwise"
    run = run_once(trial, base, env, git=git, sandbox=sandbox, cancel=cancel)
    if not run.failed:
        return "green"
    ours = {failure.test for failure in failures}
    return "red" if ours <= {failure.test for failure in run.failures} else "red_otherwise"


__all__ = [
    "Reproduction",
    "Run",
    "Unsupported",
    "default_step",
    "failed_step",
    "reproduce",
    "trial_for",
    "verdict",
]
