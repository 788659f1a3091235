"""What a patch did to each file, as values: the input of every check."""

from __future__ import annotations

import ast
import difflib
import json
import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from regreen.code.config_loaders import load_toml
from regreen.code.python_calls import is_python_source, parse_python

_MAX_EXACT_LINES = 4000
ReasonLevel = Literal["deny", "needs_human", "not_made", "note"]


@dataclass(frozen=True, slots=True)
class CheckReason:
    """One thing that a check has to say. Only "deny" and "needs_human" weigh on the verdict."""

    check: str
    detail: str
    level: ReasonLevel = "needs_human"


@dataclass(frozen=True)
class PatchedFile:
    """One file before and after; None where there was, or is, no such file. `binary` where it is not text."""

    path: str
    old: str | None
    new: str | None
    old_mode: str | None = "100644"
    new_mode: str | None = "100644"
    binary: bool = False

    def __reduce__(self) -> tuple[object, ...]:
        """For another process: without what was worked out here, for trees may be large and deep."""
        values = self.path, self.old, self.new, self.old_mode, self.new_mode, self.binary
        return PatchedFile, values

    @property
    def suffix(self) -> str:
        """The name's ending, with its dot."""
        name = self.path.rsplit("/", 1)[-1]
        return f".{name.rsplit('.', 1)[1]}" if "." in name else ""

    @property
    def has_syntax_tree(self) -> bool:
        """Whether an exact tree of its language can be had; stubs included."""
        return is_python_source(self.path)

    @cached_property
    def _opcodes(self) -> Sequence[tuple[str, int, int, int, int]]:
        old, new = _split_lines(self.old), _split_lines(self.new)
        # exact matching takes quadratic time where lines repeat; a generated file has thousands of them
        is_long = max(len(old), len(new)) > _MAX_EXACT_LINES
        return difflib.SequenceMatcher(None, old, new, autojunk=is_long).get_opcodes()

    @cached_property
    def changed_blocks(self) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
        """The places that change: the lines that stood there, and those that stand there now."""
        old, new = _split_lines(self.old), _split_lines(self.new)
        return tuple(
            (tuple(old[a:b]), tuple(new[c:d]))
            for tag, a, b, c, d in self._opcodes
            if tag != "equal"
        )

    @cached_property
    def added_lines(self) -> tuple[tuple[int, str], ...]:
        """The lines that are new, with their 1-based numbers after the change."""
        new = _split_lines(self.new)
        return tuple(
            (number + 1, new[number])
            for tag, _, _, start, stop in self._opcodes
            if tag != "equal"
            for number in range(start, stop)
        )

    @cached_property
    def removed_lines(self) -> tuple[tuple[int, str], ...]:
        """The lines that are gone, with their 1-based numbers before the change."""
        old = _split_lines(self.old)
        return tuple(
            (number + 1, old[number])
            for tag, start, stop, _, _ in self._opcodes
            if tag != "equal"
            for number in range(start, stop)
        )

    def take_back_places(self) -> Iterator[tuple[int, str]]:
        """The text after the change with one changed place as it was before, for each place: its line, and the text."""
        old, new = ((text or "").splitlines(keepends=True) for text in (self.old, self.new))
        for tag, a, b, c, d in self._opcodes:
            if tag != "equal":
                yield c + 1, "".join([*new[:c], *old[a:b], *new[d:]])

    @cached_property
    def added_text(self) -> str:
        """The new lines, joined."""
        return "\n".join(line for _, line in self.added_lines)

    @cached_property
    def old_tree(self) -> ast.Module | None:
        """The syntax tree before, None where it is not Python that parses here."""
        return parse_python(self.old) if self.has_syntax_tree else None

    @cached_property
    def new_tree(self) -> ast.Module | None:
        """The syntax tree after, None where it is not Python that parses here."""
        return parse_python(self.new) if self.has_syntax_tree else None


_PUNCTUATION = re.compile(r"[\s'\"`;,()]+")


def is_layout_only(file: PatchedFile) -> bool:
    """Whether both sides say the same and are only written otherwise: the same syntax tree, or the same signs."""
    old, new = file.old or "", file.new or ""
    if file.old_tree is not None and file.new_tree is not None:
        return ast.dump(file.old_tree) == ast.dump(file.new_tree)
    if file.has_syntax_tree or file.old is None or file.new is None or file.binary:
        return False
    return _PUNCTUATION.sub("", old) == _PUNCTUATION.sub("", new)


def is_same_document(path: str, old: str, new: str) -> bool:
    """Whether two texts of a TOML or JSON file hold the same values, whatever the order of their tables' keys.

    It parses files of the repository: call it in a child process.
    """
    readers: dict[str, Callable[[str], object]] = {"toml": load_toml, "json": json.loads}
    load = readers.get(path.rpartition(".")[2])
    if load is None:
        return False
    # https://nodejs.org/api/packages.html#conditional-exports: of these the first that fits counts
    ordered = {"exports", "imports"} if path.rpartition("/")[2] == "package.json" else set()
    try:
        # written out, 1, 1.0 and true differ
        return repr(_sort_keys(load(old), ordered)) == repr(_sort_keys(load(new), ordered))
    except (ValueError, RecursionError):
        return False


def _sort_keys(value: object, ordered: Set[str]) -> object:
    if isinstance(value, dict):
        return {
            key: value[key] if key in ordered else _sort_keys(value[key], ordered)
            for key in sorted(value)
        }
    return [_sort_keys(part, ordered) for part in value] if isinstance(value, list) else value


def _split_lines(text: str | None) -> list[str]:
    return text.split("\n")[: None if not text.endswith("\n") else -1] if text else []
