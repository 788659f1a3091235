"""Reads test runners of other languages by the one line that names a failing test: rspec, minitest, JUnit, PHPUnit."""

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

_RSPEC = re.compile(
    r"^rspec '?(?P<path>\.?/?[^\s'\[:]+)(?::(?P<line>\d+)|(?P<nth>\[[\d:]+\]))'? # (?P<name>\S.*)$"
)
_RSPEC_LOADING = re.compile(r"^An error occurred while loading (?P<path>\S+?\.rb)\.$")
_MINITEST = re.compile(r"^(?P<name>[A-Z][\w:]*#\S+) \[(?P<path>[^\]]+):(?P<line>\d+)\]:$")
_MINITEST_ERROR = re.compile(r"^(?P<name>[A-Z][\w:]*#\S+):$")
_NUMBERED_HEADING = re.compile(r"^ +\d+\) (?:Failure|Error):$")
_GRADLE = re.compile(r"^(?P<name>[A-Za-z_][\w.$]*(?: > [^>\n]{1,200}){1,5}) FAILED$")
_GRADLE_MESSAGE = re.compile(
    r"^ {4}(?P<kind>[\w.$]+(?:Error|Exception|Failed\w*))(?:: (?P<message>.*?))?(?: at (?P<path>\S+):(?P<line>\d+))?$"
)
_SUREFIRE = re.compile(
    r"^(?:\[ERROR\] )?(?:(?P<method>\w+(?:\{[^}]*\})?(?:\[[^\]]*\])?)\((?P<class>[\w.$]+)\)|(?P<name>[\w.$]+\.\w+(?:\([^)]*\))?(?:\{[^}]*\})?(?:\[[^\]]*\])?))\s+(?:-- )?Time elapsed: .{1,40}<<< (?P<what>FAILURE|ERROR)!$"
)
_JUNIT_CONSOLE = re.compile(
    r"^ +MethodSource \[className = '(?P<class>[\w.$]+)', methodName = '(?P<method>\w+)'"
)
_PHPUNIT = re.compile(
    r"^\d+\) (?P<name>[A-Za-z_][\w\\]*::\w+(?:(?: with data set |#|@).{1,200})?)$"
)
_JUNIT4 = re.compile(r"^\d+\) (?P<method>\w[^\s(]{0,200})\((?P<class>[\w.$]+)\)$")
_PHPUNIT_SECTION = re.compile(r"^There (?:was|were) \d+ (?P<what>[\w -]{1,40}):$")
_DOTNET = re.compile(
    r"^ {2}Failed (?P<name>\S.{0,400}?) \[(?:< )?\d+(?:\.\d+)? \w{1,3}(?: \d+ \w{1,3}){0,3}\]$"
)
_BEHAVE = re.compile(r"^ {2}(?P<path>\S+\.feature):(?P<line>\d+) {2}(?P<name>\S.*)$")
_ROBOT = re.compile(r"^(?P<name>\S.{0,300}?) +\| FAIL \|$")
_ROBOT_COUNT = re.compile(r"^\d+ (?:critical )?tests?, \d+ passed, ")
_EXUNIT = re.compile(r"^ +\d+\) (?P<name>test .{1,300} \([A-Z][\w.]*\))$")
_BLOCK_END_PREFIXES = (
    "[ERROR]",
    "[INFO]",
    "[WARNING]",
    "Tests run:",
    "FAILURES!",
    "ERRORS!",
    "Failed!",
    "  Passed ",
    "  Skipped ",
    "Results",
    "  JUnit ",
    "Test run finished",
)


class OtherTestsReader:
    """Reads rspec, minitest, gradle, maven's surefire, JUnit 4 and 5 on a console, PHPUnit, dotnet test, behave, Robot Framework and ExUnit."""

    kind: Kind = "test"

    def __init__(self) -> None:
        self._found = FailureCollector()
        self._numbered = False
        self._block: FailureBlock | None = None
        self._gradle = False
        self._behave = False
        self._robot: str | None = None
        self._counts = True

    def feed(self, line: str) -> None:
        """Take the next line."""
        if not line:
            self._behave = False
            return
        if self._robot is not None:
            self._add_robot_failure(self._robot, line)
        if self._numbered and (test := _MINITEST.match(line) or _MINITEST_ERROR.match(line)):
            self._add_named_failure(test["name"], test)
        elif self._behave and (scenario := _BEHAVE.match(line)):
            self._add_named_failure(
                f"{scenario['path']}:{scenario['line']} {scenario['name']}", scenario
            )
        else:
            self._match_line(line)
        self._numbered = bool(_NUMBERED_HEADING.match(line))
        self._behave = self._behave or line == "Failing scenarios:"

    def failures(self) -> list[Failure]:
        """What failed."""
        self._end_block()
        return self._found.all()

    def _match_line(self, line: str) -> None:
        if line.startswith("rspec ") and (rspec := _RSPEC.match(line)):
            place = f":{rspec['line']}" if rspec["line"] else rspec["nth"]
            path = make_relative(rspec["path"])
            message = shorten_message(rspec["name"])
            self._found.add(Failure(f"{path}{place}", "rspec", message, path, _line_number(rspec)))
        elif loading := _RSPEC_LOADING.match(line):
            path = make_relative(loading["path"])
            self._begin_block(Failure(path, "error", "", path))
        elif line.endswith(" FAILED") and " > " in line and (gradle := _GRADLE.match(line)):
            self._begin_block(Failure(gradle["name"], "error", ""))
            self._gradle = True
        elif line.endswith("!") and (maven := _SUREFIRE.match(line)):
            name = maven["name"] or f"{maven['class']}.{maven['method']}"
            self._begin_block(Failure(name, maven["what"].lower(), ""))
        elif console := _JUNIT_CONSOLE.match(line):
            self._begin_block(Failure(f"{console['class']}.{console['method']}", "error", ""))
        elif section := _PHPUNIT_SECTION.match(line):
            self._end_block()
            self._counts = "failure" in section["what"] or "error" in section["what"]
        elif found := _PHPUNIT.match(line) or _JUNIT4.match(line):
            self._end_block()
            if self._counts:
                name = found.groupdict().get("name") or f"{found['class']}.{found['method']}"
                self._begin_block(Failure(name, "error", ""))
        elif found := _DOTNET.match(line) or _EXUNIT.match(line):
            self._begin_block(Failure(found["name"], "error", ""))
        elif line.endswith("| FAIL |") and (robot := _ROBOT.match(line)):
            self._robot = robot["name"].strip()
        elif self._block is not None:
            self._feed_block(self._block, line)

    def _begin_block(self, failure: Failure) -> None:
        self._end_block()
        self._block = FailureBlock(failure)

    def _end_block(self) -> None:
        if self._block is not None:
            self._found.add(self._block.make_failure())
        self._block, self._gradle = None, False

    def _feed_block(self, block: FailureBlock, line: str) -> None:
        """A line below a name: gradle's block is indented, the others end where something else begins."""
        if self._gradle and (match := _GRADLE_MESSAGE.match(line)) and match["path"]:
            # without a stack trace gradle prints kind and place in one line
            block.feed(f"{match['kind']}{': ' + match['message'] if match['message'] else ''}")
            block.feed(f"    at {match['kind']}.x({match['path']}:{match['line']})")
        elif (
            line == "--"
            or line.startswith(_BLOCK_END_PREFIXES)
            or (self._gradle and not line.startswith("    "))
        ):
            self._end_block()
        else:
            block.feed(line)

    def _add_robot_failure(self, name: str, line: str) -> None:
        """Robot prints a test's error below its name, and counts below a suite's name."""
        self._robot = None
        if not _ROBOT_COUNT.match(line):
            self._found.add(Failure(name, "robot", shorten_message(line)))

    def _add_named_failure(self, name: str, found: re.Match[str]) -> None:
        groups = found.groupdict()
        path = make_relative(groups["path"]) if groups.get("path") else None
        self._found.add(Failure(name, "error", "", path, _line_number(found)))


def _line_number(found: re.Match[str]) -> int | None:
    line = found.groupdict().get("line")
    return parse_line_number(line) if line else None


# The lines below the name of a failing test: the kind of error, its message, its stack frames.

_MAX_LINES = 60
_JVM_FRAME = re.compile(
    r"^\s+(?:at )?(?:[\w.@-]{0,100}/){0,3}(?P<cls>[\w.$]{1,300})\.[\w$<>]{1,200}\((?P<path>[\w$]{1,200}\.\w{1,10}):(?P<line>\d+)\)$"
)
_DOTNET_FRAME = re.compile(r"^\s+at .{1,500} in (?P<path>\S.{0,400}?):line (?P<line>\d+)$")
_PHP_FRAME = re.compile(r"^(?P<path>/\S{1,400}\.php):(?P<line>\d+)$")
_EXCEPTION_KIND = re.compile(
    r"^\\?(?:[\w$]{1,100}[.\\]{1,2})*(?P<kind>[A-Z][\w$]{0,100}(?:Error|Exception|Failure|Failed)\w{0,40})(?: ?: (?P<message>.*))?$"
)
_SECTION_HEADS = frozenset({"Error Message:", "Stack Trace:", "Standard Output Messages:", "[...]"})


class FailureBlock:
    """Collects the lines about one failure, from its name on."""

    def __init__(self, failure: Failure) -> None:
        self._failure = failure
        self._message_lines: list[str] = []
        self._frames: list[StackFrame] = []
        self._kind = ""
        self._lines = 0

    def feed(self, line: str) -> None:
        """Take a line below the name."""
        self._lines += 1
        if self._lines > _MAX_LINES:
            return
        place = _JVM_FRAME.match(line) or _DOTNET_FRAME.match(line) or _PHP_FRAME.match(line)
        if place is not None:
            called = place.groupdict().get("cls") or ""
            self._frames.append(
                StackFrame(make_relative(place["path"]), parse_line_number(place["line"]), called)
            )
            return
        text = line.strip().removeprefix("=> ")
        if text in _SECTION_HEADS or not text or text.startswith("at "):
            return
        if not self._kind and not self._message_lines and (named := _EXCEPTION_KIND.match(text)):
            self._kind, text = named["kind"], named["message"] or ""
        if text and len(self._message_lines) < 12:
            self._message_lines.append(text)

    def make_failure(self) -> Failure:
        """The failure with kind, message and frames."""
        words = set(re.split(r"\W", self._failure.test))
        own = [frame for frame in self._frames if _outer_class(frame) in words]
        path, line = find_innermost(tuple(reversed(own or self._frames)))
        return replace(
            self._failure,
            kind=self._kind or self._failure.kind,
            message=shorten_message("\n".join(self._message_lines)),
            path=path or self._failure.path,
            line=line or self._failure.line,
            frames=tuple(self._frames),
        )


def _outer_class(frame: StackFrame) -> str:
    """The outer class of a frame; nothing that a name could hold where there is none."""
    return frame.function.rpartition(".")[2].partition("$")[0] or "\0"
