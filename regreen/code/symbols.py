"""The structure of one file: what it defines, what it calls, what it imports. By tree-sitter, for all languages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, get_args

from regreen.code.file_languages import has_outline, language_of, parser_for, query_for
from regreen.domain.ports import Git

if TYPE_CHECKING:
    import tree_sitter

DefinitionKind = Literal["function", "class", "method", "constant"]
DEFINITION_KINDS: tuple[DefinitionKind, ...] = get_args(DefinitionKind)
Captures = Mapping[str, "Sequence[tree_sitter.Node]"]
MAX_PARSED_BYTES = 1024 * 1024
"""Larger files are generated or data; their structure is not read."""

MAX_DEPTH = 500
MAX_ERROR = 2000


@dataclass(frozen=True, slots=True)
class Definition:
    """Something a file defines, with its 1-based lines. `name` is dotted through what encloses it."""

    name: str
    kind: DefinitionKind
    start: int
    end: int

    @property
    def short_name(self) -> str:
        """The name without what encloses it."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class CallSite:
    """A name that is called, on a 1-based line, inside the definition `inside` ("" at the top of the file)."""

    name: str
    line: int
    inside: str


@dataclass(frozen=True, slots=True)
class Outline:
    """One file's structure. `broken` when its syntax has errors: what could be read is there all the same."""

    definitions: tuple[Definition, ...] = ()
    calls: tuple[CallSite, ...] = ()
    imports: tuple[str, ...] = ()
    broken: bool = False

    def definition_at(self, line: int) -> Definition | None:
        """The innermost function, method or class around a line."""
        around = [d for d in self.definitions if d.kind != "constant" and d.start <= line <= d.end]
        return max(around, key=lambda d: (d.start, -d.end), default=None)


EMPTY_OUTLINE = Outline()


def read_outline(path: str, data: bytes) -> Outline:
    """Read a file's structure; an empty outline for a language whose structure is not read."""
    language = language_of(path)
    if language is None or not has_outline(path) or len(data) > MAX_PARSED_BYTES:
        return EMPTY_OUTLINE
    import tree_sitter

    tree = parser_for(language).parse(data)
    if is_slow_to_query(tree.root_node):
        return EMPTY_OUTLINE
    captures = tree_sitter.QueryCursor(query_for(language)).captures(tree.root_node)
    spans = _find_definitions(captures)
    return Outline(
        definitions=tuple(s.definition for s in spans),
        calls=_find_calls(captures.get("call", ()), spans),
        imports=tuple(dict.fromkeys(node_text(n) for n in captures.get("import", ()))),
        broken=tree.root_node.has_error,
    )


def is_slow_to_query(root: tree_sitter.Node) -> bool:
    """Whether nodes stand deeper in each other, or more of them in one error, than in code that people write.

    A query's time grows with depth times size, and with the square of the nodes in one error.
    """
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > MAX_DEPTH or (node.is_error and node.child_count > MAX_ERROR):
            return True
        waiting += [(c, depth + 1) for c in node.children if c.descendant_count + depth > MAX_DEPTH]
    return False


@dataclass(frozen=True, slots=True)
class _DefinitionSpan:
    """A definition with its place in bytes: one line may hold several."""

    start: int
    end: int
    definition: Definition


def _find_definitions(captures: Captures) -> list[_DefinitionSpan]:
    """Definitions in the order of the file, each named through those around it."""
    names = {n.parent.id: n for n in captures.get("name", ()) if n.parent is not None}
    rows: list[tuple[int, int, DefinitionKind, str, tree_sitter.Node]] = []
    for kind in DEFINITION_KINDS:
        for node in captures.get(kind, ()):
            if name := names.pop(node.id, None):  # a constant that is a function is a function
                whole = _include_decorators(node)
                short = _GENERIC_ARGUMENTS.sub("", node_text(name))
                owner = _receiver_type(node)
                dotted = f"{owner}.{short}" if owner else short
                rows.append((whole.start_byte, -whole.end_byte, kind, dotted, whole))
    rows.sort(key=lambda row: row[:2])
    spans: list[_DefinitionSpan] = []
    around: list[_DefinitionSpan] = []
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
        spans.append(_DefinitionSpan(start, -end, found))
        if kind != "constant":
            around.append(spans[-1])
    return spans


def _find_calls(
    nodes: Iterable[tree_sitter.Node], spans: Sequence[_DefinitionSpan]
) -> tuple[CallSite, ...]:
    """Calls in the order of the file, each with the innermost definition around it."""
    out: list[CallSite] = []
    around: list[_DefinitionSpan] = []
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
        out.append(CallSite(node_text(node), node.start_point[0] + 1, inside))
    return tuple(out)


def _include_decorators(node: tree_sitter.Node) -> tree_sitter.Node:
    parent = node.parent
    return parent if parent is not None and parent.type == "decorated_definition" else node


def _receiver_type(node: tree_sitter.Node) -> str:
    """The type that a Go method belongs to: it stands outside the type's own braces."""
    if node.type != "method_declaration":
        return ""
    receiver = node.child_by_field_name("receiver")
    names = _NAME_ANY.findall(_GENERIC_ARGUMENTS.sub("", node_text(receiver)))
    return names[-1] if names else ""


SCRIPT_FUNCTIONS = frozenset(
    {
        "function_declaration",
        "function_expression",
        "arrow_function",
        "method_definition",
        "generator_function_declaration",
        "generator_function",
    }
)
"""The nodes of functions in the syntax trees of JavaScript and TypeScript."""


def node_text(node: tree_sitter.Node | None) -> str:
    """The text of a node of a syntax tree, "" where there is none."""
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""


def walk_nodes(root: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    """The named nodes of a syntax tree in the order of the file, however deep it is."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.named_children))


_GENERIC_ARGUMENTS = re.compile(r"[<\[].*", re.DOTALL)
_NAME_ANY = re.compile(r"[A-Za-z_]\w*")


# A revision's files in one pass: one git process whatever their number, nothing written anywhere.

MAX_BYTES = 256 * 1024 * 1024
"""A repository's sources beyond this are not read; no more than one file of them is held at a time."""


def read_sources(
    git: Git,
    rev: str,
    wanted: Callable[[str], bool],
    *,
    most: int = MAX_BYTES,
    known: Mapping[str, bytes] = MappingProxyType({}),
) -> Iterator[tuple[str, bytes]]:
    """Path and bytes of every regular file that is wanted and not larger than `MAX_PARSED_BYTES`, sorted by path.

    `known` has the bytes of blobs, by their ids, that were read before.
    """
    chosen = []
    left = most
    for entry in git.tree(rev):
        size = entry.size or 0
        if entry.mode.startswith("100") and size <= MAX_PARSED_BYTES and wanted(entry.path):
            left -= size
            if left < 0:
                break
            chosen.append(entry)
    missing = git.blobs([e.sha for e in chosen if e.sha not in known])
    for entry in chosen:
        data = known[entry.sha] if entry.sha in known else next(missing)
        if data is not None:
            yield entry.path, data
