"""Tells which lines of a script install or fetch something: those need the network phase."""

from __future__ import annotations

import itertools
import re

from regreen.shell.parse import parse_script
from regreen.shell.tools import (
    load_tools,
    normalise_program,
    resolve_module_program,
    split_wrappers,
)

COMPOUND_START = re.compile(
    r"^[ \t]*+(?:if|for|while|until|case|function|\{|\(|select)\b|^[ \t]*+\w++\s*+\(\)|<<|^[ \t]*+(?:fi|done|esac)\b",
    re.MULTILINE,
)
KEEPS_STATE = re.compile(
    r"^\s*(?:cd|pushd|popd|export|source|\.|set|unset|umask|ulimit|shopt|alias|\w+=\S*\s*$)(?:\s|$)|^\s*\w+="
)


def installs_anything(script: str, depth: int = 0) -> bool:
    """Whether a script installs or fetches anything, itself or in text that it hands to another shell."""
    if depth >= _MAX_DEPTH:
        return False
    parsed = parse_script(script)
    commands = [*parsed.commands]
    if not parsed.is_complete:  # a line out of a compound command, mostly
        for line in script.splitlines():
            commands += parse_script(_OPENING_WORDS.sub("", line)).commands
    documents = (
        redirect.word.text
        for command in commands
        if normalise_program((command.arguments or [""])[0]) in load_tools().programs["shells"]
        for redirect in command.redirects
        if redirect.operator in {"<<", "<<<"}
    )
    return any(_call_installs(command.arguments, depth) for command in commands) or any(
        installs_anything(document, depth + 1) for document in documents
    )


def split_leading_installs(script: str) -> tuple[str, str]:
    """The calls that install at the beginning of `A && B && C`, and the rest, which is not empty: ("", script) without any.

    A `cd` before them is in both.
    """
    parsed = parse_script(script)
    begins, start = 0, 0  # where the installs begin, and what follows them
    for command, following in itertools.pairwise(parsed.commands if parsed.is_complete else ()):
        between = parsed.source[command.end : following.start].strip()
        is_step = command.start == start and not command.redirects and not command.function
        if between != b"&&" or not is_step:
            break
        if start == begins and command.arguments[:1] == ["cd"]:
            begins = following.start
        elif not _call_installs(command.arguments, 0):
            break
        start = following.start
    if start == begins:
        return "", script
    place, installs, rest = (
        part.decode()
        for part in (parsed.source[:begins], parsed.source[begins:start], parsed.source[start:])
    )
    installs = installs.strip().removesuffix("&&").rstrip()
    return f"({place}{installs})" if place else installs, f"{place}{rest}"


_OPENING_WORDS = re.compile(
    r"^\s*(?:(?:\{|\(|if|elif|while|until|then|else|do|!|[\w*.|-]{1,80}\)|(?:fi|done|esac|\}|\))\s*(?:&&|\|\||[;|]))\s+){1,9}"
)


def _call_installs(words: list[str], depth: int) -> bool:
    """Whether a call, or one that it wraps, is in the table of tools that install or fetch."""
    tools = load_tools()
    _, call = split_wrappers(words)
    if not call or call[0] in _PRINTERS:
        return False
    found = [_is_install_call(call)]
    for at, word in enumerate(call[:_MAX_WORDS]):
        if " " in word and not word.startswith(("$(", "`")):
            found.append(installs_anything(word, depth + 1))
        elif at and (
            normalise_program(word) == "python"
            or tools.installs.get(normalise_program(word), [""]) != [""]
        ):
            found.append(_is_install_call(call[at:]))
    return any(found)


def _is_install_call(call: list[str]) -> bool:
    if re.match(r"\$\{?\w{0,40}(?:pip|PIP)\w{0,40}\}?$", call[0]):
        call = ["pip", *call[1:]]
    elif call[0].startswith("$"):
        call = ["python", *call[1:]]
    name, arguments = resolve_module_program(call)
    tools = load_tools()
    if name in tools.programs["installing_modules"]:
        return normalise_program(call[0]) == "python"
    plain = [word for word in arguments if not word.startswith("-")]
    rows = [row.split() for row in tools.installs.get(name.rsplit("/", 1)[-1], ())]
    return (name == "yarn" and not plain) or any(
        plain[: len(row)] == row or (row and _is_option_or_prefix(row[0], arguments))
        for row in rows
    )


def _is_option_or_prefix(row: str, arguments: list[str]) -> bool:
    is_anywhere = row.startswith("-") or row.endswith(":")
    return is_anywhere and any(word.startswith(row) for word in arguments)


_PRINTERS = frozenset(
    {"echo", "printf", "cd", "grep", "which", "type", "export", "rm", "ls", "test", "["}
)
_MAX_WORDS = 200
_MAX_DEPTH = 3


def join_continued_lines(script: str) -> list[str]:
    """Lines, those joined by a backslash as one."""
    found: list[str] = []
    open_line = False
    for line in script.splitlines():
        if open_line and found:
            found[-1] += "\n" + line
        elif line.strip():
            found.append(line)
        open_line = line.endswith("\\")
    return found


def find_install_lines(script: str) -> list[str]:
    """The lines of a called script that install; each can be run by itself.

    What the shell keeps between lines (a directory, a variable) comes along; compound commands are left out, for
    half of one is none.
    """
    found: list[str] = []
    depth = 0
    for line in join_continued_lines(script):
        bare = line.strip().lstrip("@-+").strip()
        depth += len(_BLOCK_START.findall(bare)) - len(_BLOCK_END.findall(bare))
        if bare.startswith("#"):
            continue
        alone = installs_anything(bare) and not COMPOUND_START.search(bare)
        if alone or (depth <= 0 and _STATE_LINE.match(bare)):
            found.append(bare)
    return found if any(installs_anything(line) for line in found) else []


_BLOCK_START = re.compile(
    r"(?:^|[;&|]\s*|\bthen\s+|\belse\s+|\bdo\s+)(?:if|for|while|until|case|select)\b"
)
_BLOCK_END = re.compile(r"(?:^|[;&|]\s*)(?:fi|done|esac)\b")
_STATE_LINE = re.compile(r"^(?:export\s+)?\w+=(?!.*(?:\$\(|`))|^cd\s+\S+$")
