"""Packages that a change adds or moves: names that deceive, indexes that change, checks that are lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from posixpath import dirname, join

from regreen.codebase.declared import declared, is_manifest
from regreen.codebase.dependency import Declared, Dependency
from regreen.codebase.dependency_concerns import Concern, concerns, lock_mismatch
from regreen.codebase.diff import FileChange
from regreen.codebase.package_answers import Answers, to_ask
from regreen.codebase.packages import Ecosystem, normal
from regreen.models import Evidence, Skipped, Unread
from regreen.reviewers.context import Claim, Report, ReviewContext
from regreen.reviewers.package_index import ask, has_own_index, told

_LOCKS = {
    "pyproject.toml": ("uv.lock", "poetry.lock", "pdm.lock"),
    "package.json": ("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml"),
    "go.mod": ("go.sum",),
    "cargo.toml": ("Cargo.lock",),
}
_TITLES = {
    "look-alike": "The package's name deceives",
    "unknown": "An unknown package",
    "invalid-name": "No package name",
    "index-changed": "Packages come from another index",
    "not-from-an-index": "The package does not come from an index",
    "hash-lost": "The package is no longer checked",
    "install-hook": "Code runs on installation",
    "lock-mismatch": "The lock file is behind",
    "not-locked": "The lock file is behind",
    "unreadable": "The manifest cannot be read",
    "no-such-version": "There is no such version",
    "yanked": "A withdrawn version",
    "deprecated": "Its authors advise against it",
    "hash-changed": "The same version with another content",
    "other-archive": "The archive is another package's",
}


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Compares manifests and lock files before and after, and asks the indexes about what is new in them."""

    name: str = "dependencies"

    def run(self, context: ReviewContext) -> Report:
        """Report what the changed manifests bring."""
        files = [f for f in context.change.files if f.status != "deleted" and is_manifest(f.path)]
        claims: list[Claim] = []
        unread: list[Unread] = []
        changed: list[_Changed] = []
        for file in files:
            after = context.after(file.path)
            if after is None:
                unread.append(Unread(file.path, "manifest not readable"))
                continue
            before = context.before(file.old_path) if file.status != "added" else None
            one = _Changed(file, declared(file.old_path, before or ""), declared(file.path, after))
            changed.append(one)
        answers, unasked = ask(context, _asked(changed))
        for one in changed:
            file = one.file
            before = context.before(file.old_path) if file.status != "added" else None
            after = context.after(file.path) or ""
            exists = partial(_exists, answers)
            found = list(concerns(file.path, before, after, exists))
            found += _behind(context, file, before, after)
            found += _told(context, one, answers)
            claims += [_claim(file, one) for one in found]
        return Report(
            tuple(claims),
            read=f"dependencies in {len(files)} manifests" if files else "",
            unread=tuple(unread),
            skipped=(Skipped("package index", unasked),) if unasked else (),
        )


@dataclass(frozen=True, slots=True)
class _Changed:
    """A manifest on both sides."""

    file: FileChange
    before: Declared
    after: Declared


def _asked(changed: Sequence[_Changed]) -> list[Dependency]:
    """What the indexes are asked about: what somebody chose first, then what a lock file brings."""
    ordered = sorted(changed, key=lambda one: one.after.is_lock)
    return [package for one in ordered for package in to_ask(one.before, one.after)]


def _exists(answers: Answers, ecosystem: Ecosystem, name: str) -> bool | None:
    """Existing is worth knowing; what is missing is told apart, with what speaks against it."""
    answer = answers.get((ecosystem, normal(ecosystem, name)))
    return True if answer is not None and answer.there else None


def _told(context: ReviewContext, one: _Changed, answers: Answers) -> list[Concern]:
    if not answers:
        return []
    known = {(d.ecosystem, normal(d.ecosystem, d.name)) for d in one.before.dependencies}
    own = has_own_index(context, one.before, one.after)
    return [
        concern
        for package in to_ask(one.before, one.after)
        for concern in told(
            package,
            answers,
            is_lock=one.after.is_lock,
            is_new=(package.ecosystem, normal(package.ecosystem, package.name)) not in known,
            own_index=own,
        )
    ]


def _behind(
    context: ReviewContext, file: FileChange, before: str | None, after: str
) -> Sequence[Concern]:
    """What the lock beside a changed manifest lacks; only for names that this change adds."""
    name = file.path.rpartition("/")[2].lower()
    known = (
        {(one.ecosystem, one.name) for one in declared(file.path, before or "").dependencies}
        if before
        else set()
    )
    for lock in _LOCKS.get(name, ()):
        path = join(dirname(file.path), lock)
        text = context.after(path) if context.git is not None else None
        if text is None:
            continue
        missing = lock_mismatch(declared(file.path, after), declared(path, text), path)
        fresh = {
            one.name
            for one in declared(file.path, after).dependencies
            if (one.ecosystem, one.name) not in known
        }
        return [one for one in missing if one.name in fresh]
    return ()


def _claim(file: FileChange, concern: Concern) -> Claim:
    line = (
        concern.line if file.touches(concern.line, concern.line) else _nearest(file, concern.line)
    )
    return Claim(
        "security",
        f"dependencies/{concern.kind}",
        concern.severity,
        file.path,
        line,
        line,
        title=f"{_TITLES[concern.kind]}: `{concern.name[:80]}`",
        body=concern.detail[0].upper() + concern.detail[1:] + ".",
        confidence=concern.confidence,
        evidence=(
            Evidence(
                "analyzer",
                concern.detail,
                "regreen dependencies",
                head=concern.detail,
                base="not there",
            ),
        ),
        code=f"{concern.kind} {concern.name}",
        anywhere=not file.added_lines,  # a sum that is only removed
    )


def _nearest(file: FileChange, line: int) -> int:
    """The added line closest to where the package stands; a manifest's line is only looked up by its text."""
    return min(file.added_lines, key=lambda one: abs(one - line), default=line)
