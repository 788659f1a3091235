"""Texts that are too long for their place, cut where a reader would pause."""

from __future__ import annotations

import re

_PAUSE = re.compile(r"[.!?;:](?=\s)|\n(?=\n)")
_LEAST_KEPT = 0.5


def shortened(text: str, most: int) -> str:
    """A text of at most `most` characters, cut after a sentence, else after a word, and marked with `...`."""
    if len(text) <= most:
        return text
    room = text[: most - 4]
    if not text[len(room)].isspace():
        room = room[: _last_blank(room)] if _last_blank(room) > _LEAST_KEPT * len(room) else room
    ends = [m.end() for m in _PAUSE.finditer(room)]
    if ends and ends[-1] > _LEAST_KEPT * len(room):
        room = room[: ends[-1]]
    return f"{room.rstrip()} ..."


def _last_blank(text: str) -> int:
    return max(text.rfind(" "), text.rfind("\n"))
