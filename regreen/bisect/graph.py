"""A stretch of history as a graph: which commits contain which, as one integer of bits a commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from regreen.models import Commit

BEFORE = -1
"""The point before every commit of the range: the good end."""


@dataclass(frozen=True)
class Graph:
    """Commits 0..n-1, parents before children; the last one is the bad end.

    `contains[i]` has bit j set where commit i contains commit j, itself included. `parents[i]` are indexes in
    the range, in git's order, `BEFORE` for a parent outside it.
    """

    shas: tuple[str, ...]
    parents: tuple[tuple[int, ...], ...]
    contains: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.shas)

    def inside(self, point: int) -> int:
        """The commits that `point` contains; none for `BEFORE`."""
        return 0 if point == BEFORE else self.contains[point]

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Where each commit stands."""
        return {sha: at for at, sha in enumerate(self.shas)}

    @cached_property
    def trunk(self) -> tuple[int, ...]:
        """The bad end and its first parents, oldest first."""
        chain: list[int] = []
        at = len(self) - 1
        while at != BEFORE:
            chain.append(at)
            at = self.parents[at][0] if self.parents[at] else BEFORE
        return tuple(reversed(chain))

    @property
    def merges(self) -> int:
        """How many of the commits have more than one parent."""
        return sum(len(parents) > 1 for parents in self.parents)

    def merged_by(self, at: int) -> int | None:
        """The merge on the trunk that brought commit `at` in; None where it is on the trunk itself."""
        for trunk in self.trunk:
            if self.contains[trunk] >> at & 1:
                return None if trunk == at else trunk
        return None


def line(length: int) -> Graph:
    """A history without merges."""
    return Graph(
        tuple(str(at) for at in range(length)),
        tuple((at - 1,) for at in range(length)),
        tuple((1 << (at + 1)) - 1 for at in range(length)),
    )


def graph(commits: Sequence[Commit], *, first_parent: bool = False) -> Graph:
    """The graph of a range as `Git.commits` lists it, parents before children.

    Args:
        commits: the range; the last one is the bad end.
        first_parent: see only the first parent of a merge.
    """
    index = {commit.sha: at for at, commit in enumerate(commits)}
    parents: list[tuple[int, ...]] = []
    contains: list[int] = []
    for at, commit in enumerate(commits):
        seen = commit.parents[:1] if first_parent else commit.parents
        known = tuple(index.get(sha, BEFORE) for sha in seen)
        parents.append(known)
        mask = 1 << at
        for parent in known:
            if parent != BEFORE:
                mask |= contains[parent]
        contains.append(mask)
    return Graph(tuple(commit.sha for commit in commits), tuple(parents), tuple(contains))
