"""Where a claim stands: the line it quotes, and the changed line on which a comment about it can be put."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from regreen.codebase.diff import FileChange
from regreen.codebase.symbols import Definition, Outline, outline
from regreen.models import Side

_NEAR = 3
_SNAP = 6
_TELLING = 5
_LONGEST_CODE = 160
_CAUSE = re.compile(r"(?:(?P<path>.{1,400}):)?(?P<line>[0-9]{1,7})")


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The old line where a fault shows that a changed line elsewhere brings about."""

    path: str
    line: int
    code: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """A line, and the changed line next to it where it is an old one (else 0).

    `shows` is the line that was quoted where a comment cannot stand on it; `anchored` is False where no changed line
    is known that has to do with it, so that the claim cannot be posted.
    """

    side: Side
    line: int
    changed: int = 0
    path: str = ""
    shows: Elsewhere | None = None
    anchored: bool = True


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of a file or one that was removed; `at` is its number afterwards, or that of the line now there."""

    side: Side
    line: int
    at: int
    changed: bool
    text: str


def place(
    file: FileChange, number: float, quote: str, text: str = "", cause: tuple[FileChange, int] | None = None
) -> Place | None:  # fmt: skip
    """Where a claim stands: on the line it quotes, or on the changed line that makes that one go wrong.

    Models count badly and copy well: the line with this number where the quote is its text, else the same text in the
    same function, else one that is not to be confused with another. A line that the hunks do not show, or that is an
    old one, is held to a changed one: the one next to it in its hunk, the one said to be the cause, the nearest in
    its function, or the nearest that names its function.

    Args:
        file: the change of one file.
        number: the line's number in the file afterwards, as the claim gives it.
        quote: the line as the claim copies it.
        text: the whole file afterwards, "" where it is not known: then lines outside of the hunks are not found.
        cause: the change of a file and the number of the line in it that the claim says is to blame.
    """
    shape = outline(file.path, text.encode("utf-8", "surrogateescape"))
    rows = list(_rows(file, text))
    found = _quoted(rows, shape, file, number, quote)
    if found is None:
        near = _snapped(file, number, _NEAR)
        if near is not None:
            return Place("RIGHT", near)
        if missed := _missed(file, number):
            return missed
        found = next((r for r in rows if r.side == "RIGHT" and r.line == number), None)
        if found is None:
            return None  # neither its number nor its words are in the file
        if quote.strip():
            return Place("RIGHT", found.line, anchored=False)  # what it quotes is not there
    if found.changed:
        return Place(found.side, found.line)
    return (
        _blamed(file, found, cause)
        or _beside(file, found.line)
        or _held(file, found, rows, shape)
        or Place("RIGHT", found.line, anchored=False)
    )


def blamed(value: object, own: FileChange | None, files: dict[str, FileChange]) -> tuple[FileChange, int] | None:  # fmt: skip
    """The changed file and the line in it that a claim names as its cause ("path:number", or a number alone)."""
    match = _CAUSE.fullmatch(str(value).strip().removeprefix("b/"))
    file = match and (files.get(match["path"]) if match["path"] else own)
    return (file, int(match["line"])) if match and file else None


def brought(cause: tuple[FileChange, int] | None) -> Place | None:
    """The changed line that a claim names as its cause, or the one next to what it names."""
    if cause is None:
        return None
    file, number = cause
    near = _snapped(file, number, _NEAR)
    found = Place("RIGHT", near) if near is not None else _missed(file, number)
    return found and Place(found.side, found.line, path=file.path)


def elsewhere(path: str, line: int, text: str) -> Elsewhere:
    """An old line with its code, where that is short enough to be shown."""
    code = text.strip()
    return Elsewhere(path, line, code if len(code) <= _LONGEST_CODE else "")


def _rows(file: FileChange, text: str) -> Iterator[_Row]:
    """All lines of a file afterwards, those of its hunks first, and the removed ones where they stood."""
    shown: set[int] = set()
    for hunk in file.hunks:
        at = hunk.new_start + (hunk.new_count == 0)
        for x in hunk.lines:
            if x.kind == "-":
                yield _Row("LEFT", x.old or 0, at, True, x.text)
            elif x.new is not None:
                shown.add(x.new)
                yield _Row("RIGHT", x.new, x.new, x.kind == "+", x.text)
                at = x.new + 1
    for number, line in enumerate(text.split("\n") if text else (), 1):
        if number not in shown:
            yield _Row("RIGHT", number, number, False, line)


def _quoted(
    rows: Sequence[_Row], shape: Outline, file: FileChange, number: float, quote: str
) -> _Row | None:
    """The line that a quote was copied from; None where there is none, or too many of them."""
    same = _same(rows, quote)
    exact = [r for r in same if r.side == "RIGHT" and r.line == number]
    if exact:
        return exact[0]
    around = _function(shape, number)
    if around is not None:
        near = [r for r in same if _function(shape, r.at) == around]
    else:
        near = [r for r in same if any(h.holds(int(number), "RIGHT") and h.holds(r.line, r.side) for h in file.hunks)]  # fmt: skip
    found = near or same
    added = [r for r in found if r.changed and r.side == "RIGHT"]
    gone = [r for r in found if r.changed and r.side == "LEFT"]
    best = added or gone or found
    if around is not None and not near and len(best) > 1:
        return None  # another function's, and nothing says which
    return min(best, key=lambda r: abs(r.at - number), default=None)


def _same(rows: Sequence[_Row], quote: str) -> list[_Row]:
    """The lines that a quote was copied from: equal but for white space, else holding it; of several lines the first."""
    first = next((x for x in quote.split("\n") if x.strip()), "")
    for wanted in dict.fromkeys((" ".join(quote.split()), " ".join(first.split()))):
        same = [r for r in rows if wanted and " ".join(r.text.split()) == wanted]
        if not same and len(wanted) > 8:
            same = [r for r in rows if wanted in " ".join(r.text.split())]
        if same:
            return same
    return []


def _function(shape: Outline, number: float) -> Definition | None:
    """The function or method around a line."""
    around = shape.at(int(number))
    return around if around is not None and around.kind in {"function", "method"} else None


def _beside(file: FileChange, line: int) -> Place | None:
    """An old line together with the changed one next to it in its hunk."""
    near = _snapped(file, line, _SNAP)
    if near is None:
        return _missed(file, line)
    together = file.can_anchor(min(line, near), max(line, near), "RIGHT")
    return Place("RIGHT", line, near) if together else None


def _blamed(file: FileChange, found: _Row, cause: tuple[FileChange, int] | None) -> Place | None:
    """The changed line that is said to be the cause of what shows on an old one."""
    anchor = brought(cause)
    if anchor is None:
        return None
    near = (anchor.path, anchor.side) == (file.path, "RIGHT")
    first, last = sorted((found.line, anchor.line))
    if near and last - first <= _SNAP and file.can_anchor(first, last, "RIGHT"):
        return Place("RIGHT", found.line, anchor.line)
    return _standing(anchor, file, found)


def _held(file: FileChange, found: _Row, rows: Sequence[_Row], shape: Outline) -> Place | None:
    """The nearest changed line in the same function as an old one, or that names this function, or in its class.

    Outside of functions only what stands a few lines away.
    """
    around = _function(shape, found.line)
    changed = [r for r in rows if r.changed and r.text.strip()]
    if around is None:
        near = [r for r in changed if abs(r.at - found.line) <= _SNAP]
    else:
        near = [r for r in changed if around.start <= r.at <= around.end]
    if not near and around is not None and len(around.short) >= _TELLING:
        called = re.compile(rf"\b{re.escape(around.short)}\b")
        near = [r for r in changed if r.side == "RIGHT" and called.search(r.text)]
    if not near and around is not None:
        classes = [
            d for d in shape.definitions if d.kind == "class" and d.start <= found.line <= d.end
        ]
        near = [r for r in changed if any(d.start <= r.at <= d.end for d in classes[-1:])]
    best = min(near, key=lambda r: (r.side == "LEFT", abs(r.at - found.line)), default=None)
    if best is None:
        return None
    return _standing(Place(best.side, best.line, path=file.path), file, found)


def _standing(anchor: Place, file: FileChange, found: _Row) -> Place:
    """What shows on an old line, put on the changed line that brings it about."""
    return replace(anchor, shows=elsewhere(file.path, found.line, found.text))


def _snapped(file: FileChange, number: float, most: int) -> int | None:
    """The added line nearest to a number, where one is near enough."""
    near = [n for n in file.added_lines if abs(n - number) <= most]
    return min(near, key=lambda n: abs(n - number), default=None)


def _missed(file: FileChange, number: float) -> Place | None:
    """The removed line nearest to a line of the file afterwards, where the change adds none: it is what is missed."""
    for hunk in file.hunks:
        at = next((i for i, x in enumerate(hunk.lines) if x.new == number), None)
        if at is None:
            continue
        gone = [(abs(i - at), x.old) for i, x in enumerate(hunk.lines) if x.kind == "-" and x.old]
        apart, old = min(gone, default=(_SNAP + 1, 0))
        if apart <= _SNAP:
            return Place("LEFT", old)
    return None
