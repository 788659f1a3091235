"""Claims as a model makes them: read strictly, and placed at the line that they quote."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard, TypeVar, get_args

from regreen.code.diff import FileChange
from regreen.code.symbols import Definition, Outline, read_outline
from regreen.domain.models import ClaimReach, Dimension, Severity, Side
from regreen.domain.text_limits import shorten_text
from regreen.reviewers.model.review_prompts import ClaimKind

# Finds the line that a claim quotes, and the changed line on which a comment about it can be posted.

_NEAR_LINES = 3
_MAX_SNAP_LINES = 6
_MIN_TELLING_NAME = 5
_MAX_CODE_CHARACTERS = 160
_CAUSE_PLACE = re.compile(r"(?:(?P<path>.{1,400}):)?(?P<line>[0-9]{1,7})")


@dataclass(frozen=True, slots=True)
class SymptomLine:
    """The old line that shows a fault which a changed line elsewhere causes."""

    path: str
    line: int
    code: str = ""


@dataclass(frozen=True, slots=True)
class Anchor:
    """A line, and the changed line next to it if it is an old one (else 0).

    `shows` is the quoted line if a comment cannot stand there; `anchored` is False if no related changed line is
    known, so that the claim cannot be posted.
    """

    side: Side
    line: int
    changed: int = 0
    path: str = ""
    shows: SymptomLine | None = None
    anchored: bool = True


@dataclass(frozen=True, slots=True)
class _FileRow:
    """One line of a file, or a removed one; `at` is its new number, or that of the line in its place."""

    side: Side
    line: int
    at: int
    changed: bool
    text: str


def find_anchor(
    file: FileChange,
    number: float,
    quote: str,
    text: str = "",
    cause: tuple[FileChange, int] | None = None,
) -> Anchor | None:
    """The place of a claim: the line that it quotes, or the changed line that breaks the quoted one.

    Models count badly and copy well: the line with this number if the quote matches, else the same text in the
    same function, else a unique match. A line outside the hunks, or an old one, is moved to a changed line:
    the one next to it in its hunk, the one given as the cause, the nearest in its function, or the nearest
    that names its function.

    Args:
        file: the change of one file.
        number: the line's number in the new file, as the claim gives it.
        quote: the line as the claim copies it.
        text: the whole new file, "" if it is unknown: then lines outside of the hunks are not found.
        cause: the change of a file and the number of the line in it that the claim blames.
    """
    shape = read_outline(file.path, text.encode("utf-8", "surrogateescape"))
    rows = list(_file_rows(file, text))
    row = _find_quoted_row(rows, shape, file, number, quote)
    if row is None:
        near = _nearest_added_line(file, number, _NEAR_LINES)
        if near is not None:
            return Anchor("RIGHT", near)
        if missed := _nearest_removed_line(file, number):
            return missed
        row = next((r for r in rows if r.side == "RIGHT" and r.line == number), None)
        if row is None:
            return None  # neither its number nor its words are in the file
        if quote.strip():
            return Anchor("RIGHT", row.line, anchored=False)  # the quoted line is not there
    if row.changed:
        return Anchor(row.side, row.line)
    return (
        _anchor_at_blamed(file, row, cause)
        or _anchor_with_changed_neighbour(file, row.line)
        or _anchor_in_function(file, row, rows, shape)
        or Anchor("RIGHT", row.line, anchored=False)
    )


def parse_cause_place(
    value: object, own: FileChange | None, files: dict[str, FileChange]
) -> tuple[FileChange, int] | None:
    """The changed file and the line in it that a claim gives as its cause ("path:number", or a number alone)."""
    match = _CAUSE_PLACE.fullmatch(str(value).strip().removeprefix("b/"))
    file = match and (files.get(match["path"]) if match["path"] else own)
    return (file, int(match["line"])) if match and file else None


def find_anchor_at_cause(cause: tuple[FileChange, int] | None) -> Anchor | None:
    """The changed line that a claim gives as its cause, or the one next to it."""
    if cause is None:
        return None
    file, number = cause
    near = _nearest_added_line(file, number, _NEAR_LINES)
    anchor = Anchor("RIGHT", near) if near is not None else _nearest_removed_line(file, number)
    return anchor and Anchor(anchor.side, anchor.line, path=file.path)


def make_symptom_line(path: str, line: int, text: str) -> SymptomLine:
    """An old line with its code, if that is short enough to show."""
    code = text.strip()
    return SymptomLine(path, line, code if len(code) <= _MAX_CODE_CHARACTERS else "")


def _file_rows(file: FileChange, text: str) -> Iterator[_FileRow]:
    """All lines of a new file, those of its hunks first, and the removed ones at their old places."""
    shown: set[int] = set()
    for hunk in file.hunks:
        at = hunk.new_start + (hunk.new_count == 0)
        for x in hunk.lines:
            if x.kind == "-":
                yield _FileRow("LEFT", x.old or 0, at, True, x.text)
            elif x.new is not None:
                shown.add(x.new)
                yield _FileRow("RIGHT", x.new, x.new, x.kind == "+", x.text)
                at = x.new + 1
    for number, line in enumerate(text.split("\n") if text else (), 1):
        if number not in shown:
            yield _FileRow("RIGHT", number, number, False, line)


def _find_quoted_row(
    rows: Sequence[_FileRow], shape: Outline, file: FileChange, number: float, quote: str
) -> _FileRow | None:
    """The line that a quote was copied from; None if there is none, or no unique one."""
    same = _matching_rows(rows, quote)
    exact = [r for r in same if r.side == "RIGHT" and r.line == number]
    if exact:
        return exact[0]
    around = _enclosing_function(shape, number)
    if around is not None:
        near = [r for r in same if _enclosing_function(shape, r.at) == around]
    else:
        near = [
            r
            for r in same
            if any(
                h.contains_line(int(number), "RIGHT") and h.contains_line(r.line, r.side)
                for h in file.hunks
            )
        ]
    matches = near or same
    added = [r for r in matches if r.changed and r.side == "RIGHT"]
    removed = [r for r in matches if r.changed and r.side == "LEFT"]
    best = added or removed or matches
    if around is not None and not near and len(best) > 1:
        return None  # it belongs to another function, and nothing decides
    return min(best, key=lambda r: abs(r.at - number), default=None)


def _matching_rows(rows: Sequence[_FileRow], quote: str) -> list[_FileRow]:
    """The lines that match a quote: equal except for white space, else containing it; of several lines the first."""
    first = next((x for x in quote.split("\n") if x.strip()), "")
    for wanted in dict.fromkeys((" ".join(quote.split()), " ".join(first.split()))):
        same = [r for r in rows if wanted and " ".join(r.text.split()) == wanted]
        if not same and len(wanted) > 8:
            same = [r for r in rows if wanted in " ".join(r.text.split())]
        if same:
            return same
    return []


def _enclosing_function(shape: Outline, number: float) -> Definition | None:
    """The function or method around a line."""
    around = shape.definition_at(int(number))
    return around if around is not None and around.kind in {"function", "method"} else None


def _anchor_with_changed_neighbour(file: FileChange, line: int) -> Anchor | None:
    """An old line together with the changed one next to it in its hunk."""
    near = _nearest_added_line(file, line, _MAX_SNAP_LINES)
    if near is None:
        return _nearest_removed_line(file, line)
    together = file.can_anchor(min(line, near), max(line, near), "RIGHT")
    return Anchor("RIGHT", line, near) if together else None


def _anchor_at_blamed(
    file: FileChange, row: _FileRow, cause: tuple[FileChange, int] | None
) -> Anchor | None:
    """The changed line that is blamed for what shows on an old one."""
    anchor = find_anchor_at_cause(cause)
    if anchor is None:
        return None
    near = (anchor.path, anchor.side) == (file.path, "RIGHT")
    first, last = sorted((row.line, anchor.line))
    if near and last - first <= _MAX_SNAP_LINES and file.can_anchor(first, last, "RIGHT"):
        return Anchor("RIGHT", row.line, anchor.line)
    return _attach_shown_line(anchor, file, row)


def _anchor_in_function(
    file: FileChange, row: _FileRow, rows: Sequence[_FileRow], shape: Outline
) -> Anchor | None:
    """The nearest changed line in the same function as an old one, or that names this function, or in its class.

    Outside of functions only within a few lines.
    """
    around = _enclosing_function(shape, row.line)
    changed = [r for r in rows if r.changed and r.text.strip()]
    if around is None:
        near = [r for r in changed if abs(r.at - row.line) <= _MAX_SNAP_LINES]
    else:
        near = [r for r in changed if around.start <= r.at <= around.end]
    if not near and around is not None and len(around.short_name) >= _MIN_TELLING_NAME:
        called = re.compile(rf"\b{re.escape(around.short_name)}\b")
        near = [r for r in changed if r.side == "RIGHT" and called.search(r.text)]
    if not near and around is not None:
        classes = [
            d for d in shape.definitions if d.kind == "class" and d.start <= row.line <= d.end
        ]
        near = [r for r in changed if any(d.start <= r.at <= d.end for d in classes[-1:])]
    best = min(near, key=lambda r: (r.side == "LEFT", abs(r.at - row.line)), default=None)
    if best is None:
        return None
    return _attach_shown_line(Anchor(best.side, best.line, path=file.path), file, row)


def _attach_shown_line(anchor: Anchor, file: FileChange, row: _FileRow) -> Anchor:
    """Put a fault that shows on an old line on the changed line that causes it."""
    return replace(anchor, shows=make_symptom_line(file.path, row.line, row.text))


def _nearest_added_line(file: FileChange, number: float, most: int) -> int | None:
    """The nearest added line, if it is near enough."""
    near = [n for n in file.added_lines if abs(n - number) <= most]
    return min(near, key=lambda n: abs(n - number), default=None)


def _nearest_removed_line(file: FileChange, number: float) -> Anchor | None:
    """The nearest removed line, if the change adds none: the removed line is what is missing."""
    for hunk in file.hunks:
        at = next((i for i, x in enumerate(hunk.lines) if x.new == number), None)
        if at is None:
            continue
        removed = [
            (abs(i - at), x.old) for i, x in enumerate(hunk.lines) if x.kind == "-" and x.old
        ]
        distance, old = min(removed, default=(_MAX_SNAP_LINES + 1, 0))
        if distance <= _MAX_SNAP_LINES:
            return Anchor("LEFT", old)
    return None


T = TypeVar("T")
CLAIM_KINDS: tuple[ClaimKind, ...] = get_args(ClaimKind)
CLAIM_REACHES: tuple[ClaimReach, ...] = get_args(ClaimReach)
MAX_REPLACEMENT_CHARACTERS = 2000

_MAX_CLAIMS = 12
_MAX_REPLACED_LINES = 10
_GRAVE_KINDS = frozenset({"security", "data-loss"})
_SEVERITY_BY_KIND: dict[tuple[bool, ClaimReach], Severity] = {
    (True, "usual"): "critical",
    (True, "sometimes"): "high",
    (True, "rare"): "medium",
    (False, "usual"): "high",
    (False, "sometimes"): "medium",
    (False, "rare"): "low",
}


@dataclass(frozen=True, slots=True)
class ClaimExample:
    """An input and its effect."""

    input: str
    happens: str

    def __str__(self) -> str:
        return f"{self.input}: {self.happens}"


@dataclass(frozen=True, slots=True)
class ModelClaim:
    """One claim of a reading, with the line it stands on: of the file before on side LEFT.

    `last` is the last line that `replacement` stands for, 0 where that is `line`; `others` are the examples of claims
    with the same cause. `changed` is the changed line that belongs to it where `line` itself is an old one.
    `shows` is the old line at fault where `line` is the changed one that brings it about. A claim that is not
    `anchored` stands on an old line that nothing ties to the change: no comment can be put there.
    """

    path: str
    line: int
    title: str
    input: str
    happens: str
    should: str
    mend: str
    replacement: str | None
    kind: ClaimKind
    reach: ClaimReach
    sure: float
    side: Side = "RIGHT"
    last: int = 0
    others: tuple[ClaimExample, ...] = ()
    changed: int = 0
    shows: SymptomLine | None = None
    anchored: bool = True
    quote: str = ""

    @property
    def severity(self) -> Severity:
        """The severity, from the kind of harm and how often it occurs."""
        return _SEVERITY_BY_KIND[self.kind in _GRAVE_KINDS, self.reach]

    @property
    def dimension(self) -> Dimension:
        """Which score it belongs to."""
        return "security" if self.kind == "security" else "correctness"

    @property
    def fault_place(self) -> tuple[str, Side, int]:
        """The line at fault, wherever the comment is put."""
        return (
            (self.shows.path, "RIGHT", self.shows.line)
            if self.shows
            else (self.path, self.side, self.line)
        )

    @property
    def text_for_second_reader(self) -> str:
        """The claim as text for the second reader."""
        path, side, line = self.fault_place
        cause = f"\nBrought about by {self.path}, line {self.line}" if self.shows else ""
        if self.shows and self.side == "LEFT":
            cause += " before the change"
        return (
            f"{path}, line {line}{' before the change' * (side == 'LEFT')}: {self.title}{cause}\n"
            f"Input: {self.input}\nHappens: {self.happens}\nShould: {self.should}"
        )


def read_claims(
    answer: dict[str, object],
    files: Sequence[FileChange],
    after: Callable[[str], str | None] = lambda _: None,
) -> tuple[ModelClaim, ...]:
    """The claims in a model's answer that name a line which is there, each at its place; the rest is dropped.

    Nothing in the answer is trusted: types are checked, places are found by the quoted code. `after` gives a file's
    text after the change, so that faults on lines which the hunks do not show are found too.
    """
    rows = answer.get("findings")
    by_path = {f.path: f for f in files}
    listed = rows[:_MAX_CLAIMS] if isinstance(rows, list) else []
    claims = (_read_claim(row, by_path, after) for row in listed)
    return tuple(s for s in claims if s is not None)


def _read_claim(
    row: object,
    by_path: dict[str, FileChange],
    after: Callable[[str], str | None],
) -> ModelClaim | None:
    if not isinstance(row, dict):
        return None
    path = str(row.get("path", "")).removeprefix("b/")
    number, sure = row.get("line"), row.get("sure")
    if not _is_number(number) or not _is_number(sure):
        return None
    if number - number != 0:  # infinite, or not a number: only the quote gives the place
        number = 0
    file = by_path.get(path)
    cause = parse_cause_place(row.get("cause"), file, by_path)
    quote, text = str(row.get("quote", "")), after(path)
    if file is not None:
        found = find_anchor(file, number, quote, text or "", cause)
    else:
        found = _anchor_in_unchanged_file(path, text, number, cause)
    title = _one_line(row.get("title"), 140)
    if found is None or not title:
        return None
    replacement = row.get("replacement")
    fits = isinstance(replacement, str) and len(replacement) < MAX_REPLACEMENT_CHARACTERS
    return ModelClaim(
        path=found.path or path,
        line=found.line,
        side=found.side,
        changed=found.changed,
        shows=found.shows,
        anchored=found.anchored,
        quote=quote[:400],
        title=title,
        input=_join_to_one_line(row.get("input"), 600),
        happens=_join_to_one_line(row.get("happens"), 800),
        should=_join_to_one_line(row.get("should"), 500),
        mend=_join_to_one_line(row.get("mend"), 400),
        replacement=replacement
        if fits and file and _is_replacement_for_anchor(file, found, row.get("quote"))
        else None,
        last=found.line + _read_replaced_count(row.get("lines")) - 1,
        kind=_choose_allowed(row.get("kind"), CLAIM_KINDS, "wrong-result"),
        reach=_choose_allowed(row.get("reach"), CLAIM_REACHES, "sometimes"),
        sure=float(min(1, max(0, sure))),
    )


def _anchor_in_unchanged_file(
    path: str, text: str | None, number: float, cause: tuple[FileChange, int] | None
) -> Anchor | None:
    """The place of a claim about a file that the change does not touch: on what it names as its cause."""
    if text is None or not 1 <= number <= text.count("\n") + 1:
        return None
    line = int(number)
    anchor = find_anchor_at_cause(cause)
    if anchor is None:
        return Anchor("RIGHT", line, anchored=False)
    return replace(anchor, shows=make_symptom_line(path, line, text.split("\n")[line - 1]))


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_replacement_for_anchor(file: FileChange, found: Anchor, quote: object) -> bool:
    """Whether a replacement for the quoted line is one for the line that the claim was placed at, and that is new."""
    if found.changed or found.shows or not found.anchored:
        return False
    lines = [x for h in file.hunks for x in h.lines if x.new == found.line]
    return isinstance(quote, str) and bool(lines) and lines[0].text.strip() == quote.strip()


def _read_replaced_count(value: object) -> int:
    return min(_MAX_REPLACED_LINES, max(1, value)) if isinstance(value, int) else 1


def _choose_allowed(value: object, allowed: Sequence[T], default: T) -> T:
    return next((a for a in allowed if a == value), default)


def _one_line(value: object, most: int) -> str:
    return shorten_text(" ".join(value.split()), most) if isinstance(value, str) else ""


def _join_to_one_line(value: object, most: int) -> str:
    """Text in one line with its blanks as they are: they may be what an example is about."""
    if not isinstance(value, str):
        return ""
    rows = [row.rstrip() for row in value.splitlines()]
    lines = [row.lstrip() if i else row for i, row in enumerate(rows) if row]
    return shorten_text(" ".join(lines).strip(), most)


# Claims with the same cause become one.


def drop_repetitions(claims: Iterable[ModelClaim]) -> tuple[ModelClaim, ...]:
    """The claims, surest first, each once."""
    found: dict[tuple[str, Side, int, str], ModelClaim] = {}
    for claim in sorted(claims, key=lambda c: -c.sure):
        found.setdefault((*claim.fault_place, claim.title), claim)
    return tuple(found.values())


def join_claims(claim: ModelClaim, other: ModelClaim) -> ModelClaim:
    """Two claims with one cause as one: the words of the surer one, and the other's examples."""
    best, less = (claim, other) if claim.sure >= other.sure else (other, claim)
    if less.anchored and not best.anchored:
        best = replace(
            best,
            path=less.path,
            side=less.side,
            line=less.line,
            changed=less.changed,
            shows=less.shows,
            anchored=True,
        )
    examples = (*best.others, ClaimExample(less.input, less.happens), *less.others)
    mine = " ".join(best.input.split())
    return replace(
        best, others=tuple(dict.fromkeys(o for o in examples if " ".join(o.input.split()) != mine))
    )
