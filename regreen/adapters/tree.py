"""A directory of this machine as a tar stream. Links stay links, special files and `.git` stay out."""

from __future__ import annotations

import hashlib
import os
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from regreen.errors import UserError
from regreen.models import TreeEntry

_CHUNK = 1024 * 1024
# Opening must neither follow a link that was swapped in nor wait for the other end of a fifo.
_READ_ONLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


def pack(directory: Path, limit: int) -> Iterator[bytes]:
    """Every regular file, directory and link below `directory`, tracked by git or not.

    Raises:
        UserError: the files hold more than `limit` bytes, or one of them cannot be read.
    """
    if (size := _size(directory)) > limit:
        message = (
            f"{directory} holds {size} bytes, and the box has room for {limit}: give it more disk"
        )
        raise UserError(message)
    with tempfile.TemporaryFile() as spool:
        with tarfile.open(fileobj=spool, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for path in _walk(directory):
                _add(tar, path, str(path.relative_to(directory)))
        spool.seek(0)
        while chunk := spool.read(_CHUNK):
            yield chunk


def entries(directory: Path) -> list[TreeEntry]:
    """What `pack` would pack, with a digest for each file, sorted by path."""
    found = []
    for path in _walk(directory):
        seen = path.lstat()
        if stat.S_ISLNK(seen.st_mode):
            digest = hashlib.sha256(os.fsencode(path.readlink())).hexdigest()
            found.append(TreeEntry(str(path.relative_to(directory)), "120000", digest, None))
        elif stat.S_ISREG(seen.st_mode):
            mode = "100755" if seen.st_mode & 0o100 else "100644"
            with _open(path) as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            found.append(TreeEntry(str(path.relative_to(directory)), mode, digest, seen.st_size))
    return sorted(found, key=lambda entry: entry.path)


def read(directory: Path, path: str, limit: int = 8 * 1024 * 1024) -> bytes | None:
    """One regular file's bytes; None where there is none or it is larger than `limit`."""
    inside = directory / path
    try:
        if not inside.resolve().is_relative_to(directory.resolve()) or not stat.S_ISREG(
            inside.lstat().st_mode
        ):
            return None
        with _open(inside) as file:
            content = file.read(limit + 1)
    except OSError:
        return None
    return content if len(content) <= limit else None


def _size(directory: Path) -> int:
    """What the regular files claim to hold: a sparse file claims it all."""
    seen = (path.lstat() for path in _walk(directory))
    return sum(one.st_size for one in seen if stat.S_ISREG(one.st_mode))


def _walk(directory: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(directory):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in (*folders, *sorted(name for name in files if name != ".git")):
            yield Path(place, name)


def _add(tar: tarfile.TarFile, path: Path, name: str) -> None:
    try:
        entry = tar.gettarinfo(str(path), arcname=name)
        if not (entry.isreg() or entry.isdir() or entry.issym() or entry.islnk()):
            return
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mode &= 0o777
        if entry.islnk():  # a second name of a file: packed as a file of its own
            entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", path.lstat().st_size
        if entry.isreg():
            with _open(path) as file:
                tar.addfile(entry, file)
        else:
            tar.addfile(entry)
    except OSError as error:
        msg = f"cannot read {path}: {error.strerror}"
        raise UserError(msg) from error


def _open(path: Path) -> BufferedReader:
    return os.fdopen(os.open(path, _READ_ONLY), "rb")
