"""The probabilities of commits and the choice of the next test: pure, exact, replayable.

`CulpritPosterior` holds the probabilities; the state is a function of the graph, the prior and the list of
observations alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from regreen.bisect.commit_graph import BEFORE_RANGE
from regreen.bisect.posterior import CommitGroup, CulpritPosterior, dot_product

_CALIBRATION_FACTOR = 1.56


class CulpritSearch(CulpritPosterior):
    """Exact Bayes over culprit and failure rates, and the choice of tests."""

    def next_batch(
        self,
        count: int = 1,
        *,
        cost: CostFunction | None = None,
        in_flight: Iterable[int] = (),
        barred: Collection[int] = (),
    ) -> list[int]:
        """The most informative tests for their cost, given those in flight; a commit may occur more than once.

        Args:
            count: how many.
            cost: the cost of testing each commit; equal if not given.
            in_flight: tests that are running.
            barred: commits that cannot be tested.
        """
        return choose_tests(self, count, cost=cost, in_flight=in_flight, barred=barred)

    def expected_information(self, point: int) -> float:
        """The information of one test at `point` about the culprit, in bits."""
        return expected_information(self, point)


def calibrate_probability(probability: float) -> float:
    """The probability to report for a computed one: its odds times 1.5.

    The doubt in the computed probability (the prior over failure rates) keeps the search from stopping early on failures that merely
    look steady; once a failure has proven to be flaky, that doubt is too large. The factor is measured: answers
    reported at 99 % were right at least as often (benchmarks/bisect.md).
    """
    odds = _CALIBRATION_FACTOR * probability
    return odds / (odds + 1 - probability)


def calibrate_distribution(probabilities: Sequence[float]) -> list[float]:
    """The distribution with its highest value calibrated, the rest scaled to fill."""
    highest = max(probabilities)
    if not 0 < highest < 1:
        return list(probabilities)
    at = probabilities.index(highest)
    stated = calibrate_probability(highest)
    scale = (1 - stated) / (1 - highest)
    return [stated if place == at else value * scale for place, value in enumerate(probabilities)]


# The choice of the next test: the most informative for its cost; near the end, the most decisive.

_NEGLIGIBLE_MASS = (
    3e-3  # groups whose total mass is at most this do not influence the choice of the next test
)
_MAX_IN_FLIGHT = 7  # joint outcomes double with each; further tests in flight are ignored
_DECIDE_PROBABILITY = (
    0.3  # from this probability on, tests are chosen to decide rather than to inform
)
_MAX_FINALISTS = 24
_TARGET_POINTS = 128  # about this many commits are considered for the next test
_MIN_POINTS_PER_CELL = 4
_SHORTLIST_POINTS = 48  # points considered for the second and later tests of a batch

CostFunction = Callable[[int], float]


@dataclass(frozen=True, slots=True)
class _BeliefCell:
    """What the choice needs of a group: its mass, and its expected rates with and without the culprit."""

    group: CommitGroup | None
    mass: float
    if_bad: float
    if_good: float


def choose_tests(
    posterior: CulpritPosterior,
    count: int,
    *,
    cost: CostFunction | None = None,
    in_flight: Iterable[int] = (),
    barred: Collection[int] = (),
) -> list[int]:
    """The most informative tests for their cost, given those in flight; a commit may occur more than once."""
    pending = list(in_flight)[-_MAX_IN_FLIGHT:]
    cells = _group_cells(posterior)
    points = [at for at in _choose_candidate_points(posterior, cells) if at not in barred]
    chosen: list[int] = []
    while len(chosen) < count:
        gains = _information_gains(posterior, cells, pending, points)
        if count == 1 and not pending and posterior.likeliest_commit()[1] > _DECIDE_PROBABILITY:
            points, gains = _keep_most_decisive(posterior, cells, points, gains)
        best, most = None, 1e-12
        for point, gain in zip(points, gains, strict=True):
            worth = gain / cost(point) if cost else gain
            if worth > most:
                best, most = point, worth
        if best is None:
            break
        chosen.append(best)
        pending = [*pending, best][-_MAX_IN_FLIGHT:]
        if len(chosen) < count:
            points = _shortlist_points(posterior, cells, points)
    return chosen


def expected_information(posterior: CulpritPosterior, point: int) -> float:
    """The information of one test at `point` about the culprit, in bits."""
    return _information_gains(posterior, _group_cells(posterior), [], [point])[0]


# --- cells and points ------------------------------------------------------------------------------


def _group_cells(posterior: CulpritPosterior) -> list[_BeliefCell]:
    """The likeliest groups, until the rest hardly matters; and the two cases without a culprit."""
    cells: list[_BeliefCell] = []
    left = sum(group.mass for group in posterior.groups)
    for group in sorted(posterior.groups, key=lambda group: -group.mass):
        if left < _NEGLIGIBLE_MASS:
            break
        left -= group.mass
        bad, good = (
            dot_product(group.row, posterior.if_bad),
            dot_product(group.row, posterior.if_good),
        )
        cells.append(_BeliefCell(group, group.mass, bad / group.mass, good / group.mass))
    none, before = sum(posterior.if_none), sum(posterior.if_before)
    if none > 0:
        cells.append(
            _BeliefCell(None, none, 0.0, dot_product(posterior.if_none, posterior.if_good) / none)
        )
    if before > 0:
        rate = dot_product(posterior.if_before, posterior.if_bad) / before
        cells.append(_BeliefCell(None, before, rate, rate))
    return cells


def _choose_candidate_points(posterior: CulpritPosterior, cells: list[_BeliefCell]) -> list[int]:
    """Suspects, spread over each group by its mass, and all tested points.

    Other commits would give the same information: only suspects can divide a group.
    """
    points = {BEFORE_RANGE, *posterior.tested}
    for cell in cells:
        if cell.group is not None:
            members = cell.group.members
            quota = max(_MIN_POINTS_PER_CELL, round(_TARGET_POINTS * cell.mass))
            step = max(1.0, len(members) / quota)
            points.update(members[int((at + 0.5) * step)] for at in range(int(len(members) / step)))
    return sorted(points)


def _shortlist_points(
    posterior: CulpritPosterior, cells: list[_BeliefCell], points: list[int]
) -> list[int]:
    """Points spread evenly over the chance of failing: enough to choose the rest of a batch from."""
    if len(points) <= _SHORTLIST_POINTS + len(posterior.tested):
        return points
    chances = [0.0] * len(points)
    for cell in cells:
        if cell.group is not None:
            shares = _contained_shares(posterior, cell.group.mask, points)
            chances = [
                value + cell.mass * part for value, part in zip(chances, shares, strict=True)
            ]
    order = sorted(range(len(points)), key=chances.__getitem__)
    chosen = {points[order[0]], points[order[-1]]}
    step = (chances[order[-1]] - chances[order[0]]) / _SHORTLIST_POINTS
    wanted = chances[order[0]]
    for at in order:
        if chances[at] >= wanted:
            chosen.add(points[at])
            wanted += step
    chosen |= posterior.tested.intersection(points)
    return sorted(chosen)


# --- decisive tests --------------------------------------------------------------------------------


def _keep_most_decisive(
    posterior: CulpritPosterior, cells: list[_BeliefCell], points: list[int], gains: list[float]
) -> tuple[list[int], list[float]]:
    """Once one commit leads: the best points, by how much they would separate each commit from the rest.

    This is the extrinsic Jensen-Shannon divergence (Naghshvar and Javidi, 2012): near certainty it keeps choosing
    the decisive test, where plain information turns to what is still unknown elsewhere.
    """
    order = sorted(range(len(points)), key=lambda at: (-gains[at], at))[:_MAX_FINALISTS]
    candidates = sorted(points[at] for at in order)
    return candidates, [_measure_decisiveness(posterior, cells, point) for point in candidates]


def _measure_decisiveness(
    posterior: CulpritPosterior, cells: list[_BeliefCell], point: int
) -> float:
    inside = posterior.graph.contained_commits(point)
    shares: list[tuple[float, float, float]] = []  # mass, mass of one commit, rate
    for cell in cells:
        if cell.group is None:
            shares.append((cell.mass, cell.mass, cell.if_good))
            continue
        each = cell.mass / cell.group.mask.bit_count()
        share = posterior.sum_prior_weights(cell.group.mask & inside) / posterior.sum_prior_weights(
            cell.group.mask
        )
        shares += [
            (cell.mass * share, each, cell.if_bad),
            (cell.mass * (1 - share), each, cell.if_good),
        ]
    overall = sum(mass * rate for mass, _, rate in shares)
    return sum(
        mass * _kl_divergence(rate, (overall - each * rate) / max(1 - each, 1e-9))
        for mass, each, rate in shares
        if mass > 0
    )


def _kl_divergence(chance: float, other: float) -> float:
    """The Kullback-Leibler divergence between two Bernoulli distributions, in bits."""
    other = min(max(other, 1e-9), 1 - 1e-9)
    total = 0.0
    if chance > 1e-12:
        total += chance * math.log2(chance / other)
    if chance < 1 - 1e-12:
        total += (1 - chance) * math.log2((1 - chance) / (1 - other))
    return total


# --- informative tests -----------------------------------------------------------------------------


def _information_gains(
    posterior: CulpritPosterior, cells: list[_BeliefCell], pending: list[int], points: list[int]
) -> list[float]:
    """The information that each point adds to the pending tests, in bits."""
    noise = [0.0] * len(points)
    parts = _split_cells(posterior, cells, pending)
    sums = [[0.0] * len(points) for _ in range(1 << len(pending))]
    for cell, share, mask, chances in parts:
        # None: the rates of this cell do not depend on the point
        shares = None if cell.group is None else _contained_shares(posterior, mask, points)
        low, high = cell.if_good, cell.if_bad
        base, slope = (
            share * _binary_entropy(low),
            share * (_binary_entropy(high) - _binary_entropy(low)),
        )
        if shares is None:
            noise = [value + base for value in noise]
        else:
            noise = [value + base + slope * part for value, part in zip(noise, shares, strict=True)]
        for which, chance in enumerate(chances):
            start, rise = share * chance * low, share * chance * (high - low)
            row = sums[which]
            sums[which] = (
                [value + start for value in row]
                if shares is None
                else [value + start + rise * part for value, part in zip(row, shares, strict=True)]
            )
    totals = [
        sum(share * chances[which] for _, share, _, chances in parts) for which in range(len(sums))
    ]
    gains = [-value for value in noise]
    for total, row in zip(totals, sums, strict=True):
        if total > 1e-12:
            gains = [
                gain + total * _binary_entropy(value / total)
                for gain, value in zip(gains, row, strict=True)
            ]
    return gains


def _split_cells(
    posterior: CulpritPosterior, cells: list[_BeliefCell], pending: list[int]
) -> list[tuple[_BeliefCell, float, int, list[float]]]:
    """Cells divided by the pending tests, each with the chance of every joint outcome."""
    parts: list[tuple[_BeliefCell, float, int, list[float]]] = []
    for cell in cells:
        pieces: list[tuple[float, int, list[float]]] = [
            (cell.mass, cell.group.mask if cell.group else 0, [1.0])
        ]
        for point in pending:
            inside = posterior.graph.contained_commits(point)
            pieces = [
                cut for piece in pieces for cut in _split_piece(posterior, cell, piece, inside)
            ]
        parts.extend((cell, share, mask, chances) for share, mask, chances in pieces)
    return parts


def _split_piece(
    posterior: CulpritPosterior,
    cell: _BeliefCell,
    piece: tuple[float, int, list[float]],
    inside: int,
) -> list[tuple[float, int, list[float]]]:
    share, mask, chances = piece
    lacking = ([c * (1 - cell.if_good) for c in chances], [c * cell.if_good for c in chances])
    if cell.group is None:
        return [(share, mask, [*lacking[0], *lacking[1]])]
    holding = ([c * (1 - cell.if_bad) for c in chances], [c * cell.if_bad for c in chances])
    whole = posterior.sum_prior_weights(mask)
    within = posterior.sum_prior_weights(mask & inside)
    cuts: list[tuple[float, int, list[float]]] = []
    if within:
        cuts.append((share * within / whole, mask & inside, [*holding[0], *holding[1]]))
    if within < whole:
        cuts.append((share * (1 - within / whole), mask & ~inside, [*lacking[0], *lacking[1]]))
    return cuts


def _contained_shares(posterior: CulpritPosterior, mask: int, points: Iterable[int]) -> list[float]:
    """The share of `mask` that each point contains."""
    contains = posterior.graph.contains
    pieces = [(mask & members, weight) for members, weight in posterior.classes if mask & members]
    scale = 1 / sum(weight * piece.bit_count() for piece, weight in pieces)
    if len(pieces) == 1:
        scale *= pieces[0][1]
        return [
            (mask & contains[point]).bit_count() * scale if point >= 0 else 0.0 for point in points
        ]
    return [
        sum(weight * (piece & contains[point]).bit_count() for piece, weight in pieces) * scale
        if point >= 0
        else 0.0
        for point in points
    ]


def _binary_entropy(chance: float) -> float:
    """The entropy of a Bernoulli distribution."""
    if chance <= 1e-12 or chance >= 1 - 1e-12:
        return 0.0
    return -(chance * math.log2(chance) + (1 - chance) * math.log2(1 - chance))
