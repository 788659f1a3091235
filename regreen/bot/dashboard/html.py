"""HTML that cannot be broken out of: elements are built, and every text is escaped on the way."""

from __future__ import annotations

import html
from collections.abc import Iterable


class Safe(str):
    """HTML that is finished. Everything else is text, and is escaped."""

    __slots__ = ()


Content = Safe | str | int | float | None


def tag(name: str, *content: Content, **attributes: str) -> Safe:
    """An element. An attribute's trailing underscore is dropped (`class_`)."""
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(value)}"'
        for key, value in attributes.items()
    )
    return Safe(f"<{name}{shown}>{text(*content)}</{name}>")


def text(*content: Content) -> Safe:
    """Content one after the other, what is not HTML yet escaped."""
    return Safe("".join(_one(c) for c in content))


def link(to: str, *content: Content) -> Safe:
    """A link. Only to our own pages and to http addresses: a `javascript:` address is shown as text."""
    if to.startswith(("/", "https://", "http://")) and not to.startswith("//"):
        return tag("a", *content, href=to)
    return text(*content)


def table(head: Iterable[str], rows: Iterable[Iterable[Content]]) -> Safe:
    """A table."""
    top = tag("tr", *(tag("th", h) for h in head))
    body = [tag("tr", *(tag("td", cell) for cell in row)) for row in rows]
    if not body:
        return tag("p", "Nothing yet.", class_="none")
    return tag("table", tag("thead", top), tag("tbody", *body))


def _one(content: Content) -> str:
    if content is None:
        return ""
    if isinstance(content, Safe):
        return content
    return html.escape(str(content))
