"""Claims as a model makes them: read strictly and given their place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard, TypeVar, get_args

from regreen.code.diff import FileChange
from regreen.domain.models import ClaimReach, Dimension, Severity, Side
from regreen.domain.text_limits import shorten_text
from regreen.reviewers.anchoring import (
    Anchor,
    ShownLine,
    anchor_at_cause,
    find_anchor,
    parse_cause,
    show_line,
)
from regreen.reviewers.model.review_prompts import ClaimKind

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
    shows: ShownLine | None = None
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
        return (self.shows.path, "RIGHT", self.shows.line) if self.shows else (self.path, self.side, self.line)  # fmt: skip

    @property
    def full_text(self) -> str:
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
    cause = parse_cause(row.get("cause"), file, by_path)
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
        input=_join_rows(row.get("input"), 600),
        happens=_join_rows(row.get("happens"), 800),
        should=_join_rows(row.get("should"), 500),
        mend=_join_rows(row.get("mend"), 400),
        replacement=replacement
        if fits and file and _replaces_anchor(file, found, row.get("quote"))
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
    anchor = anchor_at_cause(cause)
    if anchor is None:
        return Anchor("RIGHT", line, anchored=False)
    return replace(anchor, shows=show_line(path, line, text.split("\n")[line - 1]))


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _replaces_anchor(file: FileChange, found: Anchor, quote: object) -> bool:
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


def _join_rows(value: object, most: int) -> str:
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
        best = replace(best, path=less.path, side=less.side, line=less.line, changed=less.changed, shows=less.shows, anchored=True)  # fmt: skip
    examples = (*best.others, ClaimExample(less.input, less.happens), *less.others)
    mine = " ".join(best.input.split())
    return replace(
        best, others=tuple(dict.fromkeys(o for o in examples if " ".join(o.input.split()) != mine))
    )
