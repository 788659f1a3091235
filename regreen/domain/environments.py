"""How a repository is set up and tested at one commit: what was inferred, and the view of a tree that it comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from typing import Any

from regreen.domain.ports import Git

ReadFile = Callable[[str], bytes | None]
"""The content of a path in a tree, None where there is none."""
ReadText = Callable[[str], str | None]

_MAX_FILE_BYTES = 512 * 1024
_INDENT = "\n" + " " * 13
_MAX_SHOWN = 100  # characters of one line of a setup, where the whole is not asked for


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
class Environment:
    """How a repository is set up and tested at one commit: each value with the file and line that it comes from.

    `interpreter` is a version of Python, or the language's own tool where it is not Python; `python` is that version;
    `image` a container image. `is_fallback`: a part of the environment before it, worth a try only where that cannot be
    set up.
    """

    language: str
    interpreter: Inferred | None = None
    setup: Inferred | None = None
    test: Inferred | None = None
    image: Inferred | None = None
    python: str | None = None
    is_fallback: bool = False

    def install_first(self, script: str) -> Environment:
        """The same with a script before the setup, which runs only where that succeeds."""
        after = self.setup or Inferred("true", "the command")
        return replace(self, setup=Inferred(f"{script} && {{ {after.value}\n}}", after.source))

    def make_document(self) -> dict[str, Any]:
        """The environment as the JSON documents show it."""
        parts = {
            "interpreter": self.interpreter,
            "setup": self.setup,
            "test": self.test,
            "image": self.image,
        }
        first = self.setup or self.test or self.interpreter or self.image
        return {
            "source": first.source if first else "nothing",
            "language": self.language,
            **{name: part.value if part else None for name, part in parts.items()},
            "sources": {name: part.source for name, part in parts.items() if part},
        }

    def describe(self) -> Iterator[str]:
        """The environment in lines for people who asked for something else: a line with very many words is shortened."""
        for name in ("interpreter", "image", "setup", "test"):
            part: Inferred | None = getattr(self, name)
            if part is not None:
                # what is tried where the first way fails is for the shell
                lines = [_shorten_line(x.partition(" || ")[0]) for x in part.value.splitlines()]
                yield f"{name:<12} {_INDENT.join(lines)}  (from {part.source})"


def _shorten_line(line: str) -> str:
    """The line, or as many of its words as are shown, and how many more it has."""
    if len(line) <= _MAX_SHOWN:
        return line
    shown = line[:_MAX_SHOWN].rpartition(" ")[0]
    more = len(line[len(shown) :].split())
    return f"{shown} ... ({more} words more, all in `regreen env`)"


@dataclass(frozen=True, slots=True)
class TestingJob:
    """What a job of a workflow runs to set up and to test; `version` is the interpreter's, where it says one."""

    setup: str
    test: str
    version: str | None
    source: str


IsTestCall = Callable[[Sequence[str]], bool]
RankVersion = Callable[[str | None], tuple[bool, ...]]


@dataclass(frozen=True, slots=True)
class ProjectCommit:
    """A commit whose environment is inferred.

    Attributes:
        git: the repository.
        rev: the commit.
        files: its tree.
        versions: the interpreters that boxes have ("3.11").
        day: the commit's day where it is old: versions without a bound are those of that day.
        command: the command to be run, where it is known; "" where it is to be inferred, too.
        find_job: the job of the workflows that tests, by a predicate for the words of a call; of a matrix the cell
            whose version ranks lowest.
    """

    git: Git
    rev: str
    files: RepositoryFiles
    versions: Sequence[str]
    day: date | None
    command: str
    find_job: Callable[[IsTestCall, RankVersion], TestingJob | None]
