"""Thousands of requests that are wrong in every way, sent to `regreen serve` over TCP: each gets an answer or is hung up on.

Long; `make soak` runs it. Signed deliveries of odd payloads, malformed heads, chunks, lengths that do not hold.

    REGREEN_SOAK_REQUESTS  how many (5000)
    REGREEN_SOAK_SEED      which ones (20261122)
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import random
import re
import socket
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.contract.test_serve import served
from tests.soak.test_day import memory_mb

REQUESTS = int(os.environ.get("REGREEN_SOAK_REQUESTS", "5000"))
SEED = int(os.environ.get("REGREEN_SOAK_SEED", "20261122"))
_AT_ONCE = 32
_FAULT = r"Traceback|uncaptured|\bERROR\b"
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
_EVENTS = (
    "pull_request", "issue_comment", "pull_request_review_comment", "workflow_run", "check_run", "merge_group", "push",
    "installation", "installation_repositories", "repository", "ping", "unheard_of",
)  # fmt: skip
_KEYS = (
    "action", "pull_request", "repository", "sender", "comment", "issue", "installation", "number", "head", "base", "id",
    "sha", "ref", "repo", "full_name", "login", "type", "body", "user", "workflow_run", "check_run", "conclusion",
)  # fmt: skip
_SCALARS = (
    None, True, False, 0, -1, 1, 10**30, 1.5, "", "o/r", "../..", "\x00", "\ud800", "opened", "created", "a" * 40, "/fix",
)  # fmt: skip
_PATHS = (
    "/", "/healthz", "/readyz", "/metrics", "/webhooks/github", "/jobs", "/jobs/%00", "/%ff%fe", "//", "//x", "/../..", "*",
    "http://[", "http://[::1", "http://x:99999999/", "/?page=-1", "/?page=" + "9" * 5000, "/jobs?q=%", "/#", "/\xff",
)  # fmt: skip
_HEADERS = (
    "Content-Length: -1", "Content-Length: 1e3", "Content-Length: " + "9" * 5000, "Content-Length: 3, 3",
    "Content-Length: 3\r\nContent-Length: 4", "Content-Length: \xb2", "Content-Length:", "Content-Length : 3",
    "Transfer-Encoding: gzip", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: \x0bchunked", "Transfer-Encoding: chunked\r\nContent-Length: 3", "Expect: 100-continue",
    "Expect: nothing", "Host:", "Host: [", "Host: a\r\nHost: b", "X: " + "y" * 40_000, "X" * 9_000 + ": y", ": y", "X",
    " folded", "X: \x00", "X: a\nb", "X: a\rb", "\x80: y", "Connection: close", "Connection: upgrade\r\nUpgrade: h2c",
    "Authorization: Basic \xff", "Authorization: Basic ====", "Cookie: =;=;\x01", "X-Forwarded-For: [", "Range: bytes=-",
    "X-Forwarded-Proto: javascript", "X-Forwarded-Host: \"", "Content-Type: multipart/form-data; boundary=",
    "Content-Type: application/x-www-form-urlencoded; charset=nothing", "If-Modified-Since: " + "1" * 300,
)  # fmt: skip
_FIRST_LINES = (
    "", " ", "GET", "GET /", "GET / HTTP/9.9", "GET / HTTP/1.1.1", "GET  / HTTP/1.1", "get / http/1.1", "\x16\x03\x01\x02",
    "PRI * HTTP/2.0", "GET /\x00 HTTP/1.1", "GET / HTTP/1.1\r\r", "G\xc9T / HTTP/1.1", "A" * 40_000,
)  # fmt: skip
_CHUNKS = (
    "0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n", "5\r\nhel", "-1\r\n", "z\r\n", "ffffffffffffffffff\r\n", "5;" + "x" * 5000,
    "5\r\nhelloX", "0\r\nTrailer: " + "x" * 9000, "0x5\r\nhello\r\n0\r\n\r\n", "1" * 5000 + "\r\n", "\r\n", "5 \r\nhello\r\n",
)  # fmt: skip

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]


class _Stranger:
    """Makes requests that are wrong in one way or another."""

    def __init__(self, seed: int, secret: str) -> None:
        self._dice, self._secret = random.Random(seed), secret

    def requests(self, number: int) -> Iterator[bytes]:
        """So many, and before them each thing that is wrong by itself."""
        heads = [f"GET {path} HTTP/1.1" for path in _PATHS]
        heads += [f"GET / HTTP/1.1\r\n{header}" for header in _HEADERS]
        for head in (*heads, *_FIRST_LINES):
            yield f"{head}\r\n\r\n".encode("latin-1")
        for chunk in _CHUNKS:
            yield self._in_chunks(chunk)
        for _ in range(number):
            yield self._request()

    def _request(self) -> bytes:
        kinds: list[Callable[[], bytes]] = [
            self._signed, self._signed, self._head, self._first_line, self._chunked, self._short, self._noise, self._damaged,
        ]  # fmt: skip
        return self._dice.choice(kinds)()

    def _json(self, depth: int = 0) -> Any:
        kind = self._dice.random()
        if kind < 0.4 or depth > 4:
            return self._dice.choice(_SCALARS)
        if kind < 0.55:
            return [self._json(depth + 1) for _ in range(self._dice.randrange(4))]
        keys = self._dice.sample(_KEYS, self._dice.randrange(8))
        return {key: self._json(depth + 1) for key in keys}

    def _body(self) -> bytes:
        if self._dice.random() < 0.1:
            odd = (
                b"",
                b"[" * 100_000,
                b"\xff\xfe",
                b'{"a": 1' + b"0" * 5000 + b"}",
                b"NaN",
                b"null",
            )
            return self._dice.choice(odd)
        return json.dumps(self._json()).encode()

    def _signed(self, length: int | None = None, body: bytes | None = None) -> bytes:
        body = self._body() if body is None else body
        digest = hmac.new(self._secret.encode(), body, hashlib.sha256).hexdigest()
        delivery = self._dice.choice(
            [str(uuid.UUID(int=self._dice.getrandbits(128))), "", "x" * 70, "\xe9"]
        )
        lines = [
            "POST /webhooks/github HTTP/1.1",
            "Host: x",
            f"X-GitHub-Event: {self._dice.choice(_EVENTS)}",
            f"X-GitHub-Delivery: {delivery}",
            f"X-Hub-Signature-256: sha256={digest}",
            f"Content-Length: {len(body) if length is None else length}",
        ]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body

    def _head(self) -> bytes:
        method = self._dice.choice(
            ["GET", "POST", "PUT", "HEAD", "OPTIONS", "TRACE", "CONNECT", "X!"]
        )
        first = f"{method} {self._dice.choice(_PATHS)} HTTP/1.{self._dice.randrange(2)}"
        more = self._dice.sample(_HEADERS, self._dice.randrange(1, 4))
        return "\r\n".join([first, *more]).encode("latin-1") + b"\r\n\r\nabc"

    def _first_line(self) -> bytes:
        return self._dice.choice(_FIRST_LINES).encode("latin-1") + b"\r\nHost: x\r\n\r\n"

    def _chunked(self) -> bytes:
        return self._in_chunks(self._dice.choice(_CHUNKS))

    def _in_chunks(self, chunk: str) -> bytes:
        path = self._dice.choice(["/", "/webhooks/github"])
        signature = "X-Hub-Signature-256: sha256=" + "0" * 64
        head = f"POST {path} HTTP/1.1\r\n{signature}\r\nTransfer-Encoding: chunked\r\n\r\n"
        return (head + chunk).encode("latin-1")

    def _short(self) -> bytes:
        body = self._body()
        wrong = [
            0,
            max(0, len(body) - 1),
            len(body) + 1,
            2 * len(body) + 10,
            26 * 1024 * 1024,
            10**18,
        ]
        return self._signed(length=self._dice.choice(wrong), body=body)

    def _noise(self) -> bytes:
        return self._dice.randbytes(self._dice.randrange(200)) + b"\r\n\r\n"

    def _damaged(self) -> bytes:
        data = bytearray(self._signed() + self._signed())
        for _ in range(self._dice.randrange(1, 6)):
            data[self._dice.randrange(len(data))] = self._dice.randrange(256)
        return bytes(data[: self._dice.randrange(len(data))])


def _send(port: int, data: bytes) -> list[int]:
    """The statuses that come back until the server hangs up, or has said nothing for a second."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        try:
            connection.sendall(data)
            connection.settimeout(1)
            while chunk := connection.recv(1 << 16):
                received += chunk
        except (ConnectionResetError, BrokenPipeError, TimeoutError):
            pass  # it may hang up before it has read everything
    return [int(status) for status in _STATUS.findall(received)]


def test_no_request_breaks_it_down(tmp_path: Path) -> None:
    with served(tmp_path) as serving, ThreadPoolExecutor(_AT_ONCE) as pool:
        requests = list(_Stranger(SEED, serving.app.secret).requests(REQUESTS))
        seen, sizes = Counter[int](), list[float]()
        for at in range(0, len(requests), 500):
            part = requests[at : at + 500]
            answers = pool.map(partial(_send, serving.port), part)
            for data, statuses in zip(part, answers, strict=True):
                assert not {s for s in statuses if s >= 500} - {503}, (statuses, data[:300])
                seen.update(statuses)
            sizes.append(memory_mb(serving.parent.pid))
        assert [line for line in serving.log.splitlines() if re.search(_FAULT, line)] == []
        assert sizes[-1] < 1.1 * max(sizes[:3]), sizes
        assert {200, 202, 204, 400, 401, 404, 413, 431} <= set(seen), seen
        serving.until(serving.is_alive)
        pull = serving.pull("after")
        serving.until(lambda: serving.is_reviewed(pull))
