"""The packages that a manifest or lock file declares, with their sources: one reader for each kind of file."""

from __future__ import annotations

import re
from collections.abc import Callable
from configparser import ConfigParser
from configparser import Error as ConfigError
from dataclasses import replace

from regreen.code.python_compat import UnparsableSource
from regreen.code.toml_loader import load_toml
from regreen.domain.text_limits import MAX_LINE, without_long_lines
from regreen.packages.dependency import DeclaredPackages, find_line, get_table
from regreen.packages.other_manifests import (
    read_cargo_lock,
    read_cargo_toml,
    read_gemfile,
    read_go_mod,
    read_go_sum,
    read_package_json,
    read_package_lock,
    read_pnpm_lock,
    read_yarn_lock,
)
from regreen.packages.python_manifests import (
    read_pipfile,
    read_pyproject,
    read_python_lock,
    read_requirements,
    read_setup_cfg,
    read_setup_py,
    read_uv_indexes,
)

# Configuration files of installers that name their package sources: pip, uv, npm, yarn and Cargo.

# `@scope:registry=...`, `registry=...`
_NPM_REGISTRY = re.compile(r"^\s*(@[\w.-]+:)?registry\s*=\s*[\"']?(https?://[^\s\"']+)")
_YARN_REGISTRY = re.compile(r"^(\s*)(?:npmRegistryServer:|registry)\s+[\"']?(https?://[^\s\"']+)")


def read_pip_conf(text: str) -> DeclaredPackages:
    """`pip.conf` or `pip.ini`."""
    parser = ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)
    indexes = [
        (address if key == "index-url" else f"extra:{address}", find_line(text, address))
        for section in parser.sections()
        for key in ("index-url", "extra-index-url", "find-links")
        for address in parser.get(section, key, fallback="").split()
    ]
    return DeclaredPackages(indexes=tuple(indexes))


def read_uv_toml(text: str) -> DeclaredPackages:
    """`uv.toml`."""
    return DeclaredPackages(indexes=tuple(read_uv_indexes(load_toml(text), text)))


def read_npmrc(text: str) -> DeclaredPackages:
    """`.npmrc`; a registry of one scope serves that scope only."""
    return _by_line(text, _NPM_REGISTRY)


def read_yarnrc(text: str) -> DeclaredPackages:
    """`.yarnrc` or `.yarnrc.yml`; an indented registry belongs to a scope."""
    return _by_line(text, _YARN_REGISTRY)


def _by_line(text: str, pattern: re.Pattern[str]) -> DeclaredPackages:
    indexes = [
        (f"scoped:{match[2]}" if match[1] else match[2], number)
        for number, line in enumerate(text.split("\n"), 1)
        if (match := pattern.match(line))
    ]
    return DeclaredPackages(indexes=tuple(indexes))


def read_cargo_config(text: str) -> DeclaredPackages:
    """`.cargo/config.toml`: replacements of the default registry, and registries with names."""
    data = load_toml(text)
    sources = get_table(data, "source")
    replaced = {
        str(source["replace-with"])
        for source in sources.values()
        if isinstance(source, dict) and "replace-with" in source
    }
    indexes: list[tuple[str, int]] = []
    for name, source in sources.items():
        address = str(source.get("registry") or "") if isinstance(source, dict) else ""
        if address and name in replaced:
            indexes.append((address.removeprefix("sparse+"), find_line(text, address)))
    for source in get_table(data, "registries").values():
        address = str(source.get("index") or "") if isinstance(source, dict) else ""
        if address:
            indexes.append((f"scoped:{address.removeprefix('sparse+')}", find_line(text, address)))
    return DeclaredPackages(indexes=tuple(indexes))


_MAX_CHARACTERS = 5_000_000
UNREAD_REASONS = ("too large", f"too long in some line (over {MAX_LINE:,} characters)")
_REQUIREMENTS_PATH = re.compile(
    r"(?i)(?:^|/)(?:[\w.-]{0,200}requirements[\w.-]{0,200}\.(?:txt|in)|requirements/[\w.-]{1,200}\.(?:txt|in)|constraints[\w.-]{0,200}\.txt|(?:[\w.-]{0,200}[-_.])?(?:reqs|deps)(?:[-_.][\w.-]{0,200})?\.(?:txt|in))$"
)


def is_manifest(path: str) -> bool:
    """Whether `read_declared` can read packages from such a file."""
    return _find_reader(path) is not None


def read_declared(path: str, text: str) -> DeclaredPackages:
    """What the file declares; `problem` says why it cannot be read, completely or in part."""
    reader = _find_reader(path)
    if reader is None:
        return DeclaredPackages()
    if len(text) > _MAX_CHARACTERS:
        return DeclaredPackages(problem=UNREAD_REASONS[0])
    short = without_long_lines(text)
    if short != text and not path.endswith((".json", ".py")):  # those are parsed whole
        return replace(read_declared(path, short), problem=UNREAD_REASONS[1])
    try:
        return reader(text)
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        ConfigError,
        UnparsableSource,
    ) as error:
        return DeclaredPackages(problem=f"not readable: {str(error)[:120]}")


def _find_reader(path: str) -> Callable[[str], DeclaredPackages] | None:
    name = path.rpartition("/")[2].lower()
    if _REQUIREMENTS_PATH.search(path):
        return read_requirements
    if name.endswith((".lock",)) and name in {"poetry.lock", "uv.lock", "pdm.lock", "cargo.lock"}:
        return read_cargo_lock if name == "cargo.lock" else read_python_lock
    if path.endswith((".cargo/config.toml", ".cargo/config")):
        return read_cargo_config
    return _READER_BY_NAME.get(name)


_READER_BY_NAME: dict[str, Callable[[str], DeclaredPackages]] = {
    "pyproject.toml": read_pyproject,
    "setup.cfg": read_setup_cfg,
    "setup.py": read_setup_py,
    "pipfile": read_pipfile,
    "package.json": read_package_json,
    "package-lock.json": read_package_lock,
    "npm-shrinkwrap.json": read_package_lock,
    "yarn.lock": read_yarn_lock,
    "pnpm-lock.yaml": read_pnpm_lock,
    "go.mod": read_go_mod,
    "go.sum": read_go_sum,
    "cargo.toml": read_cargo_toml,
    "gemfile": read_gemfile,
    "pip.conf": read_pip_conf,
    "pip.ini": read_pip_conf,
    "uv.toml": read_uv_toml,
    ".npmrc": read_npmrc,
    ".yarnrc": read_yarnrc,
    ".yarnrc.yml": read_yarnrc,
}
