"""Reads JavaScript's test runners: jest, vitest, mocha, node --test, TAP, ava, playwright, deno and bun."""

from __future__ import annotations

import re
from dataclasses import replace

from regreen.domain.models import Failure, StackFrame
from regreen.logs.reader import (
    FailureCollector,
    Kind,
    find_innermost,
    make_relative,
    parse_line_number,
    shorten_message,
)

STACK_FRAME = re.compile(
    r"^ *(?:at|❯) (?:(?P<function>[^()]{1,200}?) \(?)?(?:webpack://[^\s():/]{0,100}/)?(?P<path>(?:file://)?[^\s():]*[^\s():/]\.[cm]?[jt]sx?):(?P<line>\d+):\d+\)?$"
)
_ERROR_KIND = re.compile(
    r"^(?P<kind>[A-Z]\w{0,200}(?:Error|Exception|Failure)\w{0,100})(?: \[\w+\])?: ?(?P<message>.*)$"
)
_JEST_FILE = re.compile(
    r"^ ?(?:FAIL|PASS) +(?:[^\s>|][^>|]{0,80}? +)?(?P<path>[^\s>]+\.[cm]?[jt]sx?)(?: \([\d.]+ ?m?s\))?$"
)
_JEST_TEST = re.compile(r"^ {2}● (?P<name>\S.*)$")
_VITEST_HEADING = re.compile(
    r"^ ?FAIL +(?:\|[^|]{1,80}\| +|[^\s>|][^>|]{0,80}? +)?(?P<name>[^\s>]+\.[cm]?[jt]sx?(?: > .+| \[ .+ \]))$"
)
_UNHANDLED_ERROR = re.compile(
    r"^⎯+ (?:Unhandled (?:Rejection|Error)|Uncaught Exception|Unhandled Source Error) ⎯+$"
)
_UNHANDLED_ORIGIN = re.compile(r'^This error originated in "(?P<path>[^"]{1,400})" test file')
_NODE_TAP = re.compile(r"^ *not ok \d+(?: -)? (?P<name>[^#\s].*?)(?P<todo> # (?:TODO|SKIP).*)?$")
_TAP_FIELD = re.compile(
    r"^ +(?P<key>duration_ms|type|location|failureType|error|code|name|expected|actual|operator|stack|exitCode|signal): ?(?P<value>.*)$"
)
_TAP_PLACE = re.compile(r"^'(?P<path>[^']+?):(?P<line>\d+):\d+'$")
_NODE_SPEC = re.compile(r"^ *✖ (?P<name>\S.*?) \([\d.]+ms\)$")
_MOCHA_HEADING = re.compile(r"^ {2,}(?P<number>\d+)\) (?P<name>\S.*)$")
_PLAYWRIGHT_HEADING = re.compile(
    r"^ {1,8}\d+\) (?:\[[^\]]{1,80}\] › )?(?P<path>[^\s:]+\.[cm]?[jt]sx?):(?P<line>\d+):\d+ › (?P<name>\S(?:.*[^ ─])?) *─*$"
)
_PLAYWRIGHT_END = re.compile(r"^ {2}\d+ (?:failed|flaky|skipped|passed|did not run|interrupted)\b")
_DENO_HEADING = re.compile(
    r"^(?P<name>\S.*?) => (?P<path>(?:\./|file://|https?://)\S+?\.[cm]?[jt]sx?):(?P<line>\d+):\d+$"
)
_DENO_SECTION = re.compile(r"^ ?(?P<name>ERRORS|FAILURES) ?$")
_BUN_FILE = re.compile(r"^(?P<path>\S+\.[cm]?[jt]sx?):$")
_BUN_RESULT = re.compile(r"^\((?P<how>pass|fail|skip|todo)\) (?P<name>\S.*?)(?: \[[\d.]+m?s\])?$")
_NOT_TESTS = (
    "Console",
    "Cannot log after tests are done",
    "Deprecation Warning",
    "Validation Warning",
)


class _OpenFailure:
    """The failure whose lines are being read."""

    def __init__(self, test: str, path: str | None) -> None:
        self.test = test
        self.path = path
        self.kind = ""
        self.message_lines: list[str] = []
        self.frames: list[StackFrame] = []

    def add_frame(self, line: str) -> bool:
        """Take a line that is a frame of the stack."""
        at = STACK_FRAME.match(line)
        if at is None or len(self.frames) >= 50:
            return False
        where = parse_line_number(at["line"])
        called = (at["function"] or "").strip()
        self.frames.append(StackFrame(make_relative(at["path"]), where, called))
        return True

    def feed(self, line: str) -> None:
        if self.add_frame(line):
            return
        text = line.strip().removeprefix("error: ")
        if (
            not text.strip("^")
            or len(self.message_lines) >= 12
            or re.match(r"^>? *+\d*+ *+\|", text)
        ):
            return
        if not self.kind and (named := _ERROR_KIND.match(text)):
            self.kind = named["kind"]
        self.message_lines.append(text)

    def make_failure(self) -> Failure:
        path, line = find_innermost(tuple(reversed(self.frames)))
        kind = self.kind or (
            "AssertionError"
            if any("expect(" in failure for failure in self.message_lines[:2])
            else "error"
        )
        return Failure(
            self.test,
            kind,
            shorten_message("\n".join(self.message_lines)),
            path or self.path,
            line,
            tuple(self.frames),
        )


class JestReader:
    """Reads jest's `●` blocks."""

    kind: Kind = "test"

    def __init__(self) -> None:
        self._found = FailureCollector()
        self._open: _OpenFailure | None = None
        self._file: str | None = None

    def feed(self, line: str) -> None:
        """Take the next line."""
        if file := _JEST_FILE.match(line):
            self._close_failure()
            self._file = make_relative(file["path"])
        elif self._file and (test := _JEST_TEST.match(line)):
            self._close_failure()
            name = test["name"].strip()
            if not name.startswith(_NOT_TESTS):
                suite = name == "Test suite failed to run"
                self._open = _OpenFailure(self._file if suite else name, self._file)
        elif line.startswith(
            ("Test Suites: ", "Tests: ", "Summary of all failing", "Snapshot Summary")
        ):
            self._close_failure()
        elif self._open is not None:
            self._open.feed(line)

    def failures(self) -> list[Failure]:
        """What failed, each once: jest repeats itself at the end."""
        found: dict[tuple[str, str | None], Failure] = {}
        last = [self._open.make_failure()] if self._open else []
        for failure in (*self._found.all(), *last):
            found.setdefault((failure.test, failure.path), failure)
        return list(found.values())

    def _close_failure(self) -> None:
        if self._open is not None:
            self._found.add(self._open.make_failure())
            self._open = None


class VitestReader:
    """Reads vitest's ` FAIL  file > suite > test` blocks."""

    kind: Kind = "test"

    def __init__(self) -> None:
        self._found: dict[str, Failure] = {}
        self._open: list[_OpenFailure] = []
        self._fresh = False
        self._stray: _OpenFailure | None = None

    def feed(self, line: str) -> None:
        """Take the next line."""
        test = _VITEST_HEADING.match(line)
        if test and ("Failed Suites" in test["name"] or "Failed Tests" in test["name"]):
            return
        if test:
            if not self._fresh:
                self._close_failures()
            name = re.sub(r" \[ .{0,400} \]$", "", test["name"]).strip()
            self._open.append(_OpenFailure(name, make_relative(name.split(" > ", 1)[0])))
            self._fresh = True
        elif _UNHANDLED_ERROR.match(line):
            self._close_failures()
            self._stray = _OpenFailure("", None)
        elif self._stray is not None:
            self._feed_unhandled(self._stray, line)
        elif "⎯⎯" in line or line.startswith((" Test Files ", "      Tests ")):
            self._close_failures()
        elif self._open:
            self._fresh = False
            for failure in self._open:
                failure.feed(line)

    def failures(self) -> list[Failure]:
        """What failed; a bare ` FAIL  file` (jest's way) without an error below is not ours."""
        self._close_failures()
        return list(self._found.values())

    def _feed_unhandled(self, stray: _OpenFailure, line: str) -> None:
        """An error outside all tests; it belongs to the file that vitest names."""
        if origin := _UNHANDLED_ORIGIN.match(line):
            stray.test = make_relative(origin["path"])
            self._open, self._stray = [stray], None
            self._close_failures()
        elif line.startswith((" Test Files ", "      Tests ")):
            self._open, self._stray = [stray], None
            self._close_failures()
        else:
            stray.feed(line)

    def _close_failures(self) -> None:
        for failure in self._open:
            if (
                (failure.message_lines or failure.frames)
                and failure.test not in self._found
                and len(self._found) < 5000
            ):
                self._found[failure.test] = failure.make_failure()
        self._open, self._fresh = [], False


class MochaReader:
    """Reads mocha's numbered list after `N failing`."""

    kind: Kind = "test"

    def __init__(self) -> None:
        self._found = FailureCollector()
        self._names: list[str] | None = None
        self._open: _OpenFailure | None = None
        self._failing = False

    def feed(self, line: str) -> None:
        """Take the next line."""
        if re.match(r"^ +\d+ failing$", line):
            self._failing = True
        elif not self._failing:
            return
        elif head := _MOCHA_HEADING.match(line):
            self._close_failure()
            self._names = [head["name"]]
            self._finish_name(line)
        elif self._names is not None and line.strip():
            self._names.append(line.strip())
            self._finish_name(line)
        elif self._open is not None:
            self._open.feed(line)

    def failures(self) -> list[Failure]:
        """What failed."""
        return [*self._found.all(), *([self._open.make_failure()] if self._open else [])]

    def _finish_name(self, line: str) -> None:
        if self._names and line.rstrip().endswith(":"):
            self._open = _OpenFailure(" ".join(self._names).rstrip(":"), None)
            self._names = None

    def _close_failure(self) -> None:
        if self._open is not None:
            self._found.add(self._open.make_failure())
        self._open = None


class HeadedReader:
    """Reads runners that print each failure under a heading with its file: playwright, and deno after `ERRORS`."""

    kind: Kind = "test"

    def __init__(self) -> None:
        self._found = FailureCollector()
        self._open: tuple[_OpenFailure, int | None] | None = None
        self._deno = False

    def feed(self, line: str) -> None:
        """Take the next line."""
        if section := _DENO_SECTION.match(line):
            self._close_failure()
            self._deno = section["name"] == "ERRORS"
        elif head := _PLAYWRIGHT_HEADING.match(line) or (self._deno and _DENO_HEADING.match(line)):
            self._close_failure()
            failure = _OpenFailure(head["name"], make_relative(head["path"].removeprefix("./")))
            self._open = failure, parse_line_number(head["line"])
        elif _PLAYWRIGHT_END.match(line):
            self._close_failure()
        elif self._open is not None and not line.lstrip().startswith("Error Context:"):
            self._open[0].feed(line)

    def failures(self) -> list[Failure]:
        """What failed."""
        self._close_failure()
        return self._found.all()

    def _close_failure(self) -> None:
        if self._open is not None and self._open[0].message_lines:
            made = self._open[0].make_failure()
            self._found.add(made if made.line is not None else replace(made, line=self._open[1]))
        self._open = None


class BunReader:
    """Reads `bun test`, which prints a test's error before the line that says it failed."""

    kind: Kind = "test"

    def __init__(self) -> None:
        self._found = FailureCollector()
        self._open = _OpenFailure("", None)
        self._path: str | None = None

    def feed(self, line: str) -> None:
        """Take the next line."""
        if head := _BUN_FILE.match(line):
            self._path = make_relative(head["path"])
        elif result := _BUN_RESULT.match(line):
            if result["how"] == "fail":
                self._open.test, self._open.path = result["name"], self._path
                self._found.add(self._open.make_failure())
        else:
            if self._path is not None:
                self._open.feed(line)
            return
        self._open = _OpenFailure("", None)

    def failures(self) -> list[Failure]:
        """What failed."""
        return self._found.all()


class NodeReader:
    """Reads `node --test` (spec and TAP) and other TAP producers."""

    kind: Kind = "test"

    def __init__(self) -> None:
        self._found: dict[str, _OpenFailure] = {}
        self._open: _OpenFailure | None = None
        self._field: str | None = None  # None outside the block that node prints below a TAP line

    def feed(self, line: str) -> None:
        """Take the next line."""
        if (tap := _NODE_TAP.match(line)) and not tap["todo"]:
            self._open_failure(tap["name"])
        elif spec := _NODE_SPEC.match(line):
            self._open_failure(spec["name"])
        elif self._open is not None:
            if line.startswith(("test at ", "ok ", "# ", "ℹ ", "1..")):
                self._open = None
            elif line.strip() in {"---", "..."}:
                self._field = "" if line.strip() == "---" else None
            elif self._field is not None:
                self._feed_block(self._open, line)
            else:
                self._open.feed(line)

    def failures(self) -> list[Failure]:
        """What failed."""
        return [item.make_failure() for item in self._found.values()]

    def _feed_block(self, failure: _OpenFailure, line: str) -> None:
        """A line of YAML: the error, its kind and the stack are taken, in the order that node prints them."""
        value = line.strip()
        if field := _TAP_FIELD.match(line):
            self._field, value = field["key"], field["value"]
        if self._field == "location" and (place := _TAP_PLACE.match(value)):
            failure.path = make_relative(place["path"])
        elif self._field == "name":
            failure.kind = failure.kind or value.strip("'")
        elif self._field == "error" and value not in {"|-", ">-"}:
            failure.feed(value.strip("'"))
        elif self._field == "stack":
            failure.add_frame(f"at {value}")
        elif not self._field:  # another producer's block
            failure.feed(line)

    def _open_failure(self, name: str) -> None:
        self._field = None
        if name not in self._found and len(self._found) < 5000:
            self._found[name] = _OpenFailure(name, None)
        self._open = self._found.get(name)


# Reads ava.

_AVA_FAIL = re.compile(r"^ +[✘✖] \[fail\]: (?P<name>\S.*)$")
_AVA_ERROR = re.compile(
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
        if fail := _AVA_FAIL.match(line):
            match = _AVA_ERROR.search(fail["name"])
            name = fail["name"][: match.start()] if match else fail["name"]
            if len(self._names) < 5_000:
                self._names.setdefault(name, match[0].strip() if match else "")
        elif self._names and line[:2] == "  " and line.strip() in self._names:
            self._block = line.strip()
        elif self._block is not None and (place := _AVA_PLACE.match(line)):
            where = (make_relative(place["path"]), parse_line_number(place["line"]))
            self._places.setdefault(self._block, where)

    def failures(self) -> list[Failure]:
        """What failed."""
        found = []
        for name, message in self._names.items():
            path, line = self._places.get(name, (None, None))
            found.append(Failure(name, "error", message, path, line))
        return found


# npm itself, where it could not get what was asked for or has no such script.

_NPM_CODE = re.compile(r"^npm (?:ERR!|error) code (?P<code>E[A-Z0-9]+)$")
_NPM_DETAIL = re.compile(
    r"^npm (?:ERR!|error) (?!code |A complete log|errno |syscall |path |command )(?P<message>\S.*)$"
)
_NPM_MISSING = re.compile(r"^npm (?:ERR!|error) Missing script: \"?(?P<name>[^\"]+)\"?$")
_NPM_NOT_DEPENDENCY = {"ELIFECYCLE", "ENOENT"}


class NpmReader:
    """Reads npm's error report: one failure for its code, with the lines that explain it."""

    kind: Kind = "dependency"

    def __init__(self) -> None:
        self._missing = FailureCollector()
        self._code = ""
        self._details: list[str] = []

    def feed(self, line: str) -> None:
        """Take the next line."""
        if not line.startswith("npm "):
            return
        if code := _NPM_CODE.match(line):
            if code["code"] not in _NPM_NOT_DEPENDENCY:
                self._code, self._details = code["code"], []
        elif missing := _NPM_MISSING.match(line):
            name = f"npm run {missing['name']}"
            self._missing.add(Failure(name, "missing script", shorten_message(line)))
        elif self._code and (detail := _NPM_DETAIL.match(line)) and len(self._details) < 20:
            self._details.append(detail["message"])

    def failures(self) -> list[Failure]:
        """The missing scripts, then the last error."""
        message = shorten_message("\n".join(self._details))
        error = [Failure(f"npm {self._code}", self._code, message)] if self._code else []
        return [*self._missing.all(), *error]
