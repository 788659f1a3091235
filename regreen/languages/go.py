"""Go: its adapter, and one file read exactly: declarations of its package, imports, calls."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from regreen.code.file_languages import language_of, parser_for
from regreen.code.symbols import node_text, walk_nodes
from regreen.domain.languages import Language
from regreen.languages.compilers import GoCompiler
from regreen.languages.toolchains import TableCoverage, TableFileTests, TableProjects, TreeMutants

if TYPE_CHECKING:
    from tree_sitter import Node

_MUTANTS = TreeMutants(("go",))
GO = Language(
    title="Go",
    files=frozenset({"go"}),
    manifests=frozenset({"go.mod"}),
    gaps=frozenset(
        {
            "syntax tree",
            "checkers",
            "data flow",
            "conventions",
            "test results",
            "edits",
            "warm engine",
            "dependencies",
        }
    ),
    projects=TableProjects("go"),
    coverage=TableCoverage("go"),
    file_tests=TableFileTests("go", ("go",)),
    parses=_MUTANTS.parses,
    make_mutants=_MUTANTS,
    compiler=GoCompiler(),
)

_BUILD_CONSTRAINT = re.compile(
    rb"^//(?:go:build|[ \t]{0,40}\+build) |^import \"C\"|^[ \t]*\"C\"$", re.MULTILINE
)
_SYSTEM_SUFFIX = re.compile(
    r"_(?:linux|darwin|windows|freebsd|netbsd|openbsd|plan9|js|wasm|amd64|arm64|arm|386|unix|android|ios|solaris|"
    r"wasip1|aix|dragonfly|illumos|ppc64|ppc64le|mips|riscv64|s390x)(?:_test)?\.go$"
)


@dataclass(frozen=True, slots=True)
class GoFunction:
    """How many arguments a function takes; `variadic` when the last stands for any number."""

    count: int
    variadic: bool
    shown: str
    line: int

    def explain_refusal(self, given: int) -> str | None:
        """Why the compiler refuses a call with this many arguments."""
        if given == self.count or (self.variadic and given >= self.count - 1):
            return None
        few = "not enough" if given < self.count else "too many"
        return f"{few} arguments: it takes {self.count} and is given {given}"


@dataclass(frozen=True, slots=True)
class GoUse:
    """A name that is used: of this package where `package` is "", else of the import of that name.

    `given` is the number of arguments of a call, None where it is no call or that cannot be told.
    """

    package: str
    name: str
    line: int
    given: int | None


@dataclass(frozen=True)
class GoFile:
    """One file's part of its package. `sure` when it is compiled on every system."""

    package: str
    declared: dict[str, int] = field(default_factory=dict)
    functions: dict[str, GoFunction] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    uses: tuple[GoUse, ...] = ()
    sure: bool = True


def is_go_file(path: str) -> bool:
    """Whether a file is Go."""
    return language_of(path) == "go"


def parse_go_file(path: str, data: bytes) -> GoFile | None:
    """Read a file; None where its syntax has errors."""
    root = parser_for("go").parse(data).root_node
    if root.has_error:
        return None
    declared: dict[str, int] = {}
    functions: dict[str, GoFunction] = {}
    imports: dict[str, str] = {}
    package = ""
    for node in root.named_children:
        if node.type == "package_clause":
            package = node_text(node.named_children[0])
        elif node.type == "import_declaration":
            imports.update(_find_imports(node))
        elif node.type == "function_declaration":
            name = node_text(node.child_by_field_name("name"))
            declared[name] = node.start_point[0] + 1
            if node.child_by_field_name("type_parameters") is None:
                functions[name] = _read_function(node, name)
        else:
            declared.update(_declared_names(node))
    local = Counter(_local_names(root))
    uses = tuple(u for u in _find_uses(root, imports) if not local[u.package or u.name])
    sure = not _BUILD_CONSTRAINT.search(data) and not _SYSTEM_SUFFIX.search(path)
    return GoFile(package, declared, functions, imports, uses, sure)


def read_module_path(go_mod: str) -> str:
    """The module's path, as go.mod names it."""
    found = re.search(r"^module\s+(\S+)", go_mod, re.MULTILINE)
    return found[1].strip('"') if found else ""


def _find_imports(node: Node) -> Iterator[tuple[str, str]]:
    """Name here and path of each import."""
    for spec in walk_nodes(node):
        if spec.type != "import_spec":
            continue
        source = node_text(spec.child_by_field_name("path")).strip('"`')
        name = spec.child_by_field_name("name")
        last = re.sub(r"/v\d+$", "", source).rpartition("/")[2]
        yield (node_text(name) if name is not None else last), source


def _read_function(node: Node, name: str) -> GoFunction:
    count, variadic = 0, False
    parameters = node.child_by_field_name("parameters")
    for one in parameters.named_children if parameters is not None else ():
        if one.type == "parameter_declaration":
            count += max(1, len(one.children_by_field_name("name")))
        elif one.type == "variadic_parameter_declaration":
            count, variadic = count + 1, True
    shown = f"func {name}{' '.join(node_text(parameters).split())}"
    return GoFunction(count, variadic, shown[:160], node.start_point[0] + 1)


def _declared_names(node: Node) -> Iterator[tuple[str, int]]:
    """Types, constants and variables at the top."""
    if node.type not in {"type_declaration", "const_declaration", "var_declaration"}:
        return
    specs = {"type_spec", "type_alias", "const_spec", "var_spec"}
    waiting = list(node.named_children)
    while waiting:
        spec = waiting.pop()
        if spec.type == "var_spec_list":
            waiting.extend(spec.named_children)
        elif spec.type in specs:
            for name in spec.children_by_field_name("name"):
                if node_text(name) not in {"_", ","}:
                    yield node_text(name), spec.start_point[0] + 1


_BINDING_NODES = frozenset(
    {
        "parameter_declaration",
        "variadic_parameter_declaration",
        "type_parameter_declaration",
        "label_name",
    }
)


def _local_names(root: Node) -> Iterator[str]:
    """Names that something inside a function binds anew: of these nothing is said."""
    for node in walk_nodes(root):
        if node.type in _BINDING_NODES:
            yield from (node_text(n) for n in node.children_by_field_name("name"))
        elif node.type in {"short_var_declaration", "range_clause", "receive_statement"}:
            left = node.child_by_field_name("left")
            yield from (node_text(n) for n in (left.named_children if left is not None else ()))
        elif node.type in {"var_spec", "const_spec", "type_spec"} and not _is_top_level(node):
            yield from (node_text(n) for n in node.children_by_field_name("name"))
        elif node.type == "type_switch_statement":
            alias = node.child_by_field_name("alias")
            yield from (node_text(n) for n in (alias.named_children if alias is not None else ()))


def _is_top_level(node: Node) -> bool:
    parent = node.parent
    while parent is not None and parent.type in {
        "var_spec_list",
        "var_declaration",
        "const_declaration",
        "type_declaration",
    }:
        parent = parent.parent
    return parent is not None and parent.type == "source_file"


def _find_uses(root: Node, imports: dict[str, str]) -> Iterator[GoUse]:
    for node in walk_nodes(root):
        if node.type == "call_expression":
            yield from _read_call(node, imports)
        elif node.type in {"selector_expression", "qualified_type"}:
            owner = node.child_by_field_name("operand") or node.child_by_field_name("package")
            name = node.child_by_field_name("field") or node.child_by_field_name("name")
            if owner is not None and name is not None and node_text(owner) in imports:
                yield GoUse(node_text(owner), node_text(name), node.start_point[0] + 1, None)


def _read_call(node: Node, imports: dict[str, str]) -> Iterator[GoUse]:
    function = node.child_by_field_name("function")
    arguments = node.child_by_field_name("arguments")
    if function is None or arguments is None:
        return
    given = [c for c in arguments.named_children if c.type != "comment"]
    # one call's several results may be all the arguments; `f(xs...)` gives any number
    tells = not (len(given) == 1 and given[0].type == "call_expression")
    tells &= all(c.type != "variadic_argument" and not c.type.endswith("type") for c in given)
    count = len(given) if tells and "..." not in {c.type for c in arguments.children} else None
    line = node.start_point[0] + 1
    if function.type == "identifier":
        yield GoUse("", node_text(function), line, count)
    elif function.type == "selector_expression":
        owner = function.child_by_field_name("operand")
        if owner is not None and owner.type == "identifier" and node_text(owner) in imports:
            yield GoUse(
                node_text(owner), node_text(function.child_by_field_name("field")), line, count
            )
