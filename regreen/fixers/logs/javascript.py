"""Reads JavaScript's test runners: jest, vitest, mocha, node --test and TAP."""

from __future__ import annotations

import re

from regreen.fixers.logs.reader import Collector, Kind, innermost, number, relative, shorten
from regreen.models import Failure, Frame

_AT = re.compile(
    r"^ *(?:at|❯) (?:(?P<function>[^()]{1,200}?) \(?)?(?P<path>(?:file://)?[^\s():]*[^\s():/]\.[cm]?[jt]sx?):(?P<line>\d+):\d+\)?$"
)
_KIND = re.compile(
    r"^(?P<kind>[A-Z]\w*(?:Error|Exception|Failure)\w*)(?: \[\w+\])?: ?(?P<message>.*)$"
)
_JEST_FILE = re.compile(
    r"^ ?(?:FAIL|PASS) +(?:[^\s>|][^>|]{0,80}? +)?(?P<path>[^\s>]+\.[cm]?[jt]sx?)(?: \([\d.]+ ?m?s\))?$"
)
_JEST_TEST = re.compile(r"^ {2}● (?P<name>\S.*)$")
_VITEST = re.compile(
    r"^ ?FAIL +(?:\|[^|]{1,80}\| +|[^\s>|][^>|]{0,80}? +)?(?P<name>[^\s>]+\.[cm]?[jt]sx?(?: > .+| \[ .+ \]))$"
)
_STRAY = re.compile(
    r"^⎯+ (?:Unhandled (?:Rejection|Error)|Uncaught Exception|Unhandled Source Error) ⎯+$"
)
_STRAY_FROM = re.compile(r'^This error originated in "(?P<path>[^"]{1,400})" test file')
_NODE_TAP = re.compile(r"^ *not ok \d+(?: -)? (?P<name>[^#\s].*?)(?P<todo> # (?:TODO|SKIP).*)?$")
_NODE_SPEC = re.compile(r"^ *✖ (?P<name>\S.*?) \([\d.]+ms\)$")
_MOCHA = re.compile(r"^ {2,}(?P<number>\d+)\) (?P<name>\S.*)$")
_NOT_TESTS = (
    "Console",
    "Cannot log after tests are done",
    "Deprecation Warning",
    "Validation Warning",
)


class _Open:
    """The failure whose lines are being read."""

    def __init__(self, test: str, path: str | None) -> None:
        self.test = test
        self.path = path
        self.kind = ""
        self.said: list[str] = []
        self.frames: list[Frame] = []

    def feed(self, line: str) -> None:
        if (at := _AT.match(line)) and len(self.frames) < 50:
            self.frames.append(
                Frame(relative(at["path"]), number(at["line"]), (at["function"] or "").strip())
            )
            return
        said = line.strip()
        if not said or len(self.said) >= 12 or re.match(r"^[>]? *\d* *\|", said):
            return
        if not self.kind and (named := _KIND.match(said)):
            self.kind = named["kind"]
        self.said.append(said)

    def failure(self) -> Failure:
        path, line = innermost(tuple(reversed(self.frames)))
        kind = self.kind or (
            "AssertionError" if any("expect(" in one for one in self.said[:2]) else "error"
        )
        return Failure(
            self.test,
            kind,
            shorten("\n".join(self.said)),
            path or self.path,
            line,
            tuple(self.frames),
        )


class JestReader:
    """Reads jest's `●` blocks."""

    kind: Kind = "test"

    def __init__(self) -> None:
        self._found = Collector()
        self._open: _Open | None = None
        self._file: str | None = None

    def feed(self, line: str) -> None:
        """Take the next line."""
        if file := _JEST_FILE.match(line):
            self._close()
            self._file = relative(file["path"])
        elif self._file and (test := _JEST_TEST.match(line)):
            self._close()
            name = test["name"].strip()
            if not name.startswith(_NOT_TESTS):
                suite = name == "Test suite failed to run"
                self._open = _Open(self._file if suite else name, self._file)
        elif line.startswith(
            ("Test Suites: ", "Tests: ", "Summary of all failing", "Snapshot Summary")
        ):
            self._close()
        elif self._open is not None:
            self._open.feed(line)

    def failures(self) -> list[Failure]:
        """What failed, each once: jest repeats itself at the end."""
        found: dict[tuple[str, str | None], Failure] = {}
        last = [self._open.failure()] if self._open else []
        for failure in (*self._found.all(), *last):
            found.setdefault((failure.test, failure.path), failure)
        return list(found.values())

    def _close(self) -> None:
        if self._open is not None:
            self._found.add(self._open.failure())
            self._open = None


class VitestReader:
    """Reads vitest's ` FAIL  file > suite > test` blocks."""

    kind: Kind = "test"

    def __init__(self) -> None:
        self._found: dict[str, Failure] = {}
        self._open: list[_Open] = []
        self._fresh = False
        self._stray: _Open | None = None

    def feed(self, line: str) -> None:
        """Take the next line."""
        test = _VITEST.match(line)
        if test and ("Failed Suites" in test["name"] or "Failed Tests" in test["name"]):
            return
        if test:
            if not self._fresh:
                self._close()
            name = re.sub(r" \[ .* \]$", "", test["name"]).strip()
            self._open.append(_Open(name, relative(name.split(" > ", 1)[0])))
            self._fresh = True
        elif _STRAY.match(line):
            self._close()
            self._stray = _Open("", None)
        elif self._stray is not None:
            self._strayed(self._stray, line)
        elif "⎯⎯" in line or line.startswith((" Test Files ", "      Tests ")):
            self._close()
        elif self._open:
            self._fresh = False
            for one in self._open:
                one.feed(line)

    def failures(self) -> list[Failure]:
        """What failed; a bare ` FAIL  file` (jest's way) without an error below is not ours."""
        self._close()
        return list(self._found.values())

    def _strayed(self, stray: _Open, line: str) -> None:
        """An error outside of every test; it is its file's, where vitest says whose."""
        if origin := _STRAY_FROM.match(line):
            stray.test = relative(origin["path"])
            self._open, self._stray = [stray], None
            self._close()
        elif line.startswith((" Test Files ", "      Tests ")):
            self._open, self._stray = [stray], None
            self._close()
        else:
            stray.feed(line)

    def _close(self) -> None:
        for one in self._open:
            if (one.said or one.frames) and one.test not in self._found and len(self._found) < 5000:
                self._found[one.test] = one.failure()
        self._open, self._fresh = [], False


class MochaReader:
    """Reads mocha's numbered list after `N failing`."""

    kind: Kind = "test"

    def __init__(self) -> None:
        self._found = Collector()
        self._names: list[str] | None = None
        self._open: _Open | None = None
        self._failing = False

    def feed(self, line: str) -> None:
        """Take the next line."""
        if re.match(r"^ +\d+ failing$", line):
            self._failing = True
        elif not self._failing:
            return
        elif head := _MOCHA.match(line):
            self._close()
            self._names = [head["name"]]
            self._name_done(line)
        elif self._names is not None and line.strip():
            self._names.append(line.strip())
            self._name_done(line)
        elif self._open is not None:
            self._open.feed(line)

    def failures(self) -> list[Failure]:
        """What failed."""
        return [*self._found.all(), *([self._open.failure()] if self._open else [])]

    def _name_done(self, line: str) -> None:
        if self._names and line.rstrip().endswith(":"):
            self._open = _Open(" ".join(self._names).rstrip(":"), None)
            self._names = None

    def _close(self) -> None:
        if self._open is not None:
            self._found.add(self._open.failure())
        self._open = None


class NodeReader:
    """Reads `node --test` (spec and TAP) and other TAP producers."""

    kind: Kind = "test"

    def __init__(self) -> None:
        self._found: dict[str, _Open] = {}
        self._open: _Open | None = None
        self._listing = False

    def feed(self, line: str) -> None:
        """Take the next line."""
        if line.strip() == "✖ failing tests:":
            self._listing = True
        elif (tap := _NODE_TAP.match(line)) and not tap["todo"]:
            self._start(tap["name"])
        elif spec := _NODE_SPEC.match(line):
            self._start(spec["name"])
        elif self._open is not None:
            if line.startswith(("test at ", "ok ", "# ", "ℹ ", "1..")):
                self._open = None
            else:
                self._open.feed(line)

    def failures(self) -> list[Failure]:
        """What failed."""
        return [one.failure() for one in self._found.values()]

    def _start(self, name: str) -> None:
        if name not in self._found and len(self._found) < 5000:
            self._found[name] = _Open(name, None)
        self._open = self._found.get(name)
