"""Sign-in with GitHub: the person, and which of our repositories that person may read.

https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-user-access-token-for-a-github-app
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import requests
from github import Auth

from regreen import __version__
from regreen.adapters.github.requester import GitHubRequester
from regreen.domain.errors import OutsideError, UserError
from regreen.domain.github import (
    PERMISSION_LEVELS,
    Permission,
    SignedInUser,
)

_TIMEOUT_S = 15
_MAX_INSTALLATIONS = 50
_PERMISSION_FLAGS: tuple[tuple[str, Permission], ...] = (
    ("admin", "admin"),
    ("maintain", "maintain"),
    ("push", "write"),
    ("triage", "triage"),
    ("pull", "read"),
)


class GitHubSignIn:
    """Satisfies `domain.github.SignIn` with the App's client id and secret. The person's token is not stored."""

    def __init__(self, client_id: str, client_secret: str, *, web_url: str, api_url: str) -> None:
        self._id = client_id
        self._secret = client_secret
        self._web = web_url.rstrip("/")
        self._api = api_url

    def address(self, callback: str, state: str) -> str:
        """The address for the browser."""
        query = {"client_id": self._id, "redirect_uri": callback, "state": state}
        return f"{self._web}/login/oauth/authorize?{urlencode(query)}"

    def person(self, code: str, callback: str) -> SignedInUser:
        """Exchange the code for a token, and read with it who the person is and what the person may read."""
        wire = GitHubRequester(self._api, lambda: Auth.Token(token))
        token = self._exchange_code(code, callback)
        login = str(wire.get("/user")["login"])
        repos: dict[str, Permission] = {}
        for number, installation in enumerate(
            wire.iterate_items("/user/installations", "installations")
        ):
            if number >= _MAX_INSTALLATIONS:
                break
            path = f"/user/installations/{int(installation['id'])}/repositories"
            for item in wire.iterate_items(path, "repositories"):
                repos[str(item["full_name"])] = _permission_level(item.get("permissions") or {})
        return SignedInUser(login, {name: has for name, has in repos.items() if _can_read(has)})

    def _exchange_code(self, code: str, callback: str) -> str:
        form = {
            "client_id": self._id,
            "client_secret": self._secret,
            "code": code,
            "redirect_uri": callback,
        }
        try:
            answer = requests.post(
                f"{self._web}/login/oauth/access_token",
                data=form,
                headers={"Accept": "application/json", "User-Agent": f"regreen/{__version__}"},
                timeout=_TIMEOUT_S,
            )
            reply: Any = answer.json()
        except requests.RequestException as error:
            msg = f"GitHub cannot be reached ({type(error).__name__})"
            raise OutsideError(msg) from error
        token = reply.get("access_token") if isinstance(reply, dict) else None
        if not token:
            # GitHub answers 200 with an `error`: the code was used, is too old, or the secret is wrong
            why = reply.get("error", "no token") if isinstance(reply, dict) else "no token"
            msg = f"the sign-in was refused ({str(why)[:80]}); begin again"
            raise UserError(msg)
        return str(token)


def _permission_level(flags: dict[str, Any]) -> Permission:
    return next((level for flag, level in _PERMISSION_FLAGS if flags.get(flag)), "none")


def _can_read(level: Permission) -> bool:
    return PERMISSION_LEVELS.index(level) >= PERMISSION_LEVELS.index("read")
