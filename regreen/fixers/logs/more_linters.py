"""Reads checkers that say the place and the finding in ways of their own: grouped under a file, or in two lines."""

from __future__ import annotations

import re

from regreen.fixers.logs.reader import Collector, Kind, number, relative, shorten
from regreen.models import Failure

_BRACKETED = re.compile(
    r"^(?P<path>[^\s:][^:\n]{0,500}\.\w{1,10}):(?P<line>\d+): \[(?P<code>[A-Z]{1,6}\d{1,5})(?:\([\w-]+\))?(?:, [^\]]*)?\] (?P<message>\S.*)$"
)
_CODED = re.compile(
    r"^(?P<path>[^\s:][^:\n]{0,500}\.(?:rst|md|txt)):(?P<line>\d+): (?P<code>D\d{3}) (?P<message>\S.*)$"
)
_VULTURE = re.compile(
    r"^(?P<path>[^\s:][^:\n]{0,500}\.py):(?P<line>\d+): (?P<message>\S.* \(\d+% confidence\))$"
)
_HEADER = re.compile(r"^(?P<path>[^\s:][^:\n]{0,500}\.\w{1,10}):?$")
_GROUPED = re.compile(
    r"^ +(?P<line>\d+):(?P<col>\d+) +(?:(?P<code>[A-Z]{1,6}\d{1,5})|error) +(?:\[\*\] )?(?P<message>\S.*)$"
)
_RULE = re.compile(r"^(?P<message>.*\S) +\((?P<code>[\w-]+)\)$")
_BANDIT = re.compile(r"^>> Issue: \[(?P<code>B\d{3})(?::[\w-]+)?\] (?P<message>\S.*)$")
_BANDIT_PLACE = re.compile(r"^ +Location: (?P<path>\S.*?):(?P<line>\d+)(?::(?P<col>\d+))?$")
_DOCSTYLE_PLACE = re.compile(
    r"^(?P<path>[^\s:][^:\n]{0,500}\.py):(?P<line>\d+) (?:at|in) .{1,300}:$"
)
_DOCSTYLE = re.compile(r"^ +(?P<code>D\d{3}): (?P<message>\S.*)$")
_COVERAGE = re.compile(r"^Coverage failure: total of \d+(?:\.\d+)? is less than fail-under=\S+$")
_INTERROGATE = re.compile(r"^RESULT: FAILED \(minimum: \S+, actual: \S+\)$")
_CHECKERS_OF_FILES = frozenset({"yml", "yaml", "py", "pyi", "ipynb", "toml"})


class GroupedReader:
    """Reads ruff's grouped output, yamllint, bandit, pydocstyle, doc8, vulture, and limits of coverage."""

    kind: Kind = "lint"

    def __init__(self) -> None:
        self._found = Collector()
        self._file: str | None = None
        self._issue: re.Match[str] | None = None
        self._place: re.Match[str] | None = None

    def feed(self, line: str) -> None:
        """Take the next line."""
        if not line:
            self._file = None
        elif line[0] == " ":
            self._indented(line)
        elif found := _BRACKETED.match(line) or _CODED.match(line):
            self._add(found["path"], found["line"], None, found["code"], found["message"])
        elif line.endswith("confidence)") and (unused := _VULTURE.match(line)):
            self._add(unused["path"], unused["line"], None, "vulture", unused["message"])
        elif issue := _BANDIT.match(line):
            self._issue = issue
        elif place := _DOCSTYLE_PLACE.match(line):
            self._place = place
        elif _COVERAGE.match(line) or _INTERROGATE.match(line):
            self._found.add(Failure("coverage", "coverage", shorten(line)))
        else:
            self._headed(line)

    def failures(self) -> list[Failure]:
        """What was found."""
        return self._found.all()

    def _headed(self, line: str) -> None:
        header = _HEADER.match(line)
        known = header is not None and header["path"].rpartition(".")[2] in _CHECKERS_OF_FILES
        self._file = header["path"] if header is not None and known else None

    def _indented(self, line: str) -> None:
        if self._issue is not None and (place := _BANDIT_PLACE.match(line)):
            issue, self._issue = self._issue, None
            self._add(place["path"], place["line"], place["col"], issue["code"], issue["message"])
        elif self._place is not None and (style := _DOCSTYLE.match(line)):
            place, self._place = self._place, None
            self._add(place["path"], place["line"], None, style["code"], style["message"])
        elif self._file is not None and (grouped := _GROUPED.match(line)):
            message, code = grouped["message"], grouped["code"] or "error"
            if grouped["code"] is None and (rule := _RULE.match(message)):
                message, code = rule["message"], rule["code"]
            self._add(self._file, grouped["line"], grouped["col"], code, message)

    def _add(self, path: str, line: str, col: str | None, code: str, message: str) -> None:
        where = relative(path)
        at = f"{line}:{col}" if col else line
        self._found.add(
            Failure(f"{where}:{at}: {code}", code, shorten(message), where, number(line))
        )
