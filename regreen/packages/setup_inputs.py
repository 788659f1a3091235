"""The files that a setup needs, and those that installing a project in place needs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass

ReadFile = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True)
class SetupInputs:
    """The files that a setup depends on: all, or `paths` and those that a pattern matches in full."""

    everything: bool = False
    paths: frozenset[str] = frozenset()
    patterns: frozenset[re.Pattern[str]] = frozenset()

    def includes(self, path: str) -> bool:
        """Whether the setup may depend on this file."""
        named = path in self.paths or any(rule.fullmatch(path) for rule in self.patterns)
        return self.everything or named

    def __or__(self, other: SetupInputs) -> SetupInputs:
        return SetupInputs(
            self.everything or other.everything,
            self.paths | other.paths,
            self.patterns | other.patterns,
        )


NO_INPUTS = SetupInputs()
ALL_INPUTS = SetupInputs(everything=True)
ANY_FOLDER = r"(?:.*/)?"
# A file's name has at most 255 characters: {0,255} matches any.


def compile_patterns(*expressions: str) -> frozenset[re.Pattern[str]]:
    """Expressions, each to be matched in full."""
    return frozenset(re.compile(expression) for expression in expressions)


def resolve_path_in_tree(folder: str, path: str) -> str | None:
    """A path of the tree, "" for its root; None if it leads outside or is no path of the tree."""
    joined = posixpath.normpath(posixpath.join("/work", folder, path))
    if joined == "/work":
        return ""
    return joined.removeprefix("/work/") if joined.startswith("/work/") else None


_MANIFEST_PATTERN = (
    r"(pyproject\.toml|setup\.py|setup\.cfg|MANIFEST\.in|Pipfile|[^/]*\.lock|[^/]{0,255}requirements[^/]{0,255}\.(txt|in)"
    r"|(requirements|reqs|deps)/[^/]*|\.python-version|(?:[^/]+/){0,3}(_|__)?(version|about|pkg_info)(__)?\.(py|txt)"
    r"|VERSION(\.txt)?|uv\.toml|pip\.conf|poetry\.toml)"
)
# Editable or not, these are compiled during the installation.
_COMPILED_SOURCE = (
    r"(?:.*/)?[^/]{0,255}\.(c|cc|cpp|cxx|h|hh|hpp|pyx|pxd|pxi|rs|go|f|f90|for|s|cu|m|mm|i|swg|proto|toml|build|cmake)"
    r"|(?:.*/)?(CMakeLists\.txt|meson\.build|Makefile)"
)
# Commands of a `setup.py` that no installation runs.
_OTHER_COMMANDS = r"""["'](?:tests?|pytest|tox|lint|docs?|build_docs|build_sphinx|clean|upload|publish|release)["']"""
_BUILDS_FROM_PYTHON = re.compile(
    r"backend-path|mypyc|cythonize|cffi_modules|ext_modules|build_py|build_ext"
    rf"|cmdclass(?!\s{{0,9}}=\s{{0,9}}\{{(?:\s{{0,99}}{_OTHER_COMMANDS}\s{{0,9}}:\s{{0,9}}[\w.]{{1,99}},?){{1,9}}\s{{0,99}}\}})"
)
_VERSION_FROM_PACKAGE = re.compile(
    r"__init__|__version__|attr\s*[:=]|flit|\[tool\.hatch\.version\]"
)
_PACKAGE_ROOT = r"(src/)?[^/]+/__init__\.py"


def find_editable_inputs(folder: str, read: ReadFile | None) -> SetupInputs:
    """What installing the project in `folder` in place depends on: its manifests, and compiled sources."""
    prefix = re.escape(folder + "/") if folder else ""
    rules = [re.compile(prefix + _MANIFEST_PATTERN), re.compile(prefix + _COMPILED_SOURCE)]
    text = _manifest_text(folder, read)
    if text is not None and _BUILDS_FROM_PYTHON.search(text):
        return ALL_INPUTS
    if text is None or _VERSION_FROM_PACKAGE.search(text):
        rules.append(re.compile(prefix + _PACKAGE_ROOT))
    return SetupInputs(patterns=frozenset(rules))


def _manifest_text(folder: str, read: ReadFile | None) -> str | None:
    if read is None:
        return None
    contents = [
        read(posixpath.join(folder, name)) for name in ("pyproject.toml", "setup.cfg", "setup.py")
    ]
    return "\n".join((content or b"").decode("utf-8", errors="replace") for content in contents)
