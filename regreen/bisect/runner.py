"""One run of the command at one commit, in a fresh box, and what it means."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Event, Lock
from typing import Protocol

from regreen.bisect import signature as signatures
from regreen.bisect.memory import Ran, Run
from regreen.bisect.result import Seen
from regreen.bisect.signature import Signature
from regreen.codebase.trial import Trial, missing_tool, prepare
from regreen.errors import Cancelled, OutsideError, SetupFailed, UserError
from regreen.models import RunResult
from regreen.ports import Git, Sandbox

_ATTEMPTS = 3
_UNTESTABLE = 125
_NOT_STARTED = frozenset({126, 127})


class Runs(Protocol):
    """Whatever gives a verdict at a commit."""

    trial: Trial
    environments: set[str]

    def __call__(self, sha: str) -> Run:
        """Run once at `sha`."""
        ...


@dataclass
class Runner:
    """Runs a trial at commits; may be used by several threads at once.

    `wanted` is what the output of a failure must hold to count, None where that is judged later; `environments`
    are the keys of the prepared environments seen so far.
    """

    trial: Trial
    git: Git
    sandbox: Sandbox
    cancel: Event | None = None
    wanted: re.Pattern[str] | None = None
    environments: set[str] = field(default_factory=set)
    _lock: Lock = field(default_factory=Lock)

    def __call__(self, sha: str) -> Run:
        """Run once at `sha`; trouble with the sandbox is tried again, and never counts against the commit.

        Raises:
            Cancelled: somebody asked for the work to stop.
        """
        run = self._once(sha)
        for _ in range(_ATTEMPTS - 1):
            if run.ran != "infra":
                break
            run = self._once(sha)
        return run

    def with_python(self, python: str | None) -> Runner:
        """The same with another interpreter."""
        return replace(self, trial=replace(self.trial, python=python))

    def _once(self, sha: str) -> Run:
        started = time.monotonic()
        try:
            result, python = self._in_box(sha)
        except SetupFailed as error:
            return self._run(sha, "untestable", started, f"setup failed: {_last_line(error)}")
        except OutsideError as error:
            if self.cancel is not None and self.cancel.is_set():
                raise Cancelled("stopped") from error
            return self._run(sha, "infra", started, str(error))
        if result.ended == "cancelled":
            raise Cancelled("stopped")
        ran, reason = _meaning(result)
        if tool := missing_tool(self.trial.command, result):
            ran, reason = "untestable", f"{tool} is not installed; --setup says what installs it"
        seen = signatures.read(result) if ran == "fail" else None
        if seen and self.wanted and self.wanted.search(f"{result.stdout}\n{result.stderr}"):
            reason = _FOUND
        return replace(
            self._run(sha, ran, started, reason),
            signature=seen,
            python=python,
            inside=result.seconds,
        )

    def _in_box(self, sha: str) -> tuple[RunResult, str | None]:
        trial = self.trial
        env = prepare(trial, sha, git=self.git, sandbox=self.sandbox, cancel=self.cancel)
        with self._lock:
            self.environments.add(env.key)
        archive = self.git.archive(sha, trial.overlay)
        with self.sandbox.open(env, archive, trial.limits) as box:
            variables = dict(trial.env)
            result = box.run(
                trial.command, timeout=trial.timeout, env=variables, cancel=self.cancel
            )
        return result, env.python

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
