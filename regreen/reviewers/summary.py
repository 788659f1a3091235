"""Describes a change and the result of its review without a model: the result first, then what was read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

from regreen.code.diff import FileChange
from regreen.code.markdown_sanitizer import count_noun
from regreen.code.paths import is_test
from regreen.domain.models import Finding, ReviewTestRun, Severity, UnreadFile
from regreen.reviewers.context import ReviewContext
from regreen.reviewers.scope import ReviewScope

_LINES_A_MINUTE = 12
_SEVERITIES: tuple[Severity, ...] = ("critical", "high", "medium", "low")


def summarise_change(
    context: ReviewContext,
    scope: ReviewScope,
    findings: Sequence[Finding],
    about: str = "",
    *,
    standing: int = 0,
    not_read: Sequence[UnreadFile] = (),
    tests: ReviewTestRun | None = None,
) -> str:
    """Two paragraphs: the result with `about` (what the change does, by a model), then what was read of it.

    `standing` counts findings that were posted earlier and still hold; `not_read` are files with a reason.
    """
    files = context.change.files
    if not files:
        return "Nothing changes between base and head."
    sentences = [describe_result(findings, standing, tests)]
    sentences += [about.rstrip(". ") + "."] if about else []
    return " ".join(sentences) + "\n\n" + _describe_reading(files, scope, not_read)


def describe_result(findings: Sequence[Finding], standing: int, tests: ReviewTestRun | None) -> str:
    """The failing tests, then the number of findings and the worst of them."""
    sentences = []
    if tests is not None and not tests.passed:
        sentences.append(f"The tests fail{_name_failures(tests)}.")
    if findings:
        worst = find_worst(findings)
        number = count_noun(len(findings), "new finding" if standing else "finding")
        which = "" if len(findings) == 1 else "the worst is "
        sentences.append(f"{number}: {which}{worst.severity}, {worst.title.rstrip('.')}.")
    else:
        sentences.append("No new findings." if standing else "No findings.")
    if standing:
        is_open = "is" if standing == 1 else "are"
        sentences.append(f"{count_noun(standing, 'earlier finding')} {is_open} still open.")
    return " ".join(sentences)


def find_worst(findings: Sequence[Finding]) -> Finding:
    """The most severe finding; of several, the surest."""
    return min(findings, key=lambda f: (_SEVERITIES.index(f.severity), -f.confidence))


def _name_failures(tests: ReviewTestRun) -> str:
    named = list(dict.fromkeys(f.test for f in tests.failures if f.test))
    if not named:
        return f" (exit {tests.exit_code})"
    more = f" and {len(named) - 3} more" if len(named) > 3 else ""
    return f" ({count_noun(len(named), 'test')}: {', '.join(named[:3])}{more})"


def _describe_reading(
    files: Sequence[FileChange], scope: ReviewScope, not_read: Sequence[UnreadFile]
) -> str:
    """How much of the change was read, its size and place, and how long reading it takes."""
    excluded = sum(u.by_policy for u in not_read)
    unread = {u.path for u in not_read if not u.by_policy}
    partly = sum(f.path in unread for f in scope.files)
    tests = sum(is_test(f.path) for f in scope.files)
    added = sum(len(f.added_lines) for f in files)
    removed = sum(len(f.removed_lines) for f in files)
    minutes = max(1, round(sum(f.changed_line_count for f in scope.files) / _LINES_A_MINUTE))
    notes = [count_noun(tests, "test file")] if tests else []
    notes += [f"{partly} only in part"] if partly else []
    notes += ["the change is too large to be read whole"] if scope.partial else []
    reviewed = (
        f"Reviewed {len(scope.files) - partly} of {count_noun(len(files) - excluded, 'file')}"
    )
    return (
        reviewed
        + (f" ({', '.join(notes)})" if notes else "")
        + (f"; {excluded} left out by policy" if excluded else "")
        + f". +{added} -{removed} {_describe_folders(files)}. "
        + f"Estimated time to review by hand: {minutes} min."
    )


def _describe_folders(files: Sequence[FileChange]) -> str:
    folders = Counter(str(PurePosixPath(f.path).parent) for f in files)
    named = [("the root" if name == "." else name) for name, _ in folders.most_common(3)]
    return "in " + ", ".join(named) + (" and elsewhere" if len(folders) > 3 else "")
