"""The project's own tests beside the failing command: what passed on the broken commit has to pass with a patch.

The failing command alone proves little about a patch, least of all about a revert.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType

from packaging.version import Version

from regreen.code.file_languages import language_row
from regreen.code.paths import is_test
from regreen.domain.errors import AnalysisFailed, SetupFailed
from regreen.domain.job_control import StopCondition
from regreen.domain.ports import Git, Sandbox
from regreen.environment.inference import infer_environments
from regreen.environment.preparation import fill_trial
from regreen.gate.judge import SuiteComparison
from regreen.languages.registry import (
    LANGUAGES,
    TEST_LISTENERS,
    is_plain_test_call,
    names_each_test,
    runs_all,
    widen_trial,
)
from regreen.runs.test_runs import CommandRun, describe_regressions, find_regressed_tests, run_fresh
from regreen.runs.trial import Trial

MAX_RUN_SECONDS = 300.0
_RUN_TIME_SHARE = 0.25  # of the time that is left: at most three runs are made for one patch
_SETUP_SHARE = 0.5
_MIN_RUN_SECONDS, _MIN_SETUP_SECONDS = 10.0, 30.0
# Green tests that take so many times longer with a patch hang; a busy machine can slow down short runs so far.
_HANG_FACTOR, _MIN_HANG_SECONDS = 8.0, 40.0
_STOP_SHARE = (
    0.75  # of a run's time: then pytest is told to stop, and what it has run by then is compared
)


@dataclass(frozen=True, slots=True)
class _PatchComparison:
    """A patch compared with the broken commit: one line for each regression (None: not known), and their test names.

    `kept` of those that passed before pass still; `is_part`: some of them did not run; `fills_gaps`: every file can be
    collected now, and what could not run before passes.
    """

    broken: tuple[str, ...] | None
    kept: int = 0
    tests: frozenset[str] = frozenset()
    is_part: bool = False
    fills_gaps: bool = False


class ProjectSuite:
    """Runs a project's tests at one commit, once and lazily, and compares patches with that.

    Args:
        rev: the broken commit.
        trials: ways to run the tests, the likeliest first; the first that says something is kept.
        why: what is said where there is no way at all.
        infer: more ways, asked for only where none of `trials` says anything and one of them could not be prepared.
    """

    def __init__(
        self,
        rev: str,
        trials: Sequence[Trial],
        *,
        git: Git,
        sandbox: Sandbox,
        stop: StopCondition,
        why: str = "",
        infer: Callable[[], Sequence[Trial]] | None = None,
    ) -> None:
        self._rev = rev
        self._trials = tuple(trials)
        self._git = git
        self._sandbox = sandbox
        self._stop = stop
        self._why = why
        self._infer = infer
        self._before: tuple[Trial, CommandRun] | None = None
        self._asked = False
        self._ran_out = False
        self.fallen: frozenset[str] = frozenset()
        """Tests that patches broke so far: whoever looks for the next patch can hold it against them cheaply."""

    def compare_patch(
        self, commit: str, overlay: Mapping[str, bytes], given_up: frozenset[str] = frozenset()
    ) -> SuiteComparison:
        """Run the tests at `commit` with `overlay`, and compare with the broken commit.

        Args:
            commit: the broken commit with the patch in.
            overlay: files to lay over it, such as tests that the patch touched, as they were.
            given_up: test files that the patch openly takes back; that their tests are gone is no surprise.
        """
        found = self.run_baseline()
        if found is None:
            return SuiteComparison("", why=self._why)
        trial, before = found
        trial = replace(trial, overlay=MappingProxyType({**trial.overlay, **overlay}))
        seen = self._compare_runs(trial, before, commit, given_up)
        broken, tests = seen.broken, seen.tests
        if broken is None:
            longer = f"with it the project's own tests ({trial.command_line}) take longer than {trial.timeout:.0f} seconds"
            why = f"{longer}, before {before.result.seconds:.0f}"
            return SuiteComparison("", why=self._why if self._ran_out else why)
        if broken and self._stop.left > trial.timeout:
            # once more: a flaky test is no reason to refuse
            seen = self._compare_runs(trial, before, commit, given_up)
            broken = tuple(line for line in broken if line in (seen.broken or ()))
            tests &= seen.tests
        self.fallen |= tests
        if not broken and before.tests and not seen.kept:
            why = f"with it none of the project's own tests ({trial.command_line}) ran in time"
            return SuiteComparison("", why=why)
        what = trial.command_line
        if before.stopped:
            what += f", those that ran within {trial.timeout * _STOP_SHARE:.0f} seconds"
        has_gaps = before.uncollected and not seen.fills_gaps
        if has_gaps:
            what += ", without those that cannot be collected here"
        is_part = before.stopped or has_gaps or seen.is_part
        return SuiteComparison(what, seen.kept, broken, is_part=is_part)

    def select_tests(self, tests: Collection[str]) -> Trial | None:
        """A trial of some tests by name; None if they cannot be run by name."""
        found = self.run_baseline()
        if found is None or not is_plain_test_call(found[0]):
            return None
        return replace(found[0], command=(*found[0].command, *sorted(tests)))

    def run_baseline(self) -> tuple[Trial, CommandRun] | None:
        """The trial that works and its run at the broken commit; None if none gives a result."""
        if not self._asked:
            self._asked = True
            self._before = self._find_working_trial()
        return self._before

    def _find_working_trial(self) -> tuple[Trial, CommandRun] | None:
        failed: set[tuple[str | None, ...]] = set()
        for trial in self._list_trials(failed):
            if (trial.setup, trial.python, trial.image) in failed:
                continue
            share = self._stop.left * _RUN_TIME_SHARE
            limit = min(trial.timeout, MAX_RUN_SECONDS, share)
            if share < _MIN_RUN_SECONDS:
                self._why = "there was no time left to run the project's own tests"
                return None
            limited = replace(trial, timeout=limit)
            seen = self._run_tests(limited, self._rev)
            if seen is None:
                failed.add((trial.setup, trial.python, trial.image))
                continue
            if seen.result.ended == "timeout":
                self._why = f"the project's own tests ({trial.command_line}) take longer than {limit:.0f} seconds"
                return None
            if _has_result(trial, seen):
                return limited, seen
            # Where no test passes already, there is nothing that the patch could break.
            own, end = f"the project's own tests ({trial.command_line})", _describe_end(seen)
            self._why = (
                f"none of {own} passes without the patch: {end}"
                if seen.tests
                else f"{own} cannot be run here: {end}"
            )
        return None

    def _list_trials(self, failed: Collection[object]) -> Iterator[Trial]:
        """The trials, then those that are inferred, if by then the setup of one has failed."""
        yield from self._trials
        if failed and self._infer is not None:
            yield from self._infer()

    def _compare_runs(
        self, trial: Trial, before: CommandRun, commit: str, given_up: frozenset[str]
    ) -> _PatchComparison:
        if before.is_green and not (before.stopped or before.uncollected):  # else it ended early
            longest = max(_MIN_HANG_SECONDS, before.result.seconds * _HANG_FACTOR)
            trial = replace(trial, timeout=min(trial.timeout, longest))
        after = self._run_tests(trial, commit)
        if after is None:  # a setup that ran out of time says nothing about the patch
            unprepared = ("they cannot be prepared with the patch",)
            return _PatchComparison(None if self._ran_out else unprepared)
        if after.result.ended == "timeout" and before.result.seconds * 3 > trial.timeout:
            return _PatchComparison(
                None
            )  # the machine may be busy: this does not prove that the patch hangs
        if after.result.ended != "exit":
            return _PatchComparison(
                (f"they do not come to their end with the patch: {after.result.ended}",)
            )
        if before.tests:
            ran = after.tests if after.stopped else before.tests
            outcomes_before = {test: word for test, word in before.tests.items() if test in ran}
            kept = sum(
                word == after.tests.get(test) == "passed" for test, word in outcomes_before.items()
            )
            broken = find_regressed_tests(outcomes_before, after.tests, given_up=given_up)
            is_part = after.stopped or after.uncollected
            new = [word for test, word in after.tests.items() if test not in before.tests]
            fills_gaps = not is_part and "passed" in new and "failed" not in new
            return _PatchComparison(
                tuple(describe_regressions(broken)), kept, frozenset(broken), is_part, fills_gaps
            )
        fresh = sorted(after.failing - before.failing)
        if before.is_green and not after.is_green and not fresh:
            return _PatchComparison((f"green before, exit {after.result.exit_code} now",))
        return _PatchComparison(
            tuple(f"did not fail before, fails now: {test}" for test in fresh[:10]),
            is_part=not after.is_green,  # a runner may end at the first failure
        )

    def _run_tests(self, trial: Trial, rev: str) -> CommandRun | None:
        self._stop.check_cancelled()
        self._ran_out = False
        limit = min(trial.setup_timeout, max(_MIN_SETUP_SECONDS, self._stop.left * _SETUP_SHARE))
        trial = replace(trial, setup_timeout=limit)
        try:
            return run_fresh(
                trial,
                rev,
                git=self._git,
                sandbox=self._sandbox,
                listeners=TEST_LISTENERS,
                seconds=trial.timeout * _STOP_SHARE,
                cancel=self._stop.cancel,
            )
        except SetupFailed as error:
            self._why = f"the project's own tests could not be prepared: {error}"
            self._ran_out = "took too long" in str(error)
            if self._ran_out:
                self._why += f"; half of the time that was left is {limit:.0f} seconds"
            return None


def find_suite(
    trial: Trial,
    rev: str,
    *,
    configured: Trial | None,
    outcomes: Mapping[str, str],
    git: Git,
    sandbox: Sandbox,
    stop: StopCondition,
    has_gaps: bool = False,
) -> ProjectSuite | None:
    """The project's tests for patches of `trial`; None if its command runs them all.

    Args:
        trial: the failing command.
        rev: the broken commit.
        configured: how the repository says that its tests run.
        outcomes: how each test ended that the command ran.
        git: the repository.
        sandbox: where they run.
        stop: how long the work may take.
        has_gaps: some files could not be collected when the runner was tried over all of them.
    """
    if runs_all(trial, outcomes) or (
        configured is not None and configured.command == trial.command
    ):
        return None
    ways = [configured] if configured is not None else []
    if is_plain_test_call(trial):  # the command names some tests: the rest was tried already
        rest = widen_trial(trial, past_errors=True) if has_gaps else None
        ways += [rest] if rest is not None else []
        why = "the rest of the suite cannot be run here, or takes too long"
        return ProjectSuite(rev, ways, git=git, sandbox=sandbox, stop=stop, why=why)
    why = "tests.command is not configured, and no tests were found"
    infer = partial(_infer_trials, trial, rev, git, sandbox.pythons())
    detected = _detect_trials(trial, rev, git, sandbox.pythons())
    return ProjectSuite(
        rev,
        [*ways, *(detected or infer())],
        git=git,
        sandbox=sandbox,
        stop=stop,
        why=why,
        infer=infer if detected else None,
    )


def _detect_trials(trial: Trial, rev: str, git: Git, pythons: Sequence[str]) -> list[Trial]:
    """Trials of all the tests that a test runner may collect, with and without what they require."""
    paths = [entry.path for entry in git.tree(rev)]
    ways: list[Trial] = []
    for tools, needs in ((x.tests, x.dependencies) for x in LANGUAGES):
        if tools is None or needs is None or not any(map(tools.is_collected, paths)):
            continue
        whole = tools.run_suite()
        full = _make_suite_trial(trial, whole, needs.make_test_setup(git, rev))
        alone = _make_suite_trial(trial, whole, needs.install_test_runner)
        ways += [full, replace(full, command=tools.run_suite(plain=True)), alone]
        # old tests may need an older Python than the step
        if pythons and trial.image is None:
            ways.append(replace(alone, python=min(pythons, key=Version)))
    return ways


def _infer_trials(trial: Trial, rev: str, git: Git, pythons: Sequence[str]) -> list[Trial]:
    """Trials of the tests as the manifests of any language say that they run; none where there are no tests.

    Each runs in the interpreter and image that go with its setup, then in those of a trial that has a setup of its own.
    """
    if not _has_tests(git, rev):
        return []
    have = (trial.python,) if trial.python else pythons
    try:
        found = infer_environments(git, rev, pythons=have, today=datetime.now(UTC).date())
    except AnalysisFailed:
        return []
    trials: list[Trial] = []
    for way in found:
        if way.test is not None and way.setup is not None:
            own = _make_suite_trial(trial, ("bash", "-c", way.test.value), way.setup.value)
            filled = fill_trial(own, way)
            trials += [filled, own] if trial.setup and filled != own else [filled]
    return trials


def _has_tests(git: Git, rev: str) -> bool:
    """Whether a file is a test, or a source holds tests of its own, as in Rust."""
    paths = [entry.path for entry in git.tree(rev)]
    return any(map(is_test, paths)) or any(
        re.search(pattern, (git.show(rev, path) or b"").decode("utf-8", "replace"), re.MULTILINE)
        for path in paths
        if (pattern := language_row(path).inline_tests)
    )


def _make_suite_trial(trial: Trial, command: tuple[str, ...], more: str) -> Trial:
    """The command in the trial's environment with `more` installed; what the tree's files say is judged like the tree."""
    alone = replace(trial.limits, network=False)
    return replace(trial.add_to_setup(more), command=command, title=None, limits=alone)


def _has_result(trial: Trial, run: CommandRun) -> bool:
    if run.result.ended != "exit" or not run.is_conclusive:
        return False
    if run.tests or names_each_test(trial):
        return "passed" in run.tests.values()
    return run.is_green or bool(run.failures)


def _describe_end(run: CommandRun) -> str:
    """The end of a run in a few words."""
    lines = [line.strip() for line in run.output.splitlines() if line.strip(" =!-")]
    code = run.result.exit_code
    how = run.result.ended if run.result.ended != "exit" else f"exit {code}"
    return f"{how}: {lines[-1][:160]}" if lines else how
