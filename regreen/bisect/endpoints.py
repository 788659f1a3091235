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
        UserError: the revisions span no range.
    """
    if git.is_shallow():
        message = "this clone is shallow, so the range cannot be trusted; run `git fetch --unshallow` first"
        raise UserError(message)
    newest = git.resolve(bad)
    if good is None:
        if find_fix:
            raise UserError("--find-fix needs --good and --bad: the fixed end and the broken one")
        return Ends(None, newest)
    oldest = git.resolve(good)
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
