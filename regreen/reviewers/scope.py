"""Which files of a change are read, in which order, and why the others are not."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType

from regreen.codebase.diff import Change, FileChange
from regreen.codebase.language import PROSE, language_of
from regreen.models import Finding, Risk, Severity, Unread

LARGEST_FILE = 1024 * 1024
"""Files above this many bytes are not read whole by any reviewer."""
_MOST_FILES = 3000  # GitHub shows no more of a pull request
_MOST_LINES = 100_000
_MOST_BYTES = 64 * 1024 * 1024
_MODEL_FILES = 60
_MODEL_LINES = 3000
UNREADABLE = "larger than 1 MiB, or no text"
_RISKS: dict[Severity, Risk] = {
    "critical": "high",
    "high": "high",
    "medium": "medium",
    "low": "low",
}


@dataclass(frozen=True, slots=True)
class Scope:
    """The files to read, riskiest first, and those left out. `partial` when size alone left some out."""

    files: tuple[FileChange, ...]
    unread: tuple[Unread, ...]
    partial: bool


def select(
    change: Change,
    *,
    ignore: Sequence[str] = (),
    text_of: Callable[[str], str | None] = lambda _path: None,
    sizes: Mapping[str, int] = MappingProxyType({}),
) -> Scope:
    """Choose what to read: no binary, generated, vendored, lock or prose file, and no more than GitHub shows.

    `text_of` gives a file's text afterwards, for the marks that generators leave in it. `sizes` are bytes by path;
    a file too large for anybody takes nothing of the limits: one huge file must not keep the others from being read.
    """
    patterns = [compile_glob(p) for p in ignore]
    wanted: list[FileChange] = []
    unread: list[Unread] = []
    for file in change.files:
        reason = _why_not(file, patterns, text_of)
        if reason is None and sizes.get(file.path, 0) > LARGEST_FILE:
            reason = UNREADABLE
        if reason:
            unread.append(Unread(file.path, reason))
        else:
            wanted.append(file)
    limits = (_MOST_FILES, _MOST_LINES, _MOST_BYTES)
    kept, rest = _within(wanted, limits, lambda f: (1, f.changed, sizes.get(f.path, 0)))
    reason = f"the change is huge: its riskiest {_MOST_FILES:,} files, {_MOST_LINES:,} lines or {_MOST_BYTES >> 20} MiB were read"
    unread += [Unread(f.path, reason) for f in rest]
    return Scope(kept, tuple(unread), partial=bool(rest))


def riskiest(files: Sequence[FileChange]) -> tuple[tuple[FileChange, ...], tuple[Unread, ...]]:
    """The part of these files that is worth a model's tokens, riskiest first, and the rest with why."""
    limits = (_MODEL_FILES, _MODEL_LINES)
    kept, rest = _within(files, limits, lambda f: (1, f.changed))
    reason = f"the change is large: the analyzers read this file, a model only the {_MODEL_FILES} riskiest or {_MODEL_LINES:,} lines"
    return kept, tuple(Unread(f.path, reason) for f in rest)


def risk_of_file(file: FileChange) -> int:
    """How much a reader should care, higher first: what it is before how large it is."""
    path = file.path.lower()
    value = 10 if _SENSITIVE.search(path) else 0
    if is_test(file.path):
        value -= 8
    elif language_of(file.path) in {None, *PROSE}:
        value -= 4
    if file.status == "deleted":
        value -= 2
    return value + min(6, file.changed // 40)


def risk_of(files: Sequence[FileChange], findings: Sequence[Finding] = ()) -> Risk:
    """Low, medium or high: from what is touched and how much of it, and never below the worst finding."""
    by_size = _risk_by_size(files)
    worst = {by_size, *(_RISKS[finding.severity] for finding in findings)}
    return next(risk for risk in ("high", "medium", "low") if risk in worst)


def _risk_by_size(files: Sequence[FileChange]) -> Risk:
    code = [f for f in files if not is_test(f.path) and language_of(f.path) not in {None, *PROSE}]
    lines = sum(f.changed for f in code)
    if lines > 400 or any(_SENSITIVE.search(f.path.lower()) and f.changed > 20 for f in code):
        return "high"
    if lines > 60 or len(code) > 8 or any(_SENSITIVE.search(f.path.lower()) for f in code):
        return "medium"
    return "low"


def is_test(path: str) -> bool:
    """Whether a path belongs to the tests, by the usual names."""
    return _TEST.search(path) is not None


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


def _within(
    files: Sequence[FileChange],
    limits: Sequence[int],
    takes: Callable[[FileChange], Sequence[int]],
) -> tuple[tuple[FileChange, ...], list[FileChange]]:
    """The riskiest files that together stay within the limits, and the others. One file is always kept."""
    kept: list[FileChange] = []
    rest: list[FileChange] = []
    left = list(limits)
    for file in sorted(files, key=_order):
        after = [a - b for a, b in zip(left, takes(file), strict=True)]
        if min(after) >= 0 or not kept:
            kept.append(file)
            left = after
        else:
            rest.append(file)
    return tuple(kept), rest


def _order(file: FileChange) -> tuple[int, str]:
    return (-risk_of_file(file), file.path)


def _why_not(
    file: FileChange, ignore: Sequence[re.Pattern[str]], text_of: Callable[[str], str | None]
) -> str | None:
    """The first reason not to read a file; the cheap ones come first."""
    reasons: tuple[tuple[str, Callable[[], bool]], ...] = (
        (f"could not be read: {file.problem}", lambda: file.problem is not None),
        ("binary", lambda: file.binary),
        ("submodule: another repository's commit", lambda: file.submodule),
        ("symbolic link", lambda: file.symlink),
        ("ignored by the configuration", lambda: any(p.fullmatch(file.path) for p in ignore)),
        ("vendored", lambda: _VENDORED.search(file.path) is not None),
        ("lock file", lambda: _is_lock(file.path)),
        ("generated", lambda: _GENERATED_NAME.search(file.path) is not None),
        (_unchanged(file), lambda: not file.hunks),
        ("prose", lambda: language_of(file.path) in PROSE),
        ("minified", lambda: _is_minified(file)),
        ("generated", lambda: file.status != "deleted" and _says_generated(file, text_of)),
    )
    return next((reason for reason, holds in reasons if holds()), None)


def _is_lock(path: str) -> bool:
    name = PurePosixPath(path).name
    return name in _LOCKS or name.endswith(".lock")


def _unchanged(file: FileChange) -> str:
    if file.status in {"renamed", "copied"}:
        return f"{file.status} without a change"
    return "mode changed only" if file.status == "modified" else "empty"


def _is_minified(file: FileChange) -> bool:
    longest = max((len(x.text) for h in file.hunks for x in h.lines if x.kind == "+"), default=0)
    return longest > 5000


def _says_generated(file: FileChange, text_of: Callable[[str], str | None]) -> bool:
    """Look for a generator's mark in the first lines, where every generator that has one puts it."""
    first = file.hunks[0]
    if first.new_start <= 1:
        top = "\n".join(x.text for x in first.lines[:12] if x.kind != "-")
    else:
        top = "\n".join((text_of(file.path) or "")[:4000].split("\n")[:12])
    return _GENERATED_MARK.search(top[:4000]) is not None


_LOCKS = frozenset(
    """package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lockb bun.lock Pipfile.lock poetry.lock
    pdm.lock uv.lock Cargo.lock go.sum composer.lock Gemfile.lock mix.lock flake.lock packages.lock.json
    pubspec.lock Podfile.lock gradle.lockfile conda-lock.yml .terraform.lock.hcl requirements.lock""".split()  # noqa: SIM905 - reads better without quotes
)
_VENDORED = re.compile(
    r"(?:^|/)(?:vendor|vendored|_vendor|third_party|thirdparty|node_modules|bower_components|site-packages"
    r"|\.venv|Pods)/"
)
_GENERATED_NAME = re.compile(
    r"(?:^|/)(?:dist|__snapshots__|__generated__)/"
    r"|(?:\.min\.(?:js|css)|\.map|\.snap|_pb2(?:_grpc)?\.pyi?|\.pb\.(?:go|cc|h)|\.pb\.gw\.go|\.g\.dart"
    r"|\.designer\.cs|_generated\.go|\.generated\.\w+|\.svg|\.ipynb|zz_generated\.\w+\.go)$"
)
_GENERATED_MARK = re.compile(
    r"@generated\b|\bcode generated by\b[^\n]{0,200}\bdo not edit\b|\bdo not edit\b[^\n]{0,80}\bgenerated\b"
    r"|\bautomatically generated\b[^\n]{0,120}\bdo not (?:edit|modify)\b"
    r"|\bthis file (?:is|was) (?:auto-?generated|automatically generated|generated by)\b",
    re.IGNORECASE,
)
_TEST = re.compile(
    r"(?:^|/)(?:tests?|testing|testsuite|__tests__|spec)(?:/|$)|(?:^|/)test_[^/]*$|_test\.\w+$|\.(?:test|spec)\.\w+$"
    r"|(?:^|/)conftest\.py$|(?:^|/)[^/]*Tests?\.java$|_spec\.rb$|(?:^|/)tests\.py$|(?:^|/)tests_[^/]*\.py$"
)
_SENSITIVE = re.compile(
    r"auth|login|passw|secret|token|crypt|permission|session|payment|billing|migration|security|sql|admin"
    r"|(?:^|/)\.github/|dockerfile|(?:^|/)settings"
)
