"""Reads the part of GraphQL that clients send: operations, fields with aliases and arguments, fragments."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r'[\s,\ufeff]*(?:#[^\n]*[\s,]*)*(\.\.\.|"(?:[^"\\\n]|\\.)*"|[A-Za-z_]\w*|-?\d+(?:\.\d+)?|[{}()\[\]:$!=@|&]|$)'
)


class GraphQLError(Exception):
    """The document cannot be read, or asks for something that is not there."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A reference to a variable."""

    name: str


@dataclass(slots=True)
class Field:
    """One field that was asked for."""

    key: str
    name: str
    arguments: dict[str, object] = field(default_factory=dict)
    selection: list[Field | Spread] = field(default_factory=list)


@dataclass(slots=True)
class Spread:
    """A fragment: inline on a type, or by name."""

    on: str | None
    name: str | None
    selection: list[Field | Spread] = field(default_factory=list)


@dataclass(slots=True)
class Document:
    """The operations of a document (by name), and its fragments."""

    operations: dict[str, list[Field | Spread]]
    fragments: dict[str, Spread]


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                msg = f"Parse error near {text[at : at + 20]!r}"
                raise GraphQLError(msg)
            at = found.end()
            if found[1]:
                self._tokens.append(found[1])
            elif at < len(text):
                msg = f"Parse error near {text[at : at + 20]!r}"
                raise GraphQLError(msg)
            else:
                break
        self._at = 0

    def peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def take(self, wanted: str = "") -> str:
        got = self.peek()
        if not got or (wanted and got != wanted):
            msg = f"Expected {wanted or 'more'}, got {got or 'the end'}"
            raise GraphQLError(msg)
        self._at += 1
        return got

    def document(self) -> Document:
        document = Document({}, {})
        while self.peek():
            if self.peek() == "{":
                document.operations[""] = self.selection()
                continue
            word = self.take()
            if word == "fragment":
                name = self.take()
                self.take("on")
                document.fragments[name] = Spread(self.take(), name, self.selection())
            elif word in {"query", "mutation"}:
                name = self.take() if re.match(r"\w", self.peek()) else ""
                if self.peek() == "(":
                    self.skip()
                document.operations[name] = self.selection()
            else:
                msg = f"Unexpected {word}"
                raise GraphQLError(msg)
        return document

    def skip(self) -> None:
        depth = 0
        while True:
            token = self.take()
            depth += {"(": 1, ")": -1}.get(token, 0)
            if depth == 0:
                return

    def selection(self) -> list[Field | Spread]:
        self.take("{")
        found: list[Field | Spread] = []
        while self.peek() != "}":
            found.append(self.spread() if self.peek() == "..." else self.field())
        self.take("}")
        return found

    def spread(self) -> Spread:
        self.take("...")
        if self.peek() == "{":
            return Spread(None, None, self.selection())
        word = self.take()
        if word == "on":
            return Spread(self.take(), None, self.selection())
        return Spread(None, word)

    def field(self) -> Field:
        key = name = self.take()
        if self.peek() == ":":
            self.take()
            name = self.take()
        one = Field(key, name)
        if self.peek() == "(":
            self.take()
            while self.peek() != ")":
                argument = self.take()
                self.take(":")
                one.arguments[argument] = self.value()
            self.take()
        if self.peek() == "{":
            one.selection = self.selection()
        return one

    def value(self) -> object:
        got = self.take()
        if got == "$":
            return Variable(self.take())
        if got == "[":
            items = []
            while self.peek() != "]":
                items.append(self.value())
            self.take()
            return items
        if got == "{":
            pairs: dict[str, object] = {}
            while self.peek() != "}":
                name = self.take()
                self.take(":")
                pairs[name] = self.value()
            self.take()
            return pairs
        if got.startswith('"') or re.fullmatch(r"-?\d+(\.\d+)?|true|false|null", got):
            return json.loads(got)
        return got


def read(text: str) -> Document:
    """Read a document.

    Raises:
        GraphQLError: it cannot be read.
    """
    return _Reader(text).document()
