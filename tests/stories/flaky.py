"""A GitHub that fails in every way it can: before a write took effect, after it did, in the middle of an answer, late."""

from __future__ import annotations

import random
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from regreen_playground.application import is_api
from regreen_playground.loopback import Wsgi

Headers = list[tuple[str, str]]
_JSON: Headers = [("Content-Type", "application/json")]
_SECONDARY = b'{"message": "You have exceeded a secondary rate limit. Please wait."}'
_PRIMARY = b'{"message": "API rate limit exceeded for installation ID 1."}'
_ERROR = b'{"message": "Server Error"}'

# Answers that come instead of the request's: status, more headers, body.
_REFUSALS: dict[str, tuple[str, Headers, bytes]] = {
    "500": ("500 Internal Server Error", [], _ERROR),
    "502": ("502 Bad Gateway", [], b"<html>Bad Gateway</html>"),
    "503": ("503 Service Unavailable", [], b""),
    "403 with Retry-After": ("403 Forbidden", [("Retry-After", "1")], _SECONDARY),
    "403 without": ("403 Forbidden", [], _SECONDARY),
    "403, none left": ("403 Forbidden", [("X-RateLimit-Remaining", "0")], _PRIMARY),
    "429 with Retry-After": ("429 Too Many Requests", [("Retry-After", "1")], _SECONDARY),
    "429 without": ("429 Too Many Requests", [], _SECONDARY),
}
KINDS = (*_REFUSALS, "hangs up before", "hangs up after", "502 after", "truncated", "stale")


class Flaky:
    """Stands before the playground's API and breaks a share of the exchanges, repeatably."""

    def __init__(self, inside: Wsgi, share: float, seed: int) -> None:
        self._inside = inside
        self.share = share
        self.kinds: Sequence[str] = KINDS
        self.breaks_next = False
        self._dice = random.Random(seed)
        self.broken: Counter[str] = Counter()
        self._seen: dict[str, tuple[str, Headers, bytes]] = {}

    def __call__(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        if not is_api(environ["PATH_INFO"]):
            return self._inside(environ, start)
        is_spared = self._dice.random() >= self.share and not self.breaks_next
        if is_spared:
            return self._answer(environ, start, self._ask(environ))
        kind = self._dice.choice(self.kinds)
        self.broken[kind] += 1
        self.breaks_next = False
        if kind in _REFUSALS:
            status, more, body = _REFUSALS[kind]
            start(status, [*_JSON, *more])
            return [body]
        if kind == "hangs up before":
            return _hang_up(environ, start)
        if kind == "stale":
            return self._answer(environ, start, self._old(environ))
        return self._lose_the_answer(kind, environ, start)

    def _lose_the_answer(self, kind: str, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        """The request takes effect."""
        status, headers, body = self._ask(environ)
        if environ["REQUEST_METHOD"] != "GET":
            self._seen.clear()  # a job is tried again after seconds; replicas have caught up by then
        if kind == "hangs up after":
            return _hang_up(environ, start)
        if kind == "502 after":
            start("502 Bad Gateway", _JSON)
            return [_ERROR]
        cut = body[: len(body) // 2]
        kept = [(k, v) for k, v in headers if k.lower() != "content-length"]
        start(status, [*kept, ("Content-Length", str(len(cut)))])
        return [cut]

    def _ask(self, environ: dict[str, Any]) -> tuple[str, Headers, bytes]:
        said: list[tuple[str, Headers]] = []

        def remember(status: str, headers: Headers, *_: object) -> Callable[..., None]:
            said.append((status, headers))
            return lambda _data: None

        body = b"".join(self._inside(environ, remember))
        return said[0][0], said[0][1], body

    def _old(self, environ: dict[str, Any]) -> tuple[str, Headers, bytes]:
        """What the same question was answered last time, as a replica that lags behind would."""
        known = self._seen.get(_question(environ))
        return known if known is not None else self._ask(environ)

    def _answer(
        self, environ: dict[str, Any], start: Any, answer: tuple[str, Headers, bytes]
    ) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] == "GET" and answer[0].startswith("200"):
            self._seen[_question(environ)] = answer
        start(answer[0], answer[1])
        return [answer[2]]


def _question(environ: dict[str, Any]) -> str:
    if environ["REQUEST_METHOD"] != "GET":
        return f"{id(environ)}"
    return f"{environ['PATH_INFO']}?{environ.get('QUERY_STRING', '')}"


def _hang_up(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
    """End the connection with no answer, as when a request runs into its time limit."""
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    start("500 Internal Server Error", _JSON)
    return []
