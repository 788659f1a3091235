"""Contracts in JavaScript and TypeScript: exports and modules that a change removes, calls that it makes not fit.

Only relative imports of ES modules, and counts of arguments where types are declared; the rest stays unsaid.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from regreen.codebase.diff import FileChange
from regreen.codebase.language import language_of
from regreen.codebase.script_module import LANGUAGES, ScriptModule, resolve, script_module
from regreen.codebase.sources import sources
from regreen.models import Skipped
from regreen.reviewers.compiled import Changed, Found, Place, as_bytes, said
from regreen.reviewers.context import Report, ReviewContext


class ScriptContracts:
    """Holds changed JavaScript and TypeScript modules against the modules that import them."""

    name = "imports of JavaScript and TypeScript"

    def run(self, context: ReviewContext) -> Report:
        """Report exports and modules that are gone and still imported, and calls that no longer fit."""
        files = [f for f in context.files if _is_script(f.path) or _is_script(f.old_path)]
        if not files:
            return Report()
        if context.git is None:
            return Report(skipped=(Skipped(self.name, "needs the repository, not a patch alone"),))
        changes = [c for f in files if (c := _script_change(f, context))]
        read = f"importers of {len(files)} JavaScript and TypeScript files"
        wanted = [c for c in changes if c.removed or c.gone or c.signatures]
        if not wanted:
            return Report(read=read)
        found = Found()
        paths = {e.path for e in context.tree}
        before = {e.path for e in context.base_tree}
        stems = {_stem(c.file.old_path).encode() for c in wanted}
        for path, data in sources(context.git, context.head, _is_script):
            if any(s in data for s in stems) or path in {c.file.path for c in wanted}:
                module = script_module(path, data)
                if module is not None:
                    _script_places(path, module, data, wanted, (paths, before), found)
        return Report(claims=tuple(said(wanted, found)), read=read)


def _is_script(path: str) -> bool:
    return language_of(path) in LANGUAGES


def _stem(path: str) -> str:
    name = posixpath.basename(path).split(".")[0]
    return posixpath.basename(posixpath.dirname(path)) if name == "index" else name


def _script_change(file: FileChange, context: ReviewContext) -> Changed | None:
    text = context.before(file.old_path) if file.status not in {"added", "copied"} else None
    old = script_module(file.old_path, as_bytes(text)) if text is not None else None
    if old is None:
        return None
    if file.status == "deleted" or file.old_path != file.path:
        return Changed(file, gone=True)
    after = context.after(file.path)
    new = script_module(file.path, as_bytes(after)) if after is not None else None
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
        if n in new.functions and (was.least, was.most) != (new.functions[n].least, new.functions[n].most)
    }  # fmt: skip
    return Changed(file, removed, signatures)


def _script_places(  # noqa: PLR0917
    path: str,
    module: ScriptModule,
    data: bytes,
    wanted: Sequence[Changed],
    trees: tuple[set[str], set[str]],
    found: Found,
) -> None:
    rows = data.decode("utf-8", "replace").split("\n")
    here, before = trees
    for change in wanted:
        target = change.file.old_path
        names: dict[str, str] = {}
        for one in module.imports:
            now = resolve(one.source, path, here)
            if change.gone and now is None and resolve(one.source, path, before) == target:
                place = Place(path, one.line, rows[one.line - 1].strip())
                found.left.setdefault((change.file.path, ""), []).append(place)
            if now != target or change.gone:
                continue
            if one.name in change.removed:
                place = Place(path, one.line, rows[one.line - 1].strip())
                found.left.setdefault((change.file.path, one.name), []).append(place)
            if one.local and module.bound[one.local] == 1:
                names[one.local] = one.name
        if path == target:
            names |= {n: n for n in change.signatures if module.bound[n] == 1}
        if language_of(path) == "javascript":
            continue  # plain JavaScript takes any number of arguments
        for call in module.calls:
            signature = change.signatures.get(names.get(call.name, ""))
            if signature and not signature[0].refuses(call.count) and (why := signature[1].refuses(call.count)):  # fmt: skip
                place = Place(path, call.line, rows[call.line - 1].strip(), why)
                found.broken.setdefault((change.file.path, names[call.name]), []).append(place)
