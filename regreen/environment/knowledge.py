"""The values that inference passes on, its view of a commit's tree, and the table of what is known (`knowledge.toml`)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files

from regreen.domain.ports import Git

_MAX_FILE_BYTES = 512 * 1024


@dataclass(frozen=True, slots=True)
class Inferred:
    """A value, and the file and line that it comes from ("pyproject.toml:12")."""

    value: str
    source: str


@dataclass(frozen=True, slots=True)
class RepositoryFiles:
    """A read-only view of a commit's tree: its regular files, and the text of one ("" where there is none)."""

    paths: frozenset[str]
    read: Callable[[str], str]


def open_files(git: Git, rev: str) -> RepositoryFiles:
    """The view of the tree of `rev`."""
    paths = frozenset(entry.path for entry in git.tree(rev) if entry.mode.startswith("100"))

    @cache
    def read(path: str) -> str:
        data = git.show(rev, path, _MAX_FILE_BYTES) if path in paths else None
        return (data or b"").decode("utf-8", "replace")

    return RepositoryFiles(paths, read)


@dataclass(frozen=True, slots=True)
class Toolchain:
    """How a language other than Python is set up and tested where `file` is at the root."""

    language: str
    file: str
    setup: str
    test: str
    script: str = ""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The table of `knowledge.toml`; its comments describe each field."""

    python_releases: Mapping[str, date]
    python: str
    collectors: frozenset[str]
    test_groups: re.Pattern[str]
    not_for_tests: re.Pattern[str]
    version_variables: Mapping[str, str]
    editable_from: Mapping[str, date]
    python_locks: Mapping[str, Sequence[str]]
    python_lock_options: Mapping[str, Sequence[str]]
    test_programs: Mapping[str, str]
    toolchains: tuple[Toolchain, ...]


@cache
def load_knowledge() -> Knowledge:
    """Read the table that comes with the program."""
    document = tomllib.loads((files("regreen.environment") / "knowledge.toml").read_text())
    python = document["python_projects"]
    return Knowledge(
        document["python_releases"],
        python["name"],
        frozenset(python["collectors"]),
        re.compile(python["test_groups"], re.IGNORECASE),
        re.compile("|".join(python["not_for_tests"]), re.IGNORECASE),
        document["version_variables"],
        document["editable_from"],
        document["python_locks"],
        document["python_lock_options"],
        document["test_programs"],
        tuple(Toolchain(**row) for row in document["toolchains"]),
    )
