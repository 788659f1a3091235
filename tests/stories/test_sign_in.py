"""Signing in with GitHub: the real client against the playground's pages and API."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
from regreen_playground import Playground, serve
from regreen_playground.state import State
from regreen_playground.things import App

from regreen.adapters.github.tokens import GitHubSignIn
from regreen.domain.errors import UserError
from tests.stories.conftest import app_key

REPO = "acme/shop"
_CALLBACK = "http://regreen/signed-in"


@dataclass
class Hub:
    playground: Playground
    app: App

    @property
    def state(self) -> State:
        return self.playground.state


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with serve(root=tmp_path, deliver=False) as playground:
        state = playground.state
        state.create(REPO, {"a.txt": "x\n"})
        state.grant("alice", REPO, "write")
        state.person("mallory")
        app, _ = state.app("Regreen", hook_url="http://regreen/webhooks/github", keys=app_key())
        state.install(app, REPO)
        yield Hub(playground, app)
        assert state.surprises == []


def _sign_in(hub: Hub, secret: str | None = None) -> GitHubSignIn:
    given = hub.app.client_secret if secret is None else secret
    return GitHubSignIn(
        hub.app.client_id, given, web_url=hub.playground.url, api_url=hub.playground.api_url
    )


def _code(people: GitHubSignIn, who: str) -> str:
    """Somebody agrees on GitHub's page; the code that their browser brings back."""
    chosen = f"{people.address(_CALLBACK, 'state')}&login={who}"
    went = requests.get(chosen, allow_redirects=False, timeout=10).headers["Location"]
    assert went.startswith(f"{_CALLBACK}?code=")
    assert went.endswith("&state=state")
    return went.partition("code=")[2].partition("&")[0]


def test_a_person_brings_the_rights_that_they_have_on_github(hub: Hub) -> None:
    hub.state.create("acme/secret", {"a.txt": "x\n"})
    hub.state.install(hub.app, "acme/secret")
    hub.state.grant("bob", "acme/secret", "read")
    hub.state.create("acme/elsewhere", {"a.txt": "x\n"})  # the App is not installed there
    hub.state.grant("bob", "acme/elsewhere", "admin")
    people = _sign_in(hub)
    alice = people.person(_code(people, "alice"), _CALLBACK)
    assert (alice.login, dict(alice.repos)) == ("alice", {REPO: "write"})
    assert people.person(_code(people, "bob"), _CALLBACK).repos == {"acme/secret": "read"}
    assert people.person(_code(people, "mallory"), _CALLBACK).repos == {}


def test_a_code_works_once_and_only_with_the_secret(hub: Hub) -> None:
    people = _sign_in(hub)
    code = _code(people, "alice")
    people.person(code, _CALLBACK)
    with pytest.raises(UserError, match="bad_verification_code"):
        people.person(code, _CALLBACK)
    guessed = _sign_in(hub, "guess")
    with pytest.raises(UserError, match="incorrect_client_credentials"):
        guessed.person(_code(guessed, "alice"), _CALLBACK)


def test_github_sends_nobody_to_an_address_that_is_not_the_apps(hub: Hub) -> None:
    asked = _sign_in(hub).address("https://evil.example/signed-in", "x")
    assert requests.get(f"{asked}&login=alice", timeout=10).status_code == 422
