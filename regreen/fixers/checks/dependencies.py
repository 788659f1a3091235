"""Check 7: what a patch does to the project's dependencies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from regreen.codebase import declared as manifests
from regreen.codebase.declared import is_manifest
from regreen.codebase.dependency_concerns import Concern, concerns
from regreen.codebase.packages import normal
from regreen.fixers.checks.change import FileChange, Level, Reason

LOCKS = (
    "uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock",
    "pnpm-lock.yaml", "bun.lockb", "Cargo.lock", "go.sum", "Gemfile.lock", "composer.lock", "pixi.lock",
)  # fmt: skip
_HASH = re.compile(r"--hash=|sha(?:256|512)[:-]")
_EXTRA = re.compile(r"([A-Za-z0-9][\w.-]{0,80})\[([\w,. -]{1,80})\]")
_UNCHECKED = "--trusted-host"


def dependencies_kept(files: Sequence[FileChange], *, rung: str | None = None) -> list[Reason]:
    """Check 7: nothing from elsewhere, hashes kept, every new name to a person, locks only by their tool."""
    reasons: list[Reason] = []
    for file in files:
        name = file.path.rsplit("/", 1)[-1]
        if name in LOCKS:
            if rung == "model":
                reasons.append(
                    Reason(
                        "dependencies", f"{file.path} may only be written by its own tool", "deny"
                    )
                )
            elif rung != "recipe":
                reasons.append(
                    Reason(
                        "dependencies",
                        f"{file.path} changes; regenerate it with its own tool to compare",
                    )
                )
            if _lost_hashes(file):
                reasons.append(Reason("dependencies", f"{file.path} loses hashes", "deny"))
        elif is_manifest(file.path):
            reasons.extend(_manifest(file))
    return reasons


def _manifest(file: FileChange) -> Iterator[Reason]:
    old, new = file.old or "", file.new or ""
    for concern in concerns(file.path, file.old, new):
        level = _level(concern)
        if level is not None:
            yield Reason("dependencies", f"{file.path}: {concern.detail}", level)
    if new.count(_UNCHECKED) > old.count(_UNCHECKED):
        yield Reason("dependencies", f"{file.path} trusts a host without a certificate", "deny")
    if _lost_hashes(file):
        yield Reason("dependencies", f"{file.path} loses hashes", "deny")
    before, after = declared(file.path, file.old), declared(file.path, file.new)
    for name in sorted(after.keys() - before.keys()):
        yield Reason("dependencies", f"{file.path} adds the dependency {name}")
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            yield Reason(
                "dependencies",
                f"{file.path} changes {name} from {before[name] or 'any'} to {after[name] or 'any'}",
            )
    for name, extra in sorted(_extras(new) - _extras(old)):
        if name in after:
            yield Reason("dependencies", f"{file.path} asks for {name} with the extra {extra}")
    for name in sorted(before.keys() - after.keys()):
        yield Reason("dependencies", f"{file.path} drops the dependency {name}")


def _extras(text: str) -> set[tuple[str, str]]:
    """Extras bring packages of their own: (distribution, extra) wherever one is asked for."""
    return {
        (normal("pypi", name), extra.strip())
        for name, extras in _EXTRA.findall(text)
        for extra in extras.split(",")
        if extra.strip()
    }


def _level(concern: Concern) -> Level | None:
    """How a concern weighs on a patch that nobody asked to bring packages in."""
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
            # a name that is missing from every index; others are told as new dependencies anyway
            return "deny" if concern.severity == "critical" else None


def _lost_hashes(file: FileChange) -> bool:
    """Hashes may change with the versions they belong to, but not go."""
    return (
        file.new is not None and bool(_HASH.search(file.old or "")) and not _HASH.search(file.new)
    )


def declared(path: str, text: str | None) -> dict[str, str]:
    """Dependency name to its version and place, for the manifests that we can read."""
    if text is None:
        return {}
    return {
        normal(one.ecosystem, one.name): f"{one.spec}{one.where}"
        for one in manifests.declared(path, text).dependencies
    }
