"""Runs as the first process of a bubblewrap box: starts the host's processes, reaps the ended ones.

The box's Python runs this text with `-c`, so it imports the standard library alone and supports
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


def lend(number: int, port: int) -> None:
    """Send the host, over the socket with this descriptor, a socket that listens on the box's own loopback."""
    host = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, number)
    with socket.socket() as server:
        server.bind(("127.0.0.1", port))
        server.listen(128)
        content = array.array("i", [server.fileno()])
        host.sendmsg([b"+"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, content)])
    host.detach()


def bound(processes: int, memory: int) -> None:
    """Limit the processes of the box, and the private memory of each in bytes, for good."""
    import resource

    resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))


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
    """Reap every ended process; report our own to the host."""
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
    """Send one message to the host."""
    content = json.dumps(message).encode()
    host.sendall(struct.pack(">I", len(content)) + content)


def receive(host: socket.socket) -> "tuple[dict[str, Any] | None, list[int]]":
    """Receive one message from the host with its descriptors; None at the end."""
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
