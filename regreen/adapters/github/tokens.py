"""Tokens: an installation's, for one repository and the least scope of a job; and a person's, to sign in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from weakref import WeakValueDictionary

import requests
from github import Auth

from regreen import __version__
from regreen.adapters.github.requester import GitHubRequester
from regreen.domain.errors import OutsideError, UserError
from regreen.domain.github import (
    PERMISSION_LEVELS,
    NotAllowed,
    Permission,
    SignedInUser,
    TokenScope,
    ValidationFailed,
)
from regreen.domain.ports import Clock

_TokenKey = tuple[int, str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class _CachedToken:
    auth: Auth.Token
    expires: datetime


class InstallationTokens:
    """Installation tokens for one repository and scope each, cached until shortly before they expire."""

    _EARLY = timedelta(minutes=5)

    def __init__(self, app: GitHubRequester, clock: Clock) -> None:
        self._app = app
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[_TokenKey, _CachedToken] = {}
        self._asking = WeakValueDictionary[_TokenKey, threading.Lock]()

    def get_token(self, installation: int, repo: str, scope: TokenScope) -> Auth.Token:
        """A token that reaches one repository and is limited to `scope`.

        Raises:
            NotAllowed: the installation has not granted the scope.
        """
        key = (installation, repo, tuple(sorted(scope.items())))
        with self._lock:
            asking = self._asking.setdefault(key, threading.Lock())
        with asking:  # GitHub may be slow: callers that need another token do not wait for this one
            with self._lock:
                self._drop_tokens(lambda old: old.expires <= self._clock.now())
                token = self._kept.get(key)
            if token is None or token.expires - self._EARLY <= self._clock.now():
                token = self._request_token(installation, repo, scope)
                with self._lock:
                    self._kept[key] = token
            return token.auth

    def forget_token(self, auth: Auth.Auth) -> None:
        """Forget a token that GitHub rejects, so that the next call requests a new one."""
        with self._lock:
            self._drop_tokens(lambda token: token.auth is auth)

    def _drop_tokens(self, which: Callable[[_CachedToken], bool]) -> None:
        for key in [key for key, token in self._kept.items() if which(token)]:
            del self._kept[key]

    def _request_token(self, installation: int, repo: str, scope: TokenScope) -> _CachedToken:
        body = {"repositories": [repo.partition("/")[2]], "permissions": dict(scope)}
        try:
            answer = self._app.post(f"/app/installations/{installation}/access_tokens", body)
        except ValidationFailed as error:
            granted = self._granted_permissions(installation)
            missing = [
                f"{k}: {v}" for k, v in scope.items() if not _covers_permission(granted.get(k), v)
            ]
            if not missing:
                raise
            msg = f"the App's installation lacks {', '.join(missing)}; an owner must accept it"
            raise NotAllowed(msg) from error
        expires = datetime.fromisoformat(str(answer["expires_at"]))
        return _CachedToken(Auth.Token(answer["token"]), expires)

    def _granted_permissions(self, installation: int) -> Mapping[str, str]:
        granted = self._app.get(f"/app/installations/{installation}")["permissions"]
        return granted if isinstance(granted, dict) else {}


def _covers_permission(granted: str | None, wanted: str) -> bool:
    order = ("read", "write", "admin")
    return granted in order and order.index(granted) >= order.index(wanted)


# Sign-in with GitHub: the token of a person shows which of our repositories that person may read.
# https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-user-access-token-for-a-github-app


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
