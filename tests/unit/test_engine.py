from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from regreen.fixers.case import Before, Case
from regreen.fixers.engine import Engine
from regreen.fixers.rungs.template import search
from regreen.fixers.spectrum import ranked
from regreen.fixers.stop import Stop
from regreen.fixers.templates import edits
from tests.unit.repairs import CALC, GREEN, Repository, job, sandbox_or_skip

pytestmark = pytest.mark.sandbox
BROKEN = CALC.replace("result += value", "result = value")
OUTCOMES = {
    "tests/test_calc.py::test_total": "failed",
    "tests/test_calc.py::test_mean": "failed",
    "tests/test_calc.py::test_mean_of_nothing": "passed",
}


@pytest.fixture
def case(tmp_path: Path) -> Case:
    sandbox = sandbox_or_skip()
    repository = Repository(tmp_path / "repo")
    rev = repository.commit("start", {**GREEN, "pkg/calc.py": BROKEN + "\n\nSCALE = 1\n"})
    asked = job(rev, "python", "-m", "pytest", "-q")
    stop = Stop(time.monotonic() + 600)
    return Case(
        asked,
        rev,
        None,
        Before("pytest", 1),
        "",
        OUTCOMES,
        repository.open(),
        sandbox,
        None,
        stop,
        lambda _: None,
    )


@pytest.mark.slow
def test_warm_verdicts_are_those_of_the_command_itself(case: Case) -> None:
    text = f"{BROKEN}\n\nSCALE = 1\n"
    candidates = [{"pkg/calc.py": edit.on(text)} for edit in edits(text)[::9]]
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
    warm = Engine(case)
    assert warm.is_warm
    plain = Engine(
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


def test_each_test_is_told_by_itself(case: Case) -> None:
    found = Engine(case).baseline(["tests/test_calc.py"])
    assert {test: timed.outcome for test, timed in found.items()} == OUTCOMES


def test_the_faulty_line_is_among_the_most_suspect(case: Case) -> None:
    worst = ranked(case)[:6]
    assert ("pkg/calc.py", 8) in {(path, line) for path, line, _ in worst}


@pytest.mark.slow
def test_the_template_search_finds_the_repair(case: Case) -> None:
    found, _ = search(case, Engine(case), seconds=90, most_plausible=12)
    assert any(
        "result += value" in text or "result + value" in text or "value + result" in text
        for _, _, text in found
    )


def test_what_only_words_a_failure_is_not_suspect(case: Case, tmp_path: Path) -> None:
    shown = "class Shown(int):\n    def __repr__(self):\n        return 'shown'\n\n\ndef shown(x):\n    return Shown(x + 1)\n"
    repository = Repository(tmp_path / "other")
    tests = "from pkg.shown import shown\n\n\ndef test_shown():\n    assert shown(1) == 1\n"
    rev = repository.commit("start", {**GREEN, "pkg/shown.py": shown, "tests/test_shown.py": tests})
    asked = replace(case.job, rev=rev)
    failing = {"tests/test_shown.py::test_shown": "failed"}
    worst = ranked(replace(case, job=asked, rev=rev, passing=failing, git=repository.open()))
    assert {line for path, line, _ in worst if path == "pkg/shown.py"} == {6, 7}


def test_dear_candidates_come_last_where_asked(case: Case) -> None:
    text = f"{BROKEN}\n\nSCALE = 1\n"
    dear = {"pkg/calc.py": text.replace("SCALE = 1", "SCALE = 2")}
    right = {"pkg/calc.py": text.replace("result = value", "result += value")}
    first, second = Engine(case).try_all([dear, right], stop_at_green=True, swaps_first=True)
    assert (first.how, first.green) == ("untried", False)
    assert (second.how, second.green) == ("swap", True)
