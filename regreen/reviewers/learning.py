"""What became of findings, and what it teaches: thresholds by repository and rule, and how well confidence is meant.

Pure: outcomes in, numbers out.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from regreen.models import Signals
from regreen.reviewers.calibrate import PRIOR, Weights, confidence, fit

How = Literal["dismissed", "applied", "down", "up", "denied", "thanked", "mended", "resolved"]

RIGHT: Mapping[How, bool] = {
    "dismissed": False,
    "applied": True,
    "down": False,
    "up": True,
    "denied": False,
    "thanked": True,
    "mended": True,
    "resolved": False,
}
RANKED: tuple[How, ...] = (
    "dismissed", "applied", "down", "up", "denied", "thanked", "mended", "resolved",
)  # fmt: skip
"""From what tells most to what tells least: a later word replaces an earlier one that does not tell more."""
WEIGHT: Mapping[How, float] = {"mended": 0.7, "resolved": 0.4}

PRIOR_STRENGTH = 20.0
"""How many outcomes the next wider circle counts for: a handful of clicks moves a rule a little, twenty move it far."""
_FAR = 3 * PRIOR_STRENGTH
"""What other rules and other repositories teach counts for less than what this rule does here."""
MOST_LOWERED = 0.10
HIGHEST = 0.995
FEWEST = 20
"""With fewer outcomes of model claims the weights stay at their prior."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one posted finding: right or not, as people showed it, and what it had been given."""

    repo: str
    number: int
    fingerprint: str
    rule: str
    confidence: float
    how: How
    at: str
    signals: Signals | None = None

    @property
    def right(self) -> bool:
        """Whether people took it as right."""
        return RIGHT[self.how]

    @property
    def weight(self) -> float:
        """How much that tells: a line may be mended, or a thread resolved, for other reasons."""
        return WEIGHT.get(self.how, 1.0)


@dataclass(frozen=True, slots=True)
class Bin:
    """Of the findings posted at a confidence from `low` to `high`: how many, how many were right, their mean."""

    low: float
    high: float
    count: int
    right: int
    mean: float


@dataclass(frozen=True, slots=True)
class RuleStats:
    """How a rule does in a repository: outcomes, how many right, and the confidence that it needs now."""

    rule: str
    count: int
    right: int
    threshold: float


def thresholds(outcomes: Sequence[Outcome], repo: str, default: float) -> dict[str, float]:
    """The confidence that each rule needs in this repository, where feedback says it is not `default`.

    A rule's stated confidence is held against how often it was right. Both are Beta posteriors in widening circles
    (this rule here, this rule elsewhere, its tool's other rules), each the prior of the one inside it. The shift in
    log-odds between the two says how much more, or less, a finding has to be sure to be as sure as `default` means.
    """
    by_tool: defaultdict[str, list[Outcome]] = defaultdict(list)
    by_rule: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_tool[_tool(outcome.rule)].append(outcome)
        by_rule[outcome.rule].append(outcome)
    found = {}
    for rule, all_of_it in by_rule.items():
        stated = _stated(all_of_it)
        others = [o for o in by_tool[_tool(rule)] if o.rule != rule]
        shift = _shift(_posterior(others, _stated(others), _FAR), _stated(others))
        elsewhere = [o for o in all_of_it if o.repo != repo]
        here = [o for o in all_of_it if o.repo == repo]
        rate = _posterior(here, _posterior(elsewhere, _moved(stated, shift), _FAR))
        needed = _moved(default, -_shift(rate, stated))
        needed = min(HIGHEST, max(default - MOST_LOWERED, needed))
        if abs(needed - default) >= 0.005:
            found[rule] = round(needed, 4)
    return found


def weights(outcomes: Iterable[Outcome]) -> Weights:
    """What a model's claims are weighed with, after these outcomes."""
    told = [(o.signals, o.right, o.weight) for o in outcomes if o.signals is not None]
    return fit(told) if len(told) >= FEWEST else PRIOR


def restated(outcomes: Iterable[Outcome], now: Weights) -> list[Outcome]:
    """The outcomes as they would be stated now: what the weights have learned, thresholds need not learn again."""
    return [
        replace(o, confidence=confidence(o.signals, now)) if o.signals is not None else o
        for o in outcomes
    ]


def calibration(outcomes: Iterable[Outcome], edges: Sequence[float] = (0.0, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0)) -> tuple[Bin, ...]:  # fmt: skip
    """Stated confidence against what came of it: one bin for each stretch between `edges` that has outcomes."""
    kept = list(outcomes)
    bins = []
    for low, high in pairwise(edges):
        inside = [
            o for o in kept if low <= o.confidence < high or (high == edges[-1] == o.confidence)
        ]
        if inside:
            mean = sum(o.confidence for o in inside) / len(inside)
            bins.append(Bin(low, high, len(inside), sum(o.right for o in inside), round(mean, 4)))
    return tuple(bins)


def statistics(
    outcomes: Sequence[Outcome], needed: Mapping[str, float], repo: str, default: float
) -> tuple[RuleStats, ...]:
    """Every rule that has outcomes in this repository, those with most first; `needed` as `thresholds` gives it."""
    here: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.repo == repo:
            here[outcome.rule].append(outcome)
    rows = [
        RuleStats(rule, len(found), sum(o.right for o in found), needed.get(rule, default))
        for rule, found in here.items()
    ]
    return tuple(sorted(rows, key=lambda r: (-r.count, r.rule)))


def tone(reply: str) -> How | None:
    """What a person's reply under a finding says of it, where it says so in plain words; quotations do not count."""
    words = " ".join(
        line for line in reply.lower()[:2000].split("\n") if not line.lstrip().startswith(">")
    ).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    denied, agreed = _DENIALS.search(words), _AGREES.search(words)
    if denied and agreed:
        return None  # "you're right, this is wrong" and "fixed the typo, the rest is intended" look the same
    if denied:
        return "denied"
    return "thanked" if agreed or (_THANKS.search(words) and not _BUT.search(words)) else None


def _tool(rule: str) -> str:
    return rule.partition("/")[0]


def _stated(outcomes: Sequence[Outcome]) -> float:
    total = sum(o.weight for o in outcomes)
    return sum(o.confidence * o.weight for o in outcomes) / total if total else 0.8


def _posterior(
    outcomes: Sequence[Outcome], prior: float, strength: float = PRIOR_STRENGTH
) -> float:
    """The mean of a Beta posterior whose prior counts for `strength` outcomes."""
    right = sum(o.weight for o in outcomes if o.right)
    total = sum(o.weight for o in outcomes)
    return (prior * strength + right) / (strength + total)


def _shift(rate: float, stated: float) -> float:
    return _logit(rate) - _logit(stated)


def _moved(share: float, shift: float) -> float:
    return 1 / (1 + math.exp(-(_logit(share) + shift)))


def _logit(share: float) -> float:
    bounded = min(0.999, max(0.001, share))
    return math.log(bounded / (1 - bounded))


_DENIALS = re.compile(
    r"\bfalse positive|\bnot an? (?:bug|issue|problem)\b|\bby design\b|\b(?<!not )(?<!n't )intended\b(?! to)"
    r"|\b(?<!not )(?<!n't )intentional|\bwon'?t fix|\bwontfix\b|\bincorrect\b|\b(?:this is|that's) wrong\b|\bnot true\b"
    r"|\bdisagree|\b(?:doesn't|does not) apply\b|\b(?:can't|cannot|never) happens?\b|\bnonsense\b|\bhallucinat"
)
_AGREES = re.compile(
    r"\b(?:good|nice|great) (?:catch|find)\b|\byou(?:'re| are) right\b|\bwell spotted\b|\b(?<!not )(?<!n't )fixed\b"
    r"|\bdone in\b|\b(?<!not )addressed\b"
)
_THANKS = re.compile(r"\bthanks\b|\bthank you\b|\bgood point\b")
_BUT = re.compile(r"\bbut\b|\bhowever\b|\?")
