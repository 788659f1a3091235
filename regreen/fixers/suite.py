"""The project's own tests beside the failing command: what passed in them on the broken commit has to pass with a patch.

A lone check says little about a patch that makes it green, least of all about a revert.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from packaging.version import Version

from regreen.codebase.trial import Trial
from regreen.errors import SetupFailed
from regreen.fixers.gate import Held
from regreen.fixers.runs import (
    Seen,
    fallen,
    in_words,
    run_fresh,
    runs_all,
    simple_pytest,
    uses_pytest,
)
from regreen.fixers.stop import Stop
from regreen.fixers.suite_setup import PYTEST, wanted_by_tests
from regreen.ports import Git, Sandbox

LONGEST = 300.0
_SHARE = 0.25  # of the time that is left: at most three runs are made for one patch
_SETUP_SHARE = 0.5
_LEAST = 30.0
_END = 0.75  # of a run's time: then pytest is told to stop, and what it has run by then is compared
_PYTEST = ("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--continue-on-collection-errors")  # fmt: skip
_PLAIN = ("-o", "addopts=", "-o", "python_files=test*.py *_test.py tests.py")


@dataclass(frozen=True, slots=True)
class _Compared:
    """A patch beside the broken commit: what no longer passes, one line each (None: not known), and its tests by name.

    `kept` of those that passed before pass still.
    """

    broken: tuple[str, ...] | None
    kept: int = 0
    tests: frozenset[str] = frozenset()


class Suite:
    """How a project's tests end at one commit, run once when it is first asked for, and patches held against that.

    Args:
        rev: the broken commit.
        trials: ways to run the tests, the likeliest first; the first that says something is kept.
        why: what is said where there is no way at all.
        is_configured: the repository says how its tests run; else it was found out.
    """

    def __init__(
        self,
        rev: str,
        trials: Sequence[Trial],
        *,
        git: Git,
        sandbox: Sandbox,
        stop: Stop,
        why: str = "",
        is_configured: bool = False,
    ) -> None:
        self.is_configured = is_configured
        self._rev = rev
        self._trials = tuple(trials)
        self._git = git
        self._sandbox = sandbox
        self._stop = stop
        self._why = why
        self._before: tuple[Trial, Seen] | None = None
        self._asked = False
        self._ran_out = False
        self.fallen: frozenset[str] = frozenset()
        """Tests that patches broke so far: whoever looks for the next patch can hold it against them cheaply."""

    def hold(
        self, commit: str, overlay: Mapping[str, bytes], given_up: frozenset[str] = frozenset()
    ) -> Held:
        """Run the tests at `commit`, with `overlay` laid over it, against how they ended before.

        Args:
            commit: the broken commit with the patch in.
            overlay: files to lay over it, such as tests that the patch touched, as they were.
            given_up: test files that the patch openly takes back; that their tests are gone is no surprise.
        """
        found = self.baseline()
        if found is None:
            return Held("", why=self._why, unheard=bool(self._trials))
        trial, before = found
        trial = replace(trial, overlay=MappingProxyType({**trial.overlay, **overlay}))
        seen = self._compared(trial, before, commit, given_up)
        broken, tests = seen.broken, seen.tests
        if broken is None:
            longer = f"with it the project's own tests ({trial.shown}) take longer than {trial.timeout:.0f} seconds"
            why = f"{longer}, before {before.result.seconds:.0f}"
            return Held("", why=self._why if self._ran_out else why, in_doubt=True)
        if broken and self._stop.left > trial.timeout:
            # once more: a test that only fails at times is no reason to refuse
            seen = self._compared(trial, before, commit, given_up)
            broken = tuple(line for line in broken if line in (seen.broken or ()))
            tests &= seen.tests
        self.fallen |= tests
        if not broken and before.tests and not seen.kept:
            why = f"with it none of the project's own tests ({trial.shown}) ran in time"
            return Held("", why=why, in_doubt=True)
        what = trial.shown
        if before.stopped:
            what += f", those that ran within {trial.timeout * _END:.0f} seconds"
        return Held(what, seen.kept, broken)

    def of(self, tests: Collection[str]) -> Trial | None:
        """Some of the tests alone, by their names; None where there is no way to run them."""
        found = self.baseline()
        if found is None:
            return None
        return replace(found[0], command=(*found[0].command, *sorted(tests)))

    def baseline(self) -> tuple[Trial, Seen] | None:
        """The way that works, and how the tests end at the broken commit; None where no way says anything."""
        if not self._asked:
            self._asked = True
            self._before = self._first_that_works()
        return self._before

    def _first_that_works(self) -> tuple[Trial, Seen] | None:
        failed: set[tuple[str | None, str | None]] = set()
        for trial in self._trials:
            if (trial.setup, trial.python) in failed:
                continue
            share = self._stop.left * _SHARE
            limit = min(trial.timeout, LONGEST, share)
            if share < _LEAST:
                self._why = "there was no time left to run the project's own tests"
                return None
            limited = replace(trial, timeout=limit)
            seen = self._run(limited, self._rev)
            if seen is None:
                failed.add((trial.setup, trial.python))
                continue
            if seen.result.ended == "timeout":
                self._why = (
                    f"the project's own tests ({trial.shown}) take longer than {limit:.0f} seconds"
                )
                return None
            if _says_something(trial, seen):
                return limited, seen
            self._why = f"the project's own tests ({trial.shown}) cannot be run here: {_end(seen)}"
        return None

    def _compared(
        self, trial: Trial, before: Seen, commit: str, given_up: frozenset[str]
    ) -> _Compared:
        after = self._run(trial, commit)
        if after is None:  # a setup that ran out of time says nothing of the patch
            unprepared = ("they cannot be prepared with the patch",)
            return _Compared(None if self._ran_out else unprepared)
        if after.result.ended == "timeout" and before.result.seconds * 3 > trial.timeout:
            return _Compared(None)  # a busy machine is as likely as a patch that hangs
        if after.result.ended != "exit":
            return _Compared((f"they do not come to their end with the patch: {after.result.ended}",))  # fmt: skip
        if before.tests:
            ran = after.tests if after.stopped else before.tests
            told = {test: word for test, word in before.tests.items() if test in ran}
            kept = sum(word == after.tests.get(test) == "passed" for test, word in told.items())
            broken = fallen(told, after.tests, given_up=given_up)
            return _Compared(tuple(in_words(broken)), kept, frozenset(broken))
        fresh = sorted(after.failing - before.failing)
        if before.green and not after.green and not fresh:
            return _Compared((f"green before, exit {after.result.exit_code} now",))
        return _Compared(tuple(f"did not fail before, fails now: {test}" for test in fresh[:10]))

    def _run(self, trial: Trial, rev: str) -> Seen | None:
        self._stop.check()
        self._ran_out = False
        limit = min(trial.setup_timeout, max(_LEAST, self._stop.left * _SETUP_SHARE))
        trial = replace(trial, setup_timeout=limit)
        try:
            return run_fresh(
                trial,
                rev,
                git=self._git,
                sandbox=self._sandbox,
                listen=True,
                seconds=trial.timeout * _END,
                cancel=self._stop.cancel,
            )
        except SetupFailed as error:
            self._why = f"the project's own tests could not be prepared: {error}"
            self._ran_out = "took too long" in str(error)
            if self._ran_out:
                self._why += f"; half of the time that was left is {limit:.0f} seconds"
            return None


def suite_of(
    trial: Trial,
    rev: str,
    *,
    configured: Trial | None,
    heard: Mapping[str, str],
    git: Git,
    sandbox: Sandbox,
    stop: Stop,
) -> Suite | None:
    """The tests to hold a patch of `trial` against; None where the command runs them all by itself.

    Args:
        trial: the failing command.
        rev: the broken commit.
        configured: how the repository says that its tests run.
        heard: how each test ended that the command ran.
        git: the repository.
        sandbox: where they run.
        stop: how long the work may take.
    """
    if runs_all(trial, heard) or (configured is not None and configured.command == trial.command):
        return None
    ways = [configured] if configured is not None else []
    why = "tests.command is not configured, and no Python tests were found"
    if simple_pytest(trial) is None:
        ways += _detected(trial, rev, git, sandbox.pythons())
    else:  # a few tests named: the rest of them was tried already
        why = "the rest of the suite cannot be run here, or takes too long"
    return Suite(
        rev,
        ways,
        git=git,
        sandbox=sandbox,
        stop=stop,
        why=why,
        is_configured=configured is not None,
    )


_TEST_MODULE = re.compile(r"(?:.*/)?(?:tests?\w*|\w+_tests?)\.py")


def _detected(trial: Trial, rev: str, git: Git, pythons: Sequence[str]) -> list[Trial]:
    """The repository's Python tests: pytest over all that it finds (unittest's cases too), with what they want."""
    if not any(_TEST_MODULE.fullmatch(entry.path) for entry in git.tree(rev)):
        return []
    full, alone = (_with(trial, more) for more in (wanted_by_tests(git, rev), PYTEST))
    ways = [full, replace(full, command=(*_PYTEST, *_PLAIN)), alone]
    if (
        pythons and trial.image is None
    ):  # old tests may want more of an old Python than the step does
        ways.append(replace(alone, python=min(pythons, key=Version)))
    return ways


def _with(trial: Trial, more: str) -> Trial:
    """The tests where the command runs, with `more` installed; what comes from the tree's files is judged as the tree is."""
    own = () if trial.rules.trusts_command else (trial.asked or trial.setup or "",)
    return replace(
        trial,
        command=_PYTEST,
        title=None,
        limits=replace(trial.limits, network=False),
        setup=f"{trial.setup}\n{more}" if trial.setup else more,
        asked="\n".join((*own, more)),
        rules=replace(trial.rules, trusts_command=False),
    )


def _says_something(trial: Trial, seen: Seen) -> bool:
    if seen.result.ended != "exit" or not seen.counts:
        return False
    if seen.tests or uses_pytest(trial):
        return "passed" in seen.tests.values()
    return seen.green or bool(seen.failures)


def _end(seen: Seen) -> str:
    """How a run ended, in a few words."""
    lines = [line.strip() for line in seen.output.splitlines() if line.strip(" =!-")]
    code = seen.result.exit_code
    how = seen.result.ended if seen.result.ended != "exit" else f"exit {code}"
    return f"{how}: {lines[-1][:160]}" if lines else how
