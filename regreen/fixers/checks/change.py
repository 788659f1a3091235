"""What a patch did to each file, as values: the input of every check."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from regreen.codebase.python_code import syntax_tree

Level = Literal["deny", "needs_human", "not_made", "note"]


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that a check has to say. Only "deny" and "needs_human" weigh on the verdict."""

    check: str
    detail: str
    level: Level = "needs_human"


@dataclass(frozen=True)
class FileChange:
    """One file before and after; None where there was, or is, no such file. `binary` where it is not text."""

    path: str
    old: str | None
    new: str | None
    old_mode: str | None = "100644"
    new_mode: str | None = "100644"
    binary: bool = False

    @property
    def suffix(self) -> str:
        """The name's ending, with its dot."""
        name = self.path.rsplit("/", 1)[-1]
        return f".{name.rsplit('.', 1)[1]}" if "." in name else ""

    @property
    def is_python(self) -> bool:
        """Python source, stubs included."""
        return self.suffix in {".py", ".pyi"}

    @cached_property
    def _opcodes(self) -> Sequence[tuple[str, int, int, int, int]]:
        return difflib.SequenceMatcher(
            None, _lines(self.old), _lines(self.new), autojunk=False
        ).get_opcodes()

    @cached_property
    def blocks(self) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
        """The places that change: the lines that stood there, and those that stand there now."""
        old, new = _lines(self.old), _lines(self.new)
        return tuple(
            (tuple(old[a:b]), tuple(new[c:d]))
            for tag, a, b, c, d in self._opcodes
            if tag != "equal"
        )

    @cached_property
    def added(self) -> tuple[tuple[int, str], ...]:
        """The lines that are new, with their 1-based numbers after the change."""
        new = _lines(self.new)
        return tuple(
            (number + 1, new[number])
            for tag, _, _, start, stop in self._opcodes
            if tag != "equal"
            for number in range(start, stop)
        )

    @cached_property
    def removed(self) -> tuple[tuple[int, str], ...]:
        """The lines that are gone, with their 1-based numbers before the change."""
        old = _lines(self.old)
        return tuple(
            (number + 1, old[number])
            for tag, start, stop, _, _ in self._opcodes
            if tag != "equal"
            for number in range(start, stop)
        )

    @cached_property
    def added_text(self) -> str:
        """The new lines, joined."""
        return "\n".join(line for _, line in self.added)

    @cached_property
    def old_tree(self) -> ast.Module | None:
        """The syntax tree before, None where it is not Python that parses here."""
        return parse_python(self.old) if self.is_python else None

    @cached_property
    def new_tree(self) -> ast.Module | None:
        """The syntax tree after, None where it is not Python that parses here."""
        return parse_python(self.new) if self.is_python else None


def parse_python(text: str | None) -> ast.Module | None:
    """Parse, or answer None for what does not parse (too deep nesting included)."""
    if text is None:
        return None
    try:
        return syntax_tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _lines(text: str | None) -> list[str]:
    return text.split("\n")[: None if not text.endswith("\n") else -1] if text else []
