"""What a test costs: builds, and commits that are likely to be untestable."""

from __future__ import annotations

from collections.abc import Callable

from regreen.bisect.session import build_cost, make_cost_function
from regreen.bisect.verdict_memory import CommitRun


def _price(testable: set[int], untestable: set[int], build: float = 0.0) -> Callable[[int], float]:
    return make_cost_function(
        tried=testable | untestable,
        testable=testable,
        untestable=untestable,
        trunk=range(101),
        build=build,
    )


def test_a_build_that_is_there_already_is_free() -> None:
    price = _price({10}, set(), build=4.0)
    assert price(10) == 1
    assert price(11) == 5


def test_between_what_can_and_what_cannot_be_tested_the_middle_comes_first() -> None:
    price = _price({0, 100}, {40, 60})
    assert price(50) > 20, "in the middle of a stretch"
    assert 1 < price(20) == price(80) == 2
    assert price(1) < price(20) < price(39)


def test_where_everything_could_be_tested_so_far_all_cost_the_same() -> None:
    price = _price({0, 99}, set())
    assert {price(at) for at in range(100)} == {1}


def test_a_build_costs_what_first_runs_took_longer() -> None:
    def run(sha: str, seconds: float) -> CommitRun:
        return CommitRun(sha, "pass", None, seconds, "")

    assert build_cost([run("a", 30), run("a", 10), run("b", 30)]) == 2
    assert build_cost([run("a", 30)]) == 0
