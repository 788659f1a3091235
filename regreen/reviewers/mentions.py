"""Where other files name what a change touches: code that uses its constants, documents that promise what it does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from regreen.codebase.diff import FileChange
from regreen.codebase.graph import Graph
from regreen.codebase.language import language_of
from regreen.codebase.symbols import outline
from regreen.reviewers.context import ReviewContext
from regreen.reviewers.scope import is_test

_MOST_FILES = 40
_LARGEST_DOCUMENT = 200_000
_MOST_USES = 4
_MOST_PASSAGES = 5
_MOST_NAMES = 40
_OFTEN = 6
_SHORTEST = 4
_WIDEST = 300

_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]{2,40}")
_SETTING = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]{2,60}\b")
_QUOTED = re.compile(r"""['"]([A-Za-z][\w.-]{3,40})['"]""")
_LISTED = re.compile(r"""\s*['"]?\w+['"]?,?\s*""")
"""A name in a list of imports, or of what a module offers."""
_HISTORY = re.compile(r"(?i)^(?:chang|hist|news|release|licen|notice|author|contrib)")


def users_of_constants(
    context: ReviewContext, graph: Graph, file: FileChange, own: set[str]
) -> Iterator[str]:
    """Lines elsewhere that use a name which this file binds on a changed line, outside of functions and classes."""
    shape = graph.outlines.get(file.path)
    constants = {
        d.short
        for d in (shape.definitions if shape else ())
        if d.kind == "constant" and "." not in d.name and file.touches(d.start, d.end)
    }
    if not constants:
        return
    named = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(constants)[:_MOST_NAMES]))})\b")
    count = 0
    for path, other in graph.outlines.items():
        if path in own or is_test(path) or not graph.tied(path, file.path):
            continue
        imports = set(other.imports)
        for number, row in enumerate(_rows(context, path), 1):
            passed_on = row.strip() in imports or _LISTED.fullmatch(row)
            if named.search(row) and not passed_on and count < _MOST_USES:
                count += 1
                yield f"--- {path} line {number} (uses what {file.path} changes)\n{row[:_WIDEST]}"


def documents(context: ReviewContext, files: Sequence[FileChange]) -> Iterator[str]:
    """Passages of the repository's documents that name an option, a setting or a function which the change touches.

    What a document says again and again tells nothing; what it says once or twice is a promise.
    """
    if context.git is None:
        return
    names = _names(context, files)
    if not names:
        return
    named = re.compile("|".join(rf"(?<![\w-]){re.escape(n)}(?![\w-])" for n in names[:_MOST_NAMES]))
    texts = {path: _rows(context, path) for path in _documents(context)}
    hits = [
        (path, n, set(found))
        for path, rows in texts.items()
        for n, row in enumerate(rows)
        if (found := named.findall(row[:_WIDEST]))
    ]
    often = Counter(name for _, _, there in hits for name in there)
    told: dict[str, int] = {}
    count = 0
    for path, n, names_there in hits:
        everyday = all(often[name] > _OFTEN for name in names_there)
        if everyday or n < told.get(path, 0) or count >= _MOST_PASSAGES:
            continue
        count += 1
        rows = texts[path]
        told[path] = min(len(rows), n + 3)
        text = "\n".join(row[:_WIDEST] for row in rows[max(0, n - 1) : told[path]]).strip("\n")
        yield f"--- {path} line {n + 1} (a document that names it)\n{text}"


def _names(context: ReviewContext, files: Sequence[FileChange]) -> list[str]:
    """What users know a change by: options, settings, quoted names, public functions; the most telling first."""
    lines = [
        x.text[:_WIDEST]
        for f in files
        if not is_test(f.path)
        for h in f.hunks
        for x in h.lines
        if x.kind != " "
    ]
    text = "\n".join(lines)
    found = [*_OPTION.findall(text), *_SETTING.findall(text), *_defined(context, files)]
    found += [q for q in _QUOTED.findall(text) if re.search(r"[_.-]|[a-z][A-Z]", q)]
    return list(dict.fromkeys(n for n in found if len(n) > _SHORTEST))


def _defined(context: ReviewContext, files: Sequence[FileChange]) -> Iterator[str]:
    """Public functions and classes that the change touches, by names that are no everyday words."""
    for file in files:
        text = None if is_test(file.path) else context.after(file.path)
        shape = outline(file.path, text.encode("utf-8", "surrogateescape")) if text else None
        for d in shape.definitions if shape else ():
            telling = "_" in d.short.strip("_") or d.short != d.short.lower()
            # a method's change is no change of all that its class promises
            end = d.start if d.kind == "class" else d.end
            if telling and d.short[0] != "_" and file.touches(d.start, end):
                yield d.short


def _documents(context: ReviewContext) -> list[str]:
    """The documents that say what users may expect, those at the root first."""
    found = [
        e.path
        for e in context.tree
        if language_of(e.path) == "prose"
        and (e.size or 0) <= _LARGEST_DOCUMENT
        and e.mode.startswith("100")
        and not _HISTORY.search(PurePosixPath(e.path).name)
    ]
    return sorted(found, key=lambda p: (p.count("/"), p))[:_MOST_FILES]


def _rows(context: ReviewContext, path: str) -> list[str]:
    text = context.after(path)
    return text.split("\n") if text is not None else []
