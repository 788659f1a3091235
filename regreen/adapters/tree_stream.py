"""A tree as a tar stream, changed on its way: files laid over it, pointers filled, other trees put into it."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

Fill = Callable[[bytes], bytes | None]


def laid_over(
    stream: IO[bytes],
    overlay: Mapping[str, bytes],
    *,
    fill: Fill | None = None,
    small: int = 0,
    inner: Iterable[tuple[str, Iterator[bytes]]] = (),
) -> Iterator[bytes]:
    """Pass a tar stream on without the overlay's paths, and append the overlay.

    Args:
        stream: the tree.
        overlay: files by path.
        fill: gives other content for a file of at most `small` bytes; None: as it is.
        small: see `fill`.
        inner: (path, tree) pairs: tar streams whose files go below a path.
    """
    out = _Chunks()
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as target:
        for member, content in _members(stream, fill, small):
            if member.name not in overlay:
                target.addfile(member, content)
            yield from out.take()
        for path, tree in inner:
            for member, content in _members(_Reader(tree), None, 0):
                member.name = f"{path}/{member.name}"
                if member.name not in overlay:
                    target.addfile(member, content)
                yield from out.take()
        for path, data in overlay.items():
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(data), 0o755 if data[:2] == b"#!" else 0o644
            target.addfile(info, io.BytesIO(data))
            yield from out.take()
    yield from out.take()


def _members(
    stream: IO[bytes] | _Reader, fill: Fill | None, small: int
) -> Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]]:
    with tarfile.open(fileobj=stream, mode="r|") as source:
        for member in source:
            content = source.extractfile(member) if member.isreg() else None
            if fill is not None and content is not None and member.size <= small:
                data = content.read()
                filled = fill(data)
                data = data if filled is None else filled
                member.size = len(data)
                content = io.BytesIO(data)
            yield member, content


class _Chunks(io.RawIOBase):
    """A file to write into whose bytes are taken out piece by piece."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer) -> int:
        piece = bytes(data)
        self._pieces.append(piece)
        return len(piece)

    def take(self) -> Iterator[bytes]:
        pieces, self._pieces = self._pieces, []
        yield from pieces


class _Reader(io.RawIOBase):
    """A file to read from whose bytes come piece by piece."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        super().__init__()
        self._chunks = chunks
        self._left = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._left) < size:
            chunk = next(self._chunks, b"")
            if not chunk:
                break
            self._left += chunk
        count = len(self._left) if size < 0 else size
        taken, self._left = self._left[:count], self._left[count:]
        return taken
