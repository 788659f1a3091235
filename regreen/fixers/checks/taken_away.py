"""Places where a patch only takes something away: an argument, a call, a step, a part of a condition."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from regreen.fixers.checks.change import FileChange, Reason
from regreen.fixers.checks.paths import is_document, is_test

_TOKEN = re.compile(r"\w+|[^\w\s]")
_NO_CODE = re.compile(
    r"^\s*(?:$|#(?!\[|!\[|include)|//|/?\*|--\s|<!--|\"\"\"|'''|import\b|from\s+\S+\s+import\b|use\s|using\s|require\b|package\b|export\s+\*|[\])}>;,]+$|else\b|pass$|end$)"
)
# Something done for its effect, or under a lock; a value that is no longer worked out is another matter.
_STEP = re.compile(
    r"^\s*(?:(?:await|yield|defer|go)\s+)?(?!print|log|super|assert|console|fmt\.Print|System\.out)[\w.]+(?:\([^=]*\)?)?\(.*[),;({]?\s*$|^\s*(?:async\s+)?with\s"
)
_REMARK = re.compile(r"\s(?:#|//).*$")
_TELLS = re.compile(r"\w")
_MOST = 4000
_TOLD = 3


def nothing_taken_away(files: Sequence[FileChange]) -> list[Reason]:
    """What a patch takes out without putting anything in its place is for a person to see.

    Lines that stand elsewhere in the patch again were moved.
    """
    told = [file for file in files if not is_test(file.path) and not is_document(file.path)]
    moved = {line.strip() for file in told for _, line in file.added}
    reasons: list[Reason] = []
    for file in told:
        if file.old is None or file.new is None:
            continue
        lost = [one for one in _lost(file, moved) if one]
        reasons += [
            Reason("size", f"{file.path}: taken away, with nothing in its place: {one[:80]}")
            for one in lost[:_TOLD]
        ]
    return reasons


def _lost(file: FileChange, moved: set[str]) -> Iterator[str]:
    for old, new in file.blocks:
        gone = [line for line in old if not _NO_CODE.match(line)]
        if not new:
            steps = (line.strip() for line in gone if _STEP.match(line[:_MOST]))
            yield next((step for step in steps if step not in moved), "")
            continue
        before, after = _tokens(gone), _tokens([one for one in new if not _NO_CODE.match(one)])
        if _is_part(after, before):
            yield _without(before, after)


def _tokens(lines: Sequence[str]) -> list[str]:
    return _TOKEN.findall("\n".join(_REMARK.sub("", line[:_MOST]) for line in lines)[:_MOST])


def _is_part(few: Sequence[str], many: Sequence[str]) -> bool:
    """Whether the few stand among the many in their order."""
    rest = iter(many)
    return len(few) < len(many) and all(one in rest for one in few)


def _without(before: Sequence[str], after: Sequence[str]) -> str:
    """The words that are gone; empty where it is punctuation alone."""
    rest, gone = list(after), []
    for one in before:
        if rest and rest[0] == one:
            rest.pop(0)
        else:
            gone.append(one)
    return " ".join(gone) if any(_TELLS.match(one) for one in gone) else ""
