"""What is asked for where it cannot be had: each door says so, and does nothing else."""

from __future__ import annotations

import pytest
from regreen_playground.world import Fault

from regreen.bot.open_tasks import list_open_tasks
from tests.jobs import run_job
from tests.stories.story import REPO, SeenPull, Story, shown_page
from tests.stories.test_reviews import FAULT

_COMMANDS = (
    "/review",
    "/fix",
    '/bisect test="true"',
    "/test",
    "/explain",
    "/ask why?",
    "/approve",
    "/dismiss all",
    "/cancel",
    "/retry",
    "/config",
)


def _kinds(story: Story) -> set[str]:
    return {job.kind for job in story.regreen.store.jobs()}


def _remark(pull: SeenPull) -> tuple[list[str], int]:
    """What people read in the first thread, and how many comments there are under the pull request itself."""
    return [one.body for one in pull.raw.threads[0].comments], len(pull.comments)


@pytest.mark.parametrize("command", _COMMANDS)
def test_a_stranger_gets_one_sentence_for_every_command(story: Story, command: str) -> None:
    issue = story.issue("Broken")
    said = story.says("mallory", command, on=issue)
    story.work()
    assert issue.comments == [
        f"> `{command}`\n\n@mallory, only people with write access may do that."
    ]
    assert story.reactions(said) == []
    assert _kinds(story) <= {"comment", "care"}


def test_who_may_read_and_is_let_in_still_cannot_approve(story: Story) -> None:
    story.configures("commands: {allow: read}\n")
    story.work()
    pull = story.pull()
    story.says("mallory", "/approve", on=pull)
    story.work()
    assert "may do that." in pull.comments[-1]


def test_a_command_in_a_thread_is_answered_in_the_thread(story: Story) -> None:
    pull = story.pull(FAULT)
    story.work()
    before = _remark(pull)
    story.state.reply(pull.raw, pull.raw.threads[0].comments[0], "/config", by="alice")
    story.work()
    texts, outside = _remark(pull)
    assert len(texts) == len(before[0]) + 2
    assert "min_confidence" in texts[-1]
    assert outside == before[1]


def test_a_strangers_command_in_a_thread_is_refused_there(story: Story) -> None:
    pull = story.pull(FAULT)
    story.work()
    story.state.reply(pull.raw, pull.raw.threads[0].comments[0], "/dismiss", by="mallory")
    story.work()
    texts, outside = _remark(pull)
    assert "@mallory, only people with write access may do that." in texts[-1]
    assert pull.raw.threads[0].resolved_by is None
    assert outside == 0


def test_a_cancelled_review_is_tried_again_when_asked(story: Story) -> None:
    pull = story.pull()
    story.deliver()
    store = story.regreen.store
    store.cancel_jobs([job.id for job in store.jobs(repo=REPO, number=pull.number)])
    story.work()
    assert pull.checks == {}
    story.says("alice", "/retry", on=pull)
    story.work()
    assert list(pull.checks) == ["Regreen"]
    assert pull.comments == ["> `/retry`\n\nRunning again: the review."]


def test_what_one_cancel_stopped_is_run_again_together(story: Story) -> None:
    pull = story.pull(draft=True)
    story.work()
    story.says("alice", "/why\n/prove", on=pull)
    story.says("alice", "/cancel", on=pull)
    story.work()
    story.says("alice", "/retry", on=pull)
    story.work()
    assert pull.comments[-1] == "> `/retry`\n\nRunning again: the proof, the search for a cause."
    asked = [job.kind for job in story.regreen.store.jobs(repo=REPO) if "/retry" in job.id]
    assert sorted(asked) == ["prove", "why"]


def test_there_may_be_nothing_to_retry_or_to_cancel(story: Story) -> None:
    pull = story.pull(draft=True)
    story.work()
    story.says("alice", "/retry\n/cancel", on=pull)
    story.work()
    (answer,) = pull.comments
    asked, told, *_ = answer.split("\n\n")
    assert asked == "> `/retry`"
    assert told == "No job failed or was cancelled here, so there is nothing to retry."
    assert "No job is running" in answer.splitlines()[-1]


def test_another_title_alone_is_reviewed_once_and_says_nothing_twice(story: Story) -> None:
    pull = story.pull(FAULT)
    story.work()
    before = len(pull.reviews), len(pull.raw.threads)
    pull.raw.issue.title = "Sell more"
    story.state.label(pull.raw, "later", by="alice")
    story.work()
    assert (len(pull.reviews), len(pull.raw.threads)) == before


def test_a_permission_that_was_not_granted_is_named(story: Story) -> None:
    story.work()
    (installation,) = story.state.installations.values()
    installation.permissions["checks"] = "read"
    story.pull()
    story.work()
    (review,) = [job for job in story.regreen.store.jobs() if job.kind == "review"]
    assert review.state == "failed"
    assert review.note == "the App's installation lacks checks: write; an owner must accept it"


@pytest.mark.parametrize(("text", "is_answered"), [("/config", True), ("Looks good!", False)])
def test_a_command_that_breaks_down_is_answered_and_a_remark_is_not(
    story: Story, text: str, is_answered: bool
) -> None:
    story.work()
    issue = story.issue("Broken")
    said = story.says("alice", text, on=issue)
    story.state.when(lambda _, path: Fault(status=500) if "/contents/" in path else None)
    story.work()
    told = ["gave up after 5 attempts"] if is_answered else []
    assert [one.partition("failed: ")[2][:24] for one in issue.comments] == told
    assert story.reactions(said) == ["confused"] * is_answered
    page = shown_page(story, "/")
    assert ("Answer failed: gave up after 5 attempts" in page) is is_answered
    assert ("Nothing waits for you" not in page) is is_answered


@pytest.mark.slow
def test_a_button_that_breaks_down_is_answered(story: Story) -> None:
    pull = story.pull(FAULT)
    story.work()
    story.state.press(pull.check, "bisect", by="alice")
    story.state.when(lambda _, path: Fault(status=500) if "/contents/" in path else None)
    story.work()
    (answer,) = pull.comments
    assert "failed: gave up after 5 attempts" in answer


def test_a_broken_configuration_is_shown_with_what_holds_instead(story: Story) -> None:
    story.configures("review: {max_comments: 3}\n")
    story.work()
    story.configures("review: {max_coments: 4}\n")
    story.work()
    pull = story.pull()
    story.says("alice", "/config", on=pull)
    story.work()
    assert pull.checks == {"Regreen": "neutral"}
    (answer,) = pull.comments
    assert "max_comments: 3\n" in answer
    assert "max_comments_per_push: 2 # default" in answer
    assert "max_coments" in answer
    assert "max_comments`" in answer or "max_comments'" in answer or "max_comments?" in answer


def test_a_refusal_that_github_took_late_is_still_no_failure(story: Story) -> None:
    story.configures("budget: {minutes_per_day: 0}\n")
    story.work()
    pull = story.pull(FAULT)
    story.deliver()
    (job,) = story.regreen.store.jobs(states=("waiting",))
    story.state.when(lambda _, path: Fault(status=502) if path.endswith("/check-runs") else None)
    run_job(story.regreen.runner, job.id)
    assert pull.checks == {}
    story.state.when(lambda *_: None)
    run_job(story.regreen.runner, job.id)
    assert pull.check.title == "Not reviewed: the review was not started"


def test_no_work_begins_once_the_minutes_of_the_day_are_used(story: Story) -> None:
    story.configures("budget: {minutes_per_day: 0}\n")
    story.work()
    pull = story.pull(FAULT)
    story.work()
    assert pull.checks == {"Regreen": "neutral"}
    reason = "jobs have used their 0 minutes of today (`budget.minutes_per_day` in `.github/regreen.yml`)"
    assert reason in (pull.check.summary or "")
    assert pull.comments == []
    for command in ("/fix", '/bisect test="true"', "/prove", "/why"):
        story.says("alice", command, on=pull)
        story.work()
        assert reason in pull.comments[-1], command
        assert " was not started: " in pull.comments[-1]
        assert "failed" not in pull.comments[-1]
    assert pull.check.title == "Not reviewed: the review was not started"
    (task,) = list_open_tasks(story.regreen.store, story.clock.now(), lambda _: True)
    assert (task.state, " not started: this repository's jobs" in task.text) == ("refused", True)
    assert ">refused</span>" in shown_page(story, "/")
    story.says("alice", "/help", on=pull)
    story.work()
    assert reason not in pull.comments[-1], "what takes no time is answered"
    story.configures("budget: {minutes_per_day: 5}\n")
    story.says("alice", "/review", on=pull)
    story.work()
    assert reason not in (pull.check.summary or "")
    assert pull.reviews
