"""A repair's draft: when it is closed as not needed, and what people made of it that stays."""

from __future__ import annotations

import pytest
from regreen_playground.acts import pulls
from regreen_playground.acts.actions import JobReport
from regreen_playground.things import Repository
from regreen_playground.world import Fault

from tests.stories.story import REPO, SeenPull, Story
from tests.stories.test_fixes import _red, needs_sandbox

pytestmark = [pytest.mark.slow, needs_sandbox, pytest.mark.sandbox]

_GREEN = (JobReport("lint", (("Lint", "success"),), b""),)
_CI = ".github/workflows/ci.yml"


def _draft(story: Story) -> tuple[SeenPull, SeenPull]:
    """A red pull request, and the draft that repairs it."""
    pull = _red(story)
    story.work()
    return pull, story.pulls[-1]


def _passes(
    story: Story,
    sha: str,
    workflow: str = _CI,
    event: str = "push",
    head: Repository | None = None,
) -> None:
    story.state.run_ci(
        REPO, sha, _GREEN, workflow=workflow, event=event, branch="change", head=head
    )
    story.work()


def _tip(story: Story) -> str | None:
    return story.state.repository(REPO).git.branch("regreen/fix-1")


def test_a_draft_is_closed_when_its_workflow_passes_at_the_branchs_head_and_not_before(
    story: Story,
) -> None:
    pull, draft = _draft(story)
    head = pull.raw.head_sha
    _passes(story, head, workflow=".github/workflows/docs.yml")
    assert draft.state == "open", "another workflow"
    _passes(story, head, head=story.state.fork(REPO, "mallory"))
    assert draft.state == "open", "a fork's run"
    _passes(story, pull.raw.base_sha)
    assert draft.state == "open", "an older commit"
    _passes(story, head, event="pull_request")
    assert draft.state == "open", "the run for the push is still red"
    failed: list[str] = []

    def closing_fails_once(method: str, path: str) -> Fault | None:
        if method != "PATCH" or "/pulls/" not in path or failed:
            return None
        failed.append(path)
        return Fault(status=502)

    story.state.when(closing_fails_once)
    _passes(story, head)
    assert failed
    assert draft.state == "closed", "a job that broke off goes on where it was"
    assert "passes again" in draft.comments[-1]
    assert len(draft.comments) == 1


def test_what_people_made_of_a_draft_stays_and_the_answer_says_so(story: Story) -> None:
    pull, draft = _draft(story)
    pulls.update(story.state, draft.raw, story.state.person("alice"), title="Drop the import")
    story.says("alice", "/fix", on=pull)
    story.work()
    assert draft.title == "Drop the import"
    assert "Its title and text were edited, so they stay as they are." in pull.comments[-1]
    assert "the command that reproduces it" not in pull.comments[-1], "her text need not have it"
    hers = story.state.commit(REPO, {"more.py": "X = 1\n"}, branch="regreen/fix-1", by="alice")
    story.says("alice", "/fix", on=pull)
    story.work()
    assert _tip(story) == hers
    assert "regreen/fix-1 has commits that Regreen did not push" in pull.comments[-1]
    _passes(story, pull.raw.head_sha)
    assert draft.state == "open"


def test_a_draft_that_is_ready_for_review_is_left_as_it_is(story: Story) -> None:
    pull, draft = _draft(story)
    before = draft.body
    story.state.set_draft(draft.raw, draft=False, by="alice")
    story.says("alice", "/fix look again", on=pull)
    story.work()
    assert draft.body == before
    assert f"#{draft.number} is no draft any more" in pull.comments[-1]
    _passes(story, pull.raw.head_sha)
    assert draft.state == "open"


def test_a_push_that_comes_between_looking_and_pushing_is_not_overwritten(story: Story) -> None:
    _red(story)
    hers: list[str] = []

    def alice_is_quicker(method: str, path: str) -> None:
        if method == "GET" and path.endswith(f"{REPO}/pulls") and not hers:
            pushed = {"more.py": "X = 1\n"}
            hers.append(story.state.commit(REPO, pushed, branch="regreen/fix-1", by="alice"))

    story.state.when(alice_is_quicker)
    story.work()
    story.passes(minutes=1)
    story.work()
    assert hers == [_tip(story)]
    assert "did not push" in story.pulls[0].comments[-1]
