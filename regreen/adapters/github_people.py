"""Signing people in with GitHub: who they are, and which of our repositories they may read.

https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-user-access-token-for-a-github-app
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import requests
from github import Auth

from regreen import __version__
from regreen.adapters.github_wire import Wire
from regreen.errors import OutsideError, UserError
from regreen.forge import PERMISSIONS, Permission, Person

_TIMEOUT_S = 15
_MOST_INSTALLATIONS = 50
_FLAGS: tuple[tuple[str, Permission], ...] = (
    ("admin", "admin"),
    ("maintain", "maintain"),
    ("push", "write"),
    ("triage", "triage"),
    ("pull", "read"),
)


class GitHubSignIn:
    """Satisfies `forge.SignIn` with the App's client id and secret. The person's token is not kept."""

    def __init__(self, client_id: str, client_secret: str, *, web_url: str, api_url: str) -> None:
        self._id = client_id
        self._secret = client_secret
        self._web = web_url.rstrip("/")
        self._api = api_url

    def address(self, callback: str, state: str) -> str:
        """Where to send the browser."""
        query = {"client_id": self._id, "redirect_uri": callback, "state": state}
        return f"{self._web}/login/oauth/authorize?{urlencode(query)}"

    def person(self, code: str, callback: str) -> Person:
        """Trade the code for a token, and ask with it who this is and what they may read."""
        wire = Wire(self._api, lambda: Auth.Token(token))
        token = self._token(code, callback)
        login = str(wire.get("/user")["login"])
        repos: dict[str, Permission] = {}
        for number, installation in enumerate(wire.pages("/user/installations", "installations")):
            if number >= _MOST_INSTALLATIONS:
                break
            path = f"/user/installations/{int(installation['id'])}/repositories"
            for found in wire.pages(path, "repositories"):
                repos[str(found["full_name"])] = _level(found.get("permissions") or {})
        return Person(login, {name: has for name, has in repos.items() if _reads(has)})

    def _token(self, code: str, callback: str) -> str:
        asked = {
            "client_id": self._id,
            "client_secret": self._secret,
            "code": code,
            "redirect_uri": callback,
        }
        try:
            answer = requests.post(
                f"{self._web}/login/oauth/access_token",
                data=asked,
                headers={"Accept": "application/json", "User-Agent": f"regreen/{__version__}"},
                timeout=_TIMEOUT_S,
            )
            said: Any = answer.json()
        except requests.RequestException as error:
            msg = f"GitHub cannot be reached ({type(error).__name__})"
            raise OutsideError(msg) from error
        token = said.get("access_token") if isinstance(said, dict) else None
        if not token:
            # GitHub answers 200 with an `error`: the code was used, is too old, or the secret is wrong
            why = said.get("error", "no token") if isinstance(said, dict) else "no token"
            msg = f"the sign-in was refused ({str(why)[:80]}); begin again"
            raise UserError(msg)
        return str(token)


def _level(flags: dict[str, Any]) -> Permission:
    return next((level for flag, level in _FLAGS if flags.get(flag)), "none")


def _reads(level: Permission) -> bool:
    return PERMISSIONS.index(level) >= PERMISSIONS.index("read")
