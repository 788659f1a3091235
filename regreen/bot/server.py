"""The App under gunicorn: one process of sixteen threads, the worker launched after the fork."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]
from gunicorn.arbiter import Arbiter  # type: ignore[import-untyped]
from gunicorn.glogging import Logger  # type: ignore[import-untyped]

from regreen.adapters import heap
from regreen.adapters.connection import engine_for
from regreen.bot.logs import log_to_stderr
from regreen.bot.slow_clients import InTime, plain_body
from regreen.errors import OutsideError, UserError
from regreen.settings import Settings

if TYPE_CHECKING:
    from regreen.bot.app import App

_log = logging.getLogger(__name__)

THREADS = 16
_GRACEFUL_S = 20


class Server(BaseApplication):  # type: ignore[misc]
    """Gunicorn with our settings instead of its command line."""

    def __init__(self, make: Callable[[], App], options: dict[str, Any]) -> None:
        self._make = make
        self._options = options
        self._app: App | None = None
        super().__init__()

    def load_config(self) -> None:
        """Take the options over."""
        for key, value in self._options.items():
            self.cfg.set(key, value)
        self.cfg.set("post_worker_init", self._start)
        self.cfg.set("worker_exit", self._stop)

    def load(self) -> Any:
        """The WSGI application; gunicorn calls this in the worker process, after the fork."""
        heap.use_few_arenas()
        try:
            self._app = self._make()
        except (UserError, OutsideError) as error:
            _log.error("cannot start: %s", error)
            sys.exit(Arbiter.WORKER_BOOT_ERROR)  # so that gunicorn's master ends too
        return plain_body(self._app.wsgi)

    def _start(self, worker: Any) -> None:  # noqa: ARG002 - gunicorn's signature
        assert self._app is not None  # noqa: S101 - load came first
        self._worker = self._app.worker()
        self._worker.start()
        self._app.begin()
        heap.give_back()

    def _stop(self, server: Any, worker: Any) -> None:  # noqa: ARG002 - gunicorn's signature
        if self._app is not None:
            self._worker.stop()
            self._app.close()


def serve(settings: Settings, *, host: str, port: int) -> None:
    """Serve until a signal ends it. What was running is taken up again at the next start.

    Raises:
        OutsideError: nothing can listen there.
        UserError: the database's URL names none that we can use.
    """
    _can_listen(host, port)
    engine_for(settings.database).dispose()  # a URL that is none is answered here, in one line
    log_to_stderr(settings.log_format, settings.secrets())
    Server(lambda: _build(settings), options(host, port)).run()


class _OurLog(Logger):  # type: ignore[misc]
    """Gunicorn's lines among ours, and without secrets as they are."""

    def setup(self, cfg: Any) -> None:
        """Take its handlers away; ours is at the root."""
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


def options(host: str, port: int) -> dict[str, Any]:
    """Gunicorn's settings: one process, because SQLite has one writer and a worker's id one owner."""
    return {
        "bind": [f"{host}:{port}"],
        "workers": 1,
        "worker_class": InTime,
        "threads": THREADS,
        "timeout": 60,
        "graceful_timeout": _GRACEFUL_S,
        "loglevel": "warning",
        "proc_name": "regreen",
        "logger_class": _OurLog,
        "control_socket_disable": True,  # a door that nobody uses
    }


def _can_listen(host: str, port: int) -> None:
    """Gunicorn tries a taken port for seconds and then says so in five lines; we say it in one."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, OverflowError) as error:
        message = f"cannot listen on {host}:{port} ({error}); choose another with --host and --port"
        raise OutsideError(message) from error


def _build(settings: Settings) -> App:
    # here, so that only the worker process carries what the App needs, not gunicorn's master too
    from regreen.bot.app import build

    return build(settings)
