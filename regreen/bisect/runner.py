"""One run of the command at one commit, and what it means."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Event, Lock
from typing import Protocol

from regreen.bisect import signature as signatures
from regreen.bisect.boxes import Boxes
from regreen.bisect.memory import Ran, Run
from regreen.bisect.result import Seen
from regreen.bisect.signature import Signature
from regreen.codebase.trial import Trial, missing_tool
from regreen.errors import Cancelled, OutsideError, SetupFailed, UserError
from regreen.models import Env, RunResult

_ATTEMPTS = 3
_UNTESTABLE = 125
_NOT_STARTED = frozenset({126, 127})


class Runs(Protocol):
    """Whatever gives a verdict at a commit."""

    trial: Trial
    environments: set[str]

    def __call__(self, sha: str) -> Run:
        """Run once at `sha`, so that the outcome can be relied on."""
        ...

    def explore(self, sha: str) -> Run:
        """Run once at `sha`, as cheaply as can be: evidence for the search."""
        ...

    def expect(self, sha: str) -> None:
        """Be told that `sha` is likely to be run next."""
        ...


@dataclass
class Runner:
    """Runs a trial at commits; may be used by several threads at once.

    `wanted` is what the output of a failure must hold to count, None where that is judged later; `environments`
    are the keys of the prepared environments seen so far.
    """

    trial: Trial
    boxes: Boxes
    cancel: Event | None = None
    wanted: re.Pattern[str] | None = None
    environments: set[str] = field(default_factory=set)
    _lock: Lock = field(default_factory=Lock)

    def __call__(self, sha: str) -> Run:
        """Run once at `sha` in a fresh box.

        Trouble with the sandbox is tried again, and never counts against the commit.

        Raises:
            Cancelled: somebody asked for the work to stop.
        """
        run = self._once(sha, self.boxes.run)
        for _ in range(_ATTEMPTS - 1):
            if run.ran != "infra":
                break
            self.boxes.forget()
            run = self._once(sha, self.boxes.run)
        return run

    def explore(self, sha: str) -> Run:
        """Run once at `sha` in a box that was emptied; where anything is odd about that, in a fresh one."""
        run = self._once(sha, self.boxes.run_again)
        if run.ran == "infra":
            return self(sha)
        return replace(run, used=True)

    def expect(self, sha: str) -> None:
        """Open the fresh box that a run at `sha` will need."""
        self.boxes.expect(self.trial, sha)

    def expect_search(self, sha: str) -> None:
        """Open a box for `explore` at commits like `sha`."""
        self.boxes.expect_search(self.trial, sha)

    def with_python(self, python: str | None) -> Runner:
        """The same with another interpreter."""
        return replace(self, trial=replace(self.trial, python=python))

    def _once(self, sha: str, run: Callable[[Trial, str], tuple[RunResult, Env]]) -> Run:
        started = time.monotonic()
        try:
            result, env = run(self.trial, sha)
        except SetupFailed as error:
            return self._run(sha, "untestable", started, f"setup failed: {_last_line(error)}")
        except OutsideError as error:
            if self.cancel is not None and self.cancel.is_set():
                raise Cancelled("stopped") from error
            return self._run(sha, "infra", started, str(error))
        if result.ended == "cancelled":
            raise Cancelled("stopped")
        with self._lock:
            self.environments.add(env.key)
        ran, reason = _meaning(result)
        if tool := missing_tool(self.trial.command, result):
            ran, reason = "untestable", f"{tool} is not installed; --setup says what installs it"
        seen = signatures.read(result) if ran == "fail" else None
        if seen and self.wanted and self.wanted.search(f"{result.stdout}\n{result.stderr}"):
            reason = _FOUND
        return replace(
            self._run(sha, ran, started, reason),
            signature=seen,
            python=env.python,
            inside=result.seconds,
        )

    def _run(self, sha: str, ran: Ran, started: float, reason: str) -> Run:
        return Run(sha, ran, None, time.monotonic() - started, reason, self.trial.python)


@dataclass(frozen=True)
class Judge:
    """Tells the failure that is looked for from any other.

    Args:
        rule: "auto" (like one of `wanted`), "exit" (any failure), or a regular expression that the output has.
        wanted: the failures seen where the fault is known to be.
    """

    rule: str
    wanted: tuple[Signature, ...] = ()

    def __call__(self, run: Run) -> tuple[Seen, str]:
        """The outcome that counts, and why."""
        if run.ran != "fail" or run.signature is None:
            return run.ran, run.reason
        if self.rule == "exit":
            return "fail", run.reason
        if self.rule != "auto":
            if run.reason == _FOUND:
                return "fail", run.reason
            return "untestable", "failed, but its output does not match --signature"
        if not self.wanted or signatures.matches(run.signature, self.wanted):
            return "fail", run.reason
        return "untestable", f"failed differently: {run.signature.text}"

    def learn(self, run: Run) -> Judge:
        """Take a failure at the known end as an example of what is looked for."""
        if self.rule != "auto" or run.signature is None or run.signature in self.wanted:
            return self
        return replace(self, wanted=(*self.wanted, run.signature))


_FOUND = "its output matches --signature"


def pattern(rule: str) -> re.Pattern[str] | None:
    """The compiled `--signature`; None for "auto" and "exit".

    Raises:
        UserError: it is no regular expression.
    """
    if rule in {"auto", "exit"}:
        return None
    try:
        return re.compile(rule)
    except re.error as error:
        message = f"--signature {rule!r} is no regular expression: {error}"
        raise UserError(message) from error


def _meaning(result: RunResult) -> tuple[Ran, str]:
    if result.ended == "infra":
        return "infra", result.detail or "the sandbox failed"
    if result.ended != "exit":
        return "fail", f"ended by {result.ended}"
    if result.exit_code == 0:
        return "pass", "exit 0"
    if result.exit_code == _UNTESTABLE:
        return "untestable", "exit 125"
    if result.exit_code in _NOT_STARTED:
        return "untestable", f"the command could not be started (exit {result.exit_code})"
    return "fail", f"exit {result.exit_code}"


def _last_line(error: SetupFailed) -> str:
    lines: Sequence[str] = [line for line in error.output.splitlines() if line.strip()]
    return (lines[-1] if lines else str(error))[:300]
