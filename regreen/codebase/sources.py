"""A revision's files in one pass: one git process whatever their number, nothing written anywhere."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator

from regreen.codebase.symbols import LARGEST
from regreen.ports import Git

MOST_BYTES = 256 * 1024 * 1024
"""A repository's sources beyond this are not read; no more than one file of them is held at a time."""


def sources(
    git: Git, rev: str, wanted: Callable[[str], bool], *, most: int = MOST_BYTES
) -> Iterator[tuple[str, bytes]]:
    """Path and bytes of every regular file that is wanted and not larger than `LARGEST`, in git's order."""
    stream = _Pipe(git.archive(rev))
    left = most
    with tarfile.open(fileobj=stream, mode="r|", bufsize=1 << 18) as archive:
        for member in archive:
            if not member.isreg() or member.size > LARGEST or not wanted(member.name):
                continue
            left -= member.size
            if left < 0:
                break
            content = archive.extractfile(member)
            if content is not None:
                yield member.name, content.read()
    stream.drain()


class _Pipe(io.RawIOBase):
    """An iterator of chunks as the file that tarfile wants."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        parts, length = [self._rest], len(self._rest)
        while size < 0 or length < size:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            parts.append(chunk)
            length += len(chunk)
        data = b"".join(parts)
        if size < 0:
            self._rest = b""
            return data
        data, self._rest = data[:size], data[size:]
        return data

    def drain(self) -> None:
        """Let git come to its end, so that it is not reported as killed."""
        for _ in self._chunks:
            pass
