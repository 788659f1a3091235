"""A suggestion is shown only when it can be committed as it stands and the file still parses."""

from __future__ import annotations

import json
import re
import tomllib

from regreen.codebase import inert
from regreen.codebase.diff import FileChange, apply_suggestion
from regreen.codebase.language import language_of
from regreen.codebase.python_code import syntax_tree

LONGEST = 5
_LONGEST_TEXT = 1000
_COMMAND = re.compile(r"^[ \t]*/[A-Za-z]", re.MULTILINE)
_ACTS = re.compile(
    r"://|\b(?:import|require|include|__import__|importlib|eval|exec|compile|execfile|system|popen|spawn\w*|fork|subprocess"
    r"|child_process|socket|urlopen|urllib|requests|httpx?|fetch|curl|wget|netcat|nc|ssh|base64|b64decode|fromhex|pickle"
    r"|loads|marshal|ctypes|getattr|setattr|globals|environ|getenv|process\.env|chmod|rmtree|unlink|powershell|bash|sh)\b"
)


def sound(suggestion: str, file: FileChange, text: str, start: int, line: int) -> str | None:
    """The suggestion, mended where it repeats its neighbours; None where it must not be shown."""
    rows = text.split("\n")
    if not file.can_suggest(start, line) or line > len(rows) or line - start >= LONGEST:
        return None  # what takes more lines away than it may bring is no small mend either
    new = suggestion.removesuffix("\n").split("\n") if suggestion else []
    new = _without_neighbours(new, rows, start, line)
    old = [x.removesuffix("\r") for x in rows[start - 1 : line]]
    if new == old or len(new) > LONGEST:
        return None
    mended = "\n".join(new)
    after = apply_suggestion(text, start, line, mended)
    if after is None or (parses(file.path, text) and not parses(file.path, after)):
        return None
    return mended


def decent(suggestion: str, replaced: str) -> bool:
    """Whether a model's suggestion brings nothing that a quick glance could miss: one click commits it.

    Hidden characters, addresses, and names that run, load or send something only where the replaced lines had them.
    Nor a line that some bot would take for a command: not every bot knows what a code fence is.
    """
    if inert.seen(suggestion) != suggestion or len(suggestion) > _LONGEST_TEXT:
        return False
    if _COMMAND.search(suggestion):
        return False
    had = set(_ACTS.findall(replaced.lower()))
    return all(word in had for word in _ACTS.findall(suggestion.lower()))


def parses(path: str, text: str) -> bool:
    """Whether the file is well-formed, as far as that can be told for its kind; True where it cannot."""
    try:
        if language_of(path) == "python":
            syntax_tree(text.encode("utf-8", "surrogateescape"))
        elif path.endswith(".json"):
            json.loads(text)
        elif path.endswith(".toml"):
            tomllib.loads(text)
        elif path.endswith((".yml", ".yaml")):
            _parse_yaml(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _parse_yaml(text: str) -> None:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        list(YAML(typ="safe", pure=True).parse(text))
    except YAMLError as error:
        raise ValueError(str(error)) from error


def _without_neighbours(new: list[str], rows: list[str], start: int, line: int) -> list[str]:
    """Drop a first or last line that only repeats the line above or below: committed, it would be doubled."""
    above = rows[start - 2].removesuffix("\r") if start >= 2 else None
    below = rows[line].removesuffix("\r") if line < len(rows) else None
    old = [x.removesuffix("\r") for x in rows[start - 1 : line]]
    if (
        len(new) > 1
        and above is not None
        and above.strip()
        and new[0] == above
        and new[0] != old[0]
    ):
        new = new[1:]
    if (
        len(new) > 1
        and below is not None
        and below.strip()
        and new[-1] == below
        and new[-1] != old[-1]
    ):
        new = new[:-1]
    return new
