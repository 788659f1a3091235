"""A backend that starts processes through an agent inside the box, if the engine's own way takes long.

Other processes in the box may forge the agent's answers or end it: that affects their own box alone.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from queue import Queue, SimpleQueue
from threading import Event, Lock, Thread

from regreen.adapters.sandbox import layout
from regreen.adapters.sandbox.backend import Backend, BackendGoneError, BackendProcess
from regreen.adapters.sandbox.docker.docker_agent import HEAD, HEAD_SIZE
from regreen.adapters.sandbox.process_watch import Stream

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
