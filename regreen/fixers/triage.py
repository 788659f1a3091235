"""What kind of red this is, before anything is tried: green already, flaky, not here, not this change's, or real."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from regreen.bisect import signature
from regreen.codebase.trial import Trial, missing_tool, prepare
from regreen.errors import SetupFailed
from regreen.fixers.case import Before, FixJob, FixOutcome
from regreen.fixers.checks.paths import is_test
from regreen.fixers.runs import Seen, run_fresh, uses_pytest, widened
from regreen.models import Failure
from regreen.ports import Git, Sandbox

RunOnce = Callable[[Trial, bool], Seen]
_NO_NETWORK = re.compile(
    r"Temporary failure in name resolution|Could not resolve host|Network is unreachable|ENOTFOUND|EAI_AGAIN|ECONNREFUSED"
    r"|ETIMEDOUT|Failed to establish a new connection|Max retries exceeded|50[234] (?:Bad Gateway|Service|Gateway)"
)
_EXITED = re.compile(r"the setup exited with (\d{1,3})")


@dataclass(frozen=True)
class Triage:
    """What reruns showed. `outcome` is None where the failure is real and worth a repair.

    `tests` is how each test ended, the wider suite's included; `flaky` are tests whose ending varies.
    `setup_failed` where it is the setup that is red: the command could not be run at all.
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


def triage(
    job: FixJob, rev: str, *, git: Git, sandbox: Sandbox, stop: Callable[[], None]
) -> Triage:
    """Run the command `job.reruns` times at `rev`, each in a fresh box, and judge what was seen."""
    trial = job.trial
    runs: list[Seen] = []
    if broken := _setup(trial, rev, git=git, sandbox=sandbox, stop=stop):
        return broken
    for _ in range(max(2, job.reruns)):
        stop()
        listen = bool(runs) and uses_pytest(trial, runs[0].output)
        runs.append(run_fresh(trial, rev, git=git, sandbox=sandbox, listen=listen))
        tool = missing_tool(trial.command, runs[-1].result)
        if tool and not trial.setup:
            return _without_tool(trial, runs[-1], tool)
        if not runs[-1].counts:
            return _not_reproduced(trial, runs[-1])
    return judge_runs(trial, runs)


def _setup(
    trial: Trial, rev: str, *, git: Git, sandbox: Sandbox, stop: Callable[[], None]
) -> Triage | None:
    """Prepare the environment; where that fails twice, the setup is what is red."""
    for last in (False, True):
        stop()
        try:
            prepare(trial, rev, git=git, sandbox=sandbox)
        except SetupFailed as error:
            if last:
                return _red_setup(trial, error)
        else:
            return None
    return None


def _red_setup(trial: Trial, error: SetupFailed) -> Triage:
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
    always = frozenset.intersection(*(seen.failing for seen in runs))
    sometimes = frozenset().union(*(seen.failing for seen in runs)) - always
    if sometimes and not always:
        return Triage(
            before, "flaky", "each run failed in other places", first.output, flaky=sometimes
        )
    tests = next((seen.tests for seen in reversed(runs) if seen.tests), {})
    return Triage(
        before, None, "", first.output, tests, sometimes, None, first.result.seconds, red=first
    )


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
    what = (
        "the command said that it cannot be tried here (exit 125)"
        if seen.result.ended == "exit"
        else f"the sandbox failed: {seen.result.detail or seen.result.ended}"
    )
    return Triage(Before(trial.shown, seen.result.exit_code), "not_reproduced", what, seen.output)
