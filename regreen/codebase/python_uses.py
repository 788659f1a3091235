"""Which names a Python file uses, and whose they are: imports followed through the repository's modules.

Only what is certain is answered: a name that is bound twice, or in a way not understood, resolves to nothing.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from regreen.codebase.python_code import Function, Passed, parse_python


@dataclass(frozen=True)
class Modules:
    """Which file a module's name stands for in this repository."""

    by_name: Mapping[str, str | None] = field(default_factory=dict)

    @classmethod
    def of(cls, paths: Iterable[str]) -> Modules:
        """Read the names off the paths: from the root, from `src/`, and from the outermost package."""
        python = [p for p in paths if p.endswith(".py")]
        packages = {str(PurePosixPath(p).parent) for p in python if p.endswith("/__init__.py")}
        by_name: dict[str, str | None] = {}
        for path in python:
            for name in _module_names(path, packages):
                by_name[name] = path if by_name.get(name, path) == path else None
        return cls(by_name)

    def path(self, name: str) -> str | None:
        """The file of a module, None where it is not this repository's, or two files could be meant."""
        return self.by_name.get(name)

    def absolute(self, node: ast.ImportFrom, path: str) -> str | None:
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


@dataclass(frozen=True, slots=True)
class Use:
    """A place that uses a name of another module (or its own): a call when `passed` is there."""

    module: str
    name: str
    line: int
    passed: Passed | None
    imports: bool = False
    guarded: bool = False


def uses(tree: ast.Module, path: str, modules: Modules) -> list[Use]:
    """Every use of a repository module's name in this file that resolves for certain. `module` is its path."""
    return list(_Uses(tree, path, modules).found())


class _Uses:
    def __init__(self, tree: ast.Module, path: str, modules: Modules) -> None:
        self.tree = tree
        self.path = path
        self.modules = modules
        self.guarded = _guarded(tree)
        self.stores = _stores(tree)
        self.members, self.aliases = self._imports()
        self.own = {
            n.name for n in tree.body if isinstance(n, Function | ast.ClassDef)
        } - self.stores.keys()

    def found(self) -> Iterator[Use]:
        """Imports, then uses in the order of the tree."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                yield from self._imported(node)
            elif isinstance(node, ast.Call) and (target := self._target(node.func)):
                # a method called on its class gets its object by hand: nothing is said of that
                passed = None if "." in target[1] else _passed(node)
                yield Use(*target, node.lineno, passed, guarded=id(node) in self.guarded)
            elif (
                isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Load)
                and (target := self._target(node))
            ):
                yield Use(*target, node.lineno, None, guarded=id(node) in self.guarded)
        for class_ in self.tree.body:
            if isinstance(class_, ast.ClassDef):
                yield from self._own_methods(class_)

    def _own_methods(self, class_: ast.ClassDef) -> Iterator[Use]:
        """`self.method(...)` inside a class that defines the method itself."""
        defined = {n.name for n in class_.body if isinstance(n, Function)}
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
                yield Use(self.path, name, node.lineno, _passed(node))

    def _imported(self, node: ast.ImportFrom) -> Iterator[Use]:
        source = self.modules.absolute(node, self.path)
        path = self.modules.path(source) if source else None
        for alias in node.names if path else ():
            inner = f"{source}.{alias.name}"
            if path and alias.name != "*" and self.modules.path(inner) is None:
                yield Use(
                    path,
                    alias.name,
                    node.lineno,
                    None,
                    imports=True,
                    guarded=id(node) in self.guarded,
                )

    def _target(self, func: ast.expr) -> tuple[str, str] | None:
        """The file and name that an expression stands for."""
        if isinstance(func, ast.Name):
            if func.id in self.members:
                return self.members[func.id]
            return (self.path, func.id) if func.id in self.own else None
        dotted = _dotted(func)
        if dotted is None:
            return None
        for cut in range(len(dotted) - 1, 0, -1):
            path = self.aliases.get(".".join(dotted[:cut]))
            if path is not None:
                return path, ".".join(dotted[cut:])
        return None

    def _imports(self) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
        """Local names of members (`from m import f as g`) and of modules (`import m.n as k`)."""
        members: dict[str, tuple[str, str]] = {}
        aliases: dict[str, str] = {}
        counted: dict[str, set[object]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    path = self.modules.path(alias.name)
                    if path is not None:
                        aliases[alias.asname or alias.name] = path
            elif isinstance(node, ast.ImportFrom):
                source = self.modules.absolute(node, self.path)
                for alias in node.names if source else ():
                    local = alias.asname or alias.name
                    counted.setdefault(local, set()).add((source, alias.name))
                    inner = self.modules.path(f"{source}.{alias.name}")
                    path = self.modules.path(source) if source else None
                    if inner is not None:
                        aliases[local] = inner
                    elif path is not None:
                        members[local] = (path, alias.name)
        unsure = self.stores.keys() | {n for n, places in counted.items() if len(places) > 1}
        return (
            {n: t for n, t in members.items() if n not in unsure},
            {n: p for n, p in aliases.items() if n.split(".", maxsplit=1)[0] not in unsure},
        )


def imported(text: str | bytes, path: str, modules: Modules) -> Iterator[str]:
    """The repository's files that a Python file imports, with the packages they stand in."""
    tree = parse_python(text)
    for node in ast.walk(tree) if tree else ():
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and (source := modules.absolute(node, path)):
            names = [source, *(f"{source}.{a.name}" for a in node.names)]
        for name in names:
            parts = name.split(".")
            for end in range(1, len(parts) + 1):
                if found := modules.path(".".join(parts[:end])):
                    yield found


def _stores(tree: ast.Module) -> dict[str, int]:
    """Names bound anywhere in the file by something else than one import or one definition at the top."""
    found: dict[str, int] = {}
    tops = {id(n) for n in tree.body}
    times: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found[node.id] = node.lineno
        elif isinstance(node, ast.arg):
            found[node.arg] = node.lineno
        elif isinstance(node, Function | ast.ClassDef):
            times[node.name] = times.get(node.name, 0) + (id(node) in tops)
            if times[node.name] > 1:
                found[node.name] = node.lineno
    return found


def _guarded(tree: ast.Module) -> set[int]:
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


def _dotted(node: ast.expr) -> list[str] | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return [node.id, *reversed(parts)]


def _passed(call: ast.Call) -> Passed | None:
    if any(isinstance(a, ast.Starred) for a in call.args) or any(
        k.arg is None for k in call.keywords
    ):
        return None
    return Passed(len(call.args), tuple(k.arg for k in call.keywords if k.arg))
