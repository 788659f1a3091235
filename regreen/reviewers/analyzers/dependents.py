"""Unchanged files that a change breaks: new messages of the type checker about them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from regreen.code.diff import FileChange
from regreen.code.paths import is_test
from regreen.code.python_calls import is_module, is_package, module_stem
from regreen.code.symbols import Definition, read_outline, read_sources
from regreen.domain.models import Side
from regreen.languages.python.imports import ModuleMap, imported_files
from regreen.reviewers.analyzers.baseline import Diagnostic, make_analyzer_claim
from regreen.reviewers.context import Claim, ReviewContext

_MAX_DEPENDENTS = 40
_MAX_SHOWN_PLACES = 3
_WORD = re.compile(r"[A-Za-z_]\w*")
_UNKNOWN_ATTRIBUTE = re.compile(r'Cannot access attribute "(\w+)" for class')
_CLASS_CALL = re.compile(r"\b([A-Z]\w{0,100})\(")
_KNOWN_DECORATOR = re.compile(r"@(?:dataclasses\.)?dataclass\b|@(?:typing\.)?(?:final|runtime_checkable)\b|@(?:functools\.)?total_ordering\b")  # fmt: skip
"""Decorators that leave the constructor alone, or that the type checker knows."""
_LAZY_VALUE = re.compile(r"\b(?:Coroutine\w*|(?:Async)?Generator)\b")
_TUPLE_SIZE_MISMATCH = "Tuple size mismatch"


def find_dependents(context: ReviewContext) -> dict[str, str]:
    """Unchanged Python files, with their text, that import a module of which the change edits what was there.

    New definitions break no caller, so nothing is read for them. At most 40 files, tests last.
    """
    edited = {f.path for f in context.files if is_module(f.path) and any(_find_edits(f, context))}
    if context.git is None or not edited:
        return {}
    python = [e.path for e in context.head_tree if is_module(e.path)]
    modules = ModuleMap.from_paths(python)
    found = _find_importers(context, edited, modules)
    packages = {p for p in found if is_package(p)}
    if packages:  # they re-export what they import
        found |= _find_importers(context, packages, modules)
    own = context.change.by_path.keys()
    near = sorted((is_test(p), p) for p in found if p not in own)[:_MAX_DEPENDENTS]
    return {p: found[p] for _, p in near}


def _find_importers(context: ReviewContext, wanted: set[str], modules: ModuleMap) -> dict[str, str]:
    assert context.git is not None  # noqa: S101 - `users` has looked
    stems = {module_stem(p) for p in wanted}
    words = "|".join(re.escape(s) for s in sorted(stems) if s.isidentifier())
    if not words:
        return {}
    line = re.compile(rf"^[ \t]*(?:from|import)\b.*\b(?:{words})\b".encode(), re.MULTILINE)
    return {
        path: data.decode("utf-8", "surrogateescape")
        for path, data in read_sources(context.git, context.head, is_module)
        if path not in wanted
        and line.search(data)
        and wanted & set(imported_files(data, path, modules))
    }


def calls_of_generated_classes(
    context: ReviewContext, hits: Sequence[Diagnostic], texts: Mapping[str, str]
) -> list[Diagnostic]:
    """The hits about calls of classes with a foreign decorator, which may generate the constructor.

    `texts` holds files that are not the change's own.
    """
    called: dict[Diagnostic, set[str]] = {}
    for hit in hits:
        text = texts[hit.path] if hit.path in texts else context.head_text(hit.path) or ""
        rows = text.split("\n")[hit.line - 1 : hit.end_line]
        called[hit] = set(_CLASS_CALL.findall("\n".join(rows)))
    names = {name for found in called.values() for name in found}
    if context.git is None or not names:
        return []
    pattern = rf"^[ \t]*@([^\n]{{1,300}})\n(?:[ \t]*@[^\n]{{1,300}}\n)*?[ \t]*class ({'|'.join(sorted(names))})\b"
    decorated = re.compile(pattern.encode(), re.MULTILINE)
    elsewhere: set[str] = set()
    for _, data in read_sources(context.git, context.head, is_module):
        for match in decorated.finditer(data):
            above = match[0].decode("utf-8", "replace").split("\n")[:-1]
            if any(not _KNOWN_DECORATOR.match(row.strip()) for row in above):
                elsewhere.add(match[2].decode())
    return [hit for hit, found in called.items() if found & elsewhere]


def find_broken_dependents(
    context: ReviewContext,
    head: Iterable[Diagnostic],
    base: Sequence[Diagnostic],
    texts: Mapping[str, str],
) -> list[Claim]:
    """One claim for each changed definition that breaks unchanged files; `texts` are theirs."""
    known = {(h.path, h.line) for h in base}
    edits = [e for f in context.files if is_module(f.path) for e in _find_edits(f, context)]
    blamed: dict[_DefinitionEdit, list[Diagnostic]] = {}
    for hit in head:
        if (hit.path, hit.line) in known or hit.path not in texts:
            continue
        rows = texts[hit.path].split("\n")[hit.line - 1 : hit.end_line]
        named = set(_WORD.findall("\n".join(rows)))
        causes = [e for e in edits if e.name in named and e.explains_error(hit)]
        if causes:
            blamed.setdefault(min(causes, key=lambda e: e.end - e.start), []).append(hit)
    return [_make_claim(edit, hits, texts) for edit, hits in blamed.items()]


@dataclass(frozen=True, slots=True)
class _DefinitionEdit:
    """A definition whose lines the change touches: its span, the line for a comment, the words it lost."""

    path: str
    name: str
    start: int
    end: int
    line: int
    side: Side
    lost: frozenset[str]

    def explains_error(self, hit: Diagnostic) -> bool:
        """Whether this edit certainly causes an error elsewhere, and not a type that is only inferred differently."""
        match hit.rule:
            case "reportAttributeAccessIssue":
                gone = _UNKNOWN_ATTRIBUTE.search(hit.message)
                return gone is not None and (
                    gone[1] in self.lost or _LAZY_VALUE.search(hit.message) is not None
                )
            case "reportIndexIssue" | "reportOperatorIssue":
                return _LAZY_VALUE.search(hit.message) is not None
            case "reportAssignmentType":
                return _TUPLE_SIZE_MISMATCH in hit.message
            case "reportCallIssue":
                return "overload" not in hit.message.lower()
            case _:
                return hit.rule in {"reportAbstractUsage", "reportUnusedCoroutine"}


def _find_edits(file: FileChange, context: ReviewContext) -> Iterator[_DefinitionEdit]:
    before, after = context.base_text(file.old_path), context.head_text(file.path)
    if before is None or after is None:
        return
    old, new = _read_definitions(file.old_path, before), _read_definitions(file.path, after)
    remaining = {d.short_name for d in new}
    removed = {x.old: x.text for h in file.hunks for x in h.lines if x.kind == "-" and x.old}
    for d in old:
        taken = [n for n in removed if d.start <= n <= d.end]
        still = next((n for n in new if n.name == d.name), None)
        added = [n for n in file.added_lines if still and still.start <= n <= still.end]
        if not taken and not added:
            continue
        words = frozenset(w for n in taken for w in _WORD.findall(removed[n])) - remaining
        line, side = (added[0], "RIGHT") if added else (min(taken), "LEFT")
        yield _DefinitionEdit(file.path, d.short_name, d.start, d.end, line, side, words)  # type: ignore[arg-type]


def _read_definitions(path: str, text: str) -> list[Definition]:
    found = read_outline(path, text.encode("utf-8", "surrogateescape")).definitions
    return [d for d in found if d.kind != "constant"]


def _make_claim(
    edit: _DefinitionEdit, hits: Sequence[Diagnostic], texts: Mapping[str, str]
) -> Claim:
    def code(hit: Diagnostic) -> str:
        return texts[hit.path].split("\n")[hit.line - 1].strip()[:160]

    first = min(hits, key=lambda h: (is_test(h.path), h.path, h.line))
    more = f" ({len(hits)} places in all)" if len(hits) > 1 else ""
    why = " ".join(first.message.split("\n", maxsplit=1)[0].split()).rstrip(".").replace('"', "`")
    shown = "\n".join(f"{h.path}:{h.line}: {code(h)}" for h in hits[:_MAX_SHOWN_PLACES])
    return make_analyzer_claim(
        "contracts/broken-user",
        "high",
        edit.path,
        (edit.line, edit.line),
        side=edit.side,
        title=f"This change of `{edit.name}` breaks {first.path}, which it leaves alone",
        body=f"`{code(first)}` in {first.path}:{first.line}{more} no longer fits: {why}.",
        confidence=0.82 if all(is_test(h.path) for h in hits) else 0.88,
        excerpt=shown,
        source=f"basedpyright ({first.rule})",
        head=why,
        base="not reported",
        symbol=edit.name,
        code=edit.name,
        anywhere=True,
    )
