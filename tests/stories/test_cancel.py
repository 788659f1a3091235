"""Somebody cancels: what runs in the sandbox ends within three seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
import sqlalchemy as sa
from regreen_playground.world import Fault

from tests.jobs import claim, run_job
from tests.stories.story import REPO, Story
from tests.stories.test_fixes import needs_sandbox
from tests.stories.test_reviews import FAULT


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        threading.Event().wait(0.05)


@needs_sandbox
@pytest.mark.sandbox
@pytest.mark.parametrize("how", ["/cancel", "close"])
def test_a_command_in_the_sandbox_is_killed_when_nobody_wants_it(story: Story, how: str) -> None:
    story.configures("review: {enabled: false}\n")
    story.work()
    pull = story.pull()
    said = story.says("alice", '/bisect good=main test="sleep 300"', on=pull)
    story.deliver()
    store, runner = story.regreen.store, story.regreen.runner
    _run_all_but(story, "bisect")
    (job,) = store.jobs(states=("waiting",))
    running = threading.Thread(target=run_job, args=(runner, job.id))
    running.start()
    _until(lambda: _has_begun(story))
    threading.Event().wait(2.0)  # the box is open, and the command sleeps in it
    because = "Cancelled by alice with /cancel."
    if how == "close":
        because = "Cancelled: the pull request was closed."
        story.state.close(pull.raw)
    else:
        story.says("alice", how, on=pull)
    story.deliver()
    _run_all_but(story, "bisect")
    began = time.monotonic()
    runner.propagate_cancellations()  # a worker does this every second
    running.join(timeout=30)
    assert time.monotonic() - began < 3 - 1
    ended = store.job(job.id)
    assert ended is not None
    assert ended.state == "cancelled"
    assert story.reactions(said) == ["eyes"]
    assert because in pull.comments[0]


def test_a_review_that_never_ended_says_since_when_it_should_have(story: Story) -> None:
    story.work()
    pull = story.pull(FAULT)
    story.deliver()
    (job,) = story.regreen.store.jobs(states=("waiting",))
    story.state.when(lambda _, path: Fault(status=500) if path.endswith("/info/refs") else None)
    run_job(story.regreen.runner, job.id)
    assert pull.checks == {"Regreen": "in_progress"}
    now = story.clock.now()
    began, until = (f"{at:%Y-%m-%d at %H:%M} UTC" for at in (now, now + timedelta(minutes=90)))
    said = pull.check.summary or ""
    assert said.startswith(f"Began on {began}. The result should replace this text by {until}. ")
    assert (
        "Regreen is probably not running: see *While Regreen is down* in Regreen's documentation."
        in said
    )


def test_a_review_that_was_cancelled_while_its_process_was_dead_leaves_no_spinning_check(
    story: Story,
) -> None:
    story.work()
    pull = story.pull(FAULT)
    story.deliver()
    (job,) = story.regreen.store.jobs(states=("waiting",))
    claim(story.regreen.store, job.id, "a worker that died")
    story.says("alice", "/cancel", on=pull)
    story.work()
    runner = story.regreen.runner
    runner.report_stopped_jobs(runner.take_back_lost_jobs())  # a worker does this at its start
    assert pull.checks == {"Regreen": "neutral"}
    assert pull.check.title == "Not reviewed: cancelled"
    said = pull.check.summary or ""
    assert said.startswith("Cancelled by alice with /cancel. The comment `/review` starts a review")


def test_a_review_that_a_newer_push_stopped_says_so(story: Story) -> None:
    story.work()
    pull = story.pull(FAULT)
    story.deliver()
    (job,) = story.regreen.store.jobs(states=("waiting",))
    claim(story.regreen.store, job.id, "a worker that died")
    old = pull.raw.head_sha
    story.pushes(pull, {"shop/note.py": "NOTE = 1\n"})
    story.work()
    runner = story.regreen.runner
    runner.report_stopped_jobs(runner.take_back_lost_jobs())
    (check,) = story.state.checks_on(REPO, old)
    assert check.title == "Not reviewed: superseded by a newer push or request"
    assert "A newer review of this pull request replaced this one." in (check.summary or "")


@pytest.mark.parametrize("how", ["/cancel", "dashboard"])
def test_the_reply_of_a_job_that_is_cancelled_before_it_starts_says_so(
    story: Story, how: str
) -> None:
    pull = story.pull()
    story.says("alice", "/bisect", on=pull)
    story.deliver()
    _run_all_but(story, "bisect")
    assert pull.comments[-1].startswith("> `/bisect`\n\nIn progress")
    if how == "/cancel":
        story.says("alice", how, on=pull)
    else:
        (job,) = (j for j in story.regreen.store.jobs(states=("waiting",)) if j.kind == "bisect")
        story.regreen.store.cancel_jobs([job.id])
    story.work()
    runner = story.regreen.runner
    runner.report_stopped_jobs(runner.take_back_lost_jobs())  # a worker does this every second
    because = " by alice with /cancel" if how == "/cancel" else ""
    assert pull.comments[0].startswith(f"> `/bisect`\n\nCancelled{because}.")


def test_a_command_that_is_given_after_a_cancel_is_answered(story: Story) -> None:
    issue = story.issue("Broken")
    story.says("alice", "/bisect", on=issue)
    story.says("alice", "/cancel", on=issue)
    story.says("alice", "/help", on=issue)
    story.work()
    assert issue.comments[1] == "> `/cancel`\n\nStopped 1 job: the bisection."
    assert "Available commands" in issue.comments[2]
    assert {job.state for job in story.regreen.store.jobs(kinds=("bisect",))} == {"cancelled"}


def test_a_draft_that_is_ready_again_at_once_is_reviewed(story: Story) -> None:
    pull = story.pull()
    story.deliver()
    story.state.set_draft(pull.raw, draft=True)
    story.state.set_draft(pull.raw, draft=False)
    story.work()
    assert pull.checks["Regreen"] == "success"


def _has_begun(story: Story) -> bool:
    """Whether the bisection's log has its first line: the next thing is a box."""
    with story.regreen.store.engine.connect() as connection:
        return bool(connection.execute(sa.text("SELECT count(*) FROM observations")).scalar_one())


def _run_all_but(story: Story, kind: str) -> None:
    for job in story.regreen.store.jobs(states=("waiting",)):
        if job.kind != kind:
            run_job(story.regreen.runner, job.id)
