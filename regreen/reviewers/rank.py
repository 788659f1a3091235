"""Which findings are said, and in which order: duplicates merged, thresholds, budget, blocking. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from regreen.models import Evidence, Finding, Severity, Withheld, WithheldReason
from regreen.reviewers.findings import Candidate
from regreen.reviewers.memory import Memory

SEVERITIES: tuple[Severity, ...] = ("critical", "high", "medium", "low")
PROVEN_DISCOUNT = 0.10
"""How much less sure a proven security or data-loss finding may be (0.80 becomes 0.70)."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What the repository wants said."""

    min_confidence: float = 0.8
    max_comments: int = 5
    blocking: Literal["none", "critical", "high", "medium", "low"] = "none"


@dataclass(frozen=True, slots=True)
class Ranking:
    """What is said, in order, and what is kept back; `standing` of it was said before and still holds."""

    findings: tuple[Finding, ...]
    withheld: tuple[Withheld, ...]
    standing: tuple[Finding, ...] = ()


def rank(candidates: Sequence[Candidate], policy: Policy, memory: Memory | None = None) -> Ranking:
    """Merge, filter, order and cut."""
    memory = memory or Memory()
    withheld: list[Withheld] = []
    merged, doubles = _merge(candidates)
    withheld += [Withheld(d, "duplicate") for d in doubles]
    kept: list[Finding] = []
    standing: list[Finding] = []
    for candidate in merged:
        finding = candidate.finding
        reason = _why_withheld(candidate, policy, memory)
        if reason:
            withheld.append(Withheld(finding, reason))
            standing += [finding] if reason == "duplicate" else []
        else:
            kept.append(replace(finding, blocking=_blocks(finding.severity, policy)))
    kept.sort(key=_order)
    withheld += [Withheld(f, "budget") for f in kept[policy.max_comments :]]
    withheld.sort(key=lambda w: _order(w.finding))
    return Ranking(tuple(kept[: policy.max_comments]), tuple(withheld), tuple(standing))


def _why_withheld(candidate: Candidate, policy: Policy, memory: Memory) -> WithheldReason | None:
    finding, claim = candidate.finding, candidate.claim
    names = {finding.fingerprint, *candidate.places}
    if names & memory.dismissed:
        return "dismissed"
    if names & memory.posted:
        return "duplicate"
    least = memory.threshold(finding.rule, policy.min_confidence)
    if claim.proven and (finding.dimension == "security" or claim.data_loss):
        least -= PROVEN_DISCOUNT
    if finding.confidence < least - 1e-9:
        return "confidence"
    if claim.signals is not None and claim.signals.verdict == "as_before":
        return "confidence"  # true of the code, and not this change's doing
    if finding.dimension == "style" and not claim.quotes:
        return (
            "confidence"  # taste is not posted, only a rule that the repository itself wrote down
        )
    return None


def _blocks(severity: Severity, policy: Policy) -> bool:
    return policy.blocking != "none" and SEVERITIES.index(severity) <= SEVERITIES.index(
        policy.blocking
    )


def _order(finding: Finding) -> tuple[bool, int, float, bool, float, str, int]:
    """What is graver first; of what is about as grave and as sure, what breaks loudly: it is met at once."""
    return (
        not finding.blocking,
        SEVERITIES.index(finding.severity),
        -round(finding.confidence, 1),
        finding.rule not in _LOUD,
        -finding.confidence,
        finding.path,
        finding.line,
    )


def _merge(candidates: Sequence[Candidate]) -> tuple[list[Candidate], list[Finding]]:
    """One candidate for each fault: the strongest word on it, surer for each tool that also says it."""
    merged: list[Candidate] = []
    by_path: dict[str, list[int]] = {}
    doubles: list[Finding] = []
    for candidate in sorted(candidates, key=lambda c: _order(c.finding)):
        places = by_path.setdefault(candidate.finding.path, [])
        at = next((i for i in places if _same_fault(merged[i], candidate)), None)
        if at is None:
            places.append(len(merged))
            merged.append(candidate)
        else:
            merged[at] = _joined(merged[at], candidate)
            doubles.append(candidate.finding)
    return merged, doubles


def _same_fault(one: Candidate, other: Candidate) -> bool:
    a, b = one.finding, other.finding
    if a.fingerprint == b.fingerprint:
        return True
    if (a.path, a.side, a.dimension) != (b.path, b.side, b.dimension):
        return False
    if a.start_line > b.line or b.start_line > a.line:
        return False
    # A tool's rule says what is wrong; that a model's two claims are both "wrong results" says nothing: whether they
    # have one cause was settled before, by who made them and who tried them.
    same_rule = a.rule == b.rule and not a.rule.startswith("model/")
    return same_rule or _alike(a, b)


def _alike(a: Finding, b: Finding) -> bool:
    """Whether two findings on the same lines speak of the same thing: the same code, the same harm or the same words."""
    named_a, named_b = set(_CODE.findall(a.title)), set(_CODE.findall(b.title))
    if named_a and named_b:
        return bool(named_a & named_b)
    if a.body and a.body == b.body:
        return True
    words_a, words_b = set(_WORD.findall(a.title.lower())), set(_WORD.findall(b.title.lower()))
    return 2 * len(words_a & words_b) >= len(words_a | words_b) > 0


def _joined(one: Candidate, other: Candidate) -> Candidate:
    a, b = one.finding, other.finding
    confidence = a.confidence
    evidence = a.evidence
    if a.rule.split("/")[0] != b.rule.split("/")[0]:  # the same tool twice is no second witness
        confidence = min(0.99, 1 - (1 - a.confidence) * (1 - b.confidence))
        evidence = (*a.evidence, Evidence("vote", f"{b.rule} says it too: {b.title}"))
    finding = replace(
        a,
        confidence=round(confidence, 4),
        evidence=evidence,
        suggestion=a.suggestion
        or (b.suggestion if (a.start_line, a.line) == (b.start_line, b.line) else None),
    )
    claim = replace(
        one.claim,
        proven=one.claim.proven or other.claim.proven,
        data_loss=one.claim.data_loss or other.claim.data_loss,
        quotes=one.claim.quotes or other.claim.quotes,
    )
    return Candidate(finding, claim, one.places)


_LOUD = frozenset({"model/crash", "model/hang", "model/broken-caller"})
_CODE = re.compile(r"`([^`\n]{1,80})`")
_WORD = re.compile(r"[a-z_]{3,}")
