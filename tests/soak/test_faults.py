"""A GitHub that fails, under the long jobs: bisections, schedules, reverts and repairs end right as well.

And every kind of job under every single kind of failure.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stories.flaky import KINDS
from tests.stories.test_bisections import _TEST, _history, _night
from tests.stories.test_faults import (
    Weather,
    owners_and_upkeep,
    pushes_dismissals_and_buttons,
    reviews_and_commands,
)
from tests.stories.test_fixes import _red, needs_sandbox

pytestmark = [pytest.mark.soak, pytest.mark.sandbox, needs_sandbox, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("seed", range(5))
def test_a_bisection_and_its_revert_are_published_once(tmp_path: Path, seed: int) -> None:
    bisection(Weather(tmp_path, seed))


def bisection(weather: Weather) -> None:
    """A bisection that is asked for, and its revert."""
    story = weather.story
    story.configures("review: {enabled: false}\nbisect: {revert_pr: true}\n")
    culprit = _history(story)
    story.work()
    weather.turns_bad(0.15)
    issue = story.issue("Totals are wrong")
    said = story.says("alice", f'/bisect test="{_TEST}"', on=issue)
    weather.passes()
    (answer,) = issue.comments
    assert f"` fails since {culprit[:12]} (verified, " in answer
    (patch,) = story.pulls
    assert patch.raw.head_ref == f"regreen/revert-{culprit[:12]}"
    assert len(story.reactions(said)) == len(set(story.reactions(said)))
    weather.ends()


@pytest.mark.parametrize("seed", range(5))
def test_a_schedule_opens_one_issue(tmp_path: Path, seed: int) -> None:
    schedule(Weather(tmp_path, 200 + seed))


def schedule(weather: Weather) -> None:
    """A schedule that is red."""
    story = weather.story
    story.configures(
        "review: {enabled: false}\nbisect:\n  schedules:\n"
        f'    - {{name: nightly, cron: "0 3 * * *", branch: main, test: "{_TEST}"}}\n'
    )
    story.work()
    _history(story)
    weather.turns_bad(0.15)
    _night(story)
    weather.passes()
    (issue,) = story.issues
    assert issue.state == "open"
    weather.ends()


@pytest.mark.parametrize("seed", range(5))
def test_a_repair_opens_one_draft(tmp_path: Path, seed: int) -> None:
    repair(Weather(tmp_path, 300 + seed))


def repair(weather: Weather) -> None:
    """Red CI."""
    story = weather.story
    weather.turns_bad(0.0)
    pull = _red(story)
    weather.turns_bad(0.15)
    weather.passes()
    drafts = [p for p in story.pulls if p.raw.draft]
    assert len(drafts) == 1
    assert len(pull.comments) == 1
    weather.ends()


_SCENES = {
    "review and comment": reviews_and_commands,
    "review, button and merge queue": pushes_dismissals_and_buttons,
    "care": owners_and_upkeep,
    "fix": repair,
    "bisect": bisection,
    "tick": schedule,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scene", _SCENES)
def test_every_kind_of_job_ends_right_under_every_kind_of_failure(
    tmp_path: Path, scene: str, kind: str
) -> None:
    _SCENES[scene](Weather(tmp_path, 1000 + KINDS.index(kind), (kind,)))
