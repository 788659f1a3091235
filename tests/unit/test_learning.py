"""What became of findings moves thresholds, by rule and repository, and shows how confidence was meant."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regreen.adapters.clock import SystemClock
from regreen.adapters.store.connection import engine_for
from regreen.adapters.store.database import Database
from regreen.bot.feedback import OutcomeStore
from regreen.domain.models import Signals
from regreen.domain.state_records import IS_RIGHT, OUTCOME_WEIGHT, FindingOutcome, OutcomeKind
from regreen.reviewers.calibration import (
    PRIOR_WEIGHTS,
    estimate_confidence,
    fit_weights,
)
from regreen.reviewers.learning import (
    MAX_LOWERING,
    MAX_THRESHOLD,
    OUTCOME_PRIORITY,
    calibration_bins,
    classify_reply,
    learn_thresholds,
    learn_weights,
    rule_statistics,
)


def told(how: OutcomeKind, count: int, *, rule: str = "model/crash", repo: str = "a/b", confidence: float = 0.9) -> list[FindingOutcome]:  # fmt: skip
    return [FindingOutcome(repo, 1, f"{how}{rule}{repo}{i}", rule, confidence, how, "2026-01-01") for i in range(count)]  # fmt: skip


def test_one_owners_feedback_moves_nothing_for_another_owner(tmp_path: Path) -> None:
    store = Database(engine_for(f"sqlite:///{tmp_path}/regreen.sqlite"), SystemClock())
    store.create_or_upgrade_tables()
    outcomes = OutcomeStore(store)
    for outcome in told("dismissed", 40, repo="mallory/trap"):
        outcomes.record_outcome(outcome)
    assert outcomes.learned_thresholds("acme/shop", 0.8) == (PRIOR_WEIGHTS, {})
    assert outcomes.learned_thresholds("mallory/other", 0.8)[1]["model/crash"] > 0.9
    store.engine.dispose()


def test_without_outcomes_nothing_moves() -> None:
    assert learn_thresholds([], "a/b", 0.8) == {}


def test_a_rule_that_is_as_right_as_it_says_keeps_its_threshold() -> None:
    outcomes = told("applied", 90) + told("dismissed", 10)
    assert learn_thresholds(outcomes, "a/b", 0.8).get("model/crash", 0.8) == pytest.approx(
        0.8, abs=0.02
    )


def test_a_rule_that_people_turn_down_needs_more_and_more() -> None:
    needed = [
        learn_thresholds(told("dismissed", n), "a/b", 0.8).get("model/crash", 0.8)
        for n in (0, 1, 3, 10, 40)
    ]
    assert needed == sorted(needed)
    assert needed[1] < 0.89  # one click does not silence a rule
    assert needed[3] > 0.95  # ten in a row do


def test_a_rule_that_is_always_right_needs_a_little_less_and_never_much_less() -> None:
    needed = learn_thresholds(told("applied", 200, confidence=0.8), "a/b", 0.8)["model/crash"]
    assert needed == pytest.approx(0.8 - MAX_LOWERING)


def test_what_one_repository_teaches_reaches_others_weakly() -> None:
    outcomes = told("dismissed", 12, repo="a/b")
    here = learn_thresholds(outcomes, "a/b", 0.8)["model/crash"]
    there = learn_thresholds(outcomes, "c/d", 0.8)["model/crash"]
    assert 0.8 < there < here


def test_what_one_rule_teaches_reaches_its_tools_other_rules_weakly() -> None:
    outcomes = told("dismissed", 12) + told("applied", 1, rule="model/leak")
    found = learn_thresholds(outcomes, "a/b", 0.8)
    assert 0.8 < found["model/leak"] < found["model/crash"]
    assert "ruff/F821" not in found


def test_the_shift_makes_what_is_posted_as_right_as_wanted() -> None:
    """Stated confidence is too high by a constant in log-odds; at the learned threshold it is right again."""
    draw = random.Random(5)
    stated = [draw.choice([0.8, 0.85, 0.9, 0.95]) for _ in range(2000)]

    def truth(c: float) -> float:
        odds = c / (1 - c) / 3
        return odds / (1 + odds)

    outcomes = [
        FindingOutcome("a/b", 1, str(i), "model/crash", c, "applied" if draw.random() < truth(c) else "dismissed", "")
        for i, c in enumerate(stated)
    ]  # fmt: skip
    needed = learn_thresholds(outcomes, "a/b", 0.8)["model/crash"]
    assert truth(needed) == pytest.approx(0.8, abs=0.04)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(OUTCOME_PRIORITY),
            st.sampled_from(["model/a", "x/b"]),
            st.floats(0.01, 0.99),
        )
    )
)
def test_thresholds_stay_where_thresholds_can_be(drawn: list[tuple[OutcomeKind, str, float]]) -> None:  # fmt: skip
    outcomes = [FindingOutcome("a/b", 1, str(i), r, c, h, "") for i, (h, r, c) in enumerate(drawn)]
    for value in learn_thresholds(outcomes, "a/b", 0.8).values():
        assert 0.8 - MAX_LOWERING - 1e-6 <= value <= MAX_THRESHOLD
    bins = calibration_bins(outcomes)
    assert sum(b.count for b in bins) == len(outcomes)
    assert sum(r.count for r in rule_statistics(outcomes, {}, "a/b", 0.8)) == len(outcomes)


def test_calibration_holds_what_was_said_against_what_came_of_it() -> None:
    outcomes = told("applied", 9) + told("dismissed", 1) + told("mended", 3, confidence=1.0)
    shown = [(b.low, b.high, b.count, b.right, b.mean) for b in calibration_bins(outcomes)]
    assert shown == [(0.9, 0.95, 10, 9, 0.9), (0.95, 1.0, 3, 3, 1.0)]


@pytest.mark.parametrize(
    ("reply", "how"),
    [
        ("Good catch, fixed in abc123", "thanked"),
        ("This is a false positive: the caller checks it", "denied"),
        ("Works as intended.", "denied"),
        ("> fixed\n\nLet me think", None),
        ("Thanks, but that's wrong: x is never None", "denied"),
        ("What about y?", None),
        ("You're right, this is wrong.", None),
        ("Good catch, that was not intended!", "thanked"),
        ("That was unintended, fixed in 0ab3", "thanked"),
        ("This isn\u2019t intentional at all", None),
        ("Thanks, but why would that be null?", None),
        ("Thank you!", "thanked"),
        ("not fixed yet", None),
        ("That can\u2019t happen: the caller checks.", "denied"),
        ("We intended to keep it, by design", "denied"),
        ("This is intentional.", "denied"),
    ],
)
def test_replies_count_where_they_are_plain(reply: str, how: OutcomeKind | None) -> None:
    assert classify_reply(reply) == how


def test_every_way_has_a_meaning() -> None:
    assert set(IS_RIGHT) == set(OUTCOME_PRIORITY)
    assert set(OUTCOME_WEIGHT) <= set(OUTCOME_PRIORITY)


def drawn_claims(count: int, truth: tuple[float, ...], seed: int = 3) -> list[tuple[Signals, bool, float]]:  # fmt: skip
    """Claims with signals as they come, right or not as weights other than the prior would have it."""
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        signals = Signals(
            draw.choice([1, 1, 2]), 2, draw.choice(["holds", "holds", "unsure", "refuted"]),
            draw.uniform(0.6, 1.0), draw.uniform(0.4, 0.95), draw.choice(["not_run", "not_run", "proven", "disproven"]),
        )  # fmt: skip
        made.append((signals, draw.random() < estimate_confidence(signals, truth), 1.0))
    return made


def test_without_outcomes_the_weights_are_the_prior() -> None:
    assert fit_weights([]) == PRIOR_WEIGHTS
    # analyzers' outcomes say nothing of a model's claims
    assert learn_weights(told("applied", 50)) == PRIOR_WEIGHTS


def test_a_handful_of_outcomes_moves_the_weights_a_little() -> None:
    one = (Signals(2, 2, "holds", 0.95, 0.9), False, 1.0)
    before, after = estimate_confidence(one[0]), estimate_confidence(one[0], fit_weights([one]))
    assert before - 0.08 < after < before


KINDS = (
    (Signals(2, 2, "holds", 0.95, 0.9, worth="yes"), 65, 65),
    (Signals(1, 2, "holds", 0.9, 0.6, worth="yes"), 4, 4),
    (Signals(2, 2, "holds", 0.9, 0.7, worth="perhaps"), 24, 14),
    (Signals(1, 2, "holds", 0.85, 0.5, worth="perhaps"), 22, 9),
    (Signals(1, 2, "holds", 0.85, 0.4, worth="no"), 17, 2),
    (Signals(1, 2, "refuted", 0.85, 0.5, worth="perhaps"), 9, 4),
    (Signals(1, 2, "unsure", 0.7, 0.4, worth="perhaps"), 9, 4),
)
"""Kinds of claims, how many of each, how many of these were right: about as judges have found them."""


@pytest.mark.parametrize("times", [1, 9, 30])
def test_however_many_outcomes_there_are_the_weights_stay_where_they_fit_best(times: int) -> None:
    """Where all of one kind were right, a whole step of Newton's method jumps too far, and ever farther."""
    told = [(s, n < right, 1.0) for s, count, right in KINDS for n in range(count)] * times
    now = fit_weights(told)
    stated = sum(estimate_confidence(s, now) for s, _, _ in told) / len(told)
    assert stated == pytest.approx(sum(r for _, r, _ in told) / len(told), abs=0.04)
    assert max(map(abs, now)) < 15
    assert all(estimate_confidence(s, now) < 0.8 for s, _, right in KINDS if right in {2, 4} and s.worth != "yes")  # fmt: skip


def test_fitted_on_some_it_is_calibrated_on_others() -> None:
    truth = (*PRIOR_WEIGHTS[:1], 0.4, 0.1, 1.2, -0.2, -1.5, 0.3, 3.0, 0.6, -3.0)
    claims = drawn_claims(1500, truth)
    folds = [claims[i::5] for i in range(5)]
    stated: list[tuple[float, bool]] = []
    unfitted: list[tuple[float, bool]] = []
    for i, held in enumerate(folds):
        fitted = fit_weights([c for j, fold in enumerate(folds) if j != i for c in fold])
        stated += [(estimate_confidence(s, fitted), right) for s, right, _ in held]
        unfitted += [(estimate_confidence(s), right) for s, right, _ in held]
    assert calibration_gap(stated) < 0.05 < calibration_gap(unfitted)


def calibration_gap(pairs: list[tuple[float, bool]]) -> float:
    """The distance between stated confidence and the share that was right, weighted by the size of each bin."""
    bins = [
        [p for p in pairs if low <= p[0] < high]
        for low, high in ((0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 1))
    ]
    return sum(abs(sum(c - right for c, right in held)) for held in bins) / len(pairs)
