"""JavaScript and TypeScript: their adapters with coverage, and one module read exactly: exports, imports, calls.

ES modules and CommonJS; a file that may offer more than is seen is `open`.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from regreen.code.file_languages import language_family, language_of, parser_for
from regreen.code.symbols import node_text, walk_nodes
from regreen.domain.languages import Capability, Language
from regreen.languages.toolchains import TableCoverage, TableFileTests, TableProjects, TreeMutants

if TYPE_CHECKING:
    from tree_sitter import Node

_GAPS: frozenset[Capability] = frozenset(
    {
        "syntax tree",
        "checkers",
        "conventions",
        "test results",
        "edits",
        "warm engine",
        "dependencies",
    }
)
_NAMED_IMPORT = re.compile(
    r"""(?m)^(?P<head>[ \t]*(?:import|export)(?:[ \t]+type)?[ \t]*)\{(?P<names>[^{}]{1,2000})\}(?P<from>[ \t]*from[ \t]*)(?P<quote>['"])(?P<place>\.{1,2}/[^'"\n]{1,200})(?P=quote)"""
)


def import_moved(path: str, text: str, name: str, moved: tuple[str, str]) -> str:
    """The text with a name imported from the file that has it now; `moved` are the old and the new file."""
    gone, new = moved

    def follow(match: re.Match[str]) -> str:
        names = [one.strip() for one in match["names"].split(",") if one.strip()]
        meant = [one for one in names if name in {one, one.partition(" as ")[0].strip()}]
        if not meant or resolve_import(match["place"], path, {gone}) is None:
            return match[0]
        there = write_relative_place(path, new, match["place"])
        rest = [one for one in names if one not in meant]
        made = f"{match['head']}{{ {', '.join(meant)} }}{match['from']}{match['quote']}{there}{match['quote']}"
        if not rest:
            return made
        old = match[0].replace(f"{{{match['names']}}}", f"{{ {', '.join(rest)} }}")
        end = ";" if text[match.end() : match.end() + 1] == ";" else ""
        return f"{old}{end}\n{made}"

    followed = _NAMED_IMPORT.sub(follow, text)
    first = _NAMED_IMPORT.search(text)
    is_used = re.search(rf"(?<![\w$.]){re.escape(name)}(?![\w$])", text) is not None
    if followed != text or path != gone or not is_used or first is None:
        return followed
    # the file that it left never imported it
    quote, there = first["quote"], write_relative_place(path, new, first["place"])
    end = ";" if text[first.end() : first.end() + 1] == ";" else ""
    made = f"import {{ {name} }} from {quote}{there}{quote}{end}\n"
    return f"{text[: first.start()]}{made}{text[first.start() :]}"


def write_relative_place(path: str, target: str, like: str) -> str:
    """The relative place of a file, with an ending where the import that it replaces has one.

    TypeScript's imports may have that of the script which is made of the file: `./a.js` is a.ts.
    """
    there = posixpath.relpath(target, posixpath.dirname(path) or ".")
    if not is_script(like):
        there = there.rsplit(".", 1)[0].removesuffix("/index")
    elif made := re.search(r"\.[cm]?js$", like):
        there = re.sub(r"\.[cm]?tsx?$", made[0], there)
    return there if there.startswith(".") else f"./{there}"


_PROJECTS = TableProjects("javascript")
_COVERAGE = TableCoverage("javascript")
_GRAMMARS = ("typescript", "tsx")  # the second reads JSX too
_FILE_TESTS = TableFileTests("javascript", _GRAMMARS)
_MUTANTS = TreeMutants(_GRAMMARS)
JAVASCRIPT = Language(
    title="JavaScript",
    files=frozenset({"javascript"}),
    manifests=frozenset({"package.json"}),
    gaps=_GAPS,
    projects=_PROJECTS,
    coverage=_COVERAGE,
    file_tests=_FILE_TESTS,
    parses=_MUTANTS.parses,
    make_mutants=_MUTANTS,
    import_moved=import_moved,
)
TYPESCRIPT = Language(
    title="TypeScript",
    files=frozenset({"typescript", "tsx"}),
    manifests=frozenset({"tsconfig.json"}),
    gaps=_GAPS,
    projects=_PROJECTS,
    coverage=_COVERAGE,
    file_tests=_FILE_TESTS,
    parses=_MUTANTS.parses,
    make_mutants=_MUTANTS,
    import_moved=import_moved,
)

_PLATFORMS = ("native", "ios", "android", "web")
"""The forms of a module that React Native chooses from."""
_SCRIPT_SUFFIXES = (
    ".ts",
    ".tsx",
    ".d.ts",
    ".js",
    ".jsx",
    ".mjs",
    ".cjs",
    ".mts",
    ".cts",
    ".json",
    ".vue",
    ".svelte",
)
_DECLARATION_NODES = frozenset(
    {
        "function_declaration",
        "generator_function_declaration",
        "class_declaration",
        "abstract_class_declaration",
        "interface_declaration",
        "type_alias_declaration",
        "enum_declaration",
        "function_signature",
    }
)


@dataclass(frozen=True, slots=True)
class ScriptArity:
    """How many arguments a TypeScript function must and may be given; `most` None: any number."""

    least: int
    most: int | None
    shown: str
    line: int

    def explain_refusal(self, count: int) -> str | None:
        """Why the compiler refuses a call with this many arguments."""
        if count < self.least:
            return f"it expects {self.least} arguments and is given {count}"
        if self.most is not None and count > self.most:
            return f"it expects at most {self.most} arguments and is given {count}"
        return None


@dataclass(frozen=True, slots=True)
class ScriptImport:
    """`name` of the module `source` under the name `local`; `name` is "*" or "" where the whole is meant."""

    local: str
    name: str
    source: str
    line: int


@dataclass(frozen=True, slots=True)
class ScriptCall:
    """A call of a plain name with this many arguments, none of them spread."""

    name: str
    count: int
    line: int


@dataclass(frozen=True)
class ScriptModule:
    """What one module offers and uses. `exports` tells each exported name's line."""

    exports: dict[str, int] = field(default_factory=dict)
    functions: dict[str, ScriptArity] = field(default_factory=dict)
    imports: tuple[ScriptImport, ...] = ()
    calls: tuple[ScriptCall, ...] = ()
    bound: Counter[str] = field(default_factory=Counter)
    open: bool = False
    typed: bool = False


def is_script(path: str) -> bool:
    """Whether a file is JavaScript or TypeScript."""
    return language_family(path) == "javascript"


def is_typed_script(path: str) -> bool:
    """Whether a file is TypeScript, whose types its author has declared."""
    return is_script(path) and language_of(path) != "javascript"


def parse_script_module(path: str, data: bytes) -> ScriptModule | None:
    """Read a module; None where it is no JavaScript or TypeScript, or has errors in its syntax."""
    language = language_of(path)
    if language is None or not is_script(path) or path.endswith(".d.ts"):
        return None
    root = parser_for(language).parse(data).root_node
    if root.has_error:
        return None
    return _ModuleReader(typed=language != "javascript").read_module(root)


def resolve_import(source: str, path: str, files: Container[str]) -> str | None:
    """The repository's file that a relative import means; None for packages, aliases and what is not there."""
    if not source.startswith(("./", "../")) and source not in {".", ".."}:
        return None
    place = posixpath.normpath(
        posixpath.join(posixpath.dirname(path), source.split("?", maxsplit=1)[0])
    )
    stem, suffix = posixpath.splitext(place)
    options = [
        place,
        *(place + s for s in _SCRIPT_SUFFIXES),
        *(f"{place}/index{s}" for s in _SCRIPT_SUFFIXES),
        *(f"{place}.{p}{s}" for p in _PLATFORMS for s in _SCRIPT_SUFFIXES),
    ]
    if suffix in {".js", ".mjs", ".cjs", ".jsx"}:  # TypeScript imports what it will be compiled to
        options += [stem + s for s in (".ts", ".tsx", ".mts", ".cts")]
    return next((o for o in map(posixpath.normpath, options) if o in files), None)


class _ModuleReader:
    def __init__(self, *, typed: bool) -> None:
        self.typed = typed
        self.exports: dict[str, int] = {}
        self.functions: dict[str, ScriptArity] = {}
        self.imports: list[ScriptImport] = []
        self.calls: list[ScriptCall] = []
        self.bound: Counter[str] = Counter()
        self.open = False

    def read_module(self, root: Node) -> ScriptModule:
        for node in root.named_children:
            self._read_statement(node)
        for node in walk_nodes(root):
            self._read_nested(node)
        once = {n: f for n, f in self.functions.items() if self.bound[n] == 1}
        return ScriptModule(
            self.exports,
            once,
            tuple(self.imports),
            tuple(self.calls),
            self.bound,
            self.open,
            self.typed,
        )

    def _read_statement(self, node: Node) -> None:
        if node.type == "import_statement":
            self._read_import(node)
        elif node.type == "export_statement":
            self._read_export(node)
        elif node.type in _DECLARATION_NODES:
            self._read_declaration(node)

    def _read_import(self, node: Node) -> None:
        source = _string_value(node.child_by_field_name("source"))
        line = node.start_point[0] + 1
        clause = next((c for c in node.named_children if c.type == "import_clause"), None)
        if source and clause is None:
            self.imports.append(ScriptImport("", "", source, line))
        for part in clause.named_children if source and clause else ():
            if part.type == "identifier":
                self.imports.append(ScriptImport(node_text(part), "default", source, line))
            elif part.type == "namespace_import":
                self.imports.append(
                    ScriptImport(node_text(part.named_children[0]), "*", source, line)
                )
            for name, local, where in _read_specifiers(part):
                self.imports.append(ScriptImport(local, name, source, where))

    def _read_export(self, node: Node) -> None:
        source = _string_value(node.child_by_field_name("source"))
        line = node.start_point[0] + 1
        if any(c.type == "default" for c in node.children):
            self.exports["default"] = line
        clause = next((c for c in node.named_children if c.type == "export_clause"), None)
        if clause is None and source:
            self.open |= not any(c.type == "namespace_export" for c in node.named_children)
            self.imports.append(ScriptImport("", "", source, line))
        for name, alias, where in _read_specifiers(clause) if clause else ():
            self.exports[alias] = where
            if source:
                self.imports.append(ScriptImport("", name, source, where))
        declaration = node.child_by_field_name("declaration")
        if declaration is not None and "default" not in {c.type for c in node.children}:
            for name, where in _declared_names(declaration):
                self.exports[name] = where
        if declaration is not None:
            self._read_declaration(declaration)

    def _read_declaration(self, node: Node) -> None:
        name = node.child_by_field_name("name")
        parameters = node.child_by_field_name("parameters")
        if self.typed and name is not None and parameters is not None:
            self.functions[node_text(name)] = _read_arity(node, parameters)

    def _read_nested(self, node: Node) -> None:
        kind = node.type
        if (
            kind == "identifier" and _is_binding(node)
        ) or kind == "shorthand_property_identifier_pattern":
            self.bound[node_text(node)] += 1
        elif kind in _DECLARATION_NODES and (name := node.child_by_field_name("name")) is not None:
            self.bound[node_text(name)] += name.type != "identifier"
        elif kind == "call_expression":
            self._read_call(node)
        elif kind == "assignment_expression":
            self._read_assigned_export(node)
        elif kind == "variable_declarator":
            self._read_require(node)

    def _read_assigned_export(self, node: Node) -> None:
        """`module.exports = {a, b}` and `exports.a = ...` at the top of a module; any other form leaves it open."""
        left = node_text(node.child_by_field_name("left"))
        if not left.startswith(("module.exports", "exports.")):
            return
        right, statement = node.child_by_field_name("right"), node.parent
        name = left.removeprefix("module.").removeprefix("exports").removeprefix(".")
        if statement is None or statement.parent is None or statement.parent.type != "program":
            self.open = True
        elif name:
            self.open |= not name.isidentifier()
            self.exports[name] = node.start_point[0] + 1
        elif right is not None and right.type == "object":
            for part in right.named_children:
                key = part.child_by_field_name("key") or part.child_by_field_name("name") or part
                self.open |= "identifier" not in key.type and part.type != "comment"
                self.exports[node_text(key)] = part.start_point[0] + 1
        else:
            self.open = True

    def _read_require(self, node: Node) -> None:
        """The names that `const {a, b: c} = require(...)` binds, or `const a = require(...)`."""
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        member = ""
        if value is not None and value.type == "member_expression":
            member = node_text(value.child_by_field_name("property"))
            value = value.child_by_field_name("object")
        if (
            name is None
            or value is None
            or node_text(value.child_by_field_name("function")) != "require"
        ):
            return
        given = value.child_by_field_name("arguments")
        source = _string_value(given.named_children[0]) if given and given.named_children else ""
        if source and name.type == "identifier":
            line = name.start_point[0] + 1
            self.imports.append(ScriptImport(node_text(name), member or "*", source, line))
        for part in (
            name.named_children if source and name.type == "object_pattern" and not member else ()
        ):
            key, local = part.child_by_field_name("key") or part, part.child_by_field_name("value")
            if "identifier" in key.type and (local is None or local.type == "identifier"):
                line = part.start_point[0] + 1
                self.imports.append(
                    ScriptImport(node_text(local or key), node_text(key), source, line)
                )

    def _read_call(self, node: Node) -> None:
        function = node.child_by_field_name("function")
        arguments = node.child_by_field_name("arguments")
        if function is None or arguments is None:
            return
        given = [c for c in arguments.named_children if c.type != "comment"]
        self.open |= any(node_text(c) in {"exports", "module.exports"} for c in given)
        first = _string_value(given[0]) if given else ""
        if function.type == "import" or node_text(function) == "require":
            if first:
                self.imports.append(ScriptImport("", "", first, node.start_point[0] + 1))
        elif (
            function.type == "identifier"
            and arguments.type == "arguments"  # not the text of a tagged template
            and all(c.type != "spread_element" for c in given)
        ):
            self.calls.append(ScriptCall(node_text(function), len(given), node.start_point[0] + 1))


_NAME_FIELDS = {
    "function_expression": "name",
    "class": "name",
    "variable_declarator": "name",
    "arrow_function": "parameter",
    "assignment_pattern": "left",
    "for_in_statement": "left",
}
_BINDING_NODES = frozenset(
    {
        "required_parameter",
        "optional_parameter",
        "rest_pattern",
        "array_pattern",
        "object_pattern",
        "pair_pattern",
        "formal_parameters",
        "catch_clause",
        "import_clause",
        "namespace_import",
    }
)


def _is_binding(node: Node) -> bool:
    """Whether an identifier stands where a name is given, not used; rather once too often than too seldom."""
    parent = node.parent
    if parent is None:
        return False
    if parent.type == "import_specifier":
        return (parent.child_by_field_name("alias") or parent.child_by_field_name("name")) == node
    place = "name" if parent.type in _DECLARATION_NODES else _NAME_FIELDS.get(parent.type)
    if place is not None:
        return parent.child_by_field_name(place) == node
    return parent.type in _BINDING_NODES


def _read_specifiers(node: Node) -> Iterator[tuple[str, str, int]]:
    """Name, name here and line of each part of `{a, b as c}`."""
    for part in node.named_children:
        name = part.child_by_field_name("name")
        if part.type in {"import_specifier", "export_specifier"} and name is not None:
            alias = part.child_by_field_name("alias") or name
            yield (
                node_text(name).strip("\"'"),
                node_text(alias).strip("\"'"),
                part.start_point[0] + 1,
            )


def _declared_names(node: Node) -> Iterator[tuple[str, int]]:
    """The names that a declaration gives, with their lines."""
    name = node.child_by_field_name("name")
    if name is not None:
        yield node_text(name), node.start_point[0] + 1
        return
    for child in node.named_children:
        target = child.child_by_field_name("name")
        if child.type != "variable_declarator" or target is None:
            continue
        for inner in walk_nodes(target):
            if inner.type in {"identifier", "shorthand_property_identifier_pattern"}:
                yield node_text(inner), inner.start_point[0] + 1


def _read_arity(node: Node, parameters: Node) -> ScriptArity:
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
        if needed and not _accepts_void(one):
            least = most
    shown = (
        f"{node_text(node.child_by_field_name('name'))}{' '.join(node_text(parameters).split())}"
    )
    return ScriptArity(least, None if any_number else most, shown[:160], node.start_point[0] + 1)


def _accepts_void(parameter: Node) -> bool:
    """A parameter of type void, any or unknown may be left out."""
    kind = node_text(parameter.child_by_field_name("type")).strip(": ")
    return any(word in kind.split() for word in ("void", "any", "unknown"))


def _string_value(node: Node | None) -> str:
    return node_text(node)[1:-1] if node is not None and node.type == "string" else ""
