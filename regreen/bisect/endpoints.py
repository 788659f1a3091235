"""Resolves the revisions that the user gave to a range, and refuses impossible ends with advice."""

from __future__ import annotations

from dataclasses import dataclass

from regreen.domain.errors import UserError
from regreen.domain.ports import Git


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
    ends = _order_ends(_old_end(good, git), newest, find_fix=find_fix, git=git)
    refuse_gaps(ends.good, ends.bad, git)
    return ends


def refuse_gaps(good: str | None, bad: str, git: Git) -> None:
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


def _old_end(good: str, git: Git) -> str:
    try:
        return git.resolve(good)
    except UserError as error:
        if git.shallow_boundary():
            message = f"{error}. {_SHALLOW_MESSAGE}"
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
    return _from_merge_base(oldest, newest, git)


def _from_merge_base(good: str, bad: str, git: Git) -> RangeEnds:
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
