"""The files that a setup command depends on, and the Python that a repository requires in its manifests."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Callable, Iterable, Sequence

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from regreen.code.config_loaders import load_toml
from regreen.domain.models import TreeEntry
from regreen.domain.ports import Git
from regreen.packages.setup_command import find_setup_inputs

ReadFile = Callable[[str], bytes | None]


def digest_setup_inputs(setup: str, tree: Sequence[TreeEntry], read: ReadFile | None = None) -> str:
    """A digest of the files that the result of `setup` depends on; "" if it depends on none.

    Args:
        setup: the shell command.
        tree: every file of the tree.
        read: returns a file's content, for following includes; without it, every file that could
            be included counts.
    """
    wanted = find_setup_inputs(setup, {entry.path for entry in tree}, read)
    chosen = [entry for entry in tree if entry.mode != "040000" and wanted.includes(entry.path)]
    if not chosen:
        return ""
    digest = hashlib.sha256()
    for entry in sorted(chosen, key=lambda entry: entry.path):
        digest.update(
            f"{entry.path}\0{entry.mode}\0{entry.sha}\n".encode("utf-8", "surrogateescape")
        )
    return digest.hexdigest()


def choose_python_version(
    git: Git, rev: str, available: Iterable[str], newest: str | None = None
) -> str | None:
    """The Python for a revision, out of `available` ("3.11"); None if the repository requires none.

    A pinned version wins. Else the newest that both the version range and the classifiers name. With only a
    range the newest is a guess that old code rarely survives, so classifiers count first. If none that they name is
    available, the nearest one is chosen: old code breaks more with every later version. `newest` is the newest to
    take where the repository names no version but at most a range.
    """
    usable = sorted(set(available), key=_version_key)
    pinned = _pinned_version(git, rev)
    if pinned in usable:
        return pinned
    allowed, named = read_python_versions(git, rev)
    if allowed is None and not named and newest is None:
        return None
    fitting = [
        version for version in usable if allowed is None or _allows_version(allowed, version)
    ]
    if newest is not None and not named:
        limit = _version_key(newest)
        fitting = [version for version in fitting if _version_key(version) <= limit] or fitting[:1]
    both = [version for version in fitting if version in named]
    if not fitting:
        return None
    if both or not named:
        return (both or fitting)[-1]
    last = max(map(_version_key, named))
    return next((version for version in fitting if _version_key(version) > last), fitting[-1])


def _pinned_version(git: Git, rev: str) -> str | None:
    content = git.show(rev, ".python-version") or b""
    match = re.match(rb"\s*(?:cpython-)?(\d+\.\d+)", content)
    return match[1].decode() if match else None


def read_python_versions(git: Git, rev: str) -> tuple[SpecifierSet | None, frozenset[str]]:
    """The version range and the classifiers, from the first manifest that has them."""
    ranges: list[str] = []
    texts: list[str] = []
    for name in ("pyproject.toml", "setup.cfg", "setup.py"):
        text = (git.show(rev, name) or b"").decode("utf-8", errors="replace")
        texts.append(text)
        ranges.extend(_read_ranges(name, text))
    named = {
        version
        for text in texts
        for version in re.findall(r"Programming Language :: Python :: (\d\.\d+)", text)
    }
    for text in ranges:
        try:
            return SpecifierSet(text), frozenset(named)
        except InvalidSpecifier:
            continue
    return None, frozenset(named)


def _read_ranges(name: str, text: str) -> list[str]:
    if name == "pyproject.toml":
        return _read_toml_ranges(text)
    pattern = (
        r"^python_requires\s*=\s*([^\n]+)"
        if name == "setup.cfg"
        else r"python_requires\s*=\s*[\"']([^\"']+)"
    )
    return [match.strip() for match in re.findall(pattern, text, re.MULTILINE)]


def _read_toml_ranges(text: str) -> list[str]:
    try:
        document = load_toml(text)
    except tomllib.TOMLDecodeError:
        return []
    project = document.get("project")
    if isinstance(project, dict) and isinstance(project.get("requires-python"), str):
        return [project["requires-python"]]
    tool = document.get("tool")
    poetry = tool.get("poetry") if isinstance(tool, dict) else None
    dependencies = poetry.get("dependencies") if isinstance(poetry, dict) else None
    wanted = dependencies.get("python") if isinstance(dependencies, dict) else None
    return [convert_poetry_bounds(wanted)] if isinstance(wanted, str) else []


def convert_poetry_bounds(wanted: str) -> str:
    """Poetry's `^3.8`, `~3.8`, `3.8` and `*` as specifiers of the packaging standard; "" where there is no bound."""
    if "|" in wanted:
        return ""
    return ",".join(filter(None, map(_convert_poetry_bound, wanted.split(","))))


def _convert_poetry_bound(wanted: str) -> str:
    match = re.fullmatch(r"([\^~]?)\s{0,9}(\d++(?>(?:\.\d++)*))(\.\*)?", wanted.strip())
    if match is None:
        return "" if wanted.strip() == "*" else wanted.strip()
    sign, version, rest = match.groups(default="")
    if not sign:
        return f"=={version}{rest}"
    numbers = [int(part) for part in version.split(".")]
    # a caret allows what keeps the first number that is not 0, a tilde what keeps the second one
    telling = (at for at, number in enumerate(numbers) if number)
    last = next(telling, len(numbers) - 1) if sign == "^" else min(1, len(numbers) - 1)
    end = [*numbers[:last], numbers[last] + 1]
    return f">={version},<{'.'.join(map(str, end))}"


def _allows_version(allowed: SpecifierSet, version: str) -> bool:
    """Whether some patch release of `version` is in the range: `>=3.8.1` allows 3.8."""
    return any(
        allowed.contains(f"{version}.{patch}", prereleases=True) for patch in (0, 1, 5, 9, 18, 99)
    )


def _version_key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
