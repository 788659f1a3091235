"""A revision's files in one pass: one git process whatever their number, nothing written anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from regreen.codebase.symbols import LARGEST
from regreen.ports import Git

MOST_BYTES = 256 * 1024 * 1024
"""A repository's sources beyond this are not read; no more than one file of them is held at a time."""


def sources(
    git: Git, rev: str, wanted: Callable[[str], bool], *, most: int = MOST_BYTES
) -> Iterator[tuple[str, bytes]]:
    """Path and bytes of every regular file that is wanted and not larger than `LARGEST`, sorted by path."""
    chosen = []
    left = most
    for entry in git.tree(rev):
        size = entry.size or 0
        if entry.mode.startswith("100") and size <= LARGEST and wanted(entry.path):
            left -= size
            if left < 0:
                break
            chosen.append(entry)
    for entry, data in zip(chosen, git.blobs([e.sha for e in chosen]), strict=True):
        if data is not None:
            yield entry.path, data
