"""Code elsewhere in the repository that bears on a change, as text for a reader."""

from __future__ import annotations

import io
import re
from collections import deque
from collections.abc import Iterator, Sequence

from regreen.codebase.diff import FileChange
from regreen.codebase.graph import Graph
from regreen.codebase.language import PARSED, language_of
from regreen.codebase.retrieve import retrieve, tokens
from regreen.codebase.symbols import Definition, outline
from regreen.reviewers.context import ReviewContext
from regreen.reviewers.mentions import documents, users_of_constants
from regreen.reviewers.scope import is_test
from regreen.reviewers.surroundings import heading

_LONGEST = 40
_HEAD = 14
_AROUND = 4
_MOST_CALLERS = 4
_MOST_USERS = 8
_ALIKE = 700
_IN_DOCUMENTS = 400

_CALLED = re.compile(r"\b([A-Za-z_]\w{2,60})\(")
_DOCUMENTED = re.compile(r"""\s*[rRuU]?(\"{3}|'{3})""")
_WORD = re.compile(r"[A-Za-z_]\w{2,60}")
EVERYDAY = frozenset(
    n
    for kind in (dict, list, set, str, bytes, io.TextIOWrapper, deque, re.Pattern)
    for n in dir(kind)
)
"""Methods of the built-in types: a call by such a name says nothing about which one is meant."""


def related(context: ReviewContext, files: Sequence[FileChange], budget: int) -> str:
    """What the change newly calls, who names what it took away, who calls what it changes; "" where nothing does.

    `budget` is in tokens. What only speaks of the same things is shown where the structure of the code says nothing.
    """
    if context.git is None:
        return ""
    graph = context.graph
    pieces = _linked(context, graph, files) if graph is not None else iter(())
    shown = within(pieces, budget)
    if graph is None or not any(language_of(f.path) in PARSED for f in files):
        shown = _alike(context, files, min(budget, _ALIKE))
    left = budget - sum(map(tokens, shown))
    shown += within(documents(context, files), min(left, _IN_DOCUMENTS))
    return "\n\n".join(shown)


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


def within(pieces: Iterator[str], budget: int) -> list[str]:
    """The pieces, in their order, that fit the budget; none twice."""
    shown: list[str] = []
    left = budget
    for piece in pieces:
        cost = tokens(piece)
        if piece and cost <= left and piece not in shown:
            shown.append(piece)
            left -= cost
    return shown


def _linked(context: ReviewContext, graph: Graph, files: Sequence[FileChange]) -> Iterator[str]:
    own = {f.path for f in files}
    code = [f for f in files if language_of(f.path) in PARSED and not is_test(f.path)]
    for file in code:
        yield from _callees(context, graph, file, own)
    for file in code:
        yield from _users(context, graph, file, own)
    for path, name in changed_definitions(context, code):
        # who makes an object calls its constructor by the class
        called = name.removesuffix(".__init__")
        if not called.endswith("__"):
            yield from _callers(context, graph, (path, called), own)
    for file in code:
        yield from users_of_constants(context, graph, file, own)


def _callees(
    context: ReviewContext, graph: Graph, file: FileChange, own: set[str]
) -> Iterator[str]:
    """What the added lines call, defined in another file."""
    added = set(file.added_lines)
    shape = graph.outlines.get(file.path)
    calls = [c for c in shape.calls if c.line in added] if shape else []
    before = {n for h in file.hunks for x in h.lines if x.kind == "-" for n in _CALLED.findall(x.text)}  # fmt: skip
    for call in sorted(calls, key=lambda c: c.name in before):
        for path, definition in graph.targets(file.path, call):
            if path not in own and not is_test(path):
                yield excerpt(context, path, definition, f"{file.path} calls it")


def _users(context: ReviewContext, graph: Graph, file: FileChange, own: set[str]) -> Iterator[str]:
    """Imports elsewhere of names that this file no longer has."""
    before = context.before(file.old_path or file.path)
    after = graph.outlines.get(file.path)
    if before is None:
        return
    shape = outline(file.path, before.encode("utf-8", "surrogateescape"))
    here = {d.short for d in after.definitions} if after else set()
    gone = {d.short for d in shape.definitions if "." not in d.name} - here
    count = 0
    for path, other in graph.outlines.items() if gone else ():
        if path in own or not graph.tied(path, file.path):
            continue
        for line in other.imports:
            if gone & set(_WORD.findall(line)) and count < _MOST_USERS:
                count += 1
                yield f"--- {path} (imports what {file.path} no longer defines)\n{line}"


def _callers(
    context: ReviewContext, graph: Graph, changed: tuple[str, str], own: set[str]
) -> Iterator[str]:
    """The lines around calls of a changed function, the program's own before one of its tests."""
    path, name = changed
    short = name.rpartition(".")[2]
    telling = len(graph.named(short)) == 1 and short not in EVERYDAY
    elsewhere = [x for x in graph.callers(path, name) if x.path not in own and (x.sure or telling)]
    program = [x for x in elsewhere if not is_test(x.path)][:_MOST_CALLERS]
    tests = [x for x in elsewhere if is_test(x.path) and x.sure][:1]
    for link in (*program, *tests):
        rows = _rows(context, link.path)
        around = link.definition
        first = max(around.start if around else 1, link.line - _AROUND)
        last = min(around.end if around else len(rows), link.line + _AROUND)
        head = [rows[n - 1] for n in heading(rows, around) if n < first] if around else []
        text = "\n".join([*head, *(["    ..."] if head else []), *rows[first - 1 : last]])
        sure = "calls" if link.sure else "perhaps calls"
        if rows:
            yield f"--- {link.path} lines {first}-{last} ({sure} {short})\n{text}"


def excerpt(
    context: ReviewContext, path: str, definition: Definition, why: str, longest: int = _LONGEST
) -> str:
    """A function, whole where it is short (a long one of at most `longest` lines without its documentation).

    Of a longer one where it begins; of a class its head and constructor.
    """
    rows = _rows(context, path)
    if not rows:
        return ""
    long = definition.end - definition.start >= _LONGEST
    end = definition.start + _HEAD if long else definition.end
    text = "\n".join(rows[definition.start - 1 : end])
    cut = long
    if long and definition.kind != "class":
        text, cut = _beginning(rows, definition, longest)
    if long and definition.kind == "class" and context.graph is not None:
        made = f"{definition.name}.__init__"
        known = context.graph.outlines[path].definitions
        start = next((d for d in known if d.name == made), None)
        if start is not None and start.end > end:
            first = max(start.start, end + 1)
            last = min(start.end, start.start + (_HEAD if longest == _LONGEST else longest))
            text += "\n    ..." * (first == start.start) + "\n" + "\n".join(rows[first - 1 : last])
    more = "\n    ..." if cut else ""
    return f"--- {path} lines {definition.start}-{definition.end} ({why})\n{text}{more}"


def _beginning(rows: Sequence[str], definition: Definition, longest: int) -> tuple[str, bool]:
    """A long function's head, the first line of what documents it, and its code or where that begins; if it is cut."""
    head = [n for n in heading(rows, definition) if n <= len(rows)]
    first = head[-1] + 1
    last = _documented(rows, first, definition.end)
    most = longest if definition.end - last <= longest > _LONGEST else _HEAD
    shown = [rows[n - 1] for n in head]
    shown += rows[first - 1 : first] if last >= first else []
    shown += ["    ..."] if last > first else []
    return "\n".join([*shown, *rows[last : min(definition.end, last + most)]]), most == _HEAD


def _documented(rows: Sequence[str], first: int, end: int) -> int:
    """The last line of a documentation that begins on line `first`; the line before it where none does."""
    opened = _DOCUMENTED.match(rows[first - 1]) if first <= min(end, len(rows)) else None
    if opened is None:
        return first - 1
    if rows[first - 1].count(opened[1]) > 1:
        return first
    return next((n for n in range(first + 1, end + 1) if opened[1] in rows[n - 1]), first)


def _alike(context: ReviewContext, files: Sequence[FileChange], budget: int) -> list[str]:
    assert context.git is not None  # noqa: S101 - `related` has looked
    own = {f.path for f in files}
    lines = [x.text for f in files for h in f.hunks for x in h.lines if x.kind != " "]
    found = retrieve(
        context.git,
        context.head,
        query="\n".join((context.title, context.title, context.body[:2000], *lines))[:60_000],
        changed=(),
        budget=budget,
        skip=lambda p: p in own or language_of(p) == "prose" or is_test(p),
    )
    return [f"--- {c.path} lines {c.start}-{c.end} ({c.why})\n{c.text}" for c in found]


def _rows(context: ReviewContext, path: str) -> list[str]:
    text = context.after(path)
    return text.split("\n") if text is not None else []
