"""Webhooks: signed over the raw body, kept, redelivered; every payload as GitHub's schemas want it."""

from __future__ import annotations

import gzip
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import requests
from regreen_playground.outbox import Answer

from tests.contract.playground_hub import REPO, Hub, opened
from tests.outside import is_missing, outside, reason

SCHEMAS = "data/github/webhook-schemas-subset.json.gz"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with opened(tmp_path) as made:
        made.state.flush(Hook())
        yield made


class Hook:
    """A receiver that keeps what came."""

    def __init__(self, status: int = 202) -> None:
        self.status = status
        self.got: list[tuple[Mapping[str, str], bytes]] = []

    def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        assert url == "http://regreen/hook"
        self.got.append((headers, body))
        return Answer(self.status, {}, "noted")


def test_deliveries_are_signed_over_the_raw_body(hub: Hub) -> None:
    hook = Hook()
    hub.state.open_issue(REPO, "Broken")
    assert hub.state.flush(hook) == 1
    headers, body = hook.got[0]
    key = hub.app.secret.encode()
    expected = "sha256=" + hmac.new(key, body, hashlib.sha256).hexdigest()
    assert headers["X-Hub-Signature-256"] == expected
    assert headers["X-GitHub-Event"] == "issues"
    assert headers["X-GitHub-Hook-Installation-Target-ID"] == str(hub.app.id)


def test_a_failed_delivery_is_listed_and_redelivered_with_the_same_guid(hub: Hub) -> None:
    hub.state.open_issue(REPO, "Broken")
    hub.state.flush(Hook(503))
    listed = hub.send("GET", "/app/hook/deliveries?status=failure", hub.jwt()).json()
    assert [(one["event"], one["status_code"]) for one in listed] == [("issues", 503)]
    hub.send("POST", f"/app/hook/deliveries/{listed[0]['id']}/attempts", hub.jwt())
    hook = Hook()
    hub.state.flush(hook)
    assert hook.got[0][0]["X-GitHub-Delivery"] == listed[0]["guid"]
    newest = hub.send("GET", "/app/hook/deliveries", hub.jwt()).json()[0]
    assert (newest["redelivery"], newest["guid"]) == (True, listed[0]["guid"])


def test_a_receiver_that_is_away_is_recorded(hub: Hub) -> None:
    def away(url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        raise requests.ConnectionError

    hub.state.open_issue(REPO, "Broken")
    hub.state.flush(away)
    newest = hub.send("GET", "/app/hook/deliveries", hub.jwt()).json()[0]
    assert (newest["status_code"], newest["status"]) == (502, "failed to connect to host")


def test_an_app_hears_only_of_its_repositories(hub: Hub) -> None:
    hub.state.open_issue("acme/other", "Elsewhere")
    assert hub.state.flush(Hook()) == 0


def test_a_push_is_told_to_everybody_it_concerns(hub: Hub) -> None:
    hub.pull()
    hub.state.flush(Hook())
    hook = Hook()
    hub.state.commit(REPO, {"more.py": "more = 1\n"}, branch="change")
    hub.state.flush(hook)
    told = [(h["X-GitHub-Event"], json.loads(b).get("action")) for h, b in hook.got]
    assert told == [("push", None), ("pull_request", "synchronize"), ("check_suite", "requested")]


def everything(hub: Hub) -> None:
    """Let one of everything happen."""
    state, pull = hub.state, hub.pull()
    comment = state.comment(pull, "/review", by="alice")
    state.edit(comment, "/review full", by="alice")
    token = hub.token()
    on = {"path": "numbers.py", "line": 19, "body": "Look"}
    body = {"event": "COMMENT", "body": "Read", "comments": [on]}
    hub.repo("POST", f"/pulls/{pull.number}/reviews", token, body)
    remark = pull.threads[0].comments[0]
    state.reply(pull, remark, "Why?", by="alice")
    state.resolve(pull, remark, by="alice")
    state.review(pull, "Nice", by="acme", event="APPROVE")
    check = {"name": "Regreen", "head_sha": pull.head_sha, "conclusion": "success"}
    hub.repo("POST", "/check-runs", token, check)
    made = state.checks_on(REPO, pull.head_sha)[0]
    state.press(made, "fix", by="alice")
    state.rerequest(made, by="alice")
    state.fail_ci(REPO, pull.head_sha, job="test", steps=["Tests"], failed="Tests", log="boom")
    state.label(pull, "bug")
    state.set_draft(pull, draft=True)
    state.set_draft(pull, draft=False)
    state.queue_merge(pull)
    state.merge(pull, by="alice")
    issue = state.open_issue(REPO, "Broken", by="alice")
    state.label(issue, "bug")
    state.close(issue, by="alice")
    state.create("acme/third", {"README.md": "# third\n"})
    state.install(hub.app, "acme/third")


@pytest.mark.skipif(is_missing(SCHEMAS), reason=reason(SCHEMAS))
def test_payloads_fit_githubs_schemas(hub: Hub) -> None:
    everything(hub)
    hook = Hook()
    hub.state.flush(hook)
    wrong = {
        (headers["X-GitHub-Event"], problem)
        for headers, body in hook.got
        for problem in problems(headers["X-GitHub-Event"], json.loads(body))
    }
    assert wrong == set()
    kinds = {
        (headers["X-GitHub-Event"], json.loads(body).get("action")) for headers, body in hook.got
    }
    assert len(kinds) >= 27


def problems(event: str, payload: dict[str, Any]) -> list[str]:
    """What a payload lacks by GitHub's schema of the event."""
    from openapi_schema_validator import OAS31Validator, oas31_format_checker

    document, registry = described()
    schemas = document["events"][event]
    action = str(payload.get("action", "")).replace("_", "-")
    ref = schemas.get(action) or (schemas if "$ref" in schemas else next(iter(schemas.values())))
    validator = OAS31Validator(ref, registry=registry, format_checker=oas31_format_checker)
    found = validator.iter_errors(payload)
    return [f"{'/'.join(map(str, one.absolute_path))}: {one.message[:150]}" for one in found]


@cache
def described() -> tuple[Any, Any]:
    """GitHub's schemas, and where their references lead."""
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    document = lenient(json.loads(gzip.decompress(outside(SCHEMAS).read_bytes())))
    resource = DRAFT202012.create_resource(document)
    registry: Any = Registry()
    return document, registry.with_resource("urn:github", resource)


def lenient(node: Any) -> Any:
    """The schemas with what they mean but do not say: null in enums, branches that overlap."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str) and node["$ref"].startswith("#"):
            node["$ref"] = "urn:github" + node["$ref"]
        if isinstance(node.get("oneOf"), list):
            node["anyOf"] = node.pop("oneOf")
        for value in node.values():
            lenient(value)
    elif isinstance(node, list):
        for value in node:
            lenient(value)
    return node
