"""What library calls do to untrusted values: pass them on, make them safe, give something unrelated (`libraries.toml`)."""

from __future__ import annotations

import builtins
import re
import tomllib
from importlib import resources
from typing import Any

from regreen.taint.values import EVERY_SINK

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
    HTML_SINKS | QUOTE_SINKS | LINE_SINKS | HOST_SINKS | PATH_SINKS
    | frozenset(
        {"command-injection", "code-injection", "template-injection", "ldap-injection", "unsafe-deserialization", "xxe"}
    )
)  # fmt: skip

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


def is_followed(name: str) -> bool:
    """Whether the library is known well enough to assume that arguments reach the result."""
    first = re.split(r"[.(]", name.removeprefix("builtins."), maxsplit=1)[0]
    defined = not name.startswith("builtins.") or hasattr(builtins, first)
    return defined and _FOLLOWED_LIBRARIES.match(name) is not None


def gives_no_text(method: str) -> bool:
    """Whether the method's result carries nothing of the text."""
    return method in _NUMBER_METHODS
