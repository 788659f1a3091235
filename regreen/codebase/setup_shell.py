"""Takes a shell line apart into the commands in it; what it cannot be sure of, it says so."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Sequence

_SEPARATORS = frozenset({"&&", "||", ";", "|", "&", ";;", "(", ")", "{", "}", "\n"})
_THROWN_AWAY = re.compile(r"(?:[12&]?>>?\s*/dev/null|2>&1)")
_QUOTED = re.compile(r"'[^']*'|\"[^\"`$]*\"")
# What makes a line mean something else than its words: expansions, redirections, globs, compound commands.
_OPAQUE = re.compile(r"[`$<>*?]|\[\[")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)


def simple_commands(setup: str) -> list[list[str] | None]:
    """The commands of a shell line, each as its words; None for one that we do not understand."""
    joined = setup.replace("\\\n", " ")
    found: list[list[str] | None] = []
    for line in joined.splitlines():
        found.extend(_of_line(line))
    return found


def _of_line(line: str) -> list[list[str] | None]:
    line = _THROWN_AWAY.sub(" ", line)
    if _OPAQUE.search(_QUOTED.sub("''", line)):
        return [None]
    lexer = shlex.shlex(line, posix=True, punctuation_chars="();|&")
    lexer.whitespace_split = True
    lexer.commenters = ""  # it would cut `git+https://x#egg=y`
    try:
        words = list(lexer)
    except ValueError:  # a quote that is not closed
        return [None]
    commands: list[list[str] | None] = []
    current: list[str] = []
    for word in [*words, ";"]:
        if word in _SEPARATORS or set(word) <= set("();|&"):
            if current:
                commands.append(current)
            current = []
        elif word.startswith("#"):
            break
        else:
            current.append(word)
    if current:
        commands.append(current)
    return commands


def rough_commands(line: str) -> list[list[str]]:
    """The words of a line that means more than its words say: what stands in it, if not what comes of it."""
    parts = re.split(r"&&|\|\||[;|&`()]|\$\(|\b(?:then|do|else)\b", line)
    found = []
    for part in parts:
        plain = re.sub(r"(?:(?<!\S)\d)?>>?\s*\S+|<\s*[^=\s\d]\S*", " ", _THROWN_AWAY.sub(" ", part))
        try:
            words = shlex.split(plain)
        except ValueError:  # a quote that is not closed
            words = plain.replace("'", " ").replace('"', " ").split()
        if words:
            found.append(words)
    return found


def tool_of(argv: Sequence[str]) -> tuple[str, list[str]]:
    """The program's plain name and its arguments: `python3 -m pip x` is pip's x."""
    if not argv:
        return ":", []
    name = posixpath.basename(argv[0]) if argv[0].startswith("/") else argv[0]
    name, arguments = _without_version(name), list(argv[1:])
    if name == "python" and arguments[:1] == ["-m"] and len(arguments) > 1:
        name, arguments = _without_version(arguments[1]), arguments[2:]
    if name == "uv" and arguments[:1] == ["pip"]:
        name, arguments = "pip", arguments[1:]
    return name, arguments


def _without_version(name: str) -> str:
    return re.sub(r"^(pip|python)3(\.\d+)?$", r"\1", name)


def without_prefix(words: Sequence[str]) -> list[str]:
    """The command itself, without `A=1`, `sudo`, `env A=1`, `time` before it."""
    argv = list(words)
    while argv and (
        _ASSIGNMENT.fullmatch(argv[0]) or argv[0] in {"sudo", "env", "time", "command", "exec"}
    ):
        del argv[0]
    return argv
