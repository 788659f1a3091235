"""Reads which versions a job installed, so that a run today can be held to those of that day."""

from __future__ import annotations

import re

_PIP = re.compile(r"^Successfully installed (?P<all>\S.*)$")
_PIP_ONE = re.compile(
    r"^(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)-(?P<version>\d[A-Za-z0-9.!+_]*)$"
)
_UV_ONE = re.compile(
    r"^ \+ (?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>\d[^\s(]*)(?P<origin> \(from .*)?$"
)
_MOST = 2_000
# What installs is not what is installed: these follow the machine, not the day.
_TOOLS = frozenset({"pip", "uv", "wheel", "virtualenv", "distlib", "filelock", "platformdirs"})


class InstalledReader:
    """Collects `name==version` from pip's and uv's own words."""

    def __init__(self) -> None:
        self._found: dict[str, str] = {}
        self._unclear: set[str] = set()
        self._built: dict[str, str] = {}

    def feed(self, line: str) -> None:
        """Take the next line of output."""
        if line.startswith("Successfully installed ") and (said := _PIP.match(line)):
            for word in said["all"].split():
                if one := _PIP_ONE.match(word):
                    self._keep(one["name"], one["version"])
        elif line.startswith(" + ") and (one := _UV_ONE.match(line)):
            if not one["origin"]:
                self._keep(one["name"], one["version"])
            elif "file://" in one["origin"]:
                self._note_built(_plain(one["name"]), one["version"])

    def versions(self) -> tuple[str, ...]:
        """`name==version`, by name; none that differed between two environments, none of a local build."""
        return tuple(
            f"{name}=={version}"
            for name, version in sorted(self._found.items())
            if name not in self._unclear and name not in _TOOLS
        )

    def built(self) -> tuple[str, ...]:
        """`name==version` of what was built from a tree, the project itself above all."""
        return tuple(f"{name}=={version}" for name, version in sorted(self._built.items()))

    def _note_built(self, plain: str, version: str) -> None:
        if len(self._built) < _MOST and re.fullmatch(r"\d[A-Za-z0-9.!+_]*", version):
            self._built.setdefault(plain, version)

    def _keep(self, name: str, version: str) -> None:
        plain = _plain(name)
        local = "+" in version or ".dev" in version or len(self._found) >= _MOST
        if "+" in version or ".dev" in version:
            self._note_built(plain, version)
        if local or self._found.setdefault(plain, version) != version:
            self._unclear.add(plain)


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
