"""Edits that the error names: the successor of a name that a library or a compiler declares, or the name that it guesses."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from regreen.domain.environments import ReadText
from regreen.domain.models import Failure

_MOST_EDITS = 8
_PLACE = re.compile(
    r'(?:File "|^|[\s(])(?:/work/|\./)?([\w.@/-]{1,200}\.\w{1,6})(?:", line |[:(])(\d{1,6})',
    re.MULTILINE,
)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w{1,80}")


@dataclass(frozen=True, slots=True)
class NamedEdit:
    """A name and what the error says that stands for it now; `is_guess` where it only resembles it."""

    old: str
    new: str
    is_guess: bool


@dataclass(frozen=True, slots=True)
class EditedFiles:
    """Changed files by path, and the edits that were made in them."""

    texts: Mapping[str, str]
    edits: tuple[NamedEdit, ...]


def propose_named_edits(
    output: str, failures: Sequence[Failure], paths: Collection[str], read: ReadText
) -> Iterator[EditedFiles]:
    """The files with the names replaced: in the lines that the failure names, then in the whole of their files."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", output)
    places = find_places(text, failures, paths)
    lines = {path: (read(path) or "").splitlines(keepends=True) for path in places}
    shown = "".join(
        lines[path][number - 1]
        for path, numbers in places.items()
        for number in numbers
        if number <= len(lines[path])
    )
    edits = tuple(dict.fromkeys(_find_edits(text, shown)))[:_MOST_EDITS]
    made: list[Mapping[str, str]] = []
    for everywhere in (False, True):
        changed = {
            path: "".join(
                _apply_edits(line, edits) if everywhere or number in places[path] else line
                for number, line in enumerate(of_file, 1)
            )
            for path, of_file in lines.items()
        }
        changed = {path: now for path, now in changed.items() if now != "".join(lines[path])}
        if changed and changed not in made:
            made.append(changed)
            yield EditedFiles(changed, edits)


def _find_edits(output: str, shown: str) -> Iterator[NamedEdit]:
    for pattern, is_guess in _load_patterns():
        for match in pattern.finditer(output):
            new = match["new"].strip(".")
            old = match.groupdict().get("old")
            line = output[output.rfind("\n", 0, match.start()) + 1 : match.start("new")]
            old = old or next(
                filter(None, (_find_most_alike(new, source) for source in (line, shown))), ""
            )
            if old and old != new:
                yield NamedEdit(old.strip("."), new, is_guess)


def _find_most_alike(name: str, text: str) -> str:
    """The identifier of the text that is most like the name; empty if none is."""
    words = list(dict.fromkeys(_IDENTIFIER.findall(text[-4000:])))
    return next(
        iter(difflib.get_close_matches(name, [one for one in words if one != name], 1, 0.75)), ""
    )


def _apply_edits(line: str, edits: Sequence[NamedEdit]) -> str:
    for edit in edits:
        module, _, name = edit.new.rpartition(".")
        if module and name == edit.old:  # it moved: the import says from where
            line = re.sub(
                rf"^(\s*from )[\w.]+( import \(?{name}\)?\s*)$", rf"\g<1>{module}\g<2>", line
            )
            continue
        old, new = edit.old, edit.new
        if old not in line and old.rpartition(".")[0] == module:
            old, new = old.rpartition(".")[2], name  # the module has another name here
        word = rf"{re.escape(old)}(?!\w)"
        is_attribute = re.search(rf"\.{word}", line)
        line = re.sub(rf"(?<=\.){word}" if is_attribute else rf"(?<![\w.]){word}", new, line)
    return line


def find_places(
    output: str, failures: Sequence[Failure], paths: Collection[str]
) -> dict[str, set[int]]:
    """The lines of tracked files that the failure names."""
    found: dict[str, set[int]] = {}
    named = [(frame.path, frame.line) for failure in failures for frame in failure.frames]
    named += [(failure.path, failure.line) for failure in failures if failure.path and failure.line]
    named += [(match[1], int(match[2])) for match in _PLACE.finditer(output[-200_000:])]
    for path, line in named:
        if path in paths and line:
            found.setdefault(path, set()).add(line)
    return found


@cache
def _load_patterns() -> list[tuple[re.Pattern[str], bool]]:
    document = tomllib.loads((files("regreen.fixers") / "recipes/named_edits.toml").read_text())
    return [(re.compile(row["pattern"]), row.get("guess", False)) for row in document["named_edit"]]
