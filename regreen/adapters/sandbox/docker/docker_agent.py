"""Runs inside a box whose engine starts processes slowly: starts them itself, and forwards their streams.

The box's Python runs this text with `-c`, so it imports the standard library alone and supports
Python 3.6. It talks in frames (kind, number, length, content) over its own standard input and output. From the host:
K end every other process, R run (JSON), I input, E end of input. To the host: H here, O output, X errors, C exit
code, Z both streams ended.
"""

import _thread
import contextlib
import ctypes
import json
import os
import select
import signal
import struct

TYPE_CHECKING = False  # `typing` would double the time this takes to start
if TYPE_CHECKING:
    from typing import Any

HEAD = ">cII"
HEAD_SIZE = 9


class Agent:
    """The running processes, their streams, and the ends of their standard input."""

    def __init__(self) -> None:
        self.host_out = os.dup(1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        self.children: dict[int, int] = {}  # pid -> number
        self.streams: dict[int, tuple[int, bytes]] = {}  # descriptor -> number, kind
        self.inputs: dict[int, int] = {}  # number -> descriptor
        self.wake, woken = os.pipe()
        self.woken = woken
        os.set_blocking(woken, False)

    def send(self, kind: bytes, number: int, content: bytes = b"") -> None:
        """Send one frame to the host; only the main thread sends."""
        data = memoryview(struct.pack(HEAD, kind, number, len(content)) + content)
        while data:
            data = data[os.write(self.host_out, data) :]

    def listen(self) -> None:
        """Handle the host's frames until it is gone, then exit."""
        while True:
            head = exactly(HEAD_SIZE)
            kind, number, length = struct.unpack(HEAD, head)
            content = exactly(length)
            if kind == b"K":
                with contextlib.suppress(OSError):
                    os.kill(-1, signal.SIGKILL)  # everyone of this user's but ourselves
            elif kind == b"R":
                self.begin(number, json.loads(content.decode("utf-8", "surrogateescape")))
            elif kind == b"I":
                self.feed(number, content)
            elif kind == b"E" and number in self.inputs:
                os.close(self.inputs.pop(number))

    def begin(self, number: int, request: "dict[str, Any]") -> None:
        """Start a process and watch its streams."""
        into, out, err = os.pipe(), os.pipe(), os.pipe()
        try:
            child = os.fork()
        except OSError:
            child = -1
        if child == 0:
            become(request, (into[0], out[1], err[1]))
        for end in (into[0], out[1], err[1]):
            os.close(end)
        if request["stdin"]:
            self.inputs[number] = into[1]
        else:
            os.close(into[1])
        self.streams[out[0]] = (number, b"O")
        self.streams[err[0]] = (number, b"X")
        self.children[child] = number
        os.write(self.woken, b"+")

    def feed(self, number: int, content: bytes) -> None:
        """Write to a process's standard input; one that no longer reads is no error."""
        data = memoryview(content)
        while data and number in self.inputs:
            try:
                data = data[os.write(self.inputs[number], data) :]
            except OSError:
                os.close(self.inputs.pop(number))

    def relay(self) -> None:
        """Forward streams and exit codes for ever."""
        while True:
            ready, _, _ = select.select([self.wake, *self.streams], [], [])
            for end in ready:
                if end == self.wake:
                    os.read(self.wake, 4096)
                    self.reap()
                    continue
                number, kind = self.streams[end]
                chunk = os.read(end, 65536)
                if chunk:
                    self.send(kind, number, chunk)
                    continue
                os.close(end)
                del self.streams[end]
                if all(owner != number for owner, _ in self.streams.values()):
                    self.send(b"Z", number)

    def reap(self) -> None:
        """Report ended processes to the host."""
        if -1 in self.children:
            self.send(b"C", self.children.pop(-1), struct.pack(">i", -1))
        while True:
            try:
                child, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if child == 0:
                return
            if child in self.children:
                code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
                self.send(b"C", self.children.pop(child), struct.pack(">i", code))


def become(request: "dict[str, Any]", streams: "tuple[int, int, int]") -> None:
    """In the child: become the requested process."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        for index, stream in enumerate(streams):
            os.dup2(stream, index)
        os.closerange(3, 4096)
        os.chdir("/")
        os.execve(request["argv"][0], request["argv"], request["env"])  # noqa: S606 - this is the sandbox
    finally:
        os._exit(128)


def exactly(count: int) -> bytes:
    """Read this many bytes from the host; exit if it is gone."""
    parts = []
    while count:
        chunk = os.read(0, min(count, 1 << 20))
        if not chunk:
            os._exit(0)
        parts.append(chunk)
        count -= len(chunk)
    return b"".join(parts)


def main() -> None:
    """Serve the host."""
    # PR_SET_DUMPABLE 0: processes of the same user may not open our memory or descriptors through /proc.
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    agent = Agent()
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(agent.woken)
    agent.send(b"H", 0)
    _thread.start_new_thread(agent.listen, ())
    agent.relay()
