"""GitHub has had enough for a while, or takes a token no more: work waits, and is done when it may be."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from regreen_playground.world import Fault

from regreen.domain.state_records import RepositorySchedules
from tests.jobs import run_job
from tests.stories.story import REPO, Story
from tests.stories.test_events import _NIGHTLY

_TRIES = 7  # more than a job has when something is broken
_TOO_MANY = "You have exceeded a secondary rate limit."
_NONE_LEFT = "API rate limit exceeded for installation ID 1."


def _for_a_while(
    fault: Fault, times: int = _TRIES, where: str = "/repos/", after: int = 0
) -> Callable[[str, str], Fault | None]:
    """So many exchanges about repositories, after so many others, end in `fault`."""
    seen = [0]

    def answer(_: str, path: str) -> Fault | None:
        seen[0] += where in path
        return fault if where in path and after < seen[0] <= after + times else None

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
    assert time.monotonic() - began < 300, "no thread sleeps through the time"
    assert pull.checks == {"Regreen": "success"}
    assert len(pull.comments) == 1


def test_a_job_is_put_off_until_the_limit_is_over(story: Story) -> None:
    story.work()
    pull = story.pull()
    story.deliver()
    (job,) = story.regreen.store.jobs(states=("waiting",))
    none = Fault(status=403, message=_NONE_LEFT, headers=_none_left(3000))
    story.state.when(_for_a_while(none, times=1))
    wait = run_job(story.regreen.runner, job.id)
    assert wait == pytest.approx(3000, abs=10)
    put_off = story.regreen.store.job(job.id)
    assert put_off is not None
    assert (put_off.state, put_off.attempts) == ("waiting", 0)
    assert "rate limit" in put_off.note
    story.passes(hours=1)
    story.work()
    assert pull.checks == {"Regreen": "success"}
    assert "Cost: no model; 0.0 s on Regreen's machine." in (pull.check.summary or "")


def test_a_token_that_was_revoked_is_replaced(story: Story) -> None:
    pull = story.pull()
    story.says("alice", "/help", on=pull)
    story.work()
    story.state.tokens.clear()
    story.says("alice", "/config", on=pull)
    story.work()
    assert len(pull.comments) == 2


def test_an_organisations_configuration_holds_though_github_fails_now_and_then(
    story: Story,
) -> None:
    text = {".github/regreen.yml": "review: {enabled: false}\n"}
    story.state.create("acme/.github", text)
    story.state.install(story.app, REPO, "acme/.github")
    story.work()
    pull = story.pull()
    story.state.when(_for_a_while(Fault(status=500), times=6, where="/repos/acme/.github/"))
    story.work()
    assert pull.checks == {}
    assert "reviews are switched off" in {job.note for job in story.regreen.store.jobs()}


def test_a_limit_in_the_middle_of_an_installation_loses_none_of_its_schedules(story: Story) -> None:
    names = [f"acme/part-{number}" for number in range(12)]
    for name in names:
        story.state.create(name, {".github/regreen.yml": _NIGHTLY})
    story.work()
    none = Fault(status=403, message=_NONE_LEFT, headers=_none_left(3000))
    story.state.when(_for_a_while(none, after=10))
    story.state.install(story.app, REPO, *names)
    story.work()
    assert {s.repo for s in story.regreen.store.find_all(RepositorySchedules)} == set(names)


def test_an_organisation_without_a_configuration_is_asked_for_it_now_and_then(story: Story) -> None:
    story.work()
    pull = story.pull()
    asked: list[str] = []

    def count(_: str, path: str) -> Fault | None:
        asked.extend([path] if path.endswith("/access_tokens") else [])
        return None

    story.says("alice", "/config", on=pull)
    story.work()
    story.state.when(count)
    for _ in range(3):
        story.says("alice", "/config", on=pull)
        story.work()
    assert asked == []
    story.passes(minutes=6)
    story.says("alice", "/config", on=pull)
    story.work()
    assert len(asked) == 1
