"""Contracts that a compiler or bundler checks: what a change removes in Go, JavaScript or TypeScript, and who still uses it."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from regreen.code.diff import FileChange
from regreen.code.symbols import read_sources
from regreen.languages.go import GoFile, is_go_file, parse_go_file, read_module_path
from regreen.languages.script import (
    ScriptModule,
    is_script,
    parse_script_module,
    resolve_import,
)
from regreen.reviewers.analyzers.baseline import (
    BrokenUse,
    broken_caller_claim,
    removed_name_claim,
    require_repository,
)
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport
from regreen.secrets.markdown_sanitizer import count_noun


class CallSignature(Protocol):
    """What a function takes, in a language whose compiler counts arguments."""

    @property
    def shown(self) -> str:
        """The function as its author wrote it."""
        ...

    @property
    def line(self) -> int:
        """Where it stands."""
        ...

    def explain_refusal(self, count: int, /) -> str | None:
        """Why a call with this many arguments does not compile."""
        ...


@dataclass(frozen=True)
class ContractChange:
    """What one file's change means to others: names gone (with the base's line), signatures before and after."""

    file: FileChange
    removed: Mapping[str, int] = field(default_factory=dict)
    signatures: Mapping[str, tuple[CallSignature, CallSignature]] = field(default_factory=dict)
    gone: bool = False


@dataclass
class ContractBreaks:
    """The places where each change is felt, by the change's path and the name ("" for the whole module)."""

    broken: dict[tuple[str, str], list[BrokenUse]] = field(default_factory=dict)
    left: dict[tuple[str, str], list[BrokenUse]] = field(default_factory=dict)


def encode_text(text: str) -> bytes:
    """A text of the context as the bytes it was read from."""
    return text.encode("utf-8", "surrogateescape")


def make_claims(wanted: Sequence[ContractChange], found: ContractBreaks) -> Iterator[Claim]:
    """The claims about each change, one for each name."""
    for change in wanted:
        path = change.file.path
        for name, line in change.removed.items():
            if places := found.left.get((path, name)):
                yield removed_name_claim(change.file, name, line, places)
        if places := found.left.get((path, "")):
            line = next(iter(change.file.removed_lines), 1)
            yield removed_name_claim(change.file, "", line, places)
        for name, (old, new) in change.signatures.items():
            if places := found.broken.get((path, name)):
                signatures = (old.shown, new.shown)
                lines = (new.line, new.line)
                yield broken_caller_claim(
                    change.file, name, lines, signatures, places, "does not compile"
                )


# Contracts in Go: names that a change removes from a package, calls that it makes not fit.
#
# Only names of one package, or of an import of this module, that nothing shadows in the file.


class GoContracts:
    """Holds changed Go packages against their own files and the packages that import them."""

    name = "uses of Go packages"

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Report names that are gone and still used, and calls that no longer fit."""
        files = [f for f in context.files if is_go_file(f.path)]
        if not files:
            return ReviewerReport()
        if context.git is None:
            return require_repository(self.name)
        read = f"uses of what changed in {len(files)} Go files"
        changes = [c for f in files if (c := _read_go_change(f, context))]
        if not any(c.removed or c.signatures for c in changes):
            return ReviewerReport(read=read)
        program = _GoProgram.read_head(context)
        wanted = [
            c
            for c in (_without_ambiguous_names(c, program) for c in changes)
            if c.removed or c.signatures
        ]
        found = ContractBreaks()
        for path, file in program.files.items():
            _find_go_breaks(path, file, wanted, program, found)
        return ReviewerReport(claims=tuple(make_claims(wanted, found)), read=read)


@dataclass(frozen=True)
class _GoProgram:
    """Every Go file at the head, and what its folder is called by others."""

    files: dict[str, GoFile]
    rows: dict[str, list[str]]
    module: str

    @classmethod
    def read_head(cls, context: ReviewContext) -> _GoProgram:
        assert context.git is not None  # noqa: S101 - the callers have looked
        files, rows = {}, {}
        for path, data in read_sources(context.git, context.head, is_go_file):
            file = parse_go_file(path, data)
            if file is not None:
                files[path] = file
                rows[path] = data.decode("utf-8", "replace").split("\n")
        return cls(files, rows, read_module_path(context.head_text("go.mod") or ""))

    def files_in_package(self, path: str, package: str) -> list[GoFile]:
        folder = posixpath.dirname(path)
        return [
            f
            for p, f in self.files.items()
            if posixpath.dirname(p) == folder and f.package == package
        ]

    def import_path(self, path: str) -> str:
        """The import path of a file's folder; empty if it is not known."""
        folder = posixpath.dirname(path)
        return posixpath.join(self.module, folder) if self.module else ""


def _read_go_change(file: FileChange, context: ReviewContext) -> ContractChange | None:
    if file.status in {"added", "copied"}:
        return None
    texts = (context.base_text(file.old_path), context.head_text(file.path))
    old = parse_go_file(file.old_path, encode_text(texts[0])) if texts[0] is not None else None
    if old is None or not old.sure:
        return None
    if file.status == "deleted":
        return ContractChange(file, removed=dict(old.declared))
    new = parse_go_file(file.path, encode_text(texts[1])) if texts[1] is not None else None
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
        if n in new.functions
        and (was.count, was.variadic) != (new.functions[n].count, new.functions[n].variadic)
    }
    return ContractChange(file, removed, signatures)


_NOT_MISSED = frozenset({"main", "init", "min", "max", "clear", "any"})
"""What nothing calls, and what newer versions of Go declare themselves."""


def _without_ambiguous_names(change: ContractChange, program: _GoProgram) -> ContractChange:
    """Without the names that the package still declares elsewhere, or declares twice."""
    folder = posixpath.dirname(change.file.path)
    times: Counter[str] = Counter()
    for path, file in program.files.items():
        if posixpath.dirname(path) == folder:
            times.update(file.declared.keys())
    return ContractChange(
        change.file,
        {n: line for n, line in change.removed.items() if not times[n] and n not in _NOT_MISSED},
        {n: s for n, s in change.signatures.items() if times[n] == 1},
    )


def _find_go_breaks(
    path: str,
    file: GoFile,
    wanted: Sequence[ContractChange],
    program: _GoProgram,
    found: ContractBreaks,
) -> None:
    for change in wanted:
        target = change.file.path
        same = posixpath.dirname(path) == posixpath.dirname(target)
        aliases = {n for n, source in file.imports.items() if source == program.import_path(target)}
        if "." in file.imports or not (same or aliases):
            continue
        packages = {f.package for f in program.files_in_package(target, file.package)}
        for use in file.uses:
            mine = (
                use.package == ""
                and same
                and file.package in packages
                and not file.package.endswith("_test")
            )
            if not mine and use.package not in aliases:
                continue
            code = program.rows[path][use.line - 1].strip()
            if use.name in change.removed:
                place = BrokenUse(path, use.line, code)
                found.left.setdefault((target, use.name), []).append(place)
            signature = change.signatures.get(use.name)
            given = use.given
            if signature is None or given is None or signature[0].explain_refusal(given):
                continue
            if why := signature[1].explain_refusal(given):
                place = BrokenUse(path, use.line, code, why)
                found.broken.setdefault((target, use.name), []).append(place)


# Contracts in JavaScript and TypeScript: exports and modules that a change removes, calls that it makes not fit.
#
# Only relative imports of ES modules, and numbers of arguments where types are declared.


class ScriptContracts:
    """Holds changed JavaScript and TypeScript modules against the modules that import them."""

    name = "imports of JavaScript and TypeScript"

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Report exports and modules that are gone and still imported, and calls that no longer fit."""
        files = [f for f in context.files if is_script(f.path) or is_script(f.old_path)]
        if not files:
            return ReviewerReport()
        if context.git is None:
            return require_repository(self.name)
        changes = [c for f in files if (c := _read_script_change(f, context))]
        read = f"importers of {count_noun(len(files), 'JavaScript and TypeScript file')}"
        wanted = [c for c in changes if c.removed or c.gone or c.signatures]
        if not wanted:
            return ReviewerReport(read=read)
        found = ContractBreaks()
        paths = {e.path for e in context.head_tree}
        before = {e.path for e in context.base_tree}
        changed = {c.file.path for c in wanted}
        words = [_compile_import(c.file.old_path) for c in wanted]
        for path, data in read_sources(context.git, context.head, is_script):
            if path in changed or any(s in data and named.search(data) for s, named in words):
                module = parse_script_module(path, data)
                if module is not None:
                    _find_script_breaks(path, module, data, wanted, (paths, before), found)
        return ReviewerReport(claims=tuple(make_claims(wanted, found)), read=read)


def _compile_import(path: str) -> tuple[bytes, re.Pattern[bytes]]:
    """A word and a pattern that each importer of this file holds; an index has no pattern, since `.` and `..` mean it too."""
    stem = _path_stem(path).encode()
    is_index = posixpath.basename(path).startswith("index.")
    end = rb"(?:[.?/][^'\"\n]{0,200})?['\"]"
    return stem, re.compile(rb"" if is_index else rb"[/'\"]" + re.escape(stem) + end)


def _path_stem(path: str) -> str:
    name = posixpath.basename(path).split(".")[0]
    return posixpath.basename(posixpath.dirname(path)) if name == "index" else name


def _read_script_change(file: FileChange, context: ReviewContext) -> ContractChange | None:
    text = context.base_text(file.old_path) if file.status not in {"added", "copied"} else None
    old = parse_script_module(file.old_path, encode_text(text)) if text is not None else None
    if old is None:
        return None
    if file.status == "deleted" or file.old_path != file.path:
        return ContractChange(file, gone=True)
    after = context.head_text(file.path)
    new = parse_script_module(file.path, encode_text(after)) if after is not None else None
    if new is None or new.open or old.open:
        return None
    removed = {
        n: line
        for n, line in old.exports.items()
        if n not in new.exports and line in file.removed_lines
    }
    signatures = {
        n: (was, new.functions[n])
        for n, was in old.functions.items()
        if n in new.functions
        and (was.least, was.most) != (new.functions[n].least, new.functions[n].most)
    }
    return ContractChange(file, removed, signatures)


def _find_script_breaks(  # noqa: PLR0917
    path: str,
    module: ScriptModule,
    data: bytes,
    wanted: Sequence[ContractChange],
    trees: tuple[set[str], set[str]],
    found: ContractBreaks,
) -> None:
    rows = data.decode("utf-8", "replace").split("\n")
    here, before = trees
    for change in wanted:
        target = change.file.old_path
        names: dict[str, str] = {}
        for imported in module.imports:
            now = resolve_import(imported.source, path, here)
            if (
                change.gone
                and now is None
                and resolve_import(imported.source, path, before) == target
            ):
                place = BrokenUse(path, imported.line, rows[imported.line - 1].strip())
                found.left.setdefault((change.file.path, ""), []).append(place)
            if now != target or change.gone:
                continue
            if imported.name in change.removed:
                place = BrokenUse(path, imported.line, rows[imported.line - 1].strip())
                found.left.setdefault((change.file.path, imported.name), []).append(place)
            if imported.local and module.bound[imported.local] == 1:
                names[imported.local] = imported.name
        if path == target:
            names |= {n: n for n in change.signatures if module.bound[n] == 1}
        if not module.typed:
            continue  # plain JavaScript takes any number of arguments
        for call in module.calls:
            signature = change.signatures.get(names.get(call.name, ""))
            if (
                signature
                and not signature[0].explain_refusal(call.count)
                and (why := signature[1].explain_refusal(call.count))
            ):
                place = BrokenUse(path, call.line, rows[call.line - 1].strip(), why)
                found.broken.setdefault((change.file.path, names[call.name]), []).append(place)
