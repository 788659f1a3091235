"""A score from 0 to 100 per dimension, with what it rests on, or none with why."""

from __future__ import annotations

from collections.abc import Sequence

from regreen.models import DIMENSIONS, Dimension, Finding, Severity, Skipped, Withheld
from regreen.reviewers.context import Report, ReviewContext, Score

_COST: dict[Severity, int] = {"critical": 60, "high": 30, "medium": 15, "low": 5}
_COUNTED = {"budget", "confidence"}


def scores(
    reports: Sequence[tuple[Dimension, Report]],
    findings: Sequence[Finding],
    withheld: Sequence[Withheld],
    context: ReviewContext,
) -> tuple[dict[Dimension, int | None], dict[Dimension, str]]:
    """Each dimension's score and its note. A finding costs by severity, weighed with how sure it is."""
    counted = [*findings, *(w.finding for w in withheld if w.reason in _COUNTED)]
    made = {d: _score(d, reports, counted, context) for d in DIMENSIONS}
    return {d: s.value for d, s in made.items()}, {d: s.rests_on for d, s in made.items()}


def _score(
    dimension: Dimension,
    reports: Sequence[tuple[Dimension, Report]],
    findings: Sequence[Finding],
    context: ReviewContext,
) -> Score:
    own = [r for d, r in reports if d == dimension]
    given = [r.scores[dimension] for _, r in reports if dimension in r.scores]
    if given:
        return given[0]
    if dimension not in context.config.review.dimensions:
        return Score(None, "not wanted by the configuration")
    read = [r.read for r in own if r.read]
    if not read:
        return Score(None, _why_none([s for r in own for s in r.skipped], context))
    mine = [f for f in findings if f.dimension == dimension]
    lost = sum(_COST[f.severity] * _weight(f) for f in mine)
    gaps = "; not done: " + ", ".join(s.reviewer for r in own for s in r.skipped)
    note = "; ".join(read) + (gaps if any(r.skipped for r in own) else "")
    if context.model is None:
        note += "; no model read it"
    return Score(max(0, round(100 - lost)), note)


def _weight(finding: Finding) -> float:
    """Nothing below even odds counts; a certainty counts whole."""
    return max(0.0, 2 * finding.confidence - 1)


def _why_none(skipped: Sequence[Skipped], context: ReviewContext) -> str:
    if not context.files:
        return "no file of this change is read"
    return "; ".join(dict.fromkeys(s.reason for s in skipped)) or "nothing here reads this"
