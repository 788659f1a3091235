"""What differs between the engines behind a box: starting a process inside, and ending them all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from regreen.adapters.watch import Stream


class CellGoneError(Exception):
    """The cell ended although nobody here ended it."""


class Running(Protocol):
    """One process in a cell."""

    def chunks(self) -> Iterator[tuple[Stream, bytes]]:
        """What it prints, until the end."""
        ...

    def feed(self, chunks: Iterable[bytes]) -> None:
        """Write its standard input, then close it. A reader that went away is no error."""
        ...

    def exit_code(self) -> int | None:
        """None while it runs.

        Raises:
            CellGoneError: the cell has ended.
        """
        ...


class Cell(Protocol):
    """An isolated place that is already running."""

    path: str
    quick: bool
    """Starting a process costs next to nothing."""

    def start(self, argv: Sequence[str], env: Mapping[str, str], stdin: bool) -> Running:
        """Start a process.

        Raises:
            CellGoneError: the cell has ended, or has no room for a process.
        """
        ...

    def oom_kills(self) -> int:
        """How often the kernel killed for memory in here so far."""
        ...

    def died_of_memory(self) -> bool:
        """Whether memory was what ended the cell."""
        ...

    def destroy(self) -> None:
        """End everything in it and leave nothing behind. Safe to call twice, from any thread."""
        ...
