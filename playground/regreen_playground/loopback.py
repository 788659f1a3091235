"""A WSGI application served on loopback by a thread of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from regreen.domain.errors import OutsideError

Wsgi = Callable[..., Iterable[bytes]]


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - werkzeug names it
        """Say nothing."""


class _Server(ThreadedWSGIServer):
    daemon_threads = True
    block_on_close = False


class Loopback:
    """Serves until it is closed; `url` is where."""

    def __init__(self, application: Wsgi, port: int = 0, name: str = "loopback") -> None:
        try:
            self._server = _Server("127.0.0.1", port, application, handler=_Quiet)
        except (OSError, OverflowError, SystemExit) as error:  # werkzeug exits on a taken port
            message = f"cannot listen on 127.0.0.1:{port}; choose another with --port"
            raise OutsideError(message) from error
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": 0.05},
            name=name,
            daemon=True,
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening; requests under way are cut off."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
