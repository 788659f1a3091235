"""What a setup needs of a tree, and what installing a project in place does."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass

Read = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True)
class Needs:
    """Files a setup depends on: all, or those at `paths` and those that a pattern matches in full."""

    everything: bool = False
    paths: frozenset[str] = frozenset()
    patterns: frozenset[re.Pattern[str]] = frozenset()

    def __or__(self, other: Needs) -> Needs:
        return Needs(
            self.everything or other.everything,
            self.paths | other.paths,
            self.patterns | other.patterns,
        )


NOTHING = Needs()
EVERYTHING = Needs(everything=True)
ANYWHERE = r"(?:.*/)?"


def patterns(*expressions: str) -> frozenset[re.Pattern[str]]:
    """Expressions, each to be matched in full."""
    return frozenset(re.compile(expression) for expression in expressions)


def inside(folder: str, path: str) -> str | None:
    """A path of the tree, "" for its root; None where it leads out or is no path of it."""
    joined = posixpath.normpath(posixpath.join("/work", folder, path))
    if joined == "/work":
        return ""
    return joined.removeprefix("/work/") if joined.startswith("/work/") else None


_MANIFESTS = (
    r"(pyproject\.toml|setup\.py|setup\.cfg|MANIFEST\.in|Pipfile|[^/]*\.lock|[^/]*requirements[^/]*\.(txt|in)"
    r"|(requirements|reqs|deps)/[^/]*|\.python-version|(?:[^/]+/){0,3}(_|__)?(version|about|pkg_info)(__)?\.(py|txt)"
    r"|VERSION(\.txt)?|uv\.toml|pip\.conf|poetry\.toml)"
)
# Editable or not, these are compiled while installing.
_COMPILED = (
    r"(?:.*/)?[^/]*\.(c|cc|cpp|cxx|h|hh|hpp|pyx|pxd|pxi|rs|go|f|f90|for|s|cu|m|mm|i|swg|proto|toml|build|cmake)"
    r"|(?:.*/)?(CMakeLists\.txt|meson\.build|Makefile)"
)
_BUILDS_FROM_PYTHON = re.compile(
    r"mypyc|cythonize|cffi_modules|ext_modules|build_py|cmdclass|build_ext"
)
_VERSION_FROM_PACKAGE = re.compile(
    r"__init__|__version__|attr\s*[:=]|flit|\[tool\.hatch\.version\]"
)
_PACKAGE_ROOT = r"(src/)?[^/]+/__init__\.py"


def editable(folder: str, read: Read | None) -> Needs:
    """What installing the project in `folder` in place depends on: its manifests, and what gets compiled."""
    prefix = re.escape(folder + "/") if folder else ""
    rules = [re.compile(prefix + _MANIFESTS), re.compile(prefix + _COMPILED)]
    text = _manifest_text(folder, read)
    if text is not None and _BUILDS_FROM_PYTHON.search(text):
        return EVERYTHING
    if text is None or _VERSION_FROM_PACKAGE.search(text):
        rules.append(re.compile(prefix + _PACKAGE_ROOT))
    return Needs(patterns=frozenset(rules))


def _manifest_text(folder: str, read: Read | None) -> str | None:
    if read is None:
        return None
    contents = [
        read(posixpath.join(folder, name)) for name in ("pyproject.toml", "setup.cfg", "setup.py")
    ]
    return "\n".join((content or b"").decode("utf-8", errors="replace") for content in contents)
