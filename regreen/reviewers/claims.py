"""Claims as a model makes them: read strictly, placed by the code they quote, merged where several say the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, get_args

from regreen.codebase.diff import FileChange
from regreen.models import DIMENSIONS, Dimension, Severity, Tool

T = TypeVar("T")
SEVERITIES: tuple[Severity, ...] = get_args(Severity)

_NEAR = 3
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")

REPORT = Tool(
    "report",
    "Hand in everything you found. An empty list is a good answer.",
    {
        "type": "object",
        "required": ["findings"],
        "properties": {
            "findings": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": [
                        "path",
                        "line",
                        "quote",
                        "title",
                        "input",
                        "wrong",
                        "severity",
                        "sure",
                    ],
                    "properties": {
                        "path": {
                            "type": "string",
                            "description": "The file, as its heading names it.",
                        },
                        "line": {
                            "type": "integer",
                            "description": "The number of the faulty line.",
                        },
                        "quote": {"type": "string", "description": "That line, copied exactly."},
                        "title": {
                            "type": "string",
                            "description": "The defect in at most 12 words, naming the code.",
                        },
                        "input": {
                            "type": "string",
                            "description": "A concrete input or state that goes wrong.",
                        },
                        "wrong": {
                            "type": "string",
                            "description": "What then happens, and what should.",
                        },
                        "mend": {
                            "type": "string",
                            "description": "How to put it right, in one sentence.",
                        },
                        "replacement": {
                            "type": ["string", "null"],
                            "description": "Exact text for the quoted line alone (may be several lines), if that is the whole fix.",
                        },
                        "kind": {
                            "type": "string",
                            "description": "One or two words: off-by-one, none-deref, encoding, wrong-argument, race, ...",
                        },
                        "dimension": {"type": "string", "enum": list(DIMENSIONS)},
                        "severity": {"type": "string", "enum": list(SEVERITIES)},
                        "sure": {
                            "type": "number",
                            "description": "0 to 1: would a maintainer who tries it agree?",
                        },
                    },
                },
            }
        },
    },
)


@dataclass(frozen=True, slots=True)
class Said:
    """One claim of one or more readers, placed at a line of the file afterwards."""

    path: str
    line: int
    title: str
    input: str
    wrong: str
    mend: str
    replacement: str | None
    kind: str
    dimension: Dimension
    severity: Severity
    sure: float
    readers: tuple[str, ...]

    @property
    def words(self) -> frozenset[str]:
        """The identifiers it speaks of."""
        return frozenset(_WORD.findall(f"{self.title} {self.wrong}".lower())) - _COMMON


_COMMON = frozenset(
    [
        "the",
        "and",
        "for",
        "with",
        "that",
        "this",
        "not",
        "but",
        "when",
        "will",
        "from",
        "are",
        "instead",
        "does",
        "should",
        "which",
        "has",
        "have",
        "was",
        "its",
        "into",
        "value",
        "values",
        "return",
        "returns",
        "returned",
        "function",
        "method",
        "line",
        "code",
        "argument",
        "arguments",
        "called",
        "call",
        "calls",
    ]
)


def read_claims(
    answer: dict[str, object], reader: str, files: Sequence[FileChange]
) -> tuple[Said, ...]:
    """The claims in a model's answer that stand on a line which the change shows; the rest is dropped.

    Nothing in the answer is trusted: types are checked, places are found by the quoted code.
    """
    rows = answer.get("findings")
    by_path = {f.path: f for f in files}
    said = (_claim(row, reader, by_path) for row in (rows if isinstance(rows, list) else [])[:30])
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
        merged[at] = replace(
            best, readers=readers, replacement=best.replacement or other.replacement
        )
    return tuple(sorted(merged, key=lambda m: (-len(m.readers), -m.sure)))


def _same(one: Said, other: Said) -> bool:
    if one.path != other.path or abs(one.line - other.line) > _NEAR * 3:
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
    line = place(file, number, str(row.get("quote", "")))
    title = _one_line(row.get("title"), 120)
    if line is None or not title:
        return None
    replacement = row.get("replacement")
    return Said(
        path=file.path,
        line=line,
        title=title,
        input=_text(row.get("input"), 600),
        wrong=_text(row.get("wrong"), 800),
        mend=_text(row.get("mend"), 400),
        replacement=replacement
        if isinstance(replacement, str) and len(replacement) < 2000
        else None,
        kind=re.sub(r"[^a-z0-9]+", "-", _one_line(row.get("kind"), 30).lower()).strip("-")
        or "defect",
        dimension=_one_of(row.get("dimension"), DIMENSIONS, "correctness"),
        severity=_one_of(row.get("severity"), SEVERITIES, "medium"),
        sure=min(1.0, max(0.0, float(sure))),
        readers=(reader,),
    )


def place(file: FileChange, number: int, quote: str) -> int | None:
    """The line of the file afterwards that a claim means: the quoted one nearest to the number it gave.

    Models count badly and copy well. Without a quote that is found, the number counts if the change shows it.
    """
    shown = [x for h in file.hunks for x in h.lines if x.new is not None]
    wanted = " ".join(quote.split())
    if wanted:
        same = [x.new for x in shown if x.new is not None and " ".join(x.text.split()) == wanted]
        held = [
            x.new
            for x in shown
            if x.new is not None and len(wanted) > 8 and wanted in " ".join(x.text.split())
        ]
        if found := same or held:
            return min(found, key=lambda n: abs(n - number))
    if file.touches(number, number):
        return number
    near = [n for n in file.added_lines if abs(n - number) <= _NEAR]
    return min(near, key=lambda n: abs(n - number)) if near else None


def _one_of(value: object, allowed: Sequence[T], default: T) -> T:
    return next((a for a in allowed if a == value), default)


def _one_line(value: object, most: int) -> str:
    return " ".join(value.split())[:most] if isinstance(value, str) else ""


def _text(value: object, most: int) -> str:
    return value.strip()[:most] if isinstance(value, str) else ""
