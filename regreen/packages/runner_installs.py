"""What the files of task runners install: tox, nox, pre-commit."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from regreen.code.config_loaders import InvalidYaml, load_toml, load_yaml
from regreen.code.python_compat import UnparsableSource, parse_python_or_explain
from regreen.packages.dependency import DeclaredPackages, Dependency, get_list, get_table
from regreen.packages.python_manifests import parse_requirement, read_requirements

RUNNERS = frozenset({"tox", "nox", "pre-commit", "prek"})
"""Programs that install what such a file says."""

_MAX_TABLE_DEPTH = 20  # nested tables of tox


def is_runner_file(path: str) -> bool:
    """Whether such a file tells a task runner what to install."""
    return posixpath.basename(path) in _READERS


def read_runner_file(path: str, text: str) -> DeclaredPackages:
    """The packages of the file; none if it cannot be read, because the runner cannot read it either."""
    reader = _READERS.get(posixpath.basename(path))
    try:
        return DeclaredPackages() if reader is None else reader(text)
    except (ValueError, TypeError, AttributeError, RecursionError, InvalidYaml, UnparsableSource):
        return DeclaredPackages()


# -- tox ------------------------------------------------------------------------------------------------------------


def _read_tox_ini(text: str) -> DeclaredPackages:
    """The `deps` of tox's environments, without the files that they name."""
    blocks = re.findall(r"(?m)^deps[ \t]*=((?:.*)(?:\n(?:[ \t]+.*|[ \t]*(?=\n)))*)", text)
    lines = [line for block in blocks for line in block.split("\n")]
    return _read_lines(re.sub(r"^[\w{},!.-]+:\s+", "", line.strip()) for line in lines)


def _read_lines(lines: Iterator[str]) -> DeclaredPackages:
    plain = [line for line in lines if line and not line.startswith(("-r", "-c", "{", "#", "."))]
    read = read_requirements("\n".join(plain))
    return DeclaredPackages(
        tuple(replace(package, line=1) for package in read.dependencies),
        tuple((address, 1) for address, _ in read.indexes),
    )


def _read_tox_toml(text: str) -> DeclaredPackages:
    return _read_table(load_toml(text))


def _read_pyproject(text: str) -> DeclaredPackages:
    tox = get_table(get_table(load_toml(text), "tool"), "tox")
    old = tox.get("legacy_tox_ini")
    return _read_tox_ini(old) if isinstance(old, str) else _read_table(tox)


def _read_table(data: dict[str, object]) -> DeclaredPackages:
    packages = [
        package
        for written in _find_deps(data)
        if (package := parse_requirement(written)) is not None
    ]
    return DeclaredPackages(tuple(packages))


def _find_deps(data: dict[str, object], depth: int = _MAX_TABLE_DEPTH) -> Iterator[str]:
    """Every `deps` of a table and of its nested tables."""
    for key, value in data.items():
        if key in {"deps", "requires"}:
            yield from (item for item in get_list(data, key) if isinstance(item, str))
        elif isinstance(value, dict) and depth:
            yield from _find_deps(value, depth - 1)


# -- nox ------------------------------------------------------------------------------------------------------------

_INSTALL_METHODS = frozenset({"install", "conda_install"})
_RUN_METHODS = frozenset({"run", "run_install", "run_always"})


def _read_noxfile(text: str) -> DeclaredPackages:
    """The literal installs of nox sessions."""
    packages: list[Dependency] = []
    for node in ast.walk(parse_python_or_explain(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            words = [
                arg.value
                for arg in node.args
                if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
            ]
            named = (
                words
                if node.func.attr in _INSTALL_METHODS
                else _words_after_install(node.func.attr, words)
            )
            packages += [
                package
                for word in named
                if (package := _parse_nox_argument(word, node.lineno)) is not None
            ]
    return DeclaredPackages(tuple(packages))


def _words_after_install(method: str, words: list[str]) -> list[str]:
    """The packages in `session.run("pip", "install", ...)`."""
    if (
        method not in _RUN_METHODS
        or "install" not in words
        or not {"pip", "uv", "npm"} & set(words)
    ):
        return []
    return words[words.index("install") + 1 :]


def _parse_nox_argument(word: str, line: int) -> Dependency | None:
    if not re.match(r"[A-Za-z0-9]", word) or word.endswith((".txt", ".toml", ".whl", ".in")):
        return None
    return parse_requirement(word, line)


# -- pre-commit -----------------------------------------------------------------------------------------------------


def _read_pre_commit(text: str) -> DeclaredPackages:
    """The repositories of hooks, and the additional packages beside them."""
    data = load_yaml(text)
    packages: list[Dependency] = []
    for repo in _get_list(data, "repos"):
        where = repo.get("repo") if isinstance(repo, dict) else None
        if isinstance(where, str) and where not in {"local", "meta", "builtin"}:
            name = where.rstrip("/").rpartition("/")[2].removesuffix(".git") or where
            packages.append(Dependency(name, "pypi", "", "vcs", where))
        for hook in _get_list(repo, "hooks"):
            is_python = not isinstance(hook, dict) or hook.get("language") in {None, "python"}
            more = [
                repo for repo in _get_list(hook, "additional_dependencies") if isinstance(repo, str)
            ]
            packages += [repo for word in more if (repo := _read_hook(word, is_python)) is not None]
    return DeclaredPackages(tuple(packages))


def _read_hook(word: str, is_python: bool) -> Dependency | None:
    """A hook's additional dependency; pre-commit's mirrors of node tools mark npm packages with an @."""
    npm = re.fullmatch(r"((?:@[\w.-]+/)?[\w.-]+)@[\w.^~-]+", word)
    if npm:
        return Dependency(npm[1], "npm", "")
    return parse_requirement(word) if is_python else None


def _get_list(data: object, key: str) -> list[object]:
    items = data.get(key) if isinstance(data, dict) else None
    return list(items) if isinstance(items, list) else []


_READERS: dict[str, Callable[[str], DeclaredPackages]] = {
    "tox.ini": _read_tox_ini,
    "setup.cfg": _read_tox_ini,
    "tox.toml": _read_tox_toml,
    "pyproject.toml": _read_pyproject,
    "noxfile.py": _read_noxfile,
    ".pre-commit-config.yaml": _read_pre_commit,
}
