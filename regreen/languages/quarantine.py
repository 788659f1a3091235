"""Markers that set one test aside: a line above its definition, or the first line of its body."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from regreen.code.symbols import Definition, read_outline

_PREFIX = "quarantined: "
_CHARACTER = r'(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-f]{4}))'
_MAX_REASON = 200


@dataclass(frozen=True, slots=True)
class MarkerAbove:
    """A decorator, attribute or annotation on a line of its own above the test.

    `line` has a place for the quoted `{reason}`; `needs` is an import that the marker uses.
    """

    line: str
    needs: str = ""

    def apply(self, path: str, text: str, test: str, reason: str) -> str | None:
        """The text with the test set aside; None where the file defines no such test."""
        found = _find_test(path, text, test)
        if found is None:
            return None
        rows = text.split("\n")
        indent = re.match(r"[ \t]*", rows[found.start - 1])
        rows.insert(found.start - 1, f"{indent[0] if indent else ''}{_write(self.line, reason)}")
        if self.needs and self.needs not in rows:
            rows.insert(_first_import(path, text), self.needs)
        return "\n".join(rows)

    def find(self, path: str, text: str) -> dict[str, str]:
        """The tests that are set aside, with the reasons."""
        return _find_marked(self.line, path, text)


@dataclass(frozen=True, slots=True)
class MarkerInBody:
    """A call in the first line of the test's body, which opens with a brace.

    `line` has a place for the quoted `{reason}`; `signature` is what the opening line must hold for it to compile.
    """

    line: str
    signature: str

    def apply(self, path: str, text: str, test: str, reason: str) -> str | None:
        """The text with the test set aside; None where the file defines no such test on lines of its own."""
        found = _find_test(path, text, test)
        rows = text.split("\n")
        opening = rows[found.start - 1] if found else ""
        if found is None or self.signature not in opening or not opening.rstrip().endswith("{"):
            return None
        rows.insert(found.start, _write(self.line, reason))
        return "\n".join(rows)

    def find(self, path: str, text: str) -> dict[str, str]:
        """The tests that are set aside, with the reasons."""
        return _find_marked(self.line, path, text)


def _write(line: str, reason: str) -> str:
    plain = " ".join(reason.split())[:_MAX_REASON]
    return line.replace("{reason}", json.dumps(f"{_PREFIX}{plain}", ensure_ascii=False))


def _find_marked(line: str, path: str, text: str) -> dict[str, str]:
    before, _, after = map(re.escape, line.strip().partition("{reason}"))
    marker = re.compile(rf'[ \t]*{before}("{_PREFIX}{_CHARACTER}{{0,{_MAX_REASON}}}"){after}[ \t]*')
    return {
        test.name: json.loads(found[1]).removeprefix(_PREFIX)
        for test, rows in _find_tests(path, text)
        for row in rows
        if (found := marker.fullmatch(row))
    }


def _find_tests(path: str, text: str) -> Iterator[tuple[Definition, list[str]]]:
    """Functions and methods with their rows, and the rows right above that annotate them."""
    rows = text.split("\n")
    for test in read_outline(path, text.encode("utf-8", "surrogateescape")).definitions:
        if test.kind in {"function", "method"}:
            start = test.start - 1
            while start > 0 and rows[start - 1].lstrip().startswith(("@", "#[")):
                start -= 1
            yield test, rows[start : test.end]


def _find_test(path: str, text: str, name: str) -> Definition | None:
    return next((test for test, _ in _find_tests(path, text) if test.name == name), None)


def _first_import(path: str, text: str) -> int:
    """The row of the file's first import, counted from 0; of its first definition where it imports nothing."""
    outline = read_outline(path, text.encode("utf-8", "surrogateescape"))
    imports = {row.split("\n", 1)[0] for row in outline.imports}
    rows = text.split("\n")
    first = next((number for number, row in enumerate(rows) if row in imports), None)
    return (
        first if first is not None else min((d.start - 1 for d in outline.definitions), default=0)
    )
