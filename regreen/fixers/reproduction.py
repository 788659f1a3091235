"""Runs a failed step again in the sandbox and says whether the same failure came back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Literal

from regreen.actions import driver
from regreen.actions.step_trial import ALLOWED_BY, find_network_error, is_network_failure
from regreen.domain.errors import AnalysisFailed, SetupFailed
from regreen.domain.models import Failure, PreparedEnv, RunResult
from regreen.domain.ports import Git, Sandbox
from regreen.logs.ci_log import CiLog, read_failures, read_log
from regreen.runs.test_runs import CommandRun, trial_argv
from regreen.runs.trial import UNTESTABLE_EXIT_CODE, Trial

ReproductionVerdict = Literal["reproduced", "flaky", "not_reproduced", "unsupported", "infra"]


@dataclass(frozen=True)
class Reproduction:
    """Whether the failure came back.

    `rate` is the share of runs that failed; `failures` are those of the failing runs, each once; `detail` is one
    sentence for people.
    """

    verdict: ReproductionVerdict
    detail: str
    failures: tuple[Failure, ...] = ()
    runs: tuple[CommandRun, ...] = ()
    rate: float = 0.0


def run_once(
    trial: Trial,
    rev: str,
    env: PreparedEnv,
    *,
    git: Git,
    sandbox: Sandbox,
    cancel: Event | None = None,
) -> CommandRun:
    """One run in a fresh box, its output read into failures."""
    with sandbox.open(env, git.archive(rev, trial.overlay), trial.limits) as box:
        result = box.run(
            trial_argv(trial), timeout=trial.timeout, env=dict(trial.env), cancel=cancel
        )
    return read_run(result)


def read_run(result: RunResult) -> CommandRun:
    """A run with the failures in its output."""
    output = result.stdout + ("\n" + result.stderr if result.stderr else "")
    failures: tuple[Failure, ...] = ()
    if not result.passed:
        failures = read_failures(output, guess=result.ended == "exit")
    return CommandRun(result, failures)


def judge_reproduction(runs: Sequence[CommandRun], expected: CiLog | None = None) -> Reproduction:
    """Compare runs of one command with CI's log; pure."""
    if (named := find_unsupported(run.output for run in runs)) is not None:
        return Reproduction("unsupported", named, runs=tuple(runs))
    if any(run.result.ended in {"infra", "cancelled"} for run in runs):
        return Reproduction("infra", "the sandbox itself failed or was stopped", runs=tuple(runs))
    failing = [run for run in runs if run.failed]
    rate = len(failing) / len(runs) if runs else 0.0
    failures = _unique_failures(failing)
    if not failing:
        return Reproduction("not_reproduced", _explain_not_reproduced(runs), runs=tuple(runs))
    there = expected.failures if expected is not None else ()
    matching = [run for run in failing if shows_expected_failure(run.failures, there)]
    never = _find_missing_failures(
        [failure for run in matching for failure in run.failures], there, matching
    )
    if not matching or never:
        detail = _describe_difference(failing[0], failures, there, never if matching else ())
        return Reproduction("not_reproduced", detail, failures, tuple(runs), rate)
    whole = [run for run in matching if not _find_missing_failures(run.failures, there, [run])]
    rate = len(whole) / len(runs)
    if len(whole) < len(runs) or not _runs_agree(whole):
        detail = f"failed in {len(whole)} of {len(runs)} runs: {_list_failures(failures)}"
        return Reproduction("flaky", detail, failures, tuple(runs), rate)
    return Reproduction(
        "reproduced",
        f"failed the same way in {len(runs)} of {len(runs)} runs: {_list_failures(failures)}{_describe_extra_failures(failures, there)}",
        failures,
        tuple(runs),
        rate,
    )


def _find_missing_failures(
    found: Sequence[Failure], there: Sequence[Failure], runs: Sequence[CommandRun]
) -> tuple[str, ...]:
    """The ids that failed in CI and not here; none if a run's output was cut."""
    return (
        ()
        if any(run.result.truncated for run in runs)
        else find_ids_failing_only_in_ci(found, there)
    )


def find_lacking_network(run: CommandRun, expected: Sequence[Failure]) -> str:
    """The line that shows that a run lacked a network; "" if it failed as in CI."""
    if not run.failed or (
        expected and run.failures and shows_expected_failure(run.failures, expected)
    ):
        return ""
    return find_network_error(run.output)


def _describe_difference(
    run: CommandRun, found: Sequence[Failure], there: Sequence[Failure], never: Sequence[str]
) -> str:
    """Describes how the failure differs from CI's."""
    words = f"it failed, but otherwise than in CI: {_list_failures(found)}"
    if never:
        number = sum(1 for failure in there if failure.test)
        words = f"of the {number} that failed in CI, {_list_names(never)} did not fail here: {_list_failures(found)}"
    if line := find_network_error(run.output):
        words += f"; it looks for a network, which it has only where {ALLOWED_BY} allows it: {line}"
    return words


def _describe_extra_failures(found: Sequence[Failure], there: Sequence[Failure]) -> str:
    """The failures that CI did not have, if CI named its failures."""
    wanted = {strip_lines_and_addresses(failure.test) for failure in there if failure.test}
    more = [
        failure
        for failure in found
        if wanted and failure.test and strip_lines_and_addresses(failure.test) not in wanted
    ]
    return f"; beside them, here alone: {_list_failures(more)}" if more else ""


def _runs_agree(runs: Sequence[CommandRun]) -> bool:
    """Whether every run failed in the same tests."""
    return (
        len(
            {
                frozenset(strip_lines_and_addresses(failure.test) for failure in run.failures)
                for run in runs
            }
        )
        == 1
    )


def _unique_failures(runs: Sequence[CommandRun]) -> tuple[Failure, ...]:
    found: dict[tuple[str, str], Failure] = {}
    for run in runs:
        for failure in run.failures:
            found.setdefault((failure.test, failure.kind), failure)
    return tuple(found.values())


def _list_failures(failures: Sequence[Failure]) -> str:
    names = [failure.test or failure.kind for failure in failures]
    return _list_names(names) if names else "no failure that a tool named"


def _list_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _explain_not_reproduced(runs: Sequence[CommandRun]) -> str:
    if all(run.result.exit_code == UNTESTABLE_EXIT_CODE for run in runs) and runs:
        return "an earlier step failed, so the failing step was never reached"
    return f"it passed in {len(runs)} of {len(runs)} runs"


def find_unsupported(outputs: Iterable[str]) -> str | None:
    """The feature that one of our shims reported as unsupported."""
    for output in outputs:
        for line in output.splitlines():
            if driver.UNSUPPORTED_MARK in line:
                return line[line.index(driver.UNSUPPORTED_MARK) :].removeprefix("regreen: ")
    return None


def judge_setup_failure(error: SetupFailed, expected: Sequence[Failure]) -> Reproduction:
    """Judge a failed setup: the reproduced failure if CI's setup failed too, else the reason why not."""
    if (named := find_unsupported((error.output,))) is not None:
        return Reproduction("unsupported", named)
    try:
        log = read_log(error.output.encode())
    except AnalysisFailed as reason:
        return Reproduction("not_reproduced", f"the setup failed, and {reason}")
    failures = log.failures or (Failure("", "setup", str(error)),)
    run = CommandRun(RunResult("exit", 1, error.output, "", False, 0.0), failures)
    if log.kind == "infra":
        detail = f"the setup failed for its surroundings: {_list_failures(failures)}"
        return Reproduction("infra", detail, failures, (run,))
    shares_kind = {failure.kind for failure in failures} & {failure.kind for failure in expected}
    if shares_kind and shows_expected_failure(failures, expected):
        detail = f"the setup fails as it did in CI: {_list_failures(failures)}"
        return Reproduction("reproduced", detail, failures, (run,), 1.0)
    detail = f"the setup failed before the step was reached: {_list_failures(failures)}"
    return Reproduction("not_reproduced", detail, failures, (run,))


# Compares failures here with those in CI.

_MEMORY_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,16}\b")
_LINE_SUFFIX = re.compile(r"(?<=[\w)\]]):\d{1,7}(?::\d{1,7})?(?=$|: | )")
_UNNAMED_KINDS = frozenset({"error", "setup"})
"""What a log that no reader knew comes to: nothing can be held against it."""


def shows_expected_failure(found: Sequence[Failure], expected: Sequence[Failure]) -> bool:
    """Whether a run shows CI's failure: at least one of its ids, or its kind if CI named no id.

    Any failure will do where nothing is known of CI's.
    """
    if all(not failure.test and failure.kind in _UNNAMED_KINDS for failure in expected):
        return True
    wanted, own = _failure_ids(expected), _drop_network_failures(found, expected)
    if wanted:
        return bool(wanted & _failure_ids(own))
    kinds = {failure.kind for failure in expected}
    return not found or bool(kinds & {failure.kind for failure in own})


def find_ids_failing_only_in_ci(
    found: Sequence[Failure], expected: Sequence[Failure]
) -> tuple[str, ...]:
    """The ids that failed in CI and did not here, in CI's order."""
    own = _failure_ids(_drop_network_failures(found, expected))
    lacking = {
        failure.test: None
        for failure in expected
        if failure.test and strip_lines_and_addresses(failure.test) not in own
    }
    return tuple(lacking)


def strip_lines_and_addresses(test: str) -> str:
    """An id without what differs from run to run, and from a pull request's head to its merge.

    That is the address of an object that a parameter is, and the line of a finding.
    """
    bare = _LINE_SUFFIX.sub("", test) if ":" in test else test
    return _MEMORY_ADDRESS.sub("0x", bare) if "0x" in bare else bare


def _failure_ids(failures: Sequence[Failure]) -> set[str]:
    return {strip_lines_and_addresses(failure.test) for failure in failures if failure.test}


def _drop_network_failures(found: Sequence[Failure], expected: Sequence[Failure]) -> list[Failure]:
    """The failures without those that only lacked a network, unless CI's did too."""
    there = {
        strip_lines_and_addresses(failure.test)
        for failure in expected
        if is_network_failure(failure.message)
    }
    return [
        failure
        for failure in found
        if strip_lines_and_addresses(failure.test) in there
        or not is_network_failure(failure.message)
    ]
