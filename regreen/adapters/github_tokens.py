"""Installation tokens: for one repository and the least that a job needs, asked for once an hour."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from github import Auth

from regreen.adapters.github_wire import Wire
from regreen.forge import NotAllowed, Refused, Scope
from regreen.ports import Clock


@dataclass(frozen=True, slots=True)
class _Kept:
    auth: Auth.Token
    expires: datetime


class Tokens:
    """Installation tokens for one repository and scope each, kept until shortly before they expire."""

    _EARLY = timedelta(minutes=5)

    def __init__(self, app: Wire, clock: Clock) -> None:
        self._app = app
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[tuple[int, str, tuple[tuple[str, str], ...]], _Kept] = {}

    def token(self, installation: int, repo: str, scope: Scope) -> Auth.Token:
        """A token that reaches one repository and may do no more than `scope`.

        Raises:
            NotAllowed: the installation has not granted it.
        """
        key = (installation, repo, tuple(sorted(scope.items())))
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or kept.expires - self._EARLY <= self._clock.now():
                self._drop(lambda old: old.expires <= self._clock.now())
                kept = self._kept[key] = self._ask(installation, repo, scope)
            return kept.auth

    def forget(self, auth: Auth.Auth) -> None:
        """A token that GitHub does not take any more: the next one is asked for anew."""
        with self._lock:
            self._drop(lambda kept: kept.auth is auth)

    def _drop(self, which: Callable[[_Kept], bool]) -> None:
        for key in [key for key, kept in self._kept.items() if which(kept)]:
            del self._kept[key]

    def _ask(self, installation: int, repo: str, scope: Scope) -> _Kept:
        body = {"repositories": [repo.partition("/")[2]], "permissions": dict(scope)}
        try:
            answer = self._app.post(f"/app/installations/{installation}/access_tokens", body)
        except Refused as error:
            granted = self._granted(installation)
            missing = [f"{k}: {v}" for k, v in scope.items() if not _covers(granted.get(k), v)]
            if not missing:
                raise
            msg = f"the App's installation lacks {', '.join(missing)}; an owner must accept it"
            raise NotAllowed(msg) from error
        expires = datetime.fromisoformat(str(answer["expires_at"]))
        return _Kept(Auth.Token(answer["token"]), expires)

    def _granted(self, installation: int) -> Mapping[str, str]:
        granted = self._app.get(f"/app/installations/{installation}")["permissions"]
        return granted if isinstance(granted, dict) else {}


def _covers(granted: str | None, wanted: str) -> bool:
    order = ("read", "write", "admin")
    return granted in order and order.index(granted) >= order.index(wanted)
