"""What a model is shown of a change: numbered lines, the code around them, all of it fenced as data."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from regreen.codebase.diff import FileChange, Line, parse
from regreen.codebase.symbols import outline
from regreen.models import Unread
from regreen.reviewers.context import ReviewContext
from regreen.reviewers.facts import facts
from regreen.reviewers.scope import is_test, riskiest
from regreen.reviewers.shorten import shortened
from regreen.reviewers.surroundings import LONGEST_FUNCTION, heading, imports_used, surroundings

_WIDEST_LINE = 400
_WHOLE_FILE = 1_000_000
_SMALL_FILE = 200
_AROUND = 12
_NARROW = 3
_LEAST_ELSEWHERE = 1000
_CHEAP = 3000
_LONGEST_BODY = 4000
CHARACTERS_PER_TOKEN = 3.5

Related = Callable[[ReviewContext, Sequence[FileChange], int], str]
"""Finds code elsewhere in the repository that bears on these files, within so many tokens."""


@dataclass(frozen=True, slots=True)
class Dossier:
    """One portion of a change as text for a model; `files` are those it shows whole."""

    text: str
    files: tuple[FileChange, ...]


def dossiers(
    context: ReviewContext, related: Related | None, *, budget: int = 24_000, most: int = 4
) -> tuple[tuple[Dossier, ...], tuple[Unread, ...]]:
    """The change in portions that fit a model's attention, riskiest files first, and what is left out.

    Args:
        context: the change.
        related: finds code elsewhere that bears on it.
        budget: tokens for one portion.
        most: portions at the most; files past them are reported as unread.
    """
    room = int(budget * CHARACTERS_PER_TOKEN)
    portions: list[list[tuple[FileChange, str]]] = [[]]
    files, past = riskiest(context.files)
    unread: list[Unread] = list(past)
    for file in files:
        if not file.hunks:
            continue
        text = _file(context, file, room)
        if text is None:
            unread.append(Unread(file.path, "larger than one model call can read with care"))
            continue
        if sum(len(t) for _, t in portions[-1]) + len(text) > room and portions[-1]:
            portions.append([])
        portions[-1].append((file, text))
    for portion in portions[most:]:
        unread += [Unread(f.path, "past the model's budget for one review") for f, _ in portion]
    made = tuple(
        _dossier(context, portion, related, budget) for portion in portions[:most] if portion
    )
    return made, tuple(unread)


def fence(name: str, text: str) -> str:
    """Foreign text between marks that it cannot forge: the marks carry a digest of the text itself."""
    text = text.replace("\r\n", "\n")  # as forms send it; alone it is shown
    mark = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return f"<{name} id={mark}>\n{visible(text)}\n</{name} id={mark}>"


def visible(text: str) -> str:
    """Text with everything that a person would not see written out: invisible, bidirectional and control characters."""
    return "".join(
        c if c in "\n\t" or unicodedata.category(c)[0] != "C" else f"\\u{ord(c):04x}" for c in text
    )


def numbered(text: str, start: int = 1) -> str:
    """A text with its line numbers."""
    return "\n".join(f"{n:>5}   {_cut(line)}" for n, line in enumerate(text.split("\n"), start))


def _dossier(
    context: ReviewContext,
    portion: Sequence[tuple[FileChange, str]],
    related: Related | None,
    budget: int,
) -> Dossier:
    files = tuple(f for f, _ in portion)
    parts = [
        "# The pull request, in its author's words\n"
        + fence("author", f"{context.title}\n\n{shortened(context.body, _LONGEST_BODY)}"),
        "# The change\nEach line: its number in the file afterwards, `+` added, `-` removed (no number), else kept. "
        "`...` stands for lines left out.\n" + "\n\n".join(text for _, text in portion),
    ]
    if context.config.review.instructions:
        parts.insert(
            0, "# What the maintainers ask reviewers to mind\n" + context.config.review.instructions
        )
    if said := facts(context, files):
        parts.append("# What the project says of where it runs\n" + fence("project", said))
    if related is not None and (found := related(context, files, _elsewhere(parts, budget))):
        parts.append(
            "# Code elsewhere in the repository that bears on it\n" + fence("repository", found)
        )
    return Dossier("\n\n".join(parts), files)


def _elsewhere(parts: Sequence[str], budget: int) -> int:
    """Tokens for code elsewhere: what a small change leaves of a cheap question, a third of what a large one takes."""
    change = int(sum(map(len, parts)) / CHARACTERS_PER_TOKEN)
    return min(budget // 3, max(_LEAST_ELSEWHERE, _CHEAP - change, change // 3))


def _file(context: ReviewContext, file: FileChange, room: int) -> str | None:
    """A file's change with as much around it as there is room for; None where even the hunks alone are too much."""
    whole = _whole(context, file)
    for wide in (_with_functions(context, whole), file) if whole is not None else (file,):
        text = f"## {visible(file.path)} ({_status(file, whole)})\n" + fence(
            "diff", "\n".join(_rows(wide))
        )
        if len(text) <= room:
            return text
    return None


def _status(file: FileChange, whole: FileChange | None) -> str:
    """What happened to a file: a new one is called so although an empty one stood in its place."""
    if file.status in {"renamed", "copied"}:
        return f"{file.status} from {visible(file.old_path)}"
    kinds = {x.kind for h in whole.hunks for x in h.lines} if whole is not None else set()
    return "added" if kinds == {"+"} else file.status


def _whole(context: ReviewContext, file: FileChange) -> FileChange | None:
    """The change with the whole file around it."""
    if context.git is None:
        return None
    paths = [file.path] if file.old_path in {"", file.path} else [file.old_path, file.path]
    diff = context.git.diff(context.merge_base, context.head, paths=paths, context=_WHOLE_FILE)
    return next((f for f in parse(diff).files if f.path == file.path), None)


def _with_functions(context: ReviewContext, file: FileChange) -> FileChange:
    """Of a file, what one needs to judge the change: the functions around it whole, its imports, its class headers.

    A small file is shown from end to end.
    """
    lines = [x for h in file.hunks for x in h.lines]
    if len(lines) <= _SMALL_FILE and not is_test(file.path):
        return file
    wanted = _wanted(context, file, lines)
    hunks = []
    for near, stretch in groupby(enumerate(lines), lambda item: item[0] in wanted):
        if near:
            kept = tuple(line for _, line in stretch)
            hunks.append(replace(file.hunks[0], lines=kept))
    return replace(file, hunks=tuple(hunks))


def _wanted(context: ReviewContext, file: FileChange, lines: Sequence[Line]) -> set[int]:
    """Positions in `lines` that are worth showing."""
    changed = [i for i, x in enumerate(lines) if x.kind != " "]
    around = _NARROW if is_test(file.path) else _AROUND
    wanted = {
        j for i in changed for j in range(max(0, i - around), min(len(lines), i + around + 1))
    }
    at = {x.new: i for i, x in enumerate(lines) if x.new is not None}
    text = context.after(file.path) or ""
    rows = text.split("\n")
    shape = outline(file.path, text.encode("utf-8", "surrogateescape"))
    touched = {n for i in changed if (n := _number_near(lines, i)) is not None}
    for definition in shape.definitions:
        if not any(definition.start <= n <= definition.end for n in touched):
            continue
        inner = definition.kind != "class" and not is_test(file.path)
        whole = inner and definition.end - definition.start <= LONGEST_FUNCTION
        numbers = (
            range(definition.start, definition.end + 1) if whole else heading(rows, definition)
        )
        wanted |= {at[n] for n in numbers if n in at}
    if not is_test(file.path):
        wanted |= {at[n] for n in surroundings(file, text, shape, touched) if n in at}
    shown = [n for i in wanted if (n := lines[i].new) is not None and n <= len(rows)]
    wanted |= {at[n] for n in imports_used(rows, shown) if n in at}
    # a gap of a line or two costs more than it saves
    return wanted | {
        i for i in range(len(lines)) if wanted & {i - 1, i - 2} and wanted & {i + 1, i + 2}
    }


def _number_near(lines: Sequence[Line], position: int) -> int | None:
    """The number, in the file afterwards, of a line or of the one that now stands where it was."""
    return next((x.new for x in lines[position:] if x.new is not None), None)


def _rows(file: FileChange) -> Iterator[str]:
    # Where each line ends in CR, that is how the file is written and tells nothing.
    everywhere = all(x.text.endswith("\r") for h in file.hunks for x in h.lines)
    for i, hunk in enumerate(file.hunks):
        if i:
            yield "  ..."
        for line in hunk.lines:
            number = "" if line.new is None else str(line.new)
            text = line.text.removesuffix("\r") if everywhere else line.text
            yield f"{number:>5} {line.kind} {_cut(text)}"


def _cut(line: str) -> str:
    """A line that is too wide, cut, and seen to be cut: nobody shall take it for broken code."""
    return line if len(line) <= _WIDEST_LINE else f"{line[:_WIDEST_LINE]} ...(the line goes on)"
