"""Whether several runs of one command fail in the same places, and whether CI installs as strictly as they did."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event

import pytest

from regreen.domain.errors import Cancelled
from regreen.domain.job_control import DeadlineEvent, StopCondition
from regreen.domain.models import Failure, RunResult
from regreen.fixers.case import InitialFailure
from regreen.fixers.triage import TriageResult, find_refused_lock, judge_runs, read_npm_ci_options
from regreen.runs.test_runs import CommandRun
from regreen.runs.trial import Trial
from tests.unit.repairs import Repository, job, sandbox_or_skip

TRIAL = Trial(("pytest", "-q"))
TEST = "tests/test_sql.py::TestSql::test_write"


def red(*printed: str, heard: str = "") -> CommandRun:
    """A failing run: the first is only read, later ones are listened to test by test."""
    failures = tuple(Failure(test, "AssertionError", "") for test in printed)
    result = RunResult("exit", 1, "", "", truncated=False, seconds=0.1)
    return CommandRun(result, failures, {heard: "failed", "tests/test_sql.py::test_b": "passed"} if heard else {})  # fmt: skip


def test_subtests_that_fail_every_time_are_not_flaky() -> None:
    printed = (f"{TEST} [SELECT 1 -> duckdb]", f"{TEST} (i=2)")
    seen = judge_runs(TRIAL, [red(*printed), red(*printed, heard=TEST), red(*printed, heard=TEST)])
    assert (seen.outcome, seen.flaky) == (None, frozenset())
    assert [failure.test for failure in seen.before.failures] == list(printed)


def test_runs_that_fail_in_other_tests_each_are_flaky() -> None:
    other = "tests/test_sql.py::test_read"
    seen = judge_runs(TRIAL, [red(f"{TEST} [a]"), red(other, heard=other)])
    assert seen.outcome == "flaky"
    assert seen.flaky == {f"{TEST} [a]", other}


def test_a_parameter_with_a_bracket_in_it_stays_what_it_is() -> None:
    name = f"{TEST}[a [b]"
    seen = judge_runs(TRIAL, [red(name), red(name, heard=name)])
    assert (seen.outcome, seen.flaky) == (None, frozenset())


@pytest.mark.parametrize(
    ("lines", "options"),
    [
        ("- run: npm ci", ""),
        ("- name: Install\n  run: |\n    npm ci --legacy-peer-deps  # as the lock", " --legacy-peer-deps"),
        ("- run: npm ci || npm install", None),
        ("- run: npm ci\n  continue-on-error: true", None),
        ("- run: npm ci\n  working-directory: docs", None),
        ("- run: |\n    cd docs\n    npm ci", None),
        ("- run: npm ci --prefix docs", None),
        ("- run: npm ci --registry=evil.example", None),
        ("- run: npm circular", None),
        ("# - run: npm ci", None),
    ],
)  # fmt: skip
def test_only_a_plain_call_of_npm_ci_is_held_against_the_lock(
    lines: str, options: str | None
) -> None:
    assert read_npm_ci_options(lines) == options


def test_what_is_green_stays_green_where_no_time_is_left_for_its_lock(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    rev = repository.commit("start", {".github/workflows/ci.yml": "- run: npm ci\n"})
    asked = job(rev, "true", setup="npm ci || npm install --no-fund")
    green = TriageResult(InitialFailure("true", 0), "already_green")
    now = time.monotonic()

    def look(stop: StopCondition) -> TriageResult:
        box = sandbox_or_skip()
        return find_refused_lock(asked, green, rev, git=repository.open(), sandbox=box, stop=stop)

    assert look(StopCondition(now, DeadlineEvent(now, None))) is green
    (cancelled := Event()).set()
    with pytest.raises(Cancelled):
        look(StopCondition(now + 60, cancelled))
