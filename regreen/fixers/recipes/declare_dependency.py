"""Declares a missing distribution: which manifest should name it, where in the file, and which locks follow from it."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from typing import TypeVarTuple

import tomlkit
from packaging.utils import canonicalize_name
from tomlkit.items import Array, InlineTable, Table

from regreen.code.config_loaders import load_toml
from regreen.code.python_calls import parse_python
from regreen.domain.environments import ReadText
from regreen.domain.errors import AnalysisFailed
from regreen.fixers.recipes.lock_files_and_snapshots import (
    POETRY_LOCK,
    find_source_file,
    make_compile_script,
    use_setup_call,
)
from regreen.gate.checks.dependencies import read_declared_versions
from regreen.isolation import ChildLimits, run_in_child
from regreen.languages.python.edits import ParsedSource
from regreen.languages.python.missing_modules import (
    MissingDistribution,
    is_imported_by_product,
)
from regreen.packages.dependency import get_table

_Ts = TypeVarTuple("_Ts")
_EDIT_LIMITS = ChildLimits(cpu=10, seconds=120, memory=512)
_MAX_MANIFESTS = 6
_MAX_GROUPS = 8
_MAX_EDITED_CHARS = 100_000  # tomlkit takes about a second for these


def propose_build_requirements(
    missing: Sequence[MissingDistribution], read: ReadText
) -> Iterator[tuple[dict[str, str], str]]:
    """`build-system.requires` with what building the project itself imports and nobody declared."""
    text = read("pyproject.toml") or ""
    for package in missing:
        changed = _edit_in_child(_add_build_requirement, text, package.requirement)
        if changed is not None:
            name = package.distribution
            what = f"building needs {name}, which build-system.requires does not name"
            yield {"pyproject.toml": changed}, what


def _add_build_requirement(text: str, requirement: str) -> str | None:
    def edit(document: tomlkit.TOMLDocument) -> bool:
        return _append_string(get_table(document, "build-system").get("requires"), requirement)

    return _edit_toml(text, edit)


def _edit_in_child(edit: Callable[[*_Ts], str | None], *arguments: *_Ts) -> str | None:
    """The edited manifest; None if it cannot be edited within the limits: tomlkit has no bounds of its own."""
    try:
        return run_in_child(edit, *arguments, limits=_EDIT_LIMITS)
    except AnalysisFailed:
        return None


def propose_manifests(
    missing: Sequence[MissingDistribution], files: Sequence[str], read: ReadText, setup: str
) -> Iterator[tuple[dict[str, str], str]]:
    """Changed manifests, one set after the other, each with its explanation; those that `setup` installs first."""
    used_by_source = {
        package.distribution
        for package in missing
        if is_imported_by_product(package.module, files, read)
    }
    for path in _find_manifests(files, read, setup, is_source=bool(used_by_source)):
        text = read(path)
        if text is None:
            continue
        have = read_declared_versions(path, text)
        with_extra = _add_missing_extras(text, [package for package in missing if package.extra])
        if with_extra != text:
            names = ", ".join(package.requirement for package in missing if package.extra)
            yield {path: with_extra}, f"{names} is needed, and {path} declares it without the extra"
            continue
        wanted = [
            package for package in missing if canonicalize_name(package.distribution) not in have
        ]
        changed = _edit_in_child(
            _add_requirements, path, text, wanted, frozenset(used_by_source), setup
        )
        if wanted and changed is not None and changed != text:
            names = ", ".join(package.distribution for package in wanted)
            yield {path: changed}, f"{names} is imported but {path} does not declare it"


def _add_missing_extras(text: str, wanted: Sequence[MissingDistribution]) -> str:
    """The manifest with the missing extras added to what it declares already."""
    for package in wanted:
        loose = re.sub(r"[-_.]+", "[-_.]+", package.distribution)
        text = re.sub(
            rf"(?im)((?:^|[\"'\s,]){loose})(?=\s*(?:[\"'<>=~!;,]|$))",
            rf"\g<1>{package.extra}",
            text,
            count=1,
        )
    return text


_REQUIREMENTS_PATH = re.compile(
    r"(?:^|/)[\w.-]*(?:requirements|reqs)[\w./-]*\.(?:txt|in)$|(?:^|/)requirements/[^/]+\.(?:txt|in)$"
)
_INCLUDE_LINE = re.compile(r"^-r[ =]?([^\s#]+)|^--requirement[ =]([^\s#]+)", re.MULTILINE)


def _find_manifests(
    files: Sequence[str], read: ReadText, setup: str, *, is_source: bool
) -> list[str]:
    """The manifests where it may be declared, the likeliest first."""
    names = [path for path in files if _REQUIREMENTS_PATH.search(path)]
    packages = [
        path for path in files if path in {"pyproject.toml", "setup.cfg", "setup.py", "Pipfile"}
    ]
    named = [path for path in names if path in setup]
    named.sort(key=setup.find)
    included = [
        path
        for requirements in named
        for path in _find_included_files(requirements, read)
        if path in names
    ]
    project = re.search(r"(?:^|[\s'\"])\.(?:\[|['\"\s]|$)", setup)
    tools = re.search(r"\b(?:uv (?:sync|run)|poetry|pdm|pipenv|--group)\b", setup)
    listed = [*included, *named] if is_source else [*named, *included]
    first = [*packages, *listed] if project or tools else [*listed, *packages]
    ordered = [*first, *names]
    # a compiled file is replaced by its source
    sources = {
        path: find_source_file(path, read(path) or "", files)
        for path in ordered
        if path.endswith(".txt")
    }
    return list(dict.fromkeys(sources.get(path) or path for path in ordered))[:_MAX_MANIFESTS]


def _find_included_files(path: str, read: ReadText) -> Iterator[str]:
    for short, other in _INCLUDE_LINE.findall(read(path) or ""):
        yield posixpath.normpath(posixpath.join(posixpath.dirname(path), short or other))


def find_derived_locks(
    path: str, files: Collection[str], read: ReadText, setup: str
) -> Iterator[tuple[str, str]]:
    """The lock files made from a manifest, each with the script that regenerates it."""
    for lock, script in _LOCK_COMMANDS.get(path, ()):
        if lock in files:
            yield lock, use_setup_call(script, setup)
    for other in files:
        if path.endswith(".in") and other.endswith(".txt"):
            text = read(other) or ""
            if find_source_file(other, text, files) == path:
                yield other, make_compile_script(other, text)


_LOCK_COMMANDS = {
    "pyproject.toml": (
        ("uv.lock", "uv lock"),
        ("poetry.lock", POETRY_LOCK),
        ("pdm.lock", "pdm lock --update-reuse"),
    ),
    "Pipfile": (("Pipfile.lock", "pipenv lock"),),
}


def _add_requirements(
    path: str, text: str, wanted: Sequence[MissingDistribution], used: Set[str], setup: str
) -> str | None:
    if path.endswith((".txt", ".in")):
        if "--hash=" in text:
            return None
        for package in wanted:
            text = _insert_line(text, package.requirement)
        return text
    for package in wanted:
        is_for_tests = package.distribution not in used
        groups = [*_find_installed_groups(setup), ""] if is_for_tests else [""]
        attempts = (
            _add_requirement(path, text, package, group, is_for_tests=is_for_tests)
            for group in groups
        )
        changed = next(filter(None, attempts), None)
        if changed is None:
            return None
        text = changed
    return text


def _find_installed_groups(setup: str) -> list[str]:
    """The extras and dependency groups that the setup names, for what only tests need."""
    named = re.findall(
        r"\[([\w,.\s-]{1,200})\]|(?:--(?:extra|group|with|only|only-group)|-G)[= ]([\w,.-]+)", setup
    )
    words = [word.strip() for pair in named for part in pair for word in part.split(",")]
    if re.search(r"\b(?:uv (?:sync|run)|pdm (?:install|sync)|poetry (?:install|sync))\b", setup):
        words += ["dev", "test", "tests"]
    return [word for word in dict.fromkeys(words) if word][:_MAX_GROUPS]


def _add_requirement(
    path: str, text: str, missing: MissingDistribution, group: str, *, is_for_tests: bool
) -> str | None:
    match path:
        case "pyproject.toml":
            return _add_to_pyproject(text, missing, group)
        case "Pipfile":
            table = "dev-packages" if is_for_tests and "[dev-packages]" in text else "packages"
            return _edit_toml(text, lambda document: _set_version(document.get(table), missing))
        case "setup.py":
            return _add_to_setup_py(text, missing.requirement, group)
        case _:
            return _add_to_setup_cfg(text, missing.requirement, group)


def _insert_line(text: str, requirement: str) -> str:
    """A line of its own: in its alphabetical place where the list is sorted, else at the end."""
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    named = [(line.lower(), at) for at, line in enumerate(lines) if re.match(r"[A-Za-z0-9]", line)]
    later = [at for line, at in named if line > requirement.lower()]
    is_sorted = len(named) > 2 and named == sorted(named)
    lines.insert(later[0] if is_sorted and later else len(lines), f"{requirement}\n")
    return "".join(lines)


def _edit_toml(text: str, edit: Callable[[tomlkit.TOMLDocument], bool]) -> str | None:
    """The document after an edit that keeps its layout; None where there was nothing to edit."""
    if len(text) > _MAX_EDITED_CHARS:
        return None
    try:
        load_toml(text)  # within bounds
        document = tomlkit.parse(text)
    except ValueError:
        return None
    return document.as_string() if edit(document) else None


def _append_string(array: object, text: str) -> bool:
    if not isinstance(array, Array):
        return False
    is_literal = bool(array) and array[-1:][0].as_string().startswith("'")
    array.append(tomlkit.string(text, literal=is_literal))
    return True


def _set_version(table: object, missing: MissingDistribution) -> bool:
    """Declare a distribution as Poetry and Pipenv do: `name = "*"`."""
    if not isinstance(table, Table):
        return False
    version: str | InlineTable = missing.bound or "*"
    if missing.extra:
        bound, version = version, tomlkit.inline_table()
        version.update({"version": bound, "extras": [missing.extra.strip("[]")]})
    table[missing.distribution] = version
    return True


def _add_to_pyproject(text: str, missing: MissingDistribution, group: str) -> str | None:
    """Add to `dependencies`, or to the extra or group called `group`."""

    def edit(document: tomlkit.TOMLDocument) -> bool:
        poetry = get_table(get_table(document, "tool"), "poetry")
        if "dependencies" in poetry:
            own = get_table(get_table(poetry, "group"), group) if group else poetry
            return _set_version(own.get("dependencies"), missing)
        if group:
            extras = get_table(get_table(document, "project"), "optional-dependencies")
            return any(
                _append_string(table.get(group), missing.requirement)
                for table in (extras, get_table(document, "dependency-groups"))
            )
        return _append_string(
            get_table(document, "project").get("dependencies"), missing.requirement
        )

    changed = _edit_toml(text, edit)
    head = re.search(r"^\[project\][^\n]*\n", text, re.MULTILINE)
    if changed is not None or group or head is None or "[tool.poetry.dependencies]" in text:
        return changed
    project = text[head.end() :].partition("\n[")[0]
    if re.search(r"^(?:dynamic|dependencies)\b", project, re.MULTILINE):
        return None
    return f'{text[: head.end()]}dependencies = ["{missing.requirement}"]\n{text[head.end() :]}'


def _find_python_list(tree: ast.Module, name: str, key: str) -> ast.List | None:
    """The list that setup.py gives for `name`, or for a key of the mapping that it gives."""
    for node in ast.walk(tree):
        match node:
            case ast.keyword(arg=target, value=value) if target == name:
                pass
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                pass
            case _:
                continue
        candidates = [value] if not key else []
        if key and isinstance(value, ast.Dict):
            pairs = zip(value.keys, value.values, strict=True)
            candidates = [
                part for word, part in pairs if isinstance(word, ast.Constant) and word.value == key
            ]
        for candidate in candidates:
            if isinstance(candidate, ast.List):
                return candidate
    return None


def _add_to_setup_py(text: str, requirement: str, group: str) -> str | None:
    tree = parse_python(text)
    name = "extras_require" if group else "install_requires"
    node = _find_python_list(tree, name, group) if tree else None
    if tree is None or node is None:
        return None
    source = ParsedSource(text, tree)
    if not node.elts:
        end = source.node_span(node)[1] - 1
        return f'{text[:end]}"{requirement}"{text[end:]}'
    last = node.elts[-1]
    start, end = source.node_span(last)
    quote = "'" if text[start] == "'" else '"'
    new = f"{quote}{requirement}{quote}"
    indent = text[text.rfind("\n", 0, start) + 1 : start]
    if last.lineno == node.lineno or last.end_lineno == node.end_lineno or indent.strip():
        return f"{text[:end]}, {new}{text[end:]}"
    stop = text.index("\n", end)
    rest = text[end:stop]  # a comma, a comment
    comma = "" if rest.lstrip().startswith(",") else ","
    return f"{text[:end]}{comma}{rest}\n{indent}{new},{text[stop:]}"


def _add_to_setup_cfg(text: str, requirement: str, group: str) -> str | None:
    section, key = ("options.extras_require", group) if group else ("options", "install_requires")
    lines = text.split("\n")
    is_inside = False
    for at, line in enumerate(lines):
        is_inside = line.startswith(f"[{section}]") if line.startswith("[") else is_inside
        entry = re.match(rf"({re.escape(key)}[ \t]*=)[ \t]*(.*)", line) if is_inside else None
        if entry is None:
            continue
        end = at + 1
        while end < len(lines) and lines[end][:1] in {" ", "\t"}:
            end += 1
        indent = re.match(r"[ \t]*", lines[at + 1])[0] if end > at + 1 else "    "  # type: ignore[index]  # always matches
        first = [f"{indent}{entry[2]}"] if entry[2] else []  # a single line becomes a list
        lines[at:end] = [entry[1], *first, *lines[at + 1 : end], f"{indent}{requirement}"]
        return "\n".join(lines)
    return None
