"""What a reader of a failure is told beside the failure: who touched it, what is missing, what a new test is worth."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from regreen.domain.job_control import StopCondition
from regreen.domain.models import Failure, StackFrame
from regreen.fixers.case import FixJob, InitialFailure, RepairCase
from regreen.fixers.ladder import fix_failure
from regreen.fixers.localization import (
    describe_dependency_changes,
    list_last_commits,
    sketch_missing_functions,
)
from regreen.fixers.mutants import GeneratedTestQuality, measure_test
from regreen.languages.python.edits import make_mutants
from regreen.runs.trial import Trial
from tests.unit.repairs import CALC, GREEN, SETUP, Repository, job, sandbox_or_skip

DOUBLE = "\n\ndef double(values):\n    return [2 * value for value in values]\n"
HEAD = "from pkg.calc import double\n\n\n"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repo")


def case_of(repository: Repository, rev: str, base: str | None, failure: Failure) -> RepairCase:
    sandbox = sandbox_or_skip()
    asked = FixJob(Trial(("pytest", "-q")), rev, base)
    before = InitialFailure("pytest -q", 1, (failure,))
    stop = StopCondition(time.monotonic() + 60)
    return RepairCase(asked, rev, before, {}, repository.open(), sandbox, stop, base=base)


@pytest.mark.sandbox
def test_the_commits_behind_suspect_lines_are_named(repository: Repository) -> None:
    base = repository.commit("start", {**GREEN, "requirements.txt": "click==8.1\n"})
    changed = {"pkg/calc.py": CALC.replace("+=", "="), "requirements.txt": "click==8.2\n"}
    rev = repository.commit("faster sums", changed)
    case = case_of(repository, rev, base, Failure("t", "AssertionError", "assert 3 == 6"))
    said = list_last_commits(case, [StackFrame("pkg/calc.py", 8), StackFrame("pkg/calc.py", 900)])
    assert f"{rev[:12]}" in said
    assert "faster sums, in this change" in said
    assert "start" in said
    assert "+click==8.2" in describe_dependency_changes(case)
    assert describe_dependency_changes(replace(case, base=None)) == ""


@pytest.mark.sandbox
def test_what_is_missing_is_shown_as_the_tests_use_it(repository: Repository) -> None:
    tests = "from pkg.calc import spread\n\n\ndef test_spread():\n    low = 1\n    assert spread([1, 5], low, top=9) == 4\n"
    rev = repository.commit("start", {**GREEN, "tests/test_spread.py": tests})
    failure = Failure(
        "tests/test_spread.py::test_spread",
        "ImportError",
        "cannot import name 'spread' from 'pkg.calc' (/work/pkg/calc.py)",
        "tests/test_spread.py",
        1,
    )
    said = sketch_missing_functions(case_of(repository, rev, None, failure))
    assert "# in pkg.calc" in said
    assert "def spread(argument_1, low, *, top=...):\n    raise NotImplementedError" in said


def test_constants_outside_functions_can_be_wrong_too() -> None:
    text = "LIMIT = 100\nNAME: str = 'a'\n\n\ndef f(n=3):\n    return n\n"
    made = {
        edit.apply_to(text).splitlines()[edit.line - 1] for edit in make_mutants(text, [1, 2, 5])
    }
    assert {"LIMIT = 101", "NAME: str = 'ax'", "def f(n=4):"} <= made


def weighed(repository: Repository, code: str) -> GeneratedTestQuality:
    base = repository.commit("start", GREEN)
    head = repository.commit("double", {"pkg/calc.py": CALC + DOUBLE})
    trial = Trial(("pytest", "-q"), setup=SETUP, timeout=60)
    sandbox = sandbox_or_skip()
    return measure_test(
        trial, base, head, "tests/test_double.py", code, git=repository.open(), sandbox=sandbox
    )


@pytest.mark.sandbox
def test_a_test_that_notices_faults_is_worth_keeping(repository: Repository) -> None:
    worth = weighed(repository, f"{HEAD}def test_double():\n    assert double([3]) == [6]\n")
    assert worth.problem is None
    assert 0 < worth.killed <= worth.mutants


@pytest.mark.slow
@pytest.mark.sandbox
def test_a_test_that_notices_nothing_is_not(repository: Repository) -> None:
    worth = weighed(repository, f"{HEAD}def test_double():\n    assert double([3]) is not None\n")
    assert worth.problem is not None
    assert "passes just as well with each of these faults" in worth.problem
    assert worth.killed == 0


@pytest.mark.sandbox
def test_a_test_that_fails_on_the_change_is_not(repository: Repository) -> None:
    worth = weighed(repository, f"{HEAD}def test_double():\n    assert double([3]) == [7]\n")
    assert worth.problem is not None
    assert "assert [6] == [7]" in worth.problem


@pytest.mark.slow
@pytest.mark.sandbox
def test_a_change_of_one_commit_is_not_bisected(repository: Repository) -> None:
    base = repository.commit("start", GREEN)
    rev = repository.commit("faster", {"pkg/calc.py": CALC.replace("result +=", "result =")})
    asked = job(rev, base=base, rungs=("revert",))
    found = fix_failure(asked, git=repository.open(), sandbox=sandbox_or_skip(), model=None)
    assert (found.outcome, found.culprit and found.culprit.sha) == ("gave_up", rev)
    assert "the change is one commit" in found.attempts[0].summary


def test_three_repairs_a_commit_are_enough(repository: Repository) -> None:
    rev = repository.commit("start", GREEN)
    asked = job(rev, attempts_before=3)
    found = fix_failure(asked, git=repository.open(), sandbox=sandbox_or_skip(), model=None)
    assert (found.outcome, found.attempts) == ("gave_up", ())
    assert "3 repairs were tried at this commit already" in found.reason
