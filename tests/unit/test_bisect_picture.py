"""The picture of a bisection on a history with merges."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regreen.bisect.commit_graph import BEFORE_RANGE, CommitGraph
from regreen.bisect.posterior import CulpritPosterior
from regreen.bisect.report import render_headline, render_plot
from regreen.bisect.result import (
    Bisection,
    BlamedCommit,
    BlamedDependency,
    FailureRates,
    Observation,
    RangePoint,
    SearchedRange,
)
from regreen.bot.messages import bisection_body
from tests.unit.test_bisect_search import histories

_GREEN, _RED = "#81c784", "#e57373"


@given(histories(), st.lists(st.tuples(st.integers(-1, 11), st.booleans()), max_size=8))
def test_a_commit_is_as_likely_broken_as_what_it_contains_is_to_blame(
    history: CommitGraph, runs: list[tuple[int, bool]]
) -> None:
    belief = CulpritPosterior(history)
    for at, failed in runs:
        belief.observe_outcome(min(at, len(history) - 1), failed=failed)
    blamed = belief.commit_probabilities()
    for at in range(len(history)):
        mine = sum(mass for one, mass in enumerate(blamed) if history.contains[at] >> one & 1)
        assert abs(belief.containment_probability(at) - belief.before - mine) < 1e-9
    assert belief.containment_probability(BEFORE_RANGE) == belief.before


def make_bisection(points: Sequence[tuple[float, float, tuple[int, ...]]]) -> Bisection:
    """A bisection whose posterior is this: probability, share of being broken, parents."""
    posterior = tuple(RangePoint(f"{at:040x}", *point) for at, point in enumerate(points))
    runs = (Observation(posterior[-1].sha, "fail", None, 0.1, "exit 1"),)
    searched = SearchedRange("f" * 40, posterior[-1].sha, len(points), sum(len(p[2]) > 1 for p in points))  # fmt: skip
    rates = FailureRates((1.0, 0.9, 1.0), (0.0, 0.0, 0.1))
    return Bisection("found", None, 1.0, (), None, None, 1, 0, 1, (), rates, searched, runs, posterior, 1.0)  # fmt: skip


# 0 - 1 - 2 - 5 (merge), beside them 3 - 4 from 0; commit 1 broke it, so 3 and 4 work although they are listed later
_SIDE = [(0.0, 0.0, (-1,)), (1.0, 1.0, (0,)), (0.0, 1.0, (1,)), (0.0, 0.0, (0,)), (0.0, 0.0, (3,)), (0.0, 1.0, (2, 4))]  # fmt: skip


def test_a_branch_beside_the_culprit_is_green_although_it_is_listed_after_it() -> None:
    drawn = render_plot(make_bisection(_SIDE), "it broke: here")
    expected = [_RED if broken else _GREEN for _, broken, _ in _SIDE]
    assert re.findall(r'height="12" fill="(#\w+)"', drawn) == expected, "the strip"
    assert re.findall(r'r="5" fill="(#\w+)"', drawn) == expected, "the commits"


def test_history_is_drawn_on_lines_that_part_and_meet() -> None:
    drawn = render_plot(make_bisection(_SIDE), "it broke: here")
    marks = [int(y) for y in re.findall(r'cy="(\d+)" r="5"', drawn)]
    trunk, side = marks[0], marks[3]
    assert trunk < side, "the branch is drawn below the line it left"
    assert marks == [trunk, trunk, trunk, side, side, trunk]
    edges = re.findall(r'<path d="M[\d.]+ (\d+) .* (\d+)" fill="none"', drawn)
    assert sorted(edges) == sorted((str(a), str(b)) for a, b in [(trunk, trunk)] * 4 + [(trunk, side), (side, side), (side, trunk)])  # fmt: skip


def test_many_branches_side_by_side_stay_inside_the_picture() -> None:
    many = [(0.0, 0.0, (-1,)) for _ in range(12)] + [(1.0, 1.0, tuple(range(12)))]
    drawn = render_plot(make_bisection(many), "it broke: here")
    height = int(re.findall(r'viewBox="0 0 860 (\d+)"', drawn)[0])
    marks = [int(y) for y in re.findall(r'cy="(\d+)" r="5"', drawn)]
    assert len(marks) == 5, "the likeliest one and its neighbours"
    assert max(marks) < height - 60, "names and the legend stand below"


def test_a_history_without_merges_has_no_lines() -> None:
    straight = [(0.0, 0.0, (-1,)), (1.0, 1.0, (0,)), (0.0, 1.0, (1,))]
    assert 'r="5"' not in render_plot(make_bisection(straight), "it broke: here")


@pytest.mark.parametrize(("guilty", "option"), [(1, ""), (5, "-m 1 ")])
def test_the_command_that_reverts_a_merge_names_the_side_that_stays(
    guilty: int, option: str
) -> None:
    found = make_bisection(_SIDE)
    sha = found.posterior[guilty].sha
    blamed = replace(
        found, outcome="found", culprit=BlamedCommit(sha, "S", "A", "2026-01-02T03:04:05+02:00")
    )
    body = bisection_body(blamed)
    assert f"`git revert {option}{sha[:12]}`" in body
    assert f"- commit {sha} by A, 2026-01-02 01:04 UTC" in body


def test_a_run_without_a_rejected_suspect_is_not_shown_as_one_without_the_culprit() -> None:
    found = make_bisection(_SIDE)
    culprit, rejected = f"{1:040x}", f"{2:040x}"
    run = Observation("d" * 40, "pass", None, 0.1, "exit 0", part="revert", reverted=culprit)
    runs = (run, replace(run, part="suspect", reverted=rejected))
    blamed = BlamedCommit(culprit, "S", "A", "2026-01-02T03:04:05+02:00")
    body = bisection_body(replace(found, culprit=blamed, later_runs=runs))
    assert "3 runs: 1 to search, 1 with the culprit reverted, 1 with an earlier suspect" in body
    rows = [row.split(" | ")[:2] for row in body.split("\n") if row.startswith("| with ")]
    bad = found.range.bad[:12]
    assert rows == [
        ["| with the culprit reverted", f"`{bad}` with `{culprit[:12]}` reverted"],
        ["| with an earlier suspect reverted", f"`{bad}` with `{rejected[:12]}` reverted"],
    ]
    last = replace(run, reverted=found.range.bad)
    body = bisection_body(replace(found, culprit=blamed, later_runs=(last,)))
    assert f"| with the culprit reverted | `{bad}` with its change reverted |" in body


def test_a_package_that_broke_it_stands_in_the_first_line_and_its_runs_are_counted() -> None:
    sha = f"{1:040x}"
    extra = Observation(sha, "pass", None, 0.1, "exit 0", part="package")
    known = Observation(sha, "fail", None, 0.1, "exit 1", reused=True)
    found = make_bisection(_SIDE)
    body = bisection_body(
        replace(
            found,
            culprit=BlamedCommit(sha, "Upgrade", "Ann", "2026-10-01T09:00:00+00:00"),
            dependency=BlamedDependency("requirements.txt", "six", "1.0", "2.0", 0.99, 1),
            observations=(known, *found.observations),
            later_runs=(extra,),
        )
    )
    assert body.startswith(
        f"**six 1.0 -\\> 2.0, in {sha[:12]} broke it (likely, \\>99.9%): Upgrade**"
    )
    counted = "2 runs: 1 to search, 1 with single packages (1 more run known before)"
    assert f"- {counted}\n- searched 6 commits, " in body
    assert f"<summary>{counted}</summary>" in body
    assert "\n- not tested: 4 of 6 commits, because the runs of the others suffice\n" in body
    skipped = replace(found, command="python -m `x`", signature="t.py::a: 1 == 2 | t.py::b: 3 == 4")
    culprit = BlamedCommit(sha, "Upgrade", "Ann", "2026-10-01T09:00:00+00:00")
    skipped = replace(skipped, culprit=culprit, untestable=("d" * 40,))
    body_named = bisection_body(skipped)
    assert body_named.startswith(f"**`` python -m `x` `` fails since {sha[:12]} (likely, ")
    assert "\n- fails with: `t.py::a: 1 == 2`\n- fails with: `t.py::b: 3 == 4`\n" in body_named
    assert "; 1 commit could not be tested\n" in body_named
    ran = {run.sha for run in found.observations}
    tested = tuple(one for one in found.posterior if one.sha in ran)
    whole = bisection_body(replace(skipped, untestable=(), posterior=tested))
    assert "not tested" not in whole, "nothing is left out"
    assert [row.split(" | ")[0] for row in body.split("\n") if row.endswith("| 0.1 |")] == [
        "| known before",
        "| to search",
        "| with single packages",
    ]


def test_a_bisection_that_had_no_time_for_a_run_does_not_say_that_the_command_passes() -> None:
    found = replace(make_bisection(_SIDE), outcome="not_reproduced", observations=())
    assert render_headline(found) == "the time was over before the command had run once"
    seen = replace(found, observations=make_bisection(_SIDE).observations)
    assert "did not fail where it should" in render_headline(seen)
    good, bad = (
        Observation(sha, "pass", None, 0.1, "exit 0") for sha in ("a" * 40, found.range.bad)
    )
    assert "; it passes in 2 runs there." in render_headline(
        replace(found, observations=(bad, good, bad))
    )
