"""The gate over somebody's patch: what `regreen gate` does, and what an approval asks again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from regreen.codebase.trial import Trial
from regreen.errors import UserError
from regreen.fixers.case import Before, Case, FixJob
from regreen.fixers.checks.change import Reason
from regreen.fixers.gate import PROTECTED, GateReport, Proof, Rules, gate
from regreen.fixers.stop import Stop
from regreen.fixers.suite import suite_of
from regreen.fixers.triage import look_wider, triage
from regreen.fixers.verify_patch import apply, failing_sources, prove
from regreen.models import Failure
from regreen.ports import Git, Sandbox


def judge_patch(
    patch: str,
    rev: str,
    *,
    git: Git,
    before: Before | None = None,
    trial: Trial | None = None,
    tests: Trial | None = None,
    sandbox: Sandbox | None = None,
    protected: Sequence[str] = PROTECTED,
    say: Callable[[str], None] = lambda _: None,
    minutes: float = 30.0,
) -> GateReport:
    """Judge `patch` against `rev`; with a trial and a sandbox the checks that run code are made too.

    `tests` is how the repository says that all its tests run.
    """
    applied = apply(git, rev, patch)
    if applied.commit is None:
        return GateReport("deny", (Reason("applies", applied.trouble, "deny"),))
    failures = before.failures if before else ()
    sources = failing_sources(git, rev, trial or Trial(()), failures)

    def judged(proof: Proof | None) -> GateReport:
        return gate(
            applied.files,
            tree=[entry.path for entry in git.tree(rev)],
            failures=failures,
            tests=sources,
            rules=Rules(protected=tuple(protected)),
            proof=proof,
        )

    silent = judged(None)
    if trial is None or sandbox is None or silent.verdict == "deny":
        return silent
    case = _case(
        FixJob(trial, rev, tests=tests), git=git, sandbox=sandbox, say=say, minutes=minutes
    )
    if isinstance(case, Reason):
        return GateReport(silent.verdict, (*silent.reasons, case))
    proof, _, _ = prove(case, applied)
    report = judged(proof)
    if case.before.exit_code == 0:
        note = (
            "the command is green without the patch too, so that it is green with it shows nothing"
        )
        return replace(report, reasons=(*report.reasons, Reason("evidence", note, "note")))
    return report


def _case(
    job: FixJob,
    *,
    git: Git,
    sandbox: Sandbox,
    say: Callable[[str], None],
    minutes: float,
) -> Case | Reason:
    """See the failure here first: a patch is judged against what fails now, not against what somebody wrote."""
    trial, rev = job.trial, job.rev
    say(f"running {trial.shown} at {rev[:12]}")
    seen = triage(replace(job, reruns=2), rev, git=git, sandbox=sandbox, stop=lambda: None)
    if seen.setup_failed or seen.outcome in {"not_reproduced", "flaky"}:
        return Reason("verified", f"not made: {seen.reason}", "needs_human")
    stop = Stop(time.monotonic() + minutes * 60)
    seen = look_wider(seen, trial, rev, git=git, sandbox=sandbox, seconds=stop.left)
    suite = suite_of(
        trial, rev, configured=job.tests, heard=seen.tests, git=git, sandbox=sandbox, stop=stop
    )
    return Case(
        job=job,
        rev=rev,
        base=None,
        before=seen.before,
        output=seen.output,
        passing=seen.tests,
        git=git,
        sandbox=sandbox,
        model=None,
        stop=stop,
        say=say,
        flaky=seen.flaky,
        wide=seen.wide,
        suite=suite if seen.wide is None else None,
    )


def before_of(document: Mapping[str, object]) -> Before:
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
    return Before(
        command, code if isinstance(code, int) else None, tuple(_failure(item) for item in failures)
    )


def _failure(item: object) -> Failure:
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
