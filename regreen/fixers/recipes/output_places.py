"""The places that a tool's output names in any common form: a path with a line behind or below it, a line that is shown."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from regreen.code.paths import is_test
from regreen.domain.environments import ReadText
from regreen.fixers.recipes.offered_words import compile_word, list_quoted, load_table

_MOST_PLACES = 8
_MOST_CALLING = 100


@dataclass(frozen=True, slots=True)
class OutputPlace:
    """A line of a tracked file, the column from one (nought if unknown), and the line of the output that names it."""

    path: str
    line: int
    column: int = 0
    at: int = 0


_PATH_WORD = re.compile(r"[\w@~+./-]{1,200}")
_LINE_BEHIND = re.compile(
    r"""["'`)\]]?(?:[:(]|,? [(\[]?(?:on |at )?line |:? line |, )[ ]?(\d{1,6})(?:[ ]?[:,.-][ ]?(?:col(?:umn)? ?)?(\d{1,5}))?"""
)
_LINE_BELOW = re.compile(
    r"(?i)(?:^\s{0,12}|\bline |^L:?[ ]{0,4})(\d{1,6})(?:[:,]? ?(?:col(?:umn)? ?)?(\d{1,5})|(?=[:,\s)\]]|$))"
)
_LINES_BELOW = 40  # a path
_OF_MAKE = re.compile(r"\s{0,8}g?make(?:\[\d{1,3}\])?: ")
GUTTER = re.compile(r"^\s{0,12}(?:[>|│]\s{1,2})?(?:\d{1,6}\s{0,3}[|│:+-]\s?|[|│+]\s)?")


def find_places(said: Sequence[str], paths: Collection[str], read: ReadText) -> list[OutputPlace]:
    """The places that the output names, those of errors first and those in tests last; then lines with its words."""
    placed, mentioned = _read_places(said, paths)
    sources = {path: (read(path) or "").splitlines() for path in [*mentioned][:20]}
    found = placed or [*_find_shown_rows(said, sources)]
    found = sorted(found, key=lambda one: (is_test(one.path), not _SAYS_ERROR.search(said[one.at])))
    calls = [*sources, *(path for path in list_files_with_calls(paths) if path not in sources)]
    more = _find_lines_with_words(said, calls, read, refused_only=bool(found))
    placed_paths = {one.path for one in found}
    whole = [
        OutputPlace(path, 1, 0, at) for path, at in mentioned.items() if path not in placed_paths
    ]
    every = [*found[:_MOST_PLACES], *more, *whole[:_MOST_PLACES]]
    known = {(one.path, one.line): one for one in reversed(every) if one.line}
    first = [one for one in reversed(known.values()) if not _is_generated(one.path)]
    return first[: 2 * _MOST_PLACES]


def _read_places(
    said: Sequence[str], paths: Collection[str]
) -> tuple[list[OutputPlace], dict[str, int]]:
    """The paths with a line behind or below them, and where each path is mentioned first."""
    ends = _index_path_ends(paths)
    places: dict[tuple[str, int], OutputPlace] = {}
    mentioned: dict[str, int] = {}
    current = ""
    for at, line in enumerate(said):
        if _OF_MAKE.match(line):
            continue
        is_placed = False
        for match in _PATH_WORD.finditer(line):
            if path := ends.get(_strip_path(match[0])):
                current = path
                mentioned.setdefault(path, at)
                if behind := _LINE_BEHIND.match(line, match.end()):
                    place = OutputPlace(path, int(behind[1]), int(behind[2] or 0), at)
                    places.setdefault((path, place.line), place)
                    is_placed = True
        below = None if is_placed else _LINE_BELOW.search(line)
        if current and below and at - mentioned[current] < _LINES_BELOW:
            place = OutputPlace(current, int(below[1]), int(below[2] or 0), at)
            places.setdefault((current, place.line), place)
    if not places and len(mentioned) == 1:
        lines = [(at, _LINE_BELOW.search(line)) for at, line in enumerate(said)]
        found = [OutputPlace(current, int(m[1]), int(m[2] or 0), at) for at, m in lines if m]
        return found, mentioned
    return [*places.values()], mentioned


def _find_shown_rows(
    said: Sequence[str], sources: Mapping[str, Sequence[str]]
) -> Iterator[OutputPlace]:
    """The lines of the mentioned files that the output shows."""
    for path, rows in sources.items():
        shown = {row.strip(): number for number, row in enumerate(rows, 1) if len(row.strip()) > 7}
        for at, line in enumerate(said):
            if number := shown.get(GUTTER.sub("", line).strip()):
                yield OutputPlace(path, number, 0, at)


_SAYS_ERROR = re.compile(
    r"(?i)error|warning|fatal|invalid|unknown|expected|missing|should|must|unused"
)


def list_files_with_calls(paths: Collection[str]) -> list[str]:
    """The first files that call checks or configure them."""
    calls = re.compile(load_table()["files_with_calls"])
    found = [path for path in paths if calls.fullmatch(path)]
    return sorted(found, key=lambda path: (path.count("/"), path))[:_MOST_CALLING]


def _is_generated(path: str) -> bool:
    return path.endswith((".lock", "-lock.json", "-lock.yaml", ".min.js", ".svg"))


def _find_lines_with_words(
    said: Sequence[str], paths: Sequence[str], read: ReadText, *, refused_only: bool
) -> Iterator[OutputPlace]:
    """Lines that hold what the output quotes or refuses, in files that it names without a line or that call checks."""
    words = [(m[1], at) for at, line in enumerate(said) for m in _REFUSED_WORD.finditer(line)]
    if not refused_only:
        quoted = [(at, text) for at, line in enumerate(said) for text, *_ in list_quoted(line)]
        words = [*((text, at) for at, text in quoted if len(text) > 2), *words]
    texts = {path: read(path) or "" for path in paths[:120]}
    for word, at in [*dict(reversed(words)).items()][-40:]:
        found = [
            OutputPlace(path, number, 0, at)
            for path, text in texts.items()
            if word in text
            for number, row in enumerate(text.splitlines()[:5000], 1)
            if len(row) < 2000 and compile_word(word).search(row)
        ]
        yield from found if len(found) < 4 else ()


_REFUSED_WORD = re.compile(
    r"(?i)\b(?:unknown|unrecogni[sz]ed|no such|invalid|unsupported|undefined|unexpected)(?: [a-z]{1,20}){0,3}:? ['\"`‘“]?([\w$@./-]{3,80}\w)"
)


def _index_path_ends(paths: Collection[str]) -> dict[str, str]:
    """Each tracked path by each of its ends that can mean no other."""
    ends: dict[str, str | None] = {}
    for path in paths:
        parts = path.split("/")
        for end in accumulate(reversed(parts), lambda rest, part: f"{part}/{rest}"):
            ends[end] = None if end in ends and end != path else path
    return {end: path for end, path in ends.items() if path} | {path: path for path in paths}


def _strip_path(word: str) -> str:
    word = re.sub(r"^/{0,3}(?:work/)?(?:\./)?", "", word)
    return word.rstrip(".:-")
