"""Limits on foreign text: lines that searches skip, texts that are too long for their place, codes for terminals, durations."""

from __future__ import annotations

import re

MAX_LINE = 4000
"""Longer lines are minified, data, or made to be slow to read."""


def without_long_lines(text: str) -> str:
    """The text with every line over `MAX_LINE` characters emptied; line numbers stay the same."""
    return "\n".join("" if len(line) > MAX_LINE else line for line in text.split("\n"))


# of a command without an end only the start goes: its text may be a failure
_TERMINAL_CODE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x00-\x1f\x85\u2028\u2029]*(?:\x07|\x1b\\)|[@-Z\\\]^_])"
)


def strip_terminal_codes(text: str) -> str:
    """The text without the codes that colour a terminal, move its cursor or name its window (ECMA-48).

    No code spans lines.
    """
    return _TERMINAL_CODE.sub("", text) if "\x1b" in text else text


_SENTENCE_END = re.compile(r"[.!?;:](?=\s)|\n(?=\n)")
_MIN_KEPT_SHARE = 0.5


def shorten_text(text: str, most: int) -> str:
    """A text of at most `most` characters, cut after a sentence, else after a word, and marked with `...`."""
    if len(text) <= most:
        return text
    room = text[: most - 4]
    if not text[len(room)].isspace():
        room = (
            room[: _find_last_blank(room)]
            if _find_last_blank(room) > _MIN_KEPT_SHARE * len(room)
            else room
        )
    ends = [m.end() for m in _SENTENCE_END.finditer(room)]
    if ends and ends[-1] > _MIN_KEPT_SHARE * len(room):
        room = room[: ends[-1]]
    return f"{room.rstrip()} ..."


def format_seconds(seconds: float) -> str:
    """A duration as people read it."""
    if seconds < 120:
        return f"{seconds:.{1 if seconds < 10 else 0}f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _find_last_blank(text: str) -> int:
    return max(text.rfind(" "), text.rfind("\n"))
