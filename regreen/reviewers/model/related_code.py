"""Code elsewhere in the repository that bears on a change, ranked and as text for a reader."""

from __future__ import annotations

import io
import math
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from regreen.code.diff import FileChange
from regreen.code.file_languages import has_outline, is_prose
from regreen.code.paths import is_test
from regreen.code.symbol_index import CallGraph
from regreen.code.symbols import CallSite, Definition, read_outline
from regreen.reviewers.context import ReviewContext
from regreen.reviewers.model.surrounding_code import heading_lines

CHARACTERS_PER_TOKEN = 3.5


def estimate_tokens(text: str) -> int:
    """About how many tokens a text is."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


_MAX_EXCERPT_LINES = 40
_MAX_HEAD_LINES = 14
_CALLER_CONTEXT_LINES = 4
_MAX_CALLERS = 4
_MAX_USERS = 8
_DOCUMENT_TOKENS = 400

_CALLED_NAME = re.compile(r"\b([A-Za-z_]\w{2,60})\(")
_DOCSTRING_START = re.compile(r"""\s*[rRuU]?(\"{3}|'{3})""")
_WORD = re.compile(r"[A-Za-z_]\w{2,60}")
EVERYDAY_NAMES = frozenset(
    n
    for kind in (dict, list, set, str, bytes, io.TextIOWrapper, deque, re.Pattern)
    for n in dir(kind)
)
"""Methods of the built-in types: a call by such a name does not identify a method of the repository."""


def find_related_code(context: ReviewContext, files: Sequence[FileChange], budget: int) -> str:
    """Code that the change newly calls, uses of names that it removes, callers of what it changes; "" without any.

    `budget` is in tokens. What no import and no file ties to the change brings nothing.
    """
    if context.git is None:
        return ""
    graph = context.call_graph
    pieces = _find_linked_code(context, graph, files) if graph is not None else iter(())
    shown = fit_budget(pieces, budget)
    left = budget - sum(map(estimate_tokens, shown))
    shown += fit_budget(find_passages(context, files), min(left, _DOCUMENT_TOKENS))
    return "\n\n".join(shown)


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
        yield from _find_removed_imports(context, graph, file, own)
    for path, name in changed_definitions(context, code):
        # who makes an object calls its constructor by the class
        called = name.removesuffix(".__init__")
        if not called.endswith("__"):
            yield from _find_callers(context, graph, (path, called), own)
    for file in code:
        yield from find_constant_uses(context, graph, file, own)


def _find_callees(
    context: ReviewContext, graph: CallGraph, file: FileChange, own: set[str]
) -> Iterator[str]:
    """What the added lines call, defined in another file."""
    added = set(file.added_lines)
    shape = graph.outlines.get(file.path)
    calls = [c for c in shape.calls if c.line in added] if shape else []
    before = {n for h in file.hunks for x in h.lines if x.kind == "-" for n in _CALLED_NAME.findall(x.text)}  # fmt: skip
    rows = _read_rows(context, file.path)
    for call in sorted(calls, key=lambda c: c.name in before):
        for path, definition in graph.resolve_call(file.path, call):
            if path not in own and not is_test(path) and _may_mean(rows, call, path):
                yield format_excerpt(context, path, definition, f"{file.path} calls it")


def _may_mean(rows: Sequence[str], call: CallSite, path: str) -> bool:
    """Whether a call by a name that built-in types have too is one of the repository's: by its receiver."""
    if call.name not in EVERYDAY_NAMES:
        return True
    row = rows[call.line - 1] if call.line <= len(rows) else ""
    found = re.search(rf"([\w)]{{1,80}})\.{re.escape(call.name)}\(", row[:2000])
    return (
        found is None
        or found[1] in {"self", "cls", "super", ")", PurePosixPath(path).stem}
        or found[1][0].isupper()
    )


def _find_removed_imports(
    context: ReviewContext, graph: CallGraph, file: FileChange, own: set[str]
) -> Iterator[str]:
    """Imports elsewhere of names that this file no longer has."""
    before = context.base_text(file.old_path or file.path)
    after = graph.outlines.get(file.path)
    if before is None:
        return
    shape = read_outline(file.path, before.encode("utf-8", "surrogateescape"))
    here = {d.short_name for d in after.definitions} if after else set()
    gone = {d.short_name for d in shape.definitions if "." not in d.name} - here
    count = 0
    for path, other in graph.outlines.items() if gone else ():
        if path in own or not graph.are_files_linked(path, file.path):
            continue
        for line in other.imports:
            if gone & set(_WORD.findall(line)) and count < _MAX_USERS:
                count += 1
                yield f"--- {path} (imports what {file.path} no longer defines)\n{line}"


def _find_callers(
    context: ReviewContext, graph: CallGraph, changed: tuple[str, str], own: set[str]
) -> Iterator[str]:
    """The lines around calls of a changed function, the program's own before one of its tests."""
    path, name = changed
    short = name.rpartition(".")[2]
    elsewhere = [x for x in graph.find_callers(path, name) if x.path not in own]
    program = [x for x in elsewhere if not is_test(x.path)][:_MAX_CALLERS]
    tests = [x for x in elsewhere if is_test(x.path)][:1]
    if not graph.is_called(short):
        yield f"--- {path}: nothing in this repository calls {name} by its name"
    for link in (*program, *tests):
        rows = _read_rows(context, link.path)
        around = link.definition
        first = max(around.start if around else 1, link.line - _CALLER_CONTEXT_LINES)
        last = min(around.end if around else len(rows), link.line + _CALLER_CONTEXT_LINES)
        head = [rows[n - 1] for n in heading_lines(rows, around) if n < first] if around else []
        text = "\n".join([*head, *(["    ..."] if head else []), *rows[first - 1 : last]])
        if rows:
            yield f"--- {link.path} lines {first}-{last} (calls {short})\n{text}"


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


# Where other files name what a change touches: code that uses its constants, documents that promise what it does.

_MAX_FILES = 40
_MAX_DOCUMENT_BYTES = 200_000
_MAX_USES = 4
_MAX_PASSAGES = 5
_MAX_NAMES = 40
_MAX_EVERYDAY_USES = 6
_MIN_NAME_CHARACTERS = 4
_MAX_LINE_CHARACTERS = 300

_OPTION_NAME = re.compile(r"(?<![\w-])--[a-z][\w-]{2,40}")
_SETTING_NAME = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]{2,60}\b")
_QUOTED_NAME = re.compile(r"""['"]([A-Za-z][\w.-]{3,40})['"]""")
_LIST_ITEM = re.compile(r"""\s*['"]?\w+['"]?,?\s*""")
"""A name in a list of imports, or of what a module offers."""
_HISTORY_DOCUMENT = re.compile(r"(?i)^(?:chang|hist|news|release|licen|notice|author|contrib)")


def find_constant_uses(
    context: ReviewContext, graph: CallGraph, file: FileChange, own: set[str]
) -> Iterator[str]:
    """Lines elsewhere that use a name which this file binds on a changed line, outside of functions and classes."""
    shape = graph.outlines.get(file.path)
    constants = {
        d.short_name
        for d in (shape.definitions if shape else ())
        if d.kind == "constant" and "." not in d.name and file.touches_lines(d.start, d.end)
    }
    if not constants:
        return
    named = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(constants)[:_MAX_NAMES]))})\b")
    count = 0
    for path, other in graph.outlines.items():
        if path in own or is_test(path) or not graph.are_files_linked(path, file.path):
            continue
        imports = set(other.imports)
        for number, row in enumerate(_read_mention_rows(context, path), 1):
            passed_on = row.strip() in imports or _LIST_ITEM.fullmatch(row)
            if named.search(row) and not passed_on and count < _MAX_USES:
                count += 1
                yield f"--- {path} line {number} (uses what {file.path} changes)\n{row[:_MAX_LINE_CHARACTERS]}"


def find_passages(context: ReviewContext, files: Sequence[FileChange]) -> Iterator[str]:
    """Passages of the repository's documents that name an option, a setting or a function which the change touches.

    Names that a document repeats often are left out: a promise to users stands there once or twice.
    """
    if context.git is None:
        return
    names = _find_public_names(context, files)
    if not names:
        return
    named = re.compile("|".join(rf"(?<![\w-]){re.escape(n)}(?![\w-])" for n in names[:_MAX_NAMES]))
    texts = {path: _read_mention_rows(context, path) for path in _find_documents(context)}
    hits = [
        (path, n, set(found))
        for path, rows in texts.items()
        for n, row in enumerate(rows)
        if (found := named.findall(row[:_MAX_LINE_CHARACTERS]))
    ]
    often = Counter(name for _, _, there in hits for name in there)
    shown_until: dict[str, int] = {}
    count = 0
    for path, n, names_there in hits:
        everyday = all(often[name] > _MAX_EVERYDAY_USES for name in names_there)
        if everyday or n < shown_until.get(path, 0) or count >= _MAX_PASSAGES:
            continue
        count += 1
        rows = texts[path]
        shown_until[path] = min(len(rows), n + 3)
        text = "\n".join(
            row[:_MAX_LINE_CHARACTERS] for row in rows[max(0, n - 1) : shown_until[path]]
        ).strip("\n")
        yield f"--- {path} line {n + 1} (a document that names it)\n{text}"


def _find_public_names(context: ReviewContext, files: Sequence[FileChange]) -> list[str]:
    """What users know a change by: options, settings, quoted names, public functions; the most telling first."""
    lines = [
        x.text[:_MAX_LINE_CHARACTERS]
        for f in files
        if not is_test(f.path)
        for h in f.hunks
        for x in h.lines
        if x.kind != " "
    ]
    text = "\n".join(lines)
    found = [
        *_OPTION_NAME.findall(text),
        *_SETTING_NAME.findall(text),
        *_find_defined_names(context, files),
    ]
    found += [q for q in _QUOTED_NAME.findall(text) if re.search(r"[_.-]|[a-z][A-Z]", q)]
    return list(dict.fromkeys(n for n in found if len(n) > _MIN_NAME_CHARACTERS))


def _find_defined_names(context: ReviewContext, files: Sequence[FileChange]) -> Iterator[str]:
    """Public functions and classes that the change touches, by names that are no everyday words."""
    for file in files:
        text = None if is_test(file.path) else context.head_text(file.path)
        shape = read_outline(file.path, text.encode("utf-8", "surrogateescape")) if text else None
        for d in shape.definitions if shape else ():
            telling = "_" in d.short_name.strip("_") or d.short_name != d.short_name.lower()
            # a method's change is no change of all that its class promises
            end = d.start if d.kind == "class" else d.end
            if telling and d.short_name[0] != "_" and file.touches_lines(d.start, end):
                yield d.short_name


def _find_documents(context: ReviewContext) -> list[str]:
    """The documents for users, those at the root first."""
    found = [
        e.path
        for e in context.head_tree
        if is_prose(e.path)
        and (e.size or 0) <= _MAX_DOCUMENT_BYTES
        and e.mode.startswith("100")
        and not _HISTORY_DOCUMENT.search(PurePosixPath(e.path).name)
    ]
    return sorted(found, key=lambda p: (p.count("/"), p))[:_MAX_FILES]


def _read_mention_rows(context: ReviewContext, path: str) -> list[str]:
    text = context.head_text(path)
    return text.split("\n") if text is not None else []
