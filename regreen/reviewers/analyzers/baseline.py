"""Only what a change brings: an analyzer's hits at the head, less those that stood at the merge base.

Code that only moved, within its file or to another, keeps its hits and is not blamed for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from regreen.domain.models import Dimension, Evidence, Severity, Side
from regreen.reviewers.context import Claim, ReviewContext
from regreen.reviewers.findings import normalise_code


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One hit of an analyzer: its rule, place (1-based lines) and words."""

    rule: str
    path: str
    line: int
    end_line: int
    message: str
    severity: str = ""


def make_analyzer_claim(
    rule: str,
    severity: Severity,
    path: str,
    lines: tuple[int, int],
    *,
    title: str,
    body: str,
    confidence: float,
    excerpt: str,
    source: str,
    head: str | None = None,
    base: str | None = "not there",
    dimension: Dimension = "correctness",
    side: Side = "RIGHT",
    symbol: str = "",
    code: str = "",
    quotes: str = "",
    anywhere: bool = False,
) -> Claim:
    """A claim with one piece of evidence: what the analyzer `source` saw.

    `excerpt`, `head` (the title where None) and `base` belong to the evidence, everything else to the `Claim`.
    """
    shown = Evidence("analyzer", excerpt, source, head=head or title, base=base)
    return Claim(
        dimension, rule, severity, path, *lines, title, body, confidence, side, evidence=(shown,),
        symbol=symbol, code=code, quotes=quotes, anywhere=anywhere,
    )  # fmt: skip


def new_diagnostics(
    context: ReviewContext,
    head_hits: Sequence[Diagnostic],
    base_hits: Callable[[], Sequence[Diagnostic]],
    *,
    sure: Callable[[Diagnostic], bool] = lambda _hit: False,
) -> list[Diagnostic]:
    """The head's hits that the merge base did not have, compared by rule and by the code of their lines.

    On added lines these are all of them; on other lines of the changed files, those of `sure` rules, which an edit
    elsewhere in the file caused (see `commentable_range`). `base_hits` is only called when there is something to compare; its paths are the base's.
    The change's own files, deleted ones included, should be in it, so that moved code is recognised.
    """
    touched = [h for h in head_hits if _touches_change(context, h)]
    beside = [
        h
        for h in head_hits
        if sure(h) and not _touches_change(context, h) and _is_changed(context, h)
    ]
    if not touched and not beside:
        return []
    before = Counter(_diagnostic_key(h, context.base_text(h.path)) for h in base_hits())
    untouched = Counter(
        _diagnostic_key(h, context.head_text(h.path))
        for h in head_hits
        if not _touches_change(context, h)
    )
    caused = untouched - before
    old = before - untouched  # what still stands where it stood cannot have moved as well
    new: list[Diagnostic] = []
    for hit in touched:
        key = _diagnostic_key(hit, context.head_text(hit.path))
        if old[key] > 0:
            old[key] -= 1
        else:
            new.append(hit)
    for hit in beside:
        key = _diagnostic_key(hit, context.head_text(hit.path))
        if caused[key] > 0:
            caused[key] -= 1
            new.append(hit)
    return new


def _is_changed(context: ReviewContext, hit: Diagnostic) -> bool:
    file = context.change.by_path.get(hit.path)
    return file is not None and file.changed_line_count > 0


def commentable_range(context: ReviewContext, hit: Diagnostic) -> tuple[int, int]:
    """The lines for a comment on a hit: its own lines, or the nearest added line if the diff does not show them."""
    file = context.change.by_path.get(hit.path)
    if file is None or file.can_anchor(hit.line, hit.end_line, "RIGHT") or not file.added_lines:
        return hit.line, hit.end_line
    near = min(file.added_lines, key=lambda n: abs(n - hit.line))
    return near, near


def _touches_change(context: ReviewContext, hit: Diagnostic) -> bool:
    file = context.change.by_path.get(hit.path)
    return file is not None and file.touches_lines(hit.line, hit.end_line)


def _diagnostic_key(hit: Diagnostic, text: str | None) -> tuple[str, str]:
    rows = (text or "").split("\n")
    return hit.rule, normalise_code("\n".join(rows[hit.line - 1 : hit.end_line]))
