"""A change taken apart into hunks that can be put on or taken off one by one."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from regreen.domain.errors import AnalysisFailed
from regreen.isolation import ChildLimits, name_failed_input, run_in_child

_COMPARING = ChildLimits(cpu=5)
_MAX_QUICK_PAIRS = 250_000
"""So many pairs of lines are compared in half a second, however they are arranged."""


@dataclass(frozen=True, slots=True)
class ChangePiece:
    """One stretch of one file that differs: lines `[i1, i2)` before, `[j1, j2)` after."""

    path: str
    i1: int
    i2: int
    j1: int
    j2: int

    @property
    def line_count(self) -> int:
        """How many lines it touches."""
        return max(self.i2 - self.i1, self.j2 - self.j1)


def split_into_pieces(before: Mapping[str, str], after: Mapping[str, str]) -> list[ChangePiece]:
    """Every differing stretch of the files that both sides have; compared in a child process.

    Raises:
        AnalysisFailed: comparing them took too long.
    """
    with name_failed_input("the difference"):
        return run_in_child(_find_pieces, dict(before), dict(after), limits=_COMPARING)


def _find_pieces(before: Mapping[str, str], after: Mapping[str, str]) -> list[ChangePiece]:
    found: list[ChangePiece] = []
    for path in sorted(before.keys() & after.keys()):
        old, new = before[path].splitlines(keepends=True), after[path].splitlines(keepends=True)
        for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(
            None, old, new, autojunk=False
        ).get_opcodes():
            if tag != "equal":
                found.append(ChangePiece(path, i1, i2, j1, j2))
    return found


def split_pieces_into_lines(
    chosen: Collection[ChangePiece], before: Mapping[str, str], after: Mapping[str, str]
) -> list[ChangePiece]:
    """The chosen pieces cut into single lines: each replaced by the line most like it, put in, or left out."""
    found: list[ChangePiece] = []
    for piece in chosen:
        old = before[piece.path].splitlines(keepends=True)[piece.i1 : piece.i2]
        new = after[piece.path].splitlines(keepends=True)[piece.j1 : piece.j2]
        i, j = piece.i1, piece.j1
        gone = False  # the line before went, and this one may stand in its place
        for line in difflib.ndiff(old, new, charjunk=None):
            mark = line[0]
            if mark == "-":
                found.append(ChangePiece(piece.path, i, i + 1, j, j))
                i += 1
            elif mark == "+" and gone:
                last = found.pop()
                found.append(ChangePiece(piece.path, last.i1, i, j, j + 1))
                j += 1
            elif mark == "+":
                found.append(ChangePiece(piece.path, i, i, j, j + 1))
                j += 1
            elif mark == " ":
                i, j = i + 1, j + 1
            gone = mark == "-" or (gone and mark == "?")
    return found


def apply_pieces(
    before: Mapping[str, str], after: Mapping[str, str], chosen: Collection[ChangePiece]
) -> dict[str, str]:
    """`before` with only the chosen pieces of the change put on; files that stay as they were are left out."""
    changed: dict[str, str] = {}
    for path in sorted({piece.path for piece in chosen}):
        old, new = before[path].splitlines(keepends=True), after[path].splitlines(keepends=True)
        lines: list[str] = []
        at = 0
        for piece in sorted((one for one in chosen if one.path == path), key=lambda one: one.i1):
            lines += old[at : piece.i1]
            lines += new[piece.j1 : piece.j2]
            at = piece.i2
        lines += old[at:]
        changed[path] = "".join(lines)
    return changed


def undo_all_pieces(text: str, before: str, after: str) -> str:
    """The text with every piece of a past change undone that still stands somewhere, each of them once."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    for one in split_into_pieces({"": before}, {"": after}):
        undone = _undo_piece(text, one, old, new)
        text = text if undone is None else undone
    return text


def _undo_piece(
    text: str, piece: ChangePiece, old: Sequence[str], new: Sequence[str]
) -> str | None:
    """The text without one piece, found by as many of its neighbours as still stand beside it."""
    for around in (3, 2, 1, 0):
        lead, tail = (
            new[max(0, piece.j1 - around) : piece.j1],
            new[piece.j2 : piece.j2 + around],
        )
        block = "".join([*lead, *new[piece.j1 : piece.j2], *tail])
        if block.strip() and text.count(block) == 1 and (around or piece.j2 > piece.j1):
            return text.replace(block, "".join([*lead, *old[piece.i1 : piece.i2], *tail]))
    return None


# Unified diffs made from bytes, so that no patch is ever computed inside a box that ran foreign code.

NO_NEWLINE = "\\ No newline at end of file\n"


def diff_files(before: Mapping[str, bytes | None], after: Mapping[str, bytes | None]) -> str:
    """The patch that turns `before` into `after`; None stands for "no such file". Text files only."""
    parts: list[str] = []
    for path in sorted(after):
        old, new = before.get(path), after[path]
        if old != new:
            parts.append(diff_file(path, old, new))
    return "".join(parts)


def diff_file(path: str, old: bytes | None, new: bytes | None) -> str:
    """One file's patch, in the form that `git apply` takes.

    Raises:
        UnicodeDecodeError: a side is not UTF-8 text.
    """
    before = _split_lines(old)
    after = _split_lines(new)
    head = [f"diff --git a/{path} b/{path}\n"]
    if old is None:
        head.append("new file mode 100644\n")
    if new is None:
        head.append("deleted file mode 100644\n")
    if not before and not after:
        return "".join(head)
    head.append("--- /dev/null\n" if old is None else f"--- a/{path}{_path_terminator(path)}\n")
    head.append("+++ /dev/null\n" if new is None else f"+++ b/{path}{_path_terminator(path)}\n")
    return "".join(head) + "".join(_format_hunks(before, after))


def _path_terminator(path: str) -> str:
    return "\t" if " " in path else ""


def _split_lines(data: bytes | None) -> list[str]:
    """Lines split at line feeds alone: git knows no other end of line."""
    if not data:
        return []
    text = data.decode("utf-8")
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _format_hunks(before: list[str], after: list[str]) -> Iterator[str]:
    for group in _group_opcodes(before, after):
        first, last = group[0], group[-1]
        yield f"@@ -{_format_range(first[1], last[2])} +{_format_range(first[3], last[4])} @@\n"
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (_format_line(" ", line) for line in before[i1:i2])
                continue
            yield from (_format_line("-", line) for line in before[i1:i2])
            yield from (_format_line("+", line) for line in after[j1:j2])


def _group_opcodes(
    before: list[str], after: list[str]
) -> Iterator[list[tuple[str, int, int, int, int]]]:
    """Difflib's groups, computed on the part that differs: lock files are long and change in the middle.

    Where comparing that part takes too long, all of it is one group.
    """
    head = 0
    limit = min(len(before), len(after))
    while head < limit and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < limit - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    start = max(0, head - 3)
    stop = max(0, tail - 3)
    old, new = before[start : len(before) - stop], after[start : len(after) - stop]
    try:
        is_quick = len(old) * len(new) <= _MAX_QUICK_PAIRS
        groups = (
            _compare_lines(old, new)
            if is_quick
            else run_in_child(_compare_lines, old, new, limits=_COMPARING)
        )
    except AnalysisFailed:
        a, b, c = head - start, len(old) - (tail - stop), len(new) - (tail - stop)
        groups = [
            [("equal", 0, a, 0, a), ("replace", a, b, a, c), ("equal", b, len(old), c, len(new))]
        ]
    for group in groups:
        yield [
            (tag, i1 + start, i2 + start, j1 + start, j2 + start) for tag, i1, i2, j1, j2 in group
        ]


def _compare_lines(
    old: Sequence[str], new: Sequence[str]
) -> list[list[tuple[str, int, int, int, int]]]:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=len(old) + len(new) > 2000)
    return list(matcher.get_grouped_opcodes(3))


def _format_range(start: int, stop: int) -> str:
    length = stop - start
    first = start + 1 if length else start
    return f"{first}" if length == 1 else f"{first},{length}"


def _format_line(sign: str, line: str) -> str:
    return f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n{NO_NEWLINE}"
