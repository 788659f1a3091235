"""What a change does, in two or three sentences that need no model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from regreen.codebase.diff import FileChange
from regreen.models import Finding
from regreen.reviewers.context import ReviewContext
from regreen.reviewers.scope import Scope, is_test

_LINES_A_MINUTE = 12


def summary(
    context: ReviewContext,
    scope: Scope,
    findings: Sequence[Finding],
    about: str = "",
    *,
    standing: int = 0,
    unread: Collection[str] = (),
) -> str:
    """Say what the change does (`about`, by who read it), how large it is and where, what was read, what came out.

    `standing` counts what was said on an earlier push and still holds; `unread` are paths that somebody could not read.
    """
    files = context.change.files
    if not files:
        return "Nothing changes between base and head."
    added = sum(len(f.added_lines) for f in files)
    removed = sum(len(f.removed_lines) for f in files)
    tests = sum(is_test(f.path) for f in scope.files)
    partly = sum(f.path in unread for f in scope.files)
    minutes = max(1, round(sum(f.changed for f in scope.files) / _LINES_A_MINUTE))
    sentences = [
        *([about.rstrip(". ") + "."] if about else []),
        f"{_count(len(files), 'file')} changed (+{added} -{removed}), {_where(files)}.",
        f"Read {len(scope.files) - partly} of {len(files)}"
        + (f", {partly} only in part" if partly else "")
        + (f", {_count(tests, 'test file')} among them" if tests else "")
        + ("; the change is too large to be read whole" if scope.partial else "")
        + f"; a person would take about {_count(minutes, 'minute')}.",
        _outcome(len(findings), standing),
    ]
    return " ".join(sentences)


def _outcome(new: int, standing: int) -> str:
    if not standing:
        return f"{_count(new, 'finding')}." if new else "No findings."
    found = _count(new, "new finding") if new else "Nothing new"
    return f"{found}; {_count(standing, 'earlier finding')} not mended."


def _where(files: Sequence[FileChange]) -> str:
    folders = Counter(str(PurePosixPath(f.path).parent) for f in files)
    named = [("the root" if name == "." else name) for name, _ in folders.most_common(3)]
    return "in " + ", ".join(named) + (" and elsewhere" if len(folders) > 3 else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
