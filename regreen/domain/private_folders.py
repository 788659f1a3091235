"""Folders that one user keeps private, and leftovers of killed processes."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISDIR

from regreen.domain.errors import UserError

# A name alone proves nothing: a user's own folder may be called `regreen-tree-checkout` too.
_MARK = ".made-by-regreen"
_LEFTOVER_S = 24 * 3600.0


def cache_home() -> Path:
    """The folder for data that can be rebuilt: REGREEN_HOME, else the user's cache."""
    return Path(os.environ.get("REGREEN_HOME") or "~/.cache/regreen").expanduser()


@contextmanager
def lock_caches(*, alone: bool = False) -> Iterator[bool]:
    """Say, while the block runs, that this process uses the caches, or `alone`: that nobody else may.

    Yields whether the lock is held. A process that dies, however it dies, leaves none behind.

    Raises:
        UserError: the folder cannot be used.
    """
    place = make_private(cache_home()) / "in-use.lock"
    descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


@contextmanager
def hold_alone(place: Path, *, byte: int = 0) -> Iterator[bool]:
    """Lock a file for this process alone, not for its children; yields whether no other process holds it.

    Each `byte` of a file, which need not be that long, is a lock of its own. The lock ends with the process, however it ends.

    Raises:
        OSError: the file cannot be opened, or its file system cannot lock.
    """
    descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except (BlockingIOError, PermissionError):  # EAGAIN or EACCES, as the platform has it
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


def make_private(folder: Path) -> Path:
    """The folder, created if missing; only its user can enter it.

    Raises:
        UserError: it cannot be created, or another user owns it or may write there.
    """
    remedy = "set REGREEN_HOME to a folder of your own"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = folder.stat()
        is_ours = status.st_uid == os.geteuid()
        if status.st_mode & 0o002 or not (is_ours or status.st_uid == 0):
            message = f"{folder} belongs to another user, or every user may write there; {remedy}"
            raise UserError(message)
        if is_ours:
            folder.chmod(0o700)
    except OSError as error:
        message = f"cannot write to {folder} ({error.strerror or error}); {remedy}"
        raise UserError(message) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        message = f"cannot write to {folder}; {remedy}"
        raise UserError(message)
    return folder


def require_private(file: Path) -> None:
    """Refuse a file that holds secrets and that other users can read or write.

    Raises:
        UserError: other users can access it.
    """
    status = file.stat()
    if status.st_mode & 0o077 or status.st_uid not in {os.geteuid(), 0}:
        message = f"{file} can be read or changed by other users; `chmod 600` it and own it"
        raise UserError(message)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its user can read; at no moment is it half written or readable by others."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    temporary.replace(path)


def remove_unused(folder: Path, pattern: str, days: float) -> None:
    """Remove this user's matching folders in `folder` that nobody has changed for this many days."""
    for path in folder.glob(pattern):
        try:
            status = path.lstat()
        except OSError:  # another process removed it
            continue
        if status.st_uid == os.geteuid() and time.time() - status.st_mtime > days * 24 * 3600:
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def temporary_folder(kind: str) -> Iterator[Path]:
    """A private temporary folder, removed at the end; leftovers of killed processes are removed after a day."""
    for leftover in find_old_temporary_folders():
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"regreen-{kind}-") as made:
        (Path(made) / _MARK).touch()
        folder = Path(made) / "files"
        folder.mkdir()
        yield folder


def find_old_temporary_folders() -> Iterator[Path]:
    """Folders that `temporary_folder` made for this user a day ago or more and that a killed process left."""
    home = cache_home().resolve()
    for path in Path(tempfile.gettempdir()).glob("regreen-*-????????"):
        try:
            status, is_marked = path.lstat(), (path / _MARK).is_file()
        except OSError:  # another process removed it, or another user owns it
            continue
        is_old = time.time() - status.st_mtime > _LEFTOVER_S
        is_ours = S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
        if is_marked and is_old and is_ours and not home.is_relative_to(path.resolve()):
            yield path
