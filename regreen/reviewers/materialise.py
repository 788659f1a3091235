"""Files of a revision laid out in a temporary folder, as data for analyzers that only read."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath


@contextmanager
def laid_out(
    files: Mapping[str, str | bytes] | Iterable[tuple[str, str | bytes]],
) -> Iterator[tuple[Path, dict[str, str]]]:
    """A temporary folder holding these files, and which of them could be written: name on disk to path.

    Nothing in it is ever imported or run. A path that leaves the folder, or that the file system refuses, is
    left out.
    """
    with tempfile.TemporaryDirectory(prefix="regreen-review-") as folder:
        root = Path(folder).resolve()
        written: dict[str, str] = {}
        for path, content in files.items() if isinstance(files, Mapping) else files:
            place = root.joinpath(*PurePosixPath(path).parts)
            if not is_plain(path):
                continue
            data = (
                content
                if isinstance(content, bytes)
                else content.encode("utf-8", "surrogateescape")
            )
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)
            except OSError:  # a name too long for the file system, a file where a folder has to be
                continue
            written[str(place)] = path
        yield root, written


def is_plain(path: str) -> bool:
    """Whether a path names something below the folder it is joined to, on every file system."""
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and ".." not in parts and "\0" not in path
