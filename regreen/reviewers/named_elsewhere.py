"""Names that others give without importing them: texts for `mock.patch`, entry points, fixtures that tests ask for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from regreen.codebase.python_code import Function, Module, parse_python
from regreen.codebase.python_uses import Modules, Use
from regreen.codebase.sources import sources
from regreen.reviewers.context import ReviewContext
from regreen.reviewers.scope import is_test

_SETTINGS = re.compile(r"(?:^|/)(?:pyproject\.toml|setup\.cfg|setup\.py)$")
_ENTRY = re.compile(r"[\"'=]\s*([A-Za-z_][\w.]{0,200}):([A-Za-z_]\w{0,100})\b")
_DOTTED = re.compile(r"([A-Za-z_][\w.]{0,200})[.:]([A-Za-z_]\w{0,100})")
_ONLY_WORDS = frozenset({"getLogger", "print", "debug", "info", "warning", "error", "Command", "deprecated"})  # fmt: skip
_OF_PLUGINS = frozenset(
    """client db mocker app settings rf admin_client live_server event_loop benchmark snapshot faker requests_mock
    httpx_mock freezer page browser loop aiohttp_client session request testdir pytester httpserver celery_app""".split()  # noqa: SIM905 - reads better without quotes
)
"""Fixtures that well-known plugins bring under the same name."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line that uses a name of another file, as it stands there."""

    path: str
    use: Use
    code: str


def named_in_settings(
    context: ReviewContext, modules: Modules, removed: Set[tuple[str, str]]
) -> Iterator[Place]:
    """Entry points (`package.module:name`) of what is removed. `removed`: path and name."""
    for entry in context.tree if removed else ():
        text = context.after(entry.path) if _SETTINGS.search(entry.path) else None
        for number, row in enumerate((text or "").split("\n"), 1):
            for match in _ENTRY.finditer(row[:1000]):
                path = modules.path(match[1])
                if path and (path, match[2]) in removed:
                    yield Place(entry.path, Use(path, match[2], number, None), row.strip())


def named_in_calls(
    tree: ast.Module,
    path: str,
    rows: Sequence[str],
    modules: Modules,
    removed: Set[tuple[str, str]],
) -> Iterator[Place]:
    """Arguments such as `"package.module.name"` that name what is removed, as `mock.patch` takes them."""
    for node in ast.walk(tree) if removed else ():
        if not isinstance(node, ast.Call) or _last(node.func) in _ONLY_WORDS:
            continue
        for argument in (*node.args, *(k.value for k in node.keywords)):
            if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
                continue
            match = _DOTTED.fullmatch(argument.value)
            target = modules.path(match[1]) if match else None
            if match and target and (target, match[2]) in removed:
                yield Place(path, Use(target, match[2], argument.lineno, None), rows[argument.lineno - 1].strip())  # fmt: skip


def lost_fixtures(before: str, after: Module, removed: Mapping[str, int]) -> frozenset[str]:
    """Names of pytest fixtures among what is removed; not those that a plugin may give instead."""
    had = _fixtures(parse_python(before)) if removed and "fixture" in before else frozenset()
    renamed = any(name not in had for name in after.definitions)
    return frozenset(n for n in had & removed.keys() if renamed or n not in _OF_PLUGINS)


def asked_for(context: ReviewContext, fixtures: Set[tuple[str, str]]) -> Iterator[Place]:
    """Tests below a conftest that ask for a fixture of it that is gone and that nobody else defines."""
    if context.git is None or not fixtures:
        return
    wanted = {(path.rpartition("/")[0], name): path for path, name in fixtures if path.endswith("conftest.py")}  # fmt: skip
    names = {name for _, name in wanted}
    found: list[Place] = []
    for path, data in sources(context.git, context.head, lambda p: p.endswith(".py")):
        if not any(n.encode() in data for n in names):
            continue
        tree = parse_python(data)
        names -= _fixtures(tree)
        rows = data.decode("utf-8", "surrogateescape").split("\n")
        for node in ast.walk(tree) if tree and is_test(path) else ():
            if not isinstance(node, Function) or not node.name.startswith("test"):
                continue
            given = " ".join(ast.unparse(d) for d in node.decorator_list)
            for argument in node.args.args:
                for (folder, name), origin in wanted.items():
                    if name == argument.arg and name not in given and path.startswith(f"{folder}/" if folder else ""):  # fmt: skip
                        use = Use(origin, name, node.lineno, None)
                        found.append(Place(path, use, rows[node.lineno - 1].strip()))
    yield from (p for p in found if p.use.name in names)


def _fixtures(tree: ast.Module | None) -> frozenset[str]:
    """Fixtures of a file by the names that tests ask for."""
    found: set[str] = set()
    for node in ast.walk(tree) if tree else ():
        for decorator in node.decorator_list if isinstance(node, Function) else ():
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            if _last(call) == "fixture":
                keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
                named = [k.value for k in keywords if k.arg == "name"]
                found.update(str(v.value) for v in named if isinstance(v, ast.Constant))
                found.update([] if named else [node.name])  # type: ignore[attr-defined]
    return frozenset(found)


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
