"""Hold stated confidence against claims that were judged one by one. Figures: review.md.

python benchmarks/calibration.py [CLAIMS.jsonl]
    CLAIMS: one claim a line, as judged_claims.jsonl has them: the signals it rests on, whether it names the labelled
    fault, whether it is true, and whether it is useful (the judge would change the code for it before merging).
    Sets 1 to 4 have one judge, who also made the readings of sets 3 and 4, after the reading and knowing the labels;
    those of sets 5 and 6 were read by two others, and judged by the one who had not read them where `judge` is "other".
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist, mean
from typing import Any

from regreen.domain.models import Signals
from regreen.reviewers.calibration import (
    PRIOR_WEIGHTS,
    estimate_confidence,
    fit_weights,
)

FOLDS = 5
ROUNDS = 40
POSTED = 0.8
EDGES = (0.0, 0.05, 0.2, 0.5, 0.8, 0.9, 0.95, 1.01)
JUDGED = {"first judge": (1, 2, 3, 4), "second judge": (5,), "third judge": (6,)}
Pairs = list[tuple[float, bool]]


def calibration_gap(
    pairs: Sequence[tuple[float, bool]], edges: Sequence[float] = (0.0, 0.2, 0.5, 0.8, 1.01)
) -> float:
    """The distance between stated confidence and the share that was right, weighted by the size of each bin."""
    total = 0.0
    for low, high in pairwise(edges):
        inside = [(c, r) for c, r in pairs if low <= c < high]
        total += abs(sum(c for c, _ in inside) - sum(r for _, r in inside))
    return total / max(1, len(pairs))


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "judged_claims.jsonl"
    claims = [json.loads(line) for line in path.read_text().splitlines()]
    for row in claims:
        row["signals"] = Signals(**row["signals"])
    for name, chosen in (
        ("all", claims),
        ("second reader not asked of worth", [c for c in claims if c["signals"].worth == "unsaid"]),
        ("second reader asked of worth", [c for c in claims if c["signals"].worth != "unsaid"]),
    ):
        print(f"{name}: {len(chosen)} claims of {len({c['case'] for c in chosen})} pull requests")
        for outcome in ("label", "true", "useful"):
            prior = [(estimate_confidence(c["signals"]), c[outcome]) for c in chosen]
            folded = [_on_folds(chosen, outcome, seed) for seed in range(ROUNDS)]
            print(
                f"  {outcome}: {_told(prior)}; fitted on the other folds: gap {mean(map(calibration_gap, folded)):.3f}, "
                f"of those posted {_posted(folded)}"
            )
            print(f"    posted by the prior: {_interval(chosen, outcome)}")
        usual, most = _floor([estimate_confidence(c["signals"]) for c in chosen])
        print(f"  chance alone: a gap of {usual:.3f}, once in twenty over {most:.3f}")
    for name, sets in JUDGED.items():
        _elsewhere(name, claims, sets)
    for low, high in pairwise(EDGES):
        found = [c for c in claims if low <= estimate_confidence(c["signals"]) < high]
        stated = mean(estimate_confidence(c["signals"]) for c in found)
        _count(f"stated {low:.2f} to {min(high, 1):.2f}, mean {stated:.3f}", found)
    for kind in ("bug", "clean"):
        posted = [
            c for c in claims if c["kind"] == kind and estimate_confidence(c["signals"]) >= POSTED
        ]
        _count(f"posted on {kind} pull requests", posted)
    for worth in ("yes", "perhaps", "no"):
        _count(f"would act: {worth}", [c for c in claims if c["signals"].worth == worth])
    _count("one reading", [c for c in claims if c["signals"].readers == 1])
    _count("two or more readings", [c for c in claims if c["signals"].readers > 1])


def _elsewhere(name: str, claims: Sequence[dict[str, Any]], sets: Sequence[int]) -> None:
    """One judge's claims, stated by the prior and by weights fitted on what the other judges said."""
    here = [c for c in claims if c["set"] in sets]
    away = fit_weights((c["signals"], c["useful"], 1.0) for c in claims if c["set"] not in sets)
    for how, weights in (("prior", PRIOR_WEIGHTS), ("fitted on the others", away)):
        pairs = [(estimate_confidence(c["signals"], weights), c["useful"]) for c in here]
        loss = -mean(math.log(s if right else 1 - s) for s, right in pairs)
        print(f"{name}, {len(here)} claims, {how}: {_told(pairs)}, log loss {loss:.3f}")


def _count(name: str, found: Sequence[dict[str, Any]]) -> None:
    true, useful, label = (sum(c[k] for c in found) for k in ("true", "useful", "label"))
    print(f"{name}: {len(found)} claims, {true} true, {useful} useful, {label} by the label")


def _told(pairs: Pairs) -> str:
    return f"gap {calibration_gap(pairs):.3f}, of those posted {_posted([pairs])}"


def _posted(rounds: Sequence[Pairs]) -> str:
    posted = [(c, r) for pairs in rounds for c, r in pairs if c >= POSTED]
    if not posted:
        return "(none)"
    stated, right = mean(c for c, _ in posted), mean(r for _, r in posted)
    return f"({len(posted) / len(rounds):.1f}) {right:.2f} right, {stated:.2f} stated"


def _interval(claims: Sequence[dict[str, Any]], outcome: str) -> str:
    """How many of those that the prior posts are right, with Wilson's interval (as if no two had one pull request)."""
    posted = [(s, c[outcome]) for c in claims if (s := estimate_confidence(c["signals"])) >= POSTED]
    count, right = len(posted), sum(r for _, r in posted)
    z = NormalDist().inv_cdf(0.975)
    middle = (right + z * z / 2) / (count + z * z)
    wide = z / (count + z * z) * math.sqrt(right * (count - right) / count + z * z / 4)
    stated = mean(s for s, _ in posted)
    return f"{right} of {count} right ({middle - wide:.2f} to {middle + wide:.2f}), stated {stated:.3f}"


def _on_folds(claims: Sequence[dict[str, Any]], outcome: str, seed: int) -> Pairs:
    """Each claim stated by weights that were fitted on other pull requests' claims."""
    names = sorted({c["case"] for c in claims})
    random.Random(seed).shuffle(names)
    fold_of = {name: i % FOLDS for i, name in enumerate(names)}
    pairs: Pairs = []
    for fold in range(FOLDS):
        rest = [c for c in claims if fold_of[c["case"]] != fold]
        weights = fit_weights((c["signals"], c[outcome], 1.0) for c in rest)
        pairs += [
            (estimate_confidence(c["signals"], weights), c[outcome])
            for c in claims
            if fold_of[c["case"]] == fold
        ]
    return pairs


def _floor(stated: Sequence[float]) -> tuple[float, float]:
    """The gap of so many claims if each held with exactly the probability stated: its mean, its 95th percentile."""
    chance = random.Random(1)
    gaps = sorted(calibration_gap([(c, chance.random() < c) for c in stated]) for _ in range(2000))
    return mean(gaps), gaps[1900]


if __name__ == "__main__":
    main()
