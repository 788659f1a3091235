"""Gunicorn's threads, hardened: no client keeps one of them for ever, and no broken body becomes an error of ours."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

from gunicorn.http.errors import ParseException  # type: ignore[import-untyped]
from gunicorn.workers.gthread import ThreadWorker  # type: ignore[import-untyped]

_ANSWER_S = 30.0


class InTime(ThreadWorker):  # type: ignore[misc]
    """Cuts off whoever does not get a request across in time."""

    request_s = 20.0
    """How long a whole request, head and body, may take to arrive. GitHub hangs up after ten seconds itself."""

    def handle(self, conn: Any) -> Any:
        """Handle a request; gunicorn calls this in one of its threads, for each request of a connection."""
        if not isinstance(conn.sock, _Impatient):
            conn.sock = _Impatient(conn.sock)
        conn.sock.begin(self.request_s)
        return super().handle(conn)


class _Impatient:
    """A socket that gives one request so many seconds to arrive, however it is dripped."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._until = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)

    def begin(self, seconds: float) -> None:
        """A request begins now."""
        self._until = time.monotonic() + seconds

    def recv(self, size: int) -> bytes:
        """What has come, unless time is up."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise _gone()
        self._sock.settimeout(left)
        try:
            return self._sock.recv(size)
        except TimeoutError as error:
            raise _gone() from error

    def sendall(self, data: bytes) -> None:
        """Send it all, unless the other side does not take it."""
        self._sock.settimeout(_ANSWER_S)
        try:
            self._sock.sendall(data)
        except TimeoutError as error:
            raise _gone() from error


def _gone() -> OSError:
    """What gunicorn takes for a client that went away: no line in the log, the connection closed."""
    return ConnectionResetError(errno.ECONNRESET, "the client is too slow")


def plain_body(application: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """Have a body whose chunks make no sense look like one that was cut off."""

    def wrapped(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        environ["wsgi.input"] = _Body(environ["wsgi.input"])
        return application(environ, start)

    return wrapped


class _Body:
    def __init__(self, body: Any) -> None:
        self._body = body

    def __getattr__(self, name: str) -> Any:
        return getattr(self._body, name)

    def read(self, size: int = -1) -> bytes:
        try:
            data: bytes = self._body.read(size)
        except ParseException as error:
            raise ConnectionResetError(errno.ECONNRESET, "the body makes no sense") from error
        return data
