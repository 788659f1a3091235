"""Trying Regreen without its being seen: everything is worked out, nothing is written to GitHub."""

from __future__ import annotations

import pytest
from regreen_playground.world import Fault

from regreen.bot.observe import READS, WithheldWrites
from regreen.domain.github import GitHub
from regreen.domain.state_records import UnclaimedBranch
from tests.stories.story import DASHBOARD_TOKEN, REPO, Story, shown_page
from tests.stories.test_bisections import _SCHEDULE, _history, _night
from tests.stories.test_fixes import _red, needs_sandbox
from tests.stories.test_reviews import FAULT


def _writes(story: Story) -> list[str]:
    """Everything that stands on GitHub with Regreen's name, and its branches."""
    refs = [r for r in story.state.repository(REPO).git.refs("refs/heads/") if "/regreen/" in r]
    said = [text for one in story.pulls for text in (*one.comments, *one.reviews, *one.checks)]
    return [*refs, *said, *(issue.title for issue in story.issues if issue.raw.user.type == "Bot")]


def _page(story: Story, kind: str) -> str:
    (job,) = [j for j in story.regreen.store.jobs(states=("done",)) if j.kind == kind]
    head = {"Authorization": f"Bearer {DASHBOARD_TOKEN}"}
    return story.regreen.wsgi.test_client().get(f"/jobs/{job.id}", headers=head).text


def _shows_that_it_observes(story: Story) -> bool:
    """Whether the first page says so beside the repository, and the repository's page on top: both or none."""
    (said,) = {
        "only observed" in shown_page(story, "/").lower(),
        "only observed" in shown_page(story, f"/repositories/{REPO}").lower(),
    }
    is_act = "Mode <code>act</code>" in shown_page(story, f"/repositories/{REPO}")
    assert is_act is not said
    return said


def test_an_observed_review_is_on_the_dashboard_alone_and_posted_once_it_may(story: Story) -> None:
    story.configures("mode: observe\n")
    pull = story.pull(FAULT)
    story.says("alice", "/review", on=pull)
    story.work()
    assert _writes(story) == []
    assert _shows_that_it_observes(story)
    story.configures("mode: act\n")
    story.pushes(pull, {"shop/more.py": "MORE = 1\n"})
    story.work()
    assert [path for path, _, _ in pull.remarks] == ["shop/run.py"]
    assert not _shows_that_it_observes(story)


def test_the_job_shows_what_it_would_have_written(story: Story) -> None:
    story.configures("mode: observe\n")
    story.pull(FAULT)
    story.work()
    page = _page(story, "review")
    assert "Not written to GitHub" in page
    assert "review of #1 at" in page
    assert "check run Regreen: neutral" in page
    assert "shop/run.py:10" in page


def test_a_failing_github_changes_no_mode(story: Story) -> None:
    story.configures("mode: observe\n")
    story.pull(FAULT)
    story.work()
    issue = story.issue("Broken")
    story.says("alice", "/config", on=issue)
    story.state.when(lambda _, path: Fault(status=500) if "/contents/" in path else None)
    story.work()
    assert issue.comments == []


@pytest.mark.parametrize(
    ("organisation", "own"),
    [
        ("mode: observe\n", "review: {max_coments: 3}\n"),
        ("", "mode: observe\nreview: {max_coments: 3}\n"),
    ],
)
def test_a_slip_elsewhere_in_the_file_lets_nothing_be_written(
    story: Story, organisation: str, own: str
) -> None:
    story.state.create("acme/.github", {".github/regreen.yml": organisation})
    story.state.install(story.app, REPO, "acme/.github")
    story.configures(own)
    story.pull(FAULT)
    story.work()
    assert _writes(story) == []
    assert _shows_that_it_observes(story)


@pytest.mark.parametrize(
    ("valid", "origin"),
    [("review: {max_comments: 3}\n", "the last valid file"), ("", "the defaults")],
)
def test_a_broken_file_that_no_longer_asks_to_observe_lets_regreen_write_again(
    story: Story, valid: str, origin: str
) -> None:
    if valid:
        story.configures(valid)
        story.work()
    issue = story.issue("How is it configured?")
    for asked, is_observed in (("mode: observe\n", True), ("", False)):
        story.configures(f"{asked}review: {{max_coments: 3}}\n")
        story.says("alice", "/config", on=issue)
        story.work()
        assert _shows_that_it_observes(story) is is_observed
        assert bool(issue.comments) is not is_observed
    (said,) = issue.comments
    assert f"Effective configuration, from {origin}" in said
    assert "mode: act" in said
    assert f"max_comments: {3 if valid else 5}" in said


def test_a_branch_that_a_dead_job_left_stays_while_observed_and_goes_once_it_may(
    story: Story,
) -> None:
    left, store = "regreen/fix-1", story.regreen.store
    sha = story.state.commit(REPO, {"more.py": "X = 1\n"}, branch=left)
    story.work()
    (installation,) = story.state.installations
    store.save(UnclaimedBranch(REPO, left, "fix/gone", installation, sha))
    for mode, tip in (("observe", sha), ("act", None)):
        story.configures(f"mode: {mode}\n")
        story.work()
        story.passes(days=1)
        story.regreen.enqueue_due_work()
        story.work()
        assert story.state.repository(REPO).git.branch(left) == tip
        assert bool(store.find_all(UnclaimedBranch)) is (mode == "observe")


@needs_sandbox
@pytest.mark.sandbox
def test_an_observed_repair_pushes_nothing(story: Story) -> None:
    _red(story)
    story.configures("mode: observe\nreview: {enabled: false}\n")
    story.work()
    assert _writes(story) == []
    page = _page(story, "fix")
    assert "draft pull request: " in page
    assert page.index("nothing of this was written to GitHub") < page.index("would open a draft")
    listed = shown_page(story, "/jobs?kind=fix") + shown_page(story, "/fixes")
    assert listed.count("would open a draft") == 2
    assert ">fixed" not in listed + page


@pytest.mark.slow
@needs_sandbox
@pytest.mark.sandbox
def test_an_observed_schedule_says_which_issue_it_would_open(story: Story) -> None:
    story.configures(f"mode: observe\n{_SCHEDULE}")
    story.work()
    _history(story)
    _night(story)
    assert story.issues == []
    (note,) = [job.note for job in story.regreen.store.jobs(kinds=("tick",))]
    assert note.startswith("red: would open an issue, ")


def test_the_organisation_decides_where_a_repository_does_not(story: Story) -> None:
    story.state.create("acme/.github", {".github/regreen.yml": "mode: observe\n"})
    story.state.install(story.app, REPO, "acme/.github")
    story.configures("review: {max_comments: 3}\n")
    pull = story.pull(FAULT)
    story.work()
    assert _writes(story) == []
    story.configures("mode: act\n")
    story.says("alice", "/review", on=pull)
    story.work()
    assert len(pull.reviews) == 1


def test_the_operator_overrules_everybody(story: Story) -> None:
    story._settings = story._settings.model_copy(update={"observe": "other/*, ACME/*"})
    story.restart()
    story.configures("mode: act\n")
    story.pull(FAULT)
    story.work()
    assert _writes(story) == []
    assert _shows_that_it_observes(story)


def test_every_call_to_github_is_known_to_read_or_to_write() -> None:
    offered = {
        name for name in (*vars(GitHub), *GitHub.__annotations__) if not name.startswith("_")
    }
    stand_ins = {name for name in vars(WithheldWrites) if not name.startswith("_")}
    assert offered == READS | stand_ins
    assert not READS & stand_ins
