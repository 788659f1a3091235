"""HTML that cannot be broken out of: elements are built, and every text is escaped on the way."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime


class Safe(str):
    """HTML that is finished. Everything else is text, and is escaped."""

    __slots__ = ()


Content = Safe | str | int | float | None
_VOID = frozenset({"input", "img", "meta", "br", "hr"})


def tag(name: str, /, *content: Content, **attributes: str | None) -> Safe:
    """An element. An attribute's trailing underscore is dropped (`class_`); None leaves it out."""
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Safe(f"<{name}{shown}>")
    return Safe(f"<{name}{shown}>{text(*content)}</{name}>")


def text(*content: Content) -> Safe:
    """Content one after the other, what is not HTML yet escaped."""
    return Safe("".join(_one(c) for c in content))


def link(to: str, *content: Content, **attributes: str | None) -> Safe:
    """A link. Only to our own pages and to http addresses: a `javascript:` address is shown as text."""
    if to.startswith(("/", "https://", "http://")) and not to.startswith("//"):
        return tag("a", *content, href=to, **attributes)
    return text(*content)


def table(
    head: Sequence[str],
    rows: Iterable[Iterable[Content]],
    *,
    caption: str = "",
    none: str = "Nothing yet.",
) -> Safe:
    """A table; on a narrow screen each row becomes a card whose cells carry their column's name."""
    top = tag("tr", *(tag("th", h, scope="col") for h in head))
    body = [
        tag("tr", *(tag("td", cell, data_label=h) for h, cell in zip(head, row, strict=True)))
        for row in rows
    ]
    if not body:
        return tag("p", none, class_="none")
    named = tag("caption", caption, class_="hidden") if caption else Safe("")
    return tag("table", named, tag("thead", top), tag("tbody", *body))


def facts(rows: Iterable[tuple[str, Content]]) -> Safe:
    """Names and values, those without a value left out."""
    shown = [tag("dt", name) + tag("dd", value) for name, value in rows if value not in {None, ""}]
    return tag("dl", *map(Safe, shown), class_="facts") if shown else Safe("")


def code(words: str, label: str) -> Safe:
    """A block of code or output, which can be scrolled with the keyboard."""
    return tag("pre", words, tabindex="0", role="group", aria_label=label)


def wide(picture: Safe, label: str) -> Safe:
    """A picture that a narrow screen shows in its size, to be scrolled by hand or with the keyboard."""
    return tag("div", picture, class_="wide", tabindex="0", role="group", aria_label=label)


def prose(words: str) -> Safe:
    """Words with what stands between backticks set as code; nothing else of them is markup."""
    parts = re.split(r"`([^`\n]+)`", words)
    return text(*(tag("code", part) if at % 2 else part for at, part in enumerate(parts)))


def diff(patch: str, label: str = "Patch") -> Safe:
    """A unified diff with what goes and what comes marked, by a sign and a colour."""
    kinds = {"+": "ins", "-": "del"}
    lines = []
    for line in patch.rstrip("\n").split("\n"):
        is_head = line.startswith(("+++", "---"))
        name = None if is_head else kinds.get(line[:1])
        lines.append(tag(name, line) if name else text(line))
    return tag(
        "pre", Safe("\n".join(lines)), tabindex="0", role="group", aria_label=label, class_="diff"
    )


def when(at: datetime) -> Safe:
    """A time, in UTC; the page's script shows it in the reader's zone."""
    shown = at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return tag("time", shown, datetime=at.isoformat())


def state(word: str) -> Safe:
    """A state: its word, on its colour."""
    return tag("span", word, class_=f"state {''.join(c for c in word if c.isalnum())}")


def fold(summary: Content, *content: Content, open_: bool = False) -> Safe:
    """Something to unfold."""
    return tag("details", tag("summary", summary), *content, **({"open": "open"} if open_ else {}))


def place(repo: str | None, number: int | None) -> str:
    """A repository, or an issue or pull request of one."""
    return (repo or "") if number is None else f"{repo}#{number}"


def dollars(usd: float) -> str:
    """An amount; nothing where nothing was spent."""
    return f"${usd:,.3f}" if usd else ""


def seconds(value: object) -> str:
    """A span, as people read it; nothing where it is not known."""
    span = float(value) if isinstance(value, int | float) else 0.0
    if not span:
        return ""
    if span < 120:
        return f"{span:.1f} s"
    return f"{span / 60:.0f} min" if span < 7200 else f"{span / 3600:.1f} h"


def _one(content: Content) -> str:
    if content is None:
        return ""
    if isinstance(content, Safe):
        return content
    return html.escape(str(content))
