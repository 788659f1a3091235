"""Which files of a change are read, in which order, and why the others are not."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from regreen.code.diff import Change, FileChange
from regreen.code.file_languages import is_prose, language_of
from regreen.code.paths import (
    describe_sensitivity,
    is_generated,
    is_lock_file,
    is_test,
    is_vendored,
)
from regreen.domain.models import Finding, Risk, Severity, UnreadFile

MAX_FILE_BYTES = 1024 * 1024
"""Files above this many bytes are not read whole by any reviewer."""
_MAX_FILES = 3000  # GitHub shows no more of a pull request
_MAX_LINES = 100_000
_MAX_BYTES = 64 * 1024 * 1024
_MODEL_FILES = 60
_MODEL_LINES = 3000
UNREADABLE_REASON = "larger than 1 MiB, or no text"
_UNCHANGED = ("renamed without a change", "copied without a change", "mode changed only", "empty")
_POLICY_REASONS = frozenset(
    {
        "binary",
        "ignored by the configuration",
        "vendored",
        "lock file",
        "generated",
        "prose",
        *_UNCHANGED,
    }
)
"""Why a file is left out of every review; any other reason is a gap in this one."""
_DRAWN_SUFFIXES = (".svg", ".ipynb")  # text that is not meant to be read
_RISK_BY_SEVERITY: dict[Severity, Risk] = {
    "critical": "high",
    "high": "high",
    "medium": "medium",
    "low": "low",
}


@dataclass(frozen=True, slots=True)
class ReviewScope:
    """The files to read, riskiest first, and those left out. `partial` if size alone left some out."""

    files: tuple[FileChange, ...]
    unread: tuple[UnreadFile, ...]
    partial: bool


def select_files(
    change: Change,
    *,
    ignore: Sequence[str] = (),
    text_of: Callable[[str], str | None] = lambda _path: None,
    sizes: Mapping[str, int] = MappingProxyType({}),
) -> ReviewScope:
    """Select what to read: no binary, generated, vendored, lock or prose file, and no more than GitHub shows.

    `text_of` returns a file's new text, for the marks of generators. `sizes` are bytes by path;
    a file too large for any reviewer takes nothing of the limits: one huge file must not displace others.
    """
    patterns = [compile_glob(p) for p in ignore]
    wanted: list[FileChange] = []
    unread: list[UnreadFile] = []
    for file in change.files:
        reason = _exclusion_reason(file, patterns, text_of)
        if reason is None and sizes.get(file.path, 0) > MAX_FILE_BYTES:
            reason = UNREADABLE_REASON
        if reason:
            by_policy = reason in _POLICY_REASONS and not (file.binary and language_of(file.path))
            unread.append(UnreadFile(file.path, reason, by_policy))
        else:
            wanted.append(file)
    limits = (_MAX_FILES, _MAX_LINES, _MAX_BYTES)
    selected, rest = _select_within_limits(
        wanted, limits, lambda f: (1, f.changed_line_count, sizes.get(f.path, 0))
    )
    reason = f"the change is huge: its riskiest {_MAX_FILES:,} files, {_MAX_LINES:,} lines or {_MAX_BYTES >> 20} MiB were read"
    unread += [UnreadFile(f.path, reason) for f in rest]
    return ReviewScope(selected, tuple(unread), partial=bool(rest))


def select_riskiest(
    files: Sequence[FileChange],
) -> tuple[tuple[FileChange, ...], tuple[UnreadFile, ...]]:
    """The files that are worth a model's tokens, riskiest first, and the rest with the reason."""
    limits = (_MODEL_FILES, _MODEL_LINES)
    selected, rest = _select_within_limits(files, limits, lambda f: (1, f.changed_line_count))
    reason = f"the change is large: the analyzers read this file, a model only the {_MODEL_FILES} riskiest or {_MODEL_LINES:,} lines"
    return selected, tuple(UnreadFile(f.path, reason) for f in rest)


def rank_risk_of_file(file: FileChange) -> int:
    """How much a reviewer should care, higher first: the kind of file before its size."""
    value = 10 if describe_sensitivity(file.path) else 0
    if is_test(file.path):
        value -= 8
    elif language_of(file.path) in {None, "prose"}:
        value -= 4
    if file.status == "deleted":
        value -= 2
    return value + min(6, file.changed_line_count // 40)


def rate_risk_of_change(files: Sequence[FileChange], findings: Sequence[Finding] = ()) -> Risk:
    """Low, medium or high, by what is touched and how much of it, and never below the worst finding."""
    by_size = _risk_by_size(files)
    worst = {by_size, *(_RISK_BY_SEVERITY[finding.severity] for finding in findings)}
    return next(risk for risk in ("high", "medium", "low") if risk in worst)


def _risk_by_size(files: Sequence[FileChange]) -> Risk:
    code = [f for f in files if not is_test(f.path) and language_of(f.path) not in {None, "prose"}]
    lines = sum(f.changed_line_count for f in code)
    sensitive = [f.changed_line_count for f in code if describe_sensitivity(f.path)]
    if lines > 400 or any(count > 20 for count in sensitive):
        return "high"
    if lines > 60 or len(code) > 8 or sensitive:
        return "medium"
    return "low"


def compile_glob(pattern: str) -> re.Pattern[str]:
    """A path pattern as .gitignore writes it: `*` within a folder, `**` across, `name/` all below it."""
    pattern = pattern.removeprefix("./")
    if pattern.endswith("/"):
        pattern += "**"
    anywhere = "/" not in pattern
    out, at = [], 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            out.append(r"(?:.*/)?")
            at += 3
        elif pattern.startswith("**", at):
            out.append(r".*")
            at += len(pattern[at:]) - len(pattern[at:].lstrip("*"))
        elif pattern[at] == "*":
            out.append(r"[^/]*")
            at += 1
        else:
            out.append(r"[^/]" if pattern[at] == "?" else re.escape(pattern[at]))
            at += 1
    return re.compile((r"(?:.*/)?" if anywhere else "") + "".join(out), re.DOTALL)


def _select_within_limits(
    files: Sequence[FileChange],
    limits: Sequence[int],
    takes: Callable[[FileChange], Sequence[int]],
) -> tuple[tuple[FileChange, ...], list[FileChange]]:
    """The riskiest files that together stay within the limits, and the others. At least one is kept."""
    selected: list[FileChange] = []
    rest: list[FileChange] = []
    left = list(limits)
    for file in sorted(files, key=_sort_key):
        after = [a - b for a, b in zip(left, takes(file), strict=True)]
        if min(after) >= 0 or not selected:
            selected.append(file)
            left = after
        else:
            rest.append(file)
    return tuple(selected), rest


def _sort_key(file: FileChange) -> tuple[int, str]:
    return (-rank_risk_of_file(file), file.path)


def _exclusion_reason(
    file: FileChange, ignore: Sequence[re.Pattern[str]], text_of: Callable[[str], str | None]
) -> str | None:
    """The first reason not to read a file; the cheap ones come first."""
    reasons: tuple[tuple[str, Callable[[], bool]], ...] = (
        ("binary", lambda: file.binary),
        ("submodule: another repository's commit", lambda: file.is_submodule),
        ("symbolic link", lambda: file.is_symlink),
        ("ignored by the configuration", lambda: any(p.fullmatch(file.path) for p in ignore)),
        ("vendored", lambda: is_vendored(file.path)),
        ("lock file", lambda: is_lock_file(file.path)),
        ("generated", lambda: is_generated(file.path) or file.path.endswith(_DRAWN_SUFFIXES)),
        ("prose", lambda: is_prose(file.path)),
        # only for files that would otherwise be read: a large lock file is no gap in the review
        (f"could not be read: {file.problem}", lambda: file.problem is not None),
        (_unchanged_reason(file), lambda: not file.hunks),
        ("minified", lambda: _is_minified(file)),
        ("generated", lambda: file.status != "deleted" and _is_marked_generated(file, text_of)),
    )
    return next((reason for reason, holds in reasons if holds()), None)


def _unchanged_reason(file: FileChange) -> str:
    if file.status in {"renamed", "copied"}:
        return f"{file.status} without a change"
    return "mode changed only" if file.status == "modified" else "empty"


def _is_minified(file: FileChange) -> bool:
    longest = max((len(x.text) for h in file.hunks for x in h.lines if x.kind == "+"), default=0)
    return longest > 5000


def _is_marked_generated(file: FileChange, text_of: Callable[[str], str | None]) -> bool:
    first = file.hunks[0]
    if first.new_start <= 1:
        return is_generated(file.path, "\n".join(x.text for x in first.lines if x.kind != "-"))
    return is_generated(file.path, text_of(file.path))
