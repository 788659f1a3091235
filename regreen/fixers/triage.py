"""What kind of red this is, before anything is tried: green already, flaky, not here, or real."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from regreen.codebase.trial import Trial, missing_tool
from regreen.errors import SetupFailed
from regreen.fixers.case import Before, FixJob, FixOutcome
from regreen.fixers.runs import Seen, run_fresh, uses_pytest, widened
from regreen.ports import Git, Sandbox

RunOnce = Callable[[Trial, bool], Seen]


@dataclass(frozen=True)
class Triage:
    """What reruns showed. `outcome` is None where the failure is real and worth a repair.

    `tests` is how each test ended, the wider suite's included; `flaky` are tests whose ending varies.
    """

    before: Before
    outcome: FixOutcome | None = None
    reason: str = ""
    output: str = ""
    tests: Mapping[str, str] = field(default_factory=dict)
    flaky: frozenset[str] = frozenset()
    wide: Trial | None = None
    seconds: float = 0.0
    setup_output: str = ""


def triage(
    job: FixJob, rev: str, *, git: Git, sandbox: Sandbox, stop: Callable[[], None]
) -> Triage:
    """Run the command `job.reruns` times at `rev`, each in a fresh box, and judge what was seen."""
    trial = job.trial
    runs: list[Seen] = []
    try:
        for _ in range(max(2, job.reruns)):
            stop()
            listen = bool(runs) and uses_pytest(trial, runs[0].output)
            runs.append(run_fresh(trial, rev, git=git, sandbox=sandbox, listen=listen))
            if tool := missing_tool(trial.command, runs[-1].result):
                return _without_tool(trial, runs[-1], tool)
            if not runs[-1].counts:
                return _not_reproduced(trial, runs[-1])
    except SetupFailed as error:
        return Triage(
            Before(trial.shown, None),
            "not_reproduced",
            f"the setup failed, so the command could not be run: {error}",
            setup_output=error.output,
        )
    return judge_runs(trial, runs)


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
    return Triage(before, None, "", first.output, tests, sometimes, None, first.result.seconds)


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
