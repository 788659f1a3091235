"""Stories about the double itself, told through the program."""

from __future__ import annotations

from tests.stories.story import Story


def test_a_pull_request_gets_one_check(story: Story) -> None:
    pull = story.pull()
    story.work()
    assert len(pull.checks) == 1


def test_nothing_happens_before_work_is_done(story: Story) -> None:
    pull = story.pull()
    assert pull.checks == {}
    assert pull.comments == []


def test_what_was_worked_on_is_not_worked_on_again(story: Story) -> None:
    pull = story.pull()
    story.work()
    before = len(story.state.requests)
    story.work()
    assert len(story.state.requests) == before
    assert len(pull.checks) == 1
