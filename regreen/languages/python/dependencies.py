"""What a Python project depends on: declares what is missing, moves pins that cannot be had, bounds releases that break it.

A manifest that is changed keeps its layout; the lock files and compiled requirements that follow from it are named.
"""

from __future__ import annotations

import ast
import difflib
import posixpath
import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from configparser import Error as ConfigParserError
from configparser import RawConfigParser
from contextlib import suppress
from dataclasses import replace
from functools import partial

import tomlkit
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from tomlkit.items import Array, InlineTable, Table

from regreen.code.config_loaders import load_toml
from regreen.code.python_calls import is_module, parse_python
from regreen.domain.environments import ReadText, RepositoryFiles
from regreen.domain.errors import AnalysisFailed
from regreen.domain.languages import VersionBounds
from regreen.domain.models import Failure
from regreen.domain.ports import Git
from regreen.isolation import run_in_child
from regreen.languages.python.edits import ParsedSource
from regreen.languages.python.missing_modules import (
    MissingDistribution,
    find_folder_of_test_module,
    find_imports_of_tests,
    find_missing_distributions,
    find_missing_variables,
    find_undeclared_imports,
    find_unknown_marks,
    is_imported_by_product,
    is_own_module,
)
from regreen.languages.python.project_setup import (
    NOT_INSTALLED,
    PIP_INSTALL,
    is_named_in_manifests,
    list_test_requirements,
    make_install_line,
    make_test_setup,
)
from regreen.packages.dependency import get_list, get_table
from regreen.packages.manifests_and_locks import read_declared_versions
from regreen.packages.popular_names import is_popular
from regreen.runs.trial import Trial
from regreen.shell.called_scripts import call_tool_as_in_setup

# Names that a package no longer offers where they are imported from, and where they can be imported from now.

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


POETRY_LOCK = "poetry lock --no-update 2>/dev/null || poetry lock"
_MAX_MANIFESTS = 6
_MAX_GROUPS = 8
_MAX_EDITED_CHARS = 100_000  # tomlkit takes about a second for these


def propose_build_requirements(
    missing: Sequence[MissingDistribution], read: ReadText
) -> Iterator[tuple[dict[str, str], str]]:
    """`build-system.requires` with what building the project itself imports and nobody declared."""
    text = read("pyproject.toml") or ""
    for package in missing:
        changed = _add_build_requirement(text, package.requirement)
        if changed is not None:
            name = package.distribution
            what = f"building needs {name}, which build-system.requires does not name"
            yield {"pyproject.toml": changed}, what


def _add_build_requirement(text: str, requirement: str) -> str | None:
    def edit(document: tomlkit.TOMLDocument) -> bool:
        return _append_to_toml_array(
            get_table(document, "build-system").get("requires"), requirement
        )

    return _edit_toml(text, edit)


def propose_manifests(
    missing: Sequence[MissingDistribution], files: Sequence[str], read: ReadText, setup: str
) -> Iterator[tuple[dict[str, str], str]]:
    """Changed manifests, one set after the other, each with its explanation; those that `setup` installs first."""
    used_by_source = {
        package.distribution
        for package in missing
        if is_imported_by_product(package.module, files, read)
    }
    for path in _rank_manifests_for_declaration(files, read, setup, is_source=bool(used_by_source)):
        text = read(path)
        if text is None:
            continue
        have = read_declared_versions(path, text)
        with_extra = _add_missing_extras(text, [package for package in missing if package.extra])
        if with_extra != text:
            names = ", ".join(package.requirement for package in missing if package.extra)
            yield {path: with_extra}, f"{names} is needed, and {path} declares it without the extra"
            continue
        is_list = path.endswith((".txt", ".in"))  # which has no place for development
        wanted = [
            package
            for package in missing
            if canonicalize_name(package.distribution) not in have
            or (package.development and not is_list)
        ]
        changed = _add_requirements(path, text, wanted, used_by_source, setup)
        if wanted and changed is not None and changed != text:
            names = ", ".join(package.distribution for package in wanted)
            lacks = (
                "declares it for development only"
                if wanted[0].development
                else "does not declare it"
            )
            yield {path: changed}, f"{names} is imported but {path} {lacks}"


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


def _rank_manifests_for_declaration(
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
            yield lock, call_tool_as_in_setup(script, setup)
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
            return _edit_toml(
                text, lambda document: _declare_in_table(document.get(table), missing)
            )
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


def _append_to_toml_array(array: object, text: str) -> bool:
    if not isinstance(array, Array):
        return False
    is_literal = bool(array) and array[-1:][0].as_string().startswith("'")
    array.append(tomlkit.string(text, literal=is_literal))
    return True


def _declare_in_table(table: object, missing: MissingDistribution) -> bool:
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
            return _declare_in_table(own.get("dependencies"), missing)
        if group:
            extras = get_table(get_table(document, "project"), "optional-dependencies")
            return any(
                _append_to_toml_array(table.get(group), missing.requirement)
                for table in (extras, get_table(document, "dependency-groups"))
            )
        return _append_to_toml_array(
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
    return _append_to_ini_list(text, section, key, requirement)


def _append_to_ini_list(text: str, section: str, key: str, new: str) -> str | None:
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
        lines[at:end] = [entry[1], *first, *lines[at + 1 : end], f"{indent}{new}"]
        return "\n".join(lines)
    return None


# In the order in which pytest looks for its settings: the first file with the section holds.
_PYTEST_SECTIONS = {
    "pytest.ini": "pytest",
    ".pytest.ini": "pytest",
    "pyproject.toml": "",
    "tox.ini": "pytest",
    "setup.cfg": "tool:pytest",
}


def register_marks(output: str, files: Collection[str], read: ReadText) -> dict[str, str]:
    """The settings of pytest with the marks that nothing registers; empty without such, or where one looks mistyped."""
    marks = find_unknown_marks(output)
    for path, section in _PYTEST_SECTIONS.items() if marks else ():
        text = changed = read(path) if path in files else None
        known = _list_registered_marks(text or "", section)
        for mark in marks:
            if difflib.get_close_matches(mark, known, 1, 0.85):
                return {}
            if changed and section:
                added = _append_to_ini_list(changed, section, "markers", mark)
                new_key = rf"\g<0>\nmarkers =\n    {mark}"
                head = rf"(?m)^\[{section}\][^\n]*"
                changed = added or re.sub(head, new_key, changed, count=1)
            elif changed:
                changed = _edit_toml(changed, partial(_register_in_toml, mark=mark))
        if changed and changed != text:
            return {path: changed}
    return {}


def _list_registered_marks(text: str, section: str) -> set[str]:
    """The names of the marks in settings of pytest; `section` is that of an INI file, "" for TOML."""
    rows: list[object] = []
    with suppress(ConfigParserError, ValueError):  # such a file is not edited either
        if section:
            parser = RawConfigParser(strict=False, allow_no_value=True)
            parser.read_string(text)
            rows = [*(parser.get(section, "markers", fallback="") or "").splitlines()]
        else:
            pytest = get_table(get_table(load_toml(text), "tool"), "pytest")
            rows = get_list(get_table(pytest, "ini_options") or pytest, "markers")
    return {re.split(r"[:(]", str(row))[0].strip() for row in rows} - {""}


def _register_in_toml(document: tomlkit.TOMLDocument, mark: str) -> bool:
    pytest = get_table(get_table(document, "tool"), "pytest")
    settings = get_table(pytest, "ini_options") or pytest
    if settings and "markers" not in settings:
        settings["markers"] = []
    return _append_to_toml_array(settings.get("markers"), mark)


_NAME_PATTERN = r"([A-Za-z0-9][\w.-]{0,80}?)"
_BLAMED_PATTERNS = (
    re.compile(
        rf"The user requested (?:\(constraint\) )?{_NAME_PATTERN}(?:\[[^\]]{{0,80}}\])?(?:[=<>~!]=?|\s|$)"
    ),
    re.compile(
        rf"(?:No matching distribution found for|satisfies the requirement) {_NAME_PATTERN}(?:\[[^\]]{{0,80}}\])?[=<>~!]"
    ),
    re.compile(rf"Failed building wheel for {_NAME_PATTERN}\s"),
    re.compile(rf"Failed to build '?{_NAME_PATTERN}(?:[=' ]|$)", re.MULTILINE),
    re.compile(rf"Failed to build `{_NAME_PATTERN}=="),
    re.compile(rf"Cannot install (?:[^\n]{{0,200}}? and )?{_NAME_PATTERN}=="),
    re.compile(rf"there is no version of {_NAME_PATTERN}[=<>~]"),
    re.compile(rf"╰─> {_NAME_PATTERN}\s*$", re.MULTILINE),
)
_COLLECTING_LINE = re.compile(rf"^[ \t]*Collecting {_NAME_PATTERN}[=<>~]", re.MULTILINE)
_NON_NAMES = {"See", "above", "some", "installable", "from", "build", "wheel", "wheels", "one"}
VERSIONS_PATH = ".regreen-versions"
FREEZE_SCRIPT = f"python -m pip list --format=freeze > {VERSIONS_PATH} 2>/dev/null || uv pip freeze > {VERSIONS_PATH}"


def find_blamed_distributions(output: str) -> tuple[str, ...]:
    """The canonical names of the distributions that the installer complains about."""
    found = [
        match[1].rstrip(".") for pattern in _BLAMED_PATTERNS for match in pattern.finditer(output)
    ]
    if "subprocess-exited-with-error" in output and (collected := _COLLECTING_LINE.findall(output)):
        found.append(collected[-1])
    return tuple(dict.fromkeys(canonicalize_name(name) for name in found if name not in _NON_NAMES))


def find_pin(text: str, name: str) -> re.Match[str] | None:
    """The place where a manifest pins the distribution to one version."""
    loose = re.sub(r"-", r"[-_.]+", re.escape(name).replace(r"\-", "-"))
    return re.search(
        rf"(?im)(?P<head>(?:^|[\"'\s,]){loose}(?:\[[^\]\n]{{0,80}}\])?\s*)(?P<spec>={{2,3}}\s*[\w.!+*-]+)",
        text,
    )


def replace_pin(text: str, name: str, pin: str) -> str | None:
    """The manifest with another pin ("" for none) for the distribution; None if it has none."""
    match = find_pin(text, name)
    return match and f"{text[: match.start('spec')]}{pin}{text[match.end('spec') :]}"


def find_frozen_version(frozen: str, name: str) -> str | None:
    """The version of the distribution in an installer's list."""
    for line in frozen.splitlines():
        found, _, version = line.strip().partition("==")
        if canonicalize_name(found) == name and re.fullmatch(r"[\w.!+-]{1,60}", version):
            return version
    return None


def find_files_with_pins(files: Sequence[str]) -> list[str]:
    """The files that may contain a pin."""
    return [
        path
        for path in files
        if path.rsplit("/", 1)[-1] in {"pyproject.toml", "setup.cfg", "setup.py", "Pipfile"}
        or (path.endswith((".txt", ".in")) and re.search(r"require|constraint|reqs", path))
    ][:20]


# Releases that break the code: the distribution that a failure points at, and the bound that excludes the release.

LIST_PATH = ".regreen-brought"
# Prints the distribution and version behind each importable name, also in the environment of uv or poetry.
LIST_SCRIPT = f"""for py in /work/.venv/bin/python python; do
"$py" -c '
from importlib.metadata import packages_distributions, version
for top, names in packages_distributions().items():
    print(top, names[0], version(names[0]))' 2>/dev/null && break
done > {LIST_PATH}; cat {LIST_PATH}"""
_FAILED_IMPORT = re.compile(
    r"cannot import name '[^'\n]{1,100}' from (?:partially initialized module )?'([A-Za-z_]\w*+)[\w.]*+' \([^)\n]{0,1000}(?:site|dist)-packages/"
)
_MISSING_SUBMODULE = re.compile(r"No module named '([A-Za-z_]\w*)\.[\w.]+'")
_OF_MODULE = re.compile(r"module '([A-Za-z_]\w*+)[\w.]*+' has no attribute")
_SITE_PACKAGES_MODULE = re.compile(r"(?:site|dist)-packages/([A-Za-z_]\w*)(?:/|\.py)")
# Fixtures that a plugin removed in a release.
_MISSING_FIXTURE = re.compile(
    r"fixture '(event_loop|loop|unused_port|test_client|test_server)' not found"
)
_FORMER_FIXTURE_PLUGIN = {
    "event_loop": "pytest_asyncio",
    "loop": "pytest_aiohttp",
    "unused_port": "pytest_aiohttp",
    "test_client": "pytest_aiohttp",
    "test_server": "pytest_aiohttp",
}
_REMOVAL_WORDS = re.compile(
    r"\b(?:removed|no longer|moved to|has been moved|deprecated|renamed|unexpected keyword argument)\b",
    re.IGNORECASE,
)
_SUSPECT_ERRORS = frozenset({"ImportError", "AttributeError"})
_EXEMPT_MODULES = frozenset({"pytest", "_pytest", "pluggy", "importlib_metadata", "coverage"})


def find_suspect_modules(
    failures: Sequence[Failure], output: str, read: ReadText
) -> tuple[str, ...]:
    """The imported modules whose distributions the failures point at, the most certain first.

    Args:
        failures: what failed, with the frames of each.
        output: what the command printed.
        read: gives a file of the repository.
    """
    found = [
        match[1]
        for kind in (_FAILED_IMPORT, _MISSING_SUBMODULE, _OF_MODULE)
        for match in kind.finditer(output)
    ]
    found += [_FORMER_FIXTURE_PLUGIN[match[1]] for match in _MISSING_FIXTURE.finditer(output)]
    for failure in failures[:50]:
        kind = failure.kind.rpartition(".")[2]
        telling = kind in _SUSPECT_ERRORS or bool(_REMOVAL_WORDS.search(failure.message))
        if not telling or "'NoneType'" in failure.message:
            continue
        inner = failure.frames[-1] if failure.frames else None
        where = _SITE_PACKAGES_MODULE.search(inner.path) if inner else None
        if where:
            found.append(where[1])
        elif _REMOVAL_WORDS.search(failure.message) and failure.path and failure.line:
            found += _find_modules_at_line(read(failure.path) or "", failure.line)
    named = dict.fromkeys(module for module in found if module not in _EXEMPT_MODULES)
    return tuple(module for module in named if module not in sys.stdlib_module_names)


def _find_modules_at_line(text: str, line: int) -> Iterator[str]:
    """The modules from which the names on a line were imported."""
    tree = parse_python(text)
    source: dict[str, str] = {}
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            source.update(
                {alias.asname or alias.name: node.module.split(".")[0] for alias in node.names}
            )
        elif isinstance(node, ast.Import):
            tops = (
                (alias.asname or alias.name.split(".")[0], alias.name.split(".")[0])
                for alias in node.names
            )
            source.update(tops)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Name) and node.lineno == line and node.id in source:
            yield source[node.id]


def parse_installed_modules(listed: str) -> Mapping[str, tuple[str, str]]:
    """The output of `LIST_SCRIPT`: importable name to distribution and version."""
    rows = (line.split() for line in listed.splitlines())
    return {row[0]: (row[1], row[2]) for row in rows if len(row) == 3}


def find_version_bounds(
    name: str, brought: Mapping[str, tuple[str, str]]
) -> tuple[str, tuple[str, ...]]:
    """The distribution behind a module, and the releases to stay below, the newest first."""
    distribution, text = brought.get(name, ("", ""))
    try:
        version = Version(text)
    except InvalidVersion:
        return distribution, ()
    if version.major == 0:
        return distribution, (f"0.{version.minor}",) if version.minor else ()
    return distribution, tuple(
        str(major) for major in (version.major, version.major - 1) if major > 0
    )


def cap_version(path: str, text: str, name: str, bound: str) -> str | None:
    """The manifest with the distribution below `bound`; None if it does not declare it, or bounds it already."""
    key = canonicalize_name(name)
    before = read_declared_versions(path, text)
    if key not in before or re.search(r"[<^]|==|~=", before[key]):
        return None
    loose = re.sub(r"[-_.]+", "[-_.]+", re.escape(name).replace(r"\-", "-").replace(r"\.", "."))
    line = re.compile(
        rf"(?im)(?P<head>(?:^|[\"'\s,]){loose}(?:\[[^\]\n]{{0,80}}\])?)(?P<gap>[ \t]*)(?P<spec>(?:[<>!][^\"'\n;#,\]<>!]*+,?+[ \t]*+)*)(?=[\"';#\]\n]|$)"
    )
    of_table = re.compile(
        rf"(?im)^(?P<head>[\"']?{loose}[\"']?[ \t]*=[ \t]*[\"'])(?P<gap>)(?P<spec>[^\"'\n]*)"
    )
    for pattern in (of_table, line):
        for match in pattern.finditer(text):
            spec = match["spec"].rstrip(" ,").replace("*", "")
            new = (
                f"{match['head']}{match['gap'] if spec else ''}{spec}{',' if spec else ''}<{bound}"
            )
            rest = (
                match["spec"][len(match["spec"].rstrip()) :]
                if spec
                else (match["gap"] if text[match.end() : match.end() + 1] in {"#", ";"} else "")
            )
            after = f"{text[: match.start()]}{new}{rest}{text[match.end() :]}"
            if f"<{bound}" in read_declared_versions(path, after).get(key, ""):
                return after
    return None


# -- compiled requirements: the command in their heading regenerates them ----------------------------------------

_HEADING_COMMAND = re.compile(
    r"^#[ \t]{1,8}((?:uv pip compile|pip-compile)\b[^\n]{0,400})$", re.MULTILINE
)
_VENV_PATH = "/tmp/regreen-compile"  # noqa: S108 - inside the box
_FORBIDDEN_OPTIONS = (
    "--index-url",
    "--extra-index-url",
    "--find-links",
    "--trusted-host",
    "--config",
    "--upgrade",
    "-i",
    "-f",
    "-U",
)


def read_heading_command(text: str) -> str:
    """The command in the heading of a compiled file; empty if there is none."""
    match = _HEADING_COMMAND.search(text[:2000])
    return match[1].strip() if match else ""


def find_source_file(path: str, text: str, paths: Collection[str]) -> str | None:
    """The source of a compiled file; None if it has none, or several."""
    words = _split_command(read_heading_command(text))
    folder = posixpath.dirname(path)
    named = [
        word for word in words if word.endswith((".in", "pyproject.toml", "setup.py", "setup.cfg"))
    ]
    for name in named if len(named) == 1 else ():
        for place in (name, posixpath.join(folder, posixpath.basename(name))):
            if place in paths:
                return place
    return None


def make_compile_script(path: str, text: str) -> str:
    """A script that recompiles the file with its tool in a new environment; empty if it was not compiled."""
    words = _split_command(read_heading_command(text))
    if not words or any(word.partition("=")[0] in _FORBIDDEN_OPTIONS for word in words):
        return ""
    package = "uv" if words[0] == "uv" else "pip-tools"
    folder, name = posixpath.split(path)
    sources = [word for word in words if word.endswith(".in")]
    inside = bool(folder and sources and "/" not in sources[0])  # it was compiled in its own folder
    is_default = words[0] != "uv" and [f"{source[:-3]}.txt" for source in sources] == [name]
    if not is_default and not any(word.startswith(("-o", "--output-file")) for word in words):
        words += ["--output-file", name if inside else path]
    there = f"cd {shlex.quote(folder)}\n" if inside else ""
    return (
        f"unset PIP_CONSTRAINT UV_CONSTRAINT\npython -m venv {_VENV_PATH} && {_VENV_PATH}/bin/pip install -q {package} || exit 1\n"
        f"{there}PATH={_VENV_PATH}/bin:$PATH {shlex.join(words)}"
    )


def _split_command(line: str) -> list[str]:
    """The words of the command; none if it contains shell syntax."""
    if not re.fullmatch(r"[\w ./=,:@^~<>+-]*", line):
        return []
    return line.split()


def add_missing_pytest(trial: Trial, output: str) -> Trial | None:
    """The trial with pytest in its setup, where a run's output says that it is missing; None where it does not."""
    if "No module named pytest" not in output:
        return None
    setup = "\n".join(filter(None, (trial.setup, PythonDependencies.install_test_runner)))
    return replace(trial, setup=setup)


class PythonDependencies:
    """What the setup of a Python project installs, what it lacks, and the manifests that say so."""

    versions_path = VERSIONS_PATH
    list_versions_script = FREEZE_SCRIPT
    list_modules_script = LIST_SCRIPT
    make_search_script = staticmethod(make_search_script)
    move_imports = staticmethod(move_imports)

    install_test_runner = f"{PIP_INSTALL} pytest"

    def make_test_setup(self, git: Git, rev: str) -> str:
        """Shell lines that install pytest, and of what the tests want as much as can be had.

        Old projects name what is gone by now: then the names are tried one by one.
        """
        try:
            return run_in_child(make_test_setup, git, rev)
        except AnalysisFailed:
            return self.install_test_runner

    def find_undeclared(self, output: str, files: RepositoryFiles) -> tuple[str, ...]:
        """What the tests lack and many projects use; not what the product imports and no manifest names: its own fault.

        Where one module is missing, all that tests import and no manifest declares: a run names but the first of each file.
        """
        paths = sorted(files.paths)
        missing = {one.distribution: one for one in find_missing_distributions(output, paths)}
        if any(f"No module named '{one.module}" in output for one in missing.values()):
            declared = list_test_requirements(files)
            for one in find_imports_of_tests(files):
                if canonicalize_name(one.distribution) not in declared:
                    missing.setdefault(one.distribution, one)
        return tuple(
            one.requirement
            for one in missing.values()
            if is_popular("pypi", one.distribution)
            and not find_folder_of_test_module(one.module, paths)
            and (
                is_named_in_manifests(one.distribution, files)
                or not is_imported_by_product(one.module, paths, files.read, always=True)
            )
        )

    def find_variables(self, output: str, files: RepositoryFiles) -> tuple[tuple[str, str], ...]:
        """The variables that the output misses and the repository gives a value."""
        return find_missing_variables(output, files)

    def install(self, requirements: Sequence[str], setup: str = "") -> str:
        """The shell line that installs what can be had of the requirements after `setup`."""
        return make_install_line(requirements, setup)

    def find_uninstalled(self, output: str, setup: str) -> tuple[str, ...]:
        """The requirements of `setup` that its output says it went on without."""
        lines = (line.strip() for line in output.splitlines())
        found = (
            line.removeprefix(NOT_INSTALLED) for line in lines if line.startswith(NOT_INSTALLED)
        )
        return tuple(dict.fromkeys(one for one in found if one and one in setup))

    def find_unneeded_by_product(
        self, output: str, paths: Sequence[str], read: ReadText
    ) -> tuple[str, ...]:
        """The distributions that the output says are missing, where only tests import them all."""
        missing = find_missing_distributions(output, paths)
        if any(is_imported_by_product(package.module, paths, read) for package in missing):
            return ()
        return tuple(package.distribution for package in missing)

    def propose_declarations(
        self, output: str, paths: Sequence[str], read: ReadText, setup: str, *, setup_failed: bool
    ) -> list[tuple[dict[str, str], str]]:
        """Changed manifests that declare what the output says is missing, the likeliest first, each with its cause."""
        missing = find_missing_distributions(output, paths)
        missing = missing or find_undeclared_imports(output, paths)
        if not missing:
            return []
        if setup_failed:
            return list(propose_build_requirements(missing, read))
        return list(propose_manifests(missing, paths, read, setup))

    def find_derived_locks(
        self, path: str, paths: Collection[str], read: ReadText, setup: str
    ) -> list[tuple[str, str]]:
        """The lock files made from a manifest, each with the script that regenerates it."""
        return list(find_derived_locks(path, paths, read, setup))

    def find_blamed(self, output: str) -> tuple[str, ...]:
        """The names of what the installer complains about."""
        return find_blamed_distributions(output)

    def propose_free_pins(
        self, name: str, paths: Sequence[str], read: ReadText
    ) -> list[tuple[str, str]]:
        """The manifests that pin the distribution to one version, each with its text without the pin."""
        texts = (
            (path, replace_pin(read(path) or "", name, "")) for path in find_files_with_pins(paths)
        )
        return [(path, free) for path, free in texts if free is not None]

    def move_pin(self, text: str, name: str, listed: str) -> tuple[str, str] | None:
        """The manifest with the version that the installer has listed, and that version; None where it lists none."""
        version = find_frozen_version(listed, name)
        after = replace_pin(text, name, f"=={version}") if version else None
        return (after, version) if after and version else None

    def find_suspects(
        self, failures: Sequence[Failure], output: str, paths: Sequence[str], read: ReadText
    ) -> list[str]:
        """Installed modules that the failures point at, the most certain first; none of the repository's own."""
        found = find_suspect_modules(failures, output, read)
        return [module for module in found if not is_own_module(module, paths)]

    def find_bounds(self, module: str, listed: str) -> VersionBounds:
        """The distribution behind a module, and the releases to stay below; `listed` is what the script printed."""
        brought = parse_installed_modules(listed)
        distribution, releases = find_version_bounds(module, brought)
        return VersionBounds(
            module, distribution, brought.get(module, ("", "of today"))[1], releases
        )

    def declare_bound(
        self, bounds: VersionBounds, release: str, paths: Sequence[str], read: ReadText, setup: str
    ) -> dict[str, str]:
        """The changed manifest that keeps the distribution below a release; empty where none can."""
        for path in find_files_with_pins(paths):
            after = cap_version(path, read(path) or "", bounds.distribution, release)
            if after is not None:
                return {path: after}
        package = MissingDistribution(bounds.distribution, bounds.module, bound=f"<{release}")
        return next(propose_manifests([package], paths, read, setup), ({}, ""))[0]
