"""Risks that a changed manifest or lock file adds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from regreen.packages.dependency import DeclaredPackages, Dependency, is_usual_index, plain_address
from regreen.packages.manifests_and_locks import UNREAD_REASONS, read_declared
from regreen.packages.popular_names import (
    Ecosystem,
    find_confusable_package,
    is_popular,
    is_valid_package_name,
    normalise_name,
)

ConcernKind = Literal[
    "look-alike",
    "unknown",
    "invalid-name",
    "index-changed",
    "not-from-an-index",
    "hash-lost",
    "install-hook",
    "lock-mismatch",
    "not-locked",
    "unreadable",
    "no-such-version",
    "yanked",
    "deprecated",
    "hash-changed",
    "other-archive",
]
Severity = Literal["critical", "high", "medium", "low"]
_LOOK_ALIKE_CONFIDENCE = {
    "letters that look the same": 0.9,
    "one letter off": 0.84,
    "an affix": 0.72,
    "a lost scope": 0.75,
    "another order": 0.75,
}
_PINNED_ADDRESS = re.compile(r"@[0-9a-f]{40}\b|#[0-9a-f]{40}\b|#sha256=|#commit=")
_RISKY_COMMAND = re.compile(
    r"curl|wget|urlopen|requests\.|https?://|base64|eval|\bsh\b|bash|powershell|node -e|python -c"
)


@dataclass(frozen=True, slots=True)
class Concern:
    """One risk of a changed dependency. `line` is in the new file."""

    kind: ConcernKind
    name: str
    line: int
    detail: str
    severity: Severity
    confidence: float


def find_concerns(
    path: str,
    before: str | None,
    after: str,
    is_published: Callable[[Ecosystem, str], bool] | None = None,
) -> tuple[Concern, ...]:
    """The risks in the change of one file. `is_published` says whether an index confirmed a name."""
    old = read_declared(path, before) if before is not None else DeclaredPackages()
    new = read_declared(path, after)
    known = {_package_key(dependency): dependency for dependency in old.dependencies}
    concerns: list[Concern] = []
    if new.problem and not old.problem:
        concerns.append(Concern("unreadable", path, 1, f"the file is {new.problem}", "medium", 0.6))
    if new.problem not in {"", UNREAD_REASONS[1]}:
        return tuple(concerns)
    for dependency in new.dependencies:
        before_change = known.get(_package_key(dependency))
        concerns.extend(_dependency_concerns(dependency, before_change, new.is_lock, is_published))
    concerns.extend(_checksum_concerns(old, new))
    concerns.extend(_index_concerns(old, new))
    concerns.extend(_new_hook_concerns(old, new))
    unique: dict[tuple[str, str], Concern] = {}
    for concern in concerns:
        unique.setdefault((concern.kind, concern.name), concern)
    return tuple(unique.values())


def _make_concern(
    package: Dependency, kind: ConcernKind, detail: str, severity: Severity, confidence: float
) -> Concern:
    return Concern(kind, package.name, package.line, detail, severity, confidence)


def _package_key(package: Dependency) -> tuple[str, str]:
    return package.ecosystem, normalise_name(package.ecosystem, package.name)


def _dependency_concerns(
    package: Dependency,
    before: Dependency | None,
    is_lock: bool,
    is_published: Callable[[Ecosystem, str], bool] | None,
) -> Iterator[Concern]:
    if before is None:
        yield from _new_name_concerns(package, is_lock, is_published)
    moved = before is None or (package.source, _source_place(package)) != (
        before.source,
        _source_place(before),
    )
    if package.source in {"vcs", "url"} and moved:
        secure = not package.where.startswith(("http://", "git://"))
        origin = "a version control address" if package.source == "vcs" else "a URL"
        pinned = package.hashed or bool(_PINNED_ADDRESS.search(package.where))
        risk = 0.82 if not pinned or not secure else 0.5
        detail = f"`{package.name}` comes from {origin} ({_displayed_address(package.where)})"
        detail += "" if pinned else ", not pinned to a commit or a hash"
        severity: Severity = "medium" if secure else "high"
        yield _make_concern(package, "not-from-an-index", detail, severity, risk)
    if before is not None and before.hashed and not package.hashed and package.source != "path":
        detail = f"`{package.name}` no longer has a hash: what is installed is not checked"
        yield _make_concern(package, "hash-lost", detail, "high", 0.85)


def _new_name_concerns(
    package: Dependency, is_lock: bool, is_published: Callable[[Ecosystem, str], bool] | None
) -> Iterator[Concern]:
    if package.source != "index":
        return
    if not is_valid_package_name(package.ecosystem, package.name):
        short = package.name[:80]
        what = f"`{short}` is no package name"
        yield Concern("invalid-name", short, package.line, what, "medium", 0.7)
        return
    is_confirmed = is_published is not None and is_published(package.ecosystem, package.name)
    similar = find_confusable_package(package.ecosystem, package.name)
    if similar is not None:
        # A lock file names what other packages depend on: nobody has mistyped it here.
        confidence = _LOOK_ALIKE_CONFIDENCE[similar.how] - (0.2 if is_lock else 0.0)
        what = f"`{package.name}` is not `{similar.of}`, which many projects use ({similar.how})"
        yield _make_concern(package, "look-alike", what, "high", confidence)
    elif (
        not is_confirmed
        and not is_lock
        and package.ecosystem in {"pypi", "npm"}
        and not is_popular(package.ecosystem, package.name)
    ):
        what = f"`{package.name}` is not among the popular packages: make sure that it is the one meant"
        yield _make_concern(package, "unknown", what, "low", 0.3)


def _source_place(package: Dependency) -> str:
    parts = urlsplit(package.where)
    return f"{parts.netloc}{parts.path.partition('@')[0]}"


def _displayed_address(where: str) -> str:
    return re.sub(r"//[^/@\s]+@", "//…@", where)[:120]


def _checksum_concerns(old: DeclaredPackages, new: DeclaredPackages) -> Iterator[Concern]:
    """The same version with other content, and archives that belong to another package."""
    known = {(_package_key(package), package.spec): package.sums for package in old.dependencies}
    for package in new.dependencies:
        before = _checksums_by_kind(known.get((_package_key(package), package.spec), frozenset()))
        after = _checksums_by_kind(package.sums)
        if any(not before[kind] & after[kind] for kind in before.keys() & after.keys()):
            what = f"`{package.name}` {package.spec} has another hash than before: an index never changes what it published"
            yield _make_concern(package, "hash-changed", what, "critical", 0.87)
    stood = {(name, where) for name, where, _ in old.strange}
    for name, where, line in new.strange:
        if (name, where) not in stood:
            what = f"`{name}` is installed from the archive of another package ({_displayed_address(where)})"
            yield Concern("other-archive", name, line, what, "critical", 0.88)


def _checksums_by_kind(sums: frozenset[str]) -> dict[str, set[str]]:
    """Checksums by algorithm: only checksums of the same kind can be compared."""
    kinds: dict[str, set[str]] = {}
    for checksum in sums:
        kinds.setdefault(re.split(r"[-:]", checksum, maxsplit=1)[0], set()).add(checksum)
    return kinds


def _index_concerns(old: DeclaredPackages, new: DeclaredPackages) -> Iterator[Concern]:
    known = {address for address, _ in old.indexes}
    for address, line in new.indexes:
        if address in known:
            continue
        plain = plain_address(address)
        if is_usual_index(urlsplit(plain).hostname or plain):
            continue
        place = _displayed_address(plain)
        detail = f"packages now come from {place}"
        if address.startswith("extra:"):
            detail = f"packages now also come from {place}: whoever has a name on either index can serve the package"
        if address.startswith("scoped:"):
            yield Concern("index-changed", place, line, detail, "medium", 0.6)
        else:
            yield Concern("index-changed", place, line, detail, "high", 0.85)


def _new_hook_concerns(old: DeclaredPackages, new: DeclaredPackages) -> Iterator[Concern]:
    known = {(name, command) for name, command, _ in old.hooks}
    for name, command, line in new.hooks:
        if (name, command) in known:
            continue
        detail = f"`{name}` runs on every installation: `{command[:120]}`"
        if _RISKY_COMMAND.search(command):
            yield Concern("install-hook", name, line, detail, "high", 0.86)
        else:
            yield Concern("install-hook", name, line, detail, "low", 0.5)


def find_lock_mismatch(
    manifest: DeclaredPackages, lock: DeclaredPackages, lock_path: str
) -> tuple[Concern, ...]:
    """Direct dependencies that are missing in the lock file beside the manifest."""
    locked = {_package_key(package) for package in lock.dependencies}
    return tuple(
        _make_concern(
            package,
            "lock-mismatch",
            f"`{package.name}` is not in `{lock_path}`: run the lock again",
            "medium",
            0.82,
        )
        for package in manifest.dependencies
        if package.source == "index" and locked and _package_key(package) not in locked
    )
