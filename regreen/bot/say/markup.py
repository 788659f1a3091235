"""The pieces that our texts are made of: marks that find them again, fences that nothing inside can close."""

from __future__ import annotations

import html

_EXCERPT = 1500


# Markers: how we find again what we wrote. GitHub shows none of them.


def marker(*parts: object) -> str:
    """A hidden mark for one thing we write, so that it is written once."""
    joined = ":".join(str(p).replace("--", "~~").replace(">", "") for p in parts)
    return f"<!-- regreen:{joined} -->"


def code(text: str, language: str = "", limit: int = _EXCERPT) -> str:
    """Text in a code fence that nothing inside can close."""
    cut = text if len(text) <= limit else text[:limit] + "\n…"
    fence = fence_for(cut)
    return f"{fence}{language}\n{cut.strip(chr(10))}\n{fence}"


def fence_for(text: str) -> str:
    """A fence longer than any run of backticks in the text."""
    longest = run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    return "`" * max(3, longest + 1)


def one_line(text: str) -> str:
    """One line that can be no markup of ours: no newline, no comment, no mention that pings."""
    flat = " ".join(text.split())
    return flat.replace("<!--", "&lt;!--").replace("@", "@\u200b")


def folded(title: str, inner: str) -> str:
    """Markdown that opens on a click."""
    shown = html.escape(title, quote=False)
    return f"<details><summary>{shown}</summary>\n\n{inner}\n\n</details>"


def counted(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
