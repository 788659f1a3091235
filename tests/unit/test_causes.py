"""The mathematics of `regreen why`: which runs name which cause, and how often it errs."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from regreen.causes.investigation import (
    BlamedPackage,
    Investigation,
    find_test_outcome,
    names_package,
)
from regreen.causes.posterior import Cause, CausePosterior, Circumstances, Link, Place
from regreen.domain.models import RunResult
from regreen.runs.test_runs import CommandRun
from regreen.runs.trial import Trial


def posterior(head: str, base: str, **known: object) -> CausePosterior:
    """The posterior after runs: F failed, P passed."""
    found = CausePosterior(Circumstances(**known))  # type: ignore[arg-type]
    for letter in head:
        found.observe_outcome("head", failed=letter == "F")
    for letter in base:
        found.observe_outcome("base", failed=letter == "F")
    return found


@pytest.mark.parametrize(
    ("head", "base", "known", "cause"),
    [
        ("F", "P", {}, None),
        ("FF", "PP", {}, None),
        ("FFF", "PPP", {}, None),
        ("FFFF", "PPP", {}, "change"),
        ("FFFF", "PPP", {"documents_only": True}, None),
        ("FF", "P", {"link": "file"}, None),
        ("FF", "P", {"link": "test"}, "change"),
        ("FF", "P", {"together": 20}, None),
        ("FFF", "PP", {"together": 20}, "change"),
        ("FF", "P", {"is_fixed": True, "link": "file"}, "change"),
        ("FF", "F", {}, None),
        ("FF", "FF", {}, "main"),
        ("FF", "F", {"is_fixed": True}, "main"),
        ("FF", "", {"documents_only": True, "together": 30}, None),
        ("FF", "F", {"documents_only": True, "together": 30}, "main"),
        ("FP", "P", {}, "flaky"),
        ("FP", "F", {}, "flaky"),
        ("FP", "", {"is_new": True}, "flaky"),
        ("F", "", {"is_new": True, "together": 30, "is_fixed": True}, None),
        ("FFF", "", {"is_new": True, "link": "file"}, "change"),
        ("PPP", "P", {}, None),
    ],
)
def test_the_cause_is_named_when_the_runs_show_it(
    head: str, base: str, known: dict[str, bool], cause: Cause | None
) -> None:
    assert posterior(head, base, **known).find_cause() == cause


@pytest.mark.parametrize(
    ("base", "known", "may_be_made"),
    [
        ("", {"link": "statement"}, True),
        ("PPPPP", {"link": "file"}, True),
        ("PPPPF", {"link": "line"}, False),
        ("", {"is_new": True}, True),
        ("P", {}, False),
        ("P", {"link": "file", "documents_only": True}, False),
    ],
)
def test_only_a_failure_on_the_base_or_no_link_shows_that_a_flake_is_not_the_changes(
    base: str, known: dict[str, object], may_be_made: bool
) -> None:
    found = posterior("FP", base, **known)
    assert (found.find_cause(), found.may_be_made_flaky) == ("flaky", may_be_made)


def test_what_passes_alone_is_rather_a_flake() -> None:
    found = posterior("FFF", "PP", link="file")
    assert found.find_cause() == "change"
    found.passes_alone = True
    assert found.find_cause() is None
    found.observe_outcome("head", failed=False)
    assert found.find_cause() == "flaky"


def decide(on_head: float, on_base: float, dice: random.Random, **known: object) -> tuple[Cause | None, int]:  # fmt: skip
    """Runs as `Investigation` does, after a first run on head that failed: the cause, and the number of runs."""
    found = CausePosterior(Circumstances(**known))  # type: ignore[arg-type]
    found.observe_outcome("head", failed=True)
    rates: dict[Place, float] = {"head": on_head, "base": on_base}
    while found.find_cause() is None and found.count_runs(*rates) < 12:
        place = found.choose_next_place()
        found.observe_outcome(place, failed=dice.random() < rates[place])
    return found.find_cause(), found.count_runs(*rates)


LINKS: tuple[Link, ...] = ("line", "statement", "test", "file", "none")


@pytest.mark.parametrize("link", LINKS)
def test_what_fails_every_time_is_never_called_flaky(link: Link) -> None:
    dice = random.Random(7)
    cause, runs = decide(1.0, 0.0, dice, link=link)
    assert (cause, runs <= 3) == ("change", link in {"line", "statement", "test"})
    assert decide(1.0, 1.0, dice, link=link)[0] == "main"
    assert decide(1.0, 0.0, dice, is_new=True, link="file") == ("change", 3)


def test_a_flake_is_seldom_blamed_on_the_change() -> None:
    dice = random.Random(7)
    for rate in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5):
        # as in a check that is red: a flake that passes in its first run here is not examined further
        verdicts = [decide(rate, rate, dice)[0] if dice.random() < rate else "quiet" for _ in range(3000)]  # fmt: skip
        assert verdicts.count("change") <= 0.015 * len(verdicts)
        assert verdicts.count("main") <= 0.075 * len(verdicts)
        near = [decide(rate, rate, dice, link="statement")[0] if dice.random() < rate else "quiet" for _ in range(3000)]  # fmt: skip
        assert near.count("change") <= 0.14 * len(
            near
        )  # a flake in the code that the change touches


def test_the_rate_is_stated_with_its_interval() -> None:
    mean, low, high = posterior("FP", "PP").estimate_rate()
    assert low < mean < high
    assert mean == pytest.approx(1 / 3)
    assert posterior("FP", "PPPPP").estimate_rate("head")[0] == pytest.approx(1 / 2)


@pytest.mark.parametrize(
    ("output", "name", "is_named"),
    [
        ('File "/usr/lib/python3.11/site-packages/six.py", line 3, in moves', "six", True),
        ("ImportError: cannot import name 'moves' from 'six'", "six", True),
        ("AttributeError: module six.moves has no attribute 'x'", "six", True),
        ("needs six>=1.16, found six 1.15.0", "six", True),
        ("E   from typing_extensions import Self", "typing-extensions", True),
        ("node_modules/@types/node/fs.d.ts(3,1): error", "@types/node", True),
        ("assert 5 == 6, six of the rows were expected", "six", False),
        ("tests/test_sixes.py::test_sixth FAILED", "six", False),
        ("the attributes of the attrs-like class", "attrs", False),
        ("three rows from six were lost", "six", False),
        ("click the button", "click", False),
        ("AssertionError: {'name': 'click'} != {}", "click", False),
        ("KeyError: 'redis'", "redis", False),
        ("AttributeError: module 'redis' has no attribute 'Redis'", "redis", True),
        ("ModuleNotFoundError: No module named 'six.moves'", "six", True),
        ('File "/venv/lib/python3.11/site-packages/yaml/loader.py", line 3', "PyYAML", True),
        ("the file config.yaml names yaml.", "PyYAML", False),
        ("fatal: git 2.39 said github.com is gone", "PyGithub", False),
    ],
)
def test_a_package_is_named_only_where_the_output_means_it(
    output: str, name: str, is_named: bool
) -> None:
    assert names_package(output, name) is is_named


@pytest.mark.parametrize(
    ("name", "heard", "outcome"),
    [
        ("tests/test_a.py::test_x", {"tests/test_a.py::test_x": "passed"}, "pass"),
        ("tests/test_a.py::test_x", {"tests/test_a.py::test_x": "skipped"}, None),
        ("tests/test_a.py::test_y", {"tests/test_a.py::test_x": "passed"}, None),
        ("tests/conftest.py", {"tests/test_a.py::test_x": "passed"}, "pass"),
        ("tests/test_a.py", {"tests/test_a.py::test_x": "passed"}, "pass"),
        ("tests.test_a", {"tests.test_a.A.test_x": "passed"}, "pass"),
        ("tests.test_a.A.test_y", {"tests.test_a.A.test_x": "passed"}, None),
        ("tests.test_a.A.test_y", {}, "pass"),
    ],
)
def test_a_green_run_tells_of_a_test_what_it_heard_and_of_a_file_that_it_could_be_read(
    name: str, heard: dict[str, str], outcome: str | None
) -> None:
    green = RunResult("exit", 0, "", "", truncated=False, seconds=1.0)
    assert find_test_outcome(name, CommandRun(green, (), heard)) == outcome


def test_the_package_that_the_output_means_is_tried_first() -> None:
    output = "tests/test_click.py: 3 clicks\n  File site-packages/yaml/loader.py\n"
    tried: list[Trial] = []

    def run(_place: str, trial: Trial) -> SimpleNamespace:
        tried.append(trial)
        return SimpleNamespace(is_green=True)

    case: Any = SimpleNamespace(
        _runs=[SimpleNamespace(run=SimpleNamespace(output=output))],
        _trial=Trial(("pytest",)),
        _stop=SimpleNamespace(left=60),
        _run_and_record=run,
    )
    moved = [BlamedPackage("click", "7.0", "8.0"), BlamedPackage("PyYAML", "5.1", "6.0")]
    assert Investigation._find_package(case, moved) == moved[1]
    assert len(tried) == 1
