"""Runs the command at one commit and judges the result."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from statistics import median
from threading import Event, Lock
from typing import Protocol

from regreen.bisect.box_pool import BoxPool
from regreen.bisect.result import RunOutcome
from regreen.bisect.verdict_memory import UNTESTABLE_REASON, CommitRun, RunVerdict
from regreen.domain.errors import Cancelled, OutsideError, SetupFailed, UserError
from regreen.domain.models import PreparedEnv, RunResult
from regreen.logs import failure_signature as signatures
from regreen.logs.failure_signature import FailureSignature
from regreen.runs.trial import UNTESTABLE_EXIT_CODE, Trial, find_missing_tool

_MAX_ATTEMPTS = 3
_NOT_STARTED = frozenset({126, 127})


class CommitRunner(Protocol):
    """A source of verdicts at commits."""

    trial: Trial
    environments: set[str]

    def __call__(self, sha: str) -> CommitRun:
        """Run once at `sha` under conditions that make the outcome reliable."""
        ...

    def explore_commit(self, sha: str) -> CommitRun:
        """Run once at `sha` as cheaply as possible, as evidence for the search."""
        ...

    def prepare_run(self, sha: str) -> None:
        """Prepare for a likely next run at `sha`."""
        ...


@dataclass
class TrialRunner:
    """Runs a trial at commits; safe for several threads.

    `wanted` is what a failure's output must contain to count, None if that is judged later; `environments` are the
    keys of the prepared environments so far.
    """

    trial: Trial
    boxes: BoxPool
    cancel: Event | None = None
    wanted: re.Pattern[str] | None = None
    environments: set[str] = field(default_factory=set)
    _lock: Lock = field(default_factory=Lock)

    def __call__(self, sha: str) -> CommitRun:
        """Run once at `sha` in a fresh box.

        Sandbox failures are retried and never count against the commit.

        Raises:
            Cancelled: the caller cancelled the work.
        """
        run = self._run_once(sha, self.boxes.run_trial)
        for _ in range(_MAX_ATTEMPTS - 1):
            if run.ran != "infra":
                break
            self.boxes.forget_environments()
            run = self._run_once(sha, self.boxes.run_trial)
        return run

    def explore_commit(self, sha: str) -> CommitRun:
        """Run once at `sha` in an emptied box; if the result is doubtful, in a fresh one."""
        run = self._run_once(sha, self.boxes.run_again)
        if run.ran == "infra":
            return self(sha)
        return replace(run, used=True)

    def prepare_run(self, sha: str) -> None:
        """Open the fresh box for a run at `sha`."""
        self.boxes.open_ahead(self.trial, sha)

    def expect_search(self, sha: str) -> None:
        """Open a box for `explore` at commits like `sha`."""
        self.boxes.expect_search(self.trial, sha)

    def with_python(self, python: str | None) -> TrialRunner:
        """A runner with another interpreter."""
        return replace(self, trial=replace(self.trial, python=python))

    def _run_once(
        self, sha: str, run: Callable[[Trial, str], tuple[RunResult, PreparedEnv]]
    ) -> CommitRun:
        started = time.monotonic()
        try:
            result, env = run(self.trial, sha)
        except SetupFailed as error:
            return self._make_run(
                sha,
                "untestable",
                started,
                f"setup failed: {signatures.find_telling_line(error.output) or str(error)[:300]}",
            )
        except OutsideError as error:
            if self.cancel is not None and self.cancel.is_set():
                raise Cancelled("stopped") from error
            return self._make_run(sha, "infra", started, str(error))
        if result.ended == "cancelled":
            raise Cancelled("stopped")
        with self._lock:
            self.environments.add(env.key)
        ran, reason = _classify_result(result)
        tool = find_missing_tool(self.trial.command, result)
        if tool:
            ran, reason = (
                "untestable",
                f"{tool} is not installed; --setup or tests.setup says what installs it",
            )
        signature = signatures.read_signature(result) if ran == "fail" else None
        if signature and self.wanted and self.wanted.search(f"{result.stdout}\n{result.stderr}"):
            reason = _SIGNATURE_MATCHED
        return replace(
            self._make_run(sha, ran, started, reason),
            signature=signature,
            python=env.python,
            inside=result.seconds,
            missing_tool=tool or "",
        )

    def _make_run(self, sha: str, ran: RunVerdict, started: float, reason: str) -> CommitRun:
        return CommitRun(sha, ran, None, time.monotonic() - started, reason, self.trial.python)


@dataclass(frozen=True)
class FailureJudge:
    """Distinguishes the wanted failure from any other.

    Args:
        rule: "auto" (like one of `wanted`), "exit" (any failure), or a regular expression over the output.
        wanted: the failures at commits that are known to be broken.
    """

    rule: str
    wanted: tuple[FailureSignature, ...] = ()

    def __call__(self, run: CommitRun) -> tuple[RunOutcome, str]:
        """The outcome that counts, and the reason."""
        if run.ran != "fail" or run.signature is None:
            return run.ran, run.reason
        if self.rule == "exit":
            return "fail", run.reason
        if self.rule != "auto":
            if run.reason == _SIGNATURE_MATCHED:
                return "fail", run.reason
            return "untestable", "failed, but its output does not match --signature"
        if not self.wanted or signatures.matches_any(run.signature, self.wanted):
            return "fail", run.reason
        return "untestable", f"failed differently: {run.signature.text}"

    def with_example(self, run: CommitRun) -> FailureJudge:
        """Add a failure at the bad end to the wanted examples."""
        if self.rule != "auto" or run.signature is None or run.signature in self.wanted:
            return self
        return replace(self, wanted=(*self.wanted, run.signature))


_SIGNATURE_MATCHED = "its output matches --signature"


def compile_signature(rule: str) -> re.Pattern[str] | None:
    """The compiled `--signature`; None for "auto" and "exit".

    Raises:
        UserError: it is not a regular expression.
    """
    if rule in {"auto", "exit"}:
        return None
    try:
        return re.compile(rule)
    except re.error as error:
        message = f"--signature {rule!r} is no regular expression: {error}"
        raise UserError(message) from error


def _classify_result(result: RunResult) -> tuple[RunVerdict, str]:
    if result.ended == "infra":
        return "infra", result.detail or "the sandbox failed"
    if result.ended != "exit":
        return "fail", f"ended by {result.ended}"
    if result.exit_code == 0:
        return "pass", "exit 0"
    if result.exit_code == UNTESTABLE_EXIT_CODE:
        return "untestable", UNTESTABLE_REASON
    if result.exit_code in _NOT_STARTED:
        return "untestable", f"the command could not be started (exit {result.exit_code})"
    return "fail", f"exit {result.exit_code}"


# Slowness as a failure: a commit fails when it runs slower than the good end by more than a threshold.
#
# The two are timed alternately, in fresh boxes on the same machine, so that load affects both alike.

SLOWER_KIND = "Slower"
_TIMES = " times the time of "
DEFAULT_PAIRS = 3


def read_factor(reason: str) -> float | None:
    """The factor in the reason of a timed run; None for another reason."""
    factor, times, _ = reason.partition(_TIMES)
    return float(factor) if times else None


class PairedRunner:
    """A runner that times a commit against a reference.

    Args:
        runner: runs the command at a commit.
        reference: the fast commit.
        threshold: the factor that counts as a failure (1.5: half as long again).
        pairs: how many times each commit runs for one verdict.
    """

    def __init__(
        self, runner: TrialRunner, reference: str, threshold: float, pairs: int = DEFAULT_PAIRS
    ) -> None:
        self._runner, self._reference = runner, reference
        self._threshold, self._pairs = threshold, pairs
        self.trial = runner.trial
        self.environments = runner.environments

    def __call__(self, sha: str) -> CommitRun:
        """One verdict: "fail" if the median run is slower than the reference's by more than the threshold."""
        times: dict[str, list[float]] = {"here": [], "there": []}
        spent = 0.0
        last: CommitRun | None = None
        for _ in range(self._pairs):
            for name, commit in (("there", self._reference), ("here", sha)):
                run = self._runner(commit)
                spent += run.seconds
                if run.ran != "pass":
                    reason = f"cannot be timed: {run.reason}"
                    ran: RunVerdict = "infra" if run.ran == "infra" else "untestable"
                    return replace(
                        run, sha=sha, ran=ran, signature=None, seconds=spent, reason=reason
                    )
                times[name].append(run.inside)
                last = run
        assert last is not None  # noqa: S101 - there is at least one pair
        ratio = median(times["here"]) / max(1e-3, median(times["there"]))
        slow = ratio > self._threshold
        reason = f"{ratio:.2f}{_TIMES}{self._reference[:12]}"
        signature = FailureSignature("exit", 0, kind=SLOWER_KIND) if slow else None
        return replace(
            last,
            sha=sha,
            ran="fail" if slow else "pass",
            signature=signature,
            seconds=spent,
            reason=reason,
        )

    def explore_commit(self, sha: str) -> CommitRun:
        """Run as for a verdict: times in a used box are not comparable."""
        return self(sha)

    def prepare_run(self, sha: str) -> None:
        """Do nothing: opening boxes ahead would disturb the measurement."""
