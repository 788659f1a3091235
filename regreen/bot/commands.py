"""Slash-commands: their syntax, and the permission that each needs. Pure."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Literal, get_args

from markdown_it import MarkdownIt

from regreen.domain.github import PERMISSION_LEVELS, Permission

CommandName = Literal[
    "review",
    "fix",
    "bisect",
    "why",
    "prove",
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
COMMAND_NAMES: tuple[CommandName, ...] = get_args(CommandName)

COMMAND_USAGE: Mapping[CommandName, str] = MappingProxyType(
    {
        "review": "review [full]",
        "fix": "fix [hint]",
        "bisect": 'bisect [good=REV] [bad=REV] [test="CMD"] [slower=X]',
        "why": "why",
        "prove": "prove",
        "test": "test [path]",
        "explain": "explain",
        "ask": "ask QUESTION",
        "approve": "approve [SHA]",
        "dismiss": "dismiss ID [reason]",
        "cancel": "cancel",
        "retry": "retry",
        "config": "config",
        "stats": "stats",
        "help": "help",
    }
)

COMMAND_HELP: Mapping[CommandName, str] = MappingProxyType(
    {
        "review": "review the newest commits; `full` reviews the whole pull request again",
        "fix": "repair the failing check and open the patch as a draft; a hint in words helps the model",
        "bisect": 'find the commit that broke a test, such as `test="pytest tests/test_x.py"`',
        "why": "say who caused the failing check: this change, main, a flaky test, a package",
        "prove": "say whether the tests of this change prove it, by running them without it",
        "test": "write a test for lines that no test runs (needs a model)",
        "explain": "explain what the change does, or a finding in its thread (needs a model)",
        "ask": "answer a question about the change (needs a model)",
        "approve": "open the patch that is waiting, or let a fork's tests run at this commit",
        "dismiss": "a finding is wrong: never raise it here again",
        "cancel": "stop what is running or waiting here",
        "retry": "run the last failed or cancelled job again",
        "config": "show the effective configuration",
        "stats": "show how often each rule was right in this repository",
        "help": "show this list",
    }
)

# The least permission for a command; where none is given, the repository's `commands.allow` decides.
_MIN_PERMISSIONS: Mapping[CommandName, Permission] = MappingProxyType({"approve": "write"})
RUNS_CODE: frozenset[CommandName] = frozenset({"fix", "bisect", "why", "prove", "test", "approve"})
"""What has a pull request's code run: on a fork's it takes write access, whatever `commands.allow` says."""
_COMMANDS_FOR_ANYONE: frozenset[CommandName] = frozenset({"help"})

# Commands of other bots with the same syntax; Regreen ignores them.
_FOREIGN_WORDS = (
    "lgtm assign unassign cc uncc hold unhold ok-to-test retest label remove-label kind priority "
    "area close reopen lifecycle milestone merge rebase squash shrug tableflip me remind run build "
    "deploy rerun backport cherry-pick cherrypick sig triage gcbrun azp"
)
_FOREIGN_COMMANDS = frozenset(_FOREIGN_WORDS.split())

_REVISION_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/@{}^~+-]{0,199}")
_SHA_PATTERN = re.compile(r"[0-9a-f]{7,64}")
_COMMAND_WORD = re.compile(r"[A-Za-z][A-Za-z-]{0,29}")
_MAX_COMMANDS = 10
_MAX_COMMENT_CHARS = 65_536  # GitHub's own limit
_MARKDOWN_PARSER = MarkdownIt("commonmark").enable("table")
_LINE_MARKER = "\ue000"
"""A private letter, which means nothing in Markdown."""


@dataclass(frozen=True, slots=True)
class Command:
    """One parsed command; `line` is its position among the comment's commands."""

    name: CommandName
    text: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    line: int = 0


@dataclass(frozen=True, slots=True)
class UnclearCommand:
    """Text that looks like a command but is not, with a suggestion."""

    said: str
    problem: str
    line: int = 0


def parse_commands(body: str, prefix: str = "/") -> tuple[Command | UnclearCommand, ...]:
    """The commands of a comment, in order: one on each line, outside code and quotations, ten at most."""
    commands: list[Command | UnclearCommand] = []
    for text in _find_plain_lines(body, prefix):
        command = _parse_command(text[len(prefix) :].strip(), prefix, len(commands))
        if command is not None and len(commands) < _MAX_COMMANDS:
            commands.append(command)
    return tuple(commands)


def may_give_command(
    name: CommandName, has: Permission, allow: Permission, *, fork: bool = False
) -> bool:
    """Whether somebody with permission `has` may give the command under the configured `allow`.

    `fork`: the command is about a fork's pull request.
    """
    if name in _COMMANDS_FOR_ANYONE:
        return True
    return PERMISSION_LEVELS.index(has) >= PERMISSION_LEVELS.index(
        required_permission(name, allow, fork=fork)
    )


def required_permission(name: CommandName, allow: Permission, *, fork: bool = False) -> Permission:
    """The permission that the command needs under the configured `allow`; some always need more."""
    floor = "write" if fork and name in RUNS_CODE else _MIN_PERMISSIONS.get(name, "none")
    return max(allow, floor, key=PERMISSION_LEVELS.index)


def _find_plain_lines(body: str, prefix: str) -> Iterator[str]:
    """The lines that begin with the prefix and are rendered as text in a paragraph outside quotations and lists."""
    if not any(line.strip().startswith(prefix) for line in body.split("\n")):
        return
    context: dict[str, Any] = {}  # the link definitions that the paragraphs may use
    blocks = _MARKDOWN_PARSER.parse(body[:_MAX_COMMENT_CHARS].replace(_LINE_MARKER, ""), context)
    for opened, inline in pairwise(blocks):
        if opened.type == "paragraph_open" and opened.level == 0:
            yield from _find_shown_lines(
                [line.strip() for line in inline.content.split("\n")], prefix, context
            )


def _find_shown_lines(lines: Sequence[str], prefix: str, context: dict[str, Any]) -> Iterator[str]:
    """A paragraph's lines with the prefix that are not inside a code span, HTML, a link or its title.

    Each line gets a numbered mark; if the mark is rendered as text at the start of a line, the line counts.
    """
    if not any(line.startswith(prefix) for line in lines):
        return
    marked = "\n".join(
        f"{_LINE_MARKER}{number}{_LINE_MARKER}{line}" for number, line in enumerate(lines)
    )
    for token in _MARKDOWN_PARSER.parseInline(marked, context)[0].children or ():
        if token.type == "text" and token.level == 0 and token.content.startswith(_LINE_MARKER):
            line = lines[int(token.content.split(_LINE_MARKER)[1])]
            if line.startswith(prefix):
                yield line


def _parse_command(text: str, prefix: str, line: int) -> Command | UnclearCommand | None:
    word, _, rest = text.partition(" ")
    if not _COMMAND_WORD.fullmatch(word):
        return None
    lower = word.lower()
    name = next((n for n in COMMAND_NAMES if n == lower), None)
    if name is not None:
        return _parse_arguments(name, rest.strip(), prefix, line)
    near = difflib.get_close_matches(lower, COMMAND_NAMES, n=1, cutoff=0.6)
    if near:
        return UnclearCommand(
            text, f"there is no `{prefix}{word}`. Did you mean `{prefix}{near[0]}`?", line
        )
    if lower in _FOREIGN_COMMANDS:
        return None
    return UnclearCommand(
        text, f"there is no `{prefix}{word}`; `{prefix}help` lists what there is", line
    )


def _parse_arguments(
    name: CommandName, rest: str, prefix: str, line: int
) -> Command | UnclearCommand:
    if name == "bisect":
        return _parse_bisect(rest, prefix, line)
    if name == "ask" and not rest:
        return UnclearCommand(name, f"what is the question? `{prefix}{COMMAND_USAGE[name]}`", line)
    if not _arguments_fit(name, rest):
        return _unclear_arguments(name, rest, prefix, line)
    return Command(name, rest[:2000], line=line)


def _arguments_fit(name: CommandName, rest: str) -> bool:
    match name:
        case "ask" | "fix" | "dismiss" | "bisect":
            return True
        case "review":
            return rest in {"", "full"}
        case "test":
            return not (rest.startswith("/") or ".." in rest.split("/") or " " in rest)
        case "approve":
            return not rest or _SHA_PATTERN.fullmatch(rest) is not None
        case "why" | "prove" | "explain" | "cancel" | "retry" | "config" | "stats" | "help":
            return not rest


def _parse_bisect(rest: str, prefix: str, line: int) -> Command | UnclearCommand:
    try:
        words = shlex.split(rest)
    except ValueError:
        return UnclearCommand("bisect", "a quotation mark is not closed", line)
    options: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in {"good", "bad", "test", "slower"} or not value:
            return _unclear_arguments("bisect", word, prefix, line)
        if key == "slower" and not _is_ratio(value):
            return UnclearCommand(
                "bisect", "`slower=` wants a number above 1, such as `slower=1.5`", line
            )
        if key in {"good", "bad"} and not _REVISION_PATTERN.fullmatch(value):
            return UnclearCommand("bisect", f"`{key}=` wants a commit, branch or tag", line)
        options[key] = value
    return Command("bisect", rest, options, line)


def _is_ratio(value: str) -> bool:
    try:
        return 1 < float(value) <= 100
    except ValueError:
        return False


def _unclear_arguments(name: CommandName, rest: str, prefix: str, line: int) -> UnclearCommand:
    shown = rest[:80].replace("`", "'")
    return UnclearCommand(
        name, f"`{shown}` is not understood; it goes `{prefix}{COMMAND_USAGE[name]}`", line
    )
