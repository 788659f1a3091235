"""Work on untrusted data in child processes that have limits: on CPU time, time, memory and the size of the answer.

`run_in_child` is for everybody. It hands a function to a fork server: a process that has our modules loaded, no
credential in its environment and one thread, and therefore forks cheaply and safely. `run_in_children` is for a
function that already runs in such a child: it forks once more for each call, and the children share what their parent
has read.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib
import json
import logging
import os
import pickle
import resource
import selectors
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import BinaryIO, NoReturn, TypeVar, TypeVarTuple

from regreen.domain.errors import AnalysisFailed, Cancelled, OutsideError, UserError

_Ts = TypeVarTuple("_Ts")
_R = TypeVar("_R")
_log = logging.getLogger(__name__)
_BYTES_PER_MIB = 1024 * 1024
_LOOK_SECONDS = 0.1
_GRACE_SECONDS = 2.0
_MAX_IDLE = 2
_KEPT_ENVIRONMENT = (
    "PATH",
    "HOME",
    "REGREEN_HOME",
    "TMPDIR",
    "LANG",
    "LC_ALL",
    "TZ",
    "SSL_CERT_FILE",
)
_PR_SET_PDEATHSIG = 1
_SERVER_CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from regreen.isolation import serve_calls; serve_calls()"
)


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """What one child may use: seconds of CPU, seconds altogether, MiB of memory, MiB of its result.

    CPU and memory hold for the child and for each process that it starts.
    """

    cpu: int = 20
    seconds: int = 240
    memory: int = 512
    result: int = 64


DEFAULT_LIMITS = ChildLimits()


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds of CPU that several children share. What a child has started, and waited for, counts as its own."""

    cpu: int
    spent: list[float] = field(default_factory=list)

    def limit(self, limits: ChildLimits) -> ChildLimits:
        """The limits of the next child: no more CPU time than is left.

        Raises:
            AnalysisFailed: nothing is left.
        """
        left = round(self.cpu - sum(self.spent))
        if left <= 0:
            message = f"not started: the {self.cpu} s of CPU time for all of them are used up"
            raise AnalysisFailed(message)
        return replace(limits, cpu=min(limits.cpu, left))


@dataclass(frozen=True, slots=True)
class ChildCall:
    """A function to call in a child of its own. Function, arguments and result must be picklable."""

    function: Callable[..., object]
    args: tuple[object, ...]
    limits: ChildLimits


def run_in_child(
    function: Callable[[*_Ts], _R],
    *args: *_Ts,
    limits: ChildLimits = DEFAULT_LIMITS,
    cancel: threading.Event | None = None,
    budget: Budget | None = None,
) -> _R:
    """Call `function` in a child process and return what it returns. Safe from any thread.

    In a child, `function` is called where it is. The function must be importable by its name; arguments and result
    must be picklable. What the child takes of CPU time is spent from `budget`.

    Raises:
        AnalysisFailed: the child reached a limit, died, or raised what is a bug (logged with its traceback); or
            nothing of the budget is left.
        Cancelled: `cancel` was set; the child has been ended.
        UserError: as the function raised it.
        OutsideError: as the function raised it.
    """
    if _server_pool.is_child:
        return function(*args)
    if budget is not None:
        limits = budget.limit(limits)
    server = _server_pool.take_server()
    try:
        ended = server.run_call(ChildCall(function, args, limits), cancel)
    except BaseException:
        server.close()
        raise
    _server_pool.return_server(server)
    if budget is not None:
        budget.spent.append(ended.cpu)
    return ended.get_value()  # type: ignore[return-value]


def start_server(module: str) -> None:
    """Have a fork server import a module while this process goes on; the next `run_in_child` finds it ready.

    It is worth its start where a call is sure to follow: otherwise the two import one after the other.
    """
    if not _server_pool.is_child:
        server = _ForkServer()
        with suppress(AnalysisFailed):
            server.send_call(module, None)
        _server_pool.return_server(server)


@contextmanager
def name_failed_input(what: str) -> Iterator[None]:
    """Name what was read in the reason of an `AnalysisFailed`."""
    try:
        yield
    except AnalysisFailed as error:
        message = f"{what} could not be read: {error}"
        raise AnalysisFailed(message) from error


def run_in_children(
    calls: Sequence[ChildCall], *, concurrent: int, budget: Budget | None = None
) -> list[ChildResult]:
    """Fork a child for each call, `concurrent` at a time. Only inside of a child that `run_in_child` has made.

    Once `budget` is used up, the calls that are left are not made; each is ended with that as its reason.
    """
    if not _server_pool.is_child:
        message = "run_in_children forks, which is safe only in a process with one thread"
        raise RuntimeError(message)
    return _fork_each(calls, concurrent, budget=budget)


@dataclass(frozen=True, slots=True)
class ChildResult:
    """How a child ended: its wait status, the answer that it had written until then (pickled), its CPU seconds."""

    status: int
    answer: bytes
    limits: ChildLimits
    cpu: float = 0.0

    def get_value(self) -> object:
        """What the function returned.

        Raises:
            AnalysisFailed: it returned nothing; see `run_in_child` for this and for other errors.
        """
        if len(self.answer) > self.limits.result * _BYTES_PER_MIB:
            message = f"its result is larger than {self.limits.result} MiB"
            raise AnalysisFailed(message)
        if os.WIFSIGNALED(self.status):
            raise AnalysisFailed(self._signal_reason(os.WTERMSIG(self.status)))
        if self.status != 0:
            message = f"ended with status {os.waitstatus_to_exitcode(self.status)}"
            raise AnalysisFailed(message)
        if not self.answer:
            raise AnalysisFailed("ended without an answer")
        value, error, trace = pickle.loads(self.answer)  # noqa: S301 - written by our own code
        if trace:
            _log.error("a function failed in its own process:\n%s", trace)
        if error is not None:
            raise error
        return value

    def _signal_reason(self, number: int) -> str:
        match number:
            case signal.SIGXCPU:
                return f"took more than {self.limits.cpu} s of CPU time"
            case signal.SIGALRM:
                return f"took more than {self.limits.seconds} s"
            case signal.SIGKILL:
                return "was killed, perhaps because memory ran out"
            case _:
                return f"was ended by signal {number} ({signal.strsignal(number)})"


class _ForkServer:
    """One process that forks a child for each call, one call at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-c",
                _SERVER_CODE,
                json.dumps([*filter(os.path.isabs, sys.path)]),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={k: v for k, v in os.environ.items() if k in _KEPT_ENVIRONMENT},
            cwd="/",
            start_new_session=True,
        )
        assert self._process.stdin is not None  # noqa: S101 - PIPE was asked for
        assert self._process.stdout is not None  # noqa: S101
        self._in, self._out = self._process.stdin, self._process.stdout
        self.owner = os.getpid()

    def send_call(self, module: str, call: ChildCall | None) -> None:
        """Have it import a module, and then run a call, if there is one."""
        try:
            pickle.dump((module, call), self._in)
            self._in.flush()
        except BrokenPipeError:
            raise AnalysisFailed("its process could not be started, or was killed") from None

    def run_call(self, call: ChildCall, cancel: threading.Event | None) -> ChildResult:
        """Have a child run this, and wait until it has ended."""
        # the server itself does not take apart what may be large
        packed = ChildCall(
            _run_pickled_call, (pickle.dumps((call.function, call.args)),), call.limits
        )
        self.send_call(call.function.__module__, packed)
        with selectors.DefaultSelector() as selector:
            selector.register(self._out, selectors.EVENT_READ)
            while True:
                if cancel is not None and cancel.is_set():
                    raise Cancelled("the work was stopped")
                if selector.select(None if cancel is None else _LOOK_SECONDS):
                    break
        try:
            ended: ChildResult = pickle.load(self._out)  # noqa: S301 - our own process
        except EOFError:
            raise AnalysisFailed("its process could not be started, or was killed") from None
        return ended

    def is_alive(self) -> bool:
        """Whether it can take a call."""
        return self._process.poll() is None

    def close(self) -> None:
        """End it, and the child that it waits for."""
        for pipe in (self._in, self._out):
            with suppress(OSError):
                pipe.close()
        try:
            self._process.wait(2 * _GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class _ForkServerPool:
    """The fork servers that wait for a call, and whether this process is itself a child."""

    def __init__(self) -> None:
        self.is_child = False
        self._lock = threading.Lock()
        self._idle: list[_ForkServer] = []

    def take_server(self) -> _ForkServer:
        """An idle server, or a new one."""
        with self._lock:
            while self._idle:
                server = self._idle.pop()
                # a process that was forked from ours must not use our pipes
                if server.owner != os.getpid():
                    continue
                if server.is_alive():
                    return server
                server.close()
        return _ForkServer()

    def return_server(self, server: _ForkServer) -> None:
        """Keep it for the next call."""
        with self._lock:
            if len(self._idle) < _MAX_IDLE:
                self._idle.append(server)
                return
        server.close()

    def close_all(self) -> None:
        """End the fork servers of this process."""
        while self._idle:
            if (server := self._idle.pop()).owner == os.getpid():
                server.close()


_server_pool = _ForkServerPool()
atexit.register(_server_pool.close_all)


def serve_calls() -> None:
    """The fork server's side: take a call, fork a child for it, write how it ended; until no more calls come."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not stand between the answers
    with suppress(EOFError, BrokenPipeError):
        while True:
            module, call = pickle.load(requests)  # noqa: S301 - our own process
            importlib.import_module(module)
            if call is None:
                continue
            pickle.dump(_fork_each([call], 1, (requests, answers))[0], answers)
            answers.flush()


def _run_pickled_call(data: bytes) -> object:
    function, args = pickle.loads(data)  # noqa: S301 - our own process
    return function(*args)


class _StoppedBySignal(BaseException):
    """This process was asked to end while it waited for its children."""


@dataclass(slots=True)
class _ChildProcess:
    """A child that runs, the pipe it answers on, and what has come so far."""

    pid: int
    pipe: int
    limits: ChildLimits
    chunks: list[bytes] = field(default_factory=list)
    size: int = 0
    cpu: float = 0.0

    def read_chunk_or_finish(self) -> ChildResult | None:
        """Take what has come; how the child ended, when it has."""
        chunk = os.read(self.pipe, 1 << 16)
        self.chunks.append(chunk)
        self.size += len(chunk)
        status = 0
        if self.size > self.limits.result * _BYTES_PER_MIB:
            self.kill()
        elif chunk:
            return None
        else:
            status = self._wait(0)[1]
            self._send_signal(signal.SIGKILL)  # what it started and left behind
        return ChildResult(status, b"".join(self.chunks), self.limits, self.cpu)

    def kill(self) -> None:
        """End it and what it started: first so that it can end its own children, then by force."""
        self._send_signal(signal.SIGTERM)
        deadline = time.monotonic() + _GRACE_SECONDS
        gone = 0
        while not gone and time.monotonic() < deadline:
            time.sleep(0.01)
            gone = self._wait(os.WNOHANG)[0]
        self._send_signal(signal.SIGKILL)
        if not gone:
            self._wait(0)

    def _wait(self, options: int) -> tuple[int, int]:
        pid, status, usage = os.wait4(self.pid, options)
        self.cpu = usage.ru_utime + usage.ru_stime
        return pid, status

    def _send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


def _fork_each(
    calls: Sequence[ChildCall],
    concurrent: int,
    asker: tuple[BinaryIO, ...] = (),
    budget: Budget | None = None,
) -> list[ChildResult]:
    """Run calls in children of this process; `asker` are the pipes to who asked.

    Nothing comes from there during a call, so what can be read is its end, and ours.
    """
    waiting = list(enumerate(calls))[::-1]
    ended: dict[int, ChildResult] = {}
    running: dict[int, tuple[int, _ChildProcess]] = {}
    handled = (signal.SIGTERM, signal.SIGALRM)
    before = [signal.signal(number, _raise_stopped) for number in handled]
    try:
        with selectors.PollSelector() as selector:
            for pipe in asker[:1]:
                selector.register(pipe, selectors.EVENT_READ)
            while waiting or running:
                while waiting and len(running) < concurrent:
                    at, call = waiting.pop()
                    if budget is not None:
                        try:
                            call = replace(call, limits=budget.limit(call.limits))
                        except AnalysisFailed as error:
                            ended[at] = ChildResult(0, pickle.dumps((None, error, "")), call.limits)
                            continue
                    child = _fork_child(call, [*asker, *running])
                    running[child.pipe] = at, child
                    selector.register(child.pipe, selectors.EVENT_READ)
                for key, _ in selector.select() if running else ():
                    if key.fileobj in asker:
                        raise BrokenPipeError
                    at, child = running[key.fd]
                    if (how := child.read_chunk_or_finish()) is not None:
                        ended[at] = how
                        if budget is not None:
                            budget.spent.append(how.cpu)
                        selector.unregister(child.pipe)
                        del running[child.pipe]
                        os.close(child.pipe)
    finally:
        for _, child in running.values():
            child.kill()
        for number, handler in zip(handled, before, strict=True):
            signal.signal(number, handler)
    return [ended[at] for at in range(len(calls))]


def _raise_stopped(number: int, _frame: FrameType | None) -> NoReturn:
    raise _StoppedBySignal(number)


def _fork_child(call: ChildCall, inherited: Iterable[BinaryIO | int]) -> _ChildProcess:
    reader, writer = os.pipe()
    parent = os.getpid()
    if pid := os.fork():
        os.close(writer)
        with suppress(OSError):
            os.setpgid(pid, pid)
        return _ChildProcess(pid, reader, call.limits)
    try:
        for pipe in inherited:
            os.close(pipe if isinstance(pipe, int) else pipe.fileno())
        os.close(reader)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        _apply_limits(call.limits, parent)
        _server_pool.is_child = True
        answer = _run_call(call)
        with os.fdopen(writer, "wb") as written:
            written.write(answer)
        os._exit(0)
    except _StoppedBySignal as stopped:
        signal.signal(stopped.args[0], signal.SIG_DFL)
        os.kill(os.getpid(), stopped.args[0])
    finally:
        os._exit(1)


def _run_call(call: ChildCall) -> bytes:
    """What came of a call: a value, or an error, with its traceback where it is a bug."""
    try:
        return pickle.dumps((call.function(*call.args), None, ""))
    except (UserError, OutsideError) as error:
        return pickle.dumps((None, error, ""))
    except MemoryError:
        failed, trace = AnalysisFailed(f"needed more than {call.limits.memory} MiB of memory"), ""
    except Exception as error:  # noqa: BLE001 - a bug: it is logged, and ends this call alone
        failed = AnalysisFailed(f"failed: {type(error).__name__}")
        trace = _escape_control(traceback.format_exc()[-8000:])
    return pickle.dumps((None, failed, trace))


def _escape_control(text: str) -> str:
    """The text without what steers a terminal: what was read stands in the message of an error."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def _apply_limits(limits: ChildLimits, parent: int) -> None:
    with suppress(OSError):
        os.setpgid(0, 0)
    for number in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)
        with suppress(OSError):  # where memory runs out all the same, we go before our parent
            Path("/proc/self/oom_score_adj").write_text("500")
    wanted = (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, limits.cpu),
        (resource.RLIMIT_DATA, limits.memory * _BYTES_PER_MIB),
    )
    for what, most in wanted:
        hard = resource.getrlimit(what)[1]
        soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (soft, hard))
    signal.alarm(limits.seconds)
