"""Every example payload GitHub publishes is understood or politely ignored; hostile shapes are refused."""

from __future__ import annotations

import contextlib
import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regreen.bot.jobs.serialization import deserialize_work, serialize_work
from regreen.domain.events import (
    Actor,
    CheckFailed,
    CommentPosted,
    PullRequestChanged,
    RepositoryRef,
)
from regreen.webhooks.parse import MalformedPayload, parse
from tests.outside import is_missing, outside, reason

_ALL = "data/github/webhook-examples-all.json.gz"
_OURS = [
    "pull_request",
    "issue_comment",
    "pull_request_review_comment",
    "pull_request_review_thread",
    "workflow_run",
    "check_run",
    "check_suite",
    "merge_group",
    "push",
    "installation",
    "installation_repositories",
    "repository",
    "ping",
]


def _repository() -> dict[str, Any]:
    return {"id": 1, "full_name": "octo/hello", "default_branch": "main"}


def _pull(**more: Any) -> dict[str, Any]:
    pull = {
        "number": 7,
        "draft": False,
        "user": {"login": "ann", "type": "User"},
        "head": {"sha": "a" * 40, "ref": "topic", "repo": {"id": 1}},
        "base": {"sha": "b" * 40, "ref": "main", "repo": {"id": 1}},
    }
    return {
        "action": "opened",
        "pull_request": pull,
        "repository": _repository(),
        "installation": {"id": 3},
        "sender": {"login": "ann", "type": "User"},
        **more,
    }


@pytest.mark.skipif(is_missing(_ALL), reason=reason(_ALL))
def test_every_published_example_is_understood_or_ignored() -> None:
    with gzip.open(outside(_ALL)) as file:
        examples: dict[str, list[Any]] = json.load(file)
    assert sum(len(payloads) for payloads in examples.values()) == 329
    understood = 0
    for name, payloads in examples.items():
        for payload in payloads:
            event = parse(name, payload)
            if event is not None:
                understood += 1
                assert deserialize_work(serialize_work(event)) == event
    assert understood >= 50


def test_an_opened_pull_request() -> None:
    assert parse("pull_request", _pull()) == PullRequestChanged(
        where=RepositoryRef("octo/hello", 1, 3, "main"),
        actor=Actor("ann", is_bot=False),
        number=7,
        change="opened",
        head_sha="a" * 40,
        head_ref="topic",
        base_ref="main",
        author=Actor("ann", is_bot=False),
        draft=False,
        fork=False,
    )


def test_a_head_repository_that_is_gone_counts_as_a_fork() -> None:
    payload = _pull()
    payload["pull_request"]["head"]["repo"] = None
    event = parse("pull_request", payload)
    assert isinstance(event, PullRequestChanged)
    assert event.fork


def test_a_run_of_a_fork_that_is_gone_is_a_forks() -> None:
    run = {"id": 9, "name": "CI", "head_sha": "c" * 40, "head_branch": "main"}
    base = {"repository": _repository(), "sender": {"login": "ann", "type": "User"}}
    for head, fork in ((None, True), ({"id": 2}, True), ({"id": 1}, False)):
        told = {**run, "conclusion": "failure", "head_repository": head}
        event = parse("workflow_run", {"action": "completed", "workflow_run": told, **base})
        assert isinstance(event, CheckFailed)
        assert event.fork is fork


def test_labels_and_other_actions_are_ignored() -> None:
    assert parse("pull_request", _pull(action="labeled")) is None
    assert parse("pull_request", _pull(action="invented_tomorrow")) is None
    assert parse("star", {"action": "created"}) is None


def test_a_comment_of_a_deleted_account_comes_from_ghost() -> None:
    event = parse(
        "issue_comment",
        {
            "action": "created",
            "issue": {"number": 1},
            "comment": {"id": 5, "body": None},
            "repository": _repository(),
            "sender": None,
        },
    )
    assert isinstance(event, CommentPosted)
    assert (event.actor.login, event.body, event.on_pull) == ("ghost", "", False)


def test_a_failed_job_of_actions_is_told_by_its_workflow_run() -> None:
    run = {"id": 9, "name": "CI", "head_sha": "c" * 40, "head_branch": "main"}
    base = {"repository": _repository(), "sender": {"login": "ann", "type": "User"}}
    told = {"action": "completed", "workflow_run": {**run, "conclusion": "failure"}, **base}
    event = parse("workflow_run", told)
    assert isinstance(event, CheckFailed)
    assert (event.run_id, event.attempt, event.head_branch) == (9, 1, "main")
    job = {**run, "conclusion": "failure", "app": {"slug": "github-actions"}}
    assert parse("check_run", {"action": "completed", "check_run": job, **base}) is None


@pytest.mark.parametrize(
    "payload",
    [
        [],
        None,
        "text",
        {},
        {"action": 5},
        _pull(pull_request=[]),
        _pull(repository={"id": 1, "full_name": "../../etc/passwd"}),
        _pull(repository={"id": 1, "full_name": "octo/.."}),
        _pull(repository={"id": True, "full_name": "octo/hello"}),
        _pull(installation={"id": -1}),
        _pull(installation={"id": 10**40}),
        _pull(sender={"login": {}}),
    ],
)
def test_what_github_never_sends_is_refused(payload: object) -> None:
    with pytest.raises(MalformedPayload):
        parse("pull_request", payload)


def test_a_commit_id_is_hexadecimal() -> None:
    payload = _pull()
    payload["pull_request"]["head"]["sha"] = "--upload-pack=evil"
    with pytest.raises(MalformedPayload):
        parse("pull_request", payload)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
_KEYS = st.sampled_from(
    [
        "action",
        "pull_request",
        "repository",
        "comment",
        "issue",
        "check_run",
        "workflow_run",
        "installation",
        "sender",
        "ref",
        "after",
        "thread",
        "changes",
        "merge_group",
    ]
)


@given(
    st.sampled_from(_OURS),
    st.dictionaries(_KEYS, _JSON, max_size=8),
    st.sampled_from(["opened", "created", "completed", "edited", "resolved", "renamed"]),
)
def test_no_shape_of_json_gets_further_than_malformed(
    name: str, payload: dict[str, Any], action: str
) -> None:
    with contextlib.suppress(MalformedPayload):
        parse(name, {"action": action, **payload})


def test_what_no_database_takes_is_left_out_at_the_door() -> None:
    """JSON can spell a NUL, half a surrogate pair, and numbers and names that fit no column."""
    payload = _pull()
    payload["pull_request"]["head"]["ref"] = "to\u0000pic\ud800"
    event = parse("pull_request", payload)
    assert isinstance(event, PullRequestChanged)
    assert event.head_ref == "topic?"
    event.head_ref.encode()
    payload["pull_request"]["number"] = 2**40
    with pytest.raises(MalformedPayload, match="number"):
        parse("pull_request", payload)
    payload["pull_request"]["number"] = 7
    payload["repository"]["full_name"] = f"octo/{'x' * 300}"
    with pytest.raises(MalformedPayload, match="OWNER/NAME"):
        parse("pull_request", payload)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(data=st.data())
def test_an_ordinary_payload_with_one_thing_replaced_never_breaks_the_door(
    data: st.DataObject,
) -> None:
    """Whatever stands in one place of a payload, it is an event, none of ours, or malformed."""
    payload = _pull()
    place: Any = payload
    while True:
        key = data.draw(st.sampled_from(sorted(place)))
        if not isinstance(place[key], dict) or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(_JSON)
    with contextlib.suppress(MalformedPayload):
        event = parse("pull_request", payload)
        if event is not None:
            assert deserialize_work(serialize_work(event)) == event
            serialize_work(event).encode()
