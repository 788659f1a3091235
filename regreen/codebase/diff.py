"""A unified diff as values: which files and lines it changes, which lines may carry a comment.

Read here and not by a library: one damaged or unusual file must not cost us the others, paths arrive quoted,
and a line ends at a newline and nowhere else (a form feed or U+2028 is part of a line to git and to GitHub).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from regreen.codebase.change import Change, FileChange, Hunk, Line, Status

__all__ = ["Change", "FileChange", "Hunk", "Line", "Status", "apply_suggestion", "parse", "unquote"]


def parse(diff: str) -> Change:
    """Read a unified diff, as git or diff(1) writes it. Never raises: see `FileChange.problem`."""
    lines = diff.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    if any(x.endswith("\r") for x in lines if x.startswith(("diff --git ", "--- ", "+++ "))):
        lines = [x.removesuffix("\r") for x in lines]  # the patch itself was saved with CRLF
    files = list(_files(lines))
    times = Counter(f.path for f in files)
    return Change(tuple(_retyped(f) if times[f.path] > 1 else f for f in files))


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


def unquote(path: str) -> str:
    r"""A path as git quotes it ("a\303\244") or leaves it alone."""
    if len(path) < 2 or not (path.startswith('"') and path.endswith('"')):
        return path
    raw = path[1:-1].encode("utf-8", "surrogateescape")
    return _ESCAPE.sub(_unescape, raw).decode("utf-8", "surrogateescape")


_GIT_HEADERS = ("diff --git ", "diff --cc ", "diff --combined ")
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|.)", re.DOTALL)
_SIMPLE = {
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
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_PREFIXES = (("a/", "b/"), ("i/", "w/"), ("c/", "i/"), ("c/", "w/"), ("o/", "w/"), ("1/", "2/"))


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8) & 255]) if code[:1].isdigit() else _SIMPLE.get(code, code)


def _files(lines: Sequence[str]) -> Iterator[FileChange]:
    at = 0
    while at < len(lines):
        if lines[at].startswith(_GIT_HEADERS):
            file, at = _git_file(lines, at)
            yield file
        elif _is_plain_header(lines, at):
            draft = _Draft(_plain_path(lines[at]), _plain_path(lines[at + 1]))
            found, at = _hunks(lines, at + 2, plain=True)
            yield _plain_file(draft, found)
        else:
            at += 1


@dataclass
class _Draft:
    """What the headers of one file have said so far."""

    old: str
    new: str
    status: Status = "modified"
    old_mode: str | None = None
    new_mode: str | None = None
    old_sha: str | None = None
    new_sha: str | None = None
    binary: bool = False
    problem: str | None = None


@dataclass(frozen=True)
class _Hunks:
    hunks: tuple[Hunk, ...]
    problem: str | None = None


def _retyped(file: FileChange) -> FileChange:
    """A file that became a link (or back) stands in the diff twice; GitHub shows neither half."""
    problem = "its kind changed between file, link and submodule"
    return replace(file, hunks=(), problem=problem)


def _git_file(lines: Sequence[str], at: int) -> tuple[FileChange, int]:
    header = lines[at]
    if not header.startswith("diff --git "):
        path = unquote(header.split(" ", 2)[2])
        at = _next_file(lines, at + 1, plain=False)
        return FileChange(path, path, "modified", problem="a merge's combined diff"), at
    old, new, prefixed = _header_paths(header.removeprefix("diff --git "))
    draft = _Draft(old, new)
    at += 1
    while at < len(lines) and not lines[at].startswith(("@@", *_GIT_HEADERS)):
        if lines[at].startswith("GIT binary patch"):
            draft.binary = True
            at = _next_file(lines, at, plain=False)
            break
        _extended_header(lines[at], draft, prefixed=prefixed)
        at += 1
    found, at = _hunks(lines, at, plain=False)
    if draft.status == "modified" and draft.old != draft.new:
        draft.status = "renamed"
    if not draft.old or not draft.new:
        draft.problem = "its name could not be read"
    return _file(draft, found), at


def _extended_header(line: str, draft: _Draft, *, prefixed: bool) -> None:
    """Take in one line between `diff --git` and the first hunk."""
    word, _, rest = line.partition(" ")
    if word in {"---", "+++"}:
        _named(
            draft, unquote(rest.split("\t", maxsplit=1)[0]), old=word == "---", prefixed=prefixed
        )
    elif match := _MODE.fullmatch(line):
        _moded(draft, match[1], match[2])
    elif match := _RENAME.fullmatch(line):
        draft.status = "renamed" if match[1] == "rename" else "copied"
        _named(draft, unquote(match[3]), old=match[2] == "from", prefixed=False)
    elif match := _INDEX.fullmatch(line):
        draft.old_sha, draft.new_sha = match[1], match[2]
        if match[3]:
            draft.old_mode = draft.new_mode = match[3]
    elif word == "Binary":
        draft.binary = True


def _named(draft: _Draft, path: str, *, old: bool, prefixed: bool) -> None:
    if path == "/dev/null":
        draft.status = "added" if old else "deleted"
    elif old:
        draft.old = path.partition("/")[2] if prefixed else path
    else:
        draft.new = path.partition("/")[2] if prefixed else path


def _moded(draft: _Draft, what: str, mode: str) -> None:
    match what:
        case "new file":
            draft.status, draft.new_mode = "added", mode
        case "deleted file":
            draft.status, draft.old_mode = "deleted", mode
        case "old":
            draft.old_mode = mode
        case _:
            draft.new_mode = mode


def _header_paths(rest: str) -> tuple[str, str, bool]:
    """Both names in `diff --git A B`, and whether they carry prefixes such as `a/` and `b/`.

    Names may hold spaces and are not set apart then; but without a rename both are the same name, and with one
    its own header lines say the names.
    """
    if rest.startswith('"') or rest.endswith('"'):
        old, new = _quoted_pair(rest)
    else:
        middle = len(rest) // 2
        old, new = rest[:middle], rest[middle + 1 :]
        if rest[middle : middle + 1] != " " or not _same_name(old, new):
            old, _, new = rest.partition(" b/")
            new = f"b/{new}"
    if old == new:
        return old, new, False
    return old.partition("/")[2], new.partition("/")[2], True


def _same_name(old: str, new: str) -> bool:
    return old == new or ((old[:2], new[:2]) in _PREFIXES and old[2:] == new[2:])


def _quoted_pair(rest: str) -> tuple[str, str]:
    """Two names of which at least one is quoted."""
    if match := _QUOTED.match(rest):
        return unquote(match[0]), unquote(rest[match.end() + 1 :])
    old, _, new = rest.partition(' "')
    return old, unquote(f'"{new}')


def _is_plain_header(lines: Sequence[str], at: int) -> bool:
    return lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")


def _plain_path(line: str) -> str:
    return unquote(line[4:].split("\t", maxsplit=1)[0])


def _plain_file(draft: _Draft, found: _Hunks) -> FileChange:
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
    return _file(draft, found)


def _file(draft: _Draft, found: _Hunks) -> FileChange:
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


def _hunks(lines: Sequence[str], at: int, *, plain: bool) -> tuple[_Hunks, int]:
    """The hunks that follow, and where they end. Damage in one leaves the file without any."""
    hunks: list[Hunk] = []
    while at < len(lines) and (match := _HUNK.fullmatch(lines[at])):
        hunk, at = _hunk(match, lines, at + 1)
        if isinstance(hunk, str):
            return _Hunks((), hunk), _next_file(lines, at, plain=plain)
        if hunks and (
            hunk.new_start < hunks[-1].new_start + hunks[-1].new_count
            or hunk.old_start < hunks[-1].old_start + hunks[-1].old_count
        ):
            return _Hunks((), f"its hunks overlap at line {hunk.new_start}"), _next_file(
                lines, at, plain=plain
            )
        hunks.append(hunk)
    if at < len(lines) and lines[at].startswith("@@"):
        return _Hunks((), f"hunk header {lines[at][:60]!r} cannot be read"), _next_file(
            lines, at, plain=plain
        )
    return _Hunks(tuple(hunks)), at


def _hunk(header: re.Match[str], lines: Sequence[str], at: int) -> tuple[Hunk | str, int]:
    old_start, new_start = int(header[1]), int(header[3])
    old_count = 1 if header[2] is None else int(header[2])
    new_count = 1 if header[4] is None else int(header[4])
    old, new = old_start, new_start
    old_end, new_end = old_start + old_count, new_start + new_count
    rows: list[Line] = []
    while old < old_end or new < new_end:
        if at >= len(lines) or lines[at].startswith("diff --git "):
            return "the diff is cut off", at
        kind, text = lines[at][:1] or " ", lines[at][1:]
        if kind == "+" and new < new_end:
            rows.append(Line("+", None, new, text))
            new += 1
        elif kind == "-" and old < old_end:
            rows.append(Line("-", old, None, text))
            old += 1
        elif kind in " \r" and old < old_end and new < new_end:
            # an empty context line may have lost its space, even its newline's carriage return kept
            rows.append(Line(" ", old, new, text if kind == " " else "\r"))
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


def _without_newline(line: Line) -> Line:
    return Line(line.kind, line.old, line.new, line.text, newline=False)


def _next_file(lines: Sequence[str], at: int, *, plain: bool) -> int:
    """Where the next file's header stands. After git's headers only git's count: content may look like others."""
    while at < len(lines) and not lines[at].startswith(_GIT_HEADERS):
        if plain and _is_plain_header(lines, at):
            break
        at += 1
    return at
