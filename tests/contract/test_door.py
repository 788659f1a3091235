"""The door under the HTTP that strangers send: every answer is one of ours, and none of them keeps it shut."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.contract.door_server import SECRET

_BODY = json.dumps({"zen": "Keep it simple.", "x": "y" * 5000}).encode()
_AWAY = b""


@pytest.fixture(scope="module")
def process() -> Iterator[tuple[int, int]]:
    """The server's port, and its process id."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    argv = [sys.executable, str(Path(__file__).parent / "door_server.py"), str(port)]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    server = subprocess.Popen(argv, start_new_session=True, env=env)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            break
        except OSError:
            threading.Event().wait(0.1)
    yield port, server.pid
    os.killpg(server.pid, signal.SIGTERM)
    server.wait()


@pytest.fixture
def door(process: tuple[int, int]) -> int:
    return process[0]


def _signature(body: bytes) -> str:
    return "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()


def _head(body: bytes = _BODY, *, drop: str = "", **other: str) -> bytes:
    """A request's head as GitHub sends it, with some headers put, replaced or dropped."""
    headers = {
        "Host": "regreen",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "X-GitHub-Event": "ping",
        "X-GitHub-Delivery": "d-1",
        "X-Hub-Signature-256": _signature(body),
    } | {key.replace("_", "-"): value for key, value in other.items()}
    headers.pop(drop, None)
    lines = ["POST /webhooks/github HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _send(port: int, raw: bytes, *, half: bool = False) -> bytes:
    """What the door answers: its status line, or nothing where it hangs up."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        try:
            connection.sendall(raw)
            if half:
                connection.shutdown(socket.SHUT_WR)
            return connection.recv(64 * 1024).partition(b"\r\n")[0]
        except ConnectionError:
            return _AWAY


def _status(answer: bytes) -> int:
    return int(answer.split()[1])


def _chunked(body: bytes, size: int) -> bytes:
    pieces = [body[i : i + size] for i in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"


def test_an_ordinary_delivery_is_let_in(door: int) -> None:
    assert _status(_send(door, _head() + _BODY)) == 202


def test_a_delivery_in_chunks_is_let_in(door: int) -> None:
    head = _head(drop="Content-Length", Transfer_Encoding="chunked")
    assert _status(_send(door, head + _chunked(_BODY, 100))) == 202


def _deep(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


_NO_JSON = [
    b"",
    b"\xff\xfe{}",
    b"{",
    b"[" * 200_000,
    _deep(150_000),
    b'{"zen": ' + b"9" * 6000 + b"}",
    b"payload=%7B%7D",
    b"null",
    b'"text"',
    b"[1, 2]",
    b'{"zen": 7}',
    b'{"zen": {"a": []}}',
]


@pytest.mark.parametrize("body", _NO_JSON, ids=range(len(_NO_JSON)))
def test_a_signed_body_that_is_no_payload_is_malformed(door: int, body: bytes) -> None:
    assert _status(_send(door, _head(body) + body)) == 400


@pytest.mark.parametrize(
    ("raw", "allowed"),
    [
        (_head(Content_Length="-1") + _BODY, {400}),
        (_head(Content_Length="many") + _BODY, {400}),
        (_head(Content_Length="99999999999") + _BODY, {413}),
        (_head(Content_Length=str(26 * 1024 * 1024)) + _BODY, {413}),
        (_head(Content_Length="10") + _BODY, {401}),
        (_head(Transfer_Encoding="chunked") + _chunked(_BODY, 10), {400}),
        (_head(drop="Content-Length", Transfer_Encoding="chunked") + b"zz\r\n", {400}),
        (_head(drop="Content-Length", Transfer_Encoding="gzip, chunked") + b"0\r\n\r\n", {400}),
        (_head(drop="Content-Length"), {401}),
        (_head(drop="X-Hub-Signature-256") + _BODY, {401}),
        (_head(X_Hub_Signature_256="sha256=\xe9\xff") + _BODY, {401}),
        (_head(X_Hub_Signature_256="sha256=" + "0" * 60_000) + _BODY, {400, 401, 431}),
        (_head(drop="X-GitHub-Event") + _BODY, {400}),
        (_head(drop="X-GitHub-Delivery") + _BODY, {400}),
        (_head(X_GitHub_Delivery="../../etc/passwd") + _BODY, {400}),
        (_head(X_GitHub_Delivery="\xfc" * 20) + _BODY, {400}),
        (_head(X_GitHub_Event="p\xefng") + _BODY, {204, 400}),
        (_head(Content_Type="text/plain") + _BODY, {202}),
        (_head(Content_Type="multipart/form-data; boundary=x") + _BODY, {202}),
        (_head(Content_Encoding="gzip") + _BODY, {202}),
        (_head(Expect="100-continue") + _BODY, {100, 202}),
        (_head(Host="evil\r\nX-GitHub-Delivery: d-2") + _BODY, {202, 400}),
        (_head(Forwarded="for=1", X_Forwarded_Proto="gopher") + _BODY, {202, 400}),
        (b"\r\n".join([b"X-%d: y" % i for i in range(500)]), {400, 431}),
        (b"GET /webhooks/github HTTP/1.1\r\nHost: x\r\n\r\n", {405}),
        (b"POST //webhooks/../webhooks/github HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", {308, 400, 404}),
        (b"POST /webhooks/github HTTP/9.9\r\n\r\n", {400, 401, 505}),
        (b"POST /" + b"a" * 10_000 + b" HTTP/1.1\r\n\r\n", {400, 404, 414}),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", {400}),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400, 404, 405, 505}),
    ],
)  # fmt: skip
def test_whatever_comes_is_refused_in_words(door: int, raw: bytes, allowed: set[int]) -> None:
    answer = _send(door, raw, half=True)
    assert answer == _AWAY or _status(answer) in allowed
    assert _status(_send(door, _head() + _BODY)) == 202, "and the door is still open"


@pytest.mark.parametrize(
    "head",
    ["GET http://[ HTTP/1.1", f"GET / HTTP/1.1\r\nContent-Length: {'9' * 5000}", "GET / HTTP/1.1\r\nTransfer-Encoding: gzip"],
    ids=["address", "length", "encoding"],
)  # fmt: skip
def test_a_head_that_waitress_cannot_read_is_malformed(door: int, head: str) -> None:
    assert _status(_send(door, f"{head}\r\n\r\n".encode())) == 400


def test_two_signatures_do_not_add_up_to_one(door: int) -> None:
    head = _head(X_Hub_Signature_256="sha256=" + "0" * 64).replace(
        b"\r\n\r\n", b"\r\nX-Hub-Signature-256: " + _signature(_BODY).encode() + b"\r\n\r\n"
    )
    assert _status(_send(door, head + _BODY)) in {400, 401}


def test_a_chunked_body_without_end_is_too_large(door: int) -> None:
    head = _head(drop="Content-Length", Transfer_Encoding="chunked")
    chunk = _chunked(b"x" * 1024 * 1024, 1024 * 1024).removesuffix(b"0\r\n\r\n")
    answer = _send(door, head + chunk * 30)
    assert answer == _AWAY or _status(answer) == 413


# Many at once

_PATIENCE_S = 5.0
"""GitHub waits for ten seconds; an answer takes milliseconds, and some tests share the machine."""


@contextmanager
def _connections(port: int, number: int, first: bytes = b"") -> Iterator[list[socket.socket]]:
    """So many clients, each of which has sent this much."""
    made = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(number)]
    try:
        for connection in made:
            with suppress(ConnectionError):  # refused while it was still sending
                connection.sendall(first)
        yield made
    finally:
        for connection in made:
            connection.close()


@contextmanager
def _dripping(connections: list[socket.socket]) -> Iterator[None]:
    """Each of them sends another byte, five times a second."""
    over = threading.Event()

    def drip() -> None:
        while not over.wait(0.2):
            for connection in connections:
                with suppress(OSError):
                    connection.sendall(b"x")

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _is_answered_at_once(port: int) -> None:
    for _ in range(3):
        began = time.monotonic()
        assert _status(_send(port, _head() + _BODY)) == 202
        assert time.monotonic() - began < _PATIENCE_S


def _is_hung_up_on(connection: socket.socket, seconds: float) -> bool:
    connection.settimeout(seconds)
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


@pytest.mark.parametrize("number", [40, 200])
def test_those_who_connect_and_say_nothing_delay_nobody(door: int, number: int) -> None:
    with _connections(door, number):
        _is_answered_at_once(door)


def test_who_says_nothing_is_hung_up_on(door: int) -> None:
    with _connections(door, 1) as (silent,):
        assert _is_hung_up_on(silent, 10)


@pytest.mark.parametrize(
    "first", [_head()[:40], _head(), _head(drop="Content-Length", Transfer_Encoding="chunked")],
    ids=["heads", "bodies", "chunks"],
)  # fmt: skip
def test_those_who_drip_their_requests_delay_nobody(door: int, first: bytes) -> None:
    with _connections(door, 20, first) as slow, _dripping(slow):
        _is_answered_at_once(door)
        assert all(_is_hung_up_on(connection, 15) for connection in slow)


def test_of_too_many_that_say_nothing_the_oldest_are_let_go(door: int) -> None:
    with _connections(door, 300) as silent:
        assert _is_hung_up_on(silent[0], 3)
        assert not _is_hung_up_on(silent[-1], 0.5)
        _is_answered_at_once(door)


@pytest.mark.parametrize(
    "signature", ["", "sha256=", "sha1=" + "0" * 40, "sha256=" + "g" * 64, "sha256=" + "0" * 63]
)
def test_without_a_signature_no_body_is_waited_for(door: int, signature: str) -> None:
    large = str(24 * 1024 * 1024)
    head = _head(Content_Length=large, X_Hub_Signature_256=signature)
    assert _status(_send(door, head)) == 401
    assert (
        _status(_send(door, head.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"))) == 401
    )


def test_many_half_bodies_are_bounded_in_memory_and_the_large_ones_refused(
    process: tuple[int, int],
) -> None:
    door, pid = process
    half = _head(Content_Length=str(24 * 1024 * 1024)) + b"x" * (12 * 1024 * 1024)
    with _connections(door, 16, half) as slow:
        _is_answered_at_once(door)
        answers = [_answer_of(connection) for connection in slow]
    refused = [answer for answer in answers if answer.startswith(b"HTTP/1.1 503 ")]
    assert len(refused) >= 8
    assert all(b"\r\nRetry-After: 30\r\n" in answer for answer in refused)
    assert _most_memory_mib(pid) < 200


def _answer_of(connection: socket.socket) -> bytes:
    connection.settimeout(0.5)
    with suppress(OSError):
        return connection.recv(64 * 1024)
    return _AWAY


def _most_memory_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if "VmHWM" in line)) / 1024
