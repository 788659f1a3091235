"""Contracts in Go: names that a change removes from a package, calls that it makes not fit.

Only names of one package, or of an import of this module, that nothing shadows in the file.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from regreen.codebase.diff import FileChange
from regreen.codebase.go_package import GoFile, go_file, module_path
from regreen.codebase.sources import sources
from regreen.models import Skipped
from regreen.reviewers.compiled import Changed, Found, Place, as_bytes, said
from regreen.reviewers.context import Report, ReviewContext


class GoContracts:
    """Holds changed Go packages against their own files and the packages that import them."""

    name = "uses of Go packages"

    def run(self, context: ReviewContext) -> Report:
        """Report names that are gone and still used, and calls that no longer fit."""
        files = [f for f in context.files if f.path.endswith(".go")]
        if not files:
            return Report()
        if context.git is None:
            return Report(skipped=(Skipped(self.name, "needs the repository, not a patch alone"),))
        read = f"uses of what changed in {len(files)} Go files"
        changes = [c for f in files if (c := _go_change(f, context))]
        if not any(c.removed or c.signatures for c in changes):
            return Report(read=read)
        program = _Program.of(context)
        wanted = [
            c for c in (_still_unsure(c, program) for c in changes) if c.removed or c.signatures
        ]
        found = Found()
        for path, file in program.files.items():
            _go_places(path, file, wanted, program, found)
        return Report(claims=tuple(said(wanted, found)), read=read)


@dataclass(frozen=True)
class _Program:
    """Every Go file at the head, and what its folder is called by others."""

    files: dict[str, GoFile]
    rows: dict[str, list[str]]
    module: str

    @classmethod
    def of(cls, context: ReviewContext) -> _Program:
        assert context.git is not None  # noqa: S101 - the callers have looked
        files, rows = {}, {}
        for path, data in sources(context.git, context.head, lambda p: p.endswith(".go")):
            file = go_file(path, data)
            if file is not None:
                files[path] = file
                rows[path] = data.decode("utf-8", "replace").split("\n")
        return cls(files, rows, module_path(context.after("go.mod") or ""))

    def in_package(self, path: str, package: str) -> list[GoFile]:
        folder = posixpath.dirname(path)
        return [
            f
            for p, f in self.files.items()
            if posixpath.dirname(p) == folder and f.package == package
        ]

    def imported_as(self, path: str) -> str:
        """The import path of a file's folder; empty where it cannot be told."""
        folder = posixpath.dirname(path)
        return posixpath.join(self.module, folder) if self.module else ""


def _go_change(file: FileChange, context: ReviewContext) -> Changed | None:
    if file.status in {"added", "copied"}:
        return None
    texts = (context.before(file.old_path), context.after(file.path))
    old = go_file(file.old_path, as_bytes(texts[0])) if texts[0] is not None else None
    if old is None or not old.sure:
        return None
    if file.status == "deleted":
        return Changed(file, removed=dict(old.declared))
    new = go_file(file.path, as_bytes(texts[1])) if texts[1] is not None else None
    if new is None or not new.sure or new.package != old.package:
        return None
    if posixpath.dirname(file.path) != posixpath.dirname(file.old_path):
        return None
    removed = {
        n: line
        for n, line in old.declared.items()
        if n not in new.declared and line in file.removed_lines
    }
    signatures = {
        n: (was, new.functions[n])
        for n, was in old.functions.items()
        if n in new.functions and (was.count, was.variadic) != (new.functions[n].count, new.functions[n].variadic)
    }  # fmt: skip
    return Changed(file, removed, signatures)


def _still_unsure(change: Changed, program: _Program) -> Changed:
    """Without the names that the package still declares elsewhere, or declares twice."""
    folder = posixpath.dirname(change.file.path)
    times: Counter[str] = Counter()
    for path, file in program.files.items():
        if posixpath.dirname(path) == folder:
            times.update(file.declared.keys())
    return Changed(
        change.file,
        {n: line for n, line in change.removed.items() if not times[n] and n not in {"main", "init"}},
        {n: s for n, s in change.signatures.items() if times[n] == 1},
    )  # fmt: skip


def _go_places(
    path: str,
    file: GoFile,
    wanted: Sequence[Changed],
    program: _Program,
    found: Found,
) -> None:
    for change in wanted:
        target = change.file.path
        same = posixpath.dirname(path) == posixpath.dirname(target)
        aliases = {n for n, source in file.imports.items() if source == program.imported_as(target)}
        if "." in file.imports or not (same or aliases):
            continue
        packages = {f.package for f in program.in_package(target, file.package)}
        for use in file.uses:
            mine = use.package == "" and same and file.package in packages and not file.package.endswith("_test")  # fmt: skip
            if not mine and use.package not in aliases:
                continue
            code = program.rows[path][use.line - 1].strip()
            if use.name in change.removed:
                place = Place(path, use.line, code)
                found.left.setdefault((target, use.name), []).append(place)
            signature = change.signatures.get(use.name)
            given = use.given
            if signature is None or given is None or signature[0].refuses(given):
                continue
            if why := signature[1].refuses(given):
                place = Place(path, use.line, code, why)
                found.broken.setdefault((target, use.name), []).append(place)
