"""The door answers as docs/interface.md says, and never says 202 to what could be lost."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from regreen.domain.errors import OutsideError
from regreen.webhooks import receive
from regreen.webhooks.receive import WebhookDelivery, is_signed, make_blueprint

_NEW = "new"
_PING = {"zen": "Keep it logically awesome.", "hook_id": 1}


class _Shelf:
    """Keeps deliveries by id."""

    def __init__(self) -> None:
        self.kept: dict[str, WebhookDelivery] = {}
        self.broken = False

    def accept(self, delivery: WebhookDelivery) -> bool:
        if self.broken:
            raise OutsideError("disk full")
        is_new = delivery.id not in self.kept
        self.kept[delivery.id] = delivery
        return is_new


Send = Callable[..., TestResponse]


@pytest.fixture
def shelf() -> _Shelf:
    return _Shelf()


@pytest.fixture
def send(shelf: _Shelf) -> Send:
    app = Flask("test")
    app.register_blueprint(make_blueprint(secrets=["new", "old"], accept=shelf.accept))

    def post(
        payload: object = _PING, *, secret: str = _NEW, body: bytes | None = None, **headers: str
    ) -> TestResponse:
        raw = body if body is not None else json.dumps(payload).encode()
        digest = hmac.new(secret.encode(), raw, hashlib.sha256).hexdigest()
        sent = {
            "X-Hub-Signature-256": f"sha256={digest}",
            "X-GitHub-Delivery": "8a1b-1",
            "X-GitHub-Event": "ping",
            **{k.replace("_", "-"): v for k, v in headers.items()},
        }
        return app.test_client().post("/webhooks/github", data=raw, headers=sent)

    return post


def test_a_signed_delivery_is_accepted_once(send: Send, shelf: _Shelf) -> None:
    assert (send().status_code, send().status_code) == (202, 202)
    assert len(shelf.kept) == 1


def test_the_old_secret_still_opens_while_rotating(send: Send) -> None:
    assert send(secret="old").status_code == 202


def test_a_wrong_or_missing_signature_is_401(send: Send, shelf: _Shelf) -> None:
    assert send(secret="guess").status_code == 401
    assert send(X_Hub_Signature_256="").status_code == 401
    assert send(X_Hub_Signature_256="sha256=é").status_code == 401
    assert not shelf.kept


def test_without_a_secret_nothing_is_signed() -> None:
    assert not is_signed(b"x", "sha256=", [])


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[1, 2]", b"[" * 100_000, b'"x"'])
def test_malformed_json_is_400(send: Send, body: bytes) -> None:
    assert send(body=body).status_code == 400


@pytest.mark.parametrize("delivery", ["", "x" * 65, "a/b", "a b", "../x"])
def test_a_malformed_delivery_id_is_400(send: Send, delivery: str) -> None:
    assert send(X_GitHub_Delivery=delivery).status_code == 400


def test_an_event_that_is_not_for_us_is_204(send: Send) -> None:
    assert send({"action": "created"}, X_GitHub_Event="star").status_code == 204


def test_more_than_25_mib_is_413(send: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receive, "MAX_BODY_BYTES", 1000)
    assert send(body=b"x" * 1001).status_code == 413


def test_what_cannot_be_kept_is_503_with_a_time(send: Send, shelf: _Shelf) -> None:
    shelf.broken = True
    answer = send()
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "30"


def test_only_post_is_served(send: Send) -> None:
    app = Flask("test")
    app.register_blueprint(make_blueprint(secrets=["s"], accept=lambda _: True))
    assert app.test_client().get("/webhooks/github").status_code == 405
