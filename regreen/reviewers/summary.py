"""Describes a change in two or three sentences without a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from regreen.code.diff import FileChange
from regreen.code.paths import is_test
from regreen.domain.models import Finding
from regreen.reviewers.context import ReviewContext
from regreen.reviewers.scope import ReviewScope

_LINES_A_MINUTE = 12


def summarise_change(
    context: ReviewContext,
    scope: ReviewScope,
    findings: Sequence[Finding],
    about: str = "",
    *,
    standing: int = 0,
    unread: Collection[str] = (),
) -> str:
    """Describe the change (`about`, by reader), its size and place, what was read, and the result.

    `standing` counts findings that were posted earlier and still hold; `unread` are unreadable paths.
    """
    files = context.change.files
    if not files:
        return "Nothing changes between base and head."
    added = sum(len(f.added_lines) for f in files)
    removed = sum(len(f.removed_lines) for f in files)
    tests = sum(is_test(f.path) for f in scope.files)
    partly = sum(f.path in unread for f in scope.files)
    minutes = max(1, round(sum(f.changed_line_count for f in scope.files) / _LINES_A_MINUTE))
    sentences = [
        *([about.rstrip(". ") + "."] if about else []),
        f"{_count_noun(len(files), 'file')} changed (+{added} -{removed}), {_describe_folders(files)}.",
        f"Read {len(scope.files) - partly} of {len(files)}"
        + (f", {partly} only in part" if partly else "")
        + (f", {_count_noun(tests, 'test file')} among them" if tests else "")
        + ("; the change is too large to be read whole" if scope.partial else "")
        + f"; a person would take about {_count_noun(minutes, 'minute')}.",
        _describe_outcome(len(findings), standing),
    ]
    return " ".join(sentences)


def _describe_outcome(new: int, standing: int) -> str:
    if not standing:
        return f"{_count_noun(new, 'finding')}." if new else "No findings."
    news = _count_noun(new, "new finding") if new else "Nothing new"
    return f"{news}; {_count_noun(standing, 'earlier finding')} not mended."


def _describe_folders(files: Sequence[FileChange]) -> str:
    folders = Counter(str(PurePosixPath(f.path).parent) for f in files)
    named = [("the root" if name == "." else name) for name, _ in folders.most_common(3)]
    return "in " + ", ".join(named) + (" and elsewhere" if len(folders) > 3 else "")


def _count_noun(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
