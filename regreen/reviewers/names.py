"""Names that a change takes away from the rest of their own file: an import or a definition removed and still used."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

from regreen.codebase.diff import FileChange
from regreen.models import Evidence
from regreen.reviewers.context import Claim, ReviewContext
from regreen.reviewers.fresh import Hit

_NAME = re.compile(r"Undefined name `(\w+)`")


def names_taken_away(
    context: ReviewContext, head_hits: Sequence[Hit], base_hits: Callable[[], Sequence[Hit]]
) -> list[Claim]:
    """Undefined names on lines that the change left alone, where it removed what defined them."""
    undefined: dict[tuple[str, str], list[Hit]] = {}
    for hit in head_hits:
        file = context.change.by_path.get(hit.path)
        match = _NAME.match(hit.message) if hit.rule == "F821" else None
        if match and file and file.removed_lines and not file.touches(hit.line, hit.end_line):
            undefined.setdefault((hit.path, match[1]), []).append(hit)
    if not undefined:
        return []
    before = Counter((h.path, m[1]) for h in base_hits() if (m := _NAME.match(h.message)))
    claims = []
    for (path, name), hits in undefined.items():
        file = context.change.by_path[path]
        line = _definition(file, name)
        if line is not None and not before[file.old_path, name]:
            claims.append(_claim(file, name, line, hits, context))
    return claims


def _definition(file: FileChange, name: str) -> int | None:
    """The removed line that gave the name, where one line clearly did."""
    gives = re.compile(
        rf"\s*(?:(?:from\s.+\s)?import\s.*\b{name}\b|(?:async\s+)?def\s+{name}\b|class\s+{name}\b|{name}\s*[:=][^=]|{name},?\s*(?:#.*)?$)"
    )
    return next(
        (
            line.old
            for hunk in file.hunks
            for line in hunk.lines
            if line.kind == "-" and gives.match(line.text[:2000])
        ),
        None,
    )


def _claim(
    file: FileChange, name: str, line: int, hits: Sequence[Hit], context: ReviewContext
) -> Claim:
    rows = (context.after(file.path) or "").split("\n")
    first = hits[0]
    code = rows[first.line - 1].strip()[:160]
    more = f" and in {len(hits) - 1} more places" if len(hits) > 1 else ""
    shown = "\n".join(f"{h.line}: {rows[h.line - 1].strip()[:200]}" for h in hits[:3])
    return Claim(
        "correctness",
        "ruff/F821",
        "high",
        file.path,
        line,
        line,
        title=f"`{name}` is removed here and still used in line {first.line}",
        body=f"`{code}`{more} raises `NameError`: nothing else in this file gives the name.",
        confidence=0.92,
        side="LEFT",
        evidence=(
            Evidence(
                "analyzer", shown, "ruff (F821)", head=f"undefined name `{name}`", base="defined"
            ),
        ),
        symbol=name,
        code=name,
    )
