"""What a tool's output offers: the words that it quotes and the others, and what the words beside them say of them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

_MOST_WORDS = 60
_NEW_CUE_WINDOW = 60


@dataclass(frozen=True, slots=True)
class OfferedWord:
    """What a message offers. `cued`: the words beside it say that it is the one to write, or `refused`: that it is wrong.

    `at`: the line of the output, `far` how far that is from the place.
    """

    text: str
    quoted: bool
    cued: bool
    at: int
    far: int
    refused: bool = False
    named: bool = False  # by a name of a character, or as the partner of a bracket


_QUOTED = re.compile(
    r"""`([^`'\n]{1,160})'|`{1,2}([^`\n]{1,160})`{1,2}|(?<![\w'])'([^'\n]{1,160})'(?!\w)|(?<![\w"])"([^"\n]{1,160})"(?!\w)|‘([^’\n]{1,160})’|“([^”\n]{1,160})”"""
)
# code that no quotes set off: behind a word that says to write it, or a call
_CODE = re.compile(
    r"(?i)\b(?:use|replaced? (?:by|with)|should be|to be|written as|consider|prefer|write|with|instead of)(?: using)? ([^\s'\"`‘“][^`‘“\n]{1,80}?)(?=,? (?:instead|rather than|in place of)\b| at \S{1,200} line \d|[.;:]?\s*$|[;,] )"
    r"|(?<![\w.'\"`])([a-z_][\w.]{1,80}\([^()\n]{0,60}\))"
)
_MARK = re.compile(
    r"(?i)\b(missing|expect(?:ed|ing)?|(?:unexpected )?token|character|unmatched) ([()\[\]{};:,])(?=[\s.,]|$)"
)
_PLAIN = re.compile(r"""[^\s'"`‘’“”(),;\[\]{}<>|│]{1,80}|[<>=!|&]{2,3}""")
_QUOTE = re.compile(r"\s{0,2}[`'\"‘“]")
IDENTIFIER = re.compile(r"[^\W\d]\w{0,80}")


def list_quoted(line: str) -> Iterator[tuple[str, int, int]]:
    """What stands in quotes, from where to where, and what stands in quotes in it."""
    for match in _QUOTED.finditer(line):
        text = next(group for group in match.groups() if group is not None)
        yield text, match.start(), match.end()
        if len(text) > 2:  # quotes within quotes
            start = match.start() + 1
            for inner, at, end in list_quoted(text):
                yield inner, start + at, start + end
            if re.fullmatch(r"(['\"`\[(]).+['\"`\])]", text):
                yield text[1:-1], match.start(), match.end()


def compile_word(word: str) -> re.Pattern[str]:
    """The word as a whole: none of its ends goes on."""
    before = after = ""
    if re.match(r"[\w$@-]", word):
        before = r"(?<![\w$@-])"
    elif not re.match(r"[\s(){}\[\]'\"]", word):
        before = r"(?<![=!<>+*/&|:;-])"
    if re.search(r"\w$", word):
        after = r"(?![\w-])"
    elif re.search(r"[=!<>+*/&|:-]$", word):
        after = r"(?![=<>&|])"
    return re.compile(f"{before}{re.escape(word)}{after}")


_PARTNERS = {"(": ")", ")": "(", "[": "]", "]": "[", "{": "}", "}": "{"}


def _list_phrases(line: str) -> Iterator[tuple[str, int, int, bool]]:
    """Code that no quotes set off, from where to where, and whether a word before says to write it."""
    for match in _CODE.finditer(line):
        text = match[1] or match[2]
        if re.search(r"[^\w\s,-]", text) and len(text) > 3:
            yield text, match.start(1 if match[1] else 2), match.end(), bool(match[1])


def _list_marks(line: str) -> Iterator[tuple[str, bool]]:
    """Marks that no quotes set off, and whether they are too much."""
    for match in _MARK.finditer(line):
        yield match[2], match[1].lower() not in {"missing", "expect", "expected", "expecting"}


def list_offered_words(lines: Sequence[tuple[int, str]], near: int) -> list[OfferedWord]:
    """Each word once, as it is offered best, for the place that line `near` names; `lines` with their numbers."""
    table = load_table()
    found: dict[str, OfferedWord] = {}

    def add(word: OfferedWord) -> None:
        best = found.get(word.text)
        if best is None or (word.cued, word.quoted) > (best.cued, best.quoted):
            found[word.text] = word

    names: Mapping[str, Sequence[str]] = table["character"]
    for at, line in lines:
        far = abs(at - near)
        for text, start, end in list_quoted(line):
            cued, refused = _judge_word(line, start, end)
            cued = cued or (not refused and not line[:start].strip())
            add(OfferedWord(text, True, cued, at, far, refused))
            if partner := _PARTNERS.get(text):
                add(OfferedWord(partner, True, False, at, far, named=True))
        for text, start, end, is_asked in _list_phrases(line):
            cued, refused = _judge_word(line, start, end, is_bare=True)
            cued = cued or is_asked
            add(OfferedWord(text, cued or refused, cued, at, far, refused and not is_asked))
        for mark, is_wrong in _list_marks(line):
            add(OfferedWord(mark, True, not is_wrong, at, far, is_wrong))
        bare = _QUOTED.sub(lambda m: " " * len(m[0]), line)
        for match in _PLAIN.finditer(bare):
            text = match[0].strip(".:?!,")
            if not text or "://" in text or re.search(r":\d|^/", text):
                continue
            cued, refused = _judge_word(line, match.start(), match.end(), is_bare=True)
            cued = cued or line.strip() == text
            if text in table["little_words"] and not cued:
                continue
            add(OfferedWord(text, False, cued, at, far, refused))
            name = "" if _QUOTE.match(line, match.end()) else text.lower()
            for character in names.get(name, names.get(name.rstrip("s"), ())):
                add(OfferedWord(character, True, True, at, far, named=True))
    return sorted(found.values(), key=weigh_word)[:_MOST_WORDS]


def _judge_word(line: str, start: int, end: int, *, is_bare: bool = False) -> tuple[bool, bool]:
    """Whether the words beside it say that it is the one to write, and whether that it is wrong."""
    table = load_table()
    before, after = line[max(0, start - _NEW_CUE_WINDOW) : start], line[end : end + 30]
    if re.match(table["refused_behind"], after):
        return False, True
    lead = line[max(0, start - 300) : start]
    if (
        re.search(table["cue_before"], before)
        or re.match(table["cue_behind"], after)
        or re.search(table["cue_of_list"], lead)
    ):
        return True, False
    is_refused = bool(re.search(table["refused"], before))
    is_cued = not is_bare and not is_refused and re.search(table["cue_of_quoted"], before)
    return bool(is_cued), is_refused


def weigh_word(word: OfferedWord) -> float:
    """How little speaks for a word: from nought."""
    weight = 0.0 if word.cued else 0.5
    weight += 0.0 if word.quoted else 0.5
    weight += 0.6 if word.refused else 0.2 * min(word.text.count(" "), 2)
    return weight + (0.0 if word.far < 4 else 0.3 if word.far < 10 else 0.9)


@cache
def load_table() -> dict[str, Any]:
    """The words of messages that say something of another, and what is known of files and names."""
    table = tomllib.loads((files("regreen.fixers") / "recipes/small_edits.toml").read_text())
    table["keywords"] = table["keywords"].split()
    table["little_words"] = frozenset(table["little_words"].split())
    return table
