"""Files that pin versions, taken apart by package and put together again with only some of the packages moved.

Text files (requirements, uv.lock, poetry.lock) keep every byte of what is not moved; JSON files (Pipfile.lock,
package-lock.json) keep their order.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

_PINNED = re.compile(
    r"^(?P<name>[A-Za-z0-9][\w.-]{0,200})(?:\[[^\]\n]{0,200}\])?\s{0,8}==\s{0,8}(?P<version>[^\s;#\\]{1,100})"
)
_REQUIREMENTS = re.compile(
    r"(?:^|/)(?:[\w.-]*requirements[\w.-]*\.(?:txt|lock|in)|constraints[\w.-]*\.txt|requirements/[\w.-]+\.txt)$"
)
_NAME = re.compile(r'^name = "([^"\n]{1,200})"', re.MULTILINE)
_VERSION = re.compile(r'^version = "([^"\n]{1,100})"', re.MULTILINE)
_TABLES = frozenset({"uv.lock", "poetry.lock", "pdm.lock", "pylock.toml"})
_OBJECTS = {
    "Pipfile.lock": ("default", "develop"),
    "package-lock.json": ("packages", "dependencies"),
    "npm-shrinkwrap.json": ("packages", "dependencies"),
}
_MANIFESTS = frozenset(
    {"pyproject.toml", "setup.cfg", "setup.py", "Pipfile", "package.json", "requirements.in"}
)


@dataclass(frozen=True, slots=True)
class Upgrade:
    """One package that changed; `old` or `new` is None where it came or went."""

    name: str
    old: str | None
    new: str | None

    def __str__(self) -> str:
        return f"{self.name} {self.old or 'absent'} -> {self.new or 'removed'}"


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some lines of a text file; `name` is None where they are no package's."""

    name: str | None
    version: str
    text: str


def pins_versions(path: str) -> bool:
    """Whether a file pins versions in a way that can be taken apart."""
    name = PurePosixPath(path).name
    return name in _TABLES or name in _OBJECTS or _REQUIREMENTS.search(path) is not None


def declares(path: str) -> bool:
    """Whether a file declares what such a file pins: the two are changed together."""
    return pins_versions(path) or PurePosixPath(path).name in _MANIFESTS


def upgrades(path: str, old: str, new: str) -> tuple[Upgrade, ...]:
    """What changed between two such files: what came first, then what moved in the new file's order, then what went.

    In that order each step leaves a file that can be installed, as a rule: a package is there before another needs
    it, and goes when none does any more.
    """
    before, after = _versions(path, old), _versions(path, new)
    came = [Upgrade(name, None, version) for name, version in after.items() if name not in before]
    moved = [
        Upgrade(name, before[name], version)
        for name, version in after.items()
        if name in before and before[name] != version
    ]
    went = [Upgrade(name, before[name], None) for name in before if name not in after]
    return (*came, *moved, *went)


def partly(path: str, old: str, new: str, done: int) -> str:
    """The new file with only the first `done` upgrades made."""
    undone = {upgrade.name: upgrade for upgrade in upgrades(path, old, new)[done:]}
    if PurePosixPath(path).name in _OBJECTS:
        return _partly_object(path, old, new, undone)
    blocks: dict[str, list[str]] = {}
    for piece in _pieces(path, old):
        if piece.name is not None:
            blocks.setdefault(piece.name, []).append(piece.text)
    kept: list[str] = []
    put: set[str] = set()
    for piece in _pieces(path, new):
        upgrade = undone.get(piece.name or "")
        if upgrade is None or piece.name is None:
            kept.append(piece.text)
        elif upgrade.old is not None and piece.name not in put:
            kept += blocks[piece.name]
            put.add(piece.name)
    kept += [text for one in undone.values() if one.new is None for text in blocks[one.name]]
    return "\n".join(kept) + "\n"


def _versions(path: str, text: str) -> dict[str, str]:
    name = PurePosixPath(path).name
    if name in _OBJECTS:
        return {
            f"{section}/{key}" if section == "develop" else key: _version_of(value)
            for section, key, value in _members(path, _loaded(text))
        }
    found: dict[str, list[str]] = {}
    for piece in _pieces(path, text):
        if piece.name is not None:
            found.setdefault(piece.name, []).append(piece.version)
    return {key: ", ".join(versions) for key, versions in found.items()}


# --- text ------------------------------------------------------------------------------------------


def _pieces(path: str, text: str) -> list[_Piece]:
    return _tables(text) if PurePosixPath(path).name in _TABLES else _lines(text)


def _lines(text: str) -> list[_Piece]:
    """Lines with what continues them (hashes), under the package's normalised name."""
    pieces: list[_Piece] = []
    is_open = False
    for row in text.splitlines():
        if is_open:
            last = pieces[-1]
            pieces[-1] = _Piece(last.name, last.version, f"{last.text}\n{row}")
        else:
            match = _PINNED.match(row)
            name = re.sub(r"[-_.]+", "-", match["name"]).lower() if match else None
            pieces.append(_Piece(name, match["version"] if match else "", row))
        is_open = row.rstrip().endswith("\\")
    return pieces


def _tables(text: str) -> list[_Piece]:
    """The `[[package]]` tables, each with its sub-tables; what stands before and after them."""
    pieces: list[_Piece] = []
    rows: list[str] = []

    def close() -> None:
        block = "\n".join(rows)
        is_package = bool(rows) and rows[0].startswith(("[[package]]", "[[packages]]"))
        name, version = _NAME.search(block), _VERSION.search(block)
        if is_package and name and version:
            pieces.append(_Piece(name[1], version[1], block))
        elif rows:
            pieces.append(_Piece(None, "", block))

    for row in text.splitlines():
        is_own = row.startswith(("[package.", "[[package.", "[packages.", "[[packages."))
        if row.startswith("[") and not is_own:
            close()
            rows = []
        rows.append(row)
    close()
    return pieces


# --- JSON ------------------------------------------------------------------------------------------


def _loaded(text: str) -> dict[str, Any]:
    """The document; an empty one where it is none."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _members(path: str, document: dict[str, Any]) -> list[tuple[str, str, Any]]:
    """(section, key, value) of each package. npm's older section repeats the newer one, and is read without that only."""
    sections = _OBJECTS[PurePosixPath(path).name]
    found = [section for section in sections if isinstance(document.get(section), dict)]
    if "packages" in found:
        found = ["packages"]
    return [
        (section, key, value)
        for section in found
        for key, value in document[section].items()
        if key and isinstance(value, dict) and _version_of(value)
    ]


def _version_of(value: Any) -> str:
    version = value.get("version") or value.get("ref") or ""
    return str(version).removeprefix("==")


def _partly_object(path: str, old: str, new: str, undone: dict[str, Upgrade]) -> str:
    before, after = _loaded(old), _loaded(new)
    for section in _OBJECTS[PurePosixPath(path).name]:
        had, has = before.get(section), after.get(section)
        if not isinstance(had, dict) or not isinstance(has, dict):
            continue
        for name, upgrade in undone.items():
            prefix = "develop/"
            if name.startswith(prefix) != (section == "develop"):
                continue
            key = name.removeprefix(prefix)
            if section == "dependencies":
                key = key.removeprefix("node_modules/")
            if upgrade.old is None:
                has.pop(key, None)
            elif key in had:
                has[key] = had[key]
    return json.dumps(after, indent=2) + "\n"
