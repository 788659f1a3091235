"""One box on any backend: runs monitored commands, kills the box as a whole, and never trusts its output.

Docker and bubblewrap differ only behind `Backend`.
"""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import resources
from queue import Queue, SimpleQueue
from secrets import token_hex
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Self

from regreen.adapters.sandbox import box_scripts, layout
from regreen.adapters.sandbox.backend import Backend, BackendGoneError, BackendProcess
from regreen.adapters.sandbox.docker.docker_agent import HEAD, HEAD_SIZE
from regreen.adapters.sandbox.process_watch import OutputDrain, Stream, watch_process
from regreen.domain.errors import Cancelled, OutsideError, UserError
from regreen.domain.models import BoxLimits, RunEnding, RunResult

# A backend that starts processes through an agent inside the box, if the engine's own way takes long.

_READY_S = 10.0
_PIECE_BYTES = 1 << 18
_MAX_FRAME_BYTES = 1 << 20
_MAX_QUEUED_CHUNKS = 64


class AgentClient:
    """Starts processes in a box; made by `start_relay`."""

    def __init__(self, agent: BackendProcess) -> None:
        self._agent = agent
        self._out: SimpleQueue[bytes | None] = SimpleQueue()
        self._lock = Lock()
        self._processes: dict[int, AgentProcess] = {}
        self._numbers = 0
        self.answered = Event()
        self.gone = False
        Thread(target=agent.feed_input, args=(iter(self._out.get, None),), daemon=True).start()
        Thread(target=self._read_frames, daemon=True, name="regreen-relay").start()

    def kill_processes(self) -> None:
        """End every other process of the box's user."""
        self._send_frame(b"K", 0, b"")

    def start_process(
        self, argv: Sequence[str], env: Mapping[str, str], stdin: bool
    ) -> AgentProcess:
        """Start a process; see `backend.Backend.start_process`.

        Raises:
            BackendGoneError: the agent has ended.
        """
        if self.gone:
            msg = "the agent in the box has ended"
            raise BackendGoneError(msg)
        request = json.dumps({"argv": list(argv), "env": dict(env), "stdin": stdin})
        with self._lock:
            self._numbers += 1
            process = self._processes[self._numbers] = AgentProcess(self, self._numbers)
        self._send_frame(b"R", process.number, request.encode("utf-8", "surrogateescape"))
        return process

    def send_input(self, number: int, chunk: bytes) -> None:
        """Send a piece of a process's standard input."""
        self._send_frame(b"I", number, chunk)

    def end_input(self, number: int) -> None:
        """End the standard input."""
        self._send_frame(b"E", number, b"")

    def close(self) -> None:
        """Make the agent exit."""
        self._out.put(None)

    def _send_frame(self, kind: bytes, number: int, content: bytes) -> None:
        self._out.put(struct.pack(HEAD, kind, number, len(content)) + content)

    def _read_frames(self) -> None:
        try:
            for kind, number, content in _parse_frames(self._agent.output_chunks()):
                if kind == b"H":
                    self.answered.set()
                with self._lock:
                    process = self._processes.get(number)
                if process is not None:
                    process.take_frame(kind, content)
        except (OSError, ValueError, struct.error):
            pass  # the box was destroyed under us, or something in it talks nonsense: it is gone either way
        finally:
            self.gone = True
            self.answered.set()
            self._out.put(None)  # the feeding thread ends too
            with self._lock:
                for process in self._processes.values():
                    process.take_frame(b"Z", b"")

    def forget_process(self, number: int) -> None:
        """Forget a process."""
        with self._lock:
            self._processes.pop(number, None)


class AgentProcess:
    """See `backend.BackendProcess`: a process that the agent started."""

    def __init__(self, relay: AgentClient, number: int) -> None:
        self.number = number
        self._relay = relay
        self._code: int | None = None
        # bounded, so that a flood stays in the box; whoever asked for the process drains it to the end
        self._chunks: Queue[tuple[Stream, bytes] | None] = Queue(_MAX_QUEUED_CHUNKS)

    def take_frame(self, kind: bytes, content: bytes) -> None:
        """Handle one frame of this process."""
        if kind == b"O":
            self._chunks.put((1, content))
        elif kind == b"X":
            self._chunks.put((2, content))
        elif kind == b"C":
            (self._code,) = struct.unpack(">i", content)
        elif kind == b"Z":
            self._chunks.put(None)

    def output_chunks(self) -> Iterator[tuple[Stream, bytes]]:
        """Its output until the end."""
        yield from iter(self._chunks.get, None)
        if self._code is not None:
            self._relay.forget_process(self.number)

    def feed_input(self, chunks: Iterable[bytes]) -> None:
        """Send its standard input, then the end of it."""
        for chunk in chunks:
            for at in range(0, len(chunk), _PIECE_BYTES):
                self._relay.send_input(self.number, chunk[at : at + _PIECE_BYTES])
        self._relay.end_input(self.number)

    def exit_code(self) -> int | None:
        """None while it runs; see `backend.BackendProcess.exit_code`."""
        if self._code is None and self._relay.gone:
            msg = "the agent in the box has ended"
            raise BackendGoneError(msg)
        if self._code == -1:
            msg = "the box had no room left for a process"
            raise BackendGoneError(msg)
        return None if self._code is None else self._code & 0xFF


def start_relay(cell: Backend) -> AgentClient | None:
    """An agent in this box; None if the box has no Python that could run it.

    Raises:
        BackendGoneError: the box has ended.
    """
    text = (
        resources.files("regreen.adapters.sandbox.docker")
        .joinpath("docker_agent.py")
        .read_text("utf-8")
    )
    argv = ["/bin/sh", "-c", 'exec python3 -I -S -c "$1"', "sh", f"{text}\nmain()\n"]
    relay = AgentClient(cell.start_process(argv, layout.command_environment(cell.path), True))
    if relay.answered.wait(_READY_S) and not relay.gone:
        return relay
    relay.close()
    return None


def _parse_frames(chunks: Iterable[tuple[Stream, bytes]]) -> Iterator[tuple[bytes, int, bytes]]:
    """The agent's frames. Its standard error holds tracebacks, no frames."""
    buffer = b""
    for stream, chunk in chunks:
        if stream == 2:
            continue
        buffer += chunk
        while len(buffer) >= HEAD_SIZE:
            kind, number, length = struct.unpack(HEAD, buffer[:HEAD_SIZE])
            if length > _MAX_FRAME_BYTES:
                raise ValueError
            if len(buffer) < HEAD_SIZE + length:
                break
            yield kind, number, buffer[HEAD_SIZE : HEAD_SIZE + length]
            buffer = buffer[HEAD_SIZE + length :]


class BackendBox:
    """See `ports.Box`."""

    def __init__(
        self, cell: Backend, limits: BoxLimits, variables: Mapping[str, str] | None = None
    ) -> None:
        self.cell = cell
        self._variables = dict(variables or {})
        self._limits = limits
        self._ooms = 0
        self._dead = ""
        self._cancelled = False
        self._relay: AgentClient | None = None
        self._asked_for_relay = cell.quick

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        cwd: str = box_scripts.WORK_DIR,
        stdin: bytes | None = None,
        cancel: Event | None = None,
    ) -> RunResult:
        """Run one command; see `ports.Box.run`.

        Raises:
            Cancelled: an earlier command of this box was cancelled.
            OutsideError: this box is gone.
            UserError: the command cannot be run anywhere (empty, or with a NUL byte).
        """
        layout.check_command(argv, env or {})
        return self.execute_raw(
            layout.in_shell(argv, cwd),
            timeout=timeout,
            env=env or {},
            stdin=None if stdin is None else (stdin,),
            cancel=cancel,
        )

    def execute_raw(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str],
        stdin: Iterable[bytes] | None = None,
        cancel: Event | None = None,
        tap: OutputDrain | None = None,
    ) -> RunResult:
        """Run argv unchanged, with a stream as its standard input and its output into `tap`."""
        self._refuse_if_dead()
        begun = time.monotonic()
        tap = tap or OutputDrain(self._limits.output, self._limits.flood)
        if cancel is not None and cancel.is_set():
            self._kill_backend("cancelled")
            return layout.make_run_result(
                "cancelled", None, tap, begun, "cancelled before it began"
            )
        try:
            running = self.cell.start_process(
                argv,
                layout.command_environment(self.cell.path) | self._variables | dict(env),
                stdin is not None,
            )
        except BackendGoneError as error:
            return self._result_of_lost_backend(
                tap, begun, f"the command could not be started: {error}"
            )
        tap.start_draining(running.output_chunks())
        feeder = _InputFeeder(running, stdin)
        ended = self._watch_command(running, tap, begun, timeout=timeout, cancel=cancel)
        if ended.ended not in layout.END_REASONS:
            feeder.raise_if_failed()
        return ended

    def _watch_command(
        self,
        running: BackendProcess,
        tap: OutputDrain,
        begun: float,
        *,
        timeout: float,
        cancel: Event | None,
    ) -> RunResult:
        """Wait for a command; killing it early destroys the box."""
        why = watch_process(
            tap, timeout=timeout, cancel=cancel, has_exited=lambda: _has_exited(running)
        )
        if why is not None:
            self._kill_backend(why)
            tap.wait_for_end(5.0)
            return layout.make_run_result(why, None, tap, begun, layout.END_REASONS[why])
        return self._result_at_exit(running, tap, begun)

    def reset_and_run(
        self,
        tree: Iterable[bytes],
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        cancel: Event | None = None,
    ) -> RunResult:
        """Empty the box, unpack `tree` in it, and run one command; see `ports.Box.reset_and_run`.

        Raises:
            Cancelled: an earlier command of this box was cancelled.
            OutsideError: this box is gone, or could not be made new.
        """
        layout.check_command(argv, env or {})
        self._refuse_if_dead()
        mark = token_hex(16)
        since = time.monotonic()
        tap = OutputDrain(self._limits.output, self._limits.flood)
        try:
            running = self._start_reset(mark, argv, self._variables | dict(env or {}))
        except BackendGoneError as error:
            return self._result_of_lost_backend(
                tap, since, f"the command could not be started: {error}"
            )
        begun = _StartMarker(mark)
        tap.start_draining(begun.after_marker(running.output_chunks()))
        feeder = _InputFeeder(running, tree)
        if not begun.wait_for_marker(tap.news, layout.HELPER_TIMEOUT_S, cancel):
            feeder.raise_if_failed()
            self._kill_backend("cancelled" if cancel is not None and cancel.is_set() else "timeout")
            if self._cancelled:
                return layout.make_run_result(
                    "cancelled", None, tap, since, layout.END_REASONS["cancelled"]
                )
            message = f"the box could not be made new: {tap.out.to_text()[-200:]}{tap.err.to_text()[-300:]}"
            raise OutsideError(message)
        return self._watch_command(running, tap, begun.at, timeout=timeout, cancel=cancel)

    def _start_reset(
        self, mark: str, argv: Sequence[str], env: Mapping[str, str]
    ) -> BackendProcess:
        """Start our script, through an agent in the box if the engine's own way takes long."""
        if not self._asked_for_relay:
            self._asked_for_relay = True
            self._relay = start_relay(self.cell)
        own = layout.command_environment(self.cell.path)
        if self._relay is None:
            return self.cell.start_process(
                layout.reset_command(mark, argv, env, kills=True), own, True
            )
        self._relay.kill_processes()
        return self._relay.start_process(
            layout.reset_command(mark, argv, env, kills=False), own, True
        )

    def read(self, path: str, limit: int = 1024 * 1024) -> bytes | None:
        """The first bytes of a regular file in the box; see `ports.Box.read`."""
        self._refuse_if_dead()
        if not layout.can_be_read(path, limit):
            return None
        tap = OutputDrain(limit, limit + 65536)
        read = self.execute_raw(
            layout.read_command(path, limit), timeout=layout.HELPER_TIMEOUT_S, env={}, tap=tap
        )
        return tap.out.to_bytes() if read.passed else None

    def write(self, files: Mapping[str, bytes]) -> None:
        """Put files into the box; see `ports.Box.write`.

        Raises:
            UserError: a path leads out of /work and of the home directory, or there is no room.
            OutsideError: the box could not take them (a folder is in the way).
        """
        for folder, tar in layout.pack_files(files).items():
            self._run_tar_script(["/bin/sh", "-c", box_scripts.WRITE_SCRIPT, "sh", folder], (tar,))

    def lay_out(self, tree: Iterable[bytes], *, from_setup: bool) -> None:
        """Unpack the tree at /work, together with the files that the environment's setup left there.

        Raises:
            UserError: there is no room for it.
            OutsideError: the box could not take it.
        """
        tar = layout.nonempty_stream(tree)
        if tar is not None or from_setup:
            kind = "none" if tar is None else "tree"
            self._run_tar_script(["/bin/sh", "-c", box_scripts.UNPACK_SCRIPT, "sh", kind], tar)

    def lay_out_file(self, path: str) -> None:
        """The same as `lay_out`, with the tar as a file that the box can see."""
        self._run_tar_script(["/bin/sh", "-c", box_scripts.UNPACK_SCRIPT, "sh", "tree", path], None)

    def _run_tar_script(self, argv: Sequence[str], tar: Iterable[bytes] | None) -> None:
        """Run our script that reads a tar stream; anything but exit 0 is an error."""
        done = self.execute_raw(argv, timeout=layout.HELPER_TIMEOUT_S, env={}, stdin=tar)
        if not done.passed:
            output = " ".join((done.stderr or done.stdout or done.detail).split())[-300:]
            if done.ended == "oom" or "No space left" in output or "Wrote only" in output:
                message = (
                    f"the tree does not fit into the box; give it more disk or memory ({output})"
                )
                raise UserError(message)
            message = f"files could not be put into the box ({done.ended}): {output}"
            raise OutsideError(message)

    def close(self) -> None:
        """Kill all processes and delete everything."""
        self._dead = self._dead or "it was closed"
        self.cell.destroy()

    def _result_at_exit(self, running: BackendProcess, tap: OutputDrain, begun: float) -> RunResult:
        try:
            code = running.exit_code()
        except BackendGoneError:
            return self._result_of_lost_backend(tap, begun, "the box ended while the command ran")
        if code != 0 and self._oom_happened():
            return layout.make_run_result(
                "oom", None, tap, begun, layout.out_of_memory(self._limits)
            )
        return layout.make_run_result("exit", code, tap, begun)

    def _oom_happened(self) -> bool:
        count = self.cell.oom_kills()
        happened = count > self._ooms
        self._ooms = max(count, self._ooms)
        return happened

    def _result_of_lost_backend(self, tap: OutputDrain, begun: float, detail: str) -> RunResult:
        """The result after the box ended by its memory limit or from outside."""
        ended: RunEnding = "infra"
        if self._oom_happened() or self.cell.died_of_memory():
            ended, detail = "oom", layout.out_of_memory(self._limits)
        self._dead = self._dead or detail
        self.cell.destroy()
        return layout.make_run_result(ended, None, tap, begun, detail)

    def _kill_backend(self, why: RunEnding) -> None:
        self._dead = layout.END_REASONS[why]
        self._cancelled = why == "cancelled"
        self.cell.destroy()

    def _refuse_if_dead(self) -> None:
        if self._cancelled:
            msg = "this box was cancelled; nothing can run in it any more"
            raise Cancelled(msg)
        if self._dead:
            message = f"this box is gone: {self._dead}"
            raise OutsideError(message)


class _StartMarker:
    """Detects the mark in the output: text before it is our script's, text after it the command's."""

    def __init__(self, mark: str) -> None:
        self.at = 0.0
        self._mark = f"{mark}\n".encode()
        self._seen = Event()

    def after_marker(
        self, chunks: Iterable[tuple[Stream, bytes]]
    ) -> Iterator[tuple[Stream, bytes]]:
        """The stream, without the mark."""
        head = b""
        for stream, chunk in chunks:
            if stream == 2 or self._seen.is_set():
                yield stream, chunk
                continue
            head += chunk
            if head.startswith(self._mark):
                self.at = time.monotonic()
                self._seen.set()
                yield stream, head[len(self._mark) :]
            elif not self._mark.startswith(head):
                yield stream, head
                head = b""

    def wait_for_marker(self, ended: Event, timeout: float, cancel: Event | None) -> bool:
        """Whether the mark came before the stream's end, a cancel, or the timeout."""
        deadline = time.monotonic() + timeout
        while not self._seen.wait(0.05):
            if ended.is_set() or (cancel is not None and cancel.is_set()):
                break
            if time.monotonic() >= deadline:
                break
        return self._seen.is_set()


class _InputFeeder:
    """Sends standard input from its own thread, so that a command that does not read cannot block us."""

    def __init__(self, running: BackendProcess, chunks: Iterable[bytes] | None) -> None:
        self._error: Exception | None = None
        if chunks is not None:
            Thread(
                target=self._send_input, args=(running, chunks), daemon=True, name="regreen-feed"
            ).start()

    def raise_if_failed(self) -> None:
        """Raise an error of the stream's source (git, a file of the tree) in the caller."""
        if self._error is not None:
            raise self._error

    def _send_input(self, running: BackendProcess, chunks: Iterable[bytes]) -> None:
        try:
            running.feed_input(chunks)
        except Exception as error:  # noqa: BLE001 - carried over to the thread that waits
            self._error = error
            with suppress(OSError):
                running.feed_input(())


def _has_exited(running: BackendProcess) -> bool:
    try:
        return running.exit_code() is not None
    except BackendGoneError:
        return True
