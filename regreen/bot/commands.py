"""Slash-commands: what they look like, and who may give them. Pure."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, get_args

from regreen.forge import PERMISSIONS, Permission

Name = Literal[
    "review",
    "fix",
    "bisect",
    "test",
    "explain",
    "ask",
    "approve",
    "dismiss",
    "cancel",
    "retry",
    "config",
    "stats",
    "help",
]
NAMES: tuple[Name, ...] = get_args(Name)

USAGE: Mapping[Name, str] = MappingProxyType(
    {
        "review": "review [full]",
        "fix": "fix [hint]",
        "bisect": 'bisect [good=REV] [bad=REV] [test="CMD"]',
        "test": "test [path]",
        "explain": "explain",
        "ask": "ask QUESTION",
        "approve": "approve",
        "dismiss": "dismiss ID [reason]",
        "cancel": "cancel",
        "retry": "retry",
        "config": "config",
        "stats": "stats",
        "help": "help",
    }
)

# What somebody needs at least; where it is not said, what the repository's `commands.allow` says.
_FLOOR: Mapping[Name, Permission] = MappingProxyType({"approve": "write"})
_FOR_ANYONE: frozenset[Name] = frozenset({"help"})

# Other bots' commands that people write in the same way: none of our business.
_FOREIGN_WORDS = (
    "lgtm assign unassign cc uncc hold unhold ok-to-test retest label remove-label kind priority "
    "area close reopen lifecycle milestone merge rebase squash shrug tableflip me remind run build "
    "deploy rerun backport cherry-pick cherrypick sig triage gcbrun azp"
)
_FOREIGN = frozenset(_FOREIGN_WORDS.split())

_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/@{}^~+-]{0,199}")
_WORD = re.compile(r"[A-Za-z][A-Za-z-]{0,29}")
_MOST = 10


@dataclass(frozen=True, slots=True)
class Command:
    """One command as somebody gave it; `line` is its place among the comment's commands."""

    name: Name
    text: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    line: int = 0


@dataclass(frozen=True, slots=True)
class Unclear:
    """What looks like a command and is none, with what would have been right."""

    said: str
    problem: str
    line: int = 0


def commands_in(body: str, prefix: str = "/") -> tuple[Command | Unclear, ...]:
    """The commands of a comment, in order: one a line, outside code and quotations, ten at most."""
    found: list[Command | Unclear] = []
    for text in _plain_lines(body):
        if not text.startswith(prefix):
            continue
        command = _command(text[len(prefix) :].strip(), prefix, len(found))
        if command is not None and len(found) < _MOST:
            found.append(command)
    return tuple(found)


def may(name: Name, has: Permission, allow: Permission) -> bool:
    """The permission table: whether somebody with `has` may give the command where `allow` is configured."""
    if name in _FOR_ANYONE:
        return True
    return PERMISSIONS.index(has) >= PERMISSIONS.index(needed(name, allow))


def needed(name: Name, allow: Permission) -> Permission:
    """The permission that the command takes where `allow` is configured: some take more in any case."""
    return max(allow, _FLOOR.get(name, "none"), key=PERMISSIONS.index)


def _plain_lines(body: str) -> Iterator[str]:
    """The lines that are neither code, nor a quotation, nor an HTML comment."""
    fence = ""
    in_comment = False
    for line in body.replace("\r\n", "\n").split("\n"):
        text = line.strip()
        if in_comment:
            in_comment = "-->" not in text
        elif fence:
            fence = "" if _closes(text, fence) else fence
        elif text.startswith(("```", "~~~")):
            fence = text[: len(text) - len(text.lstrip(text[0]))]
        elif text.startswith("<!--"):
            in_comment = "-->" not in text
        elif text and not text.startswith(">") and not line.startswith(("    ", "\t")):
            yield text


def _closes(text: str, fence: str) -> bool:
    return len(text) >= len(fence) and not text.strip(fence[0])


def _command(said: str, prefix: str, line: int) -> Command | Unclear | None:
    word, _, rest = said.partition(" ")
    if not _WORD.fullmatch(word):
        return None
    lower = word.lower()
    name = next((n for n in NAMES if n == lower), None)
    if name is not None:
        return _arguments(name, rest.strip(), prefix, line)
    near = difflib.get_close_matches(lower, NAMES, n=1, cutoff=0.6)
    if near:
        return Unclear(
            said, f"there is no `{prefix}{word}`; did you mean `{prefix}{near[0]}`?", line
        )
    if lower in _FOREIGN:
        return None
    return Unclear(said, f"there is no `{prefix}{word}`; `{prefix}help` lists what there is", line)


def _arguments(name: Name, rest: str, prefix: str, line: int) -> Command | Unclear:
    if name == "bisect":
        return _bisect(rest, prefix, line)
    if name == "ask" and not rest:
        return Unclear(name, f"what is the question? `{prefix}{USAGE[name]}`", line)
    if not _fits(name, rest):
        return _wrong(name, rest, prefix, line)
    return Command(name, rest[:2000], line=line)


def _fits(name: Name, rest: str) -> bool:
    match name:
        case "ask" | "fix" | "dismiss" | "bisect":
            return True
        case "review":
            return rest in {"", "full"}
        case "test":
            return not (rest.startswith("/") or ".." in rest.split("/") or " " in rest)
        case "explain" | "approve" | "cancel" | "retry" | "config" | "stats" | "help":
            return not rest


def _bisect(rest: str, prefix: str, line: int) -> Command | Unclear:
    try:
        words = shlex.split(rest)
    except ValueError:
        return Unclear("bisect", "a quotation mark is not closed", line)
    options: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in {"good", "bad", "test"} or not value:
            return _wrong("bisect", word, prefix, line)
        if key != "test" and not _REVISION.fullmatch(value):
            return Unclear("bisect", f"`{key}=` wants a commit, branch or tag", line)
        options[key] = value
    return Command("bisect", rest, options, line)


def _wrong(name: Name, rest: str, prefix: str, line: int) -> Unclear:
    shown = rest[:80].replace("`", "'")
    return Unclear(name, f"`{shown}` is not understood; it goes `{prefix}{USAGE[name]}`", line)
