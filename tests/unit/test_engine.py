from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from regreen.domain.job_control import StopCondition
from regreen.fixers.case import InitialFailure, RepairCase
from regreen.fixers.localization import rank_lines
from regreen.fixers.rungs.template_rung import search_edits
from regreen.fixers.warm_engine import WarmEngine
from regreen.languages.python.edits import make_edits
from tests.unit.repairs import CALC, GREEN, Repository, job, sandbox_or_skip

pytestmark = pytest.mark.sandbox
BROKEN = CALC.replace("result += value", "result = value")
OUTCOMES = {
    "tests/test_calc.py::test_total": "failed",
    "tests/test_calc.py::test_mean": "failed",
    "tests/test_calc.py::test_mean_of_nothing": "passed",
}


@pytest.fixture
def case(tmp_path: Path) -> RepairCase:
    sandbox = sandbox_or_skip()
    repository = Repository(tmp_path / "repo")
    rev = repository.commit("start", {**GREEN, "pkg/calc.py": BROKEN + "\n\nSCALE = 1\n"})
    asked = job(rev, "python", "-m", "pytest", "-q")
    stop = StopCondition(time.monotonic() + 600)
    before = InitialFailure("pytest", 1)
    return RepairCase(asked, rev, before, OUTCOMES, repository.open(), sandbox, stop)


@pytest.mark.slow
def test_warm_verdicts_are_those_of_the_command_itself(case: RepairCase) -> None:
    text = f"{BROKEN}\n\nSCALE = 1\n"
    candidates = [{"pkg/calc.py": edit.apply_to(text)} for edit in make_edits(text)[::9]]
    candidates.append({"pkg/calc.py": text.replace("result = value", "result += value")})
    candidates.append(
        {
            "pkg/calc.py": text.replace("result = value", "result += value * SCALE").replace(
                "SCALE = 1", "SCALE = 2"
            )
        }
    )
    candidates.append(
        {
            "pkg/calc.py": text.replace("result = value", "result += value").replace(
                "def total", "def sum_up"
            )
        }
    )
    warm = WarmEngine(case)
    assert warm.is_warm
    plain = WarmEngine(
        replace(case, job=job(case.rev, "bash", "-c", "python -m pytest -q -x; exit $?"))
    )
    assert not plain.is_warm
    ours = warm.try_all(candidates, seconds=120)
    assert [one.green for one in ours] == [
        one.green for one in plain.try_all(candidates, seconds=200)
    ]
    assert {one.how for one in ours} == {"swap", "fresh"}
    assert ours[-3].green
    assert not ours[-2].green


def test_each_test_is_told_by_itself(case: RepairCase) -> None:
    found = WarmEngine(case).run_baseline(["tests/test_calc.py"])
    assert {test: timed.outcome for test, timed in found.items()} == OUTCOMES


def test_the_faulty_line_is_among_the_most_suspect(case: RepairCase) -> None:
    worst = rank_lines(case)[:6]
    assert ("pkg/calc.py", 8) in {(path, line) for path, line, _ in worst}


@pytest.mark.slow
def test_the_template_search_finds_the_repair(case: RepairCase) -> None:
    found, _ = search_edits(case, WarmEngine(case), seconds=90, most_plausible=12)
    assert any(
        "result += value" in text or "result + value" in text or "value + result" in text
        for _, _, text in found
    )


def test_what_only_words_a_failure_is_not_suspect(case: RepairCase, tmp_path: Path) -> None:
    shown = "class Shown(int):\n    def __repr__(self):\n        return 'shown'\n\n\ndef shown(x):\n    return Shown(x + 1)\n"
    repository = Repository(tmp_path / "other")
    tests = "from pkg.shown import shown\n\n\ndef test_shown():\n    assert shown(1) == 1\n"
    rev = repository.commit("start", {**GREEN, "pkg/shown.py": shown, "tests/test_shown.py": tests})
    asked = replace(case.job, rev=rev)
    failing = {"tests/test_shown.py::test_shown": "failed"}
    worst = rank_lines(replace(case, job=asked, rev=rev, passing=failing, git=repository.open()))
    assert {line for path, line, _ in worst if path == "pkg/shown.py"} == {6, 7}


def test_expensive_candidates_come_last_where_asked(case: RepairCase) -> None:
    text = f"{BROKEN}\n\nSCALE = 1\n"
    slow = {"pkg/calc.py": text.replace("SCALE = 1", "SCALE = 2")}
    right = {"pkg/calc.py": text.replace("result = value", "result += value")}
    first, second = WarmEngine(case).try_all([slow, right], most_green=1, swaps_first=True)
    assert (first.how, first.green) == ("untried", False)
    assert (second.how, second.green) == ("swap", True)
