"""Checkers that are hidden behind other programs, known by what they print."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace

from regreen.fixers.rungs.tools import FORMAT, LINT, Remedy

_BLACK = re.compile(r"^would reformat (?P<path>\S[^\n]{0,300})$", re.MULTILINE)
_RUFF_FORMAT = re.compile(r"^Would reformat: (?P<path>\S[^\n]{0,300})$", re.MULTILINE)
_ISORT = re.compile(
    r"^ERROR: (?P<path>\S[^\n]{0,300}) Imports are incorrectly sorted", re.MULTILINE
)
_PRETTIER = re.compile(r"^\[warn\] (?P<path>[^\s\[][^\n]{0,300}\.\w{1,8})$", re.MULTILINE)
_RUFF_FIXABLE = re.compile(r"fixable with (?:the )?[`']--fix[`']")
_RUFF_PATH = re.compile(
    r"^(?:\s*--> )?(?P<path>[\w./-]{1,200}\.(?:py|pyi|ipynb)):\d+:\d+(?::|$)", re.MULTILINE
)
_ESLINT_FIXABLE = re.compile(r"potentially fixable with the `--fix` option")
_ESLINT_PATH = re.compile(r"^(?P<path>/[\w./-]{1,200}\.[cm]?[jt]sx?)$", re.MULTILINE)


def printed(output: str) -> Iterator[Remedy]:
    """What would mend what tools complained about that hide behind make, a package script or a hook."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", output)
    for pattern, name, call in (
        (_RUFF_FORMAT, "ruff format", ["ruff", "format"]),
        (_BLACK, "black", ["black", "-q"]),
        (_ISORT, "isort", ["isort"]),
    ):
        paths = _paths(pattern, text)
        if paths:
            yield Remedy(name, shlex.join([*call, *paths]), FORMAT.format(name=name))
    if "Code style issues" in text and (paths := _paths(_PRETTIER, text)):
        yield Remedy(
            "prettier",
            shlex.join(["npx", "--no-install", "prettier", "--write", *paths]),
            FORMAT.format(name="prettier"),
        )
    if _ESLINT_FIXABLE.search(text) and (paths := _paths(_ESLINT_PATH, text)):
        yield Remedy(
            "eslint",
            shlex.join(["npx", "--no-install", "eslint", "--fix", *paths]),
            LINT.format(name="eslint"),
        )
    elif _RUFF_FIXABLE.search(text) and (paths := _paths(_RUFF_PATH, text)):
        yield Remedy(
            "ruff check",
            shlex.join(["ruff", "check", "--fix", *paths]),
            LINT.format(name="ruff check"),
        )


_UNSAFE = re.compile(
    r"fix(?:es)? (?:can be enabled|available) with (?:the )?`(?:--fix )?--unsafe-fixes`"
)
_FIX = re.compile(r"(?m)^((?:[^\n]*?\s)?ruff\b[^\n;&|]*?) --fix\b")


def with_unsafe(checkers: Sequence[Remedy], output: str) -> Iterator[Remedy]:
    """Ruff's calls once more with the fixes that may change what the code does, where it offers them: for a person."""
    if _UNSAFE.search(output):
        for remedy in checkers:
            script = _FIX.sub(r"\1 --fix --unsafe-fixes", remedy.script)
            if script != remedy.script:
                why = "ruff calls these fixes unsafe: look whether the code still does the same"
                yield replace(
                    remedy, script=script, approval=why, title="ruff check --fix --unsafe-fixes"
                )


def _paths(pattern: re.Pattern[str], text: str) -> list[str]:
    found = (match["path"].strip().removeprefix("/work/") for match in pattern.finditer(text))
    return [
        path
        for path in dict.fromkeys(found)
        if not path.startswith(("-", "/")) and ".." not in path.split("/")
    ][:400]
