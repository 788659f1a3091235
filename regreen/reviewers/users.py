"""Files that a change leaves alone and breaks: what the type checker says of them now and did not say before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from regreen.codebase.diff import FileChange
from regreen.codebase.python_uses import Modules, imported
from regreen.codebase.sources import sources
from regreen.codebase.symbols import Definition, outline
from regreen.models import Evidence, Side
from regreen.reviewers.context import Claim, ReviewContext
from regreen.reviewers.fresh import Hit
from regreen.reviewers.scope import is_test

_MOST = 40
_SHOWN = 3
_WORD = re.compile(r"[A-Za-z_]\w*")
_ATTRIBUTE = re.compile(r'Cannot access attribute "(\w+)" for class')
_MADE = re.compile(r"\b([A-Z]\w{0,100})\(")
_KNOWN = re.compile(r"@(?:dataclasses\.)?dataclass\b|@(?:typing\.)?(?:final|runtime_checkable)\b|@(?:functools\.)?total_ordering\b")  # fmt: skip
"""Decorators that leave the constructor alone, or that the type checker knows."""
_NO_VALUE = re.compile(r"\b(?:Coroutine\w*|(?:Async)?Generator)\b")
_NOT_THE_SIZE = "Tuple size mismatch"


def users(context: ReviewContext) -> dict[str, str]:
    """Unchanged Python files, with their text, that import a module of which the change edits what was there.

    Definitions that are only new break nobody, so nothing is read for them. At most 40 files, tests last.
    """
    edited = {f.path for f in context.files if f.path.endswith(".py") and any(_edits(f, context))}
    if context.git is None or not edited:
        return {}
    python = [e.path for e in context.tree if e.path.endswith(".py")]
    modules = Modules.of(python)
    found = _importing(context, edited, modules)
    packages = {p for p in found if p.endswith("__init__.py")}
    if packages:  # what they import they hand on
        found |= _importing(context, packages, modules)
    own = context.change.by_path.keys()
    near = sorted((is_test(p), p) for p in found if p not in own)[:_MOST]
    return {p: found[p] for _, p in near}


def _importing(context: ReviewContext, wanted: set[str], modules: Modules) -> dict[str, str]:
    assert context.git is not None  # noqa: S101 - `users` has looked
    stems = {p.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2] for p in wanted}
    words = "|".join(re.escape(s) for s in sorted(stems) if s.isidentifier())
    if not words:
        return {}
    line = re.compile(rf"^[ \t]*(?:from|import)\b.*\b(?:{words})\b".encode(), re.MULTILINE)
    return {
        path: data.decode("utf-8", "surrogateescape")
        for path, data in sources(context.git, context.head, lambda p: p.endswith(".py"))
        if path not in wanted and line.search(data) and wanted & set(imported(data, path, modules))
    }


def made_unseen(context: ReviewContext, hits: Sequence[Hit], texts: Mapping[str, str]) -> list[Hit]:
    """Those hits of calls whose class a decorator from elsewhere makes: what its constructor takes is not to be seen.

    `texts` holds files that are not the change's own.
    """
    called: dict[Hit, set[str]] = {}
    for hit in hits:
        text = texts[hit.path] if hit.path in texts else context.after(hit.path) or ""
        rows = text.split("\n")[hit.line - 1 : hit.end_line]
        called[hit] = set(_MADE.findall("\n".join(rows)))
    names = {name for found in called.values() for name in found}
    if context.git is None or not names:
        return []
    pattern = rf"^[ \t]*@([^\n]{{1,300}})\n(?:[ \t]*@[^\n]{{1,300}}\n)*?[ \t]*class ({'|'.join(sorted(names))})\b"
    decorated = re.compile(pattern.encode(), re.MULTILINE)
    elsewhere: set[str] = set()
    for _, data in sources(context.git, context.head, lambda p: p.endswith(".py")):
        for match in decorated.finditer(data):
            above = match[0].decode("utf-8", "replace").split("\n")[:-1]
            if any(not _KNOWN.match(row.strip()) for row in above):
                elsewhere.add(match[2].decode())
    return [hit for hit, found in called.items() if found & elsewhere]


def broken_users(
    context: ReviewContext, head: Iterable[Hit], base: Sequence[Hit], texts: Mapping[str, str]
) -> list[Claim]:
    """One claim for each changed definition that breaks unchanged files; `texts` are theirs."""
    known = {(h.path, h.line) for h in base}
    edits = [e for f in context.files if f.path.endswith(".py") for e in _edits(f, context)]
    blamed: dict[_Edit, list[Hit]] = {}
    for hit in head:
        if (hit.path, hit.line) in known or hit.path not in texts:
            continue
        rows = texts[hit.path].split("\n")[hit.line - 1 : hit.end_line]
        named = set(_WORD.findall("\n".join(rows)))
        causes = [e for e in edits if e.name in named and e.explains(hit)]
        if causes:
            blamed.setdefault(min(causes, key=lambda e: e.end - e.start), []).append(hit)
    return [_claim(edit, hits, texts) for edit, hits in blamed.items()]


@dataclass(frozen=True, slots=True)
class _Edit:
    """A definition whose lines the change touches: its span, where to speak of it, words it lost and kept."""

    path: str
    name: str
    start: int
    end: int
    line: int
    side: Side
    lost: frozenset[str]

    def explains(self, hit: Hit) -> bool:
        """Whether an error elsewhere is sure to come from this edit, and not from what is only inferred anew."""
        match hit.rule:
            case "reportAttributeAccessIssue":
                gone = _ATTRIBUTE.search(hit.message)
                return gone is not None and (
                    gone[1] in self.lost or _NO_VALUE.search(hit.message) is not None
                )
            case "reportIndexIssue" | "reportOperatorIssue":
                return _NO_VALUE.search(hit.message) is not None
            case "reportAssignmentType":
                return _NOT_THE_SIZE in hit.message
            case "reportCallIssue":
                return "overload" not in hit.message.lower()
            case _:
                return hit.rule in {"reportAbstractUsage", "reportUnusedCoroutine"}


def _edits(file: FileChange, context: ReviewContext) -> Iterator[_Edit]:
    before, after = context.before(file.old_path), context.after(file.path)
    if before is None or after is None:
        return
    old, new = _definitions(file.old_path, before), _definitions(file.path, after)
    kept = {d.short for d in new}
    removed = {x.old: x.text for h in file.hunks for x in h.lines if x.kind == "-" and x.old}
    for d in old:
        taken = [n for n in removed if d.start <= n <= d.end]
        still = next((n for n in new if n.name == d.name), None)
        added = [n for n in file.added_lines if still and still.start <= n <= still.end]
        if not taken and not added:
            continue
        words = frozenset(w for n in taken for w in _WORD.findall(removed[n])) - kept
        line, side = (added[0], "RIGHT") if added else (min(taken), "LEFT")
        yield _Edit(file.path, d.short, d.start, d.end, line, side, words)  # type: ignore[arg-type]


def _definitions(path: str, text: str) -> list[Definition]:
    found = outline(path, text.encode("utf-8", "surrogateescape")).definitions
    return [d for d in found if d.kind != "constant"]


def _claim(edit: _Edit, hits: Sequence[Hit], texts: Mapping[str, str]) -> Claim:
    def code(hit: Hit) -> str:
        return texts[hit.path].split("\n")[hit.line - 1].strip()[:160]

    first = min(hits, key=lambda h: (is_test(h.path), h.path, h.line))
    more = f" ({len(hits)} places in all)" if len(hits) > 1 else ""
    why = " ".join(first.message.split("\n", maxsplit=1)[0].split()).rstrip(".").replace('"', "`")
    shown = "\n".join(f"{h.path}:{h.line}: {code(h)}" for h in hits[:_SHOWN])
    return Claim(
        "correctness",
        "contracts/broken-user",
        "high",
        edit.path,
        edit.line,
        edit.line,
        side=edit.side,
        title=f"This change of `{edit.name}` breaks {first.path}, which it leaves alone",
        body=f"`{code(first)}` in {first.path}:{first.line}{more} no longer fits: {why}.",
        confidence=0.82 if all(is_test(h.path) for h in hits) else 0.88,
        evidence=(
            Evidence("analyzer", shown, f"basedpyright ({first.rule})", head=why, base="not reported"),
        ),
        symbol=edit.name,
        code=edit.name,
        anywhere=True,
    )  # fmt: skip
