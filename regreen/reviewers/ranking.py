"""Which findings are posted, and in which order: duplicates merged, thresholds, budget, blocking. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from regreen.code.path_settings import review_settings
from regreen.domain.models import (
    DIMENSIONS,
    Dimension,
    Evidence,
    Finding,
    ReviewTestRun,
    Severity,
    SkippedReviewer,
    WithheldFinding,
    WithheldReason,
)
from regreen.domain.repo_config import RepoConfig
from regreen.reviewers.context import DimensionScore, ReviewContext, ReviewerReport, ReviewMemory
from regreen.reviewers.findings import Candidate

SEVERITIES: tuple[Severity, ...] = ("critical", "high", "medium", "low")
PROVEN_DISCOUNT = 0.10
"""How much less sure a proven security or data-loss finding may be (0.80 becomes 0.70)."""


@dataclass(frozen=True, slots=True)
class RankingPolicy:
    """The repository's policy for findings; `config` has what differs by path."""

    min_confidence: float = 0.8
    max_comments: int = 5
    blocking: Literal["none", "critical", "high", "medium", "low"] = "none"
    config: RepoConfig = field(default_factory=RepoConfig)

    def wants(self, finding: Finding) -> bool:
        """Whether this dimension is looked at where the finding is."""
        wanted = review_settings(self.config, finding.path).dimensions
        return not self.config.paths or finding.dimension in wanted

    def for_path(self, path: str) -> RankingPolicy:
        """The policy for the findings in a file."""
        settings = review_settings(self.config, path)
        if settings is self.config.review:
            return self
        changed = settings.min_confidence != self.config.review.min_confidence
        least = settings.min_confidence if changed else self.min_confidence
        return replace(self, min_confidence=least, blocking=settings.blocking)


@dataclass(frozen=True, slots=True)
class Ranking:
    """The posted findings in order, and the withheld ones; those in `standing` were posted earlier and still hold."""

    findings: tuple[Finding, ...]
    withheld: tuple[WithheldFinding, ...]
    standing: tuple[Finding, ...] = ()


def rank_findings(
    candidates: Sequence[Candidate], policy: RankingPolicy, memory: ReviewMemory | None = None
) -> Ranking:
    """Merge, filter, sort and limit the candidates."""
    memory = memory or ReviewMemory()
    withheld: list[WithheldFinding] = []
    merged, doubles = _merge_candidates([c for c in candidates if policy.wants(c.finding)])
    withheld += [WithheldFinding(d, "duplicate") for d in doubles]
    accepted: list[Finding] = []
    standing: list[Finding] = []
    for candidate in merged:
        finding = candidate.finding
        here = policy.for_path(finding.path)
        reason = _withheld_reason(candidate, here, memory)
        if reason:
            withheld.append(WithheldFinding(finding, reason))
            standing += [finding] if reason == "duplicate" else []
        else:
            accepted.append(replace(finding, blocking=_is_blocking(finding.severity, here)))
    accepted.sort(key=_sort_key)
    withheld += [WithheldFinding(f, "budget") for f in accepted[policy.max_comments :]]
    withheld.sort(key=lambda w: _sort_key(w.finding))
    return Ranking(tuple(accepted[: policy.max_comments]), tuple(withheld), tuple(standing))


def _withheld_reason(
    candidate: Candidate, policy: RankingPolicy, memory: ReviewMemory
) -> WithheldReason | None:
    finding, claim = candidate.finding, candidate.claim
    names = {finding.fingerprint, *candidate.places}
    if names & memory.dismissed:
        return "dismissed"
    if names & memory.posted:
        return "duplicate"
    proof = claim.signals.proof if claim.signals is not None else "not_run"
    if proof in {"proven", "disproven"}:  # what was run decides, whatever readers think
        return None if proof == "proven" else "confidence"
    least = memory.threshold_for(finding.rule, policy.min_confidence)
    if claim.proven and (finding.dimension == "security" or claim.data_loss):
        least -= PROVEN_DISCOUNT
    # what is true of the code as before is not caused by this change
    as_before = claim.signals is not None and claim.signals.verdict == "as_before"
    if as_before or finding.confidence < least - 1e-9:
        return "confidence"
    if finding.dimension == "style" and not claim.quotes:
        return "confidence"  # taste is not posted, only rules that the repository itself wrote down
    return None


def _is_blocking(severity: Severity, policy: RankingPolicy) -> bool:
    return policy.blocking != "none" and SEVERITIES.index(severity) <= SEVERITIES.index(
        policy.blocking
    )


def _sort_key(finding: Finding) -> tuple[bool, bool, int, float, bool, float, str, int]:
    """What people would act on first, then the more severe; among equals, loud failures, which people meet at once."""
    worth = finding.signals.worth if finding.signals is not None else "yes"
    return (
        not finding.blocking,
        worth in {"perhaps", "no"},
        SEVERITIES.index(finding.severity),
        -round(finding.confidence, 1),
        finding.rule not in _LOUD_RULES,
        -finding.confidence,
        finding.path,
        finding.line,
    )


def _merge_candidates(candidates: Sequence[Candidate]) -> tuple[list[Candidate], list[Finding]]:
    """One candidate for each fault: the strongest, with more confidence for each further tool that reports it."""
    merged: list[Candidate] = []
    by_path: dict[str, list[int]] = {}
    doubles: list[Finding] = []
    for candidate in sorted(candidates, key=lambda c: _sort_key(c.finding)):
        places = by_path.setdefault(candidate.finding.path, [])
        at = next((i for i in places if _is_same_fault(merged[i], candidate)), None)
        if at is None:
            places.append(len(merged))
            merged.append(candidate)
        else:
            merged[at] = _join_candidates(merged[at], candidate)
            doubles.append(candidate.finding)
    return merged, doubles


def _is_same_fault(first: Candidate, second: Candidate) -> bool:
    a, b = first.finding, second.finding
    if a.fingerprint == b.fingerprint:
        return True
    if (a.path, a.side, a.dimension) != (b.path, b.side, b.dimension):
        return False
    if a.start_line > b.line or b.start_line > a.line:
        return False
    # A tool's rule says what is wrong; "wrong results" in two claims of a model says nothing: whether they have
    # one cause was settled before, by the readings and the verification.
    same_rule = a.rule == b.rule and not a.rule.startswith("model/")
    return same_rule or _are_alike(a, b)


def _are_alike(a: Finding, b: Finding) -> bool:
    """Whether two findings on the same lines are about the same fault: same code, same harm or same words."""
    named_a, named_b = set(_QUOTED_CODE.findall(a.title)), set(_QUOTED_CODE.findall(b.title))
    if named_a and named_b:
        return bool(named_a & named_b)
    if a.body and a.body == b.body:
        return True
    words_a, words_b = set(_WORD.findall(a.title.lower())), set(_WORD.findall(b.title.lower()))
    return 2 * len(words_a & words_b) >= len(words_a | words_b) > 0


def _join_candidates(first: Candidate, second: Candidate) -> Candidate:
    a, b = first.finding, second.finding
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
        first.claim,
        proven=first.claim.proven or second.claim.proven,
        data_loss=first.claim.data_loss or second.claim.data_loss,
        quotes=first.claim.quotes or second.claim.quotes,
    )
    return Candidate(finding, claim, first.places)


_LOUD_RULES = frozenset({"model/crash", "model/hang", "model/broken-caller"})
_QUOTED_CODE = re.compile(r"`([^`\n]{1,80})`")
_WORD = re.compile(r"[a-z_]{3,}")


# A score from 0 to 100 for each dimension with its basis, or none with the reason.

_COST_BY_SEVERITY: dict[Severity, int] = {"critical": 60, "high": 30, "medium": 15, "low": 5}
_FAILING_TESTS_COST = _COST_BY_SEVERITY["critical"]


def compute_scores(
    reports: Sequence[tuple[Dimension, ReviewerReport]],
    findings: Sequence[Finding],
    withheld: Sequence[WithheldFinding],
    context: ReviewContext,
    tests: ReviewTestRun | None = None,
) -> tuple[dict[Dimension, int | None], dict[Dimension, str]]:
    """Each dimension's score and what it is made of. A finding costs by its severity, weighted by its confidence.

    A withheld finding costs nothing: nobody sees it. Failing tests cost correctness as much as a critical finding.
    """
    scores = {d: _score_dimension(d, reports, findings, context, tests) for d in DIMENSIONS}
    kept = Counter(w.finding.dimension for w in withheld if w.reason in {"budget", "confidence"})
    for dimension, count in kept.items():
        if (score := scores[dimension]).value is not None:
            note = f"{score.rests_on}; {count} withheld, not counted"
            scores[dimension] = DimensionScore(score.value, note)
    return {d: s.value for d, s in scores.items()}, {d: s.rests_on for d, s in scores.items()}


def _score_dimension(
    dimension: Dimension,
    reports: Sequence[tuple[Dimension, ReviewerReport]],
    findings: Sequence[Finding],
    context: ReviewContext,
    tests: ReviewTestRun | None,
) -> DimensionScore:
    own = [r for d, r in reports if d == dimension]
    reported = [r.scores[dimension] for _, r in reports if dimension in r.scores]
    if reported:
        return reported[0]
    if dimension not in context.config.review.dimensions:
        return DimensionScore(None, "switched off by review.dimensions")
    read = [r.read for r in own if r.read]
    if not read:
        return DimensionScore(
            None, _missing_score_reason([s for r in own for s in r.skipped], context)
        )
    mine = [f for f in findings if f.dimension == dimension]
    lost = sum(_COST_BY_SEVERITY[f.severity] * _finding_weight(f) for f in mine)
    by_severity = Counter(f.severity for f in mine)
    made_of = [f"{by_severity[s]} {s}" for s in _COST_BY_SEVERITY if by_severity[s]]
    if dimension == "correctness" and tests and not tests.passed:
        lost += _FAILING_TESTS_COST
        made_of.insert(0, "failing tests")
    note = f"{', '.join(made_of) or 'no finding'}; read by {'; '.join(read)}"
    if any(r.skipped for r in own):
        note += "; not done: " + ", ".join(s.reviewer for r in own for s in r.skipped)
    return DimensionScore(max(0, round(100 - lost)), note)


def _finding_weight(finding: Finding) -> float:
    """Zero below even odds, full weight at certainty."""
    return max(0.0, 2 * finding.confidence - 1)


def _missing_score_reason(skipped: Sequence[SkippedReviewer], context: ReviewContext) -> str:
    if not context.files:
        return "no file of this change is read"
    return "; ".join(dict.fromkeys(s.reason for s in skipped)) or "nothing here reads this"
