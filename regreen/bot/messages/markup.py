"""The parts that texts are made of: hidden markers, and fences that no content can close."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from datetime import UTC, datetime

from regreen.domain.github import CheckRun
from regreen.secrets import markdown_sanitizer
from regreen.secrets.markdown_sanitizer import (
    code_span,
    count_noun,
    sanitize_markdown,
    to_plain_line,
)

__all__ = [
    "add_verdict",
    "code_span",
    "count_noun",
    "explain_neutral",
    "fence_code",
    "fold_details",
    "format_time",
    "has_marker",
    "inline_prose",
    "make_marker",
    "sanitize_markdown",
    "strip_markdown",
    "to_plain_line",
]

_MAX_EXCERPT_CHARS = 1500


# Hidden markers by which Regreen finds its own texts again. GitHub does not render them.


def make_marker(*parts: object) -> str:
    """A hidden marker for one text, so that the text is posted once."""
    joined = ":".join(str(p).replace("--", "~~").replace(">", "") for p in parts)
    return f"<!-- regreen:{joined} -->"


def has_marker(body: str, *parts: object) -> bool:
    """Whether our text ends with the marker; quoted content never stands at the end."""
    return body.rstrip().endswith(make_marker(*parts))


def fence_code(text: str, language: str = "", limit: int = _MAX_EXCERPT_CHARS) -> str:
    """Text in a code fence that no content can close."""
    return markdown_sanitizer.code_block(text, language, limit)


def inline_prose(text: str, limit: int = 1000) -> str:
    """One line of prose without markup except code spans; `code_span` makes one."""
    return markdown_sanitizer.escape_line(text, limit)


def format_time(at: datetime) -> str:
    """A time in UTC, to the minute."""
    return f"{at.astimezone(UTC):%Y-%m-%d at %H:%M} UTC"


def fold_details(title: str, inner: str) -> str:
    """Collapsed Markdown with a title."""
    shown = html.escape(markdown_sanitizer.to_plain_line(title), quote=False)
    return f"<details><summary>{shown}</summary>\n\n{inner}\n\n</details>"


_LIST_NUMBER = re.compile(r"^\s{0,8}(?:\d{1,3}[.)]|[-*+]|#{1,6}|>)\s+")


def strip_markdown(text: str) -> str:
    """Text for where GitHub renders no Markdown (titles, annotations): no code marks, emphasis, bullets or fences."""
    rows = [row for row in text.split("\n") if not row.lstrip().startswith("```")]
    plain = (
        _LIST_NUMBER.sub("", row).replace("`", "").replace("**", "").replace("](", "] (")
        for row in rows
    )
    return "\n".join(to_plain_line(row) for row in plain).strip()


_NEUTRAL = "This check is neutral: "
_VERDICT_TITLE = "Verdict as JSON"


def explain_neutral(why: str) -> str:
    """The sentence that says why a check run is neutral."""
    return f"{_NEUTRAL}{why}."


def format_as_comment(summary: str) -> str:
    """A check run's summary for a comment, which is no check: the verdict as JSON stays with the check."""
    text = summary.partition(f"\n\n<details><summary>{_VERDICT_TITLE}")[0]
    return "\n\n".join(part for part in text.split("\n\n") if not part.startswith(_NEUTRAL))


def add_verdict(check: CheckRun, verdict: str, **facts: object) -> CheckRun:
    """The check run with its verdict as a fenced JSON block, so that no reader depends on the colour alone."""
    document = {"version": 1, "check": check.name, "head": check.head_sha, "verdict": verdict}
    block = fence_code(json.dumps(document | facts, ensure_ascii=True, indent=1), "json", 4000)
    return replace(check, summary=f"{check.summary}\n\n{fold_details(_VERDICT_TITLE, block)}")
