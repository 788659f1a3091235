"""A change taken apart into hunks that can be put on or taken off one by one."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """One stretch of one file that differs: lines `[i1, i2)` before, `[j1, j2)` after."""

    path: str
    i1: int
    i2: int
    j1: int
    j2: int

    @property
    def size(self) -> int:
        """How many lines it touches."""
        return max(self.i2 - self.i1, self.j2 - self.j1)


def pieces(before: Mapping[str, str], after: Mapping[str, str]) -> list[Piece]:
    """Every differing stretch of the files that both sides have."""
    found: list[Piece] = []
    for path in sorted(before.keys() & after.keys()):
        old, new = before[path].splitlines(keepends=True), after[path].splitlines(keepends=True)
        for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(
            None, old, new, autojunk=False
        ).get_opcodes():
            if tag != "equal":
                found.append(Piece(path, i1, i2, j1, j2))
    return found


def lines_of(
    chosen: Collection[Piece], before: Mapping[str, str], after: Mapping[str, str]
) -> list[Piece]:
    """The chosen pieces cut into single lines: each replaced by the line most like it, put in, or left out."""
    found: list[Piece] = []
    for piece in chosen:
        old = before[piece.path].splitlines(keepends=True)[piece.i1 : piece.i2]
        new = after[piece.path].splitlines(keepends=True)[piece.j1 : piece.j2]
        i, j = piece.i1, piece.j1
        gone = False  # the line before went, and this one may stand in its place
        for line in difflib.ndiff(old, new, charjunk=None):
            mark = line[0]
            if mark == "-":
                found.append(Piece(piece.path, i, i + 1, j, j))
                i += 1
            elif mark == "+" and gone:
                last = found.pop()
                found.append(Piece(piece.path, last.i1, i, j, j + 1))
                j += 1
            elif mark == "+":
                found.append(Piece(piece.path, i, i, j, j + 1))
                j += 1
            elif mark == " ":
                i, j = i + 1, j + 1
            gone = mark == "-" or (gone and mark == "?")
    return found


def with_only(
    before: Mapping[str, str], after: Mapping[str, str], chosen: Collection[Piece]
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


Test = Callable[[Sequence[Sequence[Piece]]], list[bool]]
"""Tries several subsets at once; shorter than asked where time ran out."""


def smallest(all_pieces: Sequence[Piece], test: Test) -> list[Piece]:
    """Zeller's ddmin with a batch a round: a subset that still tests true, from which no piece can be left out.

    `all_pieces` itself must test true; else what comes back does, unless it is all of them again.
    """
    current = list(all_pieces)
    parts = 2
    while len(current) > 1:
        size = max(1, len(current) // parts)
        chunks = [current[at : at + size] for at in range(0, len(current), size)]
        rests = (
            [[one for one in current if one not in chunk] for chunk in chunks]
            if len(chunks) > 2
            else []
        )
        options = [option for option in [*chunks, *rests] if option]
        verdicts = test(options)
        hit = next((number for number, good in enumerate(verdicts) if good), None)
        if hit is not None:
            current = options[hit]
            parts = 2 if hit < len(chunks) else max(2, parts - 1)
            continue
        if size == 1 or len(verdicts) < len(options):
            break
        parts = min(len(current), parts * 2)
    return current


def all_taken_off(text: str, before: str, after: str) -> str:
    """The text with every piece of a past change undone that still stands somewhere, each of them once."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    for one in pieces({"": before}, {"": after}):
        undone = _undone(text, one, old, new)
        text = text if undone is None else undone
    return text


def _undone(text: str, piece: Piece, old: Sequence[str], new: Sequence[str]) -> str | None:
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
