"""The pieces that our texts are made of: marks that find them again, fences that nothing inside can close."""

from __future__ import annotations

import html

from regreen.codebase import inert
from regreen.codebase.inert import flat, foreign, span

__all__ = ["code", "counted", "flat", "folded", "foreign", "marker", "one_line", "span"]

_EXCERPT = 1500


# Markers: how we find again what we wrote. GitHub shows none of them.


def marker(*parts: object) -> str:
    """A hidden mark for one thing we write, so that it is written once."""
    joined = ":".join(str(p).replace("--", "~~").replace(">", "") for p in parts)
    return f"<!-- regreen:{joined} -->"


def code(text: str, language: str = "", limit: int = _EXCERPT) -> str:
    """Text in a code fence that nothing inside can close."""
    return inert.block(text, language, limit)


def one_line(text: str) -> str:
    """One line of prose in which nothing but code spans is markup; for a code span there is `span`."""
    return inert.plain(text)


def folded(title: str, inner: str) -> str:
    """Markdown that opens on a click."""
    shown = html.escape(inert.flat(title), quote=False)
    return f"<details><summary>{shown}</summary>\n\n{inner}\n\n</details>"


def counted(number: int, noun: str, many: str = "") -> str:
    """A number with its noun; `many` is the plural where that is not `noun` with an s."""
    return f"{number} {noun if number == 1 else many or noun + 's'}"
