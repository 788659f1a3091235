"""A local directory as a tar stream. Links stay links; special files and `.git` are left out."""

from __future__ import annotations

import hashlib
import os
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from regreen.domain.errors import UserError
from regreen.domain.models import TreeEntry

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
