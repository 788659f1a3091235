"""YAML and TOML that strangers wrote: read within bounds, and why it cannot be read, in words for whoever wrote it."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

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


_TOML_TABLE = re.compile(r"\[\[?[\w.\-\"' ]+\]\]?\s*(?:#.*)?$")
_TOML_ASSIGNMENT = re.compile(r"[\w.\-\"']+\s*=\s*\S")
_SHOWN_CHARACTERS = 60

# What the parser says (its context and its problem), and what that means to somebody who writes the file.
_ERROR_EXPLANATIONS = (
    (
        re.compile(r"cannot start any token"),
        "this character cannot begin a value; quote the value, and indent with spaces, never with tabs",
    ),
    (
        re.compile(r"quoted scalar.{0,40}(?:end of stream|document separator)"),
        "a quote is opened here and never closed",
    ),
    (
        re.compile(r"flow (?:sequence|mapping)"),
        "a `[` or `{` is opened before this and not closed; a `,` may be missing",
    ),
    (
        re.compile(r"mapping values are not allowed"),
        "a `:` where no key can stand; quote the value, or put the key on a line of its own",
    ),
    (re.compile(r"could not find expected ':'"), "a key without its `:`"),
    (
        re.compile(r"expected <block end>|expected '<document start>'"),
        "this line does not go with those above it; see how far it is indented, and whether a `key:` is missing",
    ),
    (
        re.compile(r"undefined alias"),
        "a `*alias` whose `&anchor` is nowhere above; quote the value if the `*` is meant",
    ),
)


MAX_CHARACTERS = 1024 * 1024
MAX_VALUES = 100_000
MAX_DEPTH = 100


class InvalidYaml(Exception):
    """The text cannot be read as YAML; the message says where and why."""


def load_yaml(text: str) -> object:
    """A document that is no workflow as plain values.

    Raises:
        InvalidYaml: it cannot be read.
    """
    try:
        compose_bounded_yaml(text)
        return YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        line, what = locate_fault(text, error)
        message = f"line {line}: {what}"
        raise InvalidYaml(message) from error


def compose_bounded_yaml(text: str) -> Node | None:
    """The document as nodes, small enough to be made into values: aliases are counted each time they are used.

    Raises:
        YAMLError: it is no YAML, or it is larger or nested more deeply than a file that a person writes.
        ValueError: it holds a character or value that YAML does not have.
        RecursionError: the same as too deep.
    """
    if len(text) > MAX_CHARACTERS:
        message = f"it may have {MAX_CHARACTERS} characters and has {len(text)}"
        raise MarkedYAMLError(problem=message)
    reader = YAML(typ="safe", pure=True)
    reader.max_depth = MAX_DEPTH
    document: Node | None = reader.compose(text)
    if document is not None and _count_values(document, {}, 0) > MAX_VALUES:
        raise MarkedYAMLError(problem="too large, as its aliases repeat what they stand for")
    return document


def _count_values(node: Node, known: dict[int, int], depth: int) -> int:
    """How many values a node stands for."""
    if isinstance(node, ScalarNode):
        return 1
    if id(node) not in known:
        if depth > MAX_DEPTH:
            raise MarkedYAMLError(problem="nested too deeply", problem_mark=node.start_mark)
        known[id(node)] = MAX_VALUES + 1  # what it counts for where it holds itself
        below = node.value
        if isinstance(node, MappingNode):
            below = [value for _, value in node.value]
            for key, _ in node.value:
                if not isinstance(key, ScalarNode):
                    mark = key.start_mark
                    raise MarkedYAMLError(problem="a key must be a plain word", problem_mark=mark)
        known[id(node)] = 1 + sum(_count_values(one, known, depth + 1) for one in below)
    return known[id(node)]


def locate_fault(text: str, error: YAMLError | ValueError | RecursionError) -> tuple[int, str]:
    """The line, counted from 1, and what is wrong there.

    Args:
        text: what was read.
        error: what the reader said of it.
    """
    lines = text.splitlines()
    if _is_toml(lines):
        return 1, "not YAML but TOML or INI; write `key: value`"
    if isinstance(error, RecursionError):
        return 1, "not YAML: nested too deeply"
    if not isinstance(error, MarkedYAMLError):
        binary = re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", text)
        error_text = (str(error).splitlines() or [type(error).__name__])[0]
        if binary is None:
            return 1, f"not YAML: {error_text}"
        line = text.count("\n", 0, binary.start()) + 1
        return line, f"not YAML: a control character ({binary[0]!r}); is this a text file?"
    error_text = " ".join(part for part in (error.context, error.problem) if part)
    meant = next(
        (words for pattern, words in _ERROR_EXPLANATIONS if pattern.search(error_text)), error_text
    )
    mark = error.problem_mark or error.context_mark
    if meant.startswith("a quote") and error.context_mark is not None:
        mark = error.context_mark
    at = mark.line if mark is not None else 0
    shown = lines[at].strip().replace("`", "'")[:_SHOWN_CHARACTERS] if at < len(lines) else ""
    return at + 1, f"not YAML: {meant}" + (f" (`{shown}`)" if shown else "")


def _is_toml(lines: list[str]) -> bool:
    content = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    begins = bool(content) and (_TOML_TABLE.match(content[0]) or _TOML_ASSIGNMENT.match(content[0]))
    return bool(begins) and any(map(_TOML_ASSIGNMENT.match, content))
