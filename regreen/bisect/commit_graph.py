"""A range of history as a graph: which commits contain which, as one integer bit mask for each commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from regreen.domain.models import Commit

BEFORE_RANGE = -1
"""The point before every commit of the range: the good end."""


@dataclass(frozen=True)
class CommitGraph:
    """Commits 0..n-1, parents before children; the last one is the bad end.

    `contains[i]` has bit j set where commit i contains commit j, itself included. `parents[i]` are indexes in
    the range, in git's order, `BEFORE` for a parent outside it.
    """

    shas: tuple[str, ...]
    parents: tuple[tuple[int, ...], ...]
    contains: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.shas)

    def contained_commits(self, point: int) -> int:
        """The commits that `point` contains; none for `BEFORE`."""
        return 0 if point == BEFORE_RANGE else self.contains[point]

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The index of each commit."""
        return {sha: at for at, sha in enumerate(self.shas)}

    @cached_property
    def trunk(self) -> tuple[int, ...]:
        """The bad end and its first parents, oldest first."""
        chain: list[int] = []
        at = len(self) - 1
        while at != BEFORE_RANGE:
            chain.append(at)
            at = self.parents[at][0] if self.parents[at] else BEFORE_RANGE
        return tuple(reversed(chain))

    @property
    def merges(self) -> int:
        """The number of commits with more than one parent."""
        return sum(len(parents) > 1 for parents in self.parents)

    def merged_by(self, at: int) -> int | None:
        """The merge on the trunk that brought in commit `at`; None if the commit is on the trunk itself."""
        for trunk in self.trunk:
            if self.contains[trunk] >> at & 1:
                return None if trunk == at else trunk
        return None


def linear_graph(length: int) -> CommitGraph:
    """A history without merges."""
    return CommitGraph(
        tuple(str(at) for at in range(length)),
        tuple((at - 1,) for at in range(length)),
        tuple((1 << (at + 1)) - 1 for at in range(length)),
    )


def build_graph(commits: Sequence[Commit], *, first_parent: bool = False) -> CommitGraph:
    """The graph of a range as `Git.commits` lists it, parents before children.

    Args:
        commits: the range; the last one is the bad end.
        first_parent: ignore all parents of a merge but the first.
    """
    index = {commit.sha: at for at, commit in enumerate(commits)}
    parents: list[tuple[int, ...]] = []
    contains: list[int] = []
    for at, commit in enumerate(commits):
        visible = commit.parents[:1] if first_parent else commit.parents
        known = tuple(index.get(sha, BEFORE_RANGE) for sha in visible)
        parents.append(known)
        mask = 1 << at
        for parent in known:
            if parent != BEFORE_RANGE:
                mask |= contains[parent]
        contains.append(mask)
    return CommitGraph(tuple(commit.sha for commit in commits), tuple(parents), tuple(contains))
