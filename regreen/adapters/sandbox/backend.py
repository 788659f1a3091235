"""The protocol of the isolation engines: starting processes in a box, and ending them all."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from regreen.adapters.sandbox.process_watch import Stream


class BackendGoneError(Exception):
    """The box ended although this process did not end it."""


class BackendProcess(Protocol):
    """One process in a box."""

    def output_chunks(self) -> Iterator[tuple[Stream, bytes]]:
        """Its output until the end."""
        ...

    def feed_input(self, chunks: Iterable[bytes]) -> None:
        """Write its standard input, then close it. A reader that is gone is no error."""
        ...

    def exit_code(self) -> int | None:
        """None while it runs.

        Raises:
            BackendGoneError: the box has ended.
        """
        ...


class Backend(Protocol):
    """An isolated place that is already running."""

    path: str
    quick: bool
    """Starting a process costs next to nothing."""

    def start_process(
        self, argv: Sequence[str], env: Mapping[str, str], stdin: bool
    ) -> BackendProcess:
        """Start a process.

        Raises:
            BackendGoneError: the box has ended, or has no room for a process.
        """
        ...

    def oom_kills(self) -> int:
        """How often the kernel killed a process in this box for memory."""
        ...

    def died_of_memory(self) -> bool:
        """Whether the memory limit ended the box."""
        ...

    def destroy(self) -> None:
        """Kill all processes and delete everything. Safe to call twice, from any thread."""
        ...


def receive_exactly(sock: socket.socket, count: int) -> bytes:
    """The next `count` bytes of a connection; nothing where it ends before."""
    data = b""
    while len(data) < count:
        chunk = sock.recv(count - len(data))
        if not chunk:
            return b""
        data += chunk
    return data
