"""Code elsewhere in the repository that bears on a change, as text for a reader."""

from __future__ import annotations

from collections.abc import Sequence

from regreen.codebase.diff import FileChange
from regreen.codebase.graph import Graph
from regreen.codebase.index import build
from regreen.codebase.language import PARSED, language_of
from regreen.codebase.retrieve import Chunk, retrieve
from regreen.codebase.symbols import outline
from regreen.reviewers.context import ReviewContext
from regreen.reviewers.scope import is_test

_WITHOUT_STORE = 1500
"""With nothing kept from earlier, a call graph of more files than this costs more than it is worth."""


def related(context: ReviewContext, files: Sequence[FileChange], budget: int) -> str:
    """Callers and callees of what these files change, then what speaks of the same things; "" where nothing does.

    `budget` is in tokens.
    """
    if context.git is None:
        return ""
    own = {f.path for f in files}
    found = retrieve(
        context.git,
        context.head,
        query=_query(context, files),
        changed=changed_definitions(context, files),
        budget=budget,
        graph=_graph(context),
        skip=lambda p: p in own or language_of(p) == "prose",
    )
    return "\n\n".join(_shown(c) for c in found)


def changed_definitions(
    context: ReviewContext, files: Sequence[FileChange]
) -> list[tuple[str, str]]:
    """Path and dotted name of every function, method and class that the change touches."""
    found: list[tuple[str, str]] = []
    for file in files:
        if language_of(file.path) not in PARSED or is_test(file.path):
            continue
        text = context.after(file.path)
        shape = outline(file.path, text.encode("utf-8", "surrogateescape")) if text else None
        for definition in shape.definitions if shape else ():
            inner = definition.kind in {"function", "method"}
            if inner and file.touches(definition.start, definition.end):
                found.append((file.path, definition.name))
    return found


def _query(context: ReviewContext, files: Sequence[FileChange]) -> str:
    lines = [x.text for f in files for h in f.hunks for x in h.lines if x.kind != " "]
    return "\n".join((context.title, context.title, context.body[:2000], *lines))[:60_000]


def _graph(context: ReviewContext) -> Graph | None:
    assert context.git is not None  # noqa: S101 - `related` has looked
    structured = sum(language_of(e.path) in PARSED for e in context.tree)
    if context.index is None and structured > _WITHOUT_STORE:
        return None
    return Graph(build(context.git, context.head, context.index).outlines)


def _shown(chunk: Chunk) -> str:
    return f"--- {chunk.path} lines {chunk.start}-{chunk.end} ({chunk.why})\n{chunk.text}"
