"""Somebody cancels: what runs in the sandbox ends within three seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from tests.stories.story import Story
from tests.stories.test_fixes import needs_sandbox

pytestmark = [pytest.mark.sandbox, needs_sandbox]


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        threading.Event().wait(0.05)


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
    running = threading.Thread(target=runner.run, args=(job.id,))
    running.start()
    _until(lambda: bool(store.job(job.id)) and _progress(story, job.id) != "")
    threading.Event().wait(1.0)  # the box is open, and the command sleeps in it
    if how == "close":
        story.state.close(pull.raw)
    else:
        story.says("alice", how, on=pull)
    story.deliver()
    began = time.monotonic()
    _run_all_but(story, "bisect")
    runner.notice_cancelled()  # a worker does this every second
    running.join(timeout=30)
    assert time.monotonic() - began < 3 - 1
    ended = store.job(job.id)
    assert ended is not None
    assert ended.state == "cancelled"
    assert story.reactions(said) == ["eyes"]


def _progress(story: Story, job_id: str) -> str:
    job = story.regreen.store.job(job_id)
    return job.progress if job is not None else ""


def _run_all_but(story: Story, kind: str) -> None:
    for job in story.regreen.store.jobs(states=("waiting",)):
        if job.kind != kind:
            story.regreen.runner.run(job.id)
