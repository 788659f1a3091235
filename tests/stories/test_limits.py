"""GitHub has had enough for a while, or takes a token no more: work waits, and is done when it may be."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from regreen.playground.world import Fault
from tests.stories.story import Story

_TRIES = 7  # more than a job has when something is broken
_TOO_MANY = "You have exceeded a secondary rate limit."
_NONE_LEFT = "API rate limit exceeded for installation ID 1."


def _for_a_while(fault: Fault, times: int = _TRIES) -> Callable[[str, str], Fault | None]:
    """The next exchanges about repositories end in `fault`."""
    left = [times]

    def answer(method: str, path: str) -> Fault | None:
        if "/repos/" not in path or not left[0]:
            return None
        left[0] -= 1
        return fault

    return answer


def _none_left(seconds: int) -> dict[str, str]:
    return {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + seconds)}


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=403, message=_NONE_LEFT, headers=_none_left(3000)),
        Fault(status=429, message=_TOO_MANY, headers={"Retry-After": "600"}),
        Fault(status=403, message=_TOO_MANY, headers={"Retry-After": "600"}),
        Fault(status=403, message=_TOO_MANY),
        Fault(status=429, message="Whoa there!"),
    ],
    ids=["none left", "429 with time", "403 with time", "403 without", "429 without"],
)
def test_a_limit_that_lasts_longer_than_five_tries_costs_no_job(story: Story, fault: Fault) -> None:
    story.work()
    pull = story.pull()
    story.says("alice", "/help", on=pull)
    began = time.monotonic()
    story.state.when(_for_a_while(fault))
    story.work()
    assert time.monotonic() - began < 30, "no thread sleeps through the time"
    assert pull.checks == {"Regreen": "neutral"}
    assert len(pull.comments) == 1


def test_a_job_is_put_off_until_the_limit_is_over(story: Story) -> None:
    story.work()
    pull = story.pull()
    story.deliver()
    (job,) = story.regreen.store.jobs(states=("waiting",))
    none = Fault(status=403, message=_NONE_LEFT, headers=_none_left(3000))
    story.state.when(_for_a_while(none, times=1))
    wait = story.regreen.runner.run(job.id)
    assert wait == pytest.approx(3000, abs=10)
    put_off = story.regreen.store.job(job.id)
    assert put_off is not None
    assert (put_off.state, put_off.attempts) == ("waiting", 0)
    assert "rate limit" in put_off.note
    story.passes(hours=1)
    story.work()
    assert pull.checks == {"Regreen": "neutral"}


def test_a_token_that_was_revoked_is_replaced(story: Story) -> None:
    pull = story.pull()
    story.says("alice", "/help", on=pull)
    story.work()
    story.state.tokens.clear()
    story.says("alice", "/config", on=pull)
    story.work()
    assert len(pull.comments) == 2
