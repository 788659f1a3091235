"""The lines of a changed file outside the hunks that are needed to judge the change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from regreen.code.diff import FileChange
from regreen.code.symbols import Definition, Outline

_SHORT_CONSTRUCTOR_LINES = 25
_SHORT_CALLEE_LINES = 40
_HEAD_LINES = 12
_MAX_USES = 6
_MAX_SHOWN_LINES = 120
_MAX_HEADING_LINES = 30
_MAX_LATER_LINES = 30
MAX_FUNCTION_LINES = 150
"""A function of more lines is shown in part."""

_ATTRIBUTE_READ = re.compile(r"\b(?:self|this|cls)\.([A-Za-z_]\w*)")
_ATTRIBUTE_ASSIGNMENT = re.compile(
    r"\b(?:self|this|cls)\.([A-Za-z_]\w*)\s*(?::[^=\n]{1,80})?(?:[-+*/|&]|//)?=(?!=)"
)
_CALLED_NAME = re.compile(r"([\w.]{0,80}\.)?\b([A-Za-z_]\w{1,60})\(")
_VARIABLE_ASSIGNMENT = re.compile(
    r"^\s*(?:(?:let|var|const)\s+)?([A-Za-z_]\w*)(?::\s[^=\n]{1,80})?\s+(?:[-+*/%|&]|//|:)?=\s"
)
"""An assigned variable; blanks around the sign distinguish it from a keyword argument."""
_COMMENT = re.compile(r"(?:^|\s)(?:#|//)")
_NAME = re.compile(r"[A-Za-z_]\w{1,60}")
_BINDING_STATEMENT = re.compile(
    r"(?:from\s+[\w.]{1,120}\s+import\s+|import\s+|(?:async\s+)?def\s+|class\s+)([^#(:]{1,200})|([A-Za-z_]\w*)\s*=(?!=)"
)


@dataclass(frozen=True)
class _ChangedFile:
    """A file after the change, taken apart."""

    rows: Sequence[str]
    shape: Outline
    changed: frozenset[int]
    added: Sequence[str]
    removed: Sequence[str]

    @property
    def touched_definitions(self) -> list[Definition]:
        """The functions and methods that hold a changed line."""
        return [
            d
            for d in self.shape.definitions
            if d.kind in {"function", "method"} and any(d.start <= n <= d.end for n in self.changed)
        ]

    def definition_text(self, definition: Definition) -> str:
        return "\n".join(self.rows[definition.start - 1 : definition.end])

    def find_definition(self, name: str) -> Definition | None:
        return next((d for d in self.shape.definitions if d.name == name), None)


def surrounding_lines(
    file: FileChange, text: str, shape: Outline, changed: Iterable[int]
) -> set[int]:
    """Numbers of lines that set what the change reads, define what it calls, call it, or name what it took away."""
    lines = [x for h in file.hunks for x in h.lines]
    parts = _ChangedFile(
        text.split("\n"),
        shape,
        frozenset(changed),
        [x.text for x in lines if x.kind == "+"],
        [x.text for x in lines if x.kind == "-"],
    )
    found: set[int] = set()
    for number in (
        *_lines_of_called_definitions(parts),
        *_attribute_lines(parts),
        *_lines_naming_removed_names(parts),
        *_caller_lines(parts),
        *_later_use_lines(parts),
    ):
        if len(found) >= _MAX_SHOWN_LINES:
            break
        if number not in parts.changed:
            found.add(number)
    return found


def imports_used(rows: Sequence[str], shown: Iterable[int]) -> set[int]:
    """Lines of import statements, continued ones whole, that bind a name which the shown lines use."""
    used = {word for n in shown for word in _NAME_ANY.findall(rows[n - 1])}
    found: set[int] = set()
    for start, end in _import_ranges(rows):
        words = set(_NAME_ANY.findall("\n".join(rows[start - 1 : end])))
        if words & used - _IMPORT_WORDS or words & {"__future__"}:
            found |= set(range(start, end + 1))
    return found


def heading_lines(rows: Sequence[str], definition: Definition) -> range:
    """The numbers of the lines that a definition begins with: its decorators, its name, its parameters."""
    last = min(definition.end, definition.start + _MAX_HEADING_LINES, len(rows))
    named = definition.start
    for number in range(definition.start, last + 1):
        row = rows[number - 1].split("#")[0].rstrip()
        if row.endswith((":", "{")):
            return range(definition.start, number + 1)
        if row.lstrip().startswith("@") and named == number:
            named = number + 1
    return range(definition.start, min(named, last) + 1)


def _import_ranges(rows: Sequence[str]) -> Iterator[tuple[int, int]]:
    at = 0
    while at < len(rows):
        start = at
        at += 1
        if (
            not IMPORT_LINE.match(rows[start])
            or _PROSE_LINE.match(rows[start])
            or _is_local_import(rows, start)
        ):
            continue
        opened = rows[start].count("(") + rows[start].count("{")
        closed = rows[start].count(")") + rows[start].count("}")
        while (opened > closed or rows[at - 1].endswith("\\")) and at < min(len(rows), start + 60):
            opened += rows[at].count("(") + rows[at].count("{")
            closed += rows[at].count(")") + rows[at].count("}")
            at += 1
        yield start + 1, at


def _is_local_import(rows: Sequence[str], at: int) -> bool:
    """Whether an import stands inside a function or class: it binds nothing for the others."""
    indent = len(rows[at]) - len(rows[at].lstrip())
    while indent and at > 0:
        at -= 1
        above = len(rows[at]) - len(rows[at].lstrip())
        if rows[at].strip() and above < indent:
            if not _BRANCH_LINE.match(rows[at]):
                return True
            indent = above
    return False


def _lines_of_called_definitions(parts: _ChangedFile) -> Iterator[int]:
    """What the added lines call and this file defines: its head, and all of it where it is short."""
    before = {name for _, name in _find_calls(map(_strip_comment, parts.removed))}
    for owner, name in sorted(_find_calls(map(_strip_comment, parts.added))):
        if name in before:
            continue
        own = [d for d in parts.shape.definitions if d.short_name == name and d.kind != "constant"]
        if owner in {"self.", "cls.", "this."} or not owner or len(own) == 1:
            for definition in own[:2]:
                yield from _definition_lines(parts, definition)


def _find_calls(lines: Iterable[str]) -> set[tuple[str, str]]:
    return {(m[1] or "", m[2]) for line in lines for m in _CALLED_NAME.finditer(line)}


def _strip_comment(line: str) -> str:
    """A line without the comment that it is or ends in: what a comment names is not called."""
    return _COMMENT.split(line, maxsplit=1)[0]


def _definition_lines(parts: _ChangedFile, definition: Definition) -> Iterator[int]:
    start = (
        parts.find_definition(f"{definition.name}.__init__") if definition.kind == "class" else None
    )
    if start is not None:
        yield definition.start
        definition = start
    short = definition.end - definition.start < _SHORT_CALLEE_LINES
    yield from range(
        definition.start, (definition.end if short else definition.start + _HEAD_LINES) + 1
    )


def _attribute_lines(parts: _ChangedFile) -> Iterator[int]:
    """Where the attributes come from: all that a changed line reads, and in the constructor all that its method reads."""
    touching = set(_ATTRIBUTE_READ.findall("\n".join((*parts.added, *parts.removed))))
    for method in parts.touched_definitions:
        owner = parts.find_definition(method.name.rpartition(".")[0])
        if owner is None or owner.kind != "class":
            continue
        reads = set(_ATTRIBUTE_READ.findall(parts.definition_text(method)))
        for name in ("__init__", "constructor", "initialize"):
            made = parts.find_definition(f"{owner.name}.{name}")
            if made is None or made == method:
                continue
            lines = list(_assignment_lines(parts, made, reads))
            whole = lines and made.end - made.start <= _SHORT_CONSTRUCTOR_LINES
            yield from range(made.start, made.end + 1) if whole else lines
        for other in parts.shape.definitions:
            if other.kind == "method" and other.name.rpartition(".")[0] == owner.name:
                yield from _assignment_lines(parts, other, touching)


def _assignment_lines(parts: _ChangedFile, inside: Definition, names: set[str]) -> Iterator[int]:
    """The lines of a method that set one of these attributes, and its head."""
    found = [
        n
        for n in range(inside.start, inside.end + 1)
        if set(_ATTRIBUTE_ASSIGNMENT.findall(parts.rows[n - 1])) & names
    ]
    if found:
        yield from heading_lines(parts.rows, inside)
    for n in found:
        yield from (m for m in (n - 1, n, n + 1) if inside.start <= m <= inside.end)


def _later_use_lines(parts: _ChangedFile) -> Iterator[int]:
    """In functions too long to be shown whole: where the variables that the change sets are used, and set elsewhere."""
    for method in parts.touched_definitions:
        if method.end - method.start <= MAX_FUNCTION_LINES:
            continue
        inside = range(method.start, method.end + 1)
        brought = [n for n in parts.changed if n in inside]
        names = {m[1] for n in brought for m in _VARIABLE_ASSIGNMENT.finditer(parts.rows[n - 1])}
        if not names:
            continue
        used = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, sorted(names)))})\b")
        found = [n for n in inside if used.search(_strip_comment(parts.rows[n - 1]))]
        yield from sorted(found, key=lambda n: min(abs(n - b) for b in brought))[:_MAX_LATER_LINES]


def _lines_naming_removed_names(parts: _ChangedFile) -> Iterator[int]:
    """Lines that still name what a removed line imported or defined and no added line does."""
    gone = _names_bound_in_lines(parts.removed) - _names_bound_in_lines(parts.added)
    gone -= {d.short_name for d in parts.shape.definitions}
    uses = 0
    for number, row in enumerate(parts.rows, 1):
        if gone and uses < _MAX_USES and gone & set(_NAME.findall(row)):
            uses += number not in parts.changed
            yield number


def _names_bound_in_lines(lines: Sequence[str]) -> set[str]:
    """Names that lines at the left margin bind."""
    found: set[str] = set()
    for line in lines:
        match = _BINDING_STATEMENT.match(line)
        if match:
            found |= set(_NAME.findall(match[1] or match[2]))
    return found - _IMPORT_WORDS


def _caller_lines(parts: _ChangedFile) -> Iterator[int]:
    """Where this file calls the functions that are changed."""
    touched = {d.short_name for d in parts.touched_definitions}
    calls = [c for c in parts.shape.calls if c.name in touched and c.line not in parts.changed]
    for call in calls[:_MAX_USES]:
        around = parts.find_definition(call.inside) if call.inside else None
        if around is not None:
            yield from heading_lines(parts.rows, around)
        for n in range(call.line - 2, call.line + 3):
            if 0 < n <= len(parts.rows) and (around is None or around.start <= n <= around.end):
                yield n


IMPORT_LINE = re.compile(
    r"(?:use|require|const \w+ = require|#include|using|package)\b|\s*(?:import\b|from\s+[\w.]+\s+import\b)"
)
"""How a line begins that brings in names from elsewhere."""
_PROSE_LINE = re.compile(r"\s*import\s+\w+\s+(?!as\b|from\b)\w|\s*from\s+\S+\s+import\s[^#]*\[")
"""A sentence, or an example in a document, that begins like an import."""
_BRANCH_LINE = re.compile(r"\s*(?:try|except|finally|if|elif|else|with)\b")
_NAME_ANY = re.compile(r"[A-Za-z_]\w*")
_IMPORT_WORDS = frozenset({"import", "from", "as", "use", "require", "const", "using", "package"})
