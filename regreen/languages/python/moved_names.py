"""Names that a package no longer offers where they are imported from, and where they can be imported from now."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from regreen.code.python_calls import is_module, parse_python
from regreen.domain.environments import ReadText

_GONE = re.compile(r"cannot import name '(\w{1,80})' from '([\w.]{1,200})'")
_MOST_FILES = 200
# Looked through: the modules of the same package, and what its distribution requires, two steps deep.
_SEARCH = r"""
import importlib, importlib.metadata as metadata, pkgutil, re, sys

def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()

tops = metadata.packages_distributions()

def required(names):
    found = set()
    for name in names:
        try:
            lines = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        found |= {canonical(re.match(r"[\w.-]+", line)[0]) for line in lines if "extra ==" not in line}
    return found

def load(name):
    try:
        return importlib.import_module(name)
    except BaseException:
        return None

for module, names in sorted(WANTED.items()):
    owner = load(module)
    first = {canonical(name) for name in tops.get(module.partition(".")[0], ())}
    second = required(first)
    near = [f"{module}.{one.name}" for one in pkgutil.iter_modules(getattr(owner, "__path__", ()))][:100]
    near += [top for top, owners in tops.items() if {canonical(one) for one in owners} & (second | required(second))]
    for name in names if owner else ():
        if hasattr(owner, name):
            continue
        places = [one for one in near if not one.rpartition(".")[2].startswith("_") and hasattr(load(one), name)]
        own = [one for one in places if str(getattr(getattr(load(one), name), "__module__", "")).startswith(one)]
        if own or len(places) == 1:
            print(module, name, (own or places)[0])
"""


def make_search_script(output: str, paths: Iterable[str], read: ReadText) -> str:
    """The script that prints where the names that cannot be imported are now; empty if the output names none."""
    modules = {module for _, module in _GONE.findall(output)}
    wanted: dict[str, list[str]] = {}
    for _, node in _find_imports(modules, paths, read) if modules else ():
        of_module = wanted.setdefault(node.module or "", [])
        of_module += [one.name for one in node.names if one.name not in {"*", *of_module}]
    return f"python - <<'REGREEN_END'\nWANTED = {wanted!r}{_SEARCH}REGREEN_END" if wanted else ""


def move_imports(listed: str, paths: Iterable[str], read: ReadText) -> dict[str, str]:
    """The files that import such names, changed to import them from where `make_search_script` found them."""
    moved: dict[str, dict[str, str]] = {}
    for line in listed.splitlines():
        if re.fullmatch(r"[\w.]{1,200} \w{1,80} [\w.]{1,200}", line):
            module, name, place = line.split()
            moved.setdefault(module, {})[name] = place
    changed: dict[str, str] = {}
    for path, node in sorted(_find_imports(moved, paths, read), key=lambda one: -one[1].lineno):
        lines = changed.get(path, read(path) or "").splitlines(keepends=True)
        places: Mapping[str, str] = moved[node.module or ""]
        if not any(one.name in places for one in node.names):
            continue
        by_module: dict[str, list[str]] = {}
        for one in node.names:
            written = one.name + (f" as {one.asname}" if one.asname else "")
            by_module.setdefault(places.get(one.name, node.module or ""), []).append(written)
        kept_first = sorted(by_module, key=lambda module: module != node.module)
        indent = " " * node.col_offset
        new = [
            f"{indent}from {module} import {', '.join(by_module[module])}\n"
            for module in kept_first
        ]
        lines[node.lineno - 1 : node.end_lineno] = new
        changed[path] = "".join(lines)
    return changed


def _find_imports(
    modules: Iterable[str], paths: Iterable[str], read: ReadText
) -> Iterator[tuple[str, ast.ImportFrom]]:
    """The absolute imports from these modules that stand on lines of their own."""
    wanted = set(modules)
    for path in [path for path in paths if is_module(path)][:_MOST_FILES]:
        text = read(path) or ""
        tree = parse_python(text) if any(module in text for module in wanted) else None
        lines = text.splitlines()
        for node in ast.walk(tree) if tree else ():
            if isinstance(node, ast.ImportFrom) and not node.level and node.module in wanted:
                around = (
                    lines[node.lineno - 1][: node.col_offset]
                    + lines[(node.end_lineno or 1) - 1][node.end_col_offset :]
                )
                if not around.strip():
                    yield path, node
