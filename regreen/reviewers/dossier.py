"""What a model is shown of a change: numbered lines, the code around them, all of it fenced as data."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from regreen.codebase.diff import FileChange, parse
from regreen.models import Unread
from regreen.reviewers.context import ReviewContext

_WIDEST_LINE = 400
_CONTEXT_LINES = 25
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
    unread: list[Unread] = []
    for file in context.files:
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
    mark = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return f"<{name} id={mark}>\n{visible(text)}\n</{name} id={mark}>"


def visible(text: str) -> str:
    """Text with everything that a person would not see written out: invisible, bidirectional and control characters."""
    return "".join(
        c if c in "\n\t" or unicodedata.category(c)[0] != "C" else f"\\u{ord(c):04x}" for c in text
    )


def numbered(text: str, start: int = 1) -> str:
    """A text with its line numbers."""
    return "\n".join(
        f"{n:>5}   {line[:_WIDEST_LINE]}" for n, line in enumerate(text.split("\n"), start)
    )


def _dossier(
    context: ReviewContext,
    portion: Sequence[tuple[FileChange, str]],
    related: Related | None,
    budget: int,
) -> Dossier:
    files = tuple(f for f, _ in portion)
    parts = [
        "# The pull request, in its author's words\n"
        + fence("author", f"{context.title}\n\n{context.body[:4000]}"),
        "# The change\nEach line: its number in the file afterwards, `+` added, `-` removed (no number), else kept.\n"
        + "\n\n".join(text for _, text in portion),
    ]
    if context.config.review.instructions:
        parts.insert(
            0, "# What the maintainers ask reviewers to mind\n" + context.config.review.instructions
        )
    if related is not None and (found := related(context, files, budget // 3)):
        parts.append(
            "# Code elsewhere in the repository that bears on it\n" + fence("repository", found)
        )
    return Dossier("\n\n".join(parts), files)


def _file(context: ReviewContext, file: FileChange, room: int) -> str | None:
    for lines_around in (_CONTEXT_LINES, 3):
        wide = _widened(context, file, lines_around)
        text = f"## {visible(file.path)} ({file.status})\n" + fence("diff", "\n".join(_rows(wide)))
        if len(text) <= room:
            return text
    return None


def _widened(context: ReviewContext, file: FileChange, lines_around: int) -> FileChange:
    if context.git is None or lines_around <= 3:
        return file
    paths = [file.path] if file.old_path in {"", file.path} else [file.old_path, file.path]
    diff = context.git.diff(context.merge_base, context.head, paths=paths, context=lines_around)
    return next((f for f in parse(diff).files if f.path == file.path), file)


def _rows(file: FileChange) -> Iterator[str]:
    for i, hunk in enumerate(file.hunks):
        if i:
            yield "  ..."
        for line in hunk.lines:
            number = "" if line.new is None else str(line.new)
            yield f"{number:>5} {line.kind} {line.text[:_WIDEST_LINE]}"
