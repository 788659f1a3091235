"""Judges a given patch: for `regreen gate`, and again when a person approves one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from regreen.code.file_change import CheckReason
from regreen.domain.errors import Cancelled, UserError
from regreen.domain.job_control import DeadlineEvent, StopCondition
from regreen.domain.models import Failure
from regreen.domain.ports import Git, Sandbox
from regreen.fixers.case import FixJob, GuiltyCommit, InitialFailure, Proposal, RepairCase
from regreen.fixers.triage import make_case, triage_failure
from regreen.fixers.verify_patch import (
    FailureContext,
    apply_patch,
    judge_change,
    run_patch,
    verify_proposal,
)
from regreen.gate.judge import PROTECTED_PATHS, GateReport, GateRules
from regreen.runs.trial import Trial


def judge_patch(
    patch: str,
    rev: str,
    *,
    git: Git,
    before: InitialFailure | None = None,
    trial: Trial | None = None,
    tests: Trial | None = None,
    sandbox: Sandbox | None = None,
    protected: Sequence[str] = PROTECTED_PATHS,
    say: Callable[[str], None] = lambda _: None,
    minutes: float = 30.0,
) -> GateReport:
    """Judge `patch` against `rev`; with a trial and a sandbox, also by running it.

    `tests` is how the repository says that all its tests run.
    """
    applied = apply_patch(git, rev, patch)
    if applied.commit is None:
        return GateReport("deny", (CheckReason("applies", applied.trouble, "deny"),))
    failures = before.failures if before else ()
    subject = FailureContext(git, rev, trial or Trial(()), failures)
    rules = GateRules(protected=tuple(protected))
    silent = judge_change(subject, applied.files, rules, None)
    if trial is None or sandbox is None or silent.verdict == "deny":
        # what nobody has seen run is for a person
        return replace(silent, verdict="deny" if silent.verdict == "deny" else "needs_human")
    over = time.monotonic() + minutes * 60
    job = FixJob(trial, rev, tests=tests, max_minutes=minutes)
    case = _reproduce_failure_as_case(job, git=git, sandbox=sandbox, say=say, over=over)
    if isinstance(case, CheckReason):
        return GateReport("needs_human", (*silent.reasons, case))
    try:
        proof = run_patch(case, applied, None).proof
    except Cancelled:
        late = CheckReason("verified", _describe_lateness(job, "the patch"), "needs_human")
        return GateReport("needs_human", (*silent.reasons, late))
    report = judge_change(subject, applied.files, rules, proof)
    if case.before.exit_code == 0:
        note = (
            "the command is green without the patch too, so that it is green with it shows nothing"
        )
        return replace(report, reasons=(*report.reasons, CheckReason("evidence", note, "note")))
    return report


def judge_revert(
    job: FixJob,
    culprit: str,
    commit: str,
    *,
    git: Git,
    sandbox: Sandbox,
    say: Callable[[str], None],
) -> GateReport:
    """Judge `commit`, which reverts `culprit` at the job's revision, like any repair by revert."""
    over = time.monotonic() + job.max_minutes * 60
    case = _reproduce_failure_as_case(job, git=git, sandbox=sandbox, say=say, over=over)
    if isinstance(case, CheckReason):
        return GateReport("needs_human", (case,))
    by = GuiltyCommit.read_commit(git, culprit)
    return verify_proposal(case, Proposal("revert", git.diff(job.rev, commit), "", "", by)).report


def _reproduce_failure_as_case(
    job: FixJob, *, git: Git, sandbox: Sandbox, say: Callable[[str], None], over: float
) -> RepairCase | CheckReason:
    """Reproduce the failure first: a patch is judged against what fails here, not against what a caller states."""
    rev = job.rev
    say(f"running {job.trial.command_line} at {rev[:12]}")
    stop = StopCondition(over, DeadlineEvent(over, None))
    try:
        triage = triage_failure(replace(job, reruns=2), rev, git=git, sandbox=sandbox, stop=stop)
        if triage.setup_failed or triage.outcome in {"not_reproduced", "flaky", "out_of_budget"}:
            return CheckReason("verified", f"not made: {triage.reason}", "needs_human")
        return replace(make_case(job, rev, triage, git=git, sandbox=sandbox, stop=stop), say=say)
    except Cancelled:
        return CheckReason("verified", _describe_lateness(job, "the command"), "needs_human")


def _describe_lateness(job: FixJob, what: str) -> str:
    return f"not made: the {job.max_minutes:.2g} minutes were over before {what} had run"


def parse_initial_failure(document: Mapping[str, object]) -> InitialFailure:
    """Read a `before` object, as `--failures` hands it over.

    Raises:
        UserError: it is not one.
    """
    failures = document.get("failures", [])
    command = document.get("command")
    if not isinstance(failures, list) or not isinstance(command, str):
        raise UserError(
            'the failures file must hold a `before` object: {"command": ..., "failures": [...]}'
        )
    code = document.get("exit_code")
    return InitialFailure(
        command,
        code if isinstance(code, int) else None,
        tuple(_parse_failure(item) for item in failures),
    )


def _parse_failure(item: object) -> Failure:
    if not isinstance(item, Mapping):
        raise UserError(
            "each entry of `failures` must be an object with `test`, `kind` and `message`"
        )
    path, line = item.get("path"), item.get("line")
    return Failure(
        str(item.get("test", "")),
        str(item.get("kind", "")),
        str(item.get("message", "")),
        path if isinstance(path, str) else None,
        line if isinstance(line, int) else None,
    )
