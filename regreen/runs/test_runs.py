"""Runs of the failing command in fresh boxes, listening to each test where a listener hears it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Event

from regreen.domain.errors import AnalysisFailed
from regreen.domain.languages import TestListener
from regreen.domain.models import Failure, PreparedEnv, RunResult
from regreen.domain.ports import Box, Git, Sandbox
from regreen.isolation import run_in_child
from regreen.logs.ci_log import read_failures
from regreen.runs.trial import UNTESTABLE_EXIT_CODE, Trial, open_box

_GIT_USING_COMMAND = re.compile(
    r"(?:^|[\s;&|(`'\"/])(?:git|pre[-_]commit|prek|lefthook|lint-staged|check-manifest|make|just|tox|nox|npm|pnpm|yarn|darker|task|invoke|poe|hatch|[\w./-]{1,200}\.sh)(?:\s|$|['\"`])"
)
# Real history never enters a box: one commit of the tree as it was brought, like a checkout of depth one. What the setup
# changed in it since is no part of that commit, or a check for generated files that are out of date would always pass.
INIT_REPOSITORY_SCRIPT = """
if [ ! -e .git ] && command -v git >/dev/null 2>&1; then
  (
    export GIT_AUTHOR_NAME=regreen GIT_AUTHOR_EMAIL=regreen@localhost
    export GIT_COMMITTER_NAME=regreen GIT_COMMITTER_EMAIL=regreen@localhost
    rg_laid="$HOME/.regreen-laid"
    if [ -f "$rg_laid/list" ]; then
      : > "$rg_laid/back"
      while read -r number name; do
        cmp -s "$name" "/env/.regreen/changed/$number" || continue
        if [ -f "$rg_laid/$number" ]; then cp -p "$rg_laid/$number" "$name"; else rm -f "$name"; fi
        echo "$number $name" >> "$rg_laid/back"
      done < "$rg_laid/list"
    fi
    git init -q . && printf '%s\\n' '.regreen*' node_modules .venv .tox .nox __pycache__ '*.egg-info' >> .git/info/exclude
    git add -A . && git commit -q -m tree --no-verify && git tag -a -m tree v999.0.0
    if [ -f "$rg_laid/back" ]; then
      while read -r number name; do cp -p "/env/.regreen/changed/$number" "$name"; done < "$rg_laid/back"
    fi
  ) >/dev/null 2>&1
fi
"""


def asks_git(command: str) -> bool:
    """Whether a command line is likely to need a repository around it."""
    return bool(_GIT_USING_COMMAND.search(command))


def wrap_in_repository(command: Sequence[str]) -> tuple[str, ...]:
    """The same command, with a repository made around the tree first."""
    return ("sh", "-c", f'{INIT_REPOSITORY_SCRIPT}\nexec "$@"', "sh", *command)


def trial_argv(trial: Trial) -> tuple[str, ...]:
    """What to run in a box for a trial: its command, with a repository around the tree if it asks git."""
    return wrap_in_repository(trial.command) if asks_git(" ".join(trial.command)) else trial.command


STUCK_VARIABLE = "REGREEN_STUCK_SECONDS"
"""The seconds that one test may take, for Python's listener; without it there is no such limit."""
_STUCK_WORD = "Timeout ("  # as faulthandler writes it


@dataclass(frozen=True)
class CommandRun:
    """One run: how it ended, what failed, and (where the tests could be listened to) how each test ended.

    `took` is each test's seconds; `touched` what a failing one read or started (none where that could not be seen).
    `stopped`: the tests were told to stop before its last test, for its time was over. `uncollected`: it could not even
    read some of the tests. `stuck` is the test that took longer than `STUCK_VARIABLE` allows, and ended the run.
    """

    result: RunResult
    failures: tuple[Failure, ...] = ()
    tests: Mapping[str, str] = field(default_factory=dict)
    stopped: bool = False
    uncollected: bool = False
    stuck: str = ""
    took: Mapping[str, float] = field(default_factory=dict)
    touched: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_green(self) -> bool:
        """The command exited 0."""
        return self.result.passed

    @property
    def failed(self) -> bool:
        """It ran to its end, or to a limit, and failed; a command that could not be tried did not."""
        return not self.is_green and self.is_conclusive

    @property
    def output(self) -> str:
        """Both streams, as a person at a terminal would have seen them."""
        return f"{self.result.stdout}\n{self.result.stderr}".strip()

    @property
    def failing(self) -> frozenset[str]:
        """The ids of what failed."""
        failed_tests = frozenset(test for test, word in self.tests.items() if word == "failed")
        return failed_tests or frozenset(failure.test for failure in self.failures)

    @property
    def is_conclusive(self) -> bool:
        """Whether the run says anything about the code: infrastructure and "cannot be tried" do not."""
        return (
            self.result.ended not in {"infra", "cancelled"}
            and self.result.exit_code != UNTESTABLE_EXIT_CODE
        )


def run_fresh(
    trial: Trial,
    rev: str,
    *,
    git: Git,
    sandbox: Sandbox,
    env: PreparedEnv | None = None,
    listeners: Sequence[TestListener] = (),
    seconds: float | None = None,
    cancel: Event | None = None,
) -> CommandRun:
    """Run the command once in a fresh box at `rev`; tests that are listened to for so many seconds at most.

    `env` as in `open_box`.
    """
    with open_box(trial, rev, git=git, sandbox=sandbox, env=env, cancel=cancel) as box:
        return run_in_box(box, trial, listeners=listeners, seconds=seconds, cancel=cancel)


def run_in_box(
    box: Box,
    trial: Trial,
    *,
    listeners: Sequence[TestListener] = (),
    seconds: float | None = None,
    cancel: Event | None = None,
) -> CommandRun:
    """Run the command in a box that is open already."""
    env, argv = dict(trial.env), trial_argv(trial)
    for listener in listeners:
        box.write(dict(listener.read_programs()))
        env, argv = listener.extend_environment(env, seconds), listener.extend_command(argv)
    result = box.run(argv, timeout=trial.timeout, env=env, cancel=cancel)
    # a box that was stopped cannot be read any more
    readable = listeners if result.ended == "exit" else ()
    listened = b"\n".join(
        box.read(listener.output, 8 * 1024 * 1024) or b"" for listener in readable
    )
    output = f"{result.stdout}\n{result.stderr}"
    if not result.passed and any(one.kept_tests_from_starting(output) for one in listeners):
        return run_in_box(box, trial, cancel=cancel)  # that failure is none of the project's
    run = CommandRun(result, () if result.passed else read_failures(output))
    if len(listened) <= _MAX_QUICK_BYTES:
        return _read_listener_output(listened, run)
    try:
        return run_in_child(_read_listener_output, listened, run)
    except AnalysisFailed:  # what the tests may have written in its place is no listener's output
        return run


_MAX_QUICK_BYTES = 128 * 1024
"""So much is read in about a tenth of a second whatever it holds, which is less than four child processes take to start."""
_MAX_SECONDS = 1e6
_OUTCOME_RANK = {"passed": 0, "xfailed": 1, "skipped": 1, "failed": 2}


def read_seconds(value: object) -> float:
    """The seconds that a program in a box wrote; 0 for what no clock can have measured."""
    if isinstance(value, float | int) and 0 <= value < _MAX_SECONDS:
        return float(value)
    return 0.0


def _read_listener_output(listened: bytes, run: CommandRun) -> CommandRun:
    """What the listener wrote; of several words about a test the worst: a teardown that fails outweighs its call.

    The tests can write there, too.
    """
    tests: dict[str, str] = {}
    took: dict[str, float] = {}
    touched: dict[str, list[str]] = {}
    words: set[str] = set()
    begun = stuck = ""
    for line in listened.decode("utf-8", "replace").splitlines():
        word, test, more = [*line.split("\t"), "", ""][:3]
        words.add(word)
        begun = test if word == "begun" else begun
        stuck = stuck or (begun if word.startswith(_STUCK_WORD) else "")
        try:
            value = json.loads(more) if more else None
        except (ValueError, RecursionError):
            continue
        if word == "touched" and isinstance(value, list):
            touched.setdefault(test, []).extend(map(str, value))
        elif word in _OUTCOME_RANK and isinstance(value, float | int):
            took[test] = took.get(test, 0.0) + read_seconds(value)
            if _OUTCOME_RANK[word] >= _OUTCOME_RANK[tests.get(test, "passed")]:
                tests[test] = word
    stopped, uncollected = "stopped" in words, "uncollected" in words
    return replace(
        run,
        tests=tests,
        stopped=stopped,
        uncollected=uncollected,
        stuck=stuck,
        took=took,
        touched={test: tuple(places) for test, places in touched.items()},
    )


def find_regressed_tests(
    before: Mapping[str, str],
    after: Mapping[str, str],
    *,
    flaky: Collection[str] = (),
    given_up: Collection[str] = (),
) -> dict[str, str]:
    """The tests that passed before and do not pass after, and how each ends now ("gone" where it no longer runs).

    Args:
        before: how each test ended.
        after: how they end now.
        flaky: tests that do not count.
        given_up: test files that are openly taken back; that their tests are gone is no surprise.
    """
    ends = {test: after.get(test, "gone") for test, word in before.items() if word == "passed"}
    return {
        test: now
        for test, now in ends.items()
        if now != "passed"
        and test not in flaky
        and not (now == "gone" and any(_is_test_in_file(test, path) for path in given_up))
    }


def _is_test_in_file(test: str, path: str) -> bool:
    """Whether a file holds a test, called by its path (`a/b.py::C::d`) or by its module (`a.b.C.d`)."""
    dotted = "." + path.rpartition(".")[0].replace("/", ".")
    return path == test.partition("::")[0] or dotted.endswith("." + test.rsplit(".", 2)[0])


def describe_regressions(broken: Mapping[str, str]) -> list[str]:
    """One line for each fallen test, ten at the most."""
    return [
        f"passed before, {'is gone' if now == 'gone' else now} now: {test}"
        for test, now in list(broken.items())[:10]
    ]
