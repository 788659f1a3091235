"""Whether what a handler answers is a page that a browser would run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from regreen.codebase.taint.state import State
from regreen.codebase.taint.values import Value, join

HTML_TYPES = ("html", "svg")
_KINDS = frozenset({"mimetype", "content_type", "media_type"})


def body(state: State, value: Value) -> Value:
    """The page in `(page, status, headers)`; other containers become JSON."""
    parts = [Value(value.constants, value.taints)]
    for key in value.handles():
        heaped = state.at(key)
        if heaped is not None and heaped.kind == "tuple" and heaped.items:
            parts.append(heaped.items[0])
    return join(*parts) if value.handles() else value


def is_other_kind(state: State, value: Value) -> bool:
    """`(body, status, {"Content-Type": "text/plain"})`: nothing that a browser reads as a page."""
    for key in value.handles():
        heaped = state.at(key)
        for part in (heaped.items or ()) if heaped is not None and heaped.kind == "tuple" else ():
            headers = [state.at(inner) for inner in part.handles()]
            for name, held in (
                (n, v) for h in headers if h is not None for n, v in h.entries.items()
            ):
                if str(name).lower() == "content-type" and held.text is not None:
                    return not any(kind in held.text for kind in HTML_TYPES)
    return False


def is_retyped(function: ast.AST, made: ast.Call) -> bool:
    """`r = make_response(x)`, and then `r.mimetype = "text/plain"` or `r.headers["Content-Type"] = ...`."""
    statements = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
    names = {
        target.id
        for node in statements
        if node.value is made
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    kinds = [kind for node in statements if names for kind in _kinds(node, names)]
    return bool(kinds) and not any(word in kind for kind in kinds for word in HTML_TYPES)


def _kinds(node: ast.Assign, names: set[str]) -> Iterator[str]:
    """The kind of content that an assignment gives to one of these responses."""
    if not isinstance(node.value, ast.Constant) or not isinstance(node.value.value, str):
        return
    for target in node.targets:
        place: ast.expr = target
        if isinstance(target, ast.Attribute) and target.attr in _KINDS:
            place = target.value
        elif isinstance(target, ast.Subscript) and _is_content_type(target.slice):
            held = target.value
            place = (
                held.value if isinstance(held, ast.Attribute) and held.attr == "headers" else held
            )
        else:
            continue
        if isinstance(place, ast.Name) and place.id in names:
            yield node.value.value.lower()


def _is_content_type(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and str(node.value).lower() == "content-type"
