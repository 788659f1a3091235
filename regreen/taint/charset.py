"""Which characters a regular expression can match at all."""

from __future__ import annotations

import re
import string
from functools import lru_cache

INTERESTING_CHARACTERS = frozenset(";|&$`\n\r<>(){}'\"\\ .+-[]/:@%*#!?=,^~_" + string.ascii_letters)
_MAX_PATTERN_LENGTH = 400


@lru_cache(maxsize=256)
def matchable_characters(pattern: str) -> frozenset[str] | None:
    """The punctuation and plain letters that a text matched by `pattern` can hold; None if that is not known.

    Looks at each part of the pattern by itself, so the result may contain too much, never too little.
    """
    if len(pattern) > _MAX_PATTERN_LENGTH:
        return None
    found: set[str] = set()
    for piece in _split_pieces(pattern):
        if piece is None:
            return None
        try:
            matcher = re.compile(piece, re.DOTALL)
        except (re.error, RecursionError, OverflowError):
            return None
        found |= {c for c in INTERESTING_CHARACTERS if matcher.fullmatch(c)}
    return frozenset(found)


def characters_of_simple_pattern(pattern: str) -> frozenset[str] | None:
    """What a pattern of a single character, or a run of them, matches; None for any other pattern."""
    if pattern[-1:] in {"+", "*"} and pattern[-2:-1] != "\\":
        pattern = pattern[:-1]
    match = _PATTERN_PIECE.fullmatch(pattern)
    return (
        matchable_characters(pattern)
        if match is not None and pattern not in _NO_CHARACTER
        else None
    )


def characters_that_suffice_to_match(pattern: str) -> frozenset[str]:
    """The characters of which each is, alone, enough for `pattern` to be found: the options of one character."""
    if "(" in pattern or len(pattern) > _MAX_PATTERN_LENGTH:
        return frozenset()
    options = [""]
    for match in _PATTERN_PIECE.finditer(pattern):
        if match.group() == "|":
            options.append("")
        else:
            options[-1] += match.group()
    return frozenset[str]().union(
        *(characters_of_simple_pattern(option) or frozenset() for option in options)
    )


def find_group_pattern(pattern: str, key: int | str) -> str | None:
    """The part of a pattern that a group matches; None where there is no such group."""
    opened: list[tuple[int | str | None, int]] = []
    count = 0
    for match in _PATTERN_PIECE.finditer(pattern) if len(pattern) <= _MAX_PATTERN_LENGTH else ():
        piece = match.group()
        if piece == "(" or piece.startswith("(?P<"):
            count += 1
            name = piece[4:-1] if piece.startswith("(?P<") else None
            opened.append((key if key in {count, name} else None, match.end()))
        elif piece.startswith("("):
            opened.append((None, match.end()))
        elif piece == ")" and opened:
            found, start = opened.pop()
            if found is not None:
                return pattern[start : match.start()]
    return None


_NO_CHARACTER = frozenset({"(", ")", "|", "*", "+", "?", "^", "$", r"\Z", r"\A", r"\b", r"\B"})
_PATTERN_PIECE = re.compile(
    r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\d*,?\d*\}|\(\?(?:P<\w+>|:|=|!|<=|<!|[a-zA-Z]+[:)])?|.",
    re.DOTALL,
)


def _split_pieces(pattern: str) -> list[str | None]:
    """Each single-character part of a pattern; None for what is too clever."""
    pieces: list[str | None] = []
    for match in _PATTERN_PIECE.finditer(pattern):
        piece = match.group()
        if piece in _NO_CHARACTER or piece[0] == "{":
            continue
        if piece in {"(?:", "(?=", "(?!", "(?<=", "(?<!"} or piece.startswith("(?P<"):
            continue
        if piece.startswith("(?") or re.fullmatch(r"\\\d", piece):
            pieces.append(None)
        else:
            pieces.append(piece)
    return pieces
