"""What the files of task runners ask to be installed: tox, nox, pre-commit."""

from __future__ import annotations

import ast
import posixpath
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace

from regreen.codebase.declared_python import requirement, requirements
from regreen.codebase.dependency import Declared, Dependency, rows, table
from regreen.codebase.fstrings import Unparsable, parse_python
from regreen.codebase.workflow_document import NotYaml, loaded

RUNNERS = frozenset({"tox", "nox", "pre-commit", "prek"})
"""Programs that install what such a file says."""

_DEEPEST = 20  # tables of tox within each other


def is_runner_file(path: str) -> bool:
    """Whether such a file tells a task runner what to install."""
    return posixpath.basename(path) in _READERS


def of_runner(path: str, text: str) -> Declared:
    """What the file asks for; nothing where it cannot be read: then the runner cannot read it either."""
    reader = _READERS.get(posixpath.basename(path))
    try:
        return Declared() if reader is None else reader(text)
    except (ValueError, TypeError, AttributeError, RecursionError, NotYaml, Unparsable):
        return Declared()


# -- tox ------------------------------------------------------------------------------------------------------------


def _of_tox_ini(text: str) -> Declared:
    """The `deps` of tox's environments, with the files that they name left out."""
    blocks = re.findall(r"(?m)^deps[ \t]*=((?:.*)(?:\n(?:[ \t]+.*|[ \t]*(?=\n)))*)", text)
    lines = [line for block in blocks for line in block.split("\n")]
    return _of_lines(re.sub(r"^[\w{},!.-]+:\s+", "", line.strip()) for line in lines)


def _of_lines(lines: Iterator[str]) -> Declared:
    plain = [line for line in lines if line and not line.startswith(("-r", "-c", "{", "#", "."))]
    read = requirements("\n".join(plain))
    return Declared(
        tuple(replace(one, line=1) for one in read.dependencies),
        tuple((address, 1) for address, _ in read.indexes),
    )


def _of_tox_toml(text: str) -> Declared:
    return _of_table(tomllib.loads(text))


def _of_pyproject(text: str) -> Declared:
    tox = table(table(tomllib.loads(text), "tool"), "tox")
    old = tox.get("legacy_tox_ini")
    return _of_tox_ini(old) if isinstance(old, str) else _of_table(tox)


def _of_table(data: dict[str, object]) -> Declared:
    found = [one for written in _deps(data) if (one := requirement(written)) is not None]
    return Declared(tuple(found))


def _deps(data: dict[str, object], depth: int = _DEEPEST) -> Iterator[str]:
    """Every `deps` of a table and of those in it."""
    for key, value in data.items():
        if key in {"deps", "requires"}:
            yield from (one for one in rows(data, key) if isinstance(one, str))
        elif isinstance(value, dict) and depth:
            yield from _deps(value, depth - 1)


# -- nox ------------------------------------------------------------------------------------------------------------

_INSTALLS = frozenset({"install", "conda_install"})
_RUNS = frozenset({"run", "run_install", "run_always"})


def _of_noxfile(text: str) -> Declared:
    """What the sessions install, as far as it is spelled out."""
    found: list[Dependency] = []
    for node in ast.walk(parse_python(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            words = [
                arg.value
                for arg in node.args
                if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
            ]
            asked = words if node.func.attr in _INSTALLS else _after_install(node.func.attr, words)
            found += [one for word in asked if (one := _named(word, node.lineno)) is not None]
    return Declared(tuple(found))


def _after_install(method: str, words: list[str]) -> list[str]:
    """What `session.run("pip", "install", ...)` names."""
    if method not in _RUNS or "install" not in words or not {"pip", "uv", "npm"} & set(words):
        return []
    return words[words.index("install") + 1 :]


def _named(word: str, line: int) -> Dependency | None:
    if not re.match(r"[A-Za-z0-9]", word) or word.endswith((".txt", ".toml", ".whl", ".in")):
        return None
    return requirement(word, line)


# -- pre-commit -----------------------------------------------------------------------------------------------------


def _of_pre_commit(text: str) -> Declared:
    """The repositories that hooks come from, and what is installed beside them."""
    data = loaded(text)
    found: list[Dependency] = []
    for one in _list(data, "repos"):
        where = one.get("repo") if isinstance(one, dict) else None
        if isinstance(where, str) and where not in {"local", "meta", "builtin"}:
            name = where.rstrip("/").rpartition("/")[2].removesuffix(".git") or where
            found.append(Dependency(name, "pypi", "", "vcs", where))
        for hook in _list(one, "hooks"):
            is_python = not isinstance(hook, dict) or hook.get("language") in {None, "python"}
            more = [one for one in _list(hook, "additional_dependencies") if isinstance(one, str)]
            found += [one for word in more if (one := _of_hook(word, is_python)) is not None]
    return Declared(tuple(found))


def _of_hook(word: str, is_python: bool) -> Dependency | None:
    """A hook's own dependency; pre-commit's mirrors of node tools name npm's packages with an @."""
    npm = re.fullmatch(r"((?:@[\w.-]+/)?[\w.-]+)@[\w.^~-]+", word)
    if npm:
        return Dependency(npm[1], "npm", "")
    return requirement(word) if is_python else None


def _list(data: object, key: str) -> list[object]:
    found = data.get(key) if isinstance(data, dict) else None
    return list(found) if isinstance(found, list) else []


_READERS: dict[str, Callable[[str], Declared]] = {
    "tox.ini": _of_tox_ini,
    "setup.cfg": _of_tox_ini,
    "tox.toml": _of_tox_toml,
    "pyproject.toml": _of_pyproject,
    "noxfile.py": _of_noxfile,
    ".pre-commit-config.yaml": _of_pre_commit,
}
