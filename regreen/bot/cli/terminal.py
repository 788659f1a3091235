"""Text for a person's terminal, which foreign text (file names, commit subjects, output) must not steer."""

from __future__ import annotations

import os
import re
import sys
from typing import TextIO

import click

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_COLOURS = {
    "ok": "green", "FAIL": "red", "fixed": "green", "allow": "green", "deny": "red", "needs_human": "yellow",
    "critical": "red", "high": "red", "medium": "yellow", "low": "cyan",
}  # fmt: skip
_WORD = re.compile(
    r"^(?:(?P<verdict>ok|FAIL|fixed|allow|deny|needs_human)|(?P<place>.+?:\d+: )(?P<severity>critical|high|medium|low))(?= |$)",
    re.MULTILINE,
)


def harmless(text: str) -> str:
    """The text without control characters and without bytes that are no text."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def say(line: str) -> None:
    """One line of progress on standard error."""
    click.echo(harmless(line), err=True)


def answer(words: str, *, headline: bool = False) -> None:
    """What was asked for, on standard output; coloured where a person looks at it, its first line bold if it is one."""
    words = harmless(words).rstrip("\n")
    if is_screen(sys.stdout) and not os.environ.get("NO_COLOR"):  # https://no-color.org
        words = _painted(words, headline=headline)
    click.echo(words)


def is_screen(stream: TextIO) -> bool:
    """Whether a stream goes to a terminal that can do more than print line after line."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _painted(words: str, *, headline: bool) -> str:
    painted = _WORD.sub(_paint, words)
    first, newline, rest = painted.partition("\n")
    is_plain = headline and first in words
    return (click.style(first, bold=True) if is_plain else first) + newline + rest


def _paint(found: re.Match[str]) -> str:
    word = found["verdict"] or found["severity"]
    return (found["place"] or "") + click.style(word, fg=_COLOURS[word], bold=True)
