"""Which commit to test next: the one that tells most about the culprit for its cost; near the end, the one that decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from regreen.bisect.belief import Belief, Group, dot
from regreen.bisect.graph import BEFORE

_FAINT = (
    3e-3  # groups with no more mass than this, together, do not move the choice of the next test
)
_MOST_IN_FLIGHT = 7  # joint outcomes double with each; what more would be in flight is left out
_LATE = 0.3  # from this probability on, tests are chosen to decide rather than to inform
_FINALISTS = 24
_POINTS = 128  # about so many commits are looked at for the next test
_FEWEST = 4
_SHORTLIST = 48  # points looked at for the second and later tests of a batch

Cost = Callable[[int], float]


@dataclass(frozen=True, slots=True)
class _Cell:
    """What the choice needs of a group: its mass, and its expected rate where the culprit is contained or not."""

    group: Group | None
    mass: float
    if_bad: float
    if_good: float


def choose(
    belief: Belief,
    count: int,
    *,
    cost: Cost | None = None,
    in_flight: Iterable[int] = (),
    barred: Collection[int] = (),
) -> list[int]:
    """The tests worth most, for their cost, given those in flight; a commit may come more than once."""
    pending = list(in_flight)[-_MOST_IN_FLIGHT:]
    cells = _cells(belief)
    points = [at for at in _worth_testing(belief, cells) if at not in barred]
    chosen: list[int] = []
    while len(chosen) < count:
        gains = _gains(belief, cells, pending, points)
        if count == 1 and not pending and belief.best()[1] > _LATE:
            points, gains = _sharpened(belief, cells, points, gains)
        best, most = None, 1e-12
        for point, gain in zip(points, gains, strict=True):
            worth = gain / cost(point) if cost else gain
            if worth > most:
                best, most = point, worth
        if best is None:
            break
        chosen.append(best)
        pending = [*pending, best][-_MOST_IN_FLIGHT:]
        if len(chosen) < count:
            points = _shortlist(belief, cells, points)
    return chosen


def information(belief: Belief, point: int) -> float:
    """Bits that one test at `point` tells about the culprit."""
    return _gains(belief, _cells(belief), [], [point])[0]


# --- what is looked at -----------------------------------------------------------------------------


def _cells(belief: Belief) -> list[_Cell]:
    """Groups from the likeliest on, until those left out hardly matter; and the two cases of no culprit."""
    cells: list[_Cell] = []
    left = sum(group.mass for group in belief.groups)
    for group in sorted(belief.groups, key=lambda group: -group.mass):
        if left < _FAINT:
            break
        left -= group.mass
        bad, good = dot(group.row, belief.if_bad), dot(group.row, belief.if_good)
        cells.append(_Cell(group, group.mass, bad / group.mass, good / group.mass))
    none, before = sum(belief.if_none), sum(belief.if_before)
    if none > 0:
        cells.append(_Cell(None, none, 0.0, dot(belief.if_none, belief.if_good) / none))
    if before > 0:
        rate = dot(belief.if_before, belief.if_bad) / before
        cells.append(_Cell(None, before, rate, rate))
    return cells


def _worth_testing(belief: Belief, cells: list[_Cell]) -> list[int]:
    """Suspects, spread over each group by its mass, and whatever was tested before.

    Other commits would tell what one of these tells: a group is only told apart by what differs on it.
    """
    points = {BEFORE, *belief.tested}
    for cell in cells:
        if cell.group is not None:
            members = cell.group.members
            quota = max(_FEWEST, round(_POINTS * cell.mass))
            step = max(1.0, len(members) / quota)
            points.update(members[int((at + 0.5) * step)] for at in range(int(len(members) / step)))
    return sorted(points)


def _shortlist(belief: Belief, cells: list[_Cell], points: list[int]) -> list[int]:
    """Points spread evenly over the chance of failing: enough to choose the rest of a batch from."""
    if len(points) <= _SHORTLIST + len(belief.tested):
        return points
    chances = [0.0] * len(points)
    for cell in cells:
        if cell.group is not None:
            held = _shares(belief, cell.group.mask, points)
            chances = [value + cell.mass * part for value, part in zip(chances, held, strict=True)]
    order = sorted(range(len(points)), key=chances.__getitem__)
    kept = {points[order[0]], points[order[-1]]}
    step = (chances[order[-1]] - chances[order[0]]) / _SHORTLIST
    wanted = chances[order[0]]
    for at in order:
        if chances[at] >= wanted:
            kept.add(points[at])
            wanted += step
    kept |= belief.tested.intersection(points)
    return sorted(kept)


# --- to decide -------------------------------------------------------------------------------------


def _sharpened(
    belief: Belief, cells: list[_Cell], points: list[int], gains: list[float]
) -> tuple[list[int], list[float]]:
    """Once one commit stands out: the best points, by how much they would set each commit off from the rest.

    This is the extrinsic Jensen-Shannon divergence (Naghshvar and Javidi, 2012): near certainty it keeps asking
    for the test that decides, where plain information turns to what is still unknown elsewhere.
    """
    order = sorted(range(len(points)), key=lambda at: (-gains[at], at))[:_FINALISTS]
    kept = sorted(points[at] for at in order)
    return kept, [_setting_off(belief, cells, point) for point in kept]


def _setting_off(belief: Belief, cells: list[_Cell], point: int) -> float:
    inside = belief.graph.inside(point)
    shares: list[tuple[float, float, float]] = []  # mass, mass of one commit, rate
    for cell in cells:
        if cell.group is None:
            shares.append((cell.mass, cell.mass, cell.if_good))
            continue
        each = cell.mass / cell.group.mask.bit_count()
        held = belief.weigh(cell.group.mask & inside) / belief.weigh(cell.group.mask)
        shares += [
            (cell.mass * held, each, cell.if_bad),
            (cell.mass * (1 - held), each, cell.if_good),
        ]
    overall = sum(mass * rate for mass, _, rate in shares)
    return sum(
        mass * _divergence(rate, (overall - each * rate) / max(1 - each, 1e-9))
        for mass, each, rate in shares
        if mass > 0
    )


def _divergence(chance: float, other: float) -> float:
    """Kullback-Leibler divergence of one yes or no from another, in bits."""
    other = min(max(other, 1e-9), 1 - 1e-9)
    total = 0.0
    if chance > 1e-12:
        total += chance * math.log2(chance / other)
    if chance < 1 - 1e-12:
        total += (1 - chance) * math.log2((1 - chance) / (1 - other))
    return total


# --- to inform -------------------------------------------------------------------------------------


def _gains(
    belief: Belief, cells: list[_Cell], pending: list[int], points: list[int]
) -> list[float]:
    """The bits that each point adds to what the pending tests will tell."""
    noise = [0.0] * len(points)
    parts = _parts(belief, cells, pending)
    sums = [[0.0] * len(points) for _ in range(1 << len(pending))]
    for cell, share, mask, chances in parts:
        # None: the rates of this cell do not depend on the point
        held = None if cell.group is None else _shares(belief, mask, points)
        low, high = cell.if_good, cell.if_bad
        base, slope = share * _bits(low), share * (_bits(high) - _bits(low))
        if held is None:
            noise = [value + base for value in noise]
        else:
            noise = [value + base + slope * part for value, part in zip(noise, held, strict=True)]
        for which, chance in enumerate(chances):
            start, rise = share * chance * low, share * chance * (high - low)
            row = sums[which]
            sums[which] = (
                [value + start for value in row]
                if held is None
                else [value + start + rise * part for value, part in zip(row, held, strict=True)]
            )
    totals = [
        sum(share * chances[which] for _, share, _, chances in parts) for which in range(len(sums))
    ]
    gains = [-value for value in noise]
    for total, row in zip(totals, sums, strict=True):
        if total > 1e-12:
            gains = [
                gain + total * _bits(value / total) for gain, value in zip(gains, row, strict=True)
            ]
    return gains


def _parts(
    belief: Belief, cells: list[_Cell], pending: list[int]
) -> list[tuple[_Cell, float, int, list[float]]]:
    """Cells cut along the pending tests, each with the chance of every joint outcome of these."""
    parts: list[tuple[_Cell, float, int, list[float]]] = []
    for cell in cells:
        pieces: list[tuple[float, int, list[float]]] = [
            (cell.mass, cell.group.mask if cell.group else 0, [1.0])
        ]
        for point in pending:
            inside = belief.graph.inside(point)
            pieces = [cut for piece in pieces for cut in _cut(belief, cell, piece, inside)]
        parts.extend((cell, share, mask, chances) for share, mask, chances in pieces)
    return parts


def _cut(
    belief: Belief, cell: _Cell, piece: tuple[float, int, list[float]], inside: int
) -> list[tuple[float, int, list[float]]]:
    share, mask, chances = piece
    lacking = ([c * (1 - cell.if_good) for c in chances], [c * cell.if_good for c in chances])
    if cell.group is None:
        return [(share, mask, [*lacking[0], *lacking[1]])]
    holding = ([c * (1 - cell.if_bad) for c in chances], [c * cell.if_bad for c in chances])
    whole = belief.weigh(mask)
    within = belief.weigh(mask & inside)
    cuts: list[tuple[float, int, list[float]]] = []
    if within:
        cuts.append((share * within / whole, mask & inside, [*holding[0], *holding[1]]))
    if within < whole:
        cuts.append((share * (1 - within / whole), mask & ~inside, [*lacking[0], *lacking[1]]))
    return cuts


def _shares(belief: Belief, mask: int, points: Iterable[int]) -> list[float]:
    """What share of `mask` each point contains."""
    contains = belief.graph.contains
    pieces = [(mask & members, weight) for members, weight in belief.classes if mask & members]
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


def _bits(chance: float) -> float:
    """The entropy of a yes or no with this chance."""
    if chance <= 1e-12 or chance >= 1 - 1e-12:
        return 0.0
    return -(chance * math.log2(chance) + (1 - chance) * math.log2(1 - chance))
