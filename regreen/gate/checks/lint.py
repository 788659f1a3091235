"""Check 10: no new syntax error and no new certain finding of ruff."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from regreen.code.file_change import CheckReason, PatchedFile
from regreen.code.paths import is_test
from regreen.code.python_calls import is_package
from regreen.domain.errors import OutsideError
from regreen.languages.registry import has_capability

FATAL_RULES = (
    "E9,F821,F822,F823,F406,F407,F501,F502,F631,F632,F701,F702,F704,F706,F707,F811,F841,B018"
)

_SYNTAX_RULE = "E9"
_UNUSED_IMPORT_RULE = "F401"
_IMPORT_LINE = re.compile(r"(?m)^[^\S\n]*(?:import|from)\s")


def check_lint(files: Sequence[PatchedFile]) -> list[CheckReason]:
    """Check 10: only new findings count."""
    reasons: list[CheckReason] = []
    for file in files:
        if has_capability(file.path, "checkers"):
            # tests break rules on purpose
            rules = _SYNTAX_RULE if is_test(file.path) else f"{FATAL_RULES},{_UNUSED_IMPORT_RULE}"
            for finding in find_new_errors(file.path, file.old, file.new, rules):
                idle = finding.startswith(_UNUSED_IMPORT_RULE)
                if idle and (is_package(file.path) or not _IMPORT_LINE.search(file.added_text)):
                    continue  # a re-export, or an import whose last use was removed
                reasons.append(
                    CheckReason(
                        "lint", f"{file.path}: {finding}", "needs_human" if idle else "deny"
                    )
                )
        if file.suffix == ".json" and _breaks_json(file):
            reasons.append(CheckReason("lint", f"{file.path} is no longer valid JSON", "deny"))
    return reasons


def find_new_errors(
    path: str, old: str | None, new: str | None, rules: str = FATAL_RULES
) -> list[str]:
    """The findings of ruff, syntax errors included, that `new` has and `old` has not."""
    if new is None:
        return []
    before = Counter(list_ruff_messages(path, old, rules)) if old is not None else Counter()
    fresh = Counter(list_ruff_messages(path, new, rules)) - before
    return sorted(fresh.elements())


def list_ruff_messages(path: str, text: str, rules: str = FATAL_RULES) -> list[str]:
    """Ruff's findings for one file, without line numbers (they move)."""
    argv = [
        str(Path(sys.executable).with_name("ruff")),
        "check",
        "--isolated",
        "--no-cache",
        "--quiet",
        "--output-format",
        "json",
        "--select",
        rules,
        "--target-version",
        "py313",
        "--ignore-noqa",
        "--stdin-filename",
        path.rsplit("/", 1)[-1],
        "-",
    ]
    try:
        done = subprocess.run(
            argv, input=text.encode(), capture_output=True, timeout=60, check=False
        )
        found = json.loads(done.stdout) if done.returncode in {0, 1} else None
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        msg = f"ruff could not be run on {path}: {error}"
        raise OutsideError(msg) from error
    if found is None:
        msg = f"ruff failed on {path}: {done.stderr.decode(errors='replace')[-300:]}"
        raise OutsideError(msg)
    return [f"{item['code'] or 'syntax'} {item['message']}" for item in found]


def _breaks_json(file: PatchedFile) -> bool:
    def valid(text: str | None) -> bool:
        try:
            json.loads(text or "")
        except ValueError:
            return False
        return True

    return file.new is not None and valid(file.old) and not valid(file.new)
