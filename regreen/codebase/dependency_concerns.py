"""What a changed manifest or lock file brings that somebody should look at."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from regreen.codebase.declared import declared
from regreen.codebase.dependency import Declared, Dependency, is_usual_index, plain_address
from regreen.codebase.packages import Ecosystem, is_popular, is_valid, look_alike, normal

ConcernKind = Literal[
    "look-alike", "unknown", "invalid-name", "index-changed", "not-from-an-index", "hash-lost", "install-hook",
    "lock-mismatch", "not-locked", "unreadable", "no-such-version", "yanked", "deprecated", "hash-changed", "other-archive",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Concern:
    """One thing about a changed dependency that somebody should look at. `line` is in the file afterwards."""

    kind: ConcernKind
    name: str
    line: int
    detail: str
    severity: Literal["critical", "high", "medium", "low"]
    confidence: float


def concerns(
    path: str,
    before: str | None,
    after: str,
    exists: Callable[[Ecosystem, str], bool | None] | None = None,
) -> tuple[Concern, ...]:
    """What the change of one file brings. `exists` asks an index for a name, where somebody may."""
    old = declared(path, before) if before is not None else Declared()
    new = declared(path, after)
    if new.problem:
        return (
            (Concern("unreadable", path, 1, f"the file is {new.problem}", "medium", 0.6),)
            if not old.problem
            else ()
        )
    known = {_key(one): one for one in old.dependencies}
    found: list[Concern] = []
    for one in new.dependencies:
        found.extend(_of_dependency(one, known.get(_key(one)), new.is_lock, exists))
    found.extend(_of_sums(old, new))
    found.extend(_of_indexes(old, new))
    found.extend(_of_hooks(old, new))
    return tuple(_once(found))


def _once(found: list[Concern]) -> Iterator[Concern]:
    seen: set[tuple[str, str]] = set()
    for one in found:
        if (one.kind, one.name) not in seen:
            seen.add((one.kind, one.name))
            yield one


def _key(one: Dependency) -> tuple[str, str]:
    return one.ecosystem, normal(one.ecosystem, one.name)


def _of_dependency(
    one: Dependency,
    before: Dependency | None,
    is_lock: bool,
    exists: Callable[[Ecosystem, str], bool | None] | None,
) -> Iterator[Concern]:
    if before is None:
        yield from _of_new_name(one, is_lock, exists)
    moved = before is None or (one.source, _place(one)) != (before.source, _place(before))
    if one.source in {"vcs", "url"} and moved:
        secure = not one.where.startswith(("http://", "git://"))
        what = "a version control address" if one.source == "vcs" else "a URL"
        pinned = (
            re.search(r"@[0-9a-f]{40}\b|#[0-9a-f]{40}\b|#sha256=|#commit=", one.where) is not None
            or one.hashed
        )
        risk = 0.82 if not pinned or not secure else 0.5
        yield Concern(
            "not-from-an-index", one.name, one.line,
            f"`{one.name}` comes from {what} ({_shown(one.where)})" + ("" if pinned else ", not pinned to a commit or a hash"),
            "high" if not secure else "medium", risk,
        )  # fmt: skip
    if before is not None and before.hashed and not one.hashed and one.source != "path":
        yield Concern(
            "hash-lost",
            one.name,
            one.line,
            f"`{one.name}` no longer has a hash: what is installed is not checked",
            "high",
            0.85,
        )


def _of_new_name(
    one: Dependency, is_lock: bool, exists: Callable[[Ecosystem, str], bool | None] | None
) -> Iterator[Concern]:
    if one.source != "index":
        return
    if not is_valid(one.ecosystem, one.name):
        yield Concern(
            "invalid-name",
            one.name[:80],
            one.line,
            f"`{one.name[:80]}` is no package name",
            "medium",
            0.7,
        )
        return
    there = exists(one.ecosystem, one.name) if exists is not None else None
    if there is False:
        yield Concern(
            "unknown",
            one.name,
            one.line,
            f"there is no package `{one.name}`: whoever registers it runs code here",
            "critical",
            0.95,
        )
        return
    alike = look_alike(one.ecosystem, one.name)
    if alike is not None:
        sure = {
            "letters that look the same": 0.9,
            "one letter off": 0.84,
            "an affix": 0.72,
            "a lost scope": 0.75,
            "another order": 0.75,
        }[alike.how]
        yield Concern(
            "look-alike", one.name, one.line,
            f"`{one.name}` is not `{alike.of}`, which many projects use ({alike.how})",
            "high", sure - (0.1 if is_lock else 0.0),
        )  # fmt: skip
    elif (
        there is None
        and not is_lock
        and one.ecosystem in {"pypi", "npm"}
        and not is_popular(one.ecosystem, one.name)
    ):
        yield Concern(
            "unknown",
            one.name,
            one.line,
            f"`{one.name}` is not among the popular packages: make sure that it is the one meant",
            "low",
            0.3,
        )


def _place(one: Dependency) -> str:
    parts = urlsplit(one.where)
    return f"{parts.netloc}{parts.path.partition('@')[0]}"


def _shown(where: str) -> str:
    return re.sub(r"//[^/@\s]+@", "//…@", where)[:120]


def _of_sums(old: Declared, new: Declared) -> Iterator[Concern]:
    """The same version with another content, and archives that belong to another package."""
    known = {(_key(one), one.spec): one.sums for one in old.dependencies}
    for one in new.dependencies:
        before = _by_kind(known.get((_key(one), one.spec), frozenset()))
        after = _by_kind(one.sums)
        if any(not before[kind] & after[kind] for kind in before.keys() & after.keys()):
            yield Concern(
                "hash-changed", one.name, one.line,
                f"`{one.name}` {one.spec} has another hash than before: an index never changes what it published",
                "critical", 0.87,
            )  # fmt: skip
    stood = {(name, where) for name, where, _ in old.strange}
    for name, where, line in new.strange:
        if (name, where) not in stood:
            yield Concern(
                "other-archive", name, line,
                f"`{name}` is installed from the archive of another package ({_shown(where)})", "critical", 0.88,
            )  # fmt: skip


def _by_kind(sums: frozenset[str]) -> dict[str, set[str]]:
    """Checksums by how they were made: only the same kind can be compared."""
    found: dict[str, set[str]] = {}
    for one in sums:
        found.setdefault(re.split(r"[-:]", one, maxsplit=1)[0], set()).add(one)
    return found


def _of_indexes(old: Declared, new: Declared) -> Iterator[Concern]:
    known = {address for address, _ in old.indexes}
    for address, line in new.indexes:
        if address in known:
            continue
        extra = address.startswith("extra:")
        scoped = address.startswith("scoped:")
        plain = plain_address(address)
        if is_usual_index(urlsplit(plain).hostname or plain):
            continue
        detail = (
            f"packages now also come from {_shown(plain)}"
            if extra
            else f"packages now come from {_shown(plain)}"
        )
        if extra:
            detail += ": whoever has a name on either index can serve the package"
        severity: Literal["high", "medium"] = "medium" if scoped else "high"
        sure = 0.6 if scoped else 0.85
        yield Concern("index-changed", _shown(plain), line, detail, severity, sure)


def _of_hooks(old: Declared, new: Declared) -> Iterator[Concern]:
    known = {(name, command) for name, command, _ in old.hooks}
    for name, command, line in new.hooks:
        if (name, command) in known:
            continue
        risky = (
            re.search(
                r"curl|wget|urlopen|requests\.|https?://|base64|eval|\bsh\b|bash|powershell|node -e|python -c",
                command,
            )
            is not None
        )
        yield Concern(
            "install-hook",
            name,
            line,
            f"`{name}` runs on every installation: `{command[:120]}`",
            "high" if risky else "low",
            0.86 if risky else 0.5,
        )


def lock_mismatch(manifest: Declared, lock: Declared, lock_path: str) -> tuple[Concern, ...]:
    """Direct dependencies that the lock file beside the manifest does not hold."""
    held = {_key(one) for one in lock.dependencies}
    return tuple(
        Concern(
            "lock-mismatch",
            one.name,
            one.line,
            f"`{one.name}` is not in `{lock_path}`: run the lock again",
            "medium",
            0.82,
        )
        for one in manifest.dependencies
        if one.source == "index" and held and _key(one) not in held
    )
