"""Runs a failed step again in the sandbox and says whether the same failure came back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import Literal

from regreen.codebase.in_git import argv_of
from regreen.codebase.trial import Trial, prepare
from regreen.errors import SetupFailed
from regreen.fixers import driver
from regreen.fixers.ci_log import CiLog, failures_in, parse
from regreen.fixers.ci_trial import Unsupported, default_step, failed_step, trial_for
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
    sentence for people; `base` says how the same command does on the base: None where nobody asked.
    """

    verdict: Verdict
    detail: str
    failures: tuple[Failure, ...] = ()
    runs: tuple[Run, ...] = ()
    rate: float = 0.0
    base: BaseState | None = None


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
    """
    try:
        env = prepare(trial, rev, git=git, sandbox=sandbox, cancel=cancel)
    except SetupFailed as error:
        return _setup_failed(error, expected)
    seen = tuple(
        run_once(trial, rev, env, git=git, sandbox=sandbox, cancel=cancel)
        for _ in range(max(1, runs))
    )
    result = verdict(seen, expected)
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
    return Run(result.ended, result.exit_code, failures, output, result.seconds)


def verdict(runs: Sequence[Run], expected: CiLog | None = None) -> Reproduction:
    """Judge runs of one command against what CI saw; pure."""
    if (missing := _unsupported_in(runs)) is not None:
        return Reproduction("unsupported", missing, runs=tuple(runs))
    if any(run.ended in {"infra", "cancelled"} for run in runs):
        return Reproduction("infra", "the sandbox itself failed or was stopped", runs=tuple(runs))
    failing = [run for run in runs if run.failed]
    rate = len(failing) / len(runs) if runs else 0.0
    failures = _once(failing)
    if not failing:
        return Reproduction("not_reproduced", _why_not(runs), runs=tuple(runs))
    matching = [run for run in failing if same_failure(run.failures, expected)]
    if not matching:
        detail = f"it failed, but otherwise than in CI: {_shown(failures)}"
        return Reproduction("not_reproduced", detail, failures, tuple(runs), rate)
    rate = len(matching) / len(runs)
    if len(matching) < len(runs) or not _agree(matching):
        detail = f"failed in {len(matching)} of {len(runs)} runs: {_shown(failures)}"
        return Reproduction("flaky", detail, failures, tuple(runs), rate)
    return Reproduction(
        "reproduced",
        f"failed the same way in {len(runs)} of {len(runs)} runs: {_shown(failures)}",
        failures,
        tuple(runs),
        rate,
    )


def same_failure(found: Sequence[Failure], expected: CiLog | None) -> bool:
    """Whether a run shows what CI's log shows: the same failing ids, or as many of them as were looked for.

    Where the log names no test, the kinds and the first line of the message decide; where it says nothing, any
    failure will do.
    """
    if expected is None or not expected.failures:
        return True
    wanted = {failure.test for failure in expected.failures if failure.test}
    if wanted:
        return bool(wanted & {failure.test for failure in found})
    kinds = {failure.kind for failure in expected.failures}
    return not found or bool(kinds & {failure.kind for failure in found})


def _agree(runs: Sequence[Run]) -> bool:
    """Whether every run failed in the same tests."""
    return len({frozenset(failure.test for failure in run.failures) for run in runs}) == 1


def _once(runs: Sequence[Run]) -> tuple[Failure, ...]:
    found: dict[tuple[str, str], Failure] = {}
    for run in runs:
        for failure in run.failures:
            found.setdefault((failure.test, failure.kind), failure)
    return tuple(found.values())


def _shown(failures: Sequence[Failure]) -> str:
    names = [failure.test or failure.kind for failure in failures[:3]]
    more = f" and {len(failures) - 3} more" if len(failures) > 3 else ""
    return (", ".join(names) or "no failure that a tool named") + more


def _why_not(runs: Sequence[Run]) -> str:
    if all(run.exit_code == driver.COULD_NOT_GET_THERE for run in runs) and runs:
        return "an earlier step failed, so the failing step was never reached"
    return f"it passed in {len(runs)} of {len(runs)} runs"


def _unsupported_in(runs: Sequence[Run]) -> str | None:
    for run in runs:
        for line in run.output.splitlines():
            if driver.UNSUPPORTED_MARK in line:
                return line[line.index(driver.UNSUPPORTED_MARK) :].removeprefix("regreen: ")
    return None


def _setup_failed(error: SetupFailed, expected: CiLog | None) -> Reproduction:
    """The network phase failed: the failure itself where CI failed there too, else a reason why not."""
    log = parse(error.output.encode())
    if driver.UNSUPPORTED_MARK in error.output:
        at = error.output.index(driver.UNSUPPORTED_MARK)
        return Reproduction(
            "unsupported", error.output[at:].splitlines()[0].removeprefix("regreen: ")
        )
    failures = log.failures or (Failure("", "setup", str(error)),)
    run = Run("exit", 1, failures, error.output, 0.0)
    if log.kind == "infra":
        return Reproduction(
            "infra", f"the setup failed for its surroundings: {_shown(failures)}", failures, (run,)
        )
    if expected is not None and expected.failures and same_failure(failures, expected):
        return Reproduction(
            "reproduced",
            f"the setup fails as it did in CI: {_shown(failures)}",
            failures,
            (run,),
            1.0,
        )
    return Reproduction(
        "not_reproduced",
        f"the setup failed before the step was reached: {_shown(failures)}",
        failures,
        (run,),
    )


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
