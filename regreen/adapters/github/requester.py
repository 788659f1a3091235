"""Requests to GitHub through PyGithub's requester: retries, paging, and errors as ours;
the answers that are kept with their ETags, and the pace of writes.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests
from github import Auth, Github, GithubException
from requests.adapters import Retry

from regreen import __version__
from regreen.adapters.github.rate_limits import WritePacer
from regreen.domain.errors import OutsideError
from regreen.domain.github import NotAllowed, NotFound, RateLimited, ValidationFailed
from regreen.domain.ports import NoTraces, Traces
from regreen.domain.state_records import RateLimit
from regreen.secrets.redaction import CleanText, redact_secrets

_MAX_ENTRIES = 200
_MAX_ENTRY_BYTES = 48 * 1024
_MAX_TOTAL_BYTES = 1024 * 1024

CacheKey = tuple[str, ...]
CachedAnswer = tuple[Mapping[str, str], Any]


class EtagCache:
    """Small recent answers, shared by all clients of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[CacheKey, tuple[str, CachedAnswer]] = OrderedDict()
        self._sizes: dict[CacheKey, int] = {}

    def get(self, key: CacheKey) -> tuple[str, CachedAnswer] | None:
        """The ETag and the answer."""
        with self._lock:
            return self._kept.get(key)

    def put(self, key: CacheKey, answer: CachedAnswer) -> None:
        """Store an answer that has an ETag and is not large."""
        headers, data = answer
        tag = headers.get("etag")
        if not tag or data is None or (size := len(json.dumps(data))) > _MAX_ENTRY_BYTES:
            return
        with self._lock:
            self._kept[key] = (tag, answer)
            self._kept.move_to_end(key)
            self._sizes[key] = size
            while len(self._kept) > _MAX_ENTRIES or sum(self._sizes.values()) > _MAX_TOTAL_BYTES:
                oldest, _ = self._kept.popitem(last=False)
                del self._sizes[oldest]


# Recent writes to GitHub by their marker: lists lag behind, and a lagging list would lead to a second write.

_MAX_REMEMBERED_WRITES = 2000


@dataclass(frozen=True, slots=True)
class WriteRecord:
    """GitHub's id of the write, and the number of annotations of a check run."""

    id: int
    so_far: str = ""


class WriteCache:
    """Shared by all clients of a process. After a restart GitHub's lists are read, which are up to date by then."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, ...], WriteRecord] = OrderedDict()

    def get(self, *key: str) -> WriteRecord | None:
        """The write under this key."""
        with self._lock:
            return self._kept.get(key)

    def put(self, wrote: WriteRecord, *key: str) -> None:
        """Store a write."""
        with self._lock:
            self._kept[key] = wrote
            self._kept.move_to_end(key)
            while len(self._kept) > _MAX_REMEMBERED_WRITES:
                self._kept.popitem(last=False)

    def forget(self, *key: str) -> None:
        """Forget a write whose object is gone."""
        with self._lock:
            self._kept.pop(key, None)


PAGE_SIZE = 100
MAX_PAGES = 30  # GitHub itself stops at 3,000 files of a pull request
_TIMEOUT_S = 15
_LOOPBACK_HOSTS = {"127.0.0.1", "localhost", "::1"}

Json = Any


class GitHubRequester:
    """JSON requests with one kind of credential, which is renewed before it expires.

    `forget` is called with a credential that GitHub rejects.
    """

    def __init__(
        self,
        base_url: str,
        auth: Callable[[], Auth.Auth],
        pace: WritePacer | None = None,
        etags: EtagCache | None = None,
        watch: CallMonitor | None = None,
        *,
        clean: CleanText = redact_secrets,
        forget: Callable[[Auth.Auth], None] = lambda _: None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._auth = auth
        self._pace = pace if urlsplit(base_url).hostname not in _LOOPBACK_HOSTS else None
        self._seen = etags
        self._watch = watch or CallMonitor()
        self._clean = clean
        self._forget = forget
        self._lock = threading.Lock()
        self._client: Github | None = None
        self._used: Auth.Auth | None = None

    def get(self, path: str, **parameters: Json) -> Json:
        """One GET; None if the answer has no body."""
        return self._send_request("GET", path, parameters=parameters)

    def iterate_items(
        self, path: str, key: str | None = None, **parameters: Json
    ) -> Iterator[Json]:
        """Every item of a list, page by page; `key` if the list is inside an object."""
        for page in range(1, MAX_PAGES + 1):
            data = self._send_request(
                "GET", path, parameters={**parameters, "per_page": PAGE_SIZE, "page": page}
            )
            items = data[key] if key else data
            yield from items
            if len(items) < PAGE_SIZE:
                return

    def iterate_cursor_pages(self, path: str, most: int) -> Iterator[Json]:
        """Every item of a list paged by a cursor in the Link header; at most `most` pages."""
        cursor: str | None = None
        for _ in range(most):
            headers, data = self._request_json_once(
                "GET", path, {"per_page": PAGE_SIZE, "cursor": cursor}
            )
            yield from data
            cursor = _parse_next_cursor(headers.get("link") or "")
            if cursor is None:
                return

    def post(self, path: str, body: Mapping[str, Json]) -> Json:
        """One POST; never repeated here, because it may have taken effect."""
        return self._send_request("POST", path, body=body)

    def patch(self, path: str, body: Mapping[str, Json]) -> Json:
        """One PATCH."""
        return self._send_request("PATCH", path, body=body)

    def put(self, path: str, body: Mapping[str, Json]) -> Json:
        """One PUT."""
        return self._send_request("PUT", path, body=body)

    def delete(self, path: str) -> None:
        """One DELETE."""
        self._send_request("DELETE", path)

    def run_graphql(self, query: str, variables: Mapping[str, Json]) -> Json:
        """One GraphQL query or mutation; its `data`."""
        if self._pace is not None and query.lstrip().startswith("mutation"):
            self._pace.wait_turn()
        requester = self._current_client().requester
        with self._trace_call("POST", "/graphql") as notify:
            headers, answer = requester.graphql_query(query, dict(variables))
            notify(headers)
        return answer["data"]

    def find_redirect(self, path: str) -> str:
        """Where a GET redirects to, without following it."""
        requester = self._current_client().requester
        with self._trace_call("GET", path) as notify:
            headers, _ = requester.requestBlobAndCheck("GET", path)
            notify(headers)
        location = headers.get("location")
        if not isinstance(location, str):
            msg = f"GET {path}: GitHub answered without a redirect"
            raise OutsideError(msg)
        return location

    def _current_client(self) -> Github:
        with self._lock:
            auth = self._auth()
            if self._client is None or auth is not self._used:
                self._used, self._client = auth, _make_client(self.base_url, auth)
            return self._client

    def _send_request(
        self,
        verb: str,
        path: str,
        *,
        parameters: Mapping[str, Json] | None = None,
        body: Mapping[str, Json] | None = None,
    ) -> Json:
        return self._request_json_once(verb, path, parameters, body)[1]

    def _request_json_once(
        self,
        verb: str,
        path: str,
        parameters: Mapping[str, Json] | None = None,
        body: Mapping[str, Json] | None = None,
    ) -> tuple[Mapping[str, str], Json]:
        if self._pace is not None and verb != "GET":
            self._pace.wait_turn()
        requester = self._current_client().requester
        query = {k: v for k, v in (parameters or {}).items() if v is not None}
        key = (self._reader_key(), path, *(f"{k}={v}" for k, v in sorted(query.items())))
        known = self._seen.get(key) if self._seen is not None and verb == "GET" else None
        with self._trace_call(verb, path) as notify:
            headers, data = requester.requestJsonAndCheck(
                verb,
                path,
                parameters=query or None,
                headers={"If-None-Match": known[0]} if known is not None else None,
                input=_remove_credentials(body, self._clean) if body is not None else None,
            )
            notify(headers)
        if known is not None and data is None:
            return known[1]
        if self._seen is not None and verb == "GET":
            self._seen.put(key, (headers, data))
        return headers, data

    @contextmanager
    def _trace_call(self, verb: str, path: str) -> Iterator[HeadersHandler]:
        """One request: the monitor is notified, and PyGithub's errors become ours."""
        with self._watch.trace_call(verb, path) as notify:
            try:
                yield notify
            except (GithubException, requests.RequestException, ValueError) as error:
                if isinstance(error, GithubException):
                    notify(error.headers or {})
                    if error.status == 401 and self._used is not None:
                        self._forget(self._used)  # revoked, with its installation or by hand
                msg = f"{verb} {path}"
                raise _translate_error(msg, error) from error

    def _reader_key(self) -> str:
        """The identity behind a request: one token may see what another may not."""
        return self._used.token if isinstance(self._used, Auth.Token) else ""


# Texts for people; other values (ids, paths, branches) must be sent unchanged.
_TEXT_FIELDS = frozenset({"body", "title", "summary", "text", "message"})


def _remove_credentials(value: Json, clean: CleanText) -> Json:
    """A request body without credentials: every comment, check and title passes through here."""
    if isinstance(value, Mapping):
        return {
            key: clean(item)
            if key in _TEXT_FIELDS and isinstance(item, str)
            else _remove_credentials(item, clean)
            for key, item in value.items()
        }
    return (
        [_remove_credentials(item, clean) for item in value] if isinstance(value, list) else value
    )


def _make_client(base_url: str, auth: Auth.Auth) -> Github:
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
    on_loopback = urlsplit(base_url).hostname in _LOOPBACK_HOSTS
    return Github(
        auth=auth,
        base_url=base_url,
        timeout=_TIMEOUT_S,
        user_agent=f"regreen/{__version__}",
        per_page=PAGE_SIZE,
        retry=retry,
        seconds_between_requests=0 if on_loopback else 0.25,
        seconds_between_writes=0,  # `WritePacer` does that, for all clients together
    )


def _translate_error(doing: str, error: Exception) -> Exception:
    if not isinstance(error, GithubException):
        msg = f"{doing}: GitHub cannot be reached ({type(error).__name__})"
        return OutsideError(msg)
    reason = _error_message(error.data)
    text = f"{doing}: GitHub answered {error.status}" + (f": {reason}" if reason else "")
    if error.status in {404, 410}:
        return NotFound(text)
    if error.status == 422:
        return ValidationFailed(text)
    if _is_rate_limit(error, reason):
        return RateLimited(text, retry_after=_seconds_until_limit_ends(error.headers or {}))
    if error.status == 403:
        return NotAllowed(text)
    return OutsideError(text)


def _parse_next_cursor(link: str) -> str | None:
    for part in link.split(","):
        address, _, relation = part.partition(";")
        if 'rel="next"' in relation:
            query = parse_qs(urlsplit(address.strip().strip("<>")).query)
            return query.get("cursor", [None])[0]
    return None


def _error_message(data: Json) -> str:
    if not isinstance(data, dict):
        return ""
    details = data.get("errors")
    more = f" ({details})" if details else ""
    return f"{data.get('message', '')}{more}"[:500]


def _is_rate_limit(error: GithubException, reason: str) -> bool:
    """Whether the error is a rate limit.

    https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
    """
    if error.status == 429:
        return True
    if error.status != 403:  # GraphQL reports it in an answer of 200
        return "RATE_LIMITED" in str(error.data)
    headers, words = error.headers or {}, reason.lower()
    return (
        "retry-after" in headers
        or headers.get("x-ratelimit-remaining") == "0"
        or "rate limit" in words
        or "abuse detection" in words
    )


def _seconds_until_limit_ends(headers: Mapping[str, str]) -> float | None:
    """Seconds until the limit is over, None if GitHub does not say."""
    value = headers.get("retry-after", "")
    if value.isdigit():
        return float(value)
    reset = headers.get("x-ratelimit-reset", "")
    if headers.get("x-ratelimit-remaining") != "0" or not reset.isdigit():
        return None
    # by GitHub's own clock if given; the fraction of the second is unknown
    try:
        now = parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError):
        now = time.time()
    return max(1.0, float(reset) - now + 1)


# Observes each call to GitHub: its duration, and the rest of the rate limit.

HeadersHandler = Callable[[Mapping[str, object]], None]
"""Takes the headers of an answer, their names in lower case."""


@dataclass(frozen=True)
class CallMonitor:
    """Observes the calls with one credential. `owner` says whose limit it is: GitHub keeps one for each installation.

    https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
    """

    traces: Traces = field(default_factory=NoTraces)
    limit: Callable[[RateLimit], None] = lambda _: None
    owner: str = "app"

    def for_owner(self, owner: str) -> CallMonitor:
        """The monitor for another credential."""
        return replace(self, owner=owner)

    @contextmanager
    def trace_call(self, verb: str, path: str) -> Iterator[HeadersHandler]:
        """One request; call the yielded function with the headers of the answer."""
        about = {"http.request.method": verb, "url.path": path, "regreen.github.owner": self.owner}
        with self.traces.span("GitHub", about):
            yield self._record_rate_limit

    def _record_rate_limit(self, headers: Mapping[str, object]) -> None:
        try:
            left = int(str(headers["x-ratelimit-remaining"]))
            most = int(str(headers["x-ratelimit-limit"]))
            resets = float(str(headers["x-ratelimit-reset"]))
        except (KeyError, ValueError):
            return  # Enterprise Server can be without limits
        self.limit(
            RateLimit(
                self.owner, str(headers.get("x-ratelimit-resource", "core")), left, most, resets
            )
        )
