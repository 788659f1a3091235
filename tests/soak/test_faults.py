"""A GitHub that fails, under the long jobs: bisections, schedules, reverts and repairs end right as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stories.test_bisections import _TEST, _history, _night
from tests.stories.test_faults import Weather
from tests.stories.test_fixes import _red, needs_sandbox

pytestmark = [pytest.mark.soak, pytest.mark.sandbox, needs_sandbox, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("seed", range(5))
def test_a_bisection_and_its_revert_are_published_once(tmp_path: Path, seed: int) -> None:
    weather = Weather(tmp_path, seed)
    story = weather.story
    story.configures("review: {enabled: false}\nbisect: {revert_pr: true}\n")
    culprit = _history(story)
    story.work()
    weather.turns_bad(0.15)
    issue = story.issue("Totals are wrong")
    said = story.says("alice", f'/bisect test="{_TEST}"', on=issue)
    weather.passes()
    (answer,) = issue.comments
    assert f"**{culprit[:12]} broke it (verified, " in answer
    (patch,) = story.pulls
    assert patch.raw.head_ref == f"regreen/revert-{culprit[:12]}"
    assert len(story.reactions(said)) == len(set(story.reactions(said)))
    weather.ends()


@pytest.mark.parametrize("seed", range(5))
def test_a_schedule_opens_one_issue(tmp_path: Path, seed: int) -> None:
    weather = Weather(tmp_path, 200 + seed)
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
    weather = Weather(tmp_path, 300 + seed)
    story = weather.story
    weather.turns_bad(0.0)
    pull = _red(story)
    weather.turns_bad(0.15)
    weather.passes()
    drafts = [p for p in story.pulls if p.raw.draft]
    assert len(drafts) == 1
    assert len(pull.comments) == 1
    weather.ends()
