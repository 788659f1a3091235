"""TOML that strangers wrote, read within bounds."""

from __future__ import annotations

import re
import tomllib
from typing import Any

MAX_CHARACTERS = 1024 * 1024
MAX_LINE = 10_000
MAX_KEY_PARTS = 50
MAX_NESTING = 100

_KEY_PART = re.compile(r"[\w \t\"'-]*")
"""What stands between two dots of a key."""


class TomlTooLarge(tomllib.TOMLDecodeError):
    """TOML, perhaps, but larger or nested more deeply than a file that a person writes."""


def load_toml(text: str) -> dict[str, Any]:
    """The document as a dictionary.

    `tomllib` needs memory that grows with the square of a key's parts, and recurses for each bracket.

    Raises:
        tomllib.TOMLDecodeError: it is no TOML.
        TooLarge: it is beyond the bounds.
    """
    if len(text) > MAX_CHARACTERS:
        message = f"it may have {MAX_CHARACTERS} characters and has {len(text)}"
        raise TomlTooLarge(message)
    depth = 0
    for number, line in enumerate(text.split("\n"), 1):
        dots = line.count(".")
        if len(line) > MAX_LINE or (dots >= MAX_KEY_PARTS and _split_key(line) > MAX_KEY_PARTS):
            message = f"a line or a key that is too long (at line {number}, column 1)"
            raise TomlTooLarge(message)
        for character in line:
            if character in "[{":
                depth += 1
            elif character in "]}":
                depth = max(0, depth - 1)
            if depth > MAX_NESTING:
                message = f"nested too deeply (at line {number}, column 1)"
                raise TomlTooLarge(message)
    return tomllib.loads(text)


def _split_key(line: str) -> int:
    """The longest run of parts with dots between them."""
    longest = run = 0
    for part in line.split("."):
        run = run + 1 if _KEY_PART.fullmatch(part) else 1
        longest = max(longest, run)
    return longest
