"""What arrives, arrives once; what is forged or not for us does nothing."""

from __future__ import annotations

import json
from dataclasses import replace

from regreen_playground.acts import owners
from regreen_playground.events import again
from regreen_playground.outbox import Answer

from regreen.bot.jobs.event_jobs import make_orders
from regreen.domain.events import RepositoryRef, Tick
from regreen.domain.state_records import RepositorySchedules
from tests.stories.story import REPO, Story


def test_a_forged_delivery_does_nothing(story: Story) -> None:
    story.work()
    before = len(story.regreen.store.jobs())
    door = story.regreen.wsgi.test_client()
    headers = {"X-GitHub-Event": "pull_request", "X-GitHub-Delivery": "forged"}
    headers["X-Hub-Signature-256"] = "sha256=" + "0" * 64
    answer = door.post("/webhooks/github", data=json.dumps({"action": "opened"}), headers=headers)
    assert answer.status_code == 401
    assert len(story.regreen.store.jobs()) == before


def test_a_redelivery_reviews_nothing_twice(story: Story) -> None:
    pull = story.pull()
    story.work()
    work = story.regreen.store.jobs()
    for delivery in list(story.app.deliveries):
        again(story.state, delivery)
    assert story.deliver() > 0
    repeated = [d for d in story.app.deliveries if d.redelivery]
    assert {d.response for d in repeated if d.status_code == 202} == {"duplicate\n"}
    story.work()
    assert len(story.regreen.store.jobs()) == len(work)
    assert len(story.state.checks_on(REPO, pull.raw.head_sha)) == 1


def test_a_delivery_that_came_while_we_were_down_is_asked_for_again(story: Story) -> None:
    story.work()
    story.regreen.store.engine.dispose()
    pull = story.pull()
    story.state.flush(lambda *_: _gone())
    story.work()
    assert pull.checks == {}
    story.regreen.enqueue_startup_work()
    story.work()
    assert list(pull.checks) == ["Regreen"]
    story.app.deliveries[:] = [d for d in story.app.deliveries if d.status_code < 300]


def test_what_is_refused_each_time_is_not_asked_for_for_ever(story: Story) -> None:
    story.work()
    story.pull()
    lost = [d for d in story.app.deliveries if d.status == "pending"]
    for _ in range(6):
        story.state.flush(lambda *_: Answer(400, {}, "malformed payload"))
        story.passes(hours=1)
        story.regreen.enqueue_due_work()
        story.regreen.run_due_jobs()
    for one in lost:
        assert len([d for d in story.app.deliveries if d.guid == one.guid]) == 4
    story.app.deliveries[:] = [d for d in story.app.deliveries if d.status_code < 300]


def test_a_delivery_that_thousands_came_after_is_asked_for_again(story: Story) -> None:
    story.work()
    pull = story.pull()
    story.state.flush(lambda *_: _gone())
    one = story.app.deliveries[0]
    for _ in range(3100):
        number = story.state.new_id()
        story.app.deliveries.append(replace(one, id=number, guid=f"later-{number}"))
    story.regreen.enqueue_startup_work()
    story.work()
    assert list(pull.checks) == ["Regreen"]
    story.app.deliveries[:] = [d for d in story.app.deliveries if d.status_code < 300]


def test_what_was_accepted_survives_a_restart(story: Story) -> None:
    pull = story.pull()
    story.deliver()
    story.restart()
    story.work()
    assert list(pull.checks) == ["Regreen"]


def test_an_uninstalled_repository_has_no_schedules_left(story: Story) -> None:
    story.configures(
        'bisect:\n  schedules:\n    - {name: nightly, cron: "0 3 * * *", test: "true"}\n'
    )
    story.work()
    assert len(story.regreen.store.find_all(RepositorySchedules)) == 1
    (installation,) = story.state.installations.values()
    owners.uninstall(story.state, installation)
    story.work()
    assert story.regreen.store.find_all(RepositorySchedules) == []
    story.passes(days=2)
    story.regreen.enqueue_due_work()
    story.work()
    assert story.regreen.store.jobs(kinds=("tick",)) == []


def test_a_tick_for_a_schedule_that_is_gone_ends_quietly(story: Story) -> None:
    story.work()
    installation = next(j.installation for j in story.regreen.store.jobs() if j.installation)
    story.regreen.enqueue_orders(
        make_orders(Tick(RepositoryRef(REPO, 0, installation), "gone", "x"), "t")
    )
    story.work()
    (job,) = [j for j in story.regreen.store.jobs() if j.kind == "tick"]
    assert (job.state, job.note) == ("done", "the schedule is gone")


def test_what_has_not_changed_is_not_fetched_again(story: Story) -> None:
    issue = story.issue("Broken")
    story.says("alice", "/config", on=issue)
    story.work()
    before = len(story.state.requests)
    story.says("alice", "/config", on=issue)
    story.work()
    api = [r for r in story.state.requests[before:] if "/api/v3/" in r[1]]
    reads = [status for method, _, status in api if method == "GET"]
    assert reads.count(304) >= len(reads) // 2
    assert len(issue.comments) == 2


def _gone() -> Answer:
    return Answer(502, {}, "")
