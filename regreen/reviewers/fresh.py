"""Only what a change brings: an analyzer's hits at the head, less those that stood at the merge base.

Code that only moved, within its file or to another, keeps its hits and is not blamed for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from regreen.reviewers.context import ReviewContext
from regreen.reviewers.findings import normalise


@dataclass(frozen=True, slots=True)
class Hit:
    """One hit of an analyzer: its rule, place (1-based lines) and words."""

    rule: str
    path: str
    line: int
    end_line: int
    message: str
    severity: str = ""


def fresh(
    context: ReviewContext,
    head_hits: Sequence[Hit],
    base_hits: Callable[[], Sequence[Hit]],
    *,
    sure: Callable[[Hit], bool] = lambda _hit: False,
) -> list[Hit]:
    """The head's hits that the merge base did not have, by rule and by the code they stand on.

    On added lines all of them; on other lines of its files those of `sure` rules, which it caused from beside
    (see `where_said`). `base_hits` is only called when there is something to compare; its paths are the base's.
    The change's own files, deleted ones included, should be in it, so that moved code is recognised.
    """
    touched = [h for h in head_hits if _touches(context, h)]
    beside = [
        h for h in head_hits if sure(h) and not _touches(context, h) and _is_changed(context, h)
    ]
    if not touched and not beside:
        return []
    before = Counter(_key(h, context.before(h.path)) for h in base_hits())
    untouched = Counter(
        _key(h, context.after(h.path)) for h in head_hits if not _touches(context, h)
    )
    caused = untouched - before
    old = before - untouched  # what still stands where it stood cannot have moved as well
    new: list[Hit] = []
    for hit in touched:
        key = _key(hit, context.after(hit.path))
        if old[key] > 0:
            old[key] -= 1
        else:
            new.append(hit)
    for hit in beside:
        key = _key(hit, context.after(hit.path))
        if caused[key] > 0:
            caused[key] -= 1
            new.append(hit)
    return new


def _is_changed(context: ReviewContext, hit: Hit) -> bool:
    file = context.change.by_path.get(hit.path)
    return file is not None and file.changed > 0


def where_said(context: ReviewContext, hit: Hit) -> tuple[int, int]:
    """The lines to speak of a hit at: its own, or the added line nearest to it where the diff does not show them."""
    file = context.change.by_path.get(hit.path)
    if file is None or file.can_anchor(hit.line, hit.end_line, "RIGHT") or not file.added_lines:
        return hit.line, hit.end_line
    near = min(file.added_lines, key=lambda n: abs(n - hit.line))
    return near, near


def _touches(context: ReviewContext, hit: Hit) -> bool:
    file = context.change.by_path.get(hit.path)
    return file is not None and file.touches(hit.line, hit.end_line)


def _key(hit: Hit, text: str | None) -> tuple[str, str]:
    rows = (text or "").split("\n")
    return hit.rule, normalise("\n".join(rows[hit.line - 1 : hit.end_line]))
