"""Which texts a route lets through to a handler's parameters: numbers, identifiers, a slug, what a pattern matches."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from regreen.codebase.taint import expressions
from regreen.codebase.taint.run import Frame, Run
from regreen.codebase.taint.state import State
from regreen.codebase.taint.values import ClassRef, FunctionRef

# What the framework's converters let through; whatever else they are called, a parameter can hold any text.
_NUMBER = r"^[-0-9.a-fA-F]*\Z"
_CONVERTERS = {
    "int": _NUMBER,
    "float": _NUMBER,
    "uuid": _NUMBER,
    "slug": r"^[-a-zA-Z0-9_]+\Z",
}
_ANY_OF = re.compile(r"<any\(([^)]*)\):(\w+)>")
_PARAMETER = re.compile(r"<(?:(\w+)(?:\([^)]*\))?:)?(\w+)>")
_GROUP = re.compile(r"\(\?P<(\w+)>")
_PATHS = frozenset({"path", "re_path", "url"})
_TABLES = re.compile(r"\burlpatterns\b")


@dataclass(frozen=True, slots=True)
class Route:
    """One line of a `urlpatterns`: the address, whether that is a regular expression, and the view as it is written."""

    address: str
    is_pattern: bool
    view: ast.Name | ast.Attribute

    @property
    def name(self) -> str:
        """The view's own name, without its module's."""
        return self.view.attr if isinstance(self.view, ast.Attribute) else self.view.id


def patterns(run: Run, function: FunctionRef, owner: ast.ClassDef | None) -> Mapping[str, str]:
    """For the parameters of a Django view, the pattern that every one of its routes matches the text against."""
    target = owner if owner is not None else function.node
    name = getattr(target, "name", "")
    if run.tables is None:
        run.tables = sorted(path for path in run.program.paths if path.endswith("urls.py"))
    found: dict[str, str] | None = None
    for path in dict.fromkeys((function.module, *run.tables)):
        for route in _table(run, path):
            if route.name != name or not _leads_to(run, path, route, target):
                continue
            said = dict(_groups(route.address) if route.is_pattern else _converted(route.address))
            # Two routes to one view: only what both say of a parameter holds.
            found = said if found is None else {n: p for n, p in found.items() if said.get(n) == p}
    return found or {}


def _converted(route: str) -> Iterator[tuple[str, str]]:
    for match in _PARAMETER.finditer(route):
        if match[1] in _CONVERTERS:
            yield match[2], _CONVERTERS[match[1]]
    for match in _ANY_OF.finditer(route):
        words = [re.escape(word.strip()) for word in match[1].split(",")]
        yield match[2], rf"^(?:{'|'.join(words)})\Z"


def _groups(route: str) -> Iterator[tuple[str, str]]:
    """The named groups of a route that is a regular expression."""
    for match in _GROUP.finditer(route):
        depth, at = 1, match.end()
        while at < len(route) and depth:
            if route[at] == "\\":
                at += 1
            elif route[at] in "()":
                depth += 1 if route[at] == "(" else -1
            at += 1
        yield match[1], rf"^(?:{route[match.end() : at - 1]})\Z"


def _table(run: Run, path: str) -> list[Route]:
    """The routes that a module lists."""
    known = run.routes.get(path)
    if known is None:
        module = run.program.module(path)
        listed = module is not None and _TABLES.search(module.text) is not None
        known = run.routes[path] = list(_listed(module.tree)) if module and listed else []
    return known


def _listed(tree: ast.Module) -> Iterator[Route]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or len(node.args) < 2:
            continue
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        address, view = node.args[0], node.args[1]
        if isinstance(view, ast.Call) and isinstance(view.func, ast.Attribute):
            view = view.func.value  # `Page.as_view()`
        if (
            name in _PATHS
            and isinstance(address, ast.Constant)
            and isinstance(address.value, str)
            and isinstance(view, ast.Name | ast.Attribute)
        ):
            yield Route(address.value, name != "path", view)


def _leads_to(run: Run, path: str, route: Route, target: ast.AST) -> bool:
    module = run.program.module(path)
    if module is None:
        return False
    state = State(dict(expressions.environment(run, path)), {}, {}, run.shared)
    frame = Frame(path, module.tree, (path, "routes"), 0)
    view = expressions.evaluate(run, frame, route.view, state)
    return any(
        isinstance(one, FunctionRef | ClassRef) and one.node is target for one in view.things
    )
