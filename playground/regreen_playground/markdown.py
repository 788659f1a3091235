"""Shows Markdown well enough to read a comment; everything is escaped first, a few known tags are let back in."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

_TAGS = ("details", "summary", "sub", "sup", "kbd", "b", "i")
_INLINE = (
    (re.compile(r"`([^`\n]+)`"), r"<code>\1</code>"),
    (re.compile(r"\*\*([^*\n]+)\*\*"), r"<b>\1</b>"),
    (
        re.compile(r"\[([^\[\]\n]+)\]\((https?://[^\s)]{1,2000})\)"),
        r'<a href="\2" rel="nofollow">\1</a>',
    ),
)


def html(text: str | None) -> Markup:
    """The text as HTML; hidden comments are left out, as GitHub does."""
    out: list[str] = []
    fence: str | None = None
    table: list[str] = []
    *closed, rest = (text or "").split("-->")  # in linear time, as a pattern would not
    closed = [part.partition("<!--")[0] if "<!--" in part else f"{part}-->" for part in closed]
    for line in "".join([*closed, rest]).split("\n"):
        mark = re.match(r"\s*(`{3,}|~{3,})\s*(\w*)", line)
        if fence is not None:
            if mark and mark[1].startswith(fence) and not mark[2]:
                out.append("</pre>")
                fence = None
            else:
                out.append(str(escape(line)) + "\n")
            continue
        if line.startswith("|"):
            table.append(line)
            continue
        out += _table(table)
        table = []
        if mark:
            fence = mark[1]
            kind = f" class={mark[2]}" if mark[2] else ""
            out.append(f"<pre{kind}>")
        else:
            out.append(_line(line))
    out += _table(table)
    if fence is not None:
        out.append("</pre>")
    return Markup("".join(out))  # noqa: S704 - every piece was escaped


def _line(line: str) -> str:
    heading = re.match(r"(#{1,6})\s+(.*)", line)
    if heading:
        return f"<h{len(heading[1])}>{_inline(heading[2])}</h{len(heading[1])}>\n"
    item = re.match(r"(\s*)[-*]\s+(.*)", line)
    if item:
        return (
            f'<div class=item style="margin-left:{len(item[1]) + 1}ch">• {_inline(item[2])}</div>\n'
        )
    return f"{_inline(line)}<br>\n" if line.strip() else "<div class=gap></div>\n"


def _inline(text: str) -> str:
    shown = str(escape(text))
    for pattern, replacement in _INLINE:
        shown = pattern.sub(replacement, shown)
    for tag in _TAGS:
        shown = shown.replace(f"&lt;{tag}&gt;", f"<{tag}>").replace(f"&lt;/{tag}&gt;", f"</{tag}>")
    return shown


def _table(rows: list[str]) -> list[str]:
    if not rows:
        return []
    out = ["<table>"]
    for row in rows:
        cells = [cell.strip() for cell in row.strip().strip("|").split("|")]
        if not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            out.append("<tr>" + "".join(f"<td>{_inline(cell)}</td>" for cell in cells) + "</tr>")
    return [*out, "</table>\n"]
