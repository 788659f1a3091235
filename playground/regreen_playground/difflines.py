"""What a diff changes, file by file, and on which of its lines GitHub takes a comment."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from regreen_playground.gitstore import GitStore

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_STATUS = {
    "A": "added",
    "C": "copied",
    "D": "removed",
    "M": "modified",
    "R": "renamed",
    "T": "changed",
}
_TOO_LONG = 1024 * 1024
_BINARY_FROM = "core.bigFileThreshold=4m"


@dataclass(frozen=True, slots=True)
class Spot:
    """One line of a hunk: where it stands on each side, and its position below the file's first `@@`."""

    hunk: int
    position: int
    left: int | None
    right: int | None
    text: str


@dataclass(frozen=True, slots=True)
class FileChange:
    """One changed file. `patch` is None for binary and oversized files."""

    path: str
    previous: str | None
    status: str
    sha: str
    additions: int
    deletions: int
    patch: str | None

    def spots(self) -> list[Spot]:
        """Every line that may carry a comment."""
        return _spots(self.patch or "")

    def spot(self, side: str, line: int) -> Spot | None:
        """The commentable line with this number on this side ("LEFT": before, "RIGHT": after)."""
        for one in self.spots():
            if (one.left if side == "LEFT" else one.right) == line:
                return one
        return None


def changes(git: GitStore, base: str, head: str) -> list[FileChange]:
    """The files that differ between two trees, as git's own diff tells them."""
    return list(_changes(git.path, git.resolve(base) or base, git.resolve(head) or head))


@lru_cache(maxsize=128)
def _changes(store: Path, base: str, head: str) -> tuple[FileChange, ...]:
    git = GitStore(store)
    span = ("-M", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", base, head)
    raw = git.run("diff", "--raw", "-z", "--abbrev=40", *span).decode(errors="replace").split("\0")
    patches = _split(
        git.run("-c", _BINARY_FROM, "diff", "--no-prefix", *span).decode(errors="replace")
    )
    found = []
    index = 0
    fields = iter(raw)
    for meta in fields:
        if not meta:
            continue
        _, _, old, new, status = meta.split()
        first = next(fields)
        renamed = status[0] in "RC"
        path = next(fields) if renamed else first
        body = patches[index] if index < len(patches) else None
        index += 1
        if status[0] == "T":  # a file that becomes a symlink is shown as removed, then added
            body, index = None, index + 1
        lines = body.split("\n") if body else []
        found.append(
            FileChange(
                path=path,
                previous=first if renamed else None,
                status=_STATUS.get(status[0], "changed"),
                sha=old if status[0] == "D" else new,
                additions=sum(line.startswith("+") for line in lines),
                deletions=sum(line.startswith("-") for line in lines),
                patch=body if body and len(body) <= _TOO_LONG else None,
            )
        )
    return tuple(found)


def hunk_up_to(change: FileChange, spot: Spot) -> str:
    """The hunk that holds a line, from its header down to that line, as GitHub shows it."""
    lines = (change.patch or "").split("\n")
    top = max(i for i in range(spot.position + 1) if lines[i].startswith("@@"))
    return "\n".join(lines[top : spot.position + 1])


def moved(git: GitStore, old: str, new: str, path: str, line: int) -> int | None:
    """Where a line of `path` at commit `old` stands at `new`; None where it was changed or is gone."""
    out = git.run("diff", "-U0", "--no-color", "--no-prefix", old, new, "--", f":(literal){path}")
    shift = 0
    for text in out.decode(errors="replace").split("\n"):
        header = _HUNK.match(text)
        if not header:
            continue
        start, count = int(header[1]), int(header[2] or 1)
        fresh = int(header[4] or 1)
        first = start if count else start + 1
        if line < first:
            break
        if line < first + count:
            return None
        shift += fresh - count
    return line + shift


def _split(diff: str) -> list[str | None]:
    """The hunks of each file of a diff (None where it has none)."""
    found: list[str | None] = []
    body: list[str] | None = None
    for line in diff.split("\n"):
        if line.startswith("diff --git "):
            if found and body:
                found[-1] = "\n".join(body).rstrip("\n")
            found.append(None)
            body = None
        elif line.startswith("@@ "):
            body = body or []
            body.append(line)
        elif body is not None:
            body.append(line)
    if found and body:
        found[-1] = "\n".join(body).rstrip("\n")
    return found


def _spots(patch: str) -> list[Spot]:
    spots = []
    hunk = left = right = 0
    for position, text in enumerate(patch.split("\n")):
        header = _HUNK.match(text)
        if header:
            hunk += 1
            left, right = int(header[1]), int(header[3])
        elif text.startswith("+"):
            spots.append(Spot(hunk, position, None, right, text))
            right += 1
        elif text.startswith("-"):
            spots.append(Spot(hunk, position, left, None, text))
            left += 1
        elif not text.startswith("\\"):
            spots.append(Spot(hunk, position, left, right, text))
            left, right = left + 1, right + 1
    return spots
