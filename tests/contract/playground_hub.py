"""A playground with one repository and one App, and requests against it that are checked by GitHub's description."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
from github import Auth
from regreen_playground import Playground, serve
from regreen_playground.things import App, Installation, Pull

from tests.stories.conftest import app_key, checked, violations

REPO = "acme/lib"
NUMBERS = "".join(f"n{i} = {i}\n" for i in range(1, 41))
CHANGED = NUMBERS.replace("n20 = 20\n", "n20 = 21\nextra = 1\n").replace("n5 = 5\n", "")


class Hub:
    """The playground, and whoever talks to it."""

    def __init__(self, playground: Playground) -> None:
        self.playground = playground
        self.state = playground.state
        self.state.create(REPO, {"README.md": "# lib\n", "numbers.py": NUMBERS})
        self.state.create("acme/other", {"README.md": "# other\n"})
        self.state.grant("alice", REPO, "write")
        self.app: App
        self.app, self.key = self.state.app(
            "Regreen", hook_url="http://regreen/hook", keys=app_key()
        )
        self.installation: Installation = self.state.install(self.app, REPO)
        self._session = requests.Session()

    def close(self) -> None:
        """Hang up."""
        self._session.close()

    def pull(self, by: str = "alice") -> Pull:
        """A pull request that changes line 20, adds one after it and removes line 5."""
        self.state.commit(REPO, {"numbers.py": CHANGED}, branch="change", by=by)
        return self.state.open_pull(REPO, "change", by=by, title="Count on")

    def jwt(self) -> str:
        """The App's JWT, as PyGithub signs it."""
        return Auth.AppAuth(self.app.id, self.key).create_jwt()

    def token(self, **permissions: str) -> str:
        """A token with these permissions (all that the App has, if none are named)."""
        body: dict[str, Any] = {"repositories": ["lib"]}
        if permissions:
            body["permissions"] = permissions
        path = f"/app/installations/{self.installation.id}/access_tokens"
        answer = self.send("POST", path, self.jwt(), body)
        assert answer.status_code == 201, answer.text
        text: str = answer.json()["token"]
        return text

    def send(
        self, method: str, path: str, token: str | None = None, body: object = None, **headers: str
    ) -> requests.Response:
        """One request; redirects are not followed."""
        sent = {"Accept": "application/vnd.github+json", **headers}
        if token:
            sent["Authorization"] = f"Bearer {token}"
        url = path if path.startswith("http") else self.playground.api_url + path
        return self._session.request(
            method, url, json=body, headers=sent, allow_redirects=False, timeout=30
        )

    def repo(self, method: str, path: str, token: str, body: object = None) -> requests.Response:
        """One request about the repository."""
        return self.send(method, f"/repos/{REPO}{path}", token, body)


@contextmanager
def opened(folder: Path) -> Iterator[Hub]:
    """Serve a hub; everything said to it must fit GitHub's description, and nothing may surprise it."""
    log = folder / "violations.jsonl"
    with serve(root=folder / "github", deliver=False, wrap=checked(log)) as playground:
        hub = Hub(playground)
        yield hub
        hub.close()
    assert playground.state.surprises == []
    assert violations(log) == []
