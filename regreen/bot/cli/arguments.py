"""What several commands take in the same words: --env K=V, --overlay FILE[:DEST], a file to write to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from regreen.errors import UserError


def variables_of(items: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Read the values of --env.

    Raises:
        UserError: one is no pair.
    """
    pairs: list[tuple[str, str]] = []
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name:
            message = f"--env {item!r} is not K=V"
            raise UserError(message)
        pairs.append((name, value))
    return tuple(pairs)


def overlay_of(items: Sequence[str]) -> dict[str, bytes]:
    """Read the files of --overlay, by where they go: DEST, or their own name at the root.

    Raises:
        UserError: a file cannot be read, or would land outside the checkout or in its `.git`.
    """
    laid: dict[str, bytes] = {}
    for item in items:
        name, _, place = item.partition(":")
        source = Path(name)
        target = PurePosixPath(place or source.name)
        if target.is_absolute() or not target.parts or {"..", ".git"} & set(target.parts):
            message = (
                f"--overlay {item!r}: write FILE or FILE:DEST, DEST a path inside the checkout"
            )
            raise UserError(message)
        try:
            laid[target.as_posix()] = source.read_bytes()
        except OSError as error:
            message = f"--overlay {name}: {error.strerror or error}"
            raise UserError(message) from error
    return laid


def check_folder_of(file: Path | None, option: str) -> None:
    """Make sure, before the work, that its result can be written.

    Raises:
        UserError: the folder is not there.
    """
    if file is not None and not file.absolute().parent.is_dir():
        message = f"{option} {file}: there is no such folder"
        raise UserError(message)
