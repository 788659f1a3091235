"""Reads the output of linters, compilers, installers and the runner by the rows of `log_matchers.toml`.

The head of that table explains its columns.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from regreen.domain.models import Failure
from regreen.logs.reader import (
    FailureCollector,
    Kind,
    make_relative,
    parse_line_number,
    shorten_message,
)

_MAX_OPEN = 200

MatchedFields = dict[str, str | None]


@dataclass(frozen=True)
class MatcherRow:
    """One row: which lines it takes, and what they mean."""

    match: str
    tool: str = ""
    has: str | list[str] = ""
    after: str = ""
    within: int = 0
    opens: str = ""
    gathers: bool = False
    closes: str = ""
    skips: bool = False
    passes: bool = False
    code: str = ""
    message: str = ""
    kind: str = ""
    test: str = ""
    path: str = ""
    example: str = ""
    finds: str = ""


@cache
def load_rows() -> Mapping[str, tuple[tuple[MatcherRow, re.Pattern[str]], ...]]:
    """Each reader's rows with their patterns."""
    text = resources.files("regreen.logs").joinpath("log_matchers.toml").read_text("utf-8")
    tables = tomllib.loads(text)
    path = tables.pop("parts")["PATH"]
    return {
        reader: tuple(
            (MatcherRow(**row), re.compile(row["match"].replace("{PATH}", path))) for row in table
        )
        for reader, table in tables.items()
    }


class MatchReader:
    """Reads the tools of one table."""

    def __init__(self, table: str, kind: Kind) -> None:
        self.kind = kind
        self._rows = load_rows()[table]
        self._found = FailureCollector()
        self._open: dict[str, list[MatchedFields]] = {}
        self._opened: dict[str, int] = {}
        self._lines = 0

    def feed(self, line: str) -> None:
        """Take the next line."""
        self._lines += 1
        lowered = line.lower()
        for row, pattern in self._rows:
            if isinstance(row.has, str):
                if row.has not in line:
                    continue
            elif not any(word in lowered for word in row.has):
                continue
            if row.after and not self._is_open(row):
                continue
            if (match := pattern.match(line)) is not None:
                self._apply_row(row, {"text": line, **match.groupdict()})
                if not row.passes:
                    return

    def failures(self) -> list[Failure]:
        """The failures found, in the order of the log."""
        return self._found.all()

    def _is_open(self, row: MatcherRow) -> bool:
        age = self._lines - self._opened.get(row.after, 0)
        return row.after in self._open and (not row.within or age <= row.within)

    def _apply_row(self, row: MatcherRow, fields: MatchedFields) -> None:
        if row.opens:
            before = self._open.get(row.opens, [])[-_MAX_OPEN:] if row.gathers else []
            self._open[row.opens], self._opened[row.opens] = [*before, fields], self._lines
        elif not row.skips:
            for opened in self._open.get(row.after, [{}]):
                self._add_failure(row, {**_without_empty(opened), **_without_empty(fields)})
        self._open.pop(row.closes, None)

    def _add_failure(self, row: MatcherRow, fields: dict[str, str]) -> None:
        line, code = fields.get("line"), fields.get("code") or row.code
        path = row.path or fields.get("path")
        if path:
            fields["path"] = path = make_relative(path)
        place = ":".join(part for part in (path, line, fields.get("col")) if part)
        test = row.test.format_map(fields) or ": ".join(part for part in (place, code) if part)
        message = fields.get("message") or row.message.format_map(fields)
        self._found.add(
            Failure(
                test.strip(" ,"),
                row.kind or code,
                shorten_message(message),
                path,
                parse_line_number(line) if line else None,
            )
        )


def _without_empty(fields: MatchedFields) -> dict[str, str]:
    return {name: text for name, text in fields.items() if text}
