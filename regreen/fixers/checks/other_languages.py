"""Errors made quiet in languages that are not parsed here, told from the lines that a patch adds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from regreen.fixers.checks.change import FileChange

_C_LIKE = frozenset({".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".java", ".kt", ".cs", ".cpp", ".cc", ".hpp", ".php", ".swift", ".scala", ".dart", ".vue", ".svelte"})  # fmt: skip
_QUIET: tuple[tuple[frozenset[str], re.Pattern[str], str], ...] = (
    (
        _C_LIKE,
        re.compile(r"\bcatch\s*(?:\([^()\n]{0,200}\)\s*)?\{|\bcatch\s*:"),
        "catches errors that were let through",
    ),
    (
        _C_LIKE,
        re.compile(r"\.catch\("),
        "throws a promise's error away",
    ),
    (
        frozenset({".ts", ".tsx", ".vue"}),
        re.compile(r"\bas any\b|\bas unknown as\b|<any>|:\s*any\b|\bas\s+(?!const\b|Error\b)[A-Z]\w*(?:\[\])?\s*[;,)]"),
        "takes the type checker's word away",
    ),
    (frozenset({".go"}), re.compile(r"\brecover\(\)|\b_\s*=\s*err\b"), "throws an error away"),
    (
        frozenset({".rs"}),
        re.compile(r"\bcatch_unwind\b|\.unwrap_or_default\(\)|\blet\s+_\s*="),
        "throws an error away",
    ),
    (frozenset({".rb", ".rake"}), re.compile(r"\brescue\b"), "catches errors that were let through"),
    (frozenset({".ex", ".exs", ".erl"}), re.compile(r"\brescue\b|\bcatch\b"), "catches errors that were let through"),
    (frozenset({".sh", ".bash"}), re.compile(r"2>\s*/dev/null\s*\|\||\|\|\s*echo\b"), "goes on after an error"),
)  # fmt: skip
_PASSED_ON = re.compile(
    r"\b(?:throw|raise|panic!?|rethrow|reject)\b|\breturn\s+(?:[^;\n]{0,80},\s*)?err\b"
)


def made_quiet(file: FileChange) -> Iterator[str]:
    """What a reader would ask about, one sentence each; nothing where the new lines pass the error on."""
    if _PASSED_ON.search(file.added_text):
        return
    for suffixes, pattern, what in _QUIET:
        if file.suffix not in suffixes:
            continue
        now = sum(len(pattern.findall(line)) for _, line in file.added if len(line) < 2000)
        then = sum(len(pattern.findall(line)) for _, line in file.removed if len(line) < 2000)
        if now > then:
            line = next(line for _, line in file.added if pattern.search(line))
            yield f"{what} ({line.strip()[:80]})"
