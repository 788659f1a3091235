"""The mathematics of `regreen why`: which runs name which cause, and how often it errs."""

from __future__ import annotations

import random

import pytest

from regreen.causes.posterior import Cause, CausePosterior, Circumstances


def posterior(head: str, base: str, **known: bool | int) -> CausePosterior:
    """The posterior after runs: F failed, P passed."""
    found = CausePosterior(Circumstances(**known))  # type: ignore[arg-type]
    for letter in head:
        found.observe_outcome("head", failed=letter == "F")
    for letter in base:
        found.observe_outcome("base", failed=letter == "F")
    return found


@pytest.mark.parametrize(
    ("head", "base", "known", "cause"),
    [
        ("F", "P", {}, None),
        ("FF", "PP", {}, None),
        ("FFFF", "PPP", {}, "change"),
        ("FFFF", "PPP", {"documents_only": True}, None),
        ("FFF", "FFF", {}, None),
        ("FFFF", "FFF", {}, "main"),
        ("FP", "P", {}, "flaky"),
        ("FP", "F", {}, "flaky"),
        ("FP", "", {"is_new": True}, "flaky"),
        ("FFFFFFF", "", {"is_new": True}, "change"),
        ("PPP", "P", {}, None),
    ],
)
def test_the_cause_is_named_when_the_runs_show_it(
    head: str, base: str, known: dict[str, bool], cause: Cause | None
) -> None:
    assert posterior(head, base, **known).find_cause() == cause


def decide(on_head: float, on_base: float, dice: random.Random) -> tuple[Cause | None, int]:
    """Runs as `Investigation` does: head first, which failed, then where there are fewer runs."""
    found, counts = posterior("F", ""), {"head": 1, "base": 0}
    while found.find_cause() is None and sum(counts.values()) < 12:
        place = "base" if counts["base"] < counts["head"] else "head"
        counts[place] += 1
        rate = on_head if place == "head" else on_base
        found.observe_outcome("head" if place == "head" else "base", failed=dice.random() < rate)
    return found.find_cause(), sum(counts.values())


def test_a_real_failure_is_never_called_flaky_and_a_flake_seldom_the_change() -> None:
    dice = random.Random(7)
    assert {decide(1.0, 0.0, dice)[0] for _ in range(50)} == {"change"}
    assert {decide(1.0, 1.0, dice)[0] for _ in range(50)} == {"main"}
    for rate in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5):
        verdicts = [decide(rate, rate, dice)[0] for _ in range(500)]  # its first run failed
        assert verdicts.count("change") <= 0.03 * len(verdicts)
        assert verdicts.count("flaky") >= 0.9 * len(verdicts)


def test_the_rate_is_stated_with_its_interval() -> None:
    mean, low, high = posterior("FP", "PP").estimate_rate()
    assert low < mean < high
    assert mean == pytest.approx(1 / 3)
