"""A unified diff as values: which files and lines it changes, which lines may carry a comment.

Read here and not by a library: one damaged or unusual file must not cost us the others, paths arrive quoted,
and a line ends at a newline and nowhere else (a form feed or U+2028 is part of a line to git and to GitHub).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from regreen.domain.models import Side

__all__ = [
    "Change",
    "DiffLine",
    "FileChange",
    "FileStatus",
    "Hunk",
    "apply_suggestion",
    "parse",
    "parse_bounded",
    "unquote_path",
]


MAX_FILE_LINES = 20_000
"""A longer diff of one file is data, and costs some 200 bytes of memory for each line."""
MAX_LINES = 300_000


def parse(diff: str) -> Change:
    """Read a unified diff, as git or diff(1) writes it. Never raises: see `FileChange.problem`."""
    lines = diff.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    if any(x.endswith("\r") for x in lines if x.startswith(("diff --git ", "--- ", "+++ "))):
        lines = [x.removesuffix("\r") for x in lines]  # the patch itself was saved with CRLF
    files = list(_parse_files(lines))
    times = Counter(f.path for f in files)
    return Change(tuple(_merge_type_change(f) if times[f.path] > 1 else f for f in files))


def parse_bounded(diff: str) -> Change:
    """Read a diff of any size: of a file whose part is too long the headers alone, with the reason as its `problem`."""
    start = "diff --git "
    parts = f"\n{diff}".split(f"\n{start}")
    kept, large, left = [], [], MAX_LINES - parts[0].count("\n")
    if left < 0:
        parts[0] = ""  # a patch without git's headers that nobody can read
    for part in parts[1:]:
        lines = part.count("\n") + 1
        if lines > min(MAX_FILE_LINES, left):
            large.append(part.partition("\n@@")[0])
        else:
            left -= lines
            kept.append(part)
    read = parse("\n".join([parts[0].removeprefix("\n"), *(start + p for p in kept)]))
    problem = f"its diff is longer than {MAX_FILE_LINES:,} lines, or all together {MAX_LINES:,}"
    named = parse("\n".join(start + p for p in large))
    return Change((*read.files, *(replace(f, problem=problem) for f in named.files)))


def apply_suggestion(text: str, start: int, line: int, suggestion: str) -> str | None:
    """The file's text with lines `start` to `line` replaced, as GitHub commits a suggestion.

    An empty suggestion removes the lines. The replaced lines' own line ending is kept. None where the file has
    no such lines.
    """
    rows = [f"{x}\n" for x in text.split("\n")]
    rows[-1] = rows[-1][:-1]  # what follows the last newline: a line only where it holds something
    if rows[-1] == "":
        rows.pop()
    if not 1 <= start <= line <= len(rows):
        return None
    ending = "\r\n" if rows[start - 1].endswith("\r\n") else "\n"
    new = suggestion.removesuffix("\n").split("\n") if suggestion else []
    made = [x.removesuffix("\r") + ending for x in new]
    if made and not rows[line - 1].endswith("\n"):
        made[-1] = made[-1].removesuffix(ending)
    return "".join((*rows[: start - 1], *made, *rows[line:]))


def unquote_path(path: str) -> str:
    r"""A path as git quotes it ("a\303\244") or leaves it alone."""
    if len(path) < 2 or not (path.startswith('"') and path.endswith('"')):
        return path
    raw = path[1:-1].encode("utf-8", "surrogateescape")
    return _ESCAPE.sub(_decode_escape, raw).decode("utf-8", "surrogateescape")


_GIT_HEADERS = ("diff --git ", "diff --cc ", "diff --combined ")
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|.)", re.DOTALL)
_SIMPLE_ESCAPES = {
    b"a": b"\a",
    b"b": b"\b",
    b"t": b"\t",
    b"n": b"\n",
    b"v": b"\v",
    b"f": b"\f",
    b"r": b"\r",
}
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.*)", re.DOTALL)
_INDEX = re.compile(r"index ([0-9a-f]{4,64})\.\.([0-9a-f]{4,64})(?: ([0-7]{6}))?")
_MODE = re.compile(r"(new file|deleted file|old|new) mode ([0-7]{1,6})")
_RENAME = re.compile(r"(rename|copy) (from|to) (.+)", re.DOTALL)
_QUOTED_PATH = re.compile(r'"(?:[^"\\]|\\.)*"')
_PREFIXES = (("a/", "b/"), ("i/", "w/"), ("c/", "i/"), ("c/", "w/"), ("o/", "w/"), ("1/", "2/"))


def _decode_escape(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8) & 255]) if code[:1].isdigit() else _SIMPLE_ESCAPES.get(code, code)


def _parse_files(lines: Sequence[str]) -> Iterator[FileChange]:
    at = 0
    while at < len(lines):
        if lines[at].startswith(_GIT_HEADERS):
            file, at = _parse_git_file(lines, at)
            yield file
        elif _is_plain_header(lines, at):
            draft = _FileHeaders(_read_plain_path(lines[at]), _read_plain_path(lines[at + 1]))
            found, at = _parse_hunks(lines, at + 2, plain=True)
            yield _make_plain_file(draft, found)
        else:
            at += 1


@dataclass
class _FileHeaders:
    """What the headers of one file have said so far."""

    old: str
    new: str
    status: FileStatus = "modified"
    old_mode: str | None = None
    new_mode: str | None = None
    old_sha: str | None = None
    new_sha: str | None = None
    binary: bool = False
    problem: str | None = None


@dataclass(frozen=True)
class _ParsedHunks:
    hunks: tuple[Hunk, ...]
    problem: str | None = None


def _merge_type_change(file: FileChange) -> FileChange:
    """A file that became a link (or back) stands in the diff twice; GitHub shows neither half."""
    problem = "its kind changed between file, link and submodule"
    return replace(file, hunks=(), problem=problem)


def _parse_git_file(lines: Sequence[str], at: int) -> tuple[FileChange, int]:
    header = lines[at]
    if not header.startswith("diff --git "):
        path = unquote_path(header.split(" ", 2)[2])
        at = _find_next_file(lines, at + 1, plain=False)
        return FileChange(path, path, "modified", problem="a merge's combined diff"), at
    old, new, prefixed = _split_header_paths(header.removeprefix("diff --git "))
    draft = _FileHeaders(old, new)
    at += 1
    while at < len(lines) and not lines[at].startswith(("@@", *_GIT_HEADERS)):
        if lines[at].startswith("GIT binary patch"):
            draft.binary = True
            at = _find_next_file(lines, at, plain=False)
            break
        _read_extended_header(lines[at], draft, prefixed=prefixed)
        at += 1
    found, at = _parse_hunks(lines, at, plain=False)
    if draft.status == "modified" and draft.old != draft.new:
        draft.status = "renamed"
    if not draft.old or not draft.new:
        draft.problem = "its name could not be read"
    return _make_file_change(draft, found), at


def _read_extended_header(line: str, draft: _FileHeaders, *, prefixed: bool) -> None:
    """Take in one line between `diff --git` and the first hunk."""
    word, _, rest = line.partition(" ")
    if word in {"---", "+++"}:
        _set_path(
            draft,
            unquote_path(rest.split("\t", maxsplit=1)[0]),
            old=word == "---",
            prefixed=prefixed,
        )
    elif match := _MODE.fullmatch(line):
        _set_mode(draft, match[1], match[2])
    elif match := _RENAME.fullmatch(line):
        draft.status = "renamed" if match[1] == "rename" else "copied"
        _set_path(draft, unquote_path(match[3]), old=match[2] == "from", prefixed=False)
    elif match := _INDEX.fullmatch(line):
        draft.old_sha, draft.new_sha = match[1], match[2]
        if match[3]:
            draft.old_mode = draft.new_mode = match[3]
    elif word == "Binary":
        draft.binary = True


def _set_path(draft: _FileHeaders, path: str, *, old: bool, prefixed: bool) -> None:
    if path == "/dev/null":
        draft.status = "added" if old else "deleted"
    elif old:
        draft.old = path.partition("/")[2] if prefixed else path
    else:
        draft.new = path.partition("/")[2] if prefixed else path


def _set_mode(draft: _FileHeaders, what: str, mode: str) -> None:
    match what:
        case "new file":
            draft.status, draft.new_mode = "added", mode
        case "deleted file":
            draft.status, draft.old_mode = "deleted", mode
        case "old":
            draft.old_mode = mode
        case _:
            draft.new_mode = mode


def _split_header_paths(rest: str) -> tuple[str, str, bool]:
    """Both names in `diff --git A B`, and whether they carry prefixes such as `a/` and `b/`.

    Names may hold spaces and are not set apart then; but without a rename both are the same name, and with one
    its own header lines say the names.
    """
    if rest.startswith('"') or rest.endswith('"'):
        old, new = _split_quoted_pair(rest)
    else:
        middle = len(rest) // 2
        old, new = rest[:middle], rest[middle + 1 :]
        if rest[middle : middle + 1] != " " or not _is_same_name(old, new):
            old, _, new = rest.partition(" b/")
            new = f"b/{new}"
    if old == new:
        return old, new, False
    return old.partition("/")[2], new.partition("/")[2], True


def _is_same_name(old: str, new: str) -> bool:
    return old == new or ((old[:2], new[:2]) in _PREFIXES and old[2:] == new[2:])


def _split_quoted_pair(rest: str) -> tuple[str, str]:
    """Two names of which at least one is quoted."""
    if match := _QUOTED_PATH.match(rest):
        return unquote_path(match[0]), unquote_path(rest[match.end() + 1 :])
    old, _, new = rest.partition(' "')
    return old, unquote_path(f'"{new}')


def _is_plain_header(lines: Sequence[str], at: int) -> bool:
    return lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")


def _read_plain_path(line: str) -> str:
    return unquote_path(line[4:].split("\t", maxsplit=1)[0])


def _make_plain_file(draft: _FileHeaders, found: _ParsedHunks) -> FileChange:
    """A file of a diff without git's headers: prefixes are taken off only when they come as a pair."""
    pair = (draft.old[:2], draft.new[:2])
    if draft.old == "/dev/null":
        draft.status, draft.new = "added", draft.new.removeprefix("b/")
    elif draft.new == "/dev/null":
        draft.status, draft.old = "deleted", draft.old.removeprefix("a/")
    elif pair in _PREFIXES:
        draft.old, draft.new = draft.old[2:], draft.new[2:]
    if draft.status == "modified" and draft.old != draft.new:
        draft.old = draft.new  # `x.py.orig` against `x.py`: diff(1) knows no renames
    return _make_file_change(draft, found)


def _make_file_change(draft: _FileHeaders, found: _ParsedHunks) -> FileChange:
    if draft.status == "added":
        draft.old = draft.new
    elif draft.status == "deleted":
        draft.new = draft.old
    return FileChange(
        path=draft.new,
        old_path=draft.old,
        status=draft.status,
        hunks=found.hunks,
        old_mode=draft.old_mode,
        new_mode=draft.new_mode,
        old_sha=draft.old_sha,
        new_sha=draft.new_sha,
        binary=draft.binary,
        problem=draft.problem or found.problem,
    )


def _parse_hunks(lines: Sequence[str], at: int, *, plain: bool) -> tuple[_ParsedHunks, int]:
    """The hunks that follow, and where they end. Damage in one leaves the file without any."""
    hunks: list[Hunk] = []
    while at < len(lines) and (match := _HUNK.fullmatch(lines[at])):
        hunk, at = _parse_hunk(match, lines, at + 1)
        if isinstance(hunk, str):
            return _ParsedHunks((), hunk), _find_next_file(lines, at, plain=plain)
        if hunks and (
            hunk.new_start < hunks[-1].new_start + hunks[-1].new_count
            or hunk.old_start < hunks[-1].old_start + hunks[-1].old_count
        ):
            return _ParsedHunks((), f"its hunks overlap at line {hunk.new_start}"), _find_next_file(
                lines, at, plain=plain
            )
        hunks.append(hunk)
    if at < len(lines) and lines[at].startswith("@@"):
        return _ParsedHunks((), f"hunk header {lines[at][:60]!r} cannot be read"), _find_next_file(
            lines, at, plain=plain
        )
    return _ParsedHunks(tuple(hunks)), at


def _parse_hunk(header: re.Match[str], lines: Sequence[str], at: int) -> tuple[Hunk | str, int]:
    old_start, new_start = int(header[1]), int(header[3])
    old_count = 1 if header[2] is None else int(header[2])
    new_count = 1 if header[4] is None else int(header[4])
    old, new = old_start, new_start
    old_end, new_end = old_start + old_count, new_start + new_count
    rows: list[DiffLine] = []
    while old < old_end or new < new_end:
        if at >= len(lines) or lines[at].startswith("diff --git "):
            return "the diff is cut off", at
        kind, text = lines[at][:1] or " ", lines[at][1:]
        if kind == "+" and new < new_end:
            rows.append(DiffLine("+", None, new, text))
            new += 1
        elif kind == "-" and old < old_end:
            rows.append(DiffLine("-", old, None, text))
            old += 1
        elif kind in " \r" and old < old_end and new < new_end:
            # an empty context line may have lost its space, even its newline's carriage return kept
            rows.append(DiffLine(" ", old, new, text if kind == " " else "\r"))
            old, new = old + 1, new + 1
        elif kind == "\\" and rows:
            rows[-1] = _without_newline(rows[-1])
        else:
            return f"the hunk at line {new_start} does not have the lines its header promises", at
        at += 1
    if at < len(lines) and lines[at].startswith("\\") and rows:
        rows[-1] = _without_newline(rows[-1])
        at += 1
    return Hunk(old_start, old_count, new_start, new_count, header[5], tuple(rows)), at


def _without_newline(line: DiffLine) -> DiffLine:
    return DiffLine(line.kind, line.old, line.new, line.text, newline=False)


def _find_next_file(lines: Sequence[str], at: int, *, plain: bool) -> int:
    """Where the next file's header stands. After git's headers only git's count: content may look like others."""
    while at < len(lines) and not lines[at].startswith(_GIT_HEADERS):
        if plain and _is_plain_header(lines, at):
            break
        at += 1
    return at


# What a change is: files, hunks, lines, and which of them may carry a comment. Values only.

FileStatus = Literal["added", "deleted", "modified", "renamed", "copied"]
LineKind = Literal["+", "-", " "]

SYMLINK = "120000"
SUBMODULE = "160000"
SHOWN_LINES = 20_000
SHOWN_CHARACTERS = 500_000
"""What GitHub shows of one file's diff: https://docs.github.com/repositories/creating-and-managing-repositories/repository-limits"""


@dataclass(frozen=True, slots=True)
class DiffLine:
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
    lines: tuple[DiffLine, ...]

    def contains_line(self, number: int, side: Side) -> bool:
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
    status: FileStatus
    hunks: tuple[Hunk, ...] = ()
    old_mode: str | None = None
    new_mode: str | None = None
    old_sha: str | None = None
    new_sha: str | None = None
    binary: bool = False
    problem: str | None = None

    @property
    def is_submodule(self) -> bool:
        """A pointer to another repository's commit."""
        return SUBMODULE in (self.old_mode, self.new_mode)

    @property
    def is_symlink(self) -> bool:
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
    def changed_line_count(self) -> int:
        """How many lines are added or removed."""
        return len(self.added_lines) + len(self.removed_lines)

    def touches_lines(self, start: int, end: int) -> bool:
        """Whether a line from `start` to `end` of the file afterwards is one that this change adds."""
        at = bisect_left(self.added_lines, start)
        return at < len(self.added_lines) and self.added_lines[at] <= end

    def can_anchor(self, start: int, line: int, side: Side) -> bool:
        """Whether GitHub takes a comment on these lines: both ends inside one and the same hunk."""
        return (
            start <= line
            and not self.too_large
            and any(
                h.contains_line(start, side) and h.contains_line(line, side) for h in self.hunks
            )
        )

    def fit_to_hunk(self, start: int, line: int, side: Side) -> tuple[int, int] | None:
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
        hunk = next(h for h in self.hunks if h.contains_line(start, "RIGHT"))
        numbers = [x.new for x in hunk.lines]
        within = hunk.lines[numbers.index(start) : numbers.index(line) + 1]
        return all(x.kind != "-" for x in within)


@dataclass(frozen=True)
class Change:
    """A whole diff, file by file, in its own order."""

    files: tuple[FileChange, ...]

    @cached_property
    def by_path(self) -> dict[str, FileChange]:
        """The files by their path afterwards."""
        return {f.path: f for f in self.files}

    @property
    def changed_line_count(self) -> int:
        """How many lines are added or removed in all."""
        return sum(f.changed_line_count for f in self.files)

    def can_anchor(self, path: str, start: int, line: int, side: Side = "RIGHT") -> bool:
        """Whether GitHub takes a comment at this place."""
        file = self.by_path.get(path)
        return file is not None and file.can_anchor(start, line, side)

    def added_file_text(self, path: str) -> str | None:
        """A file's whole text afterwards where the diff alone tells it: for an added file."""
        file = self.by_path.get(path)
        if file is None or file.status != "added" or file.binary or file.problem:
            return None
        return "".join(x.text + "\n" * x.newline for h in file.hunks for x in h.lines)
