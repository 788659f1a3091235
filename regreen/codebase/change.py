"""What a change is: files, hunks, lines, and which of them may carry a comment. Values only."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from regreen.models import Side

Status = Literal["added", "deleted", "modified", "renamed", "copied"]
LineKind = Literal["+", "-", " "]

SYMLINK = "120000"
SUBMODULE = "160000"
SHOWN_LINES = 20_000
SHOWN_CHARACTERS = 500_000
"""What GitHub shows of one file's diff: https://docs.github.com/repositories/creating-and-managing-repositories/repository-limits"""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a hunk; `old` and `new` are its 1-based numbers before and after, None where it is not there.

    `text` has no newline at its end (but keeps a carriage return); `newline` is False for a last line without one.
    """

    kind: LineKind
    old: int | None
    new: int | None
    text: str
    newline: bool = True


@dataclass(frozen=True, slots=True)
class Hunk:
    """One block of a file's diff, its context lines included."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    section: str
    lines: tuple[Line, ...]

    def holds(self, number: int, side: Side) -> bool:
        """Whether the line with this number, on this side, is shown in this hunk."""
        start, count = (
            (self.new_start, self.new_count)
            if side == "RIGHT"
            else (self.old_start, self.old_count)
        )
        return start <= number < start + count


@dataclass(frozen=True)
class FileChange:
    """What a change does to one file. `path` is its name afterwards (before, for a deleted one).

    `problem` says why the file's hunks could not be read; it then has none.
    """

    path: str
    old_path: str
    status: Status
    hunks: tuple[Hunk, ...] = ()
    old_mode: str | None = None
    new_mode: str | None = None
    old_sha: str | None = None
    new_sha: str | None = None
    binary: bool = False
    problem: str | None = None

    @property
    def mode(self) -> str | None:
        """The file's mode afterwards, as far as the diff says it."""
        return self.new_mode or self.old_mode

    @property
    def submodule(self) -> bool:
        """A pointer to another repository's commit."""
        return SUBMODULE in (self.old_mode, self.new_mode)

    @property
    def symlink(self) -> bool:
        """A symbolic link: its one line is a path."""
        return SYMLINK in (self.old_mode, self.new_mode)

    @cached_property
    def too_large(self) -> bool:
        """Whether GitHub shows no diff of this file, so that no comment can stand on it."""
        lines = sum(len(h.lines) for h in self.hunks)
        size = sum(len(x.text) + 2 for h in self.hunks for x in h.lines)
        return lines > SHOWN_LINES or size > SHOWN_CHARACTERS

    @cached_property
    def added_lines(self) -> tuple[int, ...]:
        """Numbers, in the file afterwards, of the lines this change adds."""
        return tuple(x.new for h in self.hunks for x in h.lines if x.kind == "+" and x.new)

    @cached_property
    def removed_lines(self) -> tuple[int, ...]:
        """Numbers, in the file before, of the lines this change removes."""
        return tuple(x.old for h in self.hunks for x in h.lines if x.kind == "-" and x.old)

    @property
    def changed(self) -> int:
        """How many lines are added or removed."""
        return len(self.added_lines) + len(self.removed_lines)

    def touches(self, start: int, end: int) -> bool:
        """Whether a line from `start` to `end` of the file afterwards is one that this change adds."""
        at = bisect_left(self.added_lines, start)
        return at < len(self.added_lines) and self.added_lines[at] <= end

    def commentable(self, side: Side) -> tuple[int, ...]:
        """The lines that may carry a comment: everything a hunk shows on that side, context included."""
        return tuple(
            n
            for h in self.hunks
            for x in h.lines
            if (n := x.new if side == "RIGHT" else x.old) is not None
        )

    def can_anchor(self, start: int, line: int, side: Side) -> bool:
        """Whether GitHub takes a comment on these lines: both ends inside one and the same hunk."""
        return (
            start <= line
            and not self.too_large
            and any(h.holds(start, side) and h.holds(line, side) for h in self.hunks)
        )

    def fit(self, start: int, line: int, side: Side) -> tuple[int, int] | None:
        """The part of a range that one comment can stand on: what the hunk around its last line shows of it.

        Where no hunk shows the last line, the last hunk that shows any of the range; None where none does.
        """
        for hunk in reversed(() if self.too_large else self.hunks):
            shown = hunk.new_start if side == "RIGHT" else hunk.old_start
            count = hunk.new_count if side == "RIGHT" else hunk.old_count
            low, high = max(start, shown), min(line, shown + count - 1)
            if low <= high:
                return low, high
        return None

    def can_suggest(self, start: int, line: int) -> bool:
        """Whether a suggestion may replace these lines: anchored, and no removed line shown between them."""
        if not self.can_anchor(start, line, "RIGHT"):
            return False
        hunk = next(h for h in self.hunks if h.holds(start, "RIGHT"))
        numbers = [x.new for x in hunk.lines]
        within = hunk.lines[numbers.index(start) : numbers.index(line) + 1]
        return all(x.kind != "-" for x in within)

    def old_line(self, new: int) -> int | None:
        """The number that a line afterwards had before; None for an added line."""
        shift = 0
        for hunk in self.hunks:
            if new < hunk.new_start + (hunk.new_count == 0):
                break
            if hunk.holds(new, "RIGHT"):
                return next(x.old for x in hunk.lines if x.new == new)
            old_end = hunk.old_start + hunk.old_count + (hunk.old_count == 0)
            new_end = hunk.new_start + hunk.new_count + (hunk.new_count == 0)
            shift = old_end - new_end
        return new + shift


@dataclass(frozen=True)
class Change:
    """A whole diff, file by file, in its own order."""

    files: tuple[FileChange, ...]

    @cached_property
    def by_path(self) -> dict[str, FileChange]:
        """The files by their path afterwards."""
        return {f.path: f for f in self.files}

    @property
    def changed(self) -> int:
        """How many lines are added or removed in all."""
        return sum(f.changed for f in self.files)

    def anchor(self, path: str, start: int, line: int, side: Side = "RIGHT") -> bool:
        """Whether GitHub takes a comment at this place."""
        file = self.by_path.get(path)
        return file is not None and file.can_anchor(start, line, side)

    def text_after(self, path: str) -> str | None:
        """A file's whole text afterwards where the diff alone tells it: for an added file."""
        file = self.by_path.get(path)
        if file is None or file.status != "added" or file.binary or file.problem:
            return None
        return "".join(x.text + "\n" * x.newline for h in file.hunks for x in h.lines)
