"""The code that somebody who tries a claim has to see and the layout of the change does not show."""

from __future__ import annotations

import builtins
import keyword
import re
import sys
from collections.abc import Iterator, Sequence

from regreen.codebase.graph import Graph
from regreen.codebase.symbols import Call, Definition, Outline
from regreen.reviewers.claims import Said
from regreen.reviewers.context import ReviewContext
from regreen.reviewers.related import EVERYDAY, excerpt, within

_BUDGET = 2000
_MOST = 8
_LONGEST = 90
_AMBIGUOUS = 2
_SHOWN = 0.9
_NEAR = 3
_MAKES = ("__init__", "__new__", "constructor", "initialize")

_QUOTED = re.compile(r"`([^`\n]{2,120})`")
_NAME = re.compile(r"(?<![\w.])(?:[A-Za-z_]\w*\.){0,4}[A-Za-z_]\w*")
_TELLING = re.compile(r"_*[A-Za-z0-9]+_\w+|_+[A-Za-z]\w+|[A-Za-z0-9]*[a-z0-9][A-Z]\w*")
"""A name that is no word of a sentence: with an underscore, or with a capital inside."""
_CLASS = re.compile(r"[A-Z][a-z]\w+")
_OWN = re.compile(r"\b(?:self|cls|this)\.([A-Za-z_]\w*)")
_KNOWN = (
    frozenset(dir(builtins)) | frozenset(sys.stdlib_module_names) | frozenset(keyword.kwlist) | EVERYDAY
)  # fmt: skip


def code_for(
    context: ReviewContext, claims: Sequence[Said], shown: str, budget: int = _BUDGET
) -> str:
    """Definitions that the claims rest on and `shown` does not show; "" where there are none.

    First what the lines at fault use themselves, as the file's imports and the class around them tell; then what the
    claims name in backticks or by a name that is no everyday word; then the rest of a long function around the fault.

    Args:
        context: the change.
        claims: what is to be tried.
        shown: what its reader sees anyway.
        budget: tokens for all of it.
    """
    graph = context.graph
    if graph is None:
        return ""
    found = [
        *(x for c in claims for x in _used(context, graph, c)),
        *(x for c in claims for x in _named(graph, c)),
        *(x for c in claims for x in _around(graph, c)),
        *(x for c in claims for x in _classes(graph, c)),
    ]
    seen: dict[tuple[str, int], tuple[str, Definition, str]] = {}
    for path, definition, why in found:
        seen.setdefault((path, definition.start), (path, definition, why))
    pieces = (
        excerpt(context, path, definition, why, _LONGEST)
        for path, definition, why in seen.values()
        if not _is_shown(context, path, definition, shown)
    )
    return "\n\n".join(within(pieces, budget)[:_MOST])


_Found = Iterator[tuple[str, Definition, str]]


def _used(context: ReviewContext, graph: Graph, said: Said) -> _Found:
    """What the line at fault calls or names, and where the attributes that it reads come from; then its neighbours'."""
    path, side, line = said.at
    shape = graph.outlines.get(path)
    text = context.after(path)
    rows = text.split("\n") if text is not None else []
    if shape is None or side == "LEFT" or line > len(rows):
        return
    around = shape.at(line)
    first, last = (around.start, around.end) if around else (1, len(rows))
    # a call, or a condition, often begins above
    for number in (line, *(n for d in range(1, _NEAR + 1) for n in (line - d, line + d))):
        if first <= number <= min(last, len(rows)):
            yield from _on(graph, shape, path, number, rows)


def _on(graph: Graph, shape: Outline, path: str, line: int, rows: Sequence[str]) -> _Found:
    """What one line of code calls, names and reads."""
    why = "the line at fault uses it"
    own = {m[1] for m in _OWN.finditer(rows[line - 1])}
    owner = _owner(shape, line)
    for definition in shape.definitions if owner else ():
        if definition.kind != "constant" and definition.name in {f"{owner}.{n}" for n in own}:
            yield path, definition, why
    made = [d for d in shape.definitions if owner and d.name in {f"{owner}.{n}" for n in _MAKES}]
    for definition in made:
        body = "\n".join(rows[definition.start - 1 : definition.end])
        if any(re.search(rf"\.{re.escape(n)}\b[^=\n]{{0,80}}=(?!=)", body) for n in own):
            yield path, definition, "it makes what the line at fault reads"
    for call in shape.calls:
        if call.line == line and (call.name not in _KNOWN or call.name in own):
            for target, definition in _meant(graph, path, call, owner):
                yield target, definition, why
    for name in _NAME.findall(rows[line - 1]):
        if _TELLING.fullmatch(name.rpartition(".")[2]):
            for target, definition in _resolved(graph, path, name, owner):
                yield target, definition, why


def _meant(graph: Graph, path: str, call: Call, owner: str) -> Iterator[tuple[str, Definition]]:
    """The definitions that a call means: of the same class, else those that the file's imports lead to."""
    found = list(graph.targets(path, call))
    mine = [x for x in found if x[0] == path and x[1].name == f"{owner}.{call.name}"]
    yield from mine or found[:_AMBIGUOUS]


def _named(graph: Graph, said: Said) -> _Found:
    """What a claim's words name: in backticks, or by a name that is no word of a sentence."""
    path, _, line = said.at
    shape = graph.outlines.get(path)
    owner = _owner(shape, line) if shape else ""
    text = said.told
    quoted = [n for q in _QUOTED.findall(text) for n in _NAME.findall(q)]
    telling = [n for n in _NAME.findall(text) if _TELLING.fullmatch(n.rpartition(".")[2])]
    for name in dict.fromkeys((*quoted, *telling)):
        if name.rpartition(".")[2] not in _KNOWN:
            for target, definition in _resolved(graph, path, name, owner):
                yield target, definition, "a claim names it"


def _around(graph: Graph, said: Said) -> _Found:
    """The function that the fault is in: of a long one the change shows only parts."""
    path, side, line = said.at
    shape = graph.outlines.get(path)
    around = shape.at(line) if shape and side == "RIGHT" else None
    if around is not None and around.kind != "class":
        yield path, around, "the fault is in it"


def _classes(graph: Graph, said: Said) -> _Found:
    """Classes that a claim names: any word that begins a sentence could be one, so they come last."""
    path = said.at[0]
    for name in dict.fromkeys(_CLASS.findall(said.told)):
        for target, definition in _resolved(graph, path, name, ""):
            if definition.kind == "class" and name not in _KNOWN:
                yield target, definition, "a claim names it"


def _resolved(graph: Graph, path: str, name: str, owner: str) -> list[tuple[str, Definition]]:
    """The definitions of a name, as seen from a file: as it is dotted, of the same class, of this file, imported.

    Nothing where it could be any of several.
    """
    before, _, short = name.rpartition(".")
    found = graph.named(short)
    near = [x for x in found if graph.tied(path, x[0])]
    of = before.rpartition(".")[2]
    for part in (
        [x for x in near or found if of and f".{x[1].name}".endswith(f".{of}.{short}")],
        [x for x in near if x[0] == path and owner and x[1].name == f"{owner}.{short}"],
        [x for x in near if x[0] == path],
        near,
        found,
    ):
        if part:
            return part if len(part) <= _AMBIGUOUS else []
    return []


def _owner(shape: Outline, line: int) -> str:
    """The class around a line, "" where there is none."""
    around = [d for d in shape.definitions if d.kind == "class" and d.start <= line <= d.end]
    return max(around, key=lambda d: d.start).name if around else ""


def _is_shown(context: ReviewContext, path: str, definition: Definition, shown: str) -> bool:
    """Whether nearly all lines of a definition are shown already."""
    text = context.after(path) or ""
    rows = [x.strip() for x in text.split("\n")[definition.start - 1 : definition.end]]
    rows = [x for x in rows if x]
    return sum(x in shown for x in rows) >= _SHOWN * len(rows)
