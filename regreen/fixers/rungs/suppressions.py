"""Comments that silence a checker which has nothing left to say: the checker names the lines, the comment goes."""

from __future__ import annotations

import re

from regreen.fixers.rungs.task_runners import Read

_UNUSED = re.compile(
    r"^(?:/work/)?(?P<path>[\w./-]{1,300}\.pyi?):(?P<line>\d{1,7})(?::\d{1,7})?: (?:error|warning): Unused \"type: ignore",
    re.MULTILINE,
)
_COMMENT = re.compile(r"[ \t]*#[ \t]*type:[ \t]*ignore(?:\[[^\]\n]{0,200}\])?(?P<rest>[^\n]*)$")


def without_unused(output: str, read: Read) -> dict[str, str]:
    """The files that mypy named, without the comments that it said are unused."""
    lines: dict[str, set[int]] = {}
    for match in _UNUSED.finditer(output):
        if ".." not in match["path"].split("/"):
            lines.setdefault(match["path"], set()).add(int(match["line"]))
    changed: dict[str, str] = {}
    for path, numbers in lines.items():
        text = read(path)
        if text is None:
            continue
        rows = text.split("\n")
        for number in numbers:
            if number <= len(rows):
                rows[number - 1] = _COMMENT.sub(_rest, rows[number - 1])
        if "\n".join(rows) != text:
            changed[path] = "\n".join(rows)
    return changed


def _rest(match: re.Match[str]) -> str:
    """Another comment on the same line stays."""
    rest = match["rest"].strip()
    return f"  {rest}" if rest.startswith("#") else ""
