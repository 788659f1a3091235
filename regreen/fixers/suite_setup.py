"""What a repository says that its tests want to have installed, as a setup for them."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator

from regreen.codebase.declared import declared
from regreen.codebase.declared_python import requirement
from regreen.codebase.declared_runners import of_runner
from regreen.codebase.dependency import Dependency, rows, table
from regreen.ports import Git

_MOST = 24
_FILES = tuple(
    re.compile(
        rf"(?:[\w.-]+/)?(?:[\w.-]*{word}[\w.-]*requirements[\w.-]*|requirements[\w.-]*{word}[\w.-]*)\.(?:txt|in)"
        rf"|{word}s?/requirements[\w.-]*\.txt|requirements/{word}(?:s|ing)?\.(?:txt|in)"
    )
    for word in ("test", "dev")
)
_GROUP = re.compile(r"(?i)(?:unit[-_]?)?tests?(?:ing)?|dev(?:el(?:opment)?)?|all")
# What lints, documents, publishes or runs other tools is no part of a test run.
_NO_TEST = re.compile(
    r"python|tox(?:-.*)?|nox|pip(?:-.*)?|pre[-_]commit|sphinx.*|alabaster|docutils|readme[-_]renderer|codecov"
    r"|coverage|flake8.*|ruff|black|isort|mypy|pylint|pyright|basedpyright|bandit|twine|wheel|build|bump.*|pyspelling|furo"
    r"|myst.*|mkdocs.*|cibuildwheel|pytest-travis-fold|.*sphinx.*theme.*"
)
_PIP = "python -m pip install -q --prefer-binary"  # building takes minutes, and compilers
PYTEST = f"{_PIP} pytest"
_PINNED = re.compile(r"[\w\s.,<>=!~*+-]*")


def wanted_by_tests(git: Git, rev: str) -> str:
    """Shell lines that install pytest, and of what the tests want as much as can be had.

    Old projects name what is gone by now: then the names are tried one by one.
    """
    wanted: dict[str, str] = {}
    folders = (entry.path.removeprefix("src/").split("/")[0] for entry in git.tree(rev))
    own = {folder.lower() for folder in folders}
    for one in _declared(git, rev):
        plain = one.source == "index" and _PINNED.fullmatch(one.spec) is not None
        name = one.name.lower()
        if plain and not _NO_TEST.fullmatch(name) and name.replace("-", "_") not in own:
            wanted.setdefault(one.name.lower(), f"{one.name}{_version(one.spec)}")
    words = [shlex.quote(word) for word in list(wanted.values())[:_MOST]]
    lines = [PYTEST]
    if words:
        singly = " ".join(f"{_PIP} {word};" for word in words)
        lines.append(f"{_PIP} {' '.join(words)} || {{ {singly} true; }}")
    return "\n".join(lines)


def _version(spec: str) -> str:
    """The specifier as pip takes it; Pipfile writes `*` and poetry `^1.2` for what pip has other words."""
    text = spec.strip()
    return text if re.match(r"[<>=!~]=?", text) else ""


def _declared(git: Git, rev: str) -> Iterator[Dependency]:
    def text(path: str) -> str:
        return (git.show(rev, path) or b"").decode("utf-8", "replace")

    every = {entry.path for entry in git.tree(rev)}
    paths = sorted(path for path in every if not _is_compiled(path, every))
    found = ([path for path in paths if kind.fullmatch(path)] for kind in _FILES)
    for path in next((files for files in found if files), []):
        yield from declared(path, text(path)).dependencies
    yield from _of_pyproject(text("pyproject.toml"))
    yield from of_runner("tox.ini", text("tox.ini")).dependencies
    for path in ("Pipfile", "setup.cfg", "setup.py"):
        yield from declared(path, text(path)).dependencies


def _is_compiled(path: str, every: set[str]) -> bool:
    """Whether pip-compile made the file out of one beside it: its pins are of a day, the other says what is wanted."""
    return path.endswith(".txt") and f"{path.removesuffix('.txt')}.in" in every


def _of_pyproject(text: str) -> Iterator[Dependency]:
    """The groups and extras that are for tests, and what the project itself needs."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    project = table(data, "project")
    written = list(rows(project, "dependencies"))
    for groups in (table(data, "dependency-groups"), table(project, "optional-dependencies")):
        for name in groups:
            written += rows(groups, name) if _GROUP.fullmatch(name) else []
    for item in written:
        if isinstance(item, str) and (one := requirement(item)) is not None:
            yield one
