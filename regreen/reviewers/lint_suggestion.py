"""Whether the linter has something new to say of a file after a suggestion."""

from __future__ import annotations

from collections import Counter

from regreen.codebase.language import language_of
from regreen.errors import OutsideError
from regreen.reviewers import ruff
from regreen.reviewers.rules import RUFF


def lints(path: str, before: str, after: str) -> bool:
    """Whether a file has nothing new, by the linter's bug rules, after a suggestion; True where it is not linted."""
    if language_of(path) != "python":
        return True
    try:
        old, new = (Counter(h.rule for h in ruff.hits({path: t}, tuple(RUFF))) for t in (before, after))  # fmt: skip
    except OutsideError:
        return False
    return not new - old
