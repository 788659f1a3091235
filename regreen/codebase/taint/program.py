"""The repository as the interpreter sees it: modules found by import, read and parsed once."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from posixpath import dirname, join

from regreen.codebase.fstrings import Unparsable, parse_python

_ROOTS = ("", "src", "lib", "app", "backend", "server")


@dataclass(slots=True)
class Module:
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
    _modules: dict[str, Module | None] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict)
    _folders: frozenset[str] | None = None

    @classmethod
    def of(cls, files: dict[str, str]) -> Program:
        """A program that is all in memory."""
        return cls(files.get, frozenset(path for path in files if path.endswith(".py")))

    def module(self, path: str) -> Module | None:
        """The parsed file; None (and a reason in `unread`) where it cannot be read."""
        if path not in self._modules:
            self._modules[path] = self._load(path)
        return self._modules[path]

    def source(self, path: str) -> str:
        """A file's text, not parsed; empty where it cannot be read."""
        known = self._modules.get(path)
        if known is not None:
            return known.text
        if path not in self._texts:
            self._texts[path] = self.read(path) or ""
        return self._texts[path]

    def _load(self, path: str) -> Module | None:
        text = self._texts.pop(path, None) or self.read(path)
        if text is None:
            self.unread[path] = "not readable"
            return None
        try:
            return Module(path, parse_python(text), text)
        except Unparsable as error:
            self.unread[path] = str(error)
            return None

    def find(self, dotted: str, importer: str, level: int = 0) -> str | None:
        """The path of a module (a folder for a namespace package) that an import names; None if outside."""
        parts = dotted.replace(".", "/") if dotted else ""
        if level:
            folder = dirname(importer)
            for _ in range(level - 1):
                folder = dirname(folder)
            return self._at(join(folder, parts) if parts else folder)
        for root in self._search_path(importer):
            found = self._at(join(root, parts))
            if found is not None:
                return found
        return None

    def _search_path(self, importer: str) -> Iterable[str]:
        yield from _ROOTS
        folder = dirname(importer)
        while folder:
            yield folder
            folder = dirname(folder)

    def _at(self, stem: str) -> str | None:
        for path in (f"{stem}.py", f"{stem}/__init__.py" if stem else "__init__.py"):
            if path in self.paths:
                return path
        if self._folders is None:
            self._folders = frozenset(_all_folders(self.paths))
        return stem if stem in self._folders and stem not in _ROOTS else None

    def submodule(self, module: str, name: str) -> str | None:
        """The module `name` inside a package or folder."""
        folder = dirname(module) if module.endswith("__init__.py") else module
        return None if folder.endswith(".py") else self._at(join(folder, name))


def _all_folders(paths: Iterable[str]) -> Iterable[str]:
    seen: set[str] = set()
    for path in paths:
        folder = dirname(path)
        while folder and folder not in seen:
            seen.add(folder)
            yield folder
            folder = dirname(folder)
