"""Check 7: what a patch does to the project's dependencies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from regreen.code.file_change import CheckReason, PatchedFile, ReasonLevel
from regreen.code.paths import is_lock_file
from regreen.packages import manifests_and_locks as manifests
from regreen.packages.concerns import Concern, find_concerns
from regreen.packages.manifests_and_locks import is_manifest
from regreen.packages.popular_names import normalise_name

_HASH_ENTRY = re.compile(r"--hash=|sha(?:256|512)[:-]")
_REQUESTED_EXTRA = re.compile(r"([A-Za-z0-9][\w.-]{0,80})\[([\w,. -]{1,80})\]")
_TRUSTED_HOST_OPTION = "--trusted-host"


def check_dependencies(
    files: Sequence[PatchedFile], *, rung: str | None = None
) -> list[CheckReason]:
    """Check 7: no package from elsewhere, no lost hash; a person sees new names; only tools write lock files."""
    return [
        CheckReason("dependencies", f"{file.path}{what}", level)
        for file in files
        for what, level in (
            _check_lock(file, rung)
            if is_lock_file(file.path)
            else _check_manifest(file)
            if is_manifest(file.path)
            else ()
        )
    ]


def _check_lock(file: PatchedFile, rung: str | None) -> Iterator[tuple[str, ReasonLevel]]:
    if rung == "model":
        yield " may only be written by its own tool", "deny"
    elif rung != "recipe":
        yield " changes; regenerate it with its own tool to compare", "needs_human"
    if _loses_hashes(file):
        yield " loses hashes", "deny"


def _check_manifest(file: PatchedFile) -> Iterator[tuple[str, ReasonLevel]]:
    old, new = file.old or "", file.new or ""
    for concern in find_concerns(file.path, file.old, new):
        level = _weigh_concern(concern)
        if level is not None:
            yield f": {concern.detail}", level
    if new.count(_TRUSTED_HOST_OPTION) > old.count(_TRUSTED_HOST_OPTION):
        yield " trusts a host without a certificate", "deny"
    if _loses_hashes(file):
        yield " loses hashes", "deny"
    before = manifests.read_declared_versions(file.path, file.old)
    after = manifests.read_declared_versions(file.path, file.new)
    for name in sorted(after.keys() - before.keys()):
        yield f" adds the dependency {name}", "needs_human"
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            versions = f"from {before[name] or 'any'} to {after[name] or 'any'}"
            yield f" changes {name} {versions}", "needs_human"
    for name, extra in sorted(_find_extras(new) - _find_extras(old)):
        if name in after:
            yield f" asks for {name} with the extra {extra}", "needs_human"
    for name in sorted(before.keys() - after.keys()):
        yield f" drops the dependency {name}", "needs_human"


def _find_extras(text: str) -> set[tuple[str, str]]:
    """The (distribution, extra) pairs that are requested; extras add packages."""
    return {
        (normalise_name("pypi", name), extra.strip())
        for name, extras in _REQUESTED_EXTRA.findall(text)
        for extra in extras.split(",")
        if extra.strip()
    }


def _weigh_concern(concern: Concern) -> ReasonLevel | None:
    """The level of a concern about a patch that was not asked to add packages."""
    match concern.kind:
        case "look-alike" | "invalid-name" | "index-changed" | "not-from-an-index" | "hash-lost":
            return "deny"
        case "no-such-version" | "hash-changed" | "other-archive":
            return "deny"
        case "yanked" | "deprecated":
            return "needs_human"
        case "install-hook":
            return "deny" if concern.severity == "high" else "needs_human"
        case "unreadable" | "lock-mismatch" | "not-locked":
            return "needs_human"
        case "unknown":
            # a name that no index knows; others are reported as new dependencies anyway
            return "deny" if concern.severity == "critical" else None


def _loses_hashes(file: PatchedFile) -> bool:
    """Whether the file had hashes and has none now."""
    return (
        file.new is not None
        and bool(_HASH_ENTRY.search(file.old or ""))
        and not _HASH_ENTRY.search(file.new)
    )
