"""Which commit broke it, as probabilities, and which commit to test next: pure, exact, replayable.

A hypothesis is a culprit (or none, or before) with a pair of failure rates. Commits that every test so far treats
alike form a group and share one likelihood, so the work depends on the number of tests, hardly on the number
of commits. The state is a function of the graph, the prior and the list of observations alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from operator import mul

from regreen.bisect.graph import BEFORE, Graph
from regreen.bisect.rates import Rates, prior

NONE_PRIOR = 0.05
BEFORE_PRIOR = 0.10
_FAINT = (
    3e-3  # groups with no more mass than this, together, do not move the choice of the next test
)
_MOST_IN_FLIGHT = 7  # joint outcomes double with each; what more would be in flight is left out
_NOTHING = 1e-4
_CAUTION = 1.25
_LATE = 0.6  # from this probability on, tests are chosen to decide rather than to inform
_FINALISTS = 24
_POINTS = 256  # about so many commits are looked at for the next test
_FEWEST = 6
_SHORTLIST = 48  # points looked at for the second and later tests of a batch

Cost = Callable[[int], float]


class _Group:
    """Commits that no test has told apart: their bits, their prior mass, one likelihood for each pair of rates."""

    __slots__ = ("_members", "mask", "mass", "row", "weight")

    def __init__(self, mask: int, weight: float, row: list[float]) -> None:
        self.mask = mask
        self.weight = weight
        self.row = row
        self.mass = 0.0
        self._members: list[int] | None = None

    @property
    def members(self) -> list[int]:
        """The commits, oldest first."""
        if self._members is None:
            self._members = list(bits(self.mask))
        return self._members


@dataclass(frozen=True, slots=True)
class _Cell:
    """What the choice needs of a group: its mass, and its expected rate where the culprit is contained or not."""

    group: _Group | None
    mass: float
    if_bad: float
    if_good: float


class Search:
    """Exact Bayes over culprit and failure rates.

    Args:
        history: the range.
        weights: how much likelier one commit is than another before any test; 0: it cannot be the culprit.
        rates: the prior over failure rates.
        none: prior of "nothing here broke it".
        before: prior of "it was broken before this range".
    """

    def __init__(
        self,
        history: Graph,
        *,
        weights: Sequence[float] | None = None,
        rates: Sequence[Rates] | None = None,
        none: float = NONE_PRIOR,
        before: float = BEFORE_PRIOR,
    ) -> None:
        self.graph = history
        self._rates = tuple(rates or prior())
        self._bad = [pair.if_bad for pair in self._rates]
        self._good = [pair.if_good for pair in self._rates]
        self._bad_pass = [1 - rate for rate in self._bad]
        self._good_pass = [1 - rate for rate in self._good]
        self._classes = _classes(weights if weights is not None else [1.0] * len(history))
        every = 0
        for mask, _ in self._classes:
            every |= mask
        start = [pair.weight for pair in self._rates]
        total = self._weigh(every)
        share = (1 - none - before) / total if total else 0.0
        self._share = share
        self._groups = (
            [_Group(every, total * share, [w * total * share for w in start])] if total else []
        )
        self._none = [w * none for w in start]
        self._before = [w * before for w in start]
        self._tested: set[int] = set()
        self._settle()

    # --- what was seen -------------------------------------------------------------------------

    def observe(self, point: int, *, failed: bool) -> None:
        """Take one outcome at a commit (or at `BEFORE`) into account."""
        if point not in self._tested:
            self._tested.add(point)
            self._split(self.graph.inside(point))
        inside = self.graph.inside(point)
        holds = self._bad if failed else self._bad_pass
        lacks = self._good if failed else self._good_pass
        for group in self._groups:
            group.row = list(map(mul, group.row, holds if group.mask & inside else lacks))
        self._none = list(map(mul, self._none, lacks))
        self._before = list(map(mul, self._before, holds))
        self._settle()

    def _split(self, inside: int) -> None:
        groups: list[_Group] = []
        for group in self._groups:
            within, without = group.mask & inside, group.mask & ~inside
            if not within or not without:
                groups.append(group)
                continue
            for mask in (within, without):
                weight = self._weigh(mask) * self._share
                scale = weight / group.weight
                groups.append(_Group(mask, weight, [value * scale for value in group.row]))
        self._groups = groups

    def _settle(self) -> None:
        """Scale everything so that the probabilities sum to one."""
        masses = [sum(group.row) for group in self._groups]
        none, before = sum(self._none), sum(self._before)
        total = math.fsum((*masses, none, before))
        scale = 1 / total
        for group, mass in zip(self._groups, masses, strict=True):
            group.row = [value * scale for value in group.row]
            group.mass = mass * scale
        self._none = [value * scale for value in self._none]
        self._before = [value * scale for value in self._before]
        self.none, self.before = none * scale, before * scale

    # --- what is believed ----------------------------------------------------------------------

    def posterior(self) -> list[float]:
        """The probability of each commit, parents before children."""
        result = [0.0] * len(self.graph)
        for group in self._groups:
            for mask, weight in self._classes:
                each = group.mass * weight * self._share / group.weight
                for at in bits(group.mask & mask):
                    result[at] = each
        return result

    def best(self) -> tuple[int, float]:
        """The likeliest commit (the newest of equals) and its probability; (`BEFORE`, 0.0) where none can be."""
        found, most = BEFORE, 0.0
        for group in self._groups:
            for mask, weight in self._classes:
                each = group.mass * weight * self._share / group.weight
                if each > most and group.mask & mask:
                    found, most = (group.mask & mask).bit_length() - 1, each
        return found, most

    def likeliest_group(self) -> tuple[int, float]:
        """The commits that no test so far has told apart and that are likeliest together: bits, probability."""
        if not self._groups:
            return 0, 0.0
        group = max(self._groups, key=lambda group: group.mass)
        return group.mask, group.mass

    def credible(self, confidence: float) -> list[tuple[int, float]]:
        """The smallest set of commits that holds the culprit with `confidence`, likeliest first.

        Where commits together are less likely than that, because nothing here may have broken it: all that matter.
        """
        ranked = sorted(enumerate(self.posterior()), key=lambda pair: (-pair[1], -pair[0]))
        chosen: list[tuple[int, float]] = []
        mass = 0.0
        for at, probability in ranked:
            if mass >= confidence or probability < _NOTHING / len(ranked):
                break
            chosen.append((at, probability))
            mass += probability
        return chosen

    def entropy(self) -> float:
        """Bits still missing about the culprit."""
        missing = 0.0
        for group in self._groups:
            for mask, weight in self._classes:
                each = group.mass * weight * self._share / group.weight
                if each > 0:
                    missing -= (group.mask & mask).bit_count() * each * math.log2(each)
        for mass in (self.none, self.before):
            missing -= mass * math.log2(mass) if mass > 0 else 0.0
        return missing

    def failure_rates(self) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
        """Rates with their probability: at commits that contain the culprit, and at those that do not."""
        pooled = [
            sum(values) for values in zip(*(group.row for group in self._groups), strict=True)
        ]
        pooled = pooled or [0.0] * len(self._rates)
        bad = [one + two for one, two in zip(pooled, self._before, strict=True)]
        good = [one + two for one, two in zip(pooled, self._none, strict=True)]
        return _pool(self._bad, bad), _pool(self._good, good)

    # --- what to test next ---------------------------------------------------------------------

    def next_batch(
        self,
        count: int = 1,
        *,
        cost: Cost | None = None,
        in_flight: Iterable[int] = (),
        barred: Collection[int] = (),
    ) -> list[int]:
        """The tests worth most, for their cost, given those in flight; a commit may come more than once.

        Args:
            count: how many.
            cost: what testing a commit costs; alike where not given.
            in_flight: tests that run already.
            barred: commits that cannot be tested.
        """
        pending = list(in_flight)[-_MOST_IN_FLIGHT:]
        cells = self._cells()
        points = [at for at in self._worth_testing(cells) if at not in barred]
        chosen: list[int] = []
        while len(chosen) < count:
            gains = self._gains(cells, pending, points)
            if count == 1 and not pending and self.best()[1] > _LATE:
                points, gains = self._sharpened(cells, points, gains)
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
                points = self._shortlist(cells, points)
        return chosen

    def _sharpened(
        self, cells: list[_Cell], points: list[int], gains: list[float]
    ) -> tuple[list[int], list[float]]:
        """Once one commit stands out: the best points, by how much they would set each commit off from the rest.

        This is the extrinsic Jensen-Shannon divergence (Naghshvar and Javidi, 2012): near certainty it keeps asking
        for the test that decides, where plain information turns to what is still unknown elsewhere.
        """
        order = sorted(range(len(points)), key=lambda at: (-gains[at], at))[:_FINALISTS]
        kept = sorted(points[at] for at in order)
        return kept, [self._divergence(cells, point) for point in kept]

    def _divergence(self, cells: list[_Cell], point: int) -> float:
        inside = self.graph.inside(point)
        shares: list[tuple[float, float, float]] = []  # mass, mass of one commit, rate
        for cell in cells:
            if cell.group is None:
                shares.append((cell.mass, cell.mass, cell.if_good))
                continue
            each = cell.mass / cell.group.mask.bit_count()
            held = self._weigh(cell.group.mask & inside) / self._weigh(cell.group.mask)
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

    def _shortlist(self, cells: list[_Cell], points: list[int]) -> list[int]:
        """Points spread evenly over the chance of failing: enough to choose the rest of a batch from."""
        if len(points) <= _SHORTLIST + len(self._tested):
            return points
        chances = [0.0] * len(points)
        for cell in cells:
            if cell.group is not None:
                held = self._held(cell, cell.group.mask, points) or []
                chances = [
                    value + cell.mass * part for value, part in zip(chances, held, strict=True)
                ]
        order = sorted(range(len(points)), key=chances.__getitem__)
        kept = {points[order[0]], points[order[-1]]}
        step = (chances[order[-1]] - chances[order[0]]) / _SHORTLIST
        wanted = chances[order[0]]
        for at in order:
            if chances[at] >= wanted:
                kept.add(points[at])
                wanted += step
        kept |= self._tested.intersection(points)
        return sorted(kept)

    def information(self, point: int) -> float:
        """Bits that one test at `point` tells about the culprit."""
        return self._gains(self._cells(), [], [point])[0]

    def _worth_testing(self, cells: list[_Cell]) -> list[int]:
        """Suspects, spread over each group by its mass, and whatever was tested before.

        Other commits would tell what one of these tells: a group is only told apart by what differs on it.
        """
        points = {BEFORE, *self._tested}
        for cell in cells:
            if cell.group is not None:
                members = cell.group.members
                quota = max(_FEWEST, round(_POINTS * cell.mass))
                step = max(1.0, len(members) / quota)
                points.update(
                    members[int((at + 0.5) * step)] for at in range(int(len(members) / step))
                )
        return sorted(points)

    def _cells(self) -> list[_Cell]:
        """Groups from the likeliest on, until those left out hardly matter; and the two cases of no culprit."""
        cells: list[_Cell] = []
        left = sum(group.mass for group in self._groups)
        for group in sorted(self._groups, key=lambda group: -group.mass):
            if left < _FAINT:
                break
            left -= group.mass
            bad, good = _dot(group.row, self._bad), _dot(group.row, self._good)
            cells.append(_Cell(group, group.mass, bad / group.mass, good / group.mass))
        if self.none > 0:
            cells.append(_Cell(None, self.none, 0.0, _dot(self._none, self._good) / self.none))
        if self.before > 0:
            rate = _dot(self._before, self._bad) / self.before
            cells.append(_Cell(None, self.before, rate, rate))
        return cells

    def _gains(self, cells: list[_Cell], pending: list[int], points: list[int]) -> list[float]:
        """The bits that each point adds to what the pending tests will tell."""
        noise = [0.0] * len(points)
        parts = self._parts(cells, pending)
        sums = [[0.0] * len(points) for _ in range(1 << len(pending))]
        for cell, share, mask, chances in parts:
            held = self._held(cell, mask, points)
            low, high = cell.if_good, cell.if_bad
            base, slope = share * _bits(low), share * (_bits(high) - _bits(low))
            if held is None:
                noise = [value + base for value in noise]
            else:
                noise = [
                    value + base + slope * part for value, part in zip(noise, held, strict=True)
                ]
            for which, chance in enumerate(chances):
                start, rise = share * chance * low, share * chance * (high - low)
                row = sums[which]
                sums[which] = (
                    [value + start for value in row]
                    if held is None
                    else [
                        value + start + rise * part for value, part in zip(row, held, strict=True)
                    ]
                )
        totals = [
            sum(share * chances[which] for _, share, _, chances in parts)
            for which in range(len(sums))
        ]
        gains = [-value for value in noise]
        for total, row in zip(totals, sums, strict=True):
            if total > 1e-12:
                gains = [
                    gain + total * _bits(value / total)
                    for gain, value in zip(gains, row, strict=True)
                ]
        return gains

    def _parts(
        self, cells: list[_Cell], pending: list[int]
    ) -> list[tuple[_Cell, float, int, list[float]]]:
        """Cells cut along the pending tests, each with the chance of every joint outcome of these."""
        parts: list[tuple[_Cell, float, int, list[float]]] = []
        for cell in cells:
            pieces: list[tuple[float, int, list[float]]] = [
                (cell.mass, cell.group.mask if cell.group else 0, [1.0])
            ]
            for point in pending:
                inside = self.graph.inside(point)
                pieces = [cut for piece in pieces for cut in self._cut(cell, piece, inside)]
            parts.extend((cell, share, mask, chances) for share, mask, chances in pieces)
        return parts

    def _cut(
        self, cell: _Cell, piece: tuple[float, int, list[float]], inside: int
    ) -> list[tuple[float, int, list[float]]]:
        share, mask, chances = piece
        lacking = ([c * (1 - cell.if_good) for c in chances], [c * cell.if_good for c in chances])
        if cell.group is None:
            return [(share, mask, [*lacking[0], *lacking[1]])]
        holding = ([c * (1 - cell.if_bad) for c in chances], [c * cell.if_bad for c in chances])
        whole = self._weigh(mask)
        within = self._weigh(mask & inside)
        cuts: list[tuple[float, int, list[float]]] = []
        if within:
            cuts.append((share * within / whole, mask & inside, [*holding[0], *holding[1]]))
        if within < whole:
            cuts.append((share * (1 - within / whole), mask & ~inside, [*lacking[0], *lacking[1]]))
        return cuts

    def _held(self, cell: _Cell, mask: int, points: list[int]) -> list[float] | None:
        """What share of `mask` each point contains; None: rates do not depend on it."""
        return None if cell.group is None else self._shares(mask, points)

    def _shares(self, mask: int, points: Iterable[int]) -> list[float]:
        contains = self.graph.contains
        if len(self._classes) == 1:
            scale = 1 / mask.bit_count()
            return [
                (mask & contains[point]).bit_count() * scale if point >= 0 else 0.0
                for point in points
            ]
        scale = 1 / self._weigh(mask)
        return [
            self._weigh(mask & contains[point]) * scale if point >= 0 else 0.0 for point in points
        ]

    def _weigh(self, mask: int) -> float:
        return sum(weight * (mask & members).bit_count() for members, weight in self._classes)


def cautious(probability: float) -> float:
    """What to state of a probability: its odds, lowered by a quarter.

    The posterior is right on average over the prior; where a broken commit passes half of its runs it is too sure of
    itself, by this much (benchmarks/bisect.md).
    """
    return probability / (probability + _CAUTION * (1 - probability))


def stated(probabilities: Sequence[float]) -> list[float]:
    """The distribution with its highest value made `cautious`, the rest scaled up to fill."""
    highest = max(probabilities)
    if not 0 < highest < 1:
        return list(probabilities)
    at = probabilities.index(highest)
    said = cautious(highest)
    scale = (1 - said) / (1 - highest)
    return [said if place == at else value * scale for place, value in enumerate(probabilities)]


def bits(mask: int) -> Iterable[int]:
    """The positions of the bits that are set, lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _classes(weights: Sequence[float]) -> list[tuple[int, float]]:
    """Commits of equal weight as one mask each; those of weight 0 in none."""
    masks: dict[float, int] = {}
    for at, weight in enumerate(weights):
        if weight > 0:
            masks[weight] = masks.get(weight, 0) | 1 << at
    return [(mask, weight) for weight, mask in masks.items()]


def _pool(rates: list[float], masses: list[float]) -> list[tuple[float, float]]:
    pooled: dict[float, float] = {}
    for rate, mass in zip(rates, masses, strict=True):
        pooled[rate] = pooled.get(rate, 0.0) + mass
    return sorted(pooled.items())


def _dot(one: list[float], other: list[float]) -> float:
    total: float = sum(map(mul, one, other))
    return total


def _divergence(chance: float, other: float) -> float:
    """Kullback-Leibler divergence of one yes or no from another, in bits."""
    other = min(max(other, 1e-9), 1 - 1e-9)
    total = 0.0
    if chance > 1e-12:
        total += chance * math.log2(chance / other)
    if chance < 1 - 1e-12:
        total += (1 - chance) * math.log2((1 - chance) / (1 - other))
    return total


def _bits(chance: float) -> float:
    """The entropy of a yes or no with this chance."""
    if chance <= 1e-12 or chance >= 1 - 1e-12:
        return 0.0
    return -(chance * math.log2(chance) + (1 - chance) * math.log2(1 - chance))
