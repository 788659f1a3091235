"""A package that a file names, and what such a file declares."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from regreen.codebase.packages import Ecosystem

Source = Literal["index", "vcs", "url", "path"]

VCS = (
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
        "a4aa2ac280bb", "c899567ee906", "0dc11026ac75", "70bb4000cd2f", "00a7dc5a0cc3", "789e46d79514", "eb7e11c7f9ec",
        "3d01f3609be8", "71741fe2460a", "be549aaf28b6", "03e390c8d8a6", "0e10f3b8bb2a", "386c042daaf7", "f5c653675ede",
    }
)  # fmt: skip


def is_usual_index(host: str) -> bool:
    """Whether a host is one that a language's own installer asks by default."""
    return hashlib.sha256(host.lower().encode()).hexdigest()[:12] in _USUAL_INDEXES


@dataclass(frozen=True, slots=True)
class Dependency:
    """A package that a file names. `where` is its URL or path unless it comes from the usual index.

    `sums` are its archives' checksums where a lock file holds them for this very version.
    """

    name: str
    ecosystem: Ecosystem
    spec: str
    source: Source = "index"
    where: str = ""
    line: int = 1
    hashed: bool = False
    sums: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Declared:
    """What one file says: packages, indexes beside the usual ones, scripts that run on installation.

    An index that only adds to the usual one begins with `extra:`, one for a scope's packages alone with `scoped:`.
    `strange` are packages whose archive is another's: name, address, line.
    """

    dependencies: tuple[Dependency, ...] = ()
    indexes: tuple[tuple[str, int], ...] = ()
    hooks: tuple[tuple[str, str, int], ...] = ()
    strange: tuple[tuple[str, str, int], ...] = ()
    is_lock: bool = False
    problem: str = ""


def plain_address(index: str) -> str:
    """An index's address without the word that says for what it serves."""
    return index.removeprefix("extra:").removeprefix("scoped:")


def table(data: object, name: str) -> dict[str, object]:
    """The table of this name, empty where there is none."""
    value = data.get(name) if isinstance(data, dict) else None
    return value if isinstance(value, dict) else {}


def rows(data: Mapping[str, object], name: str) -> list[object]:
    """The list of this name, empty where there is none."""
    value = data.get(name)
    return value if isinstance(value, list) else []


def sourced(one: Dependency, spec: object, text: str) -> Dependency:
    """A dependency with the source that a table gives it: `{git = "..."}`."""
    if not isinstance(spec, dict):
        return one
    for key, source in (("git", "vcs"), ("url", "url"), ("path", "path"), ("workspace", "path")):
        if key in spec:
            where = str(spec[key]) + (f"@{spec['rev']}" if "rev" in spec else "")
            kind: Source = "vcs" if source == "vcs" else "url" if source == "url" else "path"
            return Dependency(
                one.name, one.ecosystem, one.spec, kind, where, line_of(text, one.name), one.hashed
            )
    return one


def source_kind(kind: str) -> Source:
    """The word as one of the kinds of source."""
    return (
        "vcs"
        if kind == "vcs"
        else "url"
        if kind == "url"
        else "path"
        if kind == "path"
        else "index"
    )


def line_of(text: str, *words: str) -> int:
    """The first line that holds the words; 1 when none does."""
    for number, line in enumerate(text.split("\n"), 1):
        if all(word in line for word in words):
            return number
    return 1
