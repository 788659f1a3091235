"""What kind of red this is, before anything is tried: green already, flaky, not here, not this change's, or real."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from regreen.bisect import signature
from regreen.codebase.trial import Trial, missing_tool, prepare
from regreen.errors import SetupFailed
from regreen.fixers.case import Before, FixJob, FixOutcome
from regreen.fixers.checks.paths import is_test
from regreen.fixers.ci_log import CiLog
from regreen.fixers.network import with_network
from regreen.fixers.reproduce import (
    cannot_do_without,
    read_run,
    setup_verdict,
    unsupported_in,
    verdict,
)
from regreen.fixers.runs import Seen, run_fresh, uses_pytest, widened
from regreen.fixers.same_failure import is_same
from regreen.models import Failure
from regreen.ports import Git, Sandbox

_NO_NETWORK = re.compile(
    r"Temporary failure in name resolution|Could not resolve host|Network is unreachable|ENOTFOUND|EAI_AGAIN|ECONNREFUSED"
    r"|ETIMEDOUT|Failed to establish a new connection|Max retries exceeded|50[234] (?:Bad Gateway|Service|Gateway)"
)
_EXITED = re.compile(r"the setup exited with (\d{1,3})")


@dataclass(frozen=True)
class Triage:
    """What reruns showed. `outcome` is None where the failure is real and worth a repair.

    `tests` is how each test ended, the wider suite's included; `flaky` are tests whose ending varies.
    `setup_failed` where it is the setup that is red: the command could not be run at all. `trial` is what was run, where
    that is not what was asked for: the same with a network.
    """

    before: Before
    outcome: FixOutcome | None = None
    reason: str = ""
    output: str = ""
    tests: Mapping[str, str] = field(default_factory=dict)
    flaky: frozenset[str] = frozenset()
    wide: Trial | None = None
    seconds: float = 0.0
    setup_failed: bool = False
    red: Seen | None = None
    trial: Trial | None = None


def triage(
    job: FixJob, rev: str, *, git: Git, sandbox: Sandbox, stop: Callable[[], None]
) -> Triage:
    """Run the command `job.reruns` times at `rev`, each in a fresh box, and judge what was seen."""
    trial = job.trial
    runs: list[Seen] = []
    if broken := _setup(job, rev, git=git, sandbox=sandbox, stop=stop):
        return broken
    while len(runs) < max(2, job.reruns):
        stop()
        listen = bool(runs) and uses_pytest(trial, runs[0].output)
        runs.append(run_fresh(trial, rev, git=git, sandbox=sandbox, listen=listen))
        tool = missing_tool(trial.command, runs[-1].result)
        if tool and not trial.setup:
            return _without_tool(trial, runs[-1], tool)
        if job.allow_network and not trial.limits.network and _needs_network(job, runs[-1]):
            trial, runs = with_network(trial), []
        elif not runs[-1].counts or _is_refused(runs[-1]):
            return _not_reproduced(trial, runs[-1])
    seen = _held_against_ci(judge_runs(trial, runs), runs, job)
    return replace(seen, trial=trial) if trial is not job.trial else seen


def _is_refused(seen: Seen) -> bool:
    """Whether it failed because a box lacks what it asked for."""
    return not seen.green and unsupported_in((seen.output,)) is not None


def _needs_network(job: FixJob, seen: Seen) -> str:
    """The line that shows the command looking for a network in vain, where it does not fail as it did in CI."""
    return "" if seen.green else cannot_do_without(read_run(seen.result), job.expected)


def _held_against_ci(seen: Triage, runs: Sequence[Seen], job: FixJob) -> Triage:
    """Another failure than CI's is none to repair: that would end with CI as red as before."""
    if seen.outcome not in {None, "flaky"} or not job.expected:
        return seen
    told = verdict([read_run(run.result) for run in runs], CiLog("", "unknown", job.expected))
    red = [run for run in runs if not run.green]
    if any(is_same(read_run(run.result).failures, job.expected) for run in red):
        beside = told.detail if told.verdict == "not_reproduced" else ""
        return replace(seen, reason=seen.reason or beside)
    return replace(seen, outcome="not_reproduced", reason=told.detail)


def _setup(
    job: FixJob, rev: str, *, git: Git, sandbox: Sandbox, stop: Callable[[], None]
) -> Triage | None:
    """Prepare the environment; where that fails twice, the setup is what is red."""
    trial = job.trial
    for last in (False, True):
        stop()
        try:
            prepare(trial, rev, git=git, sandbox=sandbox)
        except SetupFailed as error:
            if last:
                return _red_setup(trial, error, job.expected)
        else:
            return None
    return None


def _red_setup(trial: Trial, error: SetupFailed, expected: Sequence[Failure] = ()) -> Triage:
    in_ci = setup_verdict(error, expected)
    if in_ci.verdict == "unsupported" or (expected and in_ci.verdict == "not_reproduced"):
        return Triage(Before(trial.shown, None), "not_reproduced", in_ci.detail, error.output)
    told = str(error).removeprefix("the setup ").strip()
    if _NO_NETWORK.search(error.output):
        reason = f"the setup could not reach what it installs ({told}), so the command was not run"
        return Triage(Before(trial.shown, None), "not_reproduced", reason, error.output)
    code = _EXITED.search(str(error))
    failure = Failure("setup", "SetupFailed", f"exit {code[1]}" if code else told)
    return Triage(
        Before(trial.shown, None, (failure,)),
        None,
        f"the setup failed, so the command could not be run: {error}",
        error.output,
        setup_failed=True,
    )


def red_base(seen: Triage, job: FixJob, base: str, *, git: Git, sandbox: Sandbox) -> str | None:
    """Why the failure is not this change's fault: the base is red in the same way. None where it is not.

    A given specification that fails on the base too is the point of it, not a fault of the base.
    """
    if any(is_test(path) for path in job.given_tests):
        return None
    short = base[:12]
    try:
        prepare(job.trial, base, git=git, sandbox=sandbox)
    except SetupFailed as error:
        return f"the setup fails on the base {short} too: {error}" if seen.setup_failed else None
    if seen.setup_failed:
        return None
    there = run_fresh(job.trial, base, git=git, sandbox=sandbox)
    if there.green or not there.counts or not same_red(seen, there):
        return None
    what = ", ".join(sorted({one.test for one in seen.before.failures})[:3]) or "the same way"
    return f"the base {short} is red too ({what}), so this change did not break it"


def same_red(seen: Triage, there: Seen) -> bool:
    """Whether everything that fails here fails there too, and for the same reason."""
    here = {_key(one) for one in seen.before.failures}
    if here:
        return here <= {_key(one) for one in there.failures}
    if seen.red is None or there.result.exit_code != seen.before.exit_code:
        return False
    return signature.matches(signature.read(there.result), [signature.read(seen.red.result)])


def _key(failure: Failure) -> tuple[str, str]:
    """A failure without its line, which moves with every edit above it."""
    return re.sub(r":\d+", "", failure.test) or failure.path or "", failure.kind


def judge_runs(trial: Trial, runs: list[Seen]) -> Triage:
    """Green every time, red every time with a common failure, or neither."""
    red = [seen for seen in runs if not seen.green]
    if not red:
        return Triage(
            Before(trial.shown, 0),
            "already_green",
            f"green in {len(runs)} of {len(runs)} fresh runs",
        )
    first = red[0]
    before = Before(trial.shown, first.result.exit_code, first.failures)
    if len(red) < len(runs):
        reason = f"red in {len(red)} of {len(runs)} fresh runs of the same commit"
        return Triage(before, "flaky", reason, first.output)
    failing = _failing(runs)
    always = frozenset.intersection(*failing)
    sometimes = frozenset().union(*failing) - always
    if sometimes and not always:
        return Triage(
            before, "flaky", "each run failed in other places", first.output, flaky=sometimes
        )
    tests = next((seen.tests for seen in reversed(runs) if seen.tests), {})
    return Triage(
        before, None, "", first.output, tests, sometimes, None, first.result.seconds, red=first
    )


def _failing(runs: Sequence[Seen]) -> list[frozenset[str]]:
    """What failed in each run; a subtest, which only what is printed tells apart, counts as its test."""
    known = frozenset(test for seen in runs for test in seen.tests)

    def test_of(name: str) -> str:
        heads = (name.partition(mark)[0] for mark in (" [", " ("))
        return name if name in known else next((head for head in heads if head in known), name)

    return [frozenset(map(test_of, seen.failing)) for seen in runs]


def look_wider(
    seen: Triage, trial: Trial, rev: str, *, git: Git, sandbox: Sandbox, seconds: float
) -> Triage:
    """Where the command runs a few tests only, learn how the rest of the suite stands before any change."""
    wide = widened(trial)
    if wide is None or seconds < 5:
        return seen
    wide = replace(wide, timeout=min(trial.timeout, max(60.0, seconds / 6)))
    found = run_fresh(wide, rev, git=git, sandbox=sandbox, listen=True)
    if found.result.ended != "exit" or not found.tests:
        return seen
    return replace(seen, tests=MappingProxyType({**found.tests, **seen.tests}), wide=wide)


def _without_tool(trial: Trial, seen: Seen, tool: str) -> Triage:
    what = f"{tool} is not installed in the sandbox; say what installs it with --setup"
    return Triage(Before(trial.shown, seen.result.exit_code), "not_reproduced", what, seen.output)


def _not_reproduced(trial: Trial, seen: Seen) -> Triage:
    if seen.result.ended != "exit":
        what = f"the sandbox failed: {seen.result.detail or seen.result.ended}"
    elif named := unsupported_in((seen.output,)):
        what = named
    elif found := read_run(seen.result).failures if _goes_step_by_step(trial) else ():
        first = found[0].test or found[0].message.partition("\n")[0][:200] or found[0].kind
        what = f"an earlier step failed, so the failing step was never reached: {first}"
    else:
        what = "the command said that it cannot be tried here (exit 125)"
    return Triage(Before(trial.shown, seen.result.exit_code), "not_reproduced", what, seen.output)


def _goes_step_by_step(trial: Trial) -> bool:
    """Whether the command is a job's steps, one after the other, of which an earlier one may stop it."""
    return "##[group]Run" in trial.command[-1]
