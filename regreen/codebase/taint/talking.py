"""Which functions speak of anything that untrusted values come from, themselves or by what they call."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from regreen.codebase.taint.program import Module, Program

_SOURCES = (
    r"request|argv|environ|getenv|input|stdin|recv\w*|random|get_\w*argument\w*|urlopen|ArgumentParser|requests|httpx|"
    r"urllib3|StreamReader"
)
_IN_TEXT = re.compile(rf"\b(?:{_SOURCES})\b")
_NAME = re.compile(_SOURCES)
_BEGINS = re.compile(rf"\b(?:{_SOURCES})\b".encode())
# What a framework calls: by a decorator, by a class, by being handed over.
_ENTERED = re.compile(
    rb"@\w+(?:\.\w+)*\.(?:route|get|post|put|delete|patch|head|options|api_route|websocket|command|errorhandler)\b|"
    rb"(?:View|ViewSet|Mixin|Handler|Resource|Endpoint)\b|\badd_\w+\(|\bregister_function\(|\bRoute\(|\bDepends\("
)
_MADE_BY = frozenset({"__init__", "__new__", "__post_init__", "__call__", "__enter__"})


def may_begin(source: bytes) -> bool:
    """Whether untrusted values can enter in a file: it speaks of a source, or a framework calls into it."""
    return _BEGINS.search(source) is not None or _ENTERED.search(source) is not None


def talking(program: Program, path: str, known: dict[str, frozenset[str]]) -> frozenset[str]:
    """The names of a module's functions, methods and classes that may bring an untrusted value into play.

    Args:
        program: where modules are found.
        path: the module.
        known: what was found before, by path.
    """
    if path not in known:
        module = program.module(path) if path.endswith(".py") else None
        silent = module is None or _IN_TEXT.search(module.text) is None
        known[path] = frozenset() if module is None or silent else _names(program, module)
    return known[path]


def _names(program: Program, module: Module) -> frozenset[str]:
    units = list(_units(module.tree))
    found = set(_imported(program, module))
    waiting = units
    while True:
        # A unit that names one that talks, talks.
        talks = [unit for unit in waiting if any(n in found or _NAME.fullmatch(n) for n in unit[1])]
        if not talks:
            return frozenset(found)
        found.update(name for names, _ in talks for name in names)
        waiting = [unit for unit in waiting if unit not in talks]


def _units(tree: ast.Module) -> Iterator[tuple[list[str], frozenset[str]]]:
    """What has names of its own, with every name in it: functions, classes by what makes them, globals."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield [node.name], _mentioned([node])
        elif isinstance(node, ast.ClassDef):
            making = [
                item
                for item in node.body
                if not isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
                or item.name in _MADE_BY
            ]
            yield [node.name], _mentioned([*making, *node.bases])
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            yield names, _mentioned([statement])


def _mentioned(nodes: Iterable[ast.AST]) -> frozenset[str]:
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


def _imported(program: Program, module: Module) -> Iterator[str]:
    """The names that an import brings from a source, or from a module of the repository that speaks of one.

    Which of its names do is not asked: for that all that it imports would have to be parsed, and so on.
    """
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if any(_NAME.fullmatch(part) for part in alias.name.split(".")):
                    yield alias.asname or alias.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            path = program.find(source, module.path, node.level)
            named = any(_NAME.fullmatch(part) for part in source.split("."))
            if path is not None and path.endswith(".py"):
                named = named or _IN_TEXT.search(program.source(path)) is not None
            for alias in node.names:
                if named or _NAME.fullmatch(alias.name):
                    yield alias.asname or alias.name
