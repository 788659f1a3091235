"""The structure of one file: what it defines, what it calls, what it imports. By tree-sitter, for all languages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regreen.codebase.grammar import KINDS, Kind, parser, query
from regreen.codebase.language import PARSED, language_of

if TYPE_CHECKING:
    import tree_sitter

Captures = Mapping[str, "Sequence[tree_sitter.Node]"]
LARGEST = 1024 * 1024
"""Larger files are generated or data; their structure is not read."""


@dataclass(frozen=True, slots=True)
class Definition:
    """Something a file defines, with its 1-based lines. `name` is dotted through what encloses it."""

    name: str
    kind: Kind
    start: int
    end: int

    @property
    def short(self) -> str:
        """The name without what encloses it."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Call:
    """A name that is called, on a 1-based line, inside the definition `inside` ("" at the top of the file)."""

    name: str
    line: int
    inside: str


@dataclass(frozen=True, slots=True)
class Outline:
    """One file's structure. `broken` when its syntax has errors: what could be read is there all the same."""

    definitions: tuple[Definition, ...] = ()
    calls: tuple[Call, ...] = ()
    imports: tuple[str, ...] = ()
    broken: bool = False

    def at(self, line: int) -> Definition | None:
        """The innermost function, method or class around a line."""
        around = [d for d in self.definitions if d.kind != "constant" and d.start <= line <= d.end]
        return max(around, key=lambda d: (d.start, -d.end), default=None)


EMPTY = Outline()


def outline(path: str, data: bytes) -> Outline:
    """Read a file's structure; an empty outline for a language whose structure is not read."""
    language = language_of(path)
    if language not in PARSED or len(data) > LARGEST:
        return EMPTY
    import tree_sitter

    tree = parser(language).parse(data)
    captures = tree_sitter.QueryCursor(query(language)).captures(tree.root_node)
    spans = _definitions(captures)
    return Outline(
        definitions=tuple(s.definition for s in spans),
        calls=_calls(captures.get("call", ()), spans),
        imports=tuple(dict.fromkeys(_text(n) for n in captures.get("import", ()))),
        broken=tree.root_node.has_error,
    )


def enclosing(path: str, text: str, line: int) -> str:
    """The dotted name of the innermost function or class around a line, "" at the top of the file."""
    found = outline(path, text.encode("utf-8", "surrogateescape")).at(line)
    return found.name if found else ""


def words(text: str) -> Counter[str]:
    """The words of a text as a search sees them: identifiers whole and in their parts, lower case."""
    found: Counter[str] = Counter()
    for name, times in Counter(_NAME.findall(text)).items():
        found[name.lower()] += times
        parts = _PART.findall(name)
        if len(parts) > 1:
            for part in parts:
                if len(part) > 2:
                    found[part.lower()] += times
    return found


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,60}")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


@dataclass(frozen=True, slots=True)
class _Span:
    """A definition with its place in bytes: one line may hold several."""

    start: int
    end: int
    definition: Definition


def _definitions(captures: Captures) -> list[_Span]:
    """Definitions in the order of the file, each named through those around it."""
    names = {n.parent.id: n for n in captures.get("name", ()) if n.parent is not None}
    rows: list[tuple[int, int, Kind, str, tree_sitter.Node]] = []
    for kind in KINDS:
        for node in captures.get(kind, ()):
            if name := names.get(node.id):
                whole = _with_decorators(node)
                short = _GENERIC.sub("", _text(name))
                owner = _receiver(node)
                dotted = f"{owner}.{short}" if owner else short
                rows.append((whole.start_byte, -whole.end_byte, kind, dotted, whole))
    rows.sort(key=lambda row: row[:2])
    spans: list[_Span] = []
    around: list[_Span] = []
    for start, end, kind, dotted, node in rows:
        while around and around[-1].end <= start:
            around.pop()
        outer = around[-1].definition if around else None
        in_class = kind == "function" and outer is not None and outer.kind == "class"
        found = Definition(
            f"{outer.name}.{dotted}" if outer else dotted,
            "method" if in_class else kind,
            node.start_point[0] + 1,
            node.end_point[0] + 1,
        )
        spans.append(_Span(start, -end, found))
        if kind != "constant":
            around.append(spans[-1])
    return spans


def _calls(nodes: Iterable[tree_sitter.Node], spans: Sequence[_Span]) -> tuple[Call, ...]:
    """Calls in the order of the file, each with the innermost definition around it."""
    out: list[Call] = []
    around: list[_Span] = []
    waiting = [s for s in reversed(spans) if s.definition.kind != "constant"]
    for node in sorted(nodes, key=lambda n: n.start_byte):
        at = node.start_byte
        while waiting and waiting[-1].start <= at:
            while around and around[-1].end <= waiting[-1].start:
                around.pop()
            around.append(waiting.pop())
        while around and around[-1].end <= at:
            around.pop()
        inside = around[-1].definition.name if around else ""
        out.append(Call(_text(node), node.start_point[0] + 1, inside))
    return tuple(out)


def _with_decorators(node: tree_sitter.Node) -> tree_sitter.Node:
    parent = node.parent
    return parent if parent is not None and parent.type == "decorated_definition" else node


def _receiver(node: tree_sitter.Node) -> str:
    """The type that a Go method belongs to: it stands outside the type's own braces."""
    if node.type != "method_declaration":
        return ""
    receiver = node.child_by_field_name("receiver")
    names = _NAME_ANY.findall(_GENERIC.sub("", _text(receiver))) if receiver is not None else []
    return names[-1] if names else ""


def _text(node: tree_sitter.Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


_GENERIC = re.compile(r"[<\[].*", re.DOTALL)
_NAME_ANY = re.compile(r"[A-Za-z_]\w*")
