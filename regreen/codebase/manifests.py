"""What a setup command depends on, and which Python a repository wants: read from its manifest files."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Callable, Iterable, Sequence

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from regreen.codebase.setup_command import needs
from regreen.codebase.setup_needs import Needs
from regreen.models import TreeEntry
from regreen.ports import Git

Read = Callable[[str], bytes | None]


def setup_inputs(setup: str, tree: Sequence[TreeEntry], read: Read | None = None) -> str:
    """A digest of the files that the result of `setup` depends on; "" where it depends on none.

    Args:
        setup: the shell command.
        tree: every file of the tree.
        read: gives a file's content, so that included files are followed; without it, every file that could
            be included counts.
    """
    wanted = needs(setup, {entry.path for entry in tree}, read)
    chosen = [entry for entry in tree if entry.mode != "040000" and _counts(entry.path, wanted)]
    if not chosen:
        return ""
    digest = hashlib.sha256()
    for entry in sorted(chosen, key=lambda entry: entry.path):
        digest.update(
            f"{entry.path}\0{entry.mode}\0{entry.sha}\n".encode("utf-8", "surrogateescape")
        )
    return digest.hexdigest()


def python_for(git: Git, rev: str, available: Iterable[str]) -> str | None:
    """The Python to run a revision with, out of `available` ("3.11"); None where the repository does not say.

    A pinned version wins. Else the newest that both the version range and the classifiers name; where only
    a range is given, the newest is a guess that old code rarely survives, so classifiers count first. Where none
    that they name is to be had, the one nearest to them: old code breaks with every version further on.
    """
    usable = sorted(set(available), key=_number)
    pinned = _pinned(git, rev)
    if pinned in usable:
        return pinned
    allowed, named = python_versions(git, rev)
    if allowed is None and not named:
        return None
    fitting = [version for version in usable if allowed is None or _allows(allowed, version)]
    both = [version for version in fitting if version in named]
    if not fitting:
        return None
    if both or not named:
        return (both or fitting)[-1]
    newest = max(map(_number, named))
    return next((version for version in fitting if _number(version) > newest), fitting[-1])


def _counts(path: str, wanted: Needs) -> bool:
    return (
        wanted.everything
        or path in wanted.paths
        or any(rule.fullmatch(path) for rule in wanted.patterns)
    )


def _pinned(git: Git, rev: str) -> str | None:
    content = git.show(rev, ".python-version") or b""
    match = re.match(rb"\s*(?:cpython-)?(\d+\.\d+)", content)
    return match[1].decode() if match else None


def python_versions(git: Git, rev: str) -> tuple[SpecifierSet | None, frozenset[str]]:
    """The version range and the classifiers, from whichever manifest has them."""
    ranges: list[str] = []
    texts: list[str] = []
    for name in ("pyproject.toml", "setup.cfg", "setup.py"):
        text = (git.show(rev, name) or b"").decode("utf-8", errors="replace")
        texts.append(text)
        ranges.extend(_ranges(name, text))
    named = {
        found
        for text in texts
        for found in re.findall(r"Programming Language :: Python :: (\d\.\d+)", text)
    }
    for text in ranges:
        try:
            return SpecifierSet(text), frozenset(named)
        except InvalidSpecifier:
            continue
    return None, frozenset(named)


def _ranges(name: str, text: str) -> list[str]:
    if name == "pyproject.toml":
        return _toml_ranges(text)
    pattern = (
        r"^python_requires\s*=\s*([^\n]+)"
        if name == "setup.cfg"
        else r"python_requires\s*=\s*[\"']([^\"']+)"
    )
    return [match.strip() for match in re.findall(pattern, text, re.MULTILINE)]


def _toml_ranges(text: str) -> list[str]:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return []
    project = document.get("project")
    if isinstance(project, dict) and isinstance(project.get("requires-python"), str):
        return [project["requires-python"]]
    tool = document.get("tool")
    poetry = tool.get("poetry") if isinstance(tool, dict) else None
    dependencies = poetry.get("dependencies") if isinstance(poetry, dict) else None
    wanted = dependencies.get("python") if isinstance(dependencies, dict) else None
    return [_from_caret(wanted)] if isinstance(wanted, str) else []


def _from_caret(wanted: str) -> str:
    """Poetry's `^3.8` and `~3.8` in the words of the packaging standard."""
    match = re.fullmatch(r"\s*([\^~])\s*(\d+)(?:\.(\d+))?[\d.]*\s*", wanted)
    if match is None:
        return wanted
    sign, major, minor = match[1], int(match[2]), int(match[3] or 0)
    end = f"{major + 1}" if sign == "^" else f"{major}.{minor + 1}"
    return f">={major}.{minor},<{end}"


def _allows(allowed: SpecifierSet, version: str) -> bool:
    """Whether some patch release of `version` is in the range: `>=3.8.1` allows 3.8."""
    return any(
        allowed.contains(f"{version}.{patch}", prereleases=True) for patch in (0, 1, 5, 9, 18, 99)
    )


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
