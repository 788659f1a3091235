"""The repository as the interpreter sees it: modules found by import, parsed once, and which of their functions mention a source."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from posixpath import dirname, join

from regreen.code.python_calls import is_module, is_package
from regreen.code.python_compat import UnparsableSource, parse_python_or_explain

_SOURCE_ROOTS = ("", "src", "lib", "app", "backend", "server")


@dataclass(slots=True)
class ParsedModule:
    """One parsed file."""

    path: str
    tree: ast.Module
    text: str


@dataclass(slots=True)
class Program:
    """Python files by path; `read` gives a file's text, `paths` is every Python file there is."""

    read: Callable[[str], str | None]
    paths: frozenset[str]
    unread: dict[str, str] = field(default_factory=dict)
    _modules: dict[str, ParsedModule | None] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict)
    _folders: frozenset[str] | None = None

    @classmethod
    def from_files(cls, files: dict[str, str]) -> Program:
        """A program that is all in memory."""
        return cls(files.get, frozenset(path for path in files if is_module(path)))

    def load_module(self, path: str) -> ParsedModule | None:
        """The parsed file; None (and a reason in `unread`) where it cannot be read."""
        if path not in self._modules:
            self._modules[path] = self._parse_module(path)
        return self._modules[path]

    def read_source(self, path: str) -> str:
        """A file's text, not parsed; empty where it cannot be read."""
        known = self._modules.get(path)
        if known is not None:
            return known.text
        if path not in self._texts:
            self._texts[path] = self.read(path) or ""
        return self._texts[path]

    def _parse_module(self, path: str) -> ParsedModule | None:
        text = self._texts.pop(path, None) or self.read(path)
        if text is None:
            self.unread[path] = "not readable"
            return None
        try:
            return ParsedModule(path, parse_python_or_explain(text), text)
        except UnparsableSource as error:
            self.unread[path] = str(error)
            return None

    def find_module(self, dotted: str, importer: str, level: int = 0) -> str | None:
        """The path of a module (a folder for a namespace package) that an import names; None if outside."""
        parts = dotted.replace(".", "/") if dotted else ""
        if level:
            folder = dirname(importer)
            for _ in range(level - 1):
                folder = dirname(folder)
            return self._find_path(join(folder, parts) if parts else folder)
        for root in self._search_path(importer):
            found = self._find_path(join(root, parts))
            if found is not None:
                return found
        return None

    def _search_path(self, importer: str) -> Iterable[str]:
        yield from _SOURCE_ROOTS
        folder = dirname(importer)
        while folder:
            yield folder
            folder = dirname(folder)

    def _find_path(self, stem: str) -> str | None:
        for path in (f"{stem}.py", f"{stem}/__init__.py" if stem else "__init__.py"):
            if path in self.paths:
                return path
        if self._folders is None:
            self._folders = frozenset(_all_folders(self.paths))
        return stem if stem in self._folders and stem not in _SOURCE_ROOTS else None

    def find_submodule(self, module: str, name: str) -> str | None:
        """The module `name` inside a package or folder."""
        folder = dirname(module) if is_package(module) else module
        return None if is_module(folder) else self._find_path(join(folder, name))


def _all_folders(paths: Iterable[str]) -> Iterable[str]:
    known: set[str] = set()
    for path in paths:
        folder = dirname(path)
        while folder and folder not in known:
            known.add(folder)
            yield folder
            folder = dirname(folder)


_SOURCE_NAMES = (
    r"request|argv|environ|getenv|input|stdin|recv\w*|random|get_\w{0,100}argument\w{0,100}|urlopen|ArgumentParser|requests|httpx|"
    r"urllib3|StreamReader|websockets?|WebSocketResponse|hashlib|md5|sha1"
)
_IN_TEXT = re.compile(rf"\b(?:{_SOURCE_NAMES})\b")
_SOURCE_NAME = re.compile(_SOURCE_NAMES)
_SOURCE_MENTION = re.compile(rf"\b(?:{_SOURCE_NAMES})\b".encode())
# Functions that a framework calls: decorated ones, methods of its classes, registered ones.
_ENTRY_MENTION = re.compile(
    rb"@\w+(?:\.\w+)*\.(?:route|get|post|put|delete|patch|head|options|api_route|websocket|command|errorhandler|expose)\b|\bdef on_\w+\(self, req\b|"
    rb"(?:View|ViewSet|Mixin|Handler|Resource|Endpoint)\b|\badd_\w+\(|\bregister_function\(|\bRoute\(|\bDepends\("
)
_MADE_BY = frozenset({"__init__", "__new__", "__post_init__", "__call__", "__enter__"})


def may_begin(source: bytes) -> bool:
    """Whether untrusted values can enter in a file: it mentions a source, or a framework calls into it."""
    return _SOURCE_MENTION.search(source) is not None or _ENTRY_MENTION.search(source) is not None


def cached_tainting_names(
    program: Program, path: str, known: dict[str, frozenset[str]]
) -> frozenset[str]:
    """The names of a module's functions, methods and classes that may bring an untrusted value into play.

    Args:
        program: where modules are found.
        path: the module.
        known: what was found before, by path.
    """
    if path not in known:
        module = program.load_module(path) if is_module(path) else None
        silent = module is None or _IN_TEXT.search(module.text) is None
        known[path] = frozenset() if module is None or silent else _tainting_names(program, module)
    return known[path]


def _tainting_names(program: Program, module: ParsedModule) -> frozenset[str]:
    units = list(_list_named_definitions(module.tree))
    found = set(_imported_source_names(program, module))
    waiting = units
    while True:
        # A unit that names one that talks, talks.
        talks = [
            unit
            for unit in waiting
            if any(n in found or _SOURCE_NAME.fullmatch(n) for n in unit[1])
        ]
        if not talks:
            return frozenset(found)
        found.update(name for names, _ in talks for name in names)
        waiting = [unit for unit in waiting if unit not in talks]


def _list_named_definitions(tree: ast.Module) -> Iterator[tuple[list[str], frozenset[str]]]:
    """What has names of its own, with every name in it: functions, classes by what makes them, globals."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield [node.name], _mentioned_names([node])
        elif isinstance(node, ast.ClassDef):
            making = [
                item
                for item in node.body
                if not isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
                or item.name in _MADE_BY
            ]
            yield [node.name], _mentioned_names([*making, *node.bases])
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            yield names, _mentioned_names([statement])


def _mentioned_names(nodes: Iterable[ast.AST]) -> frozenset[str]:
    found: set[str] = set()
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.alias):
                found.update(node.name.split("."))
    return frozenset(found)


def _imported_source_names(program: Program, module: ParsedModule) -> Iterator[str]:
    """The names that an import brings from a source, or from a module of the repository that speaks of one.

    Which of its names do is not asked: for that all that it imports would have to be parsed, and so on.
    """
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if any(_SOURCE_NAME.fullmatch(part) for part in alias.name.split(".")):
                    yield alias.asname or alias.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            path = program.find_module(source, module.path, node.level)
            named = any(_SOURCE_NAME.fullmatch(part) for part in source.split("."))
            if path is not None and is_module(path):
                named = named or _IN_TEXT.search(program.read_source(path)) is not None
            for alias in node.names:
                if named or _SOURCE_NAME.fullmatch(alias.name):
                    yield alias.asname or alias.name
