"""Requests to GitHub through PyGithub's requester: retries, paging, and our errors instead of its."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests
from github import Auth, GithubException
from github.Requester import Requester
from requests.adapters import Retry

from regreen import __version__
from regreen.adapters.github_watch import Heard, Watch
from regreen.adapters.pace import Pace
from regreen.adapters.seen import Seen
from regreen.codebase.redaction import Clean, redact
from regreen.errors import OutsideError
from regreen.forge import Gone, NotAllowed, Paced, Refused

PAGE = 100
MAX_PAGES = 30  # GitHub itself stops at 3,000 files of a pull request
_TIMEOUT_S = 15
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}

Json = Any


class Wire:
    """JSON requests with one kind of credential; a fresh one is asked for before it expires.

    `forget` is told of a credential that GitHub does not take any more.
    """

    def __init__(
        self,
        base_url: str,
        auth: Callable[[], Auth.Auth],
        pace: Pace | None = None,
        seen: Seen | None = None,
        watch: Watch | None = None,
        *,
        clean: Clean = redact,
        forget: Callable[[Auth.Auth], None] = lambda _: None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._auth = auth
        self._pace = pace if urlsplit(base_url).hostname not in _LOOPBACK else None
        self._seen = seen
        self._watch = watch or Watch()
        self._clean = clean
        self._forget = forget
        self._lock = threading.Lock()
        self._requester: Requester | None = None
        self._used: Auth.Auth | None = None

    def get(self, path: str, **parameters: Json) -> Json:
        """One GET; None where the answer has no body."""
        return self._send("GET", path, parameters=parameters)

    def pages(self, path: str, key: str | None = None, **parameters: Json) -> Iterator[Json]:
        """Every item of a list, page by page; `key` where the list is inside an object."""
        for page in range(1, MAX_PAGES + 1):
            data = self._send(
                "GET", path, parameters={**parameters, "per_page": PAGE, "page": page}
            )
            items = data[key] if key else data
            yield from items
            if len(items) < PAGE:
                return

    def cursor_pages(self, path: str, most: int) -> Iterator[Json]:
        """Every item of a list that is paged by a cursor, which only the Link header tells; `most` pages of it."""
        cursor: str | None = None
        for _ in range(most):
            headers, data = self._exchange("GET", path, {"per_page": PAGE, "cursor": cursor})
            yield from data
            cursor = _next_cursor(headers.get("link") or "")
            if cursor is None:
                return

    def post(self, path: str, body: Mapping[str, Json]) -> Json:
        """One POST; never repeated here: it may have taken effect."""
        return self._send("POST", path, body=body)

    def patch(self, path: str, body: Mapping[str, Json]) -> Json:
        """One PATCH."""
        return self._send("PATCH", path, body=body)

    def delete(self, path: str) -> None:
        """One DELETE."""
        self._send("DELETE", path)

    def graphql(self, query: str, variables: Mapping[str, Json]) -> Json:
        """One GraphQL query or mutation; its `data`."""
        if self._pace is not None and query.lstrip().startswith("mutation"):
            self._pace.wait()
        requester = self._current()
        with self._call("POST", "/graphql") as heard:
            headers, answer = requester.graphql_query(query, dict(variables))
            heard(headers)
        return answer["data"]

    def location(self, path: str) -> str:
        """Where a GET redirects to, which is not followed."""
        requester = self._current()
        with self._call("GET", path) as heard:
            headers, _ = requester.requestBlobAndCheck("GET", path)
            heard(headers)
        found = headers.get("location")
        if not isinstance(found, str):
            msg = f"GET {path}: GitHub answered without a redirect"
            raise OutsideError(msg)
        return found

    def _current(self) -> Requester:
        with self._lock:
            auth = self._auth()
            if self._requester is None or auth is not self._used:
                self._used, self._requester = auth, _requester(self.base_url, auth)
            return self._requester

    def _send(
        self,
        verb: str,
        path: str,
        *,
        parameters: Mapping[str, Json] | None = None,
        body: Mapping[str, Json] | None = None,
    ) -> Json:
        return self._exchange(verb, path, parameters, body)[1]

    def _exchange(
        self,
        verb: str,
        path: str,
        parameters: Mapping[str, Json] | None = None,
        body: Mapping[str, Json] | None = None,
    ) -> tuple[Mapping[str, str], Json]:
        if self._pace is not None and verb != "GET":
            self._pace.wait()
        requester = self._current()
        given = {k: v for k, v in (parameters or {}).items() if v is not None}
        key = (self._reader(), path, *(f"{k}={v}" for k, v in sorted(given.items())))
        known = self._seen.get(key) if self._seen is not None and verb == "GET" else None
        with self._call(verb, path) as heard:
            headers, data = requester.requestJsonAndCheck(
                verb,
                path,
                parameters=given or None,
                headers={"If-None-Match": known[0]} if known is not None else None,
                input=_discreet(body, self._clean) if body is not None else None,
            )
            heard(headers)
        if known is not None and data is None:
            return known[1]
        if self._seen is not None and verb == "GET":
            self._seen.put(key, (headers, data))
        return headers, data

    @contextmanager
    def _call(self, verb: str, path: str) -> Iterator[Heard]:
        """One exchange: somebody looks on, and its errors are ours."""
        with self._watch.call(verb, path) as heard:
            try:
                yield heard
            except (GithubException, requests.RequestException, ValueError) as error:
                if isinstance(error, GithubException):
                    heard(error.headers or {})
                    if error.status == 401 and self._used is not None:
                        self._forget(self._used)  # revoked, with its installation or by hand
                msg = f"{verb} {path}"
                raise _translated(msg, error) from error

    def _reader(self) -> str:
        """Whose eyes an answer was for: what one token may see, another may not."""
        return self._used.token if isinstance(self._used, Auth.Token) else ""


# What people read; the rest (ids, paths, branches) must go out as it is.
_PROSE = frozenset({"body", "title", "summary", "text", "message"})


def _discreet(value: Json, clean: Clean) -> Json:
    """What is written to GitHub, without credentials: the one way out for every comment, check and title."""
    if isinstance(value, Mapping):
        return {
            key: clean(one) if key in _PROSE and isinstance(one, str) else _discreet(one, clean)
            for key, one in value.items()
        }
    return [_discreet(one, clean) for one in value] if isinstance(value, list) else value


def _requester(base_url: str, auth: Auth.Auth) -> Requester:
    # PyGithub's own default repeats a POST after a 502, which makes duplicates; and it waits for a rate limit here,
    # for as long as GitHub says, where nobody can cancel it.
    retry = Retry(
        total=3,
        allowed_methods={"GET", "HEAD"},
        status_forcelist=range(500, 600),
        backoff_factor=0.2,
        respect_retry_after_header=False,
        raise_on_status=False,
    )
    on_loopback = urlsplit(base_url).hostname in _LOOPBACK
    return Requester(
        auth=auth,
        base_url=base_url,
        timeout=_TIMEOUT_S,
        user_agent=f"regreen/{__version__}",
        per_page=PAGE,
        verify=True,
        retry=retry,
        pool_size=None,
        seconds_between_requests=0 if on_loopback else 0.25,
        seconds_between_writes=0,  # `Pace` sees to that, for all clients together
    )


def _translated(doing: str, error: Exception) -> Exception:
    if not isinstance(error, GithubException):
        msg = f"{doing}: GitHub cannot be reached ({type(error).__name__})"
        return OutsideError(msg)
    said = _message(error.data)
    text = f"{doing}: GitHub answered {error.status}" + (f": {said}" if said else "")
    if error.status in {404, 410}:
        return Gone(text)
    if error.status == 422:
        return Refused(text)
    if _is_limit(error, said):
        return Paced(text, retry_after=_limited_for(error.headers or {}))
    if error.status == 403:
        return NotAllowed(text)
    return OutsideError(text)


def _next_cursor(link: str) -> str | None:
    for part in link.split(","):
        address, _, relation = part.partition(";")
        if 'rel="next"' in relation:
            query = parse_qs(urlsplit(address.strip().strip("<>")).query)
            return query.get("cursor", [None])[0]
    return None


def _message(data: Json) -> str:
    if not isinstance(data, dict):
        return ""
    details = data.get("errors")
    more = f" ({details})" if details else ""
    return f"{data.get('message', '')}{more}"[:500]


def _is_limit(error: GithubException, said: str) -> bool:
    """Whether GitHub has had enough of us for a while.

    https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
    """
    if error.status == 429:
        return True
    if error.status != 403:  # GraphQL says so in an answer of 200
        return "RATE_LIMITED" in str(error.data)
    headers, words = error.headers or {}, said.lower()
    return (
        "retry-after" in headers
        or headers.get("x-ratelimit-remaining") == "0"
        or "rate limit" in words
        or "abuse detection" in words
    )


def _limited_for(headers: Mapping[str, str]) -> float | None:
    """Seconds until the limit is over, None where GitHub does not say."""
    value = headers.get("retry-after", "")
    if value.isdigit():
        return float(value)
    reset = headers.get("x-ratelimit-reset", "")
    if headers.get("x-ratelimit-remaining") != "0" or not reset.isdigit():
        return None
    # by GitHub's own clock, if it tells; within which part of the second it resets is not known
    try:
        now = parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError):
        now = time.time()
    return max(1.0, float(reset) - now + 1)
