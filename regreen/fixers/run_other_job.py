"""Holds another job of the failing workflow against a patch: what passes without the patch has to pass with it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from regreen.actions.other_jobs import OtherJob
from regreen.domain.errors import Cancelled, NoSandbox, UserError
from regreen.fixers.case import OtherJobOutcome, OtherJobRun, RepairCase
from regreen.runs.trial import Trial, describe_missing_tool, find_missing_tool

_MIN_SECONDS = 30.0
_TIME_SHARE = 0.2  # of the time that is left, for each run


def run_other_job(case: RepairCase, other: OtherJob, commit: str) -> OtherJobRun:
    """Run the job at `commit`, which has the patch; where it fails, also without the patch, and once more with it."""
    if other.trial is None:
        return OtherJobRun(other.name, "not_run", other.why)
    if case.stop.left < _MIN_SECONDS:
        return OtherJobRun(other.name, "not_run", "no time left")
    seconds = case.stop.left * _TIME_SHARE
    case.say(f"running {other.name} with the patch, at most {seconds:.0f} seconds")
    trial = replace(
        other.trial,
        base=case.trial.base,
        rules=case.trial.rules,
        timeout=min(other.trial.timeout, seconds),
        setup_timeout=min(other.trial.setup_timeout, seconds),
    )
    seen = _run_job(case, trial, commit)
    outcome: OtherJobOutcome = "broken"
    if seen.is_green or not seen.is_conclusive:
        outcome = "passed" if seen.is_green else "not_run"
    elif other.is_rest:
        outcome = "red"
    elif not (before := _run_job(case, trial, case.rev)).is_green:
        if not before.is_conclusive:
            return OtherJobRun(
                other.name, "broken", f"{seen.detail}; without the patch {before.detail}"
            )
        outcome = "red_before"
    elif _run_job(case, trial, commit).is_green:
        return OtherJobRun(other.name, "passed", "in the second of two runs")
    return OtherJobRun(other.name, outcome, seen.detail)


@dataclass(frozen=True, slots=True)
class _JobRun:
    is_green: bool
    is_conclusive: bool = True
    detail: str = ""


def _run_job(case: RepairCase, trial: Trial, rev: str) -> _JobRun:
    try:
        run = case.run_fresh(trial, rev)
    except NoSandbox:
        raise
    except Cancelled:
        if case.stop.left > 0:
            raise
        return _JobRun(False, False, "no time left")
    except UserError as error:
        return _JobRun(False, False, f"it cannot be prepared here: {error}")
    if run.is_green:
        return _JobRun(True)
    if run.result.ended != "exit" or not run.is_conclusive:
        end = run.result.detail or run.result.ended
        return _JobRun(False, False, f"it did not come to its end here: {end}")
    if tool := find_missing_tool(trial.command, run.result):
        return _JobRun(False, False, describe_missing_tool(tool, setup=trial.setup))
    names = ", ".join(sorted(run.failing)[:3])
    return _JobRun(False, True, names or f"exit {run.result.exit_code}")
