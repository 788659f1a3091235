"""Reads what checkers and runners of the web say in ways of their own: biome, stylelint, ava."""

from __future__ import annotations

import re

from regreen.fixers.logs.reader import Collector, Kind, number, relative, shorten
from regreen.models import Failure

_BIOME = re.compile(
    r"^(?P<path>[^\s:]{1,400}\.\w{1,10})(?::(?P<line>\d+):(?P<col>\d+))? (?P<code>[a-z]\w*(?:/\w+){0,3})(?: +[A-Z]{2,12})? +━{4,}$"
)
_BIOME_SAID = re.compile(r"^ +(?P<level>[✖×!⚠ℹ]) (?P<message>\S.*)$")
_STYLE_FILE = re.compile(r"^(?P<path>/?[^\s:]\S*\.(?:css|scss|sass|less|vue|html))$")
_STYLELINT = re.compile(
    r"^ +(?P<line>\d+):(?P<col>\d+) +(?:✖|×|error) +(?P<message>\S.*?) {2,}(?P<code>[\w@/-]+)$"
)


class WebCheckReader:
    """Reads biome and stylelint."""

    kind: Kind = "lint"

    def __init__(self) -> None:
        self._found = Collector()
        self._head: re.Match[str] | None = None
        self._file: str | None = None

    def feed(self, line: str) -> None:
        """Take the next line."""
        if not line:
            return
        if self._head is not None and (said := _BIOME_SAID.match(line)):
            self._said(self._head, said)
        elif line.endswith("━━━━"):
            self._head = _BIOME.match(line)
        elif line[0] != " ":
            file = _STYLE_FILE.match(line)
            self._file = relative(file["path"]) if file else None
        elif self._file is not None and (style := _STYLELINT.match(line)):
            self._add(self._file, style["line"], style["col"], style["code"], style["message"])

    def failures(self) -> list[Failure]:
        """What was found."""
        return self._found.all()

    def _said(self, head: re.Match[str], said: re.Match[str]) -> None:
        """The first line below the head says how grave it is; warnings do not fail."""
        self._head = None
        if said["level"] in "✖×":
            path = relative(head["path"])
            self._add(path, head["line"], head["col"], head["code"], said["message"])

    def _add(self, path: str, line: str | None, col: str | None, code: str, message: str) -> None:
        test = f"{path}:{line}:{col}: {code}" if line else f"{path}: {code}"
        at = number(line) if line else None
        self._found.add(Failure(test, code, shorten(message), path, at))


_AVA = re.compile(r"^ +[✘✖] \[fail\]: (?P<name>\S.*)$")
_AVA_SAID = re.compile(
    r" (?:Rejected promise returned by test|Error thrown in test|Test finished without running any assertions)$"
)
_AVA_PLACE = re.compile(
    r"^ +› (?:[^()\s]* ?\()?(?:file://)?(?P<path>[^\s():]+\.[cm]?[jt]sx?):(?P<line>\d+):\d+\)?$"
)


class AvaReader:
    """Reads ava: its list of tests, then a block for each that failed."""

    kind: Kind = "test"

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._places: dict[str, tuple[str, int]] = {}
        self._block: str | None = None

    def feed(self, line: str) -> None:
        """Take the next line."""
        if fail := _AVA.match(line):
            said = _AVA_SAID.search(fail["name"])
            name = fail["name"][: said.start()] if said else fail["name"]
            if len(self._names) < 5_000:
                self._names.setdefault(name, said[0].strip() if said else "")
        elif self._names and line[:2] == "  " and line.strip() in self._names:
            self._block = line.strip()
        elif self._block is not None and (place := _AVA_PLACE.match(line)):
            where = (relative(place["path"]), number(place["line"]))
            self._places.setdefault(self._block, where)

    def failures(self) -> list[Failure]:
        """What failed."""
        found = []
        for name, said in self._names.items():
            path, line = self._places.get(name, (None, None))
            found.append(Failure(name, "error", said, path, line))
        return found
