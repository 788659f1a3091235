"""Claims as a model makes them: read strictly, placed by the code they quote, merged where several say the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard, TypeVar, get_args

from regreen.codebase.diff import FileChange, Line
from regreen.models import Dimension, Severity, Side
from regreen.reviewers.prompts import Kind, Reach
from regreen.reviewers.shorten import shortened

T = TypeVar("T")
KINDS: tuple[Kind, ...] = get_args(Kind)
REACHES: tuple[Reach, ...] = get_args(Reach)
LONGEST_REPLACEMENT = 2000

_MOST_CLAIMS = 12
_NEAR = 3
_SNAP = 6
_MOST_REPLACED = 10
_SAME_CAUSE = 0.6
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}|[0-9]+")
_COMMON = frozenset(
    """the and for with that this not but when will from are instead does should which has have was its into value
    values return returns returned function method line code argument arguments called call calls""".split()  # noqa: SIM905 - reads better without quotes
)
_GRAVE = frozenset({"security", "data-loss"})
_SEVERITY: dict[tuple[bool, Reach], Severity] = {
    (True, "usual"): "critical",
    (True, "sometimes"): "high",
    (True, "rare"): "medium",
    (False, "usual"): "high",
    (False, "sometimes"): "medium",
    (False, "rare"): "low",
}


@dataclass(frozen=True, slots=True)
class Said:
    """One claim of one or more readers, with the line it stands on: of the file before on side LEFT.

    `last` is the last line that `replacement` stands for, 0 where that is `line`; `others` is how other readers put
    it who named another input. `changed` is the changed line that belongs to it where `line` itself is an old one.
    """

    path: str
    line: int
    title: str
    input: str
    happens: str
    should: str
    mend: str
    replacement: str | None
    kind: Kind
    reach: Reach
    sure: float
    readers: tuple[str, ...]
    side: Side = "RIGHT"
    last: int = 0
    others: tuple[str, ...] = ()
    changed: int = 0

    @property
    def severity(self) -> Severity:
        """How grave it is, by rule: what kind of harm, and how often it is met."""
        return _SEVERITY[self.kind in _GRAVE, self.reach]

    @property
    def dimension(self) -> Dimension:
        """Which score it belongs to."""
        return "security" if self.kind == "security" else "correctness"

    @property
    def told(self) -> str:
        """The claim for somebody who is to try it."""
        return (
            f"{self.path}, line {self.line}{' before the change' * (self.side == 'LEFT')}: {self.title}\n"
            f"Input: {self.input}\nHappens: {self.happens}\nShould: {self.should}"
            + "".join(f"\nAnother reader puts it so: {o}" for o in self.others)
        )

    @property
    def short(self) -> str:
        """What goes in and what comes out."""
        return f"{self.input}: {self.happens}"


def read_claims(
    answer: dict[str, object], reader: str, files: Sequence[FileChange]
) -> tuple[Said, ...]:
    """The claims in a model's answer that stand on a line which the change shows; the rest is dropped.

    Nothing in the answer is trusted: types are checked, places are found by the quoted code.
    """
    rows = answer.get("findings")
    by_path = {f.path: f for f in files}
    listed = rows[:_MOST_CLAIMS] if isinstance(rows, list) else []
    said = (_claim(row, reader, by_path) for row in listed)
    return tuple(s for s in said if s is not None)


def merge(said: Iterable[Said]) -> tuple[Said, ...]:
    """One claim where several readers surely say the same of the same place; most readers first, then the surest.

    What one reader hands in as two causes stays two. The likest pair is joined first, so that the order in which
    the readers answered decides nothing. What is not surely the same is left to the second reader to tell apart.
    """
    merged: list[Said] = []
    for claim in said:
        twin = next((i for i, m in enumerate(merged) if _repeated(m, claim)), None)
        if twin is None:
            merged.append(claim)
    while pair := _likest(merged):
        one, other = pair
        merged = [m for m in merged if m is not one and m is not other]
        merged.append(joined(one, other))
    return tuple(sorted(merged, key=lambda m: (-len(m.readers), -m.sure)))


def joined(one: Said, other: Said) -> Said:
    """Two claims of one cause as one: the surer's words, and what the other saw beside it."""
    best, less = (one, other) if one.sure >= other.sure else (other, one)
    same_line = (best.line, best.side) == (less.line, less.side)
    borrowed = best.replacement is None and same_line
    tells = _alike(best.input, less.input) < _SAME_CAUSE
    return replace(
        best,
        readers=tuple(dict.fromkeys(one.readers + other.readers)),
        replacement=less.replacement if borrowed else best.replacement,
        last=less.last if borrowed else best.last,
        others=tuple(dict.fromkeys((*best.others, *([less.short] if tells else []), *less.others))),
    )


def _repeated(one: Said, other: Said) -> bool:
    """Whether a reader wrote the same claim twice."""
    place = (one.readers, one.path, one.side, one.line)
    return place == (other.readers, other.path, other.side, other.line) and one.title == other.title


def _likest(said: Sequence[Said]) -> tuple[Said, Said] | None:
    """The two claims of different readers that most surely are the same; None where none are."""
    best, found = 0.0, None
    for i, one in enumerate(said):
        for other in said[i + 1 :]:
            if not set(one.readers) & set(other.readers) and (like := _likeness(one, other)) > best:
                best, found = like, (one, other)
    return found


def _likeness(one: Said, other: Said) -> float:
    """How much two claims speak of one cause, 0 where that is not sure.

    Two claims on one line share the words of its code whatever they say of it: the input that fails, or the edit
    that mends it, has to be the same too.
    """
    apart = abs(one.line - other.line)
    if (one.path, one.side) != (other.path, other.side) or apart > _NEAR * 3:
        return 0.0
    outcome = _overlap(f"{one.title} {one.happens}", f"{other.title} {other.happens}")
    cause = max(
        _overlap(f"{one.mend} {one.replacement or ''}", f"{other.mend} {other.replacement or ''}"),
        _alike(one.input, other.input),
    )
    if outcome < (0.34 if apart <= _NEAR else 0.5) or cause < _SAME_CAUSE:
        return 0.0
    return outcome + cause - apart / 100


def _overlap(one: str, other: str) -> float:
    """Share of the shorter text's words that the other has too."""
    a, b = _words(one), _words(other)
    return len(a & b) / min(len(a), len(b)) if a and b else 0.0


def _alike(one: str, other: str) -> float:
    """Share of all their words that two texts have in common."""
    a, b = _words(one), _words(other)
    return len(a & b) / len(a | b) if a and b else 0.0


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower())) - _COMMON


def _claim(row: object, reader: str, by_path: dict[str, FileChange]) -> Said | None:
    if not isinstance(row, dict):
        return None
    file = by_path.get(str(row.get("path", "")).removeprefix("b/"))
    number, sure = row.get("line"), row.get("sure")
    if file is None or not _is_number(number) or not _is_number(sure):
        return None
    found = place(file, number, str(row.get("quote", "")))
    title = _one_line(row.get("title"), 140)
    if found is None or not title:
        return None
    replacement = row.get("replacement")
    fits = isinstance(replacement, str) and len(replacement) < LONGEST_REPLACEMENT
    return Said(
        path=file.path,
        line=found.line,
        side=found.side,
        changed=found.changed,
        title=title,
        input=_one_line(row.get("input"), 600),
        happens=_one_line(row.get("happens"), 800),
        should=_one_line(row.get("should"), 500),
        mend=_one_line(row.get("mend"), 400),
        replacement=replacement if fits and _stands_on(file, found, row.get("quote")) else None,
        last=found.line + _counted(row.get("lines")) - 1,
        kind=_one_of(row.get("kind"), KINDS, "wrong-result"),
        reach=_one_of(row.get("reach"), REACHES, "sometimes"),
        sure=float(min(1, max(0, sure))),
        readers=(reader,),
    )


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Place:
    """A line, and the changed line next to it where it is an old one (else 0)."""

    side: Side
    line: int
    changed: int = 0


def place(file: FileChange, number: float, quote: str) -> Place | None:
    """Where a claim stands: the quoted line nearest to the number it gave, else the number if the change shows it.

    Models count badly and copy well. A claim belongs to what the change brings: one that quotes an old line stands
    there together with the changed line next to it in the same hunk.
    """
    shown = [x for h in file.hunks for x in h.lines]
    for side, kinds in (("RIGHT", "+"), ("LEFT", "-"), ("RIGHT", " ")):
        found = _quoted([x for x in shown if x.kind in kinds], quote)
        if not found:
            continue
        numbers = [n for x in found if (n := x.new if side == "RIGHT" else x.old) is not None]
        best = min(numbers, key=lambda n: abs(n - number))
        if kinds != " ":
            return Place("RIGHT" if side == "RIGHT" else "LEFT", best)
        near = _snapped(file, best, _SNAP)
        if near is None:
            return _missed(file, best)
        together = file.can_anchor(min(best, near), max(best, near), "RIGHT")
        return Place("RIGHT", best, near) if together else Place("RIGHT", near)
    near = _snapped(file, number, _NEAR)
    return Place("RIGHT", near) if near is not None else _missed(file, number)


def _quoted(lines: Sequence[Line], quote: str) -> list[Line]:
    """The lines that a quote was copied from: equal but for white space, else holding it."""
    wanted = " ".join(quote.split())
    if not wanted:
        return []
    same = [x for x in lines if " ".join(x.text.split()) == wanted]
    if same or len(wanted) <= 8:
        return same
    return [x for x in lines if wanted in " ".join(x.text.split())]


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


def _stands_on(file: FileChange, found: Place, quote: object) -> bool:
    """Whether a replacement for the quoted line is one for the line that the claim was placed at, and that is new."""
    lines = [x for h in file.hunks for x in h.lines if x.new == found.line and not found.changed]
    return isinstance(quote, str) and bool(lines) and lines[0].text.strip() == quote.strip()


def _counted(value: object) -> int:
    return min(_MOST_REPLACED, max(1, value)) if isinstance(value, int) else 1


def _one_of(value: object, allowed: Sequence[T], default: T) -> T:
    return next((a for a in allowed if a == value), default)


def _one_line(value: object, most: int) -> str:
    return shortened(" ".join(value.split()), most) if isinstance(value, str) else ""
