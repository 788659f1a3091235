"""The dashboard shows what the store holds, escaped, to those who may look."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from flask import Flask
from pydantic import SecretStr

from regreen.adapters.clock import SystemClock
from regreen.adapters.connection import engine_for
from regreen.adapters.database import Database
from regreen.bot.dashboard.html import link, tag
from regreen.bot.dashboard.pages import dashboard
from regreen.codebase.redaction import redact
from regreen.models import Cost
from regreen.records import Action, DeliveryRecord, Document, LedgerLine, Order
from regreen.settings import Settings

_NOW = datetime(2026, 1, 10, tzinfo=UTC)
_EVIL = "<script>alert(1)</script>"
_PAGES = ["/", "/reviews", "/fixes", "/bisections", "/deliveries", "/ledger", "/audit"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    database = Database(engine_for(f"sqlite:///{tmp_path / 'x.sqlite'}"), SystemClock())
    database.create()
    yield database
    database.engine.dispose()


def _app(store: Database, auth: str | None = None) -> Flask:
    app = Flask("test")
    secret = SecretStr(auth) if auth else None
    settings = Settings(_env_file=None, dashboard_auth=secret)
    app.register_blueprint(dashboard(store, settings))
    return app


def _fill(store: Database) -> None:
    order = Order(
        id=f"fix/o/r/1/{_EVIL}",
        kind="fix",
        repo=_EVIL,
        number=1,
        installation=1,
        queue="work",
        key="k",
        priority=1,
        event='{"title": "<img onerror=x>"}',
    )
    delivery = DeliveryRecord(_EVIL, _EVIL, _EVIL, "{}", _NOW)
    store.accept(delivery, [order], lambda *_: None)
    store.end(order.id, "failed", _EVIL)
    store.log(Action(_NOW, order.id, _EVIL, 1, _EVIL, _EVIL, _EVIL))
    store.charge(LedgerLine(_NOW, order.id, _EVIL, 1, _EVIL, _EVIL, Cost(0.5, 1, 2, 3, 4)))
    body: dict[str, object] = {
        "summary": _EVIL,
        "outcome": _EVIL,
        "attempts": [{"summary": _EVIL}],
        "patch": _EVIL,
        "svg": f"<svg>{_EVIL}</svg>",
    }
    for kind in ("review", "fix", "bisect"):
        store.keep(Document(kind, _EVIL, 1, "s", order.id, _NOW, body))


@pytest.mark.parametrize("page", [*_PAGES, f"/jobs/fix/o/r/1/{_EVIL}"])
def test_nothing_from_outside_becomes_markup(store: Database, page: str) -> None:
    _fill(store)
    answer = _app(store).test_client().get(page)
    assert answer.status_code == 200
    assert "<script" not in answer.text
    assert "<img onerror" not in answer.text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "script-src" not in answer.headers["Content-Security-Policy"]


def test_empty_pages_and_unknown_jobs(store: Database) -> None:
    client = _app(store).test_client()
    assert all("Nothing yet." in client.get(page).text for page in _PAGES)
    assert client.get("/jobs/none").status_code == 404


def test_without_a_token_only_this_machine_looks(store: Database) -> None:
    client = _app(store).test_client()
    assert client.get("/").status_code == 200
    far = {"REMOTE_ADDR": "203.0.113.9"}
    assert client.get("/", environ_overrides=far).status_code == 401
    assert client.get("/", headers={"X-Forwarded-For": "203.0.113.9"}).status_code == 401


def test_with_a_token_everybody_who_has_it(store: Database) -> None:
    client = _app(store, "opensesame").test_client()
    basic = base64.b64encode(b"me:opensesame").decode()
    wrong = base64.b64encode(b"me:guess").decode()
    assert client.get("/").status_code == 401
    assert client.get("/", headers={"Authorization": f"Basic {basic}"}).status_code == 200
    assert client.get("/", headers={"Authorization": f"Basic {wrong}"}).status_code == 401
    assert client.get("/", headers={"Authorization": "Bearer opensesame"}).status_code == 200


def test_links_lead_to_pages_only() -> None:
    assert link("javascript:alert(1)", "x") == "x"
    assert link("//evil.example", "x") == "x"
    assert link('/jobs/"><b>', "x") == '<a href="/jobs/&quot;&gt;&lt;b&gt;">x</a>'
    assert tag("p", None, 1, "<") == "<p>1&lt;</p>"


@pytest.mark.parametrize(
    "secret",
    [
        "ghp_" + "a1B2" * 9,
        "ghs_123456_eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiIxIn0.c2lnbmF0dXJl",
        "github_pat_" + "a1B2_" * 12,
        "sk-ant-api03-" + "x" * 40,
        "AKIA" + "A1B2" * 4,
        "xoxb-1234567890-abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-def_1",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_secrets_are_taken_out(secret: str) -> None:
    shown = redact(f"before {secret} after")
    assert secret not in shown
    assert shown.startswith("before ")
    assert shown.endswith(" after")


def test_credentials_in_addresses_and_headers() -> None:
    assert redact("https://ann:pw@host/x") == "https://[hidden]@host/x"
    assert "abc12345" not in redact("Authorization: token abc12345")
    assert redact("-----BEGIN CERTIFICATE----- x") == "-----BEGIN CERTIFICATE----- x"
    assert redact("nothing to hide: https://host/x") == "nothing to hide: https://host/x"
