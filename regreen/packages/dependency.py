"""A package that a file names, and everything that such a file declares."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from regreen.packages.popular_names import Ecosystem

DependencySource = Literal["index", "vcs", "url", "path"]
_SOURCE_KEYS: dict[str, DependencySource] = {
    "git": "vcs",
    "url": "url",
    "path": "path",
    "workspace": "path",
}

VCS_PREFIXES = (
    "git+",
    "hg+",
    "svn+",
    "bzr+",
    "git://",
    "git@",
    "ssh://",
    "github:",
    "gitlab:",
    "bitbucket:",
    "gist:",
)


# The hosts of the languages' own public registries, as the first 12 hex digits of their SHA-256: they are only ever
# compared, so this program carries no address of any of them.
_USUAL_INDEXES = frozenset(
    {
        "a4aa2ac280bb",
        "c899567ee906",
        "0dc11026ac75",
        "70bb4000cd2f",
        "00a7dc5a0cc3",
        "789e46d79514",
        "eb7e11c7f9ec",
        "3d01f3609be8",
        "71741fe2460a",
        "be549aaf28b6",
        "03e390c8d8a6",
        "0e10f3b8bb2a",
        "386c042daaf7",
        "f5c653675ede",
    }
)


def is_usual_index(host: str) -> bool:
    """Whether a language's own installer uses the host by default."""
    return hashlib.sha256(host.lower().encode()).hexdigest()[:12] in _USUAL_INDEXES


@dataclass(frozen=True, slots=True)
class Dependency:
    """A package that a file names. `where` is its URL or path unless it comes from the default index.

    `sums` are its archives' checksums if a lock file contains them for this version.
    """

    name: str
    ecosystem: Ecosystem
    spec: str
    source: DependencySource = "index"
    where: str = ""
    line: int = 1
    hashed: bool = False
    sums: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DeclaredPackages:
    """Everything that one file declares: packages, additional indexes, scripts that run on installation.

    An additional index begins with `extra:`, one for the packages of a scope with `scoped:`.
    `strange` are packages with another package's archive: name, address, line.
    """

    dependencies: tuple[Dependency, ...] = ()
    indexes: tuple[tuple[str, int], ...] = ()
    hooks: tuple[tuple[str, str, int], ...] = ()
    strange: tuple[tuple[str, str, int], ...] = ()
    is_lock: bool = False
    problem: str = ""


def plain_address(index: str) -> str:
    """An index's address without its prefix."""
    return index.removeprefix("extra:").removeprefix("scoped:")


def get_table(data: object, name: str) -> dict[str, object]:
    """The table of this name, or an empty one."""
    value = data.get(name) if isinstance(data, dict) else None
    return value if isinstance(value, dict) else {}


def get_list(data: Mapping[str, object], name: str) -> list[object]:
    """The list of this name, or an empty one."""
    value = data.get(name)
    return value if isinstance(value, list) else []


def with_source_from_table(package: Dependency, spec: object, text: str) -> Dependency:
    """A dependency with the source that a table gives it: `{git = "..."}`."""
    if not isinstance(spec, dict):
        return package
    for key, source in _SOURCE_KEYS.items():
        if key in spec:
            where = str(spec[key]) + (f"@{spec['rev']}" if "rev" in spec else "")
            line = find_first_line_with(text, package.name)
            return replace(package, source=source, where=where, line=line)
    return package


def find_first_line_with(text: str, *words: str) -> int:
    """The first line that contains the words; 1 if none does."""
    at = text.find(words[0])
    while at >= 0:
        end = text.find("\n", at)
        line = text[text.rfind("\n", 0, at) + 1 : len(text) if end < 0 else end]
        if all(word in line for word in words):
            return text.count("\n", 0, at) + 1
        at = text.find(words[0], end + 1) if end >= 0 else -1
    return 1


def parse_json_object(text: str) -> dict[str, object]:
    """The object that a JSON text is; empty for anything else."""
    try:
        document = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
