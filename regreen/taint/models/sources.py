"""Where untrusted values come from."""

from __future__ import annotations

import ast
from dataclasses import replace

from regreen.taint.interpreter import Interpreter
from regreen.taint.models.library import LIBRARIES
from regreen.taint.values import (
    AbstractValue,
    AccessPath,
    Taint,
    Trail,
    TrailStep,
    make_constants,
    make_external,
    make_tainted,
    mark_safe,
    mark_uncertain,
)

_REQUEST: dict[str, list[str]] = LIBRARIES["request"]
REQUEST_OBJECTS = frozenset(_REQUEST["objects"])
REQUEST_CARRIERS = REQUEST_OBJECTS.union(_REQUEST["carriers"])
_WHOLE_REQUEST = frozenset(_REQUEST["parts"])
_OWN_ADDRESS = frozenset(_REQUEST["own_address"])
_PATH_ATTRIBUTES = frozenset(_REQUEST["path_attributes"])
# dotted name (a call when it ends in "()") -> kind of origin
_NAMED_SOURCES: dict[str, str] = {
    name: kind for kind, names in LIBRARIES["sources"].items() for name in names
}
_METHOD_SOURCES: dict[str, str] = {
    name: kind for kind, names in LIBRARIES["source_methods"].items() for name in names
}
_RESPONSE_PREFIXES = tuple[str, ...](LIBRARIES["responses"]["prefixes"])
_RESPONSE_PARTS = frozenset[str](LIBRARIES["responses"]["parts"])
WEAK_RANDOM = frozenset(
    f"{owner}.{name}"
    for owner in LIBRARIES["weak_random"]["owners"]
    for name in LIBRARIES["weak_random"]["functions"]
)


def source_of_attribute(
    interp: Interpreter, name: str, node: ast.Attribute
) -> AbstractValue | None:
    """What `name.attribute` gives when it is a source (or a request's part); None when it is neither."""
    attr, entry = node.attr, interp.run.entry
    dotted = f"{name}.{attr}"
    if name in REQUEST_OBJECTS:
        is_path = attr in _PATH_ATTRIBUTES
        if is_path and entry is not None and entry.paths:
            return make_constants(entry.paths)
        if not is_path and attr not in _WHOLE_REQUEST:
            return None
        found = _request_part(interp, node, name, attr, attr)
        return found if is_path else replace(found, things=make_external(dotted).things)
    if dotted in _NAMED_SOURCES:
        found = make_source(interp, node, _NAMED_SOURCES[dotted], (dotted,), f"`{dotted}`")
        return AbstractValue(None, found.taints, make_external(dotted).things)
    if attr in _RESPONSE_PARTS and name.endswith("()") and name.startswith(_RESPONSE_PREFIXES):
        mark = (name, attr, node.lineno)
        return make_source(interp, node, "network", mark, f"`.{attr}` of a response")
    return None


def source_of_call(interp: Interpreter, name: str, node: ast.Call) -> AbstractValue | None:
    """What calling `name` gives when that is a source."""
    dotted = f"{name}()"
    owner, _, attr = name.rpartition(".")
    if owner in REQUEST_OBJECTS and attr in _WHOLE_REQUEST:
        return _request_part(interp, node, owner, attr, f"{attr}()")
    mark = (dotted, interp.frame.path, node.lineno)
    kind = _NAMED_SOURCES.get(dotted)
    if kind is not None:
        return make_source(interp, node, kind, mark, f"`{_short_name(dotted)}`")
    method = dotted.rpartition(".")[2]
    origin = _METHOD_SOURCES.get(method)
    if (origin == "network" and "socket" in dotted) or (
        origin == "web" and dotted.startswith("tornado.handler")
    ):
        return make_source(interp, node, origin, mark, f"`{method}`")
    if method in _RESPONSE_PARTS and name.startswith(_RESPONSE_PREFIXES):
        found = make_source(interp, node, "network", mark, f"`{method}` of a response")
        # returned from a handler, decoded JSON is sent as JSON again
        return mark_safe(found, frozenset({"xss"})) if method == "json()" else found
    return None


def _request_part(
    interp: Interpreter, node: ast.AST, name: str, attr: str, shown: str
) -> AbstractValue:
    found = make_source(interp, node, "web", (name, attr), f"`request.{shown}`")
    return mark_safe(found, frozenset({"open-redirect", "ssrf"})) if attr in _OWN_ADDRESS else found


def wrapped_request(interp: Interpreter, name: str, node: ast.Call) -> AbstractValue:
    """What an unknown call makes of a whole request: probably part of it."""
    mark = (name, interp.frame.path, node.lineno)
    what = f"`{_short_name(name)}` of the request"
    return mark_uncertain(make_source(interp, node, "web", mark, what))


def make_source(
    interp: Interpreter, node: ast.AST, origin: str, mark: AccessPath, what: str
) -> AbstractValue:
    """An untrusted value that appears at this node."""
    step = TrailStep(interp.frame.path, getattr(node, "lineno", 1), what)
    return make_tainted([Taint(mark, origin, trail=Trail(step))])


def parameter_source(interp: Interpreter, name: str, node: ast.AST) -> AbstractValue:
    """An argument that a framework fills from the request."""
    mark = ("parameter", interp.frame.path, getattr(node, "lineno", 1), name)
    return make_source(interp, node, "web", mark, f"parameter `{name}`")


def _short_name(dotted: str) -> str:
    return dotted.removeprefix("builtins.")
