"""What a commit names and keeps elsewhere: the commits of submodules, and the content of Git LFS files.

Both are read from where the user's own clone keeps them, if it does. Nothing is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

POINTER_SIZE = 1024
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:[a-z0-9.-]{1,40} [^\n]{1,200}\n){0,8}?oid sha256:([0-9a-f]{64})\n"
)
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Submodule:
    """Another repository's commit at a path; `git_dir` is where this clone keeps that repository, if it does."""

    path: str
    sha: str
    git_dir: Path | None


def submodules(
    links: Iterable[tuple[str, str]], settings: Mapping[str, str], common: Path | None
) -> tuple[Submodule, ...]:
    """The submodules of a commit.

    Args:
        links: path and commit of each.
        settings: what `.gitmodules` says ("submodule.NAME.path" -> PATH).
        common: the user's git directory; None where there is none.
    """
    names = {
        path: key.removeprefix("submodule.").removesuffix(".path")
        for key, path in settings.items()
        if key.startswith("submodule.") and key.endswith(".path")
    }
    return tuple(Submodule(path, sha, _kept(common, names.get(path))) for path, sha in links)


def _kept(common: Path | None, name: str | None) -> Path | None:
    """Where git keeps a submodule's repository; the name comes from a commit, so it may not lead out."""
    if common is None or not name:
        return None
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts:
        return None
    place = common / "modules" / pure
    return place if (place / "HEAD").is_file() else None


def oid_of(content: bytes) -> str | None:
    """The id of the object that a Git LFS pointer stands for; None where it is no pointer."""
    match = _POINTER.match(content)
    return match[1].decode() if match else None


def large_file(common: Path | None, oid: str) -> Path | None:
    """Where this clone keeps the content of a Git LFS file, if it does."""
    if common is None:
        return None
    place = common / "lfs" / "objects" / oid[:2] / oid[2:4] / oid
    return place if place.is_file() else None


def pointers_filled(common: Path | None) -> Callable[[bytes], bytes | None]:
    """A function that gives the content for a Git LFS pointer; None where it is none, or the content is not here."""

    def fill(content: bytes) -> bytes | None:
        oid = oid_of(content)
        place = large_file(common, oid) if oid else None
        return place.read_bytes() if place else None

    return fill


def told(
    modules: Sequence[Submodule], pointers: Sequence[str], *, is_clone: bool
) -> tuple[str, ...]:
    """What is not here, one sentence each, with what to do about it where somebody can."""
    lines: list[str] = []
    if modules:
        what = f"submodule{'s' * (len(modules) > 1)} {_some([m.path for m in modules])}"
        todo = "; run `git submodule update --init --recursive`" if is_clone else ""
        lines.append(f"{what}: not in this clone{todo}")
    if pointers:
        what = f"{len(pointers)} Git LFS file{'s' * (len(pointers) > 1)} ({_some(pointers)})"
        todo = "; run `git lfs fetch --all`" if is_clone else ""
        lines.append(f"{what}: only pointers are in this clone{todo}")
    return tuple(lines)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
