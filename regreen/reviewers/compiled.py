"""Contracts that a compiler or a bundler holds: what a change took away, who still relies on it, how that is said."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from regreen.codebase.diff import FileChange
from regreen.models import Evidence
from regreen.reviewers.context import Claim
from regreen.reviewers.scope import is_test

_SHOWN = 3


class Signature(Protocol):
    """What a function takes, in a language whose compiler counts arguments."""

    @property
    def shown(self) -> str:
        """The function as its author wrote it."""
        ...

    @property
    def line(self) -> int:
        """Where it stands."""
        ...

    def refuses(self, count: int, /) -> str | None:
        """Why a call with this many arguments does not compile."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where the head relies on what the change took away, and why it now fails."""

    path: str
    line: int
    code: str
    why: str = ""


@dataclass(frozen=True)
class Changed:
    """What one file's change means to others: names gone (with the base's line), signatures before and after."""

    file: FileChange
    removed: Mapping[str, int] = field(default_factory=dict)
    signatures: Mapping[str, tuple[Signature, Signature]] = field(default_factory=dict)
    gone: bool = False


@dataclass
class Found:
    """The places where each change is felt, by the change's path and the name ("" for the whole module)."""

    broken: dict[tuple[str, str], list[Place]] = field(default_factory=dict)
    left: dict[tuple[str, str], list[Place]] = field(default_factory=dict)


def as_bytes(text: str) -> bytes:
    """A text of the context as the bytes it was read from."""
    return text.encode("utf-8", "surrogateescape")


def said(wanted: Sequence[Changed], found: Found) -> Iterator[Claim]:
    """What to say of each change: one claim a name."""
    for change in wanted:
        path = change.file.path
        for name, line in change.removed.items():
            if places := found.left.get((path, name)):
                yield _still_used(change.file, name, line, places)
        if places := found.left.get((path, "")):
            line = next(iter(change.file.removed_lines), 1)
            yield _still_used(change.file, "", line, places)
        for name, (old, new) in change.signatures.items():
            if places := found.broken.get((path, name)):
                yield _broken(change.file, name, (old.shown, new.shown, new.line), places)


def _still_used(file: FileChange, name: str, line: int, places: Sequence[Place]) -> Claim:
    places = list({(p.path, p.line): p for p in places}.values())
    first = places[0]
    what = f"`{name}`" if name else f"`{posixpath.basename(file.old_path)}`"
    how = "removed" if name or file.status == "deleted" else "moved away"
    more = f" ({len(places)} places in all)" if len(places) > 1 else ""
    return Claim(
        "correctness",
        "contracts/removed-still-used",
        "high",
        file.path,
        line,
        line,
        title=f"{what} is {how} here and still used in {first.path}",
        body=f"`{first.code[:160]}` in {first.path}:{first.line}{more} no longer finds it.",
        confidence=0.9 if any(not is_test(p.path) for p in places) else 0.85,
        side="LEFT",
        evidence=(Evidence("analyzer", _shown(places), "imports", head="not there", base="there"),),
        symbol=name,
        code=name or file.old_path,
    )


def _broken(
    file: FileChange, name: str, shown: tuple[str, str, int], places: Sequence[Place]
) -> Claim:
    first = places[0]
    callers = f"the call in {first.path}" if len(places) == 1 else f"{len(places)} of its callers"
    return Claim(
        "correctness",
        "contracts/broken-caller",
        "high",
        file.path,
        shown[2],
        shown[2],
        title=f"`{name}` no longer accepts {callers}",
        body=f"It was `{shown[0]}` and is now `{shown[1]}`. `{first.code[:160]}` in {first.path}:{first.line} "
        f"does not compile: {first.why}.",
        confidence=0.9 if any(not is_test(p.path) for p in places) else 0.85,
        evidence=(
            Evidence("analyzer", _shown(places), "call graph", head=first.why, base="accepted"),
        ),
        symbol=name,
        code=name,
        anywhere=True,
    )


def _shown(places: Sequence[Place]) -> str:
    return "\n".join(f"{p.path}:{p.line}: {p.code[:200]}" for p in places[:_SHOWN])
