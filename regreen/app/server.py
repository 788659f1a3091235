"""`regreen serve`: one web process, which never parses repository content, and one process that runs jobs.

Their parent only starts, restarts and stops them. What both need is imported before the fork, so that they
share its memory.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from waitress.adjustments import Adjustments  # type: ignore[import-untyped]
from waitress.channel import HTTPChannel  # type: ignore[import-untyped]
from waitress.parser import HTTPRequestParser, ParsingError, TransferEncodingNotImplemented  # type: ignore[import-untyped]
from waitress.server import TcpWSGIServer  # type: ignore[import-untyped]
from waitress.utilities import BadRequest, Error, RequestEntityTooLarge  # type: ignore[import-untyped]

from regreen.adapters.clock import SystemClock
from regreen.app.settings_loader import DASHBOARD_FILE
from regreen.app.web import DeliveryIntake, make_web_application, open_store
from regreen.bot.jobs.engine import limit_malloc_arenas, trim_memory
from regreen.domain.errors import OutsideError, UserError
from regreen.domain.ports import Clock
from regreen.domain.private_folders import hold_alone
from regreen.domain.settings import Settings
from regreen.webhooks import receive

MAIN_WORKER = "main"
_WRONG_SETTING = 2
_CANNOT_START = 3
_GRACE_S = 25.0
_POLL_SECONDS = 0.5
_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 60.0
_STABLE_AFTER_SECONDS = 60.0
"""A process that lived for so long starts again at once."""
_LISTEN_BACKLOG = 512

_log = logging.getLogger(__name__)


def serve(settings: Settings, *, host: str, port: int, clock: Clock | None = None) -> int:
    """Serve until a signal; return the exit code. The next start resumes running jobs.

    Raises:
        OutsideError: the address cannot be listened on.
    """
    clock = clock or SystemClock()
    listener = _open_listener(host, port)
    preparing = _process(partial(_make_all_tables, settings, clock), "tables", daemon=True)
    preparing.join()
    if preparing.exitcode:
        return preparing.exitcode
    gc.collect()
    trim_memory()
    gc.freeze()  # frozen objects stay shared: the collector does not touch them
    where = settings.home / DASHBOARD_FILE
    _log.info("the dashboard asks for REGREEN_DASHBOARD_AUTH, else for the token in %s", where)
    _log.info("listening on http://%s:%d", *listener.getsockname()[:2])
    return _supervise_children(
        [
            _ChildProcess("web", partial(_run_web, settings, listener, clock)),
            _ChildProcess("jobs", partial(run_jobs, settings, clock=clock, is_first=True)),
        ]
    )


def _open_listener(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_LISTEN_BACKLOG)
    except (OSError, OverflowError) as error:
        message = f"cannot listen on {host}:{port} ({error}); choose another with --host and --port"
        raise OutsideError(message) from error


# The processes


def _make_all_tables(settings: Settings, clock: Clock) -> None:
    """Create or migrate the tables in a process of its own, which frees its memory at the end."""
    open_store(settings, clock)


def _run_web(settings: Settings, listener: socket.socket, clock: Clock) -> None:
    limit_malloc_arenas()
    store = open_store(settings, clock)
    intake = DeliveryIntake(store, clock, settings)
    server = HttpServer(make_web_application(settings, store, clock, intake), listener)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    trim_memory()
    server.run()
    intake.close()


def run_jobs(
    settings: Settings,
    *,
    worker: str = MAIN_WORKER,
    clock: Clock | None = None,
    is_first: bool = False,
) -> None:
    """Run jobs in this process until SIGTERM or SIGINT; the next start resumes the running ones.

    Args:
        settings: the operator's.
        worker: the id under which it works, unique among processes.
        clock: the time, for tests.
        is_first: also order the work of a start.

    Raises:
        UserError: a setting is wrong, or another process uses this id, or this SQLite file.
        OutsideError: the database does not answer.
    """
    from regreen.app.wiring import build_app

    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    limit_malloc_arenas()
    app = build_app(settings, worker=worker, clock=clock)
    with _hold_database(app.store.engine.url.database, app.store.engine.dialect.name):
        running = app.make_worker()
        running.start()
        if is_first:
            app.enqueue_startup_work()
        trim_memory()
        _log.info("worker %s is running", worker)
        ended.wait()
        running.stop()
        app.close()


@contextmanager
def _hold_database(name: str | None, dialect: str) -> Iterator[None]:
    """Make sure that no other process works on the same SQLite file; PostgreSQL is made for many.

    Raises:
        UserError: another does.
    """
    if dialect != "sqlite" or not name or name == ":memory:":
        yield
        return
    # one file has many names: relative ones, and those of symbolic links
    with hold_alone(Path(f"{Path(name).resolve()}.worker-lock")) as is_alone:
        if not is_alone:
            message = (
                f"another process runs the jobs of {name} already, and SQLite is for one; "
                "stop it, or set REGREEN_DATABASE_URL to a PostgreSQL database"
            )
            raise UserError(message)
        yield


# The parent process


@dataclass
class _ChildProcess:
    name: str
    run: Callable[[], None]
    process: BaseProcess | None = None
    started: float = field(default=0.0)
    starts: int = 0
    wait_s: float = _FIRST_WAIT_S
    next_start: float = 0.0

    def start(self) -> None:
        self.starts += 1
        self.started = time.monotonic()
        self.process = _process(self.run, self.name)
        _log.info("the %s process is %d", self.name, self.process.pid)

    def collect_exit_code(self) -> int | None:
        """Record its end and the time of its restart; return its exit code."""
        assert self.process is not None  # noqa: S101 - it was started
        now, code = time.monotonic(), self.process.exitcode
        self.process.close()
        self.process = None
        self.wait_s = (
            _FIRST_WAIT_S
            if now - self.started > _STABLE_AFTER_SECONDS
            else min(2 * self.wait_s, _LONGEST_WAIT_S)
        )
        self.next_start = now + self.wait_s
        return code


def _supervise_children(children: list[_ChildProcess]) -> int:
    """Keep the children running until a signal, or until one cannot start at all; return the exit code."""
    ended: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.append(0))
    while not ended:
        for child in children:
            if child.process is None and time.monotonic() >= child.next_start:
                child.start()
        wait([c.process.sentinel for c in children if c.process is not None], _POLL_SECONDS)
        for child in children:
            if child.process is None or child.process.is_alive() or ended:
                continue
            code = child.collect_exit_code()
            if code in (_WRONG_SETTING, _CANNOT_START) and child.starts == 1:
                ended.append(code)
            else:
                _log.error(
                    "the %s process has died (%s); it is started again in %.0f s",
                    child.name,
                    f"signal {-code}" if code is not None and code < 0 else f"exit code {code}",
                    child.wait_s,
                )
    _stop_processes([c.process for c in children if c.process is not None])
    return ended[0]


def _stop_processes(processes: list[BaseProcess]) -> None:
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + _GRACE_S
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
        if process.is_alive():
            _log.warning("the %s process does not end and is killed", process.name)
            process.kill()
            process.join()


def _process(run: Callable[[], None], name: str, *, daemon: bool = False) -> BaseProcess:
    context = multiprocessing.get_context("fork")
    process = context.Process(target=_child_main, args=(run,), name=name, daemon=daemon)
    process.start()
    return process


def _child_main(run: Callable[[], None]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # the terminal sends the signal to all; the parent forwards it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_parent, name="regreen-parent", daemon=True).start()
    try:
        run()
    except (UserError, OutsideError) as error:
        _log.error("cannot start: %s", error)
        sys.exit(_WRONG_SETTING if isinstance(error, UserError) else _CANNOT_START)


def _end_with_the_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None  # noqa: S101 - this process was forked
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


# The HTTP server: waitress, which receives a whole request before a worker thread sees it, with our limits.
#
# A client that sends nothing, or one byte a second, holds a socket and no thread. Slow clients are disconnected; if too
# many are still sending, the oldest connection of the address with the most connections is closed.

WORKER_THREADS = 16
_MiB = 1024 * 1024
_MAX_CONNECTIONS = 800
_MAX_SENDING = 256
"""Connections whose request has not arrived whole."""
_MAX_HEAD = 32 * 1024
_MAX_CHUNK_LINE = 4 * 1024
_MAX_OTHER_BODY = _MiB
"""What is no delivery is a form of the dashboard."""
_SMALL_BODY = _MiB
_MAX_BUFFERED = 64 * _MiB
"""Bytes of bodies held at once; past that, a body that is larger than a small one is refused."""
_MAX_BODY_IN_MEMORY = 256 * 1024
"""What a body holds beyond that lies in a temporary file."""
_HEAD_S = 5.0
"""From the connection, or the last answer, to a complete head."""
_BODY_S = 5.0
"""For the first MiB of a body; each further one has a second, and GitHub itself waits for ten."""
_LONGEST_BODY_S = 20.0
_ANSWER_S = 30.0


class _Unauthorized(Error):  # type: ignore[misc]
    code = 401
    reason = "Unauthorized"


class _Unavailable(Error):  # type: ignore[misc]
    code = 503
    reason = "Service Unavailable"

    def to_response(self, ident: str | None = None) -> tuple[str, list[tuple[str, str]], bytes]:
        status, headers, body = super().to_response(ident)
        return status, [*headers, ("Retry-After", str(receive.RETRY_AFTER_S))], body


class _Request(HTTPRequestParser):  # type: ignore[misc]
    """A request while it arrives; rejected after its head if the body could not change the answer."""

    body_began = 0.0

    def received(self, data: bytes) -> int:
        consumed: int = super().received(data)
        if self.headers_finished and not self.body_began:
            self.body_began = time.monotonic()
            self._check_head()
        if (
            self.chunked
            and len(self.body_rcv.control_line + self.body_rcv.trailer) > _MAX_CHUNK_LINE
        ):
            self.refuse_with(BadRequest("a line between chunks is too long"))
        if self.error is not None:
            self.expect_continue = False  # otherwise waitress asks for the body
        return consumed

    def parse_header(self, header_plus: bytes) -> None:
        """Reject as malformed what waitress answers with 501 or aborts with an error in the log."""
        try:
            super().parse_header(header_plus)
        except (ValueError, TransferEncodingNotImplemented) as error:
            raise ParsingError(str(error)) from error

    def refuse_with(self, error: Error) -> None:
        """Answer with an error without waiting for the rest of the body."""
        self.error = error
        self.completed = True

    def _check_head(self) -> None:
        if self.error is not None or self.empty:
            return
        if self.chunked and "CONTENT_LENGTH" in self.headers:
            self.refuse_with(BadRequest("both Content-Length and Transfer-Encoding"))
        elif self.command == "POST" and self.path == receive.WEBHOOK_PATH:
            if not receive.is_well_formed(self.headers.get("X_HUB_SIGNATURE_256", "")):
                self.refuse_with(_Unauthorized("X-Hub-Signature-256 is missing or malformed"))
        elif self.chunked or self.content_length > _MAX_OTHER_BODY:
            self.refuse_with(RequestEntityTooLarge("only deliveries may be that large"))


class _Channel(HTTPChannel):  # type: ignore[misc]
    """One connection."""

    parser_class = _Request

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.idle_since = time.monotonic()
        super().__init__(*arguments, **options)

    def received(self, data: bytes) -> bool:
        request = self.request
        is_large = request is not None and request.body_bytes_received > _SMALL_BODY
        if is_large and self.server.count_buffered_bytes() > _MAX_BUFFERED:
            request.refuse_with(_Unavailable("too much is being received; deliver it again"))
        return bool(super().received(data))

    def service(self) -> None:
        super().service()
        self.idle_since = time.monotonic()

    def is_late(self, now: float) -> bool:
        """Whether its present step has taken longer than allowed."""
        if self.requests:
            return False
        if self.total_outbufs_len:
            return bool(time.time() - self.last_activity > _ANSWER_S)
        request = self.request
        if request is None or not request.headers_finished:
            return now - self.idle_since > _HEAD_S
        seconds = _BODY_S + request.body_bytes_received / _MiB
        return bool(now - request.body_began > min(seconds, _LONGEST_BODY_S))


class HttpServer(TcpWSGIServer):  # type: ignore[misc]
    """Waitress with limits on every client; `run` serves until SystemExit."""

    channel_class = _Channel

    def __init__(self, application: Any, listener: socket.socket) -> None:
        logging.getLogger("waitress").setLevel(logging.WARNING)
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        settings = Adjustments(
            sockets=[listener],
            threads=WORKER_THREADS,
            connection_limit=_MAX_CONNECTIONS,
            cleanup_interval=1,
            recv_bytes=64 * 1024,
            inbuf_overflow=_MAX_BODY_IN_MEMORY,
            max_request_header_size=_MAX_HEAD,
            max_request_body_size=receive.MAX_BODY_BYTES + 1,
            asyncore_use_poll=True,
            clear_untrusted_proxy_headers=False,  # the dashboard detects a proxy by them
            ident=None,
        )
        where = (listener.family, listener.type, listener.proto, listener.getsockname())
        super().__init__(
            application, _sock=listener, bind_socket=False, adj=settings, sockinfo=where
        )

    def maintenance(self, now: float) -> None:  # noqa: ARG002 - waitress's signature
        """Disconnect slow clients; waitress calls this once a second."""
        for channel in list(self.active_channels.values()):
            if channel.is_late(time.monotonic()):
                channel.will_close = True

    def handle_accept(self) -> None:
        """Accept a connection; if too many have not sent their request yet, close another one."""
        super().handle_accept()
        if len(self.active_channels) <= _MAX_SENDING:
            return
        sending = [c for c in self.active_channels.values() if not (c.requests or c.will_close)]
        if len(sending) > _MAX_SENDING:
            number = Counter(c.addr[0] for c in sending)
            max(sending, key=lambda c: (number[c.addr[0]], -c.idle_since)).will_close = True

    def count_buffered_bytes(self) -> int:
        """How many bytes of bodies are held, those of requests that are being answered included."""
        channels = list(self.active_channels.values())
        held = [r for c in channels for r in (c.request, *c.requests) if r is not None]
        return sum(r.body_bytes_received for r in held)
