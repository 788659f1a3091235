"""Learns from outcomes: confidence thresholds by repository and rule, and how well confidence is calibrated.

Pure: outcomes in, numbers out.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from regreen.domain.state_records import FindingOutcome, OutcomeKind
from regreen.reviewers.calibration import PRIOR_WEIGHTS, Weights, estimate_confidence, fit_weights

OUTCOME_PRIORITY: tuple[OutcomeKind, ...] = (
    "dismissed",
    "applied",
    "down",
    "up",
    "denied",
    "thanked",
    "mended",
    "resolved",
)
"""From the strongest to the weakest: a later outcome replaces an earlier one that is not stronger."""

PRIOR_STRENGTH = 20.0
"""How many outcomes the next wider circle counts for: a handful of clicks moves a rule a little, twenty move it far."""
_DISTANT_PRIOR_STRENGTH = 3 * PRIOR_STRENGTH
"""What other rules and other repositories teach counts for less than what this rule does here."""
MAX_LOWERING = 0.10
MAX_THRESHOLD = 0.995
MIN_OUTCOMES = 20
"""With fewer outcomes of model claims the weights stay at their prior."""


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """The findings posted with a confidence from `low` to `high`: their number, how many were right, their mean."""

    low: float
    high: float
    count: int
    right: int
    mean: float


@dataclass(frozen=True, slots=True)
class RuleStats:
    """A rule's record in a repository: outcomes, how many right, and the confidence that it needs now."""

    rule: str
    count: int
    right: int
    threshold: float


def learn_thresholds(
    outcomes: Sequence[FindingOutcome], repo: str, default: float
) -> dict[str, float]:
    """The required confidence of each rule in this repository that differs from `default` after feedback.

    A rule's stated confidence is compared with how often it was right. Both are Beta posteriors in widening circles
    (this rule here, this rule elsewhere, its tool's other rules), each the prior of the one inside it. Their difference
    in log-odds says how much surer a finding must be to be as reliable as `default` means.
    """
    by_tool: defaultdict[str, list[FindingOutcome]] = defaultdict(list)
    by_rule: defaultdict[str, list[FindingOutcome]] = defaultdict(list)
    for outcome in outcomes:
        by_tool[_tool_name(outcome.rule)].append(outcome)
        by_rule[outcome.rule].append(outcome)
    thresholds = {}
    for rule, all_of_it in by_rule.items():
        stated = _mean_confidence(all_of_it)
        others = [o for o in by_tool[_tool_name(rule)] if o.rule != rule]
        shift = _logit_shift(
            _posterior_mean(others, _mean_confidence(others), _DISTANT_PRIOR_STRENGTH),
            _mean_confidence(others),
        )
        elsewhere = [o for o in all_of_it if o.repo != repo]
        here = [o for o in all_of_it if o.repo == repo]
        rate = _posterior_mean(
            here, _posterior_mean(elsewhere, _shift_share(stated, shift), _DISTANT_PRIOR_STRENGTH)
        )
        needed = _shift_share(default, -_logit_shift(rate, stated))
        needed = min(MAX_THRESHOLD, max(default - MAX_LOWERING, needed))
        if abs(needed - default) >= 0.005:
            thresholds[rule] = round(needed, 4)
    return thresholds


def learn_weights(outcomes: Iterable[FindingOutcome]) -> Weights:
    """The weights for a model's claims after these outcomes."""
    examples = [(o.signals, o.right, o.weight) for o in outcomes if o.signals is not None]
    return fit_weights(examples) if len(examples) >= MIN_OUTCOMES else PRIOR_WEIGHTS


def with_present_confidence(
    outcomes: Iterable[FindingOutcome], now: Weights
) -> list[FindingOutcome]:
    """The outcomes with today's confidence: thresholds need not learn what the weights already have."""
    return [
        replace(o, confidence=estimate_confidence(o.signals, now)) if o.signals is not None else o
        for o in outcomes
    ]


def calibration_bins(
    outcomes: Iterable[FindingOutcome],
    edges: Sequence[float] = (0.0, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0),
) -> tuple[CalibrationBin, ...]:
    """Stated confidence and actual results: one bin for each interval of `edges` with outcomes."""
    posted = list(outcomes)
    bins = []
    for low, high in pairwise(edges):
        inside = [
            o for o in posted if low <= o.confidence < high or (high == edges[-1] == o.confidence)
        ]
        if inside:
            mean = sum(o.confidence for o in inside) / len(inside)
            bins.append(
                CalibrationBin(low, high, len(inside), sum(o.right for o in inside), round(mean, 4))
            )
    return tuple(bins)


def rule_statistics(
    outcomes: Sequence[FindingOutcome], needed: Mapping[str, float], repo: str, default: float
) -> tuple[RuleStats, ...]:
    """Every rule with outcomes in this repository, most outcomes first; `needed` is from `learn_thresholds`."""
    here: defaultdict[str, list[FindingOutcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.repo == repo:
            here[outcome.rule].append(outcome)
    rows = [
        RuleStats(rule, len(counted), sum(o.right for o in counted), needed.get(rule, default))
        for rule, counted in here.items()
    ]
    return tuple(sorted(rows, key=lambda r: (-r.count, r.rule)))


def classify_reply(reply: str) -> OutcomeKind | None:
    """The verdict in a person's reply to a finding, if its words are plain; quotations do not count."""
    words = " ".join(
        line for line in reply.lower()[:2000].split("\n") if not line.lstrip().startswith(">")
    ).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    denied, agreed = _DENIALS.search(words), _AGREEMENTS.search(words)
    if denied and agreed:
        return None  # "you're right, this is wrong" and "fixed the typo, the rest is intended" look the same
    if denied:
        return "denied"
    return (
        "thanked" if agreed or (_THANKS.search(words) and not _RESERVATION.search(words)) else None
    )


def _tool_name(rule: str) -> str:
    return rule.partition("/")[0]


def _mean_confidence(outcomes: Sequence[FindingOutcome]) -> float:
    total = sum(o.weight for o in outcomes)
    return sum(o.confidence * o.weight for o in outcomes) / total if total else 0.8


def _posterior_mean(
    outcomes: Sequence[FindingOutcome], prior: float, strength: float = PRIOR_STRENGTH
) -> float:
    """The mean of a Beta posterior whose prior counts for `strength` outcomes."""
    right = sum(o.weight for o in outcomes if o.right)
    total = sum(o.weight for o in outcomes)
    return (prior * strength + right) / (strength + total)


def _logit_shift(rate: float, stated: float) -> float:
    return _logit(rate) - _logit(stated)


def _shift_share(share: float, shift: float) -> float:
    return 1 / (1 + math.exp(-(_logit(share) + shift)))


def _logit(share: float) -> float:
    bounded = min(0.999, max(0.001, share))
    return math.log(bounded / (1 - bounded))


_DENIALS = re.compile(
    r"\bfalse positive|\bnot an? (?:bug|issue|problem)\b|\bby design\b|\b(?<!not )(?<!n't )intended\b(?! to)"
    r"|\b(?<!not )(?<!n't )intentional|\bwon'?t fix|\bwontfix\b|\bincorrect\b|\b(?:this is|that's) wrong\b|\bnot true\b"
    r"|\bdisagree|\b(?:doesn't|does not) apply\b|\b(?:can't|cannot|never) happens?\b|\bnonsense\b|\bhallucinat"
)
_AGREEMENTS = re.compile(
    r"\b(?:good|nice|great) (?:catch|find)\b|\byou(?:'re| are) right\b|\bwell spotted\b|\b(?<!not )(?<!n't )fixed\b"
    r"|\bdone in\b|\b(?<!not )addressed\b"
)
_THANKS = re.compile(r"\bthanks\b|\bthank you\b|\bgood point\b")
_RESERVATION = re.compile(r"\bbut\b|\bhowever\b|\?")
