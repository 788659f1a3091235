"""One JavaScript or TypeScript module, exactly: what it exports, what it imports from where, whom it calls.

Only ES modules; a file that also speaks CommonJS may offer more than is seen, and is `open`.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from regreen.codebase.grammar import parser
from regreen.codebase.language import language_of

if TYPE_CHECKING:
    from tree_sitter import Node

LANGUAGES = frozenset({"javascript", "typescript", "tsx"})
_SUFFIXES = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".json", ".vue", ".svelte")  # fmt: skip
_DECLARED = frozenset(
    {"function_declaration", "generator_function_declaration", "class_declaration", "abstract_class_declaration",
     "interface_declaration", "type_alias_declaration", "enum_declaration", "function_signature"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Accepts:
    """How many arguments a TypeScript function must and may be given; `most` None: any number."""

    least: int
    most: int | None
    shown: str
    line: int

    def refuses(self, count: int) -> str | None:
        """Why the compiler refuses a call with this many arguments."""
        if count < self.least:
            return f"it expects {self.least} arguments and is given {count}"
        if self.most is not None and count > self.most:
            return f"it expects at most {self.most} arguments and is given {count}"
        return None


@dataclass(frozen=True, slots=True)
class Imported:
    """`name` of the module `source` under the name `local`; `name` is "*" or "" where the whole is meant."""

    local: str
    name: str
    source: str
    line: int


@dataclass(frozen=True, slots=True)
class Called:
    """A call of a plain name with this many arguments, none of them spread."""

    name: str
    count: int
    line: int


@dataclass(frozen=True)
class ScriptModule:
    """What one module offers and uses. `exports` tells each exported name's line."""

    exports: dict[str, int] = field(default_factory=dict)
    functions: dict[str, Accepts] = field(default_factory=dict)
    imports: tuple[Imported, ...] = ()
    calls: tuple[Called, ...] = ()
    bound: Counter[str] = field(default_factory=Counter)
    open: bool = False


def script_module(path: str, data: bytes) -> ScriptModule | None:
    """Read a module; None where it is no JavaScript or TypeScript, or has errors in its syntax."""
    language = language_of(path)
    if language not in LANGUAGES or path.endswith(".d.ts"):
        return None
    root = parser(language).parse(data).root_node
    if root.has_error:
        return None
    return _Reader(typed=language != "javascript").read(root)


def resolve(source: str, path: str, files: Container[str]) -> str | None:
    """The repository's file that a relative import means; None for packages, aliases and what is not there."""
    if not source.startswith(("./", "../")) and source not in {".", ".."}:
        return None
    place = posixpath.normpath(
        posixpath.join(posixpath.dirname(path), source.split("?", maxsplit=1)[0])
    )
    stem, suffix = posixpath.splitext(place)
    options = [place, *(place + s for s in _SUFFIXES), *(f"{place}/index{s}" for s in _SUFFIXES)]
    if suffix in {".js", ".mjs", ".cjs", ".jsx"}:  # TypeScript imports what it will be compiled to
        options += [stem + s for s in (".ts", ".tsx", ".mts", ".cts")]
    return next((o for o in map(posixpath.normpath, options) if o in files), None)


class _Reader:
    def __init__(self, *, typed: bool) -> None:
        self.typed = typed
        self.exports: dict[str, int] = {}
        self.functions: dict[str, Accepts] = {}
        self.imports: list[Imported] = []
        self.calls: list[Called] = []
        self.bound: Counter[str] = Counter()
        self.open = False

    def read(self, root: Node) -> ScriptModule:
        for node in root.named_children:
            self._statement(node)
        for node in _walk(root):
            self._anywhere(node)
        once = {n: f for n, f in self.functions.items() if self.bound[n] == 1}
        return ScriptModule(
            self.exports, once, tuple(self.imports), tuple(self.calls), self.bound, self.open
        )

    def _statement(self, node: Node) -> None:
        if node.type == "import_statement":
            self._import(node)
        elif node.type == "export_statement":
            self._export(node)
        elif node.type in _DECLARED:
            self._declaration(node)

    def _import(self, node: Node) -> None:
        source = _string(node.child_by_field_name("source"))
        line = node.start_point[0] + 1
        clause = next((c for c in node.named_children if c.type == "import_clause"), None)
        if source and clause is None:
            self.imports.append(Imported("", "", source, line))
        for part in clause.named_children if source and clause else ():
            if part.type == "identifier":
                self.imports.append(Imported(_text(part), "default", source, line))
            elif part.type == "namespace_import":
                self.imports.append(Imported(_text(part.named_children[0]), "*", source, line))
            for name, local, where in _specifiers(part):
                self.imports.append(Imported(local, name, source, where))

    def _export(self, node: Node) -> None:
        source = _string(node.child_by_field_name("source"))
        line = node.start_point[0] + 1
        if any(c.type == "default" for c in node.children):
            self.exports["default"] = line
        clause = next((c for c in node.named_children if c.type == "export_clause"), None)
        if clause is None and source:
            self.open |= not any(c.type == "namespace_export" for c in node.named_children)
            self.imports.append(Imported("", "", source, line))
        for name, alias, where in _specifiers(clause) if clause else ():
            self.exports[alias] = where
            if source:
                self.imports.append(Imported("", name, source, where))
        declaration = node.child_by_field_name("declaration")
        if declaration is not None and "default" not in {c.type for c in node.children}:
            for name, where in _declared(declaration):
                self.exports[name] = where
        if declaration is not None:
            self._declaration(declaration)

    def _declaration(self, node: Node) -> None:
        name = node.child_by_field_name("name")
        parameters = node.child_by_field_name("parameters")
        if self.typed and name is not None and parameters is not None:
            self.functions[_text(name)] = _accepts(node, parameters)

    def _anywhere(self, node: Node) -> None:
        kind = node.type
        if kind == "identifier" and _binds(node):
            self.bound[_text(node)] += 1
        elif kind in _DECLARED and (name := node.child_by_field_name("name")) is not None:
            self.bound[_text(name)] += name.type != "identifier"
        elif kind == "call_expression":
            self._call(node)
        elif kind == "assignment_expression":
            left = _text(node.child_by_field_name("left"))
            self.open |= left.startswith(("module.exports", "exports."))

    def _call(self, node: Node) -> None:
        function = node.child_by_field_name("function")
        arguments = node.child_by_field_name("arguments")
        if function is None or arguments is None:
            return
        given = [c for c in arguments.named_children if c.type != "comment"]
        first = _string(given[0]) if given else ""
        if function.type == "import" or _text(function) == "require":
            if first:
                self.imports.append(Imported("", "", first, node.start_point[0] + 1))
        elif (
            function.type == "identifier"
            and arguments.type == "arguments"  # not the text of a tagged template
            and all(c.type != "spread_element" for c in given)
        ):
            self.calls.append(Called(_text(function), len(given), node.start_point[0] + 1))


def _walk(root: Node) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.named_children))


_NAMING = {
    "function_expression": "name",
    "class": "name",
    "variable_declarator": "name",
    "arrow_function": "parameter",
    "assignment_pattern": "left",
    "for_in_statement": "left",
}
_BINDING = frozenset(
    {"required_parameter", "optional_parameter", "rest_pattern", "array_pattern", "object_pattern", "pair_pattern",
     "formal_parameters", "catch_clause", "import_clause", "namespace_import"}
)  # fmt: skip


def _binds(node: Node) -> bool:
    """Whether an identifier stands where a name is given, not used; rather once too often than too seldom."""
    parent = node.parent
    if parent is None:
        return False
    if parent.type == "import_specifier":
        return (parent.child_by_field_name("alias") or parent.child_by_field_name("name")) == node
    place = "name" if parent.type in _DECLARED else _NAMING.get(parent.type)
    if place is not None:
        return parent.child_by_field_name(place) == node
    return parent.type in _BINDING


def _specifiers(node: Node) -> Iterator[tuple[str, str, int]]:
    """Name, name here and line of each part of `{a, b as c}`."""
    for part in node.named_children:
        name = part.child_by_field_name("name")
        if part.type in {"import_specifier", "export_specifier"} and name is not None:
            alias = part.child_by_field_name("alias") or name
            yield _text(name).strip("\"'"), _text(alias).strip("\"'"), part.start_point[0] + 1


def _declared(node: Node) -> Iterator[tuple[str, int]]:
    """The names that a declaration gives, with their lines."""
    name = node.child_by_field_name("name")
    if name is not None:
        yield _text(name), node.start_point[0] + 1
        return
    for child in node.named_children:
        target = child.child_by_field_name("name")
        if child.type != "variable_declarator" or target is None:
            continue
        for inner in _walk(target):
            if inner.type in {"identifier", "shorthand_property_identifier_pattern"}:
                yield _text(inner), inner.start_point[0] + 1


def _accepts(node: Node, parameters: Node) -> Accepts:
    least, most, any_number = 0, 0, False
    for one in parameters.named_children:
        if one.type not in {"required_parameter", "optional_parameter"}:
            continue
        pattern = one.child_by_field_name("pattern")
        if pattern is not None and pattern.type == "this":
            continue
        if pattern is not None and pattern.type == "rest_pattern":
            any_number = True
            continue
        most += 1
        needed = one.type == "required_parameter" and one.child_by_field_name("value") is None
        if needed and not _may_be_void(one):
            least = most
    shown = f"{_text(node.child_by_field_name('name'))}{' '.join(_text(parameters).split())}"
    return Accepts(least, None if any_number else most, shown[:160], node.start_point[0] + 1)


def _may_be_void(parameter: Node) -> bool:
    """A parameter of type void, any or unknown may be left out."""
    kind = _text(parameter.child_by_field_name("type")).strip(": ")
    return any(word in kind.split() for word in ("void", "any", "unknown"))


def _string(node: Node | None) -> str:
    return _text(node)[1:-1] if node is not None and node.type == "string" else ""


def _text(node: Node | None) -> str:
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""
