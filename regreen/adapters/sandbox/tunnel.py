"""Carries TCP connections over one pair of byte streams. This text runs on the host and, with `-c`, beside a box.

It imports the standard library alone and supports Python 3.6. Frames are (kind, connection, length, content):
H ready, O open, D data, E end, A bytes taken. A side sends at most `WINDOW` bytes of a
connection that the other side has not taken, so that one slow reader blocks no other.
"""

import contextlib
import os
import queue
import socket
import struct
import sys
import threading

TYPE_CHECKING = False  # `typing` would double the time this takes to start
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

HEAD = ">cII"
HEAD_SIZE = 9
WINDOW = 1 << 20
PIECE = 1 << 16


class Tunnel:
    """One end. `write` sends a whole frame; `opened` accepts a connection that the other end opens."""

    def __init__(
        self, write: "Callable[[bytes], object]", opened: "Callable[[socket.socket], object]"
    ) -> None:
        self.ready = threading.Event()
        self._write = write
        self._opened = opened
        self._lock = threading.Lock()
        self._connections = {}  # type: dict[int, Connection]

    def send(self, kind: bytes, number: int, content: bytes = b"") -> None:
        """Send one frame."""
        with self._lock:
            self._write(struct.pack(HEAD, kind, number, len(content)) + content)

    def carry(self, number: int, sock: socket.socket, kind: bytes = b"") -> None:
        """Forward a connection until both sides have ended it; `kind` is sent first."""
        connection = self._connections[number] = Connection(self, number, sock)
        if kind:
            self.send(kind, number)
        connection.start()

    def receive(self, chunks: "Iterable[bytes]") -> None:
        """Handle the other end's frames until they end or are invalid; then end every connection."""
        buffer = b""
        try:
            for chunk in chunks:
                buffer += chunk
                while len(buffer) >= HEAD_SIZE:
                    kind, number, length = struct.unpack(HEAD, buffer[:HEAD_SIZE])
                    if length > PIECE:
                        return
                    if len(buffer) < HEAD_SIZE + length:
                        break
                    if not self._take(kind, number, buffer[HEAD_SIZE : HEAD_SIZE + length]):
                        return
                    buffer = buffer[HEAD_SIZE + length :]
        finally:
            for connection in list(self._connections.values()):
                connection.take(b"E", b"")

    def forget(self, number: int) -> None:
        """Remove an ended connection."""
        self._connections.pop(number, None)

    def _take(self, kind: bytes, number: int, content: bytes) -> bool:
        """Handle a frame; return False if it is invalid."""
        if kind == b"H":
            self.ready.set()
        elif kind == b"O" and number not in self._connections:
            near, far = socket.socketpair()
            self.carry(number, near)
            self._opened(far)
        elif number in self._connections:
            return self._connections[number].take(kind, content)
        return True


class Connection:
    """One forwarded connection: bytes read become frames, frames received become bytes."""

    def __init__(self, tunnel: Tunnel, number: int, sock: socket.socket) -> None:
        self._tunnel = tunnel
        self._number = number
        self._sock = sock
        self._changed = threading.Condition()
        self._credit = WINDOW
        self._held = 0
        self._waiting = queue.Queue()  # type: queue.Queue[bytes]
        self._reader = threading.Thread(target=self._read, daemon=True)

    def start(self) -> None:
        """Begin to read and to write."""
        self._reader.start()
        threading.Thread(target=self._write, daemon=True).start()

    def take(self, kind: bytes, content: bytes) -> bool:
        """Handle a frame of this connection; return False if it is invalid."""
        with self._changed:
            if kind == b"D":
                self._held += len(content)
            elif kind == b"A":
                self._credit += struct.unpack(">I", content)[0]
                self._changed.notify_all()
        if kind in (b"D", b"E"):
            self._waiting.put(content)
        return self._held <= WINDOW and self._credit <= WINDOW

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                with self._changed:
                    while self._credit == 0:
                        self._changed.wait()
                    room = min(self._credit, PIECE)
                chunk = self._sock.recv(room)
                if not chunk:
                    break
                with self._changed:
                    self._credit -= len(chunk)
                self._tunnel.send(b"D", self._number, chunk)
        self._tunnel.send(b"E", self._number)

    def _write(self) -> None:
        with contextlib.suppress(OSError):
            for chunk in iter(self._waiting.get, b""):
                self._sock.sendall(chunk)
                with self._changed:
                    self._held -= len(chunk)
                self._tunnel.send(b"A", self._number, struct.pack(">I", len(chunk)))
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        with self._changed:
            self._credit = self._credit or 1  # a reader that waits for room sees the end
            self._changed.notify_all()
        self._reader.join()
        self._tunnel.forget(self._number)
        self._sock.close()


def main(port: int) -> None:
    """Beside a box: listen on its loopback, and forward connections over standard input and output."""

    def write(frame: bytes) -> None:
        data = memoryview(frame)
        while data:
            data = data[os.write(1, data) :]

    def listen() -> None:
        for number in range(1, 1 << 31):
            tunnel.carry(number, server.accept()[0], b"O")

    tunnel = Tunnel(write, lambda sock: sock.close())
    server = socket.socket()
    server.bind(("127.0.0.1", port))
    server.listen(128)
    tunnel.send(b"H", 0)
    threading.Thread(target=listen, daemon=True).start()
    tunnel.receive(iter(lambda: os.read(0, 1 << 16), b""))
    sys.exit(0)
