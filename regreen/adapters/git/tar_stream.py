"""A tree as a tar stream with changes on the way: overlaid files, filled pointers, nested trees; and a
directory as such a stream.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from regreen.domain.errors import UserError
from regreen.domain.models import TreeEntry

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


Fill = Callable[[bytes], bytes | None]


def replace_paths_in_tar(
    stream: IO[bytes],
    overlay: Mapping[str, bytes],
    *,
    fill: Fill | None = None,
    max_filled_bytes: int = 0,
    inner: Iterable[tuple[str, Iterator[bytes]]] = (),
) -> Iterator[bytes]:
    """Pass a tar stream on without the overlay's paths, and append the overlay.

    Args:
        stream: the tree.
        overlay: files by path.
        fill: returns other content for a file of at most `max_filled_bytes` bytes; None: unchanged.
        max_filled_bytes: see `fill`.
        inner: (path, tree) pairs: tar streams whose files are added below a path.
    """
    out = _ChunkWriter()
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as target:
        for member, content in _iterate_members(stream, fill, max_filled_bytes):
            if member.name not in overlay:
                target.addfile(member, content)
            yield from out.take_chunks()
        for path, tree in inner:
            for member, content in _iterate_members(_ChunkReader(tree), None, 0):
                member.name = f"{path}/{member.name}"
                if member.name not in overlay:
                    target.addfile(member, content)
                yield from out.take_chunks()
        for path, data in overlay.items():
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(data), 0o755 if data[:2] == b"#!" else 0o644
            target.addfile(info, io.BytesIO(data))
            yield from out.take_chunks()
    yield from out.take_chunks()


def _iterate_members(
    stream: IO[bytes] | _ChunkReader, fill: Fill | None, max_filled_bytes: int
) -> Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]]:
    with tarfile.open(fileobj=stream, mode="r|") as source:
        for member in source:
            content = source.extractfile(member) if member.isreg() else None
            if fill is not None and content is not None and member.size <= max_filled_bytes:
                data = content.read()
                filled = fill(data)
                data = data if filled is None else filled
                member.size = len(data)
                content = io.BytesIO(data)
            yield member, content


class _ChunkWriter(io.RawIOBase):
    """A writable file whose bytes are taken out piece by piece."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer) -> int:
        piece = bytes(data)
        self._pieces.append(piece)
        return len(piece)

    def take_chunks(self) -> Iterator[bytes]:
        pieces, self._pieces = self._pieces, []
        yield from pieces


class _ChunkReader(io.RawIOBase):
    """A readable file whose bytes arrive piece by piece."""

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


# Content that a commit names but keeps elsewhere: commits of submodules, content of Git LFS files.
#
# Both are read from the user's own clone if it has them. Nothing is fetched.

POINTER_SIZE = 1024
_LFS_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:[a-z0-9.-]{1,40} [^\n]{1,200}\n){0,8}?oid sha256:([0-9a-f]{64})\n"
)
_MAX_NAMES = 3


@dataclass(frozen=True, slots=True)
class Submodule:
    """Another repository's commit at a path; `git_dir` is that repository in this clone, if present."""

    path: str
    sha: str
    git_dir: Path | None


def list_submodules(
    links: Iterable[tuple[str, str]], settings: Mapping[str, str], common: Path | None
) -> tuple[Submodule, ...]:
    """The submodules of a commit.

    Args:
        links: the path and commit of each.
        settings: the content of `.gitmodules` ("submodule.NAME.path" -> PATH).
        common: the user's git directory; None if there is none.
    """
    names = {
        path: key.removeprefix("submodule.").removesuffix(".path")
        for key, path in settings.items()
        if key.startswith("submodule.") and key.endswith(".path")
    }
    return tuple(
        Submodule(path, sha, _submodule_git_dir(common, names.get(path))) for path, sha in links
    )


def _submodule_git_dir(common: Path | None, name: str | None) -> Path | None:
    """The place of a submodule's repository; its name comes from a commit, so it must not lead outside."""
    if common is None or not name:
        return None
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts:
        return None
    place = common / "modules" / pure
    return place if (place / "HEAD").is_file() else None


def parse_lfs_oid(content: bytes) -> str | None:
    """The id of the object behind a Git LFS pointer; None if the bytes are no pointer."""
    match = _LFS_POINTER.match(content)
    return match[1].decode() if match else None


def find_lfs_file(common: Path | None, oid: str) -> Path | None:
    """The file of a Git LFS object in this clone, if present."""
    if common is None:
        return None
    place = common / "lfs" / "objects" / oid[:2] / oid[2:4] / oid
    return place if place.is_file() else None


def make_lfs_fill(common: Path | None) -> Callable[[bytes], bytes | None]:
    """A function that returns the content for a Git LFS pointer; None if it is no pointer or the content is missing."""

    def fill(content: bytes) -> bytes | None:
        oid = parse_lfs_oid(content)
        place = find_lfs_file(common, oid) if oid else None
        return place.read_bytes() if place else None

    return fill


def describe_missing_content(
    modules: Sequence[Submodule], pointers: Sequence[str], *, is_clone: bool
) -> tuple[str, ...]:
    """Describe missing content, one sentence for each kind, with the remedy if there is one."""
    lines: list[str] = []
    if modules:
        subject = (
            f"submodule{'s' * (len(modules) > 1)} {_abbreviate_names([m.path for m in modules])}"
        )
        todo = "; run `git submodule update --init --recursive`" if is_clone else ""
        lines.append(f"{subject}: not in this clone{todo}")
    if pointers:
        subject = f"{len(pointers)} Git LFS file{'s' * (len(pointers) > 1)} ({_abbreviate_names(pointers)})"
        todo = "; run `git lfs fetch --all`" if is_clone else ""
        lines.append(f"{subject}: only pointers are in this clone{todo}")
    return tuple(lines)


def _abbreviate_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more


_CHUNK_BYTES = 1024 * 1024
# Opening must neither follow a link that was swapped in nor wait for the other end of a fifo.
_READ_ONLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


def pack_directory(directory: Path, limit: int) -> Iterator[bytes]:
    """Every regular file, directory and link below `directory`, tracked by git or not.

    Raises:
        UserError: the files exceed `limit` bytes, or one of them cannot be read.
    """
    if (size := _total_size(directory)) > limit:
        message = (
            f"{directory} holds {size} bytes, and the box has room for {limit}: give it more disk"
        )
        raise UserError(message)
    with tempfile.TemporaryFile() as spool:
        with tarfile.open(fileobj=spool, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for path in _walk_paths(directory):
                _add_member(tar, path, str(path.relative_to(directory)))
        spool.seek(0)
        while chunk := spool.read(_CHUNK_BYTES):
            yield chunk


def list_entries(directory: Path) -> list[TreeEntry]:
    """The entries that `pack` would pack, with a digest for each file, sorted by path."""
    entries = []
    for path in _walk_paths(directory):
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            digest = hashlib.sha256(os.fsencode(path.readlink())).hexdigest()
            entries.append(TreeEntry(str(path.relative_to(directory)), "120000", digest, None))
        elif stat.S_ISREG(status.st_mode):
            mode = "100755" if status.st_mode & 0o100 else "100644"
            with _open_regular_file(path) as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            entries.append(
                TreeEntry(str(path.relative_to(directory)), mode, digest, status.st_size)
            )
    return sorted(entries, key=lambda entry: entry.path)


def read_regular_file(directory: Path, path: str, limit: int = 8 * 1024 * 1024) -> bytes | None:
    """One regular file's bytes; None if it does not exist or is larger than `limit`."""
    inside = directory / path
    try:
        if not inside.resolve().is_relative_to(directory.resolve()) or not stat.S_ISREG(
            inside.lstat().st_mode
        ):
            return None
        with _open_regular_file(inside) as file:
            content = file.read(limit + 1)
    except OSError:
        return None
    return content if len(content) <= limit else None


def _total_size(directory: Path) -> int:
    """The apparent size of the regular files: sparse files count in full."""
    statuses = (path.lstat() for path in _walk_paths(directory))
    return sum(status.st_size for status in statuses if stat.S_ISREG(status.st_mode))


def _walk_paths(directory: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(directory):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in (*folders, *sorted(name for name in files if name != ".git")):
            yield Path(place, name)


def _add_member(tar: tarfile.TarFile, path: Path, name: str) -> None:
    try:
        entry = tar.gettarinfo(str(path), arcname=name)
        if not (entry.isreg() or entry.isdir() or entry.issym() or entry.islnk()):
            return
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mode &= 0o777
        if entry.islnk():  # a hard link: packed as a file of its own
            entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", path.lstat().st_size
        if entry.isreg():
            with _open_regular_file(path) as file:
                tar.addfile(entry, file)
        else:
            tar.addfile(entry)
    except OSError as error:
        msg = f"cannot read {path}: {error.strerror}"
        raise UserError(msg) from error


def _open_regular_file(path: Path) -> BufferedReader:
    return os.fdopen(os.open(path, _READ_ONLY), "rb")
