"""Runs inside a bubblewrap box, as its first process: starts what the host asks for, reaps what is left behind.

Its text is handed to the box's Python with `-c`, so it imports the standard library alone and understands
Python 3.6. Requests come over one socket, as length-prefixed JSON with the process's three streams attached; the
answer is the exit code. When the socket ends, the host is gone: the agent exits, and the kernel ends the box.
"""

import array
import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import struct

TYPE_CHECKING = False  # `typing` would double the time this takes to start
if TYPE_CHECKING:
    from typing import Any


def main(number: int) -> None:
    """Serve the socket with this descriptor until it ends."""
    # PR_SET_DUMPABLE 0: processes of the same user may not open our memory or descriptors through /proc.
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    host = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, number)
    wake, woken = os.pipe()
    for end in (wake, woken, number):
        os.set_inheritable(end, False)
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken)
    ours: dict[int, int] = {}
    send(host, {"ready": 1})
    while True:
        ready, _, _ = select.select([number, wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
            reap(host, ours)
        if number in ready:
            request, streams = receive(host)
            if request is None:
                os._exit(0)
            try:
                ours[spawn(request, streams)] = request["id"]
            except OSError:  # no process left: the host's word for it is -1
                send(host, {"id": request["id"], "code": -1})
            for stream in streams:
                os.close(stream)


def spawn(request: "dict[str, Any]", streams: "list[int]") -> int:
    """Start one process with its own session, streams and variables."""
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in range(1, 65):
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                with contextlib.suppress(OSError, ValueError):
                    signal.signal(number, signal.SIG_DFL)
        for index, stream in enumerate(streams):  # first out of the way: one may be 0, 1 or 2
            os.dup2(stream, 100 + index)
        for index in range(len(streams)):
            os.dup2(100 + index, index)
        os.closerange(3, 4096)
        os.chdir("/")
        os.execve(request["argv"][0], request["argv"], request["env"])  # noqa: S606 - this is the sandbox
    finally:
        os._exit(128)


def reap(host: socket.socket, ours: "dict[int, int]") -> None:
    """Take every process that has ended; tell the host about its own."""
    while True:
        try:
            child, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if child == 0:
            return
        if child in ours:
            code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
            send(host, {"id": ours.pop(child), "code": code})


def send(host: socket.socket, message: "dict[str, int]") -> None:
    """One message to the host."""
    content = json.dumps(message).encode()
    host.sendall(struct.pack(">I", len(content)) + content)


def receive(host: socket.socket) -> "tuple[dict[str, Any] | None, list[int]]":
    """One message from the host with its descriptors; None at the end."""
    descriptors = array.array("i")
    head = b""
    while len(head) < 4:
        chunk, ancillary, _, _ = host.recvmsg(4 - len(head), socket.CMSG_LEN(3 * 4))
        if not chunk:
            return None, []
        head += chunk
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors.frombytes(data[: len(data) - len(data) % 4])
    left = struct.unpack(">I", head)[0]
    content = b""
    while len(content) < left:
        chunk = host.recv(left - len(content))
        if not chunk:
            return None, []
        content += chunk
    return json.loads(content.decode("utf-8", "surrogateescape")), list(descriptors)
