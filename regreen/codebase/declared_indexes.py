"""From where installers take packages, by their own configuration: pip, uv, npm, yarn and Cargo."""

from __future__ import annotations

import re
import tomllib
from configparser import ConfigParser

from regreen.codebase.declared_python import uv_indexes
from regreen.codebase.dependency import Declared, line_of, table

# `@scope:registry=...`, `registry=...`
_NPM = re.compile(r"^\s*(@[\w.-]+:)?registry\s*=\s*[\"']?(https?://[^\s\"']+)")
_YARN = re.compile(r"^(\s*)(?:npmRegistryServer:|registry)\s+[\"']?(https?://[^\s\"']+)")


def pip_conf(text: str) -> Declared:
    """`pip.conf` or `pip.ini`."""
    parser = ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)
    found = [
        (address if key == "index-url" else f"extra:{address}", line_of(text, address))
        for section in parser.sections()
        for key in ("index-url", "extra-index-url", "find-links")
        for address in parser.get(section, key, fallback="").split()
    ]
    return Declared(indexes=tuple(found))


def uv_toml(text: str) -> Declared:
    """`uv.toml`."""
    return Declared(indexes=tuple(uv_indexes(tomllib.loads(text), text)))


def npmrc(text: str) -> Declared:
    """`.npmrc`; a registry of one scope serves that scope only."""
    return _by_line(text, _NPM)


def yarnrc(text: str) -> Declared:
    """`.yarnrc` or `.yarnrc.yml`; what is further in belongs to a scope."""
    return _by_line(text, _YARN)


def _by_line(text: str, pattern: re.Pattern[str]) -> Declared:
    found = [
        (f"scoped:{match[2]}" if match[1] else match[2], number)
        for number, line in enumerate(text.split("\n"), 1)
        if (match := pattern.match(line))
    ]
    return Declared(indexes=tuple(found))


def cargo_config(text: str) -> Declared:
    """`.cargo/config.toml`: what stands for the usual registry, and registries that are asked by name."""
    data = tomllib.loads(text)
    sources = table(data, "source")
    replaced = {
        str(one["replace-with"])
        for one in sources.values()
        if isinstance(one, dict) and "replace-with" in one
    }
    found: list[tuple[str, int]] = []
    for name, one in sources.items():
        address = str(one.get("registry") or "") if isinstance(one, dict) else ""
        if address and name in replaced:
            found.append((address.removeprefix("sparse+"), line_of(text, address)))
    for one in table(data, "registries").values():
        address = str(one.get("index") or "") if isinstance(one, dict) else ""
        if address:
            found.append((f"scoped:{address.removeprefix('sparse+')}", line_of(text, address)))
    return Declared(indexes=tuple(found))
