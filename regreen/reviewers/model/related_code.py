"""Code elsewhere in the repository that bears on a change, ranked and as text for a reader."""

from __future__ import annotations

import io
import math
import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import PurePosixPath

from regreen.code.diff import FileChange
from regreen.code.file_languages import has_outline
from regreen.code.paths import is_test
from regreen.code.symbol_index import CallGraph, CallLink
from regreen.code.symbols import CallSite, Definition, read_outline
from regreen.reviewers.context import ReviewContext
from regreen.reviewers.model.surrounding_code import heading_lines

CHARACTERS_PER_TOKEN = 3.5


def estimate_tokens(text: str) -> int:
    """About how many tokens a text is."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


_MAX_EXCERPT_LINES = 60
_MAX_HEAD_LINES = 14
_CALLER_CONTEXT_LINES = 4
_MAX_CALLERS = 4

_CALLED_NAME = re.compile(r"\b([A-Za-z_]\w{2,60})\(")
_DOCSTRING_START = re.compile(r"""\s*[rRuU]?(\"{3}|'{3})""")
_WORD = re.compile(r"[A-Za-z_]\w{2,60}")
_OWN_ATTRIBUTE = re.compile(r"\bself\.([A-Za-z_]\w*)")
_ATTRIBUTE_SET = re.compile(r"\bself\.([A-Za-z_]\w*)\s*(?::[^=\n]{1,80})?=(?!=)")
_MAX_ORIGINS = 4
EVERYDAY_NAMES = frozenset(
    n
    for kind in (dict, list, set, str, bytes, io.TextIOWrapper, deque, re.Pattern)
    for n in dir(kind)
)
"""Methods of the built-in types: a call by such a name does not identify a method of the repository."""


def find_related_code(
    context: ReviewContext, files: Sequence[FileChange], budget: int
) -> Sequence[str]:
    """Pieces of code that the change newly calls, bases of its classes, callers of what it changes.

    `budget` is in tokens. What no import and no file ties to the change brings nothing.
    """
    if context.git is None:
        return ()
    graph = context.call_graph
    pieces = _find_linked_code(context, graph, files) if graph is not None else iter(())
    return fit_budget(pieces, budget)


def changed_definitions(
    context: ReviewContext, files: Sequence[FileChange]
) -> list[tuple[str, str]]:
    """Path and dotted name of every function, method and class that the change touches."""
    found: list[tuple[str, str]] = []
    for file in files:
        if not has_outline(file.path) or is_test(file.path):
            continue
        text = context.head_text(file.path)
        shape = read_outline(file.path, text.encode("utf-8", "surrogateescape")) if text else None
        for definition in shape.definitions if shape else ():
            inner = definition.kind in {"function", "method"}
            if inner and file.touches_lines(definition.start, definition.end):
                found.append((file.path, definition.name))
    return found


def fit_budget(pieces: Iterator[str], budget: int) -> list[str]:
    """The pieces, in their order, that fit the budget; none twice."""
    shown: list[str] = []
    left = budget
    for piece in pieces:
        cost = estimate_tokens(piece)
        if piece and cost <= left and piece not in shown:
            shown.append(piece)
            left -= cost
    return shown


def _find_linked_code(
    context: ReviewContext, graph: CallGraph, files: Sequence[FileChange]
) -> Iterator[str]:
    own = {f.path for f in files}
    code = [f for f in files if has_outline(f.path) and not is_test(f.path)]
    for file in code:
        yield from _find_callees(context, graph, file, own)
    for file in code:
        yield from find_base_constructors(context, graph, file, own)
    for path, name in changed_definitions(context, code):
        # who makes an object calls its constructor by the class
        called = name.removesuffix(".__init__")
        if not called.endswith("__"):
            yield from _find_callers(context, graph, (path, called), own)


def _find_callees(
    context: ReviewContext, graph: CallGraph, file: FileChange, own: set[str]
) -> Iterator[str]:
    """What the added lines call, defined in another file."""
    added = set(file.added_lines)
    shape = graph.outlines.get(file.path)
    calls = [c for c in shape.calls if c.line in added] if shape else []
    before = {
        n
        for h in file.hunks
        for x in h.lines
        if x.kind == "-"
        for n in _CALLED_NAME.findall(x.text)
    }
    rows = _read_rows(context, file.path)
    foreign = [c for c in calls if not _calls_own_method(graph, file.path, rows, c)]
    for call in sorted(foreign, key=lambda c: c.name in before):
        for path, definition in graph.resolve_call(file.path, call):
            if path not in own and not is_test(path) and _may_mean(rows, call, path):
                yield format_excerpt(context, path, definition, "the change calls it")


def _may_mean(rows: Sequence[str], call: CallSite, path: str) -> bool:
    """Whether a call by a name that built-in types have too is one of the repository's: by its receiver."""
    if call.name not in EVERYDAY_NAMES:
        return True
    row = rows[call.line - 1] if call.line <= len(rows) else ""
    found = re.search(rf"(?:([\w)]{{1,80}})|.)\.{re.escape(call.name)}\(", row[:2000])
    if found is None:  # a bare name, or a call on a line of its own: `.format(` after a text
        return not row.lstrip().startswith(".")
    owner = found[1] or ""
    return owner in {"self", "cls", "super", ")", PurePosixPath(path).stem} or owner[:1].isupper()


def _calls_own_method(graph: CallGraph, path: str, rows: Sequence[str], call: CallSite) -> bool:
    """Whether a call on `self`, of a name that its own file defines, leads to that file and no other."""
    row = rows[call.line - 1] if call.line <= len(rows) else ""
    on_self = re.search(rf"\b(?:self|cls)\.{re.escape(call.name)}\(", row[:2000])
    return on_self is not None and any(
        d.short_name == call.name for d in graph.outlines[path].definitions
    )


def _find_callers(
    context: ReviewContext, graph: CallGraph, changed: tuple[str, str], own: set[str]
) -> Iterator[str]:
    """The lines around calls of a changed function, the program's own before one of its tests."""
    path, name = changed
    short = name.rpartition(".")[2]
    elsewhere: dict[tuple[str, str], CallLink] = {}
    for x in graph.find_callers(path, name):
        rows, call = _read_rows(context, x.path), CallSite(short, x.line, "")
        own_method = x.path in own or _calls_own_method(graph, x.path, rows, call)
        if not own_method and _may_mean(rows, call, path):
            # several calls in one function say little more than the first
            elsewhere.setdefault((x.path, x.definition.name if x.definition else str(x.line)), x)
    program = [x for x in elsewhere.values() if not is_test(x.path)][:_MAX_CALLERS]
    tests = [x for x in elsewhere.values() if is_test(x.path)][:1]
    if not graph.is_called(short) and not _is_decorated(context, graph, path, name):
        yield f"--- {path}: nothing in this repository calls {name} by its name"
    for link in (*program, *tests):
        rows = _read_rows(context, link.path)
        around = link.definition
        first = max(around.start if around else 1, link.line - _CALLER_CONTEXT_LINES)
        last = min(around.end if around else len(rows), link.line + _CALLER_CONTEXT_LINES)
        head = [rows[n - 1] for n in heading_lines(rows, around) if n < first] if around else []
        head += _argument_origins(rows, around, link.line, first) if around else []
        text = "\n".join([*head, *(["    ..."] if head else []), *rows[first - 1 : last]])
        if rows:
            yield f"--- {link.path} lines {first}-{last} (calls {short})\n{text}"


def _argument_origins(rows: Sequence[str], around: Definition, line: int, shown: int) -> list[str]:
    """The lines above `shown` that set a variable which the call on this line passes on."""
    passed = rows[line - 1].partition("(")[2] if line <= len(rows) else ""
    names = [re.escape(n) for n in dict.fromkeys(_WORD.findall(passed))][:_MAX_ORIGINS]
    if not names:
        return []
    sets = re.compile(rf"\s+(?:{'|'.join(names)})\s*(?::[^=\n]{{1,80}})?=(?!=)")
    return [row for row in rows[around.start : shown - 1] if sets.match(row)][-_MAX_ORIGINS:]


def _is_decorated(context: ReviewContext, graph: CallGraph, path: str, name: str) -> bool:
    """Whether a decorator hands the definition to somebody who may call it."""
    rows = _read_rows(context, path)
    found = (d for d in graph.outlines[path].definitions if d.name == name)
    return any(rows[d.start - 1].lstrip().startswith("@") for d in found if d.start <= len(rows))


def find_base_constructors(
    context: ReviewContext, graph: CallGraph, file: FileChange, own: set[str]
) -> Iterator[str]:
    """The constructors of the bases of a class whose changed lines read an attribute that the class does not set."""
    shape = graph.outlines.get(file.path)
    rows = _read_rows(context, file.path)
    for cls in (d for d in (shape.definitions if shape else ()) if d.kind == "class"):
        body = rows[cls.start - 1 : cls.end]
        changed = [rows[n - 1] for n in file.added_lines if cls.start <= n <= cls.end]
        read = set(_OWN_ATTRIBUTE.findall("\n".join(changed)))
        here = {d.short_name for d in (shape.definitions if shape else ())}
        given = set(_ATTRIBUTE_SET.findall("\n".join(body))) | here
        bases = _WORD.findall(body[0].partition("(")[2]) if read - given and body else []
        for base in bases:
            candidates = graph.resolve_call(file.path, CallSite(base, cls.start, ""))
            near = sorted(candidates, key=lambda x: -_count_shared_folders(file.path, x[0]))
            for path, found in near[:1]:
                if found.kind == "class" and path not in own and not is_test(path):
                    yield format_excerpt(context, path, found, f"the base of {cls.short_name}")


def _count_shared_folders(path: str, other: str) -> int:
    pairs = zip(PurePosixPath(path).parts, PurePosixPath(other).parts, strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


def format_excerpt(
    context: ReviewContext,
    path: str,
    definition: Definition,
    why: str,
    longest: int = _MAX_EXCERPT_LINES,
) -> str:
    """A function, whole where it is short (a long one of at most `longest` lines without its documentation).

    Of a longer one where it begins; of a class its head and constructor.
    """
    rows = _read_rows(context, path)
    if not rows:
        return ""
    long = definition.end - definition.start >= _MAX_EXCERPT_LINES
    end = definition.start + _MAX_HEAD_LINES if long else definition.end
    text = "\n".join(rows[definition.start - 1 : end])
    cut = long
    if long and definition.kind != "class":
        text, cut = _function_beginning(rows, definition, longest)
    if long and definition.kind == "class" and context.call_graph is not None:
        made = f"{definition.name}.__init__"
        known = context.call_graph.outlines[path].definitions
        start = next((d for d in known if d.name == made), None)
        if start is not None and start.end > end:
            first = max(start.start, end + 1)
            last = min(
                start.end,
                start.start + (_MAX_HEAD_LINES if longest == _MAX_EXCERPT_LINES else longest),
            )
            text += "\n    ..." * (first == start.start) + "\n" + "\n".join(rows[first - 1 : last])
    more = "\n    ..." if cut else ""
    return f"--- {path} lines {definition.start}-{definition.end} ({why})\n{text}{more}"


def _function_beginning(
    rows: Sequence[str], definition: Definition, longest: int
) -> tuple[str, bool]:
    """A long function's head, the first line of what documents it, and its code or where that begins; if it is cut."""
    head = [n for n in heading_lines(rows, definition) if n <= len(rows)]
    first = head[-1] + 1
    last = _docstring_end(rows, first, definition.end)
    most = longest if definition.end - last <= longest > _MAX_EXCERPT_LINES else _MAX_HEAD_LINES
    shown = [rows[n - 1] for n in head]
    shown += rows[first - 1 : first] if last >= first else []
    shown += ["    ..."] if last > first else []
    return "\n".join(
        [*shown, *rows[last : min(definition.end, last + most)]]
    ), most == _MAX_HEAD_LINES


def _docstring_end(rows: Sequence[str], first: int, end: int) -> int:
    """The last line of a documentation that begins on line `first`; the line before it where none does."""
    opened = _DOCSTRING_START.match(rows[first - 1]) if first <= min(end, len(rows)) else None
    if opened is None:
        return first - 1
    if rows[first - 1].count(opened[1]) > 1:
        return first
    return next((n for n in range(first + 1, end + 1) if opened[1] in rows[n - 1]), first)


def _read_rows(context: ReviewContext, path: str) -> list[str]:
    text = context.head_text(path)
    return text.split("\n") if text is not None else []
