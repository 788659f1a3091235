"""What the command of a trial says of the tests behind it, whichever language they are written in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from regreen.domain.languages import Language, TestListener, TestTools
from regreen.languages.registry import LANGUAGES
from regreen.runs.trial import Trial
from regreen.shell.tools import load_tools

_WITH_TESTS = tuple((language, language.tests) for language in LANGUAGES if language.tests)
TEST_LISTENERS: tuple[TestListener, ...] = tuple(tools.listener for _, tools in _WITH_TESTS)


def names_each_test(trial: Trial, output: str = "") -> bool:
    """Whether a runner whose tests have stable names is behind the command, by its words or its output."""
    return any(tools.names_each_test(trial.command_line, output) for _, tools in _WITH_TESTS)


def find_listeners(trial: Trial, output: str) -> tuple[TestListener, ...]:
    """The listeners that hear the tests behind the command, by its output."""
    return tuple(t.listener for _, t in _WITH_TESTS if t.can_listen(trial.command_line, output))


def find_plain_test_call(trial: Trial) -> tuple[str, ...] | None:
    """The argv of a command that is one plain call of a test runner; None for anything more."""
    found = (tools.find_plain_call(trial.command) for _, tools in _WITH_TESTS)
    return next((tuple(words) for words in found if words is not None), None)


def find_collection(trial: Trial) -> tuple[Language, tuple[str, ...]] | None:
    """The plain call of a test runner that only collects, with its language; None where the command is none."""
    found = ((x, tools.find_collection(trial.command)) for x, tools in _WITH_TESTS)
    return next(((x, words) for x, words in found if words is not None), None)


def is_plain_test_call(trial: Trial) -> bool:
    """Whether the command is one plain call of a test runner."""
    return find_plain_test_call(trial) is not None


def find_warm_language(trial: Trial) -> Language | None:
    """The language whose warm engine runs the tests of the command."""
    return next(
        (x for x, _ in _WITH_TESTS if x.warm_driver and x.warm_driver.find_interpreter(trial.command)),
        None,
    )  # fmt: skip


def find_test_files(word: str) -> list[str]:
    """The files that may hold the test of this name."""
    return [path for _, tools in _WITH_TESTS for path in tools.find_test_files(word)]


def find_tools_of_test(test: str, path: str) -> TestTools | None:
    """What runs a test by its name; `path` is where its failure was seen."""
    return next((tools for _, tools in _WITH_TESTS if tools.is_test_name(test, path)), None)


def split_test_name(test: str) -> tuple[str, str]:
    """The file that a test's name begins with and its short name in it; both "" for other names."""
    found = (tools.split_name(test) for _, tools in _WITH_TESTS)
    return next((names for names in found if names[0]), ("", ""))


def widen_trial(trial: Trial) -> Trial | None:
    """The same runner over all tests it collects by default; None where the command is no narrow plain call."""
    found = (tools.widen(trial.command) for _, tools in _WITH_TESTS)
    command = next((words for words in found if words is not None), None)
    return replace(trial, command=command) if command is not None else None


def runs_all(trial: Trial, heard: Mapping[str, str]) -> bool:
    """Whether the command is the project's tests as a whole, as far as its words tell: exit 0 then means all of them.

    `heard` is how each test ended that a listener heard.
    """
    if is_plain_test_call(trial):
        return widen_trial(trial) is None
    narrow = any(tools.names_some(trial.command_line) for _, tools in _WITH_TESTS)
    return not narrow and (bool(heard) or _runs_a_suite(trial.command_line))


def _runs_a_suite(command_line: str) -> bool:
    return any(re.search(pattern, command_line) for pattern in load_tools().test_suites)
