"""The search: exact probabilities over the commit graph, and the choice of the next test."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regreen.bisect import bench
from regreen.bisect.commit_graph import BEFORE_RANGE, CommitGraph, linear_graph
from regreen.bisect.posterior import (
    RateHistory,
    RateHypothesis,
    default_prior,
    learn_prior,
    mix_with_uniform,
    soften_doubt_for_proof,
)
from regreen.bisect.search import CulpritSearch, calibrate_probability

SETTINGS = settings(max_examples=60, deadline=None, derandomize=True)


def dag(parents: Sequence[Sequence[int]]) -> CommitGraph:
    contains: list[int] = []
    for at, known in enumerate(parents):
        mask = 1 << at
        for parent in known:
            if parent != BEFORE_RANGE:
                mask |= contains[parent]
        contains.append(mask)
    return CommitGraph(
        tuple(f"c{at}" for at in range(len(parents))),
        tuple(tuple(known) for known in parents),
        tuple(contains),
    )


@st.composite
def histories(draw: st.DrawFn, largest: int = 25) -> CommitGraph:
    """Random histories with merges; every commit is contained in the last."""
    length = draw(st.integers(2, largest))
    parents = [
        _youngest_first(
            draw(st.sets(st.integers(max(BEFORE_RANGE, at - 4), at - 1), min_size=1, max_size=2))
        )
        for at in range(length)
    ]
    used = {parent for known in parents for parent in known}
    loose = [at for at in range(length - 1) if at not in used]
    parents[-1] = _youngest_first({*parents[-1], *loose, length - 2})
    return dag(parents)


def _youngest_first(parents: set[int]) -> list[int]:
    return sorted(parents, reverse=True)


def hunt(
    search: CulpritSearch, culprit: int, limit: int = 60, enough: float = 0.99
) -> tuple[int, float, int]:
    tests = 0
    while calibrate_probability(search.likeliest_commit()[1]) < enough and tests < limit:
        (point,) = search.next_batch()
        search.observe_outcome(
            point, failed=bool(search.graph.contained_commits(point) >> culprit & 1)
        )
        tests += 1
    found, probability = search.likeliest_commit()
    return found, calibrate_probability(probability), tests


@SETTINGS
@given(histories(), st.data())
def test_a_deterministic_culprit_is_always_found(history: CommitGraph, data: st.DataObject) -> None:
    culprit = data.draw(st.integers(0, len(history) - 1))
    found, probability, tests = hunt(CulpritSearch(history), culprit)
    assert found == culprit
    assert probability >= 0.99
    # no test tells two of them apart from others
    side_by_side = max(len(parents) for parents in history.parents)
    assert tests <= math.log2(len(history)) + 10 + side_by_side


@SETTINGS
@given(histories(), st.lists(st.tuples(st.integers(BEFORE_RANGE, 24), st.booleans()), max_size=30))
def test_probabilities_sum_to_one(history: CommitGraph, seen: list[tuple[int, bool]]) -> None:
    search = CulpritSearch(history)
    for point, failed in seen:
        search.observe_outcome(min(point, len(history) - 1), failed=failed)
    posterior = search.commit_probabilities()
    assert all(0 <= probability <= 1 for probability in posterior)
    assert math.isclose(sum(posterior) + search.none + search.before, 1, abs_tol=1e-9)


@SETTINGS
@given(
    histories(12), st.lists(st.tuples(st.integers(BEFORE_RANGE, 11), st.booleans()), max_size=12)
)
def test_the_posterior_is_bayes_rule_written_out(
    history: CommitGraph, seen: list[tuple[int, bool]]
) -> None:
    search = CulpritSearch(history)
    outcomes = [(min(point, len(history) - 1), failed) for point, failed in seen]
    for point, failed in outcomes:
        search.observe_outcome(point, failed=failed)
    weights = [_likelihood(history, culprit, outcomes) for culprit in range(len(history))]
    weights = [weight * 0.85 / len(history) for weight in weights]
    none = 0.05 * _likelihood(history, None, outcomes)
    before = 0.10 * _likelihood(history, BEFORE_RANGE, outcomes)
    total = sum(weights) + none + before
    expected = [weight / total for weight in weights]
    assert search.commit_probabilities() == pytest.approx(expected, abs=1e-9)
    assert search.none == pytest.approx(none / total, abs=1e-9)
    assert search.before == pytest.approx(before / total, abs=1e-9)


def _likelihood(history: CommitGraph, culprit: int | None, seen: list[tuple[int, bool]]) -> float:
    total = 0.0
    for pair in default_prior():
        chance = pair.weight * pair.doubt
        for point, failed in seen:
            holds = culprit == BEFORE_RANGE or (
                culprit is not None and bool(history.contained_commits(point) >> culprit & 1)
            )
            rate = pair.if_bad if holds else pair.if_good
            chance *= rate if failed else 1 - rate
        total += chance
    return total


@SETTINGS
@given(histories(14), st.randoms(use_true_random=False), st.data())
def test_a_relabelled_history_gives_the_same_answer(
    history: CommitGraph, shuffle: random.Random, data: st.DataObject
) -> None:
    order = _another_order(history, shuffle)
    place = {old: new for new, old in enumerate(order)} | {BEFORE_RANGE: BEFORE_RANGE}
    other = dag([[place[parent] for parent in history.parents[old]] for old in order])
    seen = data.draw(
        st.lists(st.tuples(st.integers(BEFORE_RANGE, len(history) - 1), st.booleans()), max_size=10)
    )
    one, two = CulpritSearch(history), CulpritSearch(other)
    for point, failed in seen:
        one.observe_outcome(point, failed=failed)
        two.observe_outcome(place[point], failed=failed)
    renamed = two.commit_probabilities()
    assert one.commit_probabilities() == pytest.approx(
        [renamed[place[at]] for at in range(len(history))]
    )
    for at in range(len(history)):
        assert one.expected_information(at) == pytest.approx(
            two.expected_information(place[at]), abs=1e-9
        )


@SETTINGS
@given(histories(14), st.randoms(use_true_random=False), st.data())
def test_a_relabelled_history_names_the_same_culprit(
    history: CommitGraph, shuffle: random.Random, data: st.DataObject
) -> None:
    order = _another_order(history, shuffle)
    place = {old: new for new, old in enumerate(order)} | {BEFORE_RANGE: BEFORE_RANGE}
    other = dag([[place[parent] for parent in history.parents[old]] for old in order])
    culprit = data.draw(st.integers(0, len(history) - 1))
    found, _, _ = hunt(CulpritSearch(history), culprit)
    renamed, _, _ = hunt(CulpritSearch(other), place[culprit])
    assert place[found] == renamed


def _another_order(history: CommitGraph, shuffle: random.Random) -> list[int]:
    """The same commits in another order that keeps parents before children."""
    order: list[int] = []
    while len(order) < len(history):
        ready = [
            at
            for at in range(len(history))
            if at not in order and all(p == BEFORE_RANGE or p in order for p in history.parents[at])
        ]
        order.append(shuffle.choice(ready))
    return order


@SETTINGS
@given(histories(), st.lists(st.booleans(), max_size=20), st.integers(1, 4))
def test_replaying_the_log_gives_the_same_next_choice(
    history: CommitGraph, outcomes: list[bool], count: int
) -> None:
    search = CulpritSearch(history)
    log: list[tuple[int, bool]] = []
    for failed in outcomes:
        (point,) = search.next_batch()
        log.append((point, failed))
        search.observe_outcome(point, failed=failed)
    replayed = CulpritSearch(history)
    for point, failed in log:
        replayed.observe_outcome(point, failed=failed)
    assert replayed.next_batch(count) == search.next_batch(count)
    assert replayed.likeliest_commit() == search.likeliest_commit()


def test_a_flaky_culprit_is_found() -> None:
    coin = random.Random(3)
    right = 0
    for _ in range(20):
        search, culprit = CulpritSearch(linear_graph(100)), coin.randrange(100)
        for _ in range(300):
            if search.likeliest_commit()[1] >= 0.99:
                break
            (point,) = search.next_batch()
            search.observe_outcome(point, failed=coin.random() < (0.7 if point >= culprit else 0.1))
        right += search.likeliest_commit()[0] == culprit
    assert right >= 18


@pytest.mark.parametrize("fails", [True, False])
def test_no_regression_is_said_after_few_tests(fails: bool) -> None:
    search = bench.make(1024, 0, 0)
    tests = 0
    while search.best()[1] < 0.95:
        (point,) = search.next_batch()
        search.observe(point, fails)
        tests += 1
        assert search.best()[0] == 1024 or search.best()[1] < 0.95
    assert search.best()[0] == 1024
    assert tests <= (6 if fails else 30)


def test_a_commit_of_weight_zero_is_never_blamed() -> None:
    search = CulpritSearch(linear_graph(4), weights=[1, 0, 1, 1])
    assert search.commit_probabilities()[1] == 0
    search.observe_outcome(0, failed=False)
    search.observe_outcome(1, failed=True)
    assert search.commit_probabilities()[1] == 0


def test_weights_that_mislead_cost_two_tests_at_most() -> None:
    accused = [100.0 if 600 <= at < 650 else 1.0 for at in range(1024)]
    for culprit in (3, 300, 590, 655, 1000):
        _, _, even = hunt(CulpritSearch(linear_graph(1024)), culprit)
        found, _, misled = hunt(CulpritSearch(linear_graph(1024), weights=accused), culprit)
        assert found == culprit
        assert misled <= even + 2


def test_weights_that_are_right_save_tests() -> None:
    accused = [100.0 if 600 <= at < 610 else 1.0 for at in range(1024)]
    _, _, even = hunt(CulpritSearch(linear_graph(1024)), 605)
    found, _, told = hunt(CulpritSearch(linear_graph(1024), weights=accused), 605)
    assert found == 605
    assert told <= even - 3


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40))
def test_no_suspicion_is_less_than_a_quarter_of_an_even_share(weights: list[float]) -> None:
    allowed = [weight for weight in mix_with_uniform(weights) if weight > 0]
    assert len(allowed) == sum(weight > 0 for weight in weights)
    assert all(weight >= 0.25 for weight in allowed)


def test_the_repository_s_past_becomes_the_prior() -> None:
    flaky = RateHistory(failed_with=7, passed_with=3, failed_without=1, passed_without=9)
    pairs = learn_prior([flaky] * 8)
    assert math.isclose(sum(pair.weight for pair in pairs), 1)
    assert pairs[0].weight < default_prior()[0].weight
    noisy = sum(pair.weight for pair in pairs if pair.if_good > 0.01)
    assert noisy > sum(pair.weight for pair in default_prior() if pair.if_good > 0.01)
    assert (
        min(now.weight / then.weight for now, then in zip(pairs, default_prior(), strict=True))
        > 1 / 3
    )


def test_nothing_is_learned_from_no_past() -> None:
    assert [pair.weight for pair in learn_prior([])] == pytest.approx(
        [pair.weight for pair in default_prior()]
    )


def test_a_long_history_of_merges_is_searched_in_log_steps_before_the_proof() -> None:
    history = _branches(1200)
    assert history.merges > 200
    ends = 2
    for culprit in range(0, 1200, 97):
        search = CulpritSearch(history, rates=soften_doubt_for_proof(default_prior()))
        search.observe_outcome(len(history) - 1, failed=True)
        search.observe_outcome(BEFORE_RANGE, failed=False)
        found, _, needed = hunt(search, culprit, enough=0.95)
        assert found == culprit
        assert needed + ends <= math.log2(len(history)) + 6


def _branches(length: int) -> CommitGraph:
    """A trunk that branches of one to four commits are merged into."""
    coin = random.Random(11)
    parents: list[list[int]] = [[BEFORE_RANGE]]
    trunk = 0
    while len(parents) < length - 8:
        branch = max(0, trunk - coin.randrange(6))
        for _ in range(coin.randrange(1, 5)):
            parents.append([branch])
            branch = len(parents) - 1
        parents.append([trunk])
        parents.append([len(parents) - 1, branch])
        trunk = len(parents) - 1
    while len(parents) < length:
        parents.append([len(parents) - 1])
    return dag(parents)


def test_barred_commits_are_not_tested() -> None:
    search = CulpritSearch(linear_graph(30))
    for _ in range(25):
        chosen = search.next_batch(3, barred={*range(5, 25)})
        assert not set(chosen) & {*range(5, 25)}
        for point in chosen:
            search.observe_outcome(point, failed=point >= 12)
    mask, mass = search.likeliest_group()
    assert mask == sum(1 << at for at in range(5, 26))
    assert mass > 0.99


def test_dear_tests_are_avoided() -> None:
    cheap = CulpritSearch(linear_graph(64)).next_batch(
        cost=lambda point: 1.0 if point < 8 else 100.0
    )
    assert cheap[0] < 8


def test_four_workers_need_few_rounds() -> None:
    rounds = []
    for culprit in range(0, 1024, 73):
        search = bench.make(1024, 0, 0)
        count = 0
        while search.best()[1] < 0.99:
            for point in search.next_batch(4):
                search.observe(point, point >= culprit)
            count += 1
        assert search.best()[0] == culprit
        rounds.append(count)
    assert sum(rounds) / len(rounds) <= 5.5


def test_known_rates_need_no_more_than_halving() -> None:
    search = CulpritSearch(
        linear_graph(1024), rates=[RateHypothesis(1.0, 1 - 1e-6, 1e-6)], none=0.0, before=0.0
    )
    found, _, tests = hunt(search, 700)
    assert (found, tests) == (700, 10)


def test_tests_in_flight_are_counted() -> None:
    search = CulpritSearch(linear_graph(100))
    (first,) = search.next_batch()
    (second,) = search.next_batch(in_flight=[first])
    assert second != first
    assert abs(second - first) > 10


def test_the_prior_sums_to_one_and_blames_no_small_jump() -> None:
    pairs = default_prior()
    assert math.isclose(sum(pair.weight for pair in pairs), 1)
    assert all(pair.if_bad > pair.if_good for pair in pairs)


def test_a_merge_is_named_for_what_it_brought() -> None:
    history = dag([[BEFORE_RANGE], [0], [0], [2], [1, 3], [4]])
    assert history.trunk == (0, 1, 4, 5)
    assert history.merged_by(2) == 4
    assert history.merged_by(1) is None
    assert history.merges == 1


def test_free_evidence_is_taken_in() -> None:
    random.seed(1)
    told, untold = bench.make_with_evidence(64, 0, 0), bench.make(64, 0, 0)
    assert told.posterior()[-1] < untold.posterior()[-1]
