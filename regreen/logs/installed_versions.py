"""Reads which versions a job installed, so that a run today can be held to those of that day."""

from __future__ import annotations

import re

from packaging.utils import canonicalize_name

_PIP_INSTALLED = re.compile(r"^Successfully installed (?P<all>\S.*)$")
_PIP_PACKAGE = re.compile(
    r"^(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)-(?P<version>\d[A-Za-z0-9.!+_]*)$"
)
_UV_PACKAGE = re.compile(
    r"^ \+ (?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>\d[^\s(]*)(?P<origin> \(from .*)?$"
)
_MAX_VERSIONS = 2_000
# What installs is not what is installed: these follow the machine, not the day.
_INSTALLER_NAMES = frozenset(
    {"pip", "uv", "wheel", "virtualenv", "distlib", "filelock", "platformdirs"}
)


class InstalledReader:
    """Collects `name==version` from pip's and uv's own words."""

    def __init__(self) -> None:
        self._found: dict[str, str] = {}
        self._unclear: set[str] = set()
        self._built: dict[str, str] = {}

    def feed(self, line: str) -> None:
        """Take the next line of output."""
        if line.startswith("Successfully installed ") and (match := _PIP_INSTALLED.match(line)):
            for word in match["all"].split():
                if one := _PIP_PACKAGE.match(word):
                    self._record_version(one["name"], one["version"])
        elif line.startswith(" + ") and (one := _UV_PACKAGE.match(line)):
            if not one["origin"]:
                self._record_version(one["name"], one["version"])
            elif "file://" in one["origin"]:
                self._note_built(canonicalize_name(one["name"]), one["version"])

    def installed_versions(self) -> tuple[str, ...]:
        """`name==version`, by name; none that differed between two environments, none of a local build."""
        return tuple(
            f"{name}=={version}"
            for name, version in sorted(self._found.items())
            if name not in self._unclear and name not in _INSTALLER_NAMES
        )

    def locally_built(self) -> tuple[str, ...]:
        """`name==version` of what was built from a tree, the project itself above all."""
        return tuple(f"{name}=={version}" for name, version in sorted(self._built.items()))

    def _note_built(self, plain: str, version: str) -> None:
        if len(self._built) < _MAX_VERSIONS and re.fullmatch(r"\d[A-Za-z0-9.!+_]*", version):
            self._built.setdefault(plain, version)

    def _record_version(self, name: str, version: str) -> None:
        plain = canonicalize_name(name)
        local = "+" in version or ".dev" in version or len(self._found) >= _MAX_VERSIONS
        if "+" in version or ".dev" in version:
            self._note_built(plain, version)
        if local or self._found.setdefault(plain, version) != version:
            self._unclear.add(plain)
