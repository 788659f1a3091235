"""What a pull request says of itself, and what its own diff does to the tests that guard the project."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from regreen.code.file_change import CheckReason, PatchedFile
from regreen.code.paths import is_test, is_test_config
from regreen.domain.ports import Git
from regreen.gate.checks.silenced_errors import check_silenced_errors
from regreen.gate.checks.tests_kept import check_assertions
from regreen.gate.judge import changed_files

_CLOSES = re.compile(r"(?i)\b(?:fix(?:e[sd])?|close[sd]?|resolve[sd]?):? {1,3}(?:[\w.-]{1,60}/[\w.-]{1,60})?#\d{1,9}\b")  # fmt: skip
_FIXES = re.compile(r"(?i)^(?:\[?bug\]?|(?:bug|hot)?fix(?:e[sd]|ing)?\b)|\bfix(?:e[sd])? (?:a |the )?bug\b")  # fmt: skip
_KEEPS = re.compile(
    r"(?i)^refactor\w*|\brefactoring\b|\bno (?:(?:behavior|behaviour)(?:al)?|functional) changes?\b"
)
_MAX_TEXT = 20_000
_WEAKENED_CI = re.compile(r"continue-on-error:\s{0,4}true|\|\|\s{0,4}(?:true|:)\s{0,4}$")


@dataclass(frozen=True, slots=True)
class ProofClaim:
    """Something that the title or the description says; `holds` is None where the runs cannot tell."""

    text: str
    holds: bool | None
    reason: str


@dataclass(frozen=True, slots=True)
class StatedIntent:
    """What title and description promise: `fixes` in their words, `keeps` behaviour in theirs; "" where they do not."""

    closes: tuple[str, ...] = ()
    fixes: str = ""
    keeps: str = ""


def read_intent(title: str, body: str) -> StatedIntent:
    """What a title and a description promise."""
    text = f"{title}\n{body}"[:_MAX_TEXT]
    closes = tuple(dict.fromkeys(found[0] for found in _CLOSES.finditer(text)))
    fixes = _FIXES.search(title[:500])
    keeps = _KEEPS.search(text)
    return StatedIntent(
        closes[:5], title[:200] if fixes or closes else "", keeps[0] if keeps else ""
    )


def find_weakened_tests(git: Git, base: str, head: str) -> tuple[CheckReason, ...]:
    """Where the change weakens tests, their configuration or the workflows. Call it in a child process."""
    return check_weakening(changed_files(git, base, head))


def check_weakening(files: Sequence[PatchedFile]) -> tuple[CheckReason, ...]:
    """The gate's checks of assertions, skips, tolerances and swallowed errors, on what guards the project."""
    guards = [
        file
        for file in files
        if is_test(file.path) or is_test_config(file.path) or file.path.startswith(".github/")
    ]
    reasons = [*check_assertions(files, person=True), *check_silenced_errors(guards)]
    for file in guards:
        lines = [line.strip() for _, line in file.added_lines if _WEAKENED_CI.search(line)]
        lost = sum(bool(_WEAKENED_CI.search(line)) for _, line in file.removed_lines)
        if file.path.startswith(".github/") and len(lines) > lost:
            what = f"{file.path}: a step may fail now without failing the job ({lines[0][:80]})"
            reasons.append(CheckReason("workflow", what, "deny"))
    return tuple(
        dict.fromkeys(reason for reason in reasons if reason.level in {"deny", "needs_human"})
    )
