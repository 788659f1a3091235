"""Finds the modules, plugins, extras and tools that a failure says are missing, and the distribution of each."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files as package_files
from pathlib import PurePosixPath
from typing import Any

from packaging.utils import canonicalize_name

from regreen.code.paths import is_example, is_test, is_vendored
from regreen.code.python_calls import is_module
from regreen.code.python_compat import UnparsableSource, parse_python_or_explain
from regreen.domain.environments import ReadText, RepositoryFiles
from regreen.domain.text_limits import strip_terminal_codes
from regreen.languages.python.imports import top_module
from regreen.packages.popular_names import is_popular

_MISSING_MODULE = re.compile(
    r"(?:(?:ModuleNotFoundError|ImportError): |/python[\d.]*: )No module named '?([A-Za-z_][\w.]{0,100})'?"
)
_NO_COMMAND = re.compile(
    r"(?:^|: )(pytest|ruff|mypy|black|isort|flake8|coverage|tox|nox|pylint|pyright): (?:command )?not found",
    re.MULTILINE,
)
_INSTALL_HINT = re.compile(
    r"(?:pip3?|uv pip) install (?:-U |--upgrade )?[\"'`]?([A-Za-z0-9][\w.-]{0,80})(\[[\w,. -]{1,80}\])?",
    re.IGNORECASE,
)
_IMPORTABLE = (".py", ".pyi", ".pyx", ".so", ".pyd", ".c", ".cc", ".cpp", ".rs")  # or built into it
_ERROR_WORDS = re.compile(r"Error|error|not installed|required|missing|hint|note:", re.IGNORECASE)
_UNKNOWN_MARK = re.compile(r"Unknown pytest\.mark\.(\w{1,40})|'(\w{1,40})' not found in `markers`")
_MAX_TEST_FILES = 500
_MISSING_FIXTURE = re.compile(r"fixture '(\w{1,60})' not found")
_UNKNOWN_OPTIONS = re.compile(r"unrecognized arguments: (-[^\n]{1,400})")
_MISSING_PLUGINS = re.compile(r"Missing required plugins: ([^\n]{1,400})")
_PLUGIN_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][\w.-]*)(\s*[<>=!~]=?[\w.*]+)?")
_UNKNOWN_SETTING = re.compile(r"Unknown config option: (\w{1,60})")
_MISSING_VARIABLE = re.compile(
    r"(?:environment variable [\"']?|KeyError: ')(?!PIP_|UV_)([A-Z][A-Z0-9_]{2,60})\b"
)
# Of tests and settings alone, for the setup sees them, too.
_WORDS_OF_TESTS = {"TEST", "TESTS", "SETTINGS", "DB", "DATABASE"}
_FILES_WITH_VARIABLES = re.compile(
    r"(?:tox|pytest)\.ini|setup\.cfg|pyproject\.toml|noxfile\.py|[Mm]akefile|(?:[\w.-]{1,60}/)?manage\.py|run_?tests?\.py|\.travis\.yml|\.github/workflows/[^/]+\.ya?ml"
)


@cache
def _load_tables() -> dict[str, Any]:
    """Which distribution brings a module, a mark, a fixture, a setting or an option of pytest."""
    return tomllib.loads((package_files(__package__) / "distributions.toml").read_text())


@dataclass(frozen=True, slots=True)
class MissingDistribution:
    """A distribution that a failure asks for.

    `module` is the name in the failure: the module, mark, fixture or option. `extra` is the extra that is missing
    ("[http2]"), `bound` a known version bound ("<81"); `development`: it is declared, but not for the product.
    """

    distribution: str
    module: str
    extra: str = ""
    bound: str = ""
    development: bool = False

    @property
    def requirement(self) -> str:
        """The requirement as a manifest names it."""
        return f"{self.distribution}{self.extra}{self.bound}"


def find_missing_distributions(
    output: str, paths: Sequence[str]
) -> tuple[MissingDistribution, ...]:
    """What the output says is missing, without the repository's own modules and the standard library."""
    found = [
        *_find_missing_modules(output, paths),
        *(MissingDistribution(match[1], match[1]) for match in _NO_COMMAND.finditer(output)),
        *_find_missing_plugins(output),
        *_find_install_hints(output),
    ]
    return tuple({canonicalize_name(missing.distribution): missing for missing in found}.values())


def _find_missing_modules(output: str, paths: Sequence[str]) -> Iterator[MissingDistribution]:
    tables = _load_tables()
    for match in _MISSING_MODULE.finditer(output):
        top = match[1].split(".")[0]
        if is_own_module(top, paths):
            continue
        if top in tables["removed_from_python"]:
            yield MissingDistribution(tables["removed_from_python"][top], top)
        elif top not in sys.stdlib_module_names:
            bound = tables["last_versions"].get(top, "")
            yield MissingDistribution(find_distribution(match[1]), top, bound=bound)


def find_undeclared_imports(output: str, paths: Sequence[str]) -> tuple[MissingDistribution, ...]:
    """What checkers of dependencies say is imported but not declared, or for development only."""
    found: dict[str, MissingDistribution] = {}
    text = strip_terminal_codes(output)
    for row in _load_tables()["undeclared"]:
        within = "\n".join(re.findall(row.get("within", "(?s).+"), text))
        for match in re.finditer(row["pattern"], within):
            top = match["module"].split(".")[0]
            name = match.groupdict().get("distribution") or find_distribution(match["module"])
            one = MissingDistribution(name, top, development=row.get("development", False))
            if not is_own_module(top, paths):
                found.setdefault(canonicalize_name(name), one)
    return tuple(found.values())


def find_imports_of_tests(files: RepositoryFiles) -> tuple[MissingDistribution, ...]:
    """The distributions of what test files import under no condition, without the repository's own modules."""
    tests = [path for path in sorted(files.paths) if is_module(path) and is_test(path)]
    return _find_foreign_imports(tests[:_MAX_TEST_FILES], files)


def find_imports_of_build(files: RepositoryFiles) -> tuple[MissingDistribution, ...]:
    """What `setup.py` imports under no condition and many projects use: Cython, numpy."""
    foreign = _find_foreign_imports(["setup.py"], files)
    return tuple(one for one in foreign if is_popular("pypi", one.distribution))


def _find_foreign_imports(
    paths: Sequence[str], files: RepositoryFiles
) -> tuple[MissingDistribution, ...]:
    names = {
        PurePosixPath(part).stem
        for path in files.paths
        if path.endswith(_IMPORTABLE)
        for part in path.split("/")
    }
    tops: dict[str, None] = {}
    for path in paths:
        tops |= dict.fromkeys(_list_top_imports(files.read(path)))
    foreign = (top for top in tops if top not in names and top not in sys.stdlib_module_names)
    return tuple(MissingDistribution(find_distribution(top), top) for top in foreign)


def _list_top_imports(text: str) -> Iterator[str]:
    try:
        tree = parse_python_or_explain(text)
    except (UnparsableSource, RecursionError, ValueError):
        return
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def find_distribution(module: str) -> str:
    """The distribution that is known to bring a module, or else the one that has its name."""
    tables = _load_tables()
    top, *rest = module.split(".")
    for name in (module, top):
        if name in tables["modules"]:
            return str(tables["modules"][name])
    if top in tables["namespace_packages"] and rest:
        return "-".join([top, *rest][:3])
    return top.replace("_", "-")


def list_modules(distribution: str) -> list[str]:
    """The modules that a distribution is known to bring, where they have other names than it."""
    name = canonicalize_name(distribution)
    known = _load_tables()["modules"].items()
    return [module for module, brings in known if canonicalize_name(brings) == name]


def find_unknown_marks(output: str) -> list[str]:
    """The marks of which pytest says that nothing registers them."""
    return list(dict.fromkeys(one[1] or one[2] for one in _UNKNOWN_MARK.finditer(output)))


def _find_missing_plugins(output: str) -> Iterator[MissingDistribution]:
    """Plugins whose marks, fixtures, options or settings pytest does not know, and those that it says are required."""
    named = [("pytest_marks", mark) for mark in find_unknown_marks(output)]
    named += [("pytest_fixtures", match[1]) for match in _MISSING_FIXTURE.finditer(output)]
    named += [
        ("pytest_options", word.partition("=")[0])
        for match in _UNKNOWN_OPTIONS.finditer(output)
        for word in match[1].split()
    ]
    named += [("pytest_settings", match[1]) for match in _UNKNOWN_SETTING.finditer(output)]
    named += [("pytest_settings", name) for name in _MISSING_VARIABLE.findall(output)]
    for table, name in named:
        if plugin := _find_plugin_row(_load_tables()[table], name):
            yield MissingDistribution(plugin, name)
    for match in _MISSING_PLUGINS.finditer(output):
        for wanted in match[1].split(","):
            if named_plugin := _PLUGIN_REQUIREMENT.match(wanted):
                name, bound = named_plugin.groups("")
                yield MissingDistribution(name, name, bound=bound.strip())


def find_missing_variables(output: str, files: RepositoryFiles) -> tuple[tuple[str, str], ...]:
    """The variables of tests and settings that the output misses, with the value that the repository gives each.

    Where tests import a module that lies beside tests, the path that makes it importable: some runners add that folder.
    """
    names = dict.fromkeys(_MISSING_VARIABLE.findall(output))
    texts = [
        files.read(path) for path in sorted(filter(_FILES_WITH_VARIABLES.fullmatch, files.paths))
    ]
    found: list[tuple[str, str]] = []
    for name in names:
        if _WORDS_OF_TESTS.isdisjoint(name.split("_")):
            continue
        assigned = re.compile(
            rf"\b{name}[\"']?\]?[ \t]{{0,5}}[=:,][ \t]{{0,5}}[\"']?([\w.-]{{1,100}})"
        )
        value = next((match[1] for text in texts if (match := assigned.search(text))), None)
        found += [(name, value)] if value is not None else []
    tops = dict.fromkeys(name for name in _MISSING_MODULE.findall(output) if "." not in name)
    beside = (find_folder_of_test_module(top, files.paths) for top in tops)
    if folders := dict.fromkeys(folder for folder in beside if folder):
        found.append(("PYTHONPATH", ":".join(f"/work/{folder}" for folder in folders)))
    return tuple(found)


def find_folder_of_test_module(top: str, paths: Collection[str]) -> str:
    """The folder with tests that holds a module of this name; "" for none or several."""
    found = [path.rpartition("/")[0] for path in paths if path.endswith(f"/{top}.py")]
    with_tests = {path.rpartition("/")[0] for path in paths if is_module(path) and is_test(path)}
    folders = [folder for folder in found if folder in with_tests]
    return folders[0] if len(folders) == 1 else ""


def _find_plugin_row(table: Mapping[str, str], name: str) -> str | None:
    """The row of a name; a long option also stands for those that it begins: `--cov` for `--cov-report`."""
    if name in table or not name.startswith("--"):
        return table.get(name)
    return next((table[row] for row in table if len(row) > 2 and name.startswith(f"{row}-")), None)


def _find_install_hints(output: str) -> Iterator[MissingDistribution]:
    """What an error says to install: `pip install httpx[http2]`."""
    for line in output.splitlines():
        match = (
            _INSTALL_HINT.search(line) if len(line) < 2000 and _ERROR_WORDS.search(line) else None
        )
        if match and match[1].lower() not in {"pip", "the", "a", "it"}:
            name, extra = match.groups("")
            yield MissingDistribution(
                name.rstrip("."), name.replace("-", "_"), extra.replace(" ", "")
            )


def is_own_module(top: str, paths: Sequence[str]) -> bool:
    """Whether the repository has the module, at a place that can be imported from; an index may have a release of it."""
    return any(
        top_module(path.removeprefix("src/")) == top
        or (
            path.startswith((f"{top}/", f"src/{top}/", f"lib/{top}/"))
            and path.endswith(_IMPORTABLE)  # no folder of headers or data
        )
        or (
            path.endswith(f"/{top}/__init__.py")
            and not (is_test(path) or is_vendored(path) or is_example(path))
            and not any(
                f"{above}/__init__.py" in paths for above in PurePosixPath(path).parents[1:]
            )
        )
        for path in paths
    )


def is_imported_by_product(
    module: str, paths: Sequence[str], read: ReadText, *, always: bool = False
) -> bool:
    """Whether the product itself imports the module, and not its tests alone; `always`: under no condition."""
    indent = "" if always else r"[ \t]*"
    word = re.compile(rf"^{indent}(?:import|from)\s+{re.escape(module)}\b", re.MULTILINE)
    sources = [
        path
        for path in paths
        if is_module(path)
        and not (is_test(path) or is_example(path) or path in {"setup.py", "noxfile.py"})
    ]
    return any(word.search(read(path) or "") for path in sources[:3000])
