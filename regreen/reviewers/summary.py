"""Describes a change and the result of its review without a model: the result first, then what was read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from regreen.code.diff import FileChange
from regreen.code.paths import is_test
from regreen.code.symbols import read_outline
from regreen.domain.models import (
    CoverageReport,
    Finding,
    Review,
    ReviewTestRun,
    Severity,
    SkippedReviewer,
    UnreadFile,
    WalkthroughStep,
    WithheldFinding,
    WithheldReason,
)
from regreen.reviewers.context import ReviewContext
from regreen.reviewers.scope import ReviewScope
from regreen.secrets.markdown_sanitizer import count_noun

WITHHELD_WORDS: dict[WithheldReason, str] = {
    "confidence": "not sure enough",
    "budget": "over the limit of comments",
    "duplicate": "posted before",
    "dismissed": "dismissed",
    "outside_diff": "not on a line of the diff",
}
_LINES_A_MINUTE = 12
_MAX_WALKTHROUGH_FILES = 30
_MAX_DESCRIBED_FILES = 3
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
    withheld: Sequence[WithheldFinding] = (),
    skipped: Sequence[SkippedReviewer] = (),
) -> str:
    """Paragraphs: the result, `about` (what the change does) if there is one, then what was read of it.

    `standing` counts findings that were posted earlier and still hold; `not_read` are files with a reason.
    """
    files = context.change.files
    if not files:
        return "Nothing changes between base and head."
    paragraphs = [describe_result(findings, standing, tests, withheld, skipped)]
    # the paragraphs of the summary are told apart by their place
    paragraphs += [" ".join(about.split()).rstrip(". ") + "."] if about.strip() else []
    return "\n\n".join([*paragraphs, _describe_reading(files, scope, not_read)])


def walk_through(context: ReviewContext) -> tuple[WalkthroughStep, ...]:
    """For each file that is read, riskiest first: the definitions that the change adds, changes and removes."""
    return tuple(
        WalkthroughStep(
            file.path,
            _describe_file(context, file),
            len(file.added_lines),
            len(file.removed_lines),
        )
        for file in context.files[:_MAX_WALKTHROUGH_FILES]
    )


def describe_definitions(steps: Sequence[WalkthroughStep], file_count: int) -> str:
    """What a change does to the definitions of its first files, for where no model says what it does."""
    told = []
    for step in steps:
        what = step.text.removesuffix(f"+{step.added} -{step.removed}").rstrip("; ,")
        told += [f"`{step.path.replace('`', '')}` ({what})"] if what else []
    shown = told[:_MAX_DESCRIBED_FILES]
    left = file_count - len(shown)
    more = f" and {count_noun(left, 'more file')}" if left else ""
    return f"What changes: {', '.join(shown)}{more}." if shown else ""


def _describe_file(context: ReviewContext, file: FileChange) -> str:
    size = f"+{len(file.added_lines)} -{len(file.removed_lines)}"
    moved = f"{file.status} from {file.old_path}, " if file.status in {"renamed", "copied"} else ""
    before = _read_spans(file.old_path, context.base_text(file.old_path))
    after = _read_spans(file.path, context.head_text(file.path))
    removed = set(file.removed_lines)
    touched = {
        name: not removed.isdisjoint(before.get(name, ()))
        or not set(file.added_lines).isdisjoint(span)
        for name, span in after.items()
    }
    parts = {
        "adds": [n for n in after if n not in before],
        "changes": [n for n, is_touched in touched.items() if is_touched and n in before],
        "removes": [n for n in before if n not in after],
    }
    changes = [f"{verb} {_name_some(names)}" for verb, names in parts.items() if names]
    status = [file.status] if file.status in {"added", "deleted"} else []
    return moved + "; ".join([*status, *changes, size])


def _read_spans(path: str, text: str | None) -> dict[str, range]:
    """The functions and methods of a file, with their lines."""
    found = read_outline(path, text.encode("utf-8", "surrogateescape")).definitions if text else ()
    return {d.name: range(d.start, d.end + 1) for d in found if d.kind in {"function", "method"}}


def _name_some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(f"`{name}`" for name in names[:4]) + more


def describe_result(
    findings: Sequence[Finding],
    standing: int,
    tests: ReviewTestRun | None,
    withheld: Sequence[WithheldFinding] = (),
    skipped: Sequence[SkippedReviewer] = (),
) -> str:
    """The failing tests, then the number of findings and the worst of them."""
    sentences = []
    if tests is not None and not tests.passed:
        without = ", without the change too" if tests.fails_without_change else ""
        sentences.append(f"The tests fail{without}{_name_failures(tests)}.")
    if findings:
        worst = find_worst(findings)
        number = count_noun(len(findings), "new finding" if standing else "finding")
        which = "" if len(findings) == 1 else "the worst is "
        sentences.append(f"{number}: {which}{worst.severity}, {_end_sentence(worst.title)}")
        if standing:
            is_open = "is" if standing == 1 else "are"
            sentences.append(f"{count_noun(standing, 'earlier finding')} {is_open} still open.")
    else:
        sentences.append(f"{describe_open(standing, withheld, skipped)}.")
    return " ".join(sentences)


def _end_sentence(text: str) -> str:
    return text if text.endswith(("?", "!", ".")) else f"{text}."


def describe_open(
    standing: int,
    withheld: Sequence[WithheldFinding] = (),
    skipped: Sequence[SkippedReviewer] = (),
) -> str:
    """The result of a review that found nothing new.

    It gives the number of earlier findings that still hold; without any, the grave ones that are not sure enough, and
    what was not done.
    """
    if standing:
        return f"No new findings; {count_noun(standing, 'earlier one')} still open"
    held = describe_grave_doubts(withheld)
    held = f" posted; {held}" if held else ""
    not_done = ["no model"] if any(s.reviewer == "model" and s.by_policy for s in skipped) else []
    not_done += ["tests not run"] if any(s.tests_not_run for s in skipped) else []
    return f"No findings{held}" + (f" ({'; '.join(not_done)})" if not_done else "")


def describe_grave_doubts(withheld: Sequence[WithheldFinding]) -> str:
    """How many critical and high findings are withheld because they are not sure enough; "" where none is."""
    counts = Counter(f.severity for f in list_unsure(withheld) if not _is_ruled_out(f))
    grave = [f"{counts[s]} {s}" for s in _SEVERITIES[:2] if counts[s]]
    return f"{', '.join(grave)} withheld as {WITHHELD_WORDS['confidence']}" if grave else ""


def list_unsure(withheld: Iterable[WithheldFinding]) -> list[Finding]:
    """The findings that are withheld because they are not sure enough."""
    return [one.finding for one in withheld if one.reason == "confidence"]


def _is_ruled_out(finding: Finding) -> bool:
    """Whether a model's finding was refuted, or is not of this change."""
    signals = finding.signals
    ruled_out = {"refuted", "as_before"}
    return signals is not None and (signals.proof == "disproven" or signals.verdict in ruled_out)


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
        + (f"; {excluded} more need no review" if excluded else "")
        + f". +{added} -{removed} {_describe_folders(files)}. "
        + f"Estimated time to review by hand: {minutes} min."
    )


def _describe_folders(files: Sequence[FileChange]) -> str:
    folders = Counter(str(PurePosixPath(f.path).parent) for f in files)
    named = [("the root" if name == "." else name) for name, _ in folders.most_common(3)]
    return "in " + ", ".join(named) + (" and elsewhere" if len(folders) > 3 else "")


def describe_coverage(report: CoverageReport, tests: ReviewTestRun | None) -> str:
    """How much of the new lines the tests run, and how many of these fail; never rounded up to all lines."""
    share = 100 * report.covered // report.new_lines if report.new_lines else 100
    by = ""
    if tests is not None and not tests.passed:
        count = tests.failing_count
        by = f", by tests of which {count} fail{'s' if count == 1 else ''}" if count else ""
        by = by or ", by tests that fail"
    return f"Test coverage of new lines: {share}% ({report.covered} of {report.new_lines}){by}."


def describe_on_base(test: str, fail_on_base: Collection[str], others: Mapping[str, str]) -> str:
    """What is known of a failing test at the merge base, to follow its name; "" where nothing was recorded."""
    if test in fail_on_base:
        return "; fails at the merge base too"
    return f"; {others[test]} at the merge base" if test in others else ""


def list_unreviewed(review: Review) -> list[tuple[str, str]]:
    """What was not read or run, with the reason: first what should have been, then what the policy leaves out."""
    entries = [(u.path, u.reason, u.by_policy) for u in review.not_reviewed]
    entries += [(s.reviewer, s.reason, s.by_policy) for s in review.skipped]
    return [
        (name, f"{reason}; not required" if by_policy else reason)
        for name, reason, by_policy in sorted(entries, key=lambda entry: entry[2])
    ]


def list_over_budget(withheld: Iterable[WithheldFinding]) -> tuple[Finding, ...]:
    """The findings beyond the limit of comments on lines: the first have threads on their files."""
    return tuple(one.finding for one in withheld if one.reason == "budget")


def list_all_findings(review: Review) -> tuple[Finding, ...]:
    """What a review counts and lists: the findings on lines, then those over the budget."""
    return (*review.findings, *list_over_budget(review.withheld))
