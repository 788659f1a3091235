"""Commands that a failure itself names as its remedy: "out of date, run `make generate`"."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from regreen.fixers.rungs.tools import Remedy

_STARTS = (
    r"(?:make|npm|npx|pnpm|yarn|bun|python3?|uv|poetry|pdm|hatch|go|cargo|just|task|tox|nox|ruff|black|isort|pre-commit|prek|cog"
    r"|bash|sh|invoke|\./[\w./-]{1,80})"
)
_QUOTED = re.compile(
    rf"\b(?:run|running|execute|using|with|use|try)[:\s]{{1,3}}[`'\"]({_STARTS}\s[^`'\"\n]{{1,120}})[`'\"]",
    re.IGNORECASE,
)
_PLAIN = re.compile(
    rf"\b(?:run|execute):?[ ]({_STARTS} [\w./:=@-]{{1,60}}(?: [\w./:=@-]{{1,60}}){{0,5}}?)(?: (?:to|and|first|again|in|then)\b|[.,;!)]|\s*$)",
    re.IGNORECASE | re.MULTILINE,
)
_NOT_FOR_US = re.compile(
    r"\b(?:install|ci|add|push|publish|upload|login|commit|checkout|reset|clean)\b"
)
_MOST = 3


def told(command: str, output: str) -> Iterator[Remedy]:
    """What the output says to run, where it is a command that can write files and needs no network."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", output[-20_000:])
    found = [match[1].strip() for pattern in (_QUOTED, _PLAIN) for match in pattern.finditer(text)]
    for script in list(dict.fromkeys(found))[:_MOST]:
        if script != command.strip() and not _NOT_FOR_US.search(script) and _readable(script):
            yield Remedy("told", script, f"files are out of date; the failure says to run {script}")


def _readable(script: str) -> bool:
    if re.search(r"[|&;<>$`(){}\\]", script):
        return False
    try:
        return len(shlex.split(script)) > 1
    except ValueError:
        return False
