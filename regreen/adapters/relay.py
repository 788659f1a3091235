"""A cell that starts processes through an agent inside it, where the engine's own way takes long.

What runs beside the agent may forge its answers or end it: that fools or ends its own box alone.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from queue import Queue, SimpleQueue
from threading import Event, Lock, Thread

from regreen.adapters import boxes
from regreen.adapters.box_agent import HEAD, HEAD_SIZE
from regreen.adapters.cell import Cell, CellGoneError, Running
from regreen.adapters.watch import Stream

_READY_S = 10.0
_PIECE = 1 << 18
_LONGEST = 1 << 20
_HELD = 64


class Relay:
    """Starts processes in a cell; made by `start_relay`."""

    def __init__(self, agent: Running) -> None:
        self._agent = agent
        self._out: SimpleQueue[bytes | None] = SimpleQueue()
        self._lock = Lock()
        self._processes: dict[int, Relayed] = {}
        self._numbers = 0
        self.answered = Event()
        self.gone = False
        Thread(target=agent.feed, args=(iter(self._out.get, None),), daemon=True).start()
        Thread(target=self._listen, daemon=True, name="regreen-relay").start()

    def clear(self) -> None:
        """End every other process of the box's user."""
        self._send(b"K", 0, b"")

    def start(self, argv: Sequence[str], env: Mapping[str, str], stdin: bool) -> Relayed:
        """Start a process; see `cell.Cell.start`.

        Raises:
            CellGoneError: the agent has ended.
        """
        if self.gone:
            msg = "the agent in the box has ended"
            raise CellGoneError(msg)
        request = json.dumps({"argv": list(argv), "env": dict(env), "stdin": stdin})
        with self._lock:
            self._numbers += 1
            process = self._processes[self._numbers] = Relayed(self, self._numbers)
        self._send(b"R", process.number, request.encode("utf-8", "surrogateescape"))
        return process

    def send_input(self, number: int, chunk: bytes) -> None:
        """A piece of a process's standard input."""
        self._send(b"I", number, chunk)

    def end_input(self, number: int) -> None:
        """The end of it."""
        self._send(b"E", number, b"")

    def close(self) -> None:
        """Let the agent end."""
        self._out.put(None)

    def _send(self, kind: bytes, number: int, content: bytes) -> None:
        self._out.put(struct.pack(HEAD, kind, number, len(content)) + content)

    def _listen(self) -> None:
        try:
            for kind, number, content in _frames(self._agent.chunks()):
                if kind == b"H":
                    self.answered.set()
                with self._lock:
                    process = self._processes.get(number)
                if process is not None:
                    process.take(kind, content)
        except (OSError, ValueError, struct.error):
            pass  # the box was destroyed under us, or something in it talks nonsense: it is gone either way
        finally:
            self.gone = True
            self.answered.set()
            self._out.put(None)  # the feeding thread ends too
            with self._lock:
                for process in self._processes.values():
                    process.take(b"Z", b"")

    def forget(self, number: int) -> None:
        """Nothing more is wanted of a process."""
        with self._lock:
            self._processes.pop(number, None)


class Relayed:
    """See `cell.Running`: a process that the agent started."""

    def __init__(self, relay: Relay, number: int) -> None:
        self.number = number
        self._relay = relay
        self._code: int | None = None
        # bounded, so that a flood stays in the box; whoever asked for the process drains it to the end
        self._chunks: Queue[tuple[Stream, bytes] | None] = Queue(_HELD)

    def take(self, kind: bytes, content: bytes) -> None:
        """One frame that concerns it."""
        if kind == b"O":
            self._chunks.put((1, content))
        elif kind == b"X":
            self._chunks.put((2, content))
        elif kind == b"C":
            (self._code,) = struct.unpack(">i", content)
        elif kind == b"Z":
            self._chunks.put(None)

    def chunks(self) -> Iterator[tuple[Stream, bytes]]:
        """What it prints, until the end."""
        yield from iter(self._chunks.get, None)
        if self._code is not None:
            self._relay.forget(self.number)

    def feed(self, chunks: Iterable[bytes]) -> None:
        """Send its standard input, then the end of it."""
        for chunk in chunks:
            for at in range(0, len(chunk), _PIECE):
                self._relay.send_input(self.number, chunk[at : at + _PIECE])
        self._relay.end_input(self.number)

    def exit_code(self) -> int | None:
        """None while it runs; see `cell.Running.exit_code`."""
        if self._code is None and self._relay.gone:
            msg = "the agent in the box has ended"
            raise CellGoneError(msg)
        if self._code == -1:
            msg = "the box had no room left for a process"
            raise CellGoneError(msg)
        return None if self._code is None else self._code & 0xFF


def start_relay(cell: Cell) -> Relay | None:
    """An agent in this cell; None where the box has no Python that could run it.

    Raises:
        CellGoneError: the cell has ended.
    """
    text = resources.files("regreen.adapters").joinpath("box_agent.py").read_text("utf-8")
    argv = ["/bin/sh", "-c", 'exec python3 -I -S -c "$1"', "sh", f"{text}\nmain()\n"]
    relay = Relay(cell.start(argv, boxes.environment(cell.path), True))
    if relay.answered.wait(_READY_S) and not relay.gone:
        return relay
    relay.close()
    return None


def _frames(chunks: Iterable[tuple[Stream, bytes]]) -> Iterator[tuple[bytes, int, bytes]]:
    """The agent's frames. What it says on standard error is a traceback, and no frame."""
    held = b""
    for stream, chunk in chunks:
        if stream == 2:
            continue
        held += chunk
        while len(held) >= HEAD_SIZE:
            kind, number, length = struct.unpack(HEAD, held[:HEAD_SIZE])
            if length > _LONGEST:
                raise ValueError
            if len(held) < HEAD_SIZE + length:
                break
            yield kind, number, held[HEAD_SIZE : HEAD_SIZE + length]
            held = held[HEAD_SIZE + length :]
