"""What a model is shown of a change: numbered lines, the code around them, all of it fenced as data."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from regreen.code.diff import DiffLine, FileChange, parse_bounded
from regreen.code.path_settings import find_instructions
from regreen.code.paths import is_test
from regreen.code.python_calls import is_module
from regreen.code.symbols import read_outline
from regreen.domain.models import SentPart, UnreadFile
from regreen.domain.repo_config import CONFIG_PATH
from regreen.domain.text_limits import shorten_text
from regreen.packages.manifests_and_locks import read_declared
from regreen.packages.python_version import read_python_versions
from regreen.reviewers.context import ReviewContext
from regreen.reviewers.model.surrounding_code import (
    MAX_FUNCTION_LINES,
    heading_lines,
    imports_used,
    surrounding_lines,
)
from regreen.reviewers.scope import select_riskiest
from regreen.secrets.markdown_sanitizer import format_line_ranges

_MAX_LINE_CHARACTERS = 400
_WHOLE_FILE = 1_000_000
_SMALL_FILE = 200
_CONTEXT_LINES = 12
_TEST_CONTEXT_LINES = 3
_MIN_RELATED_TOKENS = 1000
_CHEAP_TOKENS = 3000
_MAX_BODY_CHARACTERS = 4000
CHARACTERS_PER_TOKEN = 3.5

FindRelated = Callable[[ReviewContext, Sequence[FileChange], int], Sequence[str]]
"""Finds pieces of code elsewhere in the repository that bear on these files, within so many tokens.

The first line of a piece names its place: `name_pieces` reads it.
"""
_PIECE_PLACE = re.compile(r"--- ([^\n]{1,500}) lines (\d{1,7}-\d{1,7}) \(")


@dataclass(frozen=True, slots=True)
class ChangePortion:
    """One portion of a change as text for a model; `files` are those it shows whole, `sent` names all that it holds."""

    text: str
    files: tuple[FileChange, ...]
    sent: tuple[SentPart, ...] = ()


def make_portions(
    context: ReviewContext, related: FindRelated | None, *, budget: int = 24_000, most: int = 4
) -> tuple[tuple[ChangePortion, ...], tuple[UnreadFile, ...]]:
    """The change in portions that fit a model's attention, riskiest files first, and what is left out.

    Args:
        context: the change.
        related: finds code elsewhere that bears on it.
        budget: tokens for one portion.
        most: portions at the most; files past them are reported as unread.
    """
    room = int(budget * CHARACTERS_PER_TOKEN)
    portions: list[list[_ListedFile]] = [[]]
    files, past = select_riskiest(context.files)
    unread: list[UnreadFile] = list(past)
    for file in files:
        if not file.hunks:
            continue
        listed = _format_file(context, file, room)
        if listed is None:
            unread.append(UnreadFile(file.path, "larger than one model call can read with care"))
            continue
        if sum(len(one.text) for one in portions[-1]) + len(listed.text) > room and portions[-1]:
            portions.append([])
        portions[-1].append(listed)
    for portion in portions[most:]:
        unread += [
            UnreadFile(one.file.path, "past the model's budget for one review") for one in portion
        ]
    made = tuple(
        _make_portion(context, portion, related, budget) for portion in portions[:most] if portion
    )
    return made, tuple(unread)


@dataclass(frozen=True, slots=True)
class _ListedFile:
    """A file's change as text, and the lines of the file that the text holds."""

    file: FileChange
    text: str
    lines: str


def name_pieces(pieces: Iterable[str], what: str) -> tuple[SentPart, ...]:
    """The places of pieces of code; a piece that only says something of a file holds none of it."""
    places = (_PIECE_PLACE.match(piece) for piece in pieces)
    return tuple(SentPart(what, place[1], place[2]) for place in places if place)


def fence_data(name: str, text: str) -> str:
    """Foreign text between marks that it cannot forge: the marks carry a digest of the text itself."""
    text = text.replace("\r\n", "\n")  # as forms send it; alone it is shown
    mark = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return f"<{name} id={mark}>\n{show_invisible(text)}\n</{name} id={mark}>"


def show_invisible(text: str) -> str:
    """Text with everything that a person would not see written out: invisible, bidirectional and control characters."""
    return "".join(
        c if c in "\n\t" or unicodedata.category(c)[0] != "C" else f"\\u{ord(c):04x}" for c in text
    )


def _make_portion(
    context: ReviewContext,
    portion: Sequence[_ListedFile],
    related: FindRelated | None,
    budget: int,
) -> ChangePortion:
    files = tuple(one.file for one in portion)
    sent = [SentPart("the pull request's title and text")]
    sent += [SentPart(f"the title and text of issue #{n}") for n in context.linked_issues]
    sent += [SentPart("the change", one.file.path, one.lines) for one in portion]
    parts = [
        "# The pull request, in its author's words\n"
        + fence_data(
            "author", f"{context.title}\n\n{shorten_text(context.body, _MAX_BODY_CHARACTERS)}"
        ),
        "# The change\nEach line: its number in the file afterwards, `+` added, `-` removed (no number), else kept. "
        "`...` stands for lines left out.\n" + "\n\n".join(one.text for one in portion),
    ]
    if instructions := find_instructions(context.config, (f.path for f in files)):
        parts.insert(0, "# What the maintainers ask reviewers to mind\n" + instructions)
        sent.append(SentPart("the instructions for reviewers", CONFIG_PATH))
    if facts := project_facts(context, files):
        parts.append("# What the project says of where it runs\n" + fence_data("project", facts))
        sent.append(SentPart("the versions that the project declares"))
    if related is not None and (
        found := related(context, files, _related_code_budget(parts, budget))
    ):
        parts.append(
            "# Code elsewhere in the repository that bears on it\n"
            + fence_data("repository", "\n\n".join(found))
        )
        sent += name_pieces(found, "code that bears on it")
    return ChangePortion("\n\n".join(parts), files, tuple(sent))


def _related_code_budget(parts: Sequence[str], budget: int) -> int:
    """Tokens for code elsewhere: what a small change leaves of a cheap question, a third of what a large one takes."""
    change = int(sum(map(len, parts)) / CHARACTERS_PER_TOKEN)
    return min(budget // 3, max(_MIN_RELATED_TOKENS, _CHEAP_TOKENS - change, change // 3))


def _format_file(context: ReviewContext, file: FileChange, room: int) -> _ListedFile | None:
    """A file's change with as much around it as there is room for; None where even the hunks alone are too much."""
    whole = _with_whole_file(context, file)
    for wide in (_with_functions(context, whole), file) if whole is not None else (file,):
        text = f"## {show_invisible(file.path)} ({_describe_status(file, whole)})\n" + fence_data(
            "diff", "\n".join(_format_rows(wide))
        )
        if len(text) <= room:
            shown = (line.new for hunk in wide.hunks for line in hunk.lines)
            lines = format_line_ranges(number for number in shown if number is not None)
            return _ListedFile(file, text, lines)
    return None


def _describe_status(file: FileChange, whole: FileChange | None) -> str:
    """What happened to a file: a new one is called so although an empty one stood in its place."""
    if file.status in {"renamed", "copied"}:
        return f"{file.status} from {show_invisible(file.old_path)}"
    kinds = {x.kind for h in whole.hunks for x in h.lines} if whole is not None else set()
    return "added" if kinds == {"+"} else file.status


def _with_whole_file(context: ReviewContext, file: FileChange) -> FileChange | None:
    """The change with the whole file around it."""
    if context.git is None:
        return None
    paths = [file.path] if file.old_path in {"", file.path} else [file.old_path, file.path]
    diff = context.git.diff(context.merge_base, context.head, paths=paths, context=_WHOLE_FILE)
    return next((f for f in parse_bounded(diff).files if f.path == file.path and f.hunks), None)


def _with_functions(context: ReviewContext, file: FileChange) -> FileChange:
    """Of a file, what one needs to judge the change: the functions around it whole, its imports, its class headers.

    A small file is shown from end to end.
    """
    lines = [x for h in file.hunks for x in h.lines]
    if len(lines) <= _SMALL_FILE and not is_test(file.path):
        return file
    wanted = _wanted_positions(context, file, lines)
    hunks = []
    for near, stretch in groupby(enumerate(lines), lambda item: item[0] in wanted):
        if near:
            lines_shown = tuple(line for _, line in stretch)
            hunks.append(replace(file.hunks[0], lines=lines_shown))
    return replace(file, hunks=tuple(hunks))


def _wanted_positions(
    context: ReviewContext, file: FileChange, lines: Sequence[DiffLine]
) -> set[int]:
    """Positions in `lines` that are worth showing."""
    changed = [i for i, x in enumerate(lines) if x.kind != " "]
    around = _TEST_CONTEXT_LINES if is_test(file.path) else _CONTEXT_LINES
    wanted = {
        j for i in changed for j in range(max(0, i - around), min(len(lines), i + around + 1))
    }
    at = {x.new: i for i, x in enumerate(lines) if x.new is not None}
    text = context.head_text(file.path) or ""
    rows = text.split("\n")
    shape = read_outline(file.path, text.encode("utf-8", "surrogateescape"))
    touched = {n for i in changed if (n := _next_line_number(lines, i)) is not None}
    for definition in shape.definitions:
        if not any(definition.start <= n <= definition.end for n in touched):
            continue
        inner = definition.kind != "class" and not is_test(file.path)
        whole = inner and definition.end - definition.start <= MAX_FUNCTION_LINES
        numbers = (
            range(definition.start, definition.end + 1)
            if whole
            else heading_lines(rows, definition)
        )
        wanted |= {at[n] for n in numbers if n in at}
    if not is_test(file.path):
        wanted |= {at[n] for n in surrounding_lines(file, text, shape, touched) if n in at}
    shown = [n for i in wanted if (n := lines[i].new) is not None and n <= len(rows)]
    wanted |= {at[n] for n in imports_used(rows, shown) if n in at}
    # a gap of a line or two costs more than it saves
    return wanted | {
        i for i in range(len(lines)) if wanted & {i - 1, i - 2} and wanted & {i + 1, i + 2}
    }


def _next_line_number(lines: Sequence[DiffLine], position: int) -> int | None:
    """The number, in the file afterwards, of a line or of the one that now stands where it was."""
    return next((x.new for x in lines[position:] if x.new is not None), None)


def _format_rows(file: FileChange) -> Iterator[str]:
    # A CR at the end of every line is the file's own line ending.
    everywhere = all(x.text.endswith("\r") for h in file.hunks for x in h.lines)
    for i, hunk in enumerate(file.hunks):
        if i:
            yield "  ..."
        for line in hunk.lines:
            number = "" if line.new is None else str(line.new)
            text = line.text.removesuffix("\r") if everywhere else line.text
            yield f"{number:>5} {line.kind} {_cut_line(text)}"


def _cut_line(line: str) -> str:
    """A line, cut visibly if it is too wide, so that a reader does not take it for broken code."""
    return (
        line
        if len(line) <= _MAX_LINE_CHARACTERS
        else f"{line[:_MAX_LINE_CHARACTERS]} ...(the line goes on)"
    )


# The versions that a project declares: of Python, and of the packages that a change uses.

_MANIFEST_NAMES = (
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "requirements.txt",
    "package.json",
    "go.mod",
)
_MAX_PACKAGES = 12
_PYTHON_IMPORT = re.compile(r"(?m)^[ \t]*(?:import|from)\s+([A-Za-z_]\w*)")
_SCRIPT_IMPORT = re.compile(r"""(?:from|require\()\s*['"](@?[\w./-]{1,100})['"]""")


def project_facts(context: ReviewContext, files: Sequence[FileChange]) -> str:
    """Up to three lines; "" if the project declares nothing about these files."""
    if context.git is None:
        return ""
    return "\n".join((*_python_facts(context, files), *_package_facts(context, files)))


def _python_facts(context: ReviewContext, files: Sequence[FileChange]) -> Iterator[str]:
    assert context.git is not None  # noqa: S101 - `facts` has looked
    if not any(is_module(f.path) for f in files):
        return
    allowed, tested = read_python_versions(context.git, context.head)
    if allowed:
        yield f"Python that the project allows: {allowed}"
    if tested:
        ordered = sorted(tested, key=lambda v: tuple(map(int, v.split("."))))
        yield f"Python that it says it supports: {', '.join(ordered)}"


def _package_facts(context: ReviewContext, files: Sequence[FileChange]) -> Iterator[str]:
    texts = [text for f in files if (text := context.head_text(f.path)) is not None]
    used = {
        _normalise_name(name)
        for text in texts
        for name in _PYTHON_IMPORT.findall(text) + _SCRIPT_IMPORT.findall(text)
    }
    found: dict[str, str] = {}
    for path in _MANIFEST_NAMES:
        text = context.head_text(path) if used else None
        for package in read_declared(path, text).dependencies if text is not None else ():
            if _normalise_name(package.name) in used and package.spec:
                found.setdefault(package.name, package.spec)
    if found:
        yield "Versions that it asks for: " + ", ".join(
            f"{name} {spec}"[:60] for name, spec in sorted(found.items())[:_MAX_PACKAGES]
        )


def _normalise_name(name: str) -> str:
    return name.lower().replace("-", "_")
