"""Syntax that a change breaks: a file that could be read before and cannot be read now."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from regreen.code.config_loaders import TomlTooLarge, load_toml
from regreen.code.diff import FileChange
from regreen.code.file_languages import has_outline, language_of, parser_for
from regreen.code.paths import is_test
from regreen.code.python_calls import is_module
from regreen.code.symbols import MAX_PARSED_BYTES
from regreen.domain.models import UnreadFile
from regreen.languages.registry import has_capability
from regreen.languages.script import is_typed_script
from regreen.reviewers.analyzers import bundled_checkers
from regreen.reviewers.analyzers.baseline import make_analyzer_claim
from regreen.reviewers.analyzers.correctness import may_mean_python_2
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport
from regreen.secrets.markdown_sanitizer import count_noun

if TYPE_CHECKING:
    from tree_sitter import Node

_PYTHON_2 = re.compile(
    r"\s*(?:print\s+[^\s(=]|print$|exec\s+[^\s(=]|raise\s+\w+\s*,|except\s+[\w.]+\s*,\s*\w+\s*:)"
)


class BrokenSyntax:
    """Parses each changed file on both sides: every language whose structure is read, JSON, TOML and YAML."""

    name = "syntax"

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Report the first error of each file that had none at the merge base."""
        files = [
            f
            for f in context.files
            if f.status not in {"added", "deleted", "copied"}
            and (has_outline(f.path) or is_readable_document(f.path))
        ]
        broken, unread = dict[str, tuple[int, str]](), list[UnreadFile]()
        for file in files:
            try:
                if found := _find_broken_place(file, context):
                    broken[file.path] = found
            except DocumentTooDeep as error:
                unread.append(UnreadFile(file.path, f"not parsed: {error}"))
        broken |= _find_broken_python(files, context)
        claims = [_make_claim(f, broken[f.path], context) for f in files if f.path in broken]
        read = f"the syntax of {count_noun(len(files) - len(unread), 'file')}" if files else ""
        return ReviewerReport(tuple(claims), read, is_narrow=True, unread=tuple(unread))


def _find_broken_place(file: FileChange, context: ReviewContext) -> tuple[int, str] | None:
    """Where and why a file that parsed does not any more."""
    if has_capability(file.path, "checkers", stubs=True):
        return None
    before, after = context.base_text(file.old_path), context.head_text(file.path)
    if before is None or after is None or len(after) > MAX_PARSED_BYTES or not file.hunks:
        return None
    found = _find_first_error(file.path, after)
    return found if found and _find_first_error(file.old_path, before) is None else None


def _find_broken_python(
    files: Sequence[FileChange], context: ReviewContext
) -> dict[str, tuple[int, str]]:
    """The same by ruff, for all Python files at once; syntax that is only newer than asked for is no error."""
    after = {
        f.path: text
        for f in files
        if has_capability(f.path, "checkers", stubs=True)
        and f.hunks
        and (text := context.head_text(f.path)) is not None
    }
    found = _find_python_errors(after)
    before = {
        f.path: text
        for f in files
        if f.path in found and (text := context.base_text(f.old_path)) is not None
    }
    sound = before.keys() - _find_python_errors(before).keys() if before else set()
    return {path: error for path, error in found.items() if path in sound}


def _make_claim(file: FileChange, found: tuple[int, str], context: ReviewContext) -> Claim:
    line, why = found
    # a parser often stops below the line that caused the error
    above = [n for n in file.added_lines if n <= line]
    place = line if line in file.added_lines else max(above, default=line)
    code = "\n".join((context.head_text(file.path) or "").split("\n")[line - 1 : line])
    likely = 0.7 if is_test(file.path) else 0.9
    if _PYTHON_2.match(code) and is_module(file.path) and may_mean_python_2(context):
        likely = 0.5
    return make_analyzer_claim(
        "syntax/error",
        "high",
        file.path,
        (place, place),
        title=f"This file no longer parses: {why}" if why else "This file no longer parses",
        body=f"The parser gives up at line {line}; before this change it read the whole file.",
        confidence=likely,
        excerpt=code[:300],
        source=_parser_name(file.path),
        head=why or "syntax error",
        base="parses",
        anywhere=True,
    )


def _parser_name(path: str) -> str:
    if is_readable_document(path):
        return f"parser of {path.rpartition('.')[2].upper()}"
    return (
        "ruff (invalid-syntax)" if has_capability(path, "checkers", stubs=True) else "tree-sitter"
    )


_NESTED_GENERIC = re.compile(r"<<(?=[A-Za-z_$][\w$]{0,60}[ ,>])")


def _find_first_error(path: str, text: str) -> tuple[int, str] | None:
    if is_readable_document(path):
        return find_syntax_fault(path, text)
    language = language_of(path)
    if language is None:
        return None
    if is_typed_script(path):  # the grammar takes `Of<<T>(x: T) => T>` for a shift
        text = _NESTED_GENERIC.sub("< <", text)
    root = parser_for(language).parse(text.encode("utf-8", "surrogateescape")).root_node
    return next(_find_errors(root), (1, "")) if root.has_error else None


def _find_python_errors(files: Mapping[str, str]) -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = {}
    for hit in bundled_checkers.run_ruff(files, ("F821",)):
        if hit.rule == bundled_checkers.SYNTAX_RULE and "on Python 3." not in hit.message:
            why = hit.message.split("\n", maxsplit=1)[0].strip().rstrip(".")
            found[hit.path] = min(found.get(hit.path, (hit.line, why)), (hit.line, why))
    return found


def _find_errors(root: Node) -> Iterator[tuple[int, str]]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_missing:
            yield node.start_point[0] + 1, f"`{node.type}` is missing"
        elif node.is_error:
            yield node.start_point[0] + 1, ""
        elif node.has_error:
            waiting.extend(reversed(node.children))


# Whether JSON, TOML and YAML files are well-formed; schemas are not checked.

_MAX_CHARACTERS = 256 * 1024
"""Longer ones are data, and YAML is slow to read."""
_WITH_COMMENTS = re.compile(
    r"(?:^|/)(?:[tj]sconfig[^/]*|\.eslintrc|\.babelrc|devcontainer|api-extractor|\.swcrc|turbo|deno|biome|renovate)\.json$"
    r"|(?:^|/)\.(?:vscode|devcontainer|zed)/"
)
"""JSON whose readers allow comments and trailing commas."""
_TEMPLATE = re.compile(r"\{\{|\{%|<%")
_ERROR_PLACE = re.compile(r"\s{0,40}\(at (?:line (\d+), column \d+|end of document)\)")


class DocumentTooDeep(ValueError):
    """The document exceeds a limit of its parser: nesting, keys or numbers."""


def is_readable_document(path: str) -> bool:
    """Whether `find_syntax_fault` checks files of this name."""
    pure = PurePosixPath(path)
    if pure.suffix == ".json":
        return not _WITH_COMMENTS.search(path)
    return pure.suffix in {".toml", ".yml", ".yaml"}


def find_syntax_fault(path: str, text: str) -> tuple[int, str] | None:
    """The line (1-based) at which the parser stops, and why; None for a well-formed or long file and for a template.

    Raises:
        DocumentTooDeep: the parser stopped at one of its limits.
    """
    # GitHub evaluates `${{ }}` after parsing the YAML; templates are rendered before
    if len(text) > _MAX_CHARACTERS or (_TEMPLATE.search(text) and not path.startswith(".github/")):
        return None
    readers = {".json": _json_fault, ".toml": _toml_fault}
    try:
        return readers.get(PurePosixPath(path).suffix, _yaml_fault)(text)
    except (ValueError, RecursionError):
        message = "nested too deeply, or a key or a number too long"
        raise DocumentTooDeep(message) from None


def _json_fault(text: str) -> tuple[int, str] | None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.lineno, error.msg
    return None


def _toml_fault(text: str) -> tuple[int, str] | None:
    try:
        load_toml(text)
    except TomlTooLarge:
        raise
    except tomllib.TOMLDecodeError as error:
        place = _ERROR_PLACE.search(str(error))
        line = int(place[1]) if place and place[1] else text.count("\n") + 1
        return line, _ERROR_PLACE.sub("", str(error))
    return None


def _yaml_fault(text: str) -> tuple[int, str] | None:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    from regreen.code.config_loaders import locate_fault

    try:
        for _ in YAML(typ="safe", pure=True).parse(text):
            pass
    except YAMLError as error:
        return locate_fault(text, error)
    return None
