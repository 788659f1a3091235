"""Triage of a failure: already green, flaky, not reproduced, not caused by this change, or real."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from types import MappingProxyType

from regreen.actions.service_containers import find_substituted_services
from regreen.actions.step_trial import enable_network
from regreen.code.paths import is_test
from regreen.domain.errors import Cancelled, SetupFailed
from regreen.domain.job_control import StopCondition
from regreen.domain.models import Failure
from regreen.domain.ports import Git, Sandbox
from regreen.fixers.case import FixJob, FixOutcome, InitialFailure, RepairCase
from regreen.fixers.recipes.tool_output import make_lock_remedies
from regreen.fixers.reproduction import (
    find_lacking_network,
    find_unsupported,
    judge_reproduction,
    judge_setup_failure,
    read_run,
    shows_expected_failure,
)
from regreen.gate.suite import find_suite
from regreen.languages.registry import TEST_LISTENERS, find_listeners, widen_trial
from regreen.logs import failure_signature
from regreen.logs.ci_log import CiLog
from regreen.packages.popular_names import is_popular
from regreen.runs.test_runs import CommandRun, run_fresh
from regreen.runs.trial import (
    UNTESTABLE_EXIT_CODE,
    Trial,
    describe_missing_tool,
    find_missing_tool,
    prepare_environment,
)

_NO_NETWORK = re.compile(
    r"Temporary failure in name resolution|Could not resolve host|Network is unreachable|ENOTFOUND|EAI_AGAIN|ECONNREFUSED"
    r"|ETIMEDOUT|Failed to establish a new connection|Max retries exceeded|50[234] (?:Bad Gateway|Service|Gateway)"
)
_SETUP_EXIT_CODE = re.compile(r"the setup exited with (\d{1,3})")


@dataclass(frozen=True)
class TriageResult:
    """What reruns showed. `outcome` is None where the failure is real and worth a repair.

    `tests` is how each test ended, the wider suite's included; `flaky` are tests whose ending varies.
    `setup_failed` where it is the setup that is red: the command could not be run at all. `trial` is what was run, where
    that is not what was asked for: the same with a network. `red` is a red run, one that was listened to where there is one.
    `hints` say which program the setup does not install, and which service ran in another version than asked for.
    """

    before: InitialFailure
    outcome: FixOutcome | None = None
    reason: str = ""
    output: str = ""
    tests: Mapping[str, str] = field(default_factory=dict)
    flaky: frozenset[str] = frozenset()
    wide: Trial | None = None
    setup_failed: bool = False
    red: CommandRun | None = None
    trial: Trial | None = None
    hints: tuple[str, ...] = ()


def triage_failure(
    job: FixJob, rev: str, *, git: Git, sandbox: Sandbox, stop: StopCondition
) -> TriageResult:
    """Run the command `job.reruns` times at `rev`, each in a fresh box, and classify the failure."""
    trial = job.trial
    runs: list[CommandRun] = []
    tool: str | None = None
    if broken := _check_setup(job, rev, git=git, sandbox=sandbox, stop=stop):
        return broken
    wanted = max(2, job.reruns)
    while len(runs) < wanted:
        if stop.left <= 0:
            return _late_result(trial, runs, wanted)
        stop.check_cancelled()
        listeners = find_listeners(trial, runs[0].output) if runs else ()
        runs.append(
            run_fresh(trial, rev, git=git, sandbox=sandbox, listeners=listeners, cancel=stop.cancel)
        )
        if stop.left <= 0 and runs[-1].result.ended == "cancelled":
            return _late_result(trial, runs, wanted)
        stop.check_cancelled()
        tool = find_missing_tool(trial.command, runs[-1].result)
        # with a setup, a package that it lacks may be what is red: then a recipe declares it
        if tool and not (trial.setup and is_popular("pypi", tool)):
            return _missing_tool_result(trial, runs[-1], tool)
        if job.allow_network and not trial.limits.network and _find_lacking_network(job, runs[-1]):
            trial, runs = enable_network(trial), []
        elif not runs[-1].is_conclusive or _lacks_capability(runs[-1]):
            return _not_reproduced_result(trial, runs[-1])
    triage = _compare_with_ci(judge_runs(trial, runs), runs, job)
    services = find_substituted_services("\n".join(run.output for run in runs))
    hints = [f"service {service}" for service in services]
    if tool:
        hints.insert(0, describe_missing_tool(tool, setup=trial.setup))
    triage = replace(triage, hints=tuple(hints))
    return replace(triage, trial=trial) if trial is not job.trial else triage


def _lacks_capability(run: CommandRun) -> bool:
    """Whether it failed because the box lacks a capability."""
    return not run.is_green and find_unsupported((run.output,)) is not None


def _find_lacking_network(job: FixJob, run: CommandRun) -> str:
    """The line that shows that the command lacked a network; "" if it failed as in CI."""
    return "" if run.is_green else find_lacking_network(read_run(run.result), job.expected)


def _compare_with_ci(triage: TriageResult, runs: Sequence[CommandRun], job: FixJob) -> TriageResult:
    """Reject a failure that differs from CI's: its repair would leave CI red."""
    if triage.outcome not in {None, "flaky"} or not job.expected:
        return triage
    reproduction = judge_reproduction(
        [read_run(run.result) for run in runs], CiLog("", "unknown", job.expected)
    )
    red = [run for run in runs if not run.is_green]
    if any(shows_expected_failure(read_run(run.result).failures, job.expected) for run in red):
        beside = reproduction.detail if reproduction.verdict == "not_reproduced" else ""
        return replace(triage, reason=triage.reason or beside)
    return replace(triage, outcome="not_reproduced", reason=reproduction.detail)


def _check_setup(
    job: FixJob, rev: str, *, git: Git, sandbox: Sandbox, stop: StopCondition
) -> TriageResult | None:
    """Prepare the environment; if that fails twice, the setup is the failure."""
    trial = job.trial
    for last in (False, True):
        stop.check_cancelled()
        try:
            prepare_environment(trial, rev, git=git, sandbox=sandbox, cancel=stop.cancel)
        except SetupFailed as error:
            if last:
                return _setup_failed(trial, error, job.expected)
        else:
            return None
    return None


def _setup_failed(
    trial: Trial, error: SetupFailed, expected: Sequence[Failure] = ()
) -> TriageResult:
    in_ci = judge_setup_failure(error, expected)
    if in_ci.verdict == "unsupported" or (expected and in_ci.verdict == "not_reproduced"):
        return TriageResult(
            InitialFailure(trial.command_line, None), "not_reproduced", in_ci.detail, error.output
        )
    reason_given = str(error).removeprefix("the setup ").strip()
    if _NO_NETWORK.search(error.output):
        reason = f"the setup could not reach what it installs ({reason_given}), so the command was not run"
        return TriageResult(
            InitialFailure(trial.command_line, None), "not_reproduced", reason, error.output
        )
    code = _SETUP_EXIT_CODE.search(str(error))
    failure = Failure("setup", "SetupFailed", f"exit {code[1]}" if code else reason_given)
    return TriageResult(
        InitialFailure(trial.command_line, None, (failure,)),
        None,
        f"the setup failed, so the command could not be run: {error}",
        error.output,
        setup_failed=True,
    )


def find_refused_lock(
    job: FixJob, triage: TriageResult, rev: str, *, git: Git, sandbox: Sandbox, stop: StopCondition
) -> TriageResult:
    """The triage; of a green command the failure of `npm ci`, where a workflow calls it and it refuses the lock file.

    An inferred setup falls back to `npm install`, CI does not.
    """
    trial, lock = triage.trial or job.trial, "package-lock.json"
    setup = trial.setup or ""
    is_inferred = setup.startswith("npm ci ") and " || npm install " in setup and "\n" not in setup
    if triage.outcome != "already_green" or not is_inferred:
        return triage
    paths = [one.path for one in git.tree(rev) if one.path.startswith(".github/workflows/")]
    texts = (git.show(rev, path, _MAX_WORKFLOW_BYTES) or b"" for path in paths[:_MAX_WORKFLOWS])
    options = [read_npm_ci_options(text.decode("utf-8", "replace")) for text in texts]
    for wanted in [one for one in options if one is not None][:1]:
        # scripts of packages may ask for more than a box has: only the lock is in question
        strict = f"npm ci{wanted} --ignore-scripts --no-audit --no-fund"
        locked = replace(job, trial=replace(trial, setup=strict))
        try:
            broken = _check_setup(locked, rev, git=git, sandbox=sandbox, stop=stop)
        except Cancelled:
            if stop.left > 0:
                raise
            break  # the time is over, and the command is green
        output = broken.output if broken and broken.setup_failed else ""
        remedies = make_lock_remedies(trial.command_line, output, (lock,))
        if broken and any(one.writes == (lock,) for one in remedies):
            return replace(broken, trial=replace(trial, setup=f"{strict} && {{ {setup}; }}"))
    return triage


_MAX_WORKFLOWS = 20
_MAX_WORKFLOW_BYTES = 256 * 1024
_NPM_CI = re.compile(
    r"(?m)^[ \t-]{0,60}(?:run: {0,9}['\"]?)?npm ci((?: --(?:legacy-peer-deps|strict-peer-deps|force|ignore-scripts|prefer-offline"
    r"|no-(?:audit|fund|progress|optional)|(?:omit|include|loglevel)=\w{1,20})){0,9})['\"]?[ \t]{0,60}(?:#.*)?$"
)
_ELSEWHERE = re.compile(r"\bworking-directory:|\bcd |\bcontinue-on-error:")


def read_npm_ci_options(workflow: str) -> str | None:
    """The options with which a workflow calls `npm ci`; None where it does not, or may call it in a folder, or lets it fail."""
    found = None if _ELSEWHERE.search(workflow) else _NPM_CI.search(workflow)
    return found[1] if found else None


def explain_red_base(
    triage: TriageResult,
    job: FixJob,
    base: str,
    *,
    git: Git,
    sandbox: Sandbox,
    cancel: Event | None = None,
) -> str | None:
    """Why this change did not cause the failure: the base fails in the same way. None if it does not.

    A given specification that fails on the base too is the point of it, not a fault of the base.
    """
    if any(is_test(path) for path in job.given_tests):
        return None
    short = base[:12]
    try:
        prepare_environment(job.trial, base, git=git, sandbox=sandbox, cancel=cancel)
    except SetupFailed as error:
        return f"the setup fails on the base {short} too: {error}" if triage.setup_failed else None
    if triage.setup_failed:
        return None
    there = run_fresh(job.trial, base, git=git, sandbox=sandbox, cancel=cancel)
    if there.is_green or not there.is_conclusive or not fails_alike(triage, there):
        return None
    what = (
        ", ".join(sorted({failure.test for failure in triage.before.failures})[:3])
        or "the same way"
    )
    return f"the base {short} is red too ({what}), so this change did not break it"


def fails_alike(triage: TriageResult, run: CommandRun) -> bool:
    """Whether everything that fails here fails there too, and for the same reason."""
    here = {_failure_key(failure) for failure in triage.before.failures}
    if here:
        return here <= {_failure_key(failure) for failure in run.failures}
    if triage.red is None or run.result.exit_code != triage.before.exit_code:
        return False
    return failure_signature.matches_any(
        failure_signature.read_signature(run.result),
        [failure_signature.read_signature(triage.red.result)],
    )


def _failure_key(failure: Failure) -> tuple[str, str]:
    """The identity of a failure without its line, which moves with edits above it."""
    return re.sub(r":\d+", "", failure.test) or failure.path or "", failure.kind


def judge_runs(trial: Trial, runs: list[CommandRun]) -> TriageResult:
    """Green every time, red every time with a common failure, or neither."""
    red = [run for run in runs if not run.is_green]
    first = next(iter(red), runs[0])
    listened = next((run for run in reversed(runs) if run.tests), first)
    if not red:
        return TriageResult(
            InitialFailure(trial.command_line, 0),
            "already_green",
            f"green in {len(runs)} of {len(runs)} fresh runs",
            first.output,
            listened.tests,
        )
    before = InitialFailure(trial.command_line, first.result.exit_code, first.failures)
    if len(red) < len(runs):
        reason = f"red in {len(red)} of {len(runs)} fresh runs of the same commit"
        return TriageResult(before, "flaky", reason, first.output)
    failing = _failing_in_runs(runs)
    always = frozenset.intersection(*failing)
    sometimes = frozenset().union(*failing) - always
    if sometimes and not always:
        return TriageResult(
            before, "flaky", "each run failed in other places", first.output, flaky=sometimes
        )
    return TriageResult(before, None, "", first.output, listened.tests, sometimes, red=listened)


def _failing_in_runs(runs: Sequence[CommandRun]) -> list[frozenset[str]]:
    """The tests that failed in each run; a subtest counts as its test."""
    known = frozenset(test for run in runs for test in run.tests)

    def test_of(name: str) -> str:
        heads = (name.partition(mark)[0] for mark in (" [", " ("))
        return name if name in known else next((head for head in heads if head in known), name)

    return [frozenset(map(test_of, run.failing)) for run in runs]


def make_case(
    job: FixJob, rev: str, triage: TriageResult, *, git: Git, sandbox: Sandbox, stop: StopCondition
) -> RepairCase:
    """The case of a reproduced failure, with the project's tests that the command does not run itself."""
    trial = job.trial
    has_gaps = False
    if not triage.setup_failed:
        triage, has_gaps = _add_wider_outcomes(
            triage, trial, rev, git=git, sandbox=sandbox, stop=stop
        )
    suite = find_suite(
        trial,
        rev,
        configured=job.tests,
        outcomes=triage.tests,
        git=git,
        sandbox=sandbox,
        stop=stop,
        has_gaps=has_gaps,
    )
    return RepairCase(
        job=job,
        rev=rev,
        before=triage.before,
        passing=triage.tests,
        git=git,
        sandbox=sandbox,
        stop=stop,
        output=triage.output,
        hints=(*triage.hints, *([job.hint] if job.hint else [])),
        flaky=triage.flaky,
        wide=triage.wide,
        setup_failed=triage.setup_failed,
        suite=None if triage.wide is not None or triage.setup_failed else suite,
        red=triage.red,
    )


def _add_wider_outcomes(
    triage: TriageResult, trial: Trial, rev: str, *, git: Git, sandbox: Sandbox, stop: StopCondition
) -> tuple[TriageResult, bool]:
    """If the command runs only some tests, run the rest before any change; whether some of it cannot be collected."""
    wide = widen_trial(trial)
    if wide is None or stop.left < 5:
        return triage, False
    wide = replace(wide, timeout=min(trial.timeout, max(60.0, stop.left / 6)))
    run = run_fresh(
        wide, rev, git=git, sandbox=sandbox, listeners=TEST_LISTENERS, cancel=stop.cancel
    )
    if run.result.ended != "exit" or not run.tests or run.uncollected:
        return triage, run.uncollected
    whole = MappingProxyType({**run.tests, **triage.tests})
    return replace(triage, tests=whole, wide=wide), False


def _late_result(trial: Trial, runs: Sequence[CommandRun], wanted: int) -> TriageResult:
    """What is known where the time is over before the command has run often enough."""
    whole = [run for run in runs if run.result.ended != "cancelled"]
    red = next((run for run in whole if not run.is_green), None)
    shown = red or next(iter(whole), None)
    took = f", after {runs[-1].result.seconds:.0f} seconds of it" if runs[len(whole) :] else ""
    reason = (
        f"the time was over in run {min(len(whole) + 1, wanted)} of {wanted} of the command{took}"
    )
    code, failures = (shown.result.exit_code, shown.failures) if shown else (None, ())
    before = InitialFailure(trial.command_line, code, failures)
    return TriageResult(before, "out_of_budget", reason, red=red)


def _missing_tool_result(trial: Trial, run: CommandRun, tool: str) -> TriageResult:
    what = describe_missing_tool(tool, setup=trial.setup)
    return TriageResult(
        InitialFailure(trial.command_line, run.result.exit_code), "not_reproduced", what, run.output
    )


def _not_reproduced_result(trial: Trial, run: CommandRun) -> TriageResult:
    if run.result.ended != "exit":
        what = f"the sandbox failed: {run.result.detail or run.result.ended}"
    elif named := find_unsupported((run.output,)):
        what = named
    elif found := read_run(run.result).failures if _runs_job_steps(trial) else ():
        first = found[0].test or found[0].message.partition("\n")[0][:200] or found[0].kind
        what = f"an earlier step failed, so the failing step was never reached: {first}"
    else:
        what = f"the command said that it cannot be tried here (exit {UNTESTABLE_EXIT_CODE})"
    return TriageResult(
        InitialFailure(trial.command_line, run.result.exit_code), "not_reproduced", what, run.output
    )


def _runs_job_steps(trial: Trial) -> bool:
    """Whether the command runs several steps of a job, so that an earlier one may fail."""
    return "##[group]Run" in trial.command[-1]
