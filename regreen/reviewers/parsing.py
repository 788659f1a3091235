"""Syntax that a change breaks: a file that could be read before and cannot be read now."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from regreen.codebase.diff import FileChange
from regreen.codebase.documents import is_document, syntax_fault
from regreen.codebase.grammar import parser
from regreen.codebase.language import PARSED, language_of
from regreen.codebase.symbols import LARGEST
from regreen.models import Evidence
from regreen.reviewers import ruff
from regreen.reviewers.context import Claim, Report, ReviewContext
from regreen.reviewers.correctness import may_mean_python_2
from regreen.reviewers.scope import is_test

if TYPE_CHECKING:
    from tree_sitter import Node


_PYTHON_2 = re.compile(
    r"\s*(?:print\s+[^\s(=]|print$|exec\s+[^\s(=]|raise\s+\w+\s*,|except\s+[\w.]+\s*,\s*\w+\s*:)"
)


class Parsing:
    """Parses each changed file on both sides: every language whose structure is read, JSON, TOML and YAML."""

    name = "syntax"

    def run(self, context: ReviewContext) -> Report:
        """Report the first error of each file that had none at the merge base."""
        files = [
            f
            for f in context.files
            if f.status not in {"added", "deleted", "copied"}
            and (language_of(f.path) in PARSED or is_document(f.path))
        ]
        broken = {f.path: e for f in files if (e := _broken(f, context))}
        broken |= _broken_python(files, context)
        claims = [_claim(f, broken[f.path], context) for f in files if f.path in broken]
        return Report(tuple(claims), read=f"the syntax of {len(files)} files" if files else "")


def _broken(file: FileChange, context: ReviewContext) -> tuple[int, str] | None:
    """Where and why a file that parsed does not any more."""
    if language_of(file.path) == "python":
        return None
    before, after = context.before(file.old_path), context.after(file.path)
    if before is None or after is None or len(after) > LARGEST or not file.hunks:
        return None
    found = _first_error(file.path, after)
    return found if found and _first_error(file.old_path, before) is None else None


def _broken_python(
    files: Sequence[FileChange], context: ReviewContext
) -> dict[str, tuple[int, str]]:
    """The same by ruff, for all Python files at once; syntax that is only newer than asked for is no error."""
    after = {
        f.path: text
        for f in files
        if language_of(f.path) == "python" and f.hunks and (text := context.after(f.path)) is not None
    }  # fmt: skip
    found = _python_errors(after)
    before = {
        f.path: text
        for f in files
        if f.path in found and (text := context.before(f.old_path)) is not None
    }
    sound = before.keys() - _python_errors(before).keys() if before else set()
    return {path: error for path, error in found.items() if path in sound}


def _claim(file: FileChange, found: tuple[int, str], context: ReviewContext) -> Claim:
    line, why = found
    # an error shows itself where the parser gives up, often below the line that caused it
    above = [n for n in file.added_lines if n <= line]
    place = line if line in file.added_lines else max(above, default=line)
    code = "\n".join((context.after(file.path) or "").split("\n")[line - 1 : line])
    likely = 0.7 if is_test(file.path) else 0.9
    if _PYTHON_2.match(code) and file.path.endswith(".py") and may_mean_python_2(context):
        likely = 0.5
    return Claim(
        "correctness",
        "syntax/error",
        "high",
        file.path,
        place,
        place,
        title=f"This file no longer parses: {why}" if why else "This file no longer parses",
        body=f"The parser gives up at line {line}; before this change it read the whole file.",
        confidence=likely,
        evidence=(
            Evidence(
                "analyzer",
                code[:300],
                _reader(file.path),
                head=why or "syntax error",
                base="parses",
            ),
        ),
        anywhere=True,
    )


def _reader(path: str) -> str:
    if is_document(path):
        return f"parser of {path.rpartition('.')[2].upper()}"
    return "ruff (invalid-syntax)" if path.endswith((".py", ".pyi")) else "tree-sitter"


def _first_error(path: str, text: str) -> tuple[int, str] | None:
    if is_document(path):
        return syntax_fault(path, text)
    language = language_of(path)
    if language is None:
        return None
    root = parser(language).parse(text.encode("utf-8", "surrogateescape")).root_node
    return next(_errors(root), (1, "")) if root.has_error else None


def _python_errors(files: Mapping[str, str]) -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = {}
    for hit in ruff.hits(files, ("F821",)):
        if hit.rule == ruff.SYNTAX and "on Python 3." not in hit.message:
            why = hit.message.split("\n", maxsplit=1)[0].strip().rstrip(".")
            found[hit.path] = min(found.get(hit.path, (hit.line, why)), (hit.line, why))
    return found


def _errors(root: Node) -> Iterator[tuple[int, str]]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_missing:
            yield node.start_point[0] + 1, f"`{node.type}` is missing"
        elif node.is_error:
            yield node.start_point[0] + 1, ""
        elif node.has_error:
            waiting.extend(reversed(node.children))
