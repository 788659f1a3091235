"""Splits files that pin versions by package, and rebuilds them with only some of the packages upgraded.

Text files (requirements, uv.lock, poetry.lock) keep every unchanged byte; JSON files (Pipfile.lock,
package-lock.json) keep their order.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from regreen.packages.dependency import parse_json_object

_PINNED_LINE = re.compile(
    r"^(?P<name>[A-Za-z0-9][\w.-]{0,200})(?:\[[^\]\n]{0,200}\])?\s{0,8}==\s{0,8}(?P<version>[^\s;#\\]{1,100})"
)
_REQUIREMENTS_PATH = re.compile(
    r"(?:^|/)(?:[\w.-]{0,200}requirements[\w.-]{0,200}\.(?:txt|lock|in)|constraints[\w.-]{0,200}\.txt|requirements/[\w.-]{1,200}\.txt)$"
)
_NAME_LINE = re.compile(r'^name = "([^"\n]{1,200})"', re.MULTILINE)
_VERSION_LINE = re.compile(r'^version = "([^"\n]{1,100})"', re.MULTILINE)
_TABLE_LOCKS = frozenset({"uv.lock", "poetry.lock", "pdm.lock", "pylock.toml"})
_OBJECT_LOCK_SECTIONS = {
    "Pipfile.lock": ("default", "develop"),
    "package-lock.json": ("packages", "dependencies"),
    "npm-shrinkwrap.json": ("packages", "dependencies"),
}
_MANIFEST_NAMES = frozenset(
    {"pyproject.toml", "setup.cfg", "setup.py", "Pipfile", "package.json", "requirements.in"}
)


@dataclass(frozen=True, slots=True)
class PackageUpgrade:
    """One package that changed; `old` or `new` is None if it was added or removed."""

    name: str
    old: str | None
    new: str | None

    def __str__(self) -> str:
        return f"{self.name} {self.old or 'absent'} -> {self.new or 'removed'}"


@dataclass(frozen=True, slots=True)
class _PackageLines:
    """Some lines of a text file; `name` is None if they belong to no package."""

    name: str | None
    version: str
    text: str


def pins_versions(path: str) -> bool:
    """Whether the file pins versions in a format that can be split."""
    name = PurePosixPath(path).name
    return (
        name in _TABLE_LOCKS
        or name in _OBJECT_LOCK_SECTIONS
        or _REQUIREMENTS_PATH.search(path) is not None
    )


def is_matching_manifest(path: str) -> bool:
    """Whether a file declares what such a file pins: the two change together."""
    return pins_versions(path) or PurePosixPath(path).name in _MANIFEST_NAMES


def find_upgrades(path: str, old: str, new: str) -> tuple[PackageUpgrade, ...]:
    """The differences between two such files: additions, then changes in the new file's order, then removals.

    In that order each step usually leaves an installable file: a package is added before another needs it, and
    removed after its last user.
    """
    before, after = _read_versions_by_entry(path, old), _read_versions_by_entry(path, new)
    came = [
        PackageUpgrade(name, None, version) for name, version in after.items() if name not in before
    ]
    moved = [
        PackageUpgrade(name, before[name], version)
        for name, version in after.items()
        if name in before and before[name] != version
    ]
    went = [PackageUpgrade(name, before[name], None) for name in before if name not in after]
    return (*came, *moved, *went)


def apply_first_upgrades(path: str, old: str, new: str, done: int) -> str:
    """The old file with only the first `done` upgrades applied."""
    undone = {upgrade.name: upgrade for upgrade in find_upgrades(path, old, new)[done:]}
    if PurePosixPath(path).name in _OBJECT_LOCK_SECTIONS:
        return _apply_to_object(path, old, new, undone)
    blocks: dict[str, list[str]] = {}
    for piece in _split_by_package(path, old):
        if piece.name is not None:
            blocks.setdefault(piece.name, []).append(piece.text)
    texts: list[str] = []
    put: set[str] = set()
    for piece in _split_by_package(path, new):
        upgrade = undone.get(piece.name or "")
        if upgrade is None or piece.name is None:
            texts.append(piece.text)
        elif upgrade.old is not None and piece.name not in put:
            texts += blocks[piece.name]
            put.add(piece.name)
    texts += [text for moved in undone.values() if moved.new is None for text in blocks[moved.name]]
    return "\n".join(texts) + "\n"


def _read_versions_by_entry(path: str, text: str) -> dict[str, str]:
    name = PurePosixPath(path).name
    if name in _OBJECT_LOCK_SECTIONS:
        return {
            f"{section}/{key}" if section == "develop" else key: _version_of(value)
            for section, key, value in _list_locked_packages(path, parse_json_object(text))
        }
    known: dict[str, list[str]] = {}
    for piece in _split_by_package(path, text):
        if piece.name is not None:
            known.setdefault(piece.name, []).append(piece.version)
    return {key: ", ".join(versions) for key, versions in known.items()}


# --- text ------------------------------------------------------------------------------------------


def _split_by_package(path: str, text: str) -> list[_PackageLines]:
    return _split_tables(text) if PurePosixPath(path).name in _TABLE_LOCKS else _split_lines(text)


def _split_lines(text: str) -> list[_PackageLines]:
    """Lines with their continuations (hashes), under the package's normalised name."""
    groups: list[list[str]] = []
    is_open = False
    for row in text.splitlines():
        if is_open:
            groups[-1].append(row)
        else:
            groups.append([row])
        is_open = row.rstrip().endswith("\\")
    pieces: list[_PackageLines] = []
    for rows in groups:
        match = _PINNED_LINE.match(rows[0])
        name = re.sub(r"[-_.]+", "-", match["name"]).lower() if match else None
        pieces.append(_PackageLines(name, match["version"] if match else "", "\n".join(rows)))
    return pieces


def _split_tables(text: str) -> list[_PackageLines]:
    """The `[[package]]` tables, each with its sub-tables; the text before and after them."""
    pieces: list[_PackageLines] = []
    rows: list[str] = []

    def close() -> None:
        block = "\n".join(rows)
        is_package = bool(rows) and rows[0].startswith(("[[package]]", "[[packages]]"))
        name, version = _NAME_LINE.search(block), _VERSION_LINE.search(block)
        if is_package and name and version:
            pieces.append(_PackageLines(name[1], version[1], block))
        elif rows:
            pieces.append(_PackageLines(None, "", block))

    for row in text.splitlines():
        is_own = row.startswith(("[package.", "[[package.", "[packages.", "[[packages."))
        if row.startswith("[") and not is_own:
            close()
            rows = []
        rows.append(row)
    close()
    return pieces


# --- JSON ------------------------------------------------------------------------------------------


def _list_locked_packages(path: str, document: dict[str, Any]) -> list[tuple[str, str, Any]]:
    """(section, key, value) of each package. npm's older section repeats the newer one and is only read without it."""
    sections = _OBJECT_LOCK_SECTIONS[PurePosixPath(path).name]
    present = [section for section in sections if isinstance(document.get(section), dict)]
    if "packages" in present:
        present = ["packages"]
    return [
        (section, key, value)
        for section in present
        for key, value in document[section].items()
        if key and isinstance(value, dict) and _version_of(value)
    ]


def _version_of(value: Any) -> str:
    version = value.get("version") or value.get("ref") or ""
    return str(version).removeprefix("==")


def _apply_to_object(path: str, old: str, new: str, undone: dict[str, PackageUpgrade]) -> str:
    before, after = parse_json_object(old), parse_json_object(new)
    for section in _OBJECT_LOCK_SECTIONS[PurePosixPath(path).name]:
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
