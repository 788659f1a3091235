"""A range of history as a graph: which commits contain which, as one integer bit mask for each commit;
and where a search in it begins and ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from regreen.domain.errors import UserError
from regreen.domain.models import Commit
from regreen.domain.ports import Git

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


@dataclass(frozen=True, slots=True)
class RangeEnds:
    """The range to search: `good` is None if no good commit is known; `notes` say what was changed, and why."""

    good: str | None
    bad: str
    notes: tuple[str, ...] = ()


def resolve_range(good: str | None, bad: str, *, find_fix: bool, git: Git) -> RangeEnds:
    """The ends of the range, `good` an ancestor of `bad`.

    With `find_fix` the older end is the failing one, whatever its option name.

    Raises:
        UserError: the revisions span no range, or this clone does not hold the whole range.
    """
    newest = git.resolve(bad)
    if good is None:
        if find_fix:
            raise UserError("--find-fix needs --good and --bad: the fixed end and the broken one")
        if not git.commit(newest).parents or newest in git.shallow_boundary():
            raise UserError(_SHALLOW_MESSAGE if git.is_shallow() else _ONE_COMMIT_MESSAGE)
        return RangeEnds(None, newest)
    ends = _order_ends(_resolve_old_end(good, git), newest, find_fix=find_fix, git=git)
    refuse_incomplete_clone(ends.good, ends.bad, git)
    return ends


def refuse_incomplete_clone(good: str | None, bad: str, git: Git) -> None:
    """Check that this clone has all of a range.

    Raises:
        UserError: it is shallow or partial, and part of the range is missing.
    """
    cut = git.shallow_boundary()
    if cut and any(commit.sha in cut for commit in git.commits(good, bad)):
        raise UserError(_SHALLOW_MESSAGE)
    absent = git.count_missing_objects(good, bad)
    if absent:
        message = (
            f"this clone is partial, and {absent} objects of the range are not in it; fetch them first: "
            "`git config --unset remote.origin.partialclonefilter; git fetch --refetch`"
        )
        raise UserError(message)


_ONE_COMMIT_MESSAGE = "the history has one commit, so no commit in it can have broken anything; there is nothing to bisect"
_SHALLOW_MESSAGE = "this clone is shallow, and its history ends inside the range; run `git fetch --unshallow` first"


def _resolve_old_end(good: str, git: Git) -> str:
    try:
        return git.resolve(good)
    except UserError as error:
        if git.shallow_boundary():
            message = f"{error}; {_SHALLOW_MESSAGE}"
            raise UserError(message) from error
        raise


def _order_ends(oldest: str, newest: str, *, find_fix: bool, git: Git) -> RangeEnds:
    if oldest == newest:
        message = (
            f"--good and --bad name the same commit {oldest[:12]}; there is nothing between them"
        )
        raise UserError(message)
    if git.is_ancestor(oldest, newest):
        return RangeEnds(oldest, newest)
    if git.is_ancestor(newest, oldest):
        if find_fix:
            return RangeEnds(newest, oldest)
        message = (
            f"--bad {newest[:12]} is an ancestor of --good {oldest[:12]}; swap them, "
            "or use --find-fix to look for the commit that repaired it"
        )
        raise UserError(message)
    if git.shallow_boundary():
        raise UserError(_SHALLOW_MESSAGE)
    return _start_at_merge_base(oldest, newest, git)


def _start_at_merge_base(good: str, bad: str, git: Git) -> RangeEnds:
    base = git.merge_base(good, bad)
    if base is None:
        message = (
            f"{good[:12]} and {bad[:12]} share no history; name a --good that --bad descends from"
        )
        raise UserError(message)
    note = (
        f"{good[:12]} is not an ancestor of {bad[:12]}; searching from their merge base {base[:12]}"
    )
    return RangeEnds(base, bad, (note,))


def refuse_missing_content(lacking: tuple[str, ...], symptom: str) -> None:
    """Refuse an unexpected result at an end if files are missing, which are the likely reason.

    Raises:
        UserError: files are missing.
    """
    if lacking:
        message = f"{symptom}, and part of the tree is missing: {'; '.join(lacking)}"
        raise UserError(message)
