"""From what the user named to a range: revisions resolved, impossible ends refused with what to do instead."""

from __future__ import annotations

from dataclasses import dataclass

from regreen.errors import UserError
from regreen.ports import Git


@dataclass(frozen=True, slots=True)
class Ends:
    """The range to search: `good` is None where no good commit is known; `notes` is what was changed, and why."""

    good: str | None
    bad: str
    notes: tuple[str, ...] = ()


def resolve(good: str | None, bad: str, *, find_fix: bool, git: Git) -> Ends:
    """The ends of the range, `good` an ancestor of `bad`.

    With `find_fix` the older end is the one that fails, whichever name it was given by.

    Raises:
        UserError: the revisions span no range, or this clone does not hold all of it.
    """
    newest = git.resolve(bad)
    if good is None:
        if find_fix:
            raise UserError("--find-fix needs --good and --bad: the fixed end and the broken one")
        return Ends(None, newest)
    ends = _between(_old_end(good, git), newest, find_fix=find_fix, git=git)
    refuse_gaps(ends.good, ends.bad, git)
    return ends


def refuse_gaps(good: str | None, bad: str, git: Git) -> None:
    """Make sure that this clone has all of a range.

    Raises:
        UserError: it is shallow or partial, and something of the range is not here.
    """
    cut = git.cut()
    if cut and any(commit.sha in cut for commit in git.commits(good, bad)):
        raise UserError(_SHALLOW)
    absent = git.absent(good, bad)
    if absent:
        message = (
            f"this clone is partial, and {absent} objects of the range are not in it; fetch them first: "
            "`git config --unset remote.origin.partialclonefilter; git fetch --refetch`"
        )
        raise UserError(message)


_SHALLOW = "this clone is shallow, and its history ends inside the range; run `git fetch --unshallow` first"


def _old_end(good: str, git: Git) -> str:
    try:
        return git.resolve(good)
    except UserError as error:
        if git.cut():
            message = f"{error}. {_SHALLOW}"
            raise UserError(message) from error
        raise


def _between(oldest: str, newest: str, *, find_fix: bool, git: Git) -> Ends:
    if oldest == newest:
        message = (
            f"--good and --bad name the same commit {oldest[:12]}; there is nothing between them"
        )
        raise UserError(message)
    if git.is_ancestor(oldest, newest):
        return Ends(oldest, newest)
    if git.is_ancestor(newest, oldest):
        if find_fix:
            return Ends(newest, oldest)
        message = (
            f"--bad {newest[:12]} is an ancestor of --good {oldest[:12]}; swap them, "
            "or use --find-fix to look for the commit that repaired it"
        )
        raise UserError(message)
    if git.cut():
        raise UserError(_SHALLOW)
    return _from_merge_base(oldest, newest, git)


def _from_merge_base(good: str, bad: str, git: Git) -> Ends:
    base = git.merge_base(good, bad)
    if base is None:
        message = (
            f"{good[:12]} and {bad[:12]} share no history; name a --good that --bad descends from"
        )
        raise UserError(message)
    note = (
        f"{good[:12]} is not an ancestor of {bad[:12]}; searching from their merge base {base[:12]}"
    )
    return Ends(base, bad, (note,))


def refuse_lacking(lacking: tuple[str, ...], seen: str) -> None:
    """Where an end is not as it should be and files are missing, they are the likely reason.

    Raises:
        UserError: something is missing.
    """
    if lacking:
        message = f"{seen}, and part of the tree is missing: {'; '.join(lacking)}"
        raise UserError(message)
