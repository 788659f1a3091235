"""Hold stated confidence against claims that were judged one by one. Figures: review.md.

python benchmarks/calibration.py [CLAIMS.jsonl]
    CLAIMS: one claim a line, as judged_claims.jsonl has them: the signals it rests on, whether it names the labelled
    fault, whether it is true, and whether it is useful (the judge would change the code for it before merging).
    All have one judge, who also made the readings of sets 3 and 4, after the reading and knowing the labels.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from regreen.models import Signals
from regreen.reviewers.calibrate import confidence, fit, gap

FOLDS = 5
ROUNDS = 40
POSTED = 0.8
Pairs = list[tuple[float, bool]]


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
            prior = [(confidence(c["signals"]), c[outcome]) for c in chosen]
            folded = [_on_folds(chosen, outcome, seed) for seed in range(ROUNDS)]
            print(
                f"  {outcome}: {_told(prior)}; fitted on the other folds: gap {mean(map(gap, folded)):.3f}, "
                f"of those posted {_posted(folded)}"
            )
        print(
            f"  a gap of {_floor([confidence(c['signals']) for c in chosen]):.3f} is chance alone"
        )
    for worth in ("yes", "perhaps", "no"):
        _count(f"would act: {worth}", [c for c in claims if c["signals"].worth == worth])
    _count("one reading", [c for c in claims if c["signals"].readers == 1])
    _count("two or more readings", [c for c in claims if c["signals"].readers > 1])


def _count(name: str, found: Sequence[dict[str, Any]]) -> None:
    true, useful, label = (sum(c[k] for c in found) for k in ("true", "useful", "label"))
    print(f"{name}: {len(found)} claims, {true} true, {useful} useful, {label} by the label")


def _told(pairs: Pairs) -> str:
    return f"gap {gap(pairs):.3f}, of those posted {_posted([pairs])}"


def _posted(rounds: Sequence[Pairs]) -> str:
    posted = [(c, r) for pairs in rounds for c, r in pairs if c >= POSTED]
    stated, right = mean(c for c, _ in posted), mean(r for _, r in posted)
    return f"({len(posted) / len(rounds):.1f}) {right:.2f} right, {stated:.2f} stated"


def _on_folds(claims: Sequence[dict[str, Any]], outcome: str, seed: int) -> Pairs:
    """Each claim stated by weights that were fitted on other pull requests' claims."""
    names = sorted({c["case"] for c in claims})
    random.Random(seed).shuffle(names)
    fold_of = {name: i % FOLDS for i, name in enumerate(names)}
    pairs: Pairs = []
    for fold in range(FOLDS):
        rest = [c for c in claims if fold_of[c["case"]] != fold]
        weights = fit((c["signals"], c[outcome], 1.0) for c in rest)
        pairs += [
            (confidence(c["signals"], weights), c[outcome])
            for c in claims
            if fold_of[c["case"]] == fold
        ]
    return pairs


def _floor(stated: Sequence[float]) -> float:
    """The gap to expect of so many claims if each held with exactly the probability stated."""
    chance = random.Random(1)
    return mean(gap([(c, chance.random() < c) for c in stated]) for _ in range(2000))


if __name__ == "__main__":
    main()
