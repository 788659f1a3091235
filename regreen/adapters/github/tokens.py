"""Installation tokens: for one repository and the least scope of a job, requested once an hour."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from weakref import WeakValueDictionary

from github import Auth

from regreen.adapters.github.requester import GitHubRequester
from regreen.domain.github import (
    NotAllowed,
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
