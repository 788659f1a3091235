"""Takes a shell script apart into simple commands, with the grammar of tree-sitter-bash. Nothing is run."""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tree_sitter

MAX_SCRIPT_CHARACTERS = 200_000
_MAX_NESTING = 60
_MAX_PIPES = 1_000
_MAX_PARSE_SECONDS = 2.0
# What a script of plain commands consists of; compound commands, expansions and real redirections are not among it.
_PLAIN_NODES = frozenset(
    {
        "program",
        "list",
        "pipeline",
        "command",
        "command_name",
        "word",
        "number",
        "string",
        "string_content",
        "raw_string",
        "concatenation",
        "subshell",
        "compound_statement",
        "variable_assignment",
        "variable_assignments",
        "variable_name",
        "declaration_command",
        "unset_command",
        "comment",
        "redirected_statement",
        "file_redirect",
        "file_descriptor",
    }
)
_DISCARDED_OUTPUT = re.compile(r"(?:[012&]?>>?\s*/dev/null|2>&1)")
_COMMAND_NODES = frozenset(
    {"command", "declaration_command", "variable_assignment", "variable_assignments"}
)
_REDIRECT_NODES = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command.

    Attributes:
        text: the word without its quotes; an expansion stays as it is written.
        source: the word as it is written.
        is_known: no expansion, glob or brace makes the word anything but `text`.
    """

    text: str
    source: str
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirection: `operator` is `>`, `>>`, `<`, `<<` (then `word` is the document) or `<<<`."""

    operator: str
    word: Word


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A simple command; `words` begins with its assignments. `start` and `end` are byte offsets in the script.

    Attributes:
        piped_from: the command whose output this command reads.
        function: the name of the function whose body holds the command.
    """

    words: tuple[Word, ...]
    start: int
    end: int
    redirects: tuple[Redirect, ...] = ()
    piped_from: ShellCommand | None = None
    function: str = ""

    @property
    def arguments(self) -> list[str]:
        """The texts of the words behind the assignments."""
        words = [word.text for word in self.words]
        return words[_count_assignments(words) :]

    def format_words(self, words: Sequence[str]) -> str:
        """Write the words as a line of shell; words of the command keep the form they have in it."""
        written = {word.text: word.source for word in self.words}
        return " ".join(written.get(word, shlex.quote(word)) for word in words)


@dataclass(frozen=True, slots=True)
class Script:
    """A parsed script.

    Attributes:
        source: the script that the offsets of the commands count in, as UTF-8.
        commands: every simple command in the order of the text; those in a substitution follow their command.
        is_plain: the script holds nothing but commands of known words, one after the other.
        is_complete: the grammar describes the whole script.
    """

    source: bytes
    commands: tuple[ShellCommand, ...]
    is_plain: bool
    is_complete: bool


ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=(.*)", re.DOTALL)


def parse_script(script: str) -> Script:
    """Parse a script of bash or sh; of one above `MAX_SCRIPT_CHARACTERS` only the beginning is read."""
    text = script[:MAX_SCRIPT_CHARACTERS].replace("\r\n", "\n")
    reader = _ScriptReader(text.encode("utf-8", "replace"))
    root = _parse_within_limits(reader.source)
    if root is None:
        return Script(reader.source, (), is_plain=False, is_complete=False)
    reader.read_node(root, None, "", 0)
    is_complete = (
        not root.has_error and not reader.is_too_deep and len(script) <= MAX_SCRIPT_CHARACTERS
    )
    commands = tuple(sorted(reader.commands, key=lambda command: command.start))
    return Script(reader.source, commands, is_complete and reader.is_plain, is_complete)


def find_commands(script: str) -> Iterator[ShellCommand]:
    """The commands of a script that run a program, those in substitutions included.

    Of a script that the grammar does not describe as a whole, the lines are read that it does describe.
    """
    whole = parse_script(script)
    scripts = [whole]
    if not whole.is_complete:
        lines = script[:MAX_SCRIPT_CHARACTERS].replace("\\\n", " ").splitlines()
        scripts = [part for part in map(parse_script, lines) if part.is_complete]
    for part in scripts:
        yield from (command for command in part.commands if command.arguments)


_ASCII_LETTERS = bytes(code if code < 0x80 else ord("x") for code in range(256))


def _parse_within_limits(source: bytes) -> tree_sitter.Node | None:
    """The root of the syntax tree; None for a script on which the parser takes too long.

    Recovery from errors takes time and memory that grow with the square of the pipes and brackets.
    """
    if source.count(b"|") > _MAX_PIPES:
        return None
    # The grammar's scanner reads outside its tables at characters such as U+F0000 and ends the process. To a
    # shell, all characters beyond ASCII are parts of words; one letter for each byte keeps the offsets.
    text = source.translate(_ASCII_LETTERS)
    end = time.process_time() + _MAX_PARSE_SECONDS
    parser = _bash_parser()
    try:
        return parser.parse(
            lambda offset, _: text[offset : offset + 4096],
            encoding="utf8",
            progress_callback=lambda _offset, _error: time.process_time() > end,
        ).root_node
    except ValueError:  # the callback ended it
        parser.reset()
        return None


@cache
def _bash_parser() -> tree_sitter.Parser:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _count_assignments(words: Sequence[str]) -> int:
    count = 0
    while count < len(words) and ASSIGNMENT.fullmatch(words[count]):
        count += 1
    return count


class _ScriptReader:
    """Collects the commands of a syntax tree."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.commands: list[ShellCommand] = []
        self.is_plain = True
        self.is_too_deep = False

    def read_node(
        self, node: tree_sitter.Node, piped_from: ShellCommand | None, function: str, depth: int
    ) -> ShellCommand | None:
        """Collect the commands in the node; returns the last of them that the node itself runs."""
        if depth > _MAX_NESTING:
            self.is_too_deep = True
            return None
        if node.is_named and node.type not in _PLAIN_NODES:
            self.is_plain = False
        if node.type in _COMMAND_NODES:
            return self._read_command(node, (), piped_from, function, depth)
        if node.type == "redirected_statement":
            return self._read_redirected(node, piped_from, function, depth)
        if node.type == "function_definition":
            name = node.child_by_field_name("name")
            function = self._source_of(name) if name is not None else function
        last = piped_from if node.type != "pipeline" else None
        first_input = piped_from
        for child in node.named_children:
            upstream = (first_input or last) if node.type == "pipeline" else piped_from
            found = self.read_node(child, upstream, function, depth + 1)
            first_input = None
            last = found or last
        return last

    def _read_redirected(
        self, node: tree_sitter.Node, piped_from: ShellCommand | None, function: str, depth: int
    ) -> ShellCommand | None:
        body = node.child_by_field_name("body")
        redirects = [child for child in node.named_children if child.type in _REDIRECT_NODES]
        if body is not None and body.type in _COMMAND_NODES:
            return self._read_command(body, redirects, piped_from, function, depth)
        last = piped_from
        if body is not None:
            # The redirection of a compound command or a list holds for its commands.
            before = len(self.commands)
            last = self.read_node(body, piped_from, function, depth + 1)
            found = tuple(part for child in redirects for part in self._read_redirect(child)[0])
            for at in range(before, len(self.commands)):
                command = self.commands[at]
                self.commands[at] = ShellCommand(
                    command.words,
                    command.start,
                    command.end,
                    (*command.redirects, *found),
                    command.piped_from,
                    command.function,
                )
        self._read_nested(redirects, last, function, depth)
        return last

    def _read_command(
        self,
        node: tree_sitter.Node,
        redirects: Sequence[tree_sitter.Node],
        piped_from: ShellCommand | None,
        function: str,
        depth: int,
    ) -> ShellCommand | None:
        words: list[Word] = []
        found: list[Redirect] = []
        end = node.end_byte
        for child in (*node.children, *redirects):
            if child.type in _REDIRECT_NODES:
                parts, more = self._read_redirect(child)
                found += parts
                words += more
                end = max(end, child.end_byte) if more else end
            elif child.is_named and child.type != "comment":
                words.append(self._read_word(child))
            elif node.type == "declaration_command":
                words.append(Word(child.type, child.type))
        if node.type in {"variable_assignment", "variable_assignments"}:
            parts_of = [node] if node.type == "variable_assignment" else node.named_children
            words = [self._read_word(child) for child in parts_of]
        self.is_plain = self.is_plain and all(word.is_known for word in words)
        command = ShellCommand(
            tuple(words), node.start_byte, end, tuple(found), piped_from, function
        )
        self.commands.append(command)
        self._read_nested([*node.children, *redirects], command, function, depth)
        return command

    def _read_nested(
        self,
        nodes: Sequence[tree_sitter.Node],
        command: ShellCommand | None,
        function: str,
        depth: int,
    ) -> None:
        """Commands in substitutions, and those that the grammar puts behind the start of a here-document."""
        for node in nodes:
            if node.type in _COMMAND_NODES and node.type != "variable_assignment":
                self.read_node(node, None, function, depth + 1)
            elif node.type == "pipeline":
                self.read_node(node, command, function, depth + 1)
            elif node.type in {"list", "command_substitution", "process_substitution"}:
                self.read_node(node, None, function, depth + 1)
            elif depth > _MAX_NESTING:
                self.is_too_deep = True
            elif node.type not in {"heredoc_start", "heredoc_end"}:
                self._read_nested(node.named_children, command, function, depth + 1)

    def _read_redirect(self, node: tree_sitter.Node) -> tuple[list[Redirect], list[Word]]:
        """The redirection, and the words behind its target: the grammar counts them as further targets."""
        source = self._source_of(node)
        if node.type == "heredoc_redirect":
            self.is_plain = False
            body = next((part for part in node.children if part.type == "heredoc_body"), None)
            inner = [
                self._read_redirect(child)
                for child in node.children
                if child.type == "file_redirect"
            ]
            text = self._source_of(body) if body is not None else ""
            words = [
                self._read_word(child)
                for child in node.named_children
                if node.field_name_for_child(node.children.index(child)) == "argument"
            ]
            document = Redirect("<<", Word(text, text))
            return (
                [document, *(part for parts, _ in inner for part in parts)],
                [*words, *(word for _, more in inner for word in more)],
            )
        targets = [child for child in node.named_children if child.type != "file_descriptor"]
        if not targets:
            return [], []
        operator = next(child.type for child in node.children if not child.is_named)
        words = [self._read_word(child) for child in targets]
        end = targets[0].end_byte - node.start_byte
        written = source.encode()[:end].decode("utf-8", "replace")
        if not _DISCARDED_OUTPUT.fullmatch(written):
            self.is_plain = False
        return [Redirect(operator, words[0])], words[1:]

    def _source_of(self, node: tree_sitter.Node) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _read_word(self, node: tree_sitter.Node) -> Word:  # noqa: PLR0911 - one line a kind of node
        source = self._source_of(node)
        if node.type == "command_name" and node.named_child_count == 1:
            return self._read_word(node.named_children[0])
        match node.type:
            case "word":
                text = re.sub(r"\\(\n|.)", lambda use: use[1].strip("\n"), source, flags=re.DOTALL)
                return Word(text, source, not re.search(r"(?<!\\)[*?]", source))
            case "number" | "variable_name" | "file_descriptor":
                return Word(source, source, "$" not in source)
            case "raw_string":
                return Word(source[1:-1], source)
            case "ansi_c_string":
                return Word(_decode_ansi_string(source[2:-1]), source)
            case "string":
                pieces = [self._read_string_part(child) for child in node.named_children]
                # Space between the parts of a string has no node of its own.
                text = self._join_parts(node, pieces, node.start_byte + 1, node.end_byte - 1)
                return Word(text, source, all(piece.is_known for piece in pieces))
            case "concatenation" | "variable_assignment" | "command_name":
                pieces = [self._read_word(child) for child in node.named_children]
                text = self._join_parts(node, pieces, node.start_byte, node.end_byte)
                braces = node.type == "concatenation" and re.search(
                    r"\{[^}\s]{0,200}(?:,|\.\.)", source
                )
                return Word(text, source, not braces and all(piece.is_known for piece in pieces))
            case _:
                return Word(source, source, is_known=False)

    def _read_string_part(self, node: tree_sitter.Node) -> Word:
        source = self._source_of(node)
        if node.type != "string_content":
            return Word(source, source, is_known=False)
        return Word(re.sub(r"\\([\\\"$`])|\\\n", lambda use: use[1] or "", source), source)

    def _join_parts(
        self, node: tree_sitter.Node, pieces: Sequence[Word], start: int, end: int
    ) -> str:
        """The texts of a node's parts with what stands between them."""
        joined = ""
        for child, piece in zip(node.named_children, pieces, strict=True):
            joined += self.source[start : child.start_byte].decode("utf-8", "replace") + piece.text
            start = child.end_byte
        return joined + self.source[start:end].decode("utf-8", "replace")


_ANSI_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL
)
_ANSI_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b"}


def _decode_ansi_string(text: str) -> str:
    def decode(match: re.Match[str]) -> str:
        byte, short, long, octal, control = match.groups()
        if control is not None:
            return _ANSI_CONTROLS.get(control, control)
        if octal is not None:
            return chr(int(octal, 8) & 0xFF)
        code = int(byte or short or long, 16)
        return "\ufffd" if 0xD800 <= code < 0xE000 or code > sys.maxunicode else chr(code)

    return _ANSI_ESCAPE.sub(decode, text)
