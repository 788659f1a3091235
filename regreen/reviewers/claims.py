"""Claims as a model makes them: read strictly and given their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard, TypeVar, get_args

from regreen.codebase.diff import FileChange
from regreen.models import Dimension, Severity, Side
from regreen.reviewers.placing import Elsewhere, Place, blamed, brought, elsewhere, place
from regreen.reviewers.prompts import Kind, Reach
from regreen.reviewers.shorten import shortened

T = TypeVar("T")
KINDS: tuple[Kind, ...] = get_args(Kind)
REACHES: tuple[Reach, ...] = get_args(Reach)
LONGEST_REPLACEMENT = 2000

_MOST_CLAIMS = 12
_MOST_REPLACED = 10
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
class Example:
    """What goes in, and what comes of it."""

    input: str
    happens: str

    def __str__(self) -> str:
        return f"{self.input}: {self.happens}"


@dataclass(frozen=True, slots=True)
class Said:
    """One claim of one or more readers, with the line it stands on: of the file before on side LEFT.

    `last` is the last line that `replacement` stands for, 0 where that is `line`; `others` are the examples of other
    readers who named another input. `changed` is the changed line that belongs to it where `line` itself is an old one.
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
    kind: Kind
    reach: Reach
    sure: float
    readers: tuple[str, ...]
    side: Side = "RIGHT"
    last: int = 0
    others: tuple[Example, ...] = ()
    changed: int = 0
    shows: Elsewhere | None = None
    anchored: bool = True
    quote: str = ""

    @property
    def severity(self) -> Severity:
        """How grave it is, by rule: what kind of harm, and how often it is met."""
        return _SEVERITY[self.kind in _GRAVE, self.reach]

    @property
    def dimension(self) -> Dimension:
        """Which score it belongs to."""
        return "security" if self.kind == "security" else "correctness"

    @property
    def at(self) -> tuple[str, Side, int]:
        """The line at fault, wherever the comment is put."""
        return (self.shows.path, "RIGHT", self.shows.line) if self.shows else (self.path, self.side, self.line)  # fmt: skip

    @property
    def told(self) -> str:
        """The claim for somebody who is to try it, with every example that a reader gave."""
        path, side, line = self.at
        cause = f"\nBrought about by {self.path}, line {self.line}" if self.shows else ""
        if self.shows and self.side == "LEFT":
            cause += " before the change"
        one = " (example 1)" if self.others else ""
        return (
            f"{path}, line {line}{' before the change' * (side == 'LEFT')}: {self.title}{cause}\n"
            f"Input{one}: {self.input}\nHappens: {self.happens}\nShould: {self.should}"
            + "".join(
                f"\nExample {i}, of another reader: {o}" for i, o in enumerate(self.others, 2)
            )
        )

    def with_example(self, number: object) -> Said:
        """The claim with the example of this number as its own; as it is where there is none such."""
        if not isinstance(number, int) or not 2 <= number <= len(self.others) + 1:
            return self
        shown, own = self.others[number - 2], Example(self.input, self.happens)
        rest = [o for o in self.others if o != shown]
        return replace(self, input=shown.input, happens=shown.happens, others=(own, *rest))


def read_claims(
    answer: dict[str, object],
    reader: str,
    files: Sequence[FileChange],
    after: Callable[[str], str | None] = lambda _: None,
) -> tuple[Said, ...]:
    """The claims in a model's answer that name a line which is there, each at its place; the rest is dropped.

    Nothing in the answer is trusted: types are checked, places are found by the quoted code. `after` gives a file's
    text after the change, so that faults on lines which the hunks do not show are found too.
    """
    rows = answer.get("findings")
    by_path = {f.path: f for f in files}
    listed = rows[:_MOST_CLAIMS] if isinstance(rows, list) else []
    said = (_claim(row, reader, by_path, after) for row in listed)
    return tuple(s for s in said if s is not None)


def _claim(
    row: object,
    reader: str,
    by_path: dict[str, FileChange],
    after: Callable[[str], str | None],
) -> Said | None:
    if not isinstance(row, dict):
        return None
    path = str(row.get("path", "")).removeprefix("b/")
    number, sure = row.get("line"), row.get("sure")
    if not _is_number(number) or not _is_number(sure):
        return None
    if number - number != 0:  # no end, or no number: the quote alone says where it stands
        number = 0
    file = by_path.get(path)
    cause = blamed(row.get("cause"), file, by_path)
    quote, text = str(row.get("quote", "")), after(path)
    if file is not None:
        found = place(file, number, quote, text or "", cause)
    else:
        found = _left_as_it_is(path, text, number, cause)
    title = _one_line(row.get("title"), 140)
    if found is None or not title:
        return None
    replacement = row.get("replacement")
    fits = isinstance(replacement, str) and len(replacement) < LONGEST_REPLACEMENT
    return Said(
        path=found.path or path,
        line=found.line,
        side=found.side,
        changed=found.changed,
        shows=found.shows,
        anchored=found.anchored,
        quote=quote[:400],
        title=title,
        input=_as_said(row.get("input"), 600),
        happens=_as_said(row.get("happens"), 800),
        should=_as_said(row.get("should"), 500),
        mend=_as_said(row.get("mend"), 400),
        replacement=replacement
        if fits and file and _stands_on(file, found, row.get("quote"))
        else None,
        last=found.line + _counted(row.get("lines")) - 1,
        kind=_one_of(row.get("kind"), KINDS, "wrong-result"),
        reach=_one_of(row.get("reach"), REACHES, "sometimes"),
        sure=float(min(1, max(0, sure))),
        readers=(reader,),
    )


def _left_as_it_is(
    path: str, text: str | None, number: float, cause: tuple[FileChange, int] | None
) -> Place | None:
    """The place of a claim about a file that the change does not touch: on what it names as its cause."""
    if text is None or not 1 <= number <= text.count("\n") + 1:
        return None
    line = int(number)
    anchor = brought(cause)
    if anchor is None:
        return Place("RIGHT", line, anchored=False)
    return replace(anchor, shows=elsewhere(path, line, text.split("\n")[line - 1]))


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _stands_on(file: FileChange, found: Place, quote: object) -> bool:
    """Whether a replacement for the quoted line is one for the line that the claim was placed at, and that is new."""
    if found.changed or found.shows or not found.anchored:
        return False
    lines = [x for h in file.hunks for x in h.lines if x.new == found.line]
    return isinstance(quote, str) and bool(lines) and lines[0].text.strip() == quote.strip()


def _counted(value: object) -> int:
    return min(_MOST_REPLACED, max(1, value)) if isinstance(value, int) else 1


def _one_of(value: object, allowed: Sequence[T], default: T) -> T:
    return next((a for a in allowed if a == value), default)


def _one_line(value: object, most: int) -> str:
    return shortened(" ".join(value.split()), most) if isinstance(value, str) else ""


def _as_said(value: object, most: int) -> str:
    """Text in one line with its blanks as they are: they may be what an example is about."""
    if not isinstance(value, str):
        return ""
    rows = [row.rstrip() for row in value.splitlines()]
    lines = [row.lstrip() if i else row for i, row in enumerate(rows) if row]
    return shortened(" ".join(lines).strip(), most)
