"""Which names a Python file uses, and whose they are: imports followed through the repository's modules.

Only what is certain is answered: a name that is bound twice, or in a way not understood, resolves to nothing.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from regreen.code.python_calls import FunctionNode, PassedArguments, is_module, parse_python


@dataclass(frozen=True)
class ModuleMap:
    """Which file a module's name stands for in this repository."""

    by_name: Mapping[str, str | None] = field(default_factory=dict)

    @classmethod
    def from_paths(cls, paths: Iterable[str]) -> ModuleMap:
        """Read the names off the paths: from the root, from `src/`, and from the outermost package."""
        python = [p for p in paths if is_module(p)]
        packages = {str(PurePosixPath(p).parent) for p in python if p.endswith("/__init__.py")}
        by_name: dict[str, str | None] = {}
        for path in python:
            for name in _module_names(path, packages):
                by_name[name] = path if by_name.get(name, path) == path else None
        return cls(by_name)

    def find_path(self, name: str) -> str | None:
        """The file of a module, None where it is not this repository's, or two files could be meant."""
        return self.by_name.get(name)

    def resolve_relative(self, node: ast.ImportFrom, path: str) -> str | None:
        """The module that a `from ... import` in a file means, by a name that `path` knows."""
        if not node.level:
            return node.module
        folder = PurePosixPath(path).parent
        for _ in range(node.level - 1):
            folder = folder.parent
        parts = [p for p in folder.parts if p != "."]
        return ".".join((*parts, *((node.module or "").split(".") if node.module else ())))


def _module_names(path: str, packages: set[str]) -> Iterator[str]:
    parts = list(PurePosixPath(path).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    first = 0
    for i in range(len(parts) - 1):
        if "/".join(parts[: i + 1]) in packages:
            first = i
            break
        first = i + 1
    starts = {0, first} | ({1} if parts[:1] in (["src"], ["lib"]) else set())
    for start in sorted(starts):
        name = ".".join(parts[start:])
        if name and (start == 0 or name not in sys.stdlib_module_names):
            yield name


def shadowed_module(path: str) -> str | None:
    """The module beside it that a package hides: both have the same name, and the package is imported."""
    return f"{path.removesuffix('/__init__.py')}.py" if path.endswith("/__init__.py") else None


def top_module(path: str) -> str:
    """The name by which a file or package at an import root is imported; "" for what is no module."""
    first, _, rest = path.partition("/")
    if rest == "__init__.py":
        return first
    is_importable = not rest and path.endswith((".py", ".so", ".pyd"))
    return path.split(".", maxsplit=1)[0] if is_importable else ""


@dataclass(frozen=True, slots=True)
class ModuleUse:
    """A place that uses a name of another module (or its own): a call when `passed` is there."""

    module: str
    name: str
    line: int
    passed: PassedArguments | None
    imports: bool = False
    guarded: bool = False


def find_uses(tree: ast.Module, path: str, modules: ModuleMap) -> list[ModuleUse]:
    """Every use of a repository module's name in this file that resolves for certain. `module` is its path."""
    return list(_UseFinder(tree, path, modules).find_all())


class _UseFinder:
    def __init__(self, tree: ast.Module, path: str, modules: ModuleMap) -> None:
        self.tree = tree
        self.path = path
        self.modules = modules
        self.guarded = _ids_of_guarded_nodes(tree)
        self.stores = find_rebound_names(tree)
        self.members, self.aliases = self._local_imports()
        self.own = {
            n.name for n in tree.body if isinstance(n, FunctionNode | ast.ClassDef)
        } - self.stores.keys()

    def find_all(self) -> Iterator[ModuleUse]:
        """Imports, then uses in the order of the tree."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                yield from self._imported_uses(node)
            elif isinstance(node, ast.Call) and (target := self._resolve_target(node.func)):
                # a method called on its class gets its object by hand: nothing is said of that
                passed = None if "." in target[1] else _passed_arguments(node)
                yield ModuleUse(*target, node.lineno, passed, guarded=id(node) in self.guarded)
            elif (
                isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Load)
                and (target := self._resolve_target(node))
            ):
                yield ModuleUse(*target, node.lineno, None, guarded=id(node) in self.guarded)
        for class_ in self.tree.body:
            if isinstance(class_, ast.ClassDef):
                yield from self._own_method_uses(class_)

    def _own_method_uses(self, class_: ast.ClassDef) -> Iterator[ModuleUse]:
        """`self.method(...)` inside a class that defines the method itself."""
        defined = {n.name for n in class_.body if isinstance(n, FunctionNode)}
        assigned = {
            n.attr
            for n in ast.walk(class_)
            if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
        }
        for node in ast.walk(class_):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "self"
                and node.func.attr in defined - assigned
            ):
                name = f"{class_.name}.{node.func.attr}"
                yield ModuleUse(self.path, name, node.lineno, _passed_arguments(node))

    def _imported_uses(self, node: ast.ImportFrom) -> Iterator[ModuleUse]:
        source = self.modules.resolve_relative(node, self.path)
        path = self.modules.find_path(source) if source else None
        for alias in node.names if path else ():
            inner = f"{source}.{alias.name}"
            if path and alias.name != "*" and self.modules.find_path(inner) is None:
                yield ModuleUse(
                    path,
                    alias.name,
                    node.lineno,
                    None,
                    imports=True,
                    guarded=id(node) in self.guarded,
                )

    def _resolve_target(self, func: ast.expr) -> tuple[str, str] | None:
        """The file and name that an expression stands for."""
        if isinstance(func, ast.Name):
            if func.id in self.members:
                return self.members[func.id]
            return (self.path, func.id) if func.id in self.own else None
        dotted = _dotted_parts(func)
        if dotted is None:
            return None
        for cut in range(len(dotted) - 1, 0, -1):
            path = self.aliases.get(".".join(dotted[:cut]))
            if path is not None:
                return path, ".".join(dotted[cut:])
        return None

    def _local_imports(self) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
        """Local names of members (`from m import f as g`) and of modules (`import m.n as k`)."""
        members: dict[str, tuple[str, str]] = {}
        aliases: dict[str, str] = {}
        counted: dict[str, set[object]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    path = self.modules.find_path(alias.name)
                    if path is not None:
                        aliases[alias.asname or alias.name] = path
            elif isinstance(node, ast.ImportFrom):
                source = self.modules.resolve_relative(node, self.path)
                for alias in node.names if source else ():
                    local = alias.asname or alias.name
                    counted.setdefault(local, set()).add((source, alias.name))
                    inner = self.modules.find_path(f"{source}.{alias.name}")
                    path = self.modules.find_path(source) if source else None
                    if inner is not None:
                        aliases[local] = inner
                    elif path is not None:
                        members[local] = (path, alias.name)
        unsure = self.stores.keys() | {n for n, places in counted.items() if len(places) > 1}
        return (
            {n: t for n, t in members.items() if n not in unsure},
            {n: p for n, p in aliases.items() if n.split(".", maxsplit=1)[0] not in unsure},
        )


_IMPORT_START = re.compile(r"(?m)(?:^|[:;])[ \t\f]*(?=(?:from[ \t.][ \t]*[\w.]|import[ \t\\]))")
_MAX_STATEMENT, _MAX_LINES = 100_000, 60  # of a statement; that end in a comment or a backslash


def _list_import_texts(text: str) -> Iterator[str]:
    """The statements that import, as they are written; texts and comments may hold some that are none."""
    last, end = text.rfind(")"), 0
    for match in _IMPORT_START.finditer(text):
        if match.end() < end:
            continue  # in the statement before, or behind it in its line
        start = end = match.end()
        for _ in range(_MAX_LINES):
            end = text.find("\n", end + 1)
            if end < 0 or not text[end - 2 : end].rstrip("\r").endswith("\\"):
                break
        end = line_end = len(text) if end < 0 else end
        opening = text.find("(", start, end)
        if 0 <= opening < last and "#" not in text[start:opening]:
            end = opening
            for _ in range(_MAX_LINES):
                end = text.find(")", end + 1)
                if end < 0 or "#" not in text[text.rfind("\n", start, end) + 1 : end]:
                    break
            end = end + 1 or line_end
        if start < end < start + _MAX_STATEMENT:
            yield text[start:end]


def imported_files(text: str | bytes, path: str, modules: ModuleMap) -> Iterator[str]:
    """The repository's files that a Python file imports, with the packages they stand in.

    Only the statements that import are parsed, one in a docstring among them: a whole file takes ten times as long.
    """
    whole = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    whole = whole.removeprefix("\ufeff")
    lines = map(parse_python, _list_import_texts(whole))
    for node in (node for tree in lines if tree for node in tree.body):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and (source := modules.resolve_relative(node, path)):
            names = [source, *(f"{source}.{a.name}" for a in node.names)]
        for name in names:
            parts = name.split(".")
            for end in range(1, len(parts) + 1):
                if found := modules.find_path(".".join(parts[:end])):
                    yield found


def find_rebound_names(tree: ast.Module) -> dict[str, int]:
    """Names bound anywhere in the file by something else than one import or one definition at the top."""
    found: dict[str, int] = {}
    tops = {id(n) for n in tree.body}
    times: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found[node.id] = node.lineno
        elif isinstance(node, ast.arg):
            found[node.arg] = node.lineno
        elif isinstance(node, FunctionNode | ast.ClassDef):
            times[node.name] = times.get(node.name, 0) + (id(node) in tops)
            if times[node.name] > 1:
                found[node.name] = node.lineno
    return found


def _ids_of_guarded_nodes(tree: ast.Module) -> set[int]:
    """Nodes under a `try` with handlers or a condition: what is missing there may be meant to be missing."""
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and node.handlers:
            for child in node.body:
                inside.update(id(n) for n in ast.walk(child))
        elif isinstance(node, ast.If):
            test = ast.dump(node.test)
            if any(
                word in test for word in ("TYPE_CHECKING", "version_info", "hasattr", "PY2", "PY3")
            ):
                for child in (*node.body, *node.orelse):
                    inside.update(id(n) for n in ast.walk(child))
    return inside


def _dotted_parts(node: ast.expr) -> list[str] | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return [node.id, *reversed(parts)]


def _passed_arguments(call: ast.Call) -> PassedArguments | None:
    if any(isinstance(a, ast.Starred) for a in call.args) or any(
        k.arg is None for k in call.keywords
    ):
        return None
    return PassedArguments(len(call.args), tuple(k.arg for k in call.keywords if k.arg))
