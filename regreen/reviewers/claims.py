"""Claims as a model makes them: read strictly, placed by the code they quote, merged where several say the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, get_args

from regreen.codebase.diff import FileChange, Line
from regreen.models import Dimension, Severity, Side
from regreen.reviewers.prompts import Kind, Reach

T = TypeVar("T")
KINDS: tuple[Kind, ...] = get_args(Kind)
REACHES: tuple[Reach, ...] = get_args(Reach)
LONGEST_REPLACEMENT = 2000

_MOST_CLAIMS = 12
_NEAR = 3
_SNAP = 6
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
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
    """One claim of one or more readers, with the line it stands on: of the file before on side LEFT."""

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

    @property
    def words(self) -> frozenset[str]:
        """The identifiers it speaks of."""
        return frozenset(_WORD.findall(f"{self.title} {self.happens}".lower())) - _COMMON

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
        )


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
    """One claim where several readers say the same of the same place; most readers first, then the surest."""
    merged: list[Said] = []
    for claim in said:
        at = next((i for i, m in enumerate(merged) if _same(m, claim)), None)
        if at is None:
            merged.append(claim)
            continue
        known = merged[at]
        best, other = (known, claim) if known.sure >= claim.sure else (claim, known)
        readers = tuple(dict.fromkeys(known.readers + claim.readers))
        same_line = (best.line, best.side) == (other.line, other.side)
        replacement = best.replacement or (other.replacement if same_line else None)
        merged[at] = replace(best, readers=readers, replacement=replacement)
    return tuple(sorted(merged, key=lambda m: (-len(m.readers), -m.sure)))


def _same(one: Said, other: Said) -> bool:
    if (one.path, one.side) != (other.path, other.side):
        return False
    if abs(one.line - other.line) > _NEAR * 3:
        return False
    shared = len(one.words & other.words) / max(1, min(len(one.words), len(other.words)))
    return shared >= (0.34 if abs(one.line - other.line) <= _NEAR else 0.5)


def _claim(row: object, reader: str, by_path: dict[str, FileChange]) -> Said | None:
    if not isinstance(row, dict):
        return None
    file = by_path.get(str(row.get("path", "")).removeprefix("b/"))
    number, sure = row.get("line"), row.get("sure")
    if file is None or not isinstance(number, int) or not isinstance(sure, int | float):
        return None
    found = place(file, number, str(row.get("quote", "")))
    title = _one_line(row.get("title"), 140)
    if found is None or not title:
        return None
    side, line = found
    replacement = row.get("replacement")
    fits = isinstance(replacement, str) and len(replacement) < LONGEST_REPLACEMENT
    return Said(
        path=file.path,
        line=line,
        side=side,
        title=title,
        input=_one_line(row.get("input"), 600),
        happens=_one_line(row.get("happens"), 800),
        should=_one_line(row.get("should"), 500),
        mend=_one_line(row.get("mend"), 400),
        replacement=replacement if fits and _stands_on(file, line, row.get("quote")) else None,
        kind=_one_of(row.get("kind"), KINDS, "wrong-result"),
        reach=_one_of(row.get("reach"), REACHES, "sometimes"),
        sure=float(min(1, max(0, sure))),
        readers=(reader,),
    )


def place(file: FileChange, number: int, quote: str) -> tuple[Side, int] | None:
    """Where a claim stands: the quoted line nearest to the number it gave, else the number if the change shows it.

    Models count badly and copy well. A claim belongs on what the change brings: one that quotes an unchanged line
    moves to the changed line next to it.
    """
    shown = [x for h in file.hunks for x in h.lines]
    for side, kinds in (("RIGHT", "+"), ("LEFT", "-"), ("RIGHT", " ")):
        found = _quoted([x for x in shown if x.kind in kinds], quote)
        if not found:
            continue
        numbers = [n for x in found if (n := x.new if side == "RIGHT" else x.old) is not None]
        best = min(numbers, key=lambda n: abs(n - number))
        if kinds != " ":
            return ("RIGHT" if side == "RIGHT" else "LEFT"), best
        return _snapped(file, best, _SNAP)
    return _snapped(file, number, _NEAR)


def _quoted(lines: Sequence[Line], quote: str) -> list[Line]:
    """The lines that a quote was copied from: equal but for white space, else holding it."""
    wanted = " ".join(quote.split())
    if not wanted:
        return []
    same = [x for x in lines if " ".join(x.text.split()) == wanted]
    if same or len(wanted) <= 8:
        return same
    return [x for x in lines if wanted in " ".join(x.text.split())]


def _snapped(file: FileChange, number: int, most: int) -> tuple[Side, int] | None:
    """The added line nearest to a number, where one is near enough."""
    near = [n for n in file.added_lines if abs(n - number) <= most]
    return ("RIGHT", min(near, key=lambda n: abs(n - number))) if near else None


def _stands_on(file: FileChange, line: int, quote: object) -> bool:
    """Whether a replacement for the quoted line is one for the line that the claim was placed at."""
    lines = [x for h in file.hunks for x in h.lines if x.new == line]
    return isinstance(quote, str) and bool(lines) and lines[0].text.strip() == quote.strip()


def _one_of(value: object, allowed: Sequence[T], default: T) -> T:
    return next((a for a in allowed if a == value), default)


def _one_line(value: object, most: int) -> str:
    return " ".join(value.split())[:most] if isinstance(value, str) else ""
