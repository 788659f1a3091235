"""Requests to GitHub through PyGithub's requester: retries, paging, and our errors instead of its."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests
from github import Auth, GithubException, GithubRetry
from github.Requester import Requester

from regreen import __version__
from regreen.adapters.github_watch import Heard, Watch
from regreen.adapters.pace import Pace
from regreen.adapters.seen import Seen
from regreen.codebase.redaction import Clean, redact
from regreen.errors import OutsideError
from regreen.forge import Gone, NotAllowed, Refused

PAGE = 100
MAX_PAGES = 30  # GitHub itself stops at 3,000 files of a pull request
_TIMEOUT_S = 15
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}

Json = Any


class Wire:
    """JSON requests with one kind of credential; a fresh one is asked for before it expires."""

    def __init__(
        self,
        base_url: str,
        auth: Callable[[], Auth.Auth],
        pace: Pace | None = None,
        seen: Seen | None = None,
        watch: Watch | None = None,
        *,
        clean: Clean = redact,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._auth = auth
        self._pace = pace if urlsplit(base_url).hostname not in _LOOPBACK else None
        self._seen = seen
        self._watch = watch or Watch()
        self._clean = clean
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

    def cursor_pages(self, path: str) -> Iterator[Json]:
        """Every item of a list that is paged by a cursor, which only the Link header tells."""
        cursor: str | None = None
        for _ in range(MAX_PAGES):
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
    # PyGithub's own default repeats a POST after a 502, which makes duplicates.
    retry = GithubRetry(total=3, allowed_methods={"GET", "HEAD"}, max_rate_limit_wait=60)
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
    if error.status in {403, 429}:
        wait = _retry_after(error.headers or {})
        if wait is None and "rate limit" not in said.lower():
            return NotAllowed(text)
        return OutsideError(text, retry_after=wait or 60.0)
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


def _retry_after(headers: Mapping[str, str]) -> float | None:
    value = headers.get("retry-after")
    if value is not None and value.isdigit():
        return float(value)
    return None
