"""Which linters and formatters a repository has set up for itself, and in which versions. Pure."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

_PYTHON = (".py", ".pyi")
_SCRIPT = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")
_NPX = "npx --no-install"
# path:line:column: rule words
_LINES = "--msg-template='{path}:{line}:{column}: {symbol} {msg}'"


@dataclass(frozen=True, slots=True)
class Linter:
    """One tool: what it is called, how it reads files, and the signs that a repository uses it.

    `prints` names the way its output is read; `ends` the exit codes with which it has done its work. `package`
    is what a package index calls it, empty for tools of Node, which come with the repository's own lock.
    """

    name: str
    command: str
    suffixes: tuple[str, ...]
    prints: str
    package: str = ""
    files: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    ends: frozenset[int] = frozenset({0, 1})
    imports: bool = False
    """Whether it needs what the code imports to be installed beside it."""


LINTERS: tuple[Linter, ...] = (
    Linter("ruff", "ruff check --no-cache --force-exclude --output-format json", _PYTHON, "json", "ruff",
           ("ruff.toml", ".ruff.toml"), ("ruff", "ruff-check"), ("ruff",)),
    Linter("ruff format", "ruff format --no-cache --force-exclude --diff", _PYTHON, "diff", "ruff",
           hooks=("ruff-format",), sections=("ruff.format",)),
    Linter("black", "black --quiet --diff", _PYTHON, "diff", "black", hooks=("black",), sections=("black",)),
    Linter("isort", "isort --quiet --diff", _PYTHON, "diff", "isort", (".isort.cfg",), ("isort",), ("isort",)),
    Linter("flake8", "flake8 --format default", _PYTHON, "lines", "flake8", (".flake8",), ("flake8",), ("flake8",)),
    Linter("pylint", f"pylint --reports=n --score=n {_LINES}", _PYTHON, "lines", "pylint", ("pylintrc", ".pylintrc"),
           ("pylint",), ("pylint",), frozenset(range(32)), imports=True),
    Linter("mypy", "mypy --no-error-summary --show-column-numbers --hide-error-context --no-color-output --no-pretty",
           _PYTHON, "lines", "mypy", ("mypy.ini", ".mypy.ini"), ("mypy",), ("mypy",), imports=True),
    Linter("eslint", f"{_NPX} eslint --format json", _SCRIPT, "json",
           files=("eslint.config.js", "eslint.config.mjs", "eslint.config.cjs", "eslint.config.ts", ".eslintrc",
                  ".eslintrc.js", ".eslintrc.cjs", ".eslintrc.json", ".eslintrc.yml", ".eslintrc.yaml"),
           hooks=("eslint",), sections=("eslintConfig",)),
    Linter("prettier", f"{_NPX} prettier --list-different", (*_SCRIPT, ".css", ".scss", ".json", ".md", ".yml", ".yaml"),
           "names", files=(".prettierrc", ".prettierrc.json", ".prettierrc.yml", ".prettierrc.yaml", ".prettierrc.js",
                           ".prettierrc.cjs", ".prettierrc.mjs", ".prettierrc.toml", "prettier.config.js",
                           "prettier.config.cjs", "prettier.config.mjs"),
           hooks=("prettier",), sections=("prettier",)),
    Linter("biome", f"{_NPX} biome ci --reporter=github --colors=off", (*_SCRIPT, ".json", ".css"), "annotations",
           files=("biome.json", "biome.jsonc"), hooks=("biome-check", "biome-ci", "biome-lint", "biome-format")),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chosen:
    """A linter that the repository uses; `version` where it says which, empty where its environment decides."""

    linter: Linter
    version: str = ""


def chosen(names: Iterable[str], read: Callable[[str], str | None]) -> list[Chosen]:
    """The tools that a tree configures at its root. `read` gives a file's text."""
    root = {n for n in names if "/" not in n}
    sections = _sections(read)
    hooks = _hooks(read(".pre-commit-config.yaml") or "")
    found = []
    for linter in LINTERS:
        hooked = next((h for h in linter.hooks if h in hooks), None)
        if hooked is None and not root & {*linter.files} and not sections & {*linter.sections}:
            continue
        version = hooks.get(hooked or "", "") or _pinned(linter.package, root, read)
        found.append(Chosen(linter, version))
    return found


def node_setup(names: Iterable[str]) -> str:
    """How the repository's own versions of Node tools get there, without any of their scripts run."""
    root = set(names)
    if "pnpm-lock.yaml" in root:
        return "pnpm install --frozen-lockfile --ignore-scripts"
    if "yarn.lock" in root:
        return "yarn install --frozen-lockfile --ignore-scripts --non-interactive"
    return "npm ci --ignore-scripts --no-audit --no-fund" if "package-lock.json" in root else ""


def _sections(read: Callable[[str], str | None]) -> set[str]:
    """Sections in files that many tools share: `[tool.X]`, `[X]`, keys of package.json."""
    found: set[str] = set()
    try:
        tools = tomllib.loads(read("pyproject.toml") or "").get("tool", {})
    except (tomllib.TOMLDecodeError, RecursionError):
        tools = {}
    for name, table in tools.items() if isinstance(tools, Mapping) else ():
        found.add(name)
        found |= {f"{name}.{inner}" for inner in table} if isinstance(table, Mapping) else set()
    for path in ("setup.cfg", "tox.ini"):
        found |= set(re.findall(r"^\[(?:tool:)?(\w{1,40})\]", read(path) or "", re.MULTILINE))
    try:
        package = json.loads(read("package.json") or "{}")
    except (ValueError, RecursionError):
        package = {}
    return found | (
        {*package} & {"eslintConfig", "prettier"} if isinstance(package, dict) else set()
    )


def _hooks(config: str) -> dict[str, str]:
    """The hooks of a pre-commit configuration, with the revision of each one's repository as a version."""
    found: dict[str, str] = {}
    version = ""
    for line in config.split("\n"):
        if re.match(r"\s*-?\s*repo:", line):
            version = ""
        elif rev := re.match(r"\s*rev:\s*[\"']?v?(\d[\w.]{0,40})", line):
            version = rev[1]
        elif hook := re.match(r"\s*-\s*(?:\{\s*)?id:\s*[\"']?([\w-]{1,60})", line):
            found[hook[1]] = version
    return found


def _pinned(package: str, root: set[str], read: Callable[[str], str | None]) -> str:
    """The version that a lock or a list of requirements pins."""
    if not package:
        return ""
    name = re.escape(package)
    for path in sorted(root):
        if path in {"uv.lock", "poetry.lock", "pdm.lock"}:
            form = rf'^name = "{name}"\nversion = "(\d[\w.]{{0,40}})"'
        elif re.fullmatch(r"[\w.-]*requirements[\w.-]*\.txt", path):
            form = rf"^{name}==(\d[\w.]{{0,40}})"
        else:
            continue
        if match := re.search(form, read(path) or "", re.MULTILINE):
            return match[1]
    return ""
