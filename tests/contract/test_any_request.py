"""Every address of the App under whatever strangers send: an answer each time, and none of them our fault."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from regreen.app.wiring import Application, build_app
from regreen.domain.settings import Settings
from tests.unit.test_dashboard import fill_with_hostile_words

_SECRET = "behind-the-door"
_TOKEN = "let me in"
_MANY = settings(
    max_examples=400,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

_WORDS = st.one_of(
    st.text(max_size=60),
    st.sampled_from(["", "..", "%00", "-1", "0", "1e9", "9" * 400, "o/r", "true", "NaN", "'--", "\ud7ff"]),
    st.text(alphabet=string.printable, max_size=300),
)  # fmt: skip
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=30))
_JSON = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
_PIECES: dict[str, list[Any]] = {
    "action": ["opened", "synchronize", "edited", "created", "completed", "rerequested", "renamed"],
    "pull_request": [{"number": 1, "head": {"sha": "a" * 40, "ref": "x", "repo": None}}],
    "repository": [{"id": 1, "full_name": "o/r"}, {"id": -1, "full_name": "../.."}],
    "sender": [{"login": "ann", "type": "User"}, None],
    "comment": [{"id": 1, "body": "/review"}, {"id": 10**30, "body": "\ud800"}],
    "issue": [{"number": 2**40}, {"number": 1}],
    "installation": [{"id": 3}],
}


class _Nowhere:
    """The App on a GitHub that is never asked."""

    slug = "regreen"


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Application]:
    set_up = Settings(
        _env_file=None,
        home=tmp_path,
        webhook_secret=SecretStr(_SECRET),
        dashboard_auth=SecretStr(_TOKEN),
        public_url="http://localhost",
    )
    made = build_app(set_up, github=_Nowhere())  # type: ignore[arg-type]
    made.wsgi.testing = True  # what is not answered is raised
    yield made
    made.close()


def _addresses(app: Application) -> list[tuple[str, str]]:
    """Every method and rule there is, so that one that comes later is in it."""
    return sorted(
        (method, rule.rule)
        for rule in app.wsgi.url_map.iter_rules()
        for method in (rule.methods or ())
    )


def _send(client: FlaskClient, method: str, rule: str, data: st.DataObject, job: str) -> int:
    name = quote(data.draw(st.one_of(st.just(job), _WORDS)).encode("utf-8", "surrogatepass"))
    address = "".join(name if part.endswith(">") else part for part in _parts(rule))
    known = ["page", "repo", "state", "kind", "q", "to", "code", "sort", "next", "form_token"]
    query = data.draw(st.dictionaries(st.sampled_from(known), _WORDS, max_size=4))
    form = data.draw(st.dictionaries(st.sampled_from(known), _WORDS, max_size=3))
    given_headers = data.draw(st.booleans())
    login = base64.b64encode(f"x:{_TOKEN}".encode()).decode()
    headers = {"Authorization": f"Basic {login}"} if given_headers else {}
    answer = client.open(
        "/" + address.lstrip("/"),
        method=method,
        query_string=query,
        data=form if method == "POST" else None,
        headers=headers,
    )
    assert b"Traceback" not in answer.data
    return answer.status_code


def _parts(rule: str) -> list[str]:
    return [part for piece in rule.split("<") for part in _after(piece)]


def _after(piece: str) -> list[str]:
    head, mark, rest = piece.partition(">")
    return [head + mark, rest] if mark else [piece]


@_MANY
@given(data=st.data())
def test_no_address_ever_breaks_down(app: Application, data: st.DataObject) -> None:
    job = _filled(app)
    method, rule = data.draw(st.sampled_from(_addresses(app)))
    status = _send(app.wsgi.test_client(), method, rule, data, job)
    event(f"{status}")
    assert 200 <= status < 500


def _filled(app: Application) -> str:
    known = app.store.jobs()
    return known[0].id if known else fill_with_hostile_words(app.store)


_EVENTS = [
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
    "unheard_of",
]


@_MANY
@given(name=st.sampled_from(_EVENTS), data=st.data())
def test_no_signed_delivery_ever_breaks_the_door(
    app: Application, name: str, data: st.DataObject
) -> None:
    payload: Any = data.draw(
        st.fixed_dictionaries({}, optional={k: st.sampled_from(v) | _JSON for k, v in _PIECES.items()})
        | _JSON
    )  # fmt: skip
    body = json.dumps(payload).encode()
    digest = hmac.new(_SECRET.encode(), body, hashlib.sha256).hexdigest()
    answer = app.wsgi.test_client().post(
        "/webhooks/github",
        data=body,
        headers={
            "X-GitHub-Event": name,
            "X-GitHub-Delivery": hashlib.sha256(body).hexdigest(),
            "X-Hub-Signature-256": f"sha256={digest}",
        },
    )
    event(f"{answer.status_code}")
    assert answer.status_code in {202, 204, 400}
