"""Check 10: no new syntax error and no new sure finding, as ruff sees it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from regreen.errors import OutsideError
from regreen.fixers.checks.change import FileChange, Reason, parse_python
from regreen.fixers.checks.paths import is_test

FATAL = "E9,F821,F822,F823,F406,F407,F501,F502,F631,F632,F701,F702,F704,F706,F707,F811,F841,B018"

_SYNTAX = "E9"


def lint_clean(files: Sequence[FileChange]) -> list[Reason]:
    """Check 10: only what is new counts."""
    reasons: list[Reason] = []
    for file in files:
        if file.suffix == ".py":
            rules = _SYNTAX if is_test(file.path) else FATAL  # test data breaks rules on purpose
            found = new_findings(file.path, file.old, file.new, rules)
            reasons += [Reason("lint", f"{file.path}: {finding}", "deny") for finding in found]
        if file.suffix == ".json" and _breaks_json(file):
            reasons.append(Reason("lint", f"{file.path} is no longer valid JSON", "deny"))
    return reasons


def new_findings(path: str, old: str | None, new: str | None, rules: str = FATAL) -> list[str]:
    """The sure findings that `new` has and `old` has not, as ruff words them; syntax errors included."""
    if new is None:
        return []
    before = Counter(findings(path, old, rules)) if old is not None else Counter()
    fresh = Counter(findings(path, new, rules)) - before
    return sorted(fresh.elements())


def findings(path: str, text: str, rules: str = FATAL) -> list[str]:
    """What ruff's sure rules say about one file, without line numbers (they move)."""
    argv = [
        str(Path(sys.executable).with_name("ruff")), "check", "--isolated", "--no-cache", "--quiet", "--output-format", "json",
        "--select", rules, "--target-version", "py313", "--ignore-noqa", "--stdin-filename", path.rsplit("/", 1)[-1], "-",
    ]  # fmt: skip
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


def _breaks_json(file: FileChange) -> bool:
    def valid(text: str | None) -> bool:
        try:
            json.loads(text or "")
        except ValueError:
            return False
        return True

    return file.new is not None and valid(file.old) and not valid(file.new)


def parses(text: str) -> bool:
    """Whether the text is Python that parses here."""
    return parse_python(text) is not None
