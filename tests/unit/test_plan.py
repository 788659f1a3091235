"""Which work an event asks for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from regreen.bot.jobs.engine import JOBS_PER_QUEUE
from regreen.bot.jobs.event_jobs import make_orders
from regreen.bot.jobs.serialization import deserialize_work, serialize_work
from regreen.domain.errors import UserError
from regreen.domain.events import (
    Actor,
    BisectRequest,
    CheckFailed,
    CommentPosted,
    Event,
    FixRequest,
    Maintenance,
    Pinged,
    PullRequestChanged,
    Pushed,
    RepositoryRef,
    ReviewRequest,
    Tick,
)

_PLACE = RepositoryRef("octo/hello", 1, 2)
_ANN = Actor("ann", is_bot=False)
_PULL = PullRequestChanged(
    _PLACE, _ANN, 7, "opened", "a" * 40, "topic", "main", _ANN, draft=False, fork=False
)
_COMMENT = CommentPosted(
    _PLACE,
    _ANN,
    7,
    on_pull=True,
    review=False,
    comment_id=5,
    body="/fix",
    association="",
    edited=False,
)
_RED = CheckFailed(_PLACE, _ANN, "CI", "a" * 40, "topic", 9, 1, (7,))


def test_a_push_waits_and_replaces_the_older_review() -> None:
    (order,) = make_orders(_PULL, "d1", delay=60)
    assert (order.queue, order.key, order.delay) == ("review", "octo/hello#7", 60)
    assert order.replaces == "review/octo/hello/7"
    assert order.id == "review/octo/hello/7/d1"


def test_the_same_delivery_makes_the_same_job() -> None:
    assert make_orders(_PULL, "d1") == make_orders(_PULL, "d1")
    assert make_orders(_PULL, "d1")[0].id != make_orders(_PULL, "d2")[0].id


def test_commands_go_before_pushes_before_schedules() -> None:
    comment, push, tick = (
        make_orders(work, "d")[0].priority
        for work in (_COMMENT, _PULL, Tick(_PLACE, "nightly", "2026-01-01T03:00Z"))
    )
    assert comment < push < tick


def test_a_review_somebody_asked_for_does_not_wait_and_replaces_the_same() -> None:
    (order,) = make_orders(ReviewRequest(_PLACE, 7, full=True, asked_by="ann"), "d")
    assert (order.delay, order.replaces) == (0.0, "review/octo/hello/7")


@pytest.mark.parametrize(
    "event",
    [
        Pinged("zen"),
        replace(_COMMENT, actor=Actor("some-app[bot]", is_bot=True)),
        replace(_COMMENT, body="   "),
        replace(_RED, head_branch="regreen/fix-7"),
        Pushed(_PLACE, _ANN, "topic", "a" * 40),
        Pushed(_PLACE, _ANN, "main", "0" * 40),
    ],
)
def test_what_asks_for_nothing(event: Event) -> None:
    assert make_orders(event, "d") == ()


def test_sandboxed_work_runs_one_at_a_time_for_each_repository() -> None:
    fix = make_orders(FixRequest(_PLACE, 7, on_pull=True, hint="", asked_by="ann"), "d")[0]
    search = make_orders(BisectRequest(_PLACE, 8, None, None, None, "ann"), "d")[0]
    assert fix.queue == search.queue == "work"
    assert fix.key == search.key == "octo/hello"
    assert {fix.queue, make_orders(Maintenance("prune"), "d")[0].queue} <= set(JOBS_PER_QUEUE)


def test_a_misspelt_task_of_maintenance_is_refused_and_deletes_nothing() -> None:
    with pytest.raises(UserError, match="another version"):
        deserialize_work('{"kind":"Care","task":"prunes"}')


def test_a_row_of_another_version_is_refused_in_one_sentence() -> None:
    assert deserialize_work(serialize_work(_RED)) == _RED
    for text in ('{"kind": "Gone"}', '{"kind": "Care", "other": 1}'):
        with pytest.raises(UserError, match="another version"):
            deserialize_work(text)
