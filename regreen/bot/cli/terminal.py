"""Text for a person's terminal, which foreign text (file names, commit subjects, output) must not steer."""

from __future__ import annotations

import re

import click

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def harmless(text: str) -> str:
    """The text without control characters and without bytes that are no text."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def say(line: str) -> None:
    """One line of progress on standard error."""
    click.echo(harmless(line), err=True)
