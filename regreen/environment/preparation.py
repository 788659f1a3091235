"""Tries inferred environments in order and settles for the first in which the setup succeeds and the command starts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from regreen import isolation
from regreen.domain.environments import Environment, Inferred, open_files
from regreen.domain.errors import (
    AnalysisFailed,
    Cancelled,
    NoSandbox,
    OutOfBudget,
    SetupFailed,
    UserError,
)
from regreen.domain.job_control import StopCondition
from regreen.domain.languages import DependencyTools, Language
from regreen.domain.ports import Git, Sandbox
from regreen.languages.test_commands import find_collection, find_plain_test_call
from regreen.runs.test_runs import CommandRun, run_fresh
from regreen.runs.trial import Trial, describe_missing_tool, find_missing_tool, prepare_environment

_SETUP_SHARE = (
    0.5  # of the time that is left, so that a setup that hangs leaves time for the next one
)
_PROBE_SECONDS = 120.0
_MAX_COMPLETIONS = 6


@dataclass(frozen=True, slots=True)
class PreparedTrial:
    """A trial with its setup and the environment that it comes from; None where no setup worked.

    `notes` say what was passed over or added, and why. `starts`: the command is known to start.
    """

    trial: Trial
    environment: Environment | None
    notes: tuple[str, ...] = ()
    starts: bool = True


def fill_trial(trial: Trial, environment: Environment) -> Trial:
    """The trial with what was inferred for all that it does not say itself."""
    setup = environment.setup.value if environment.setup else None
    image = environment.image.value if environment.image else None
    return replace(
        trial,
        setup=trial.setup or setup,
        python=trial.python or environment.python,
        image=trial.image or image,
    )


@dataclass(frozen=True)
class EnvironmentTrier:
    """Prepares environments for a command at one commit; `stop` says until when, `say` receives a line for each step."""

    trial: Trial
    rev: str
    git: Git
    sandbox: Sandbox
    stop: StopCondition
    say: Callable[[str], None]

    def prepare_first(self, environments: Sequence[Environment]) -> PreparedTrial:
        """The first environment whose setup succeeds and in which the command starts.

        A setup that takes longer than half of the time that is left is killed. What the tests import and no manifest
        declares is added, where it is a package that many projects use.

        Raises:
            Cancelled: the caller stopped the work.
            OutsideError: the sandbox engine failed.
        """
        notes: list[str] = []
        second_best: PreparedTrial | None = None
        for environment in environments:
            if environment.is_fallback and second_best is not None:
                break
            place = environment.setup.source if environment.setup else "nothing"
            self.say(f"setting up as inferred from {place}")
            tried = self._complete(environment, notes)
            if tried is None:
                continue
            if tried.starts:
                return replace(tried, notes=tuple(notes))
            second_best = second_best or tried
        return replace(second_best or PreparedTrial(self.trial, None, starts=False), notes=tuple(notes))  # fmt: skip

    def _complete(self, environment: Environment, notes: list[str]) -> PreparedTrial | None:
        """Prepare one environment, and add what its tests lack; None where it cannot be set up here."""
        first = environment.setup or environment.image
        place = first.source if first else "nothing"
        left = _MAX_COMPLETIONS
        while True:
            trial = fill_trial(self.trial, environment)
            try:
                self._prepare(trial)
                language, run = self._probe(trial)
            except (Cancelled, NoSandbox, OutOfBudget):
                raise
            except UserError as error:
                self._note(notes, f"the setup inferred from {place} failed: {describe_failure(error)}")  # fmt: skip
                return None
            reason = describe_start(trial, run) if run else None
            needs = (
                language.dependencies if language and run and left and not run.is_green else None
            )
            added = self._find_undeclared(needs, run) if needs and run else ()
            left -= 1
            if reason is None and not added:
                return PreparedTrial(trial, environment)
            if not needs or not added or environment.setup is None:
                self._note(notes, f"the command cannot start as inferred from {place}: {reason}")
                return PreparedTrial(trial, environment, starts=False)
            self._note(notes, f"added to the setup, for no manifest declares it: {', '.join(added)}")  # fmt: skip
            setup = Inferred(f"{environment.setup.value}\n{needs.install(added)}", place)
            environment = replace(environment, setup=setup)

    def _note(self, notes: list[str], text: str) -> None:
        notes.append(text)
        self.say(text)

    def _prepare(self, trial: Trial) -> None:
        self.stop.check_cancelled()
        limit = min(trial.setup_timeout, self.stop.left * _SETUP_SHARE)
        if limit < 1:
            raise SetupFailed("there was no time left for it", "")
        limited = replace(trial, setup_timeout=limit)
        prepare_environment(
            limited, self.rev, git=self.git, sandbox=self.sandbox, cancel=self.stop.cancel
        )

    def _probe(self, trial: Trial) -> tuple[Language | None, CommandRun | None]:
        """Collect the tests without running them; None where nothing can be collected alone."""
        found = find_collection(trial)
        if found is None:
            return None, None
        language, argv = found
        seconds = max(1.0, min(_PROBE_SECONDS, self.stop.left))
        probe = replace(trial, command=argv, timeout=seconds)
        run = run_fresh(
            probe, self.rev, git=self.git, sandbox=self.sandbox, cancel=self.stop.cancel
        )
        return language, run

    def _find_undeclared(self, needs: DependencyTools, run: CommandRun) -> tuple[str, ...]:
        try:
            return isolation.run_in_child(_select_undeclared, needs, run.output, self.git, self.rev)
        except AnalysisFailed:
            return ()


def _select_undeclared(needs: DependencyTools, output: str, git: Git, rev: str) -> tuple[str, ...]:
    return needs.find_undeclared(output, open_files(git, rev))


_COUNTED = re.compile(r"\b\d+ (?:passed|failed|tests? collected|skipped|tests? ran)|/\d+ tests collected|^\S+::\S+|^\S+\.py: \d+$|<(?:Function|TestCaseFunction|DoctestItem) ", re.MULTILINE)  # fmt: skip
_TELLING_LINE = re.compile(r"(?i)\b(?:\w*error|failed|no module|not found|no matching|cannot|unable)\b")  # fmt: skip


def describe_start(trial: Trial, run: CommandRun) -> str | None:
    """Why the command could not start to test; None where it did."""
    result = run.result
    if result.passed or result.ended == "timeout":
        return None
    if result.ended != "exit":
        return f"it was ended: {result.detail or result.ended}"
    if tool := find_missing_tool(trial.command, result):
        return describe_missing_tool(tool, setup=trial.setup)
    if _COUNTED.search(run.output) or (run.failures and find_plain_test_call(trial) is None):
        return None
    return _first_telling_line(run.output) or f"it exits with {result.exit_code} before any test"


def describe_failure(error: UserError) -> str:
    """Why a setup failed: the first line that tells, beside the last one printed."""
    telling = _first_telling_line(error.output) if isinstance(error, SetupFailed) else ""
    return f"{str(error)[:200]} ({telling})" if telling and telling not in str(error) else str(error)[:300]  # fmt: skip


def _first_telling_line(output: str) -> str:
    lines = [line.strip(" \t×╰─▶├│") for line in output.splitlines() if len(line) < 2000]
    raised = (
        line[1:].strip() for line in lines if re.match(r"E\s+[\w.]*(?:Error|Exception)\b", line)
    )
    return next(iter((*raised, *filter(_TELLING_LINE.search, lines), "")))[:200]
