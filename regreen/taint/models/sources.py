"""Where untrusted values come from, and what library calls do to them (`libraries.toml`)."""

from __future__ import annotations

import ast
import builtins
import re
import tomllib
from dataclasses import replace
from importlib import resources
from typing import Any

from regreen.taint.interpreter import Interpreter
from regreen.taint.values import (
    EVERY_SINK,
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

LIBRARIES: dict[str, Any] = tomllib.loads(
    resources.files("regreen.taint.models").joinpath("libraries.toml").read_text("utf-8")
)

ALL_SINKS = frozenset({EVERY_SINK})
HTML_SINKS = frozenset({"xss"})
QUOTE_SINKS = frozenset({"xpath-injection", "sql-injection"})
LINE_SINKS = frozenset({"log-injection", "header-injection"})
HOST_SINKS = frozenset({"open-redirect", "ssrf"})
PATH_SINKS = frozenset({"path-traversal"})
SESSION_SINKS = frozenset({"trust-boundary"})

# Every sink where the letters of a text do the harm.
TEXT_SINKS = (
    HTML_SINKS
    | QUOTE_SINKS
    | LINE_SINKS
    | HOST_SINKS
    | PATH_SINKS
    | frozenset(
        {
            "command-injection",
            "code-injection",
            "template-injection",
            "ldap-injection",
            "unsafe-deserialization",
            "xxe",
        }
    )
)

# What a call makes its result safe for.
SANITIZERS = {
    name: frozenset[str](row["safe_for"])
    for row in LIBRARIES["sanitizers"]
    for name in row["calls"]
}
CLEAN_FUNCTIONS = frozenset[str](LIBRARIES["calls"]["clean"])
URL_BUILDERS = frozenset[str](LIBRARIES["calls"]["url_builders"])
STRICT_PARSERS = frozenset[str](LIBRARIES["calls"]["strict_parsers"])
DECODERS = frozenset[str](LIBRARIES["calls"]["decoders"])
EXTRACTORS = frozenset[str](LIBRARIES["methods"]["extractors"])
_NUMBER_METHODS = frozenset[str](LIBRARIES["methods"]["without_text"])
_FOLLOWED_LIBRARIES = re.compile(
    rf"(?:{'|'.join(re.escape(name) for name in LIBRARIES['calls']['followed'])})(?:\.|\(|$)"
)


# A code made with a key, by the place where it was made.
MAC_NAME = re.compile(r"hmac\(\)@[^@]+@")
_MARKUP_NAME = re.compile(r"(?:markupsafe|flask|jinja2)\.Markup\(\)(?:\.format\(\)|\.join\(\))*\Z")
_ESCAPE_NAME = re.compile(
    r"(?:^|[._])(?:html_?)?(?:escape|sanitize|quote)(?:_\w{1,100})?\Z", re.IGNORECASE
)


def is_named_escape(name: str) -> bool:
    """Whether the name of an unknown function implies that it escapes text for a page."""
    return _ESCAPE_NAME.search(name) is not None


_MAKES_TEXT = re.compile(
    r"(?:builtins|textwrap|html|string|re|urllib\.parse|base64|codecs|unicodedata|jinja2\.(?:Template|Environment))[.(]"
)
_FIXED_HOST = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#\\\s]+[/?#]", re.IGNORECASE)
_LOCAL_PATH = re.compile(r"/[^/\\]|[\w.-]+/")


def sinks_safe_by_prefix(start: str) -> frozenset[str]:
    """The sinks for which it does not matter what follows this beginning of an address."""
    if _FIXED_HOST.match(start):
        return HOST_SINKS
    return HOST_SINKS if _LOCAL_PATH.match(start) else frozenset()


def is_markup(name: str) -> bool:
    """Whether this is text that escapes whatever is added to it or formatted into it."""
    return _MARKUP_NAME.match(name) is not None


def makes_text(name: str) -> bool:
    """Whether what a call gives is text, and no answer of a framework's that knows its own kind."""
    return _MAKES_TEXT.match(name) is not None


def passes_arguments_to_result(name: str) -> bool:
    """Whether the library is known well enough to assume that arguments reach the result."""
    first = re.split(r"[.(]", name.removeprefix("builtins."), maxsplit=1)[0]
    defined = not name.startswith("builtins.") or hasattr(builtins, first)
    return defined and _FOLLOWED_LIBRARIES.match(name) is not None


def gives_no_text(method: str) -> bool:
    """Whether the method's result carries nothing of the text."""
    return method in _NUMBER_METHODS


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
_CONNECTIONS = frozenset[str](LIBRARIES["connections"]["objects"])
_CONNECTION_METHODS = frozenset[str](LIBRARIES["connections"]["methods"])
MESSAGE_METHODS: dict[str, list[str]] = LIBRARIES["message_methods"]
CONNECTION_SERVERS = frozenset[str](LIBRARIES["connections"]["servers"])
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
        found = _make_request_part(interp, node, name, attr, attr)
        return found if is_path else replace(found, things=make_external(dotted).things)
    if dotted in _NAMED_SOURCES:
        found = make_untrusted_value(interp, node, _NAMED_SOURCES[dotted], (dotted,), f"`{dotted}`")
        return AbstractValue(None, found.taints, make_external(dotted).things)
    if attr in _RESPONSE_PARTS and name.endswith("()") and name.startswith(_RESPONSE_PREFIXES):
        mark = (name, attr, node.lineno)
        return make_untrusted_value(interp, node, "network", mark, f"`.{attr}` of a response")
    return None


def source_of_call(interp: Interpreter, name: str, node: ast.Call) -> AbstractValue | None:
    """What calling `name` gives when that is a source."""
    dotted = f"{name}()"
    owner, _, attr = name.rpartition(".")
    if owner in REQUEST_OBJECTS and attr in _WHOLE_REQUEST:
        return _make_request_part(interp, node, owner, attr, f"{attr}()")
    if owner in _CONNECTIONS and attr in _CONNECTION_METHODS:
        return make_received_message(interp, owner, node)
    mark = (dotted, interp.frame.path, node.lineno)
    kind = _NAMED_SOURCES.get(dotted)
    if kind is not None:
        return make_untrusted_value(interp, node, kind, mark, f"`{_short_name(dotted)}`")
    method = dotted.rpartition(".")[2]
    origin = _METHOD_SOURCES.get(method)
    if (origin == "network" and "socket" in dotted) or (
        origin == "web" and dotted.startswith("tornado.handler")
    ):
        return make_untrusted_value(interp, node, origin, mark, f"`{method}`")
    if method in _RESPONSE_PARTS and name.startswith(_RESPONSE_PREFIXES):
        found = make_untrusted_value(interp, node, "network", mark, f"`{method}` of a response")
        # returned from a handler, decoded JSON is sent as JSON again
        return mark_safe(found, frozenset({"xss"})) if method == "json()" else found
    return None


def _make_request_part(
    interp: Interpreter, node: ast.AST, name: str, attr: str, shown: str
) -> AbstractValue:
    found = make_untrusted_value(interp, node, "web", (name, attr), f"`request.{shown}`")
    return mark_safe(found, frozenset({"open-redirect", "ssrf"})) if attr in _OWN_ADDRESS else found


def make_received_message(interp: Interpreter, name: str, node: ast.AST) -> AbstractValue | None:
    """What comes over a connection of a client; None where the name is no such connection's."""
    if name not in _CONNECTIONS:
        return None
    mark = (name, interp.frame.path, getattr(node, "lineno", 1))
    return make_untrusted_value(interp, node, "web", mark, "a message of the client")


def make_wrapped_request(interp: Interpreter, name: str, node: ast.Call) -> AbstractValue:
    """What an unknown call makes of a whole request: probably part of it."""
    mark = (name, interp.frame.path, node.lineno)
    what = f"`{_short_name(name)}` of the request"
    return mark_uncertain(make_untrusted_value(interp, node, "web", mark, what))


def make_untrusted_value(
    interp: Interpreter, node: ast.AST, origin: str, mark: AccessPath, what: str
) -> AbstractValue:
    """An untrusted value that appears at this node."""
    step = TrailStep(interp.frame.path, getattr(node, "lineno", 1), what)
    return make_tainted([Taint(mark, origin, trail=Trail(step))])


def parameter_source(interp: Interpreter, name: str, node: ast.AST) -> AbstractValue:
    """An argument that a framework fills from the request."""
    mark = ("parameter", interp.frame.path, getattr(node, "lineno", 1), name)
    return make_untrusted_value(interp, node, "web", mark, f"parameter `{name}`")


def _short_name(dotted: str) -> str:
    return dotted.removeprefix("builtins.")
