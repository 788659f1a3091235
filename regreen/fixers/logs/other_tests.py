"""Reads test runners of other languages by the one line that names a failing test: rspec, minitest, JUnit, PHPUnit."""

from __future__ import annotations

import re

from regreen.fixers.logs.reader import Collector, Kind, number, relative, shorten
from regreen.fixers.logs.told import Told
from regreen.models import Failure

_RSPEC = re.compile(
    r"^rspec '?(?P<path>\.?/?[^\s'\[:]+)(?::(?P<line>\d+)|(?P<nth>\[[\d:]+\]))'? # (?P<name>\S.*)$"
)
_RSPEC_LOADING = re.compile(r"^An error occurred while loading (?P<path>\S+?\.rb)\.$")
_MINITEST = re.compile(r"^(?P<name>[A-Z][\w:]*#\S+) \[(?P<path>[^\]]+):(?P<line>\d+)\]:$")
_MINITEST_ERROR = re.compile(r"^(?P<name>[A-Z][\w:]*#\S+):$")
_NUMBERED = re.compile(r"^ +\d+\) (?:Failure|Error):$")
_GRADLE = re.compile(r"^(?P<name>[A-Za-z_][\w.$]*(?: > [^>\n]{1,200}){1,5}) FAILED$")
_GRADLE_SAID = re.compile(
    r"^ {4}(?P<kind>[\w.$]+(?:Error|Exception|Failed\w*))(?:: (?P<message>.*?))?(?: at (?P<path>\S+):(?P<line>\d+))?$"
)
_SUREFIRE = re.compile(
    r"^(?:\[ERROR\] )?(?:(?P<method>\w+(?:\{[^}]*\})?(?:\[[^\]]*\])?)\((?P<class>[\w.$]+)\)|(?P<name>[\w.$]+\.\w+(?:\([^)]*\))?(?:\{[^}]*\})?(?:\[[^\]]*\])?))\s+(?:-- )?Time elapsed: .{1,40}<<< (?P<what>FAILURE|ERROR)!$"
)
_PHPUNIT = re.compile(
    r"^\d+\) (?P<name>[A-Za-z_][\w\\]*::\w+(?:(?: with data set |#|@).{1,200})?)$"
)
_PHPUNIT_SECTION = re.compile(r"^There (?:was|were) \d+ (?P<what>[\w -]{1,40}):$")
_DOTNET = re.compile(
    r"^ {2}Failed (?P<name>\S.{0,400}?) \[(?:< )?\d+(?:\.\d+)? \w{1,3}(?: \d+ \w{1,3}){0,3}\]$"
)
_BEHAVE = re.compile(r"^ {2}(?P<path>\S+\.feature):(?P<line>\d+) {2}(?P<name>\S.*)$")
_ROBOT = re.compile(r"^(?P<name>\S.{0,300}?) +\| FAIL \|$")
_ROBOT_COUNT = re.compile(r"^\d+ (?:critical )?tests?, \d+ passed, ")
_EXUNIT = re.compile(r"^ +\d+\) (?P<name>test .{1,300} \([A-Z][\w.]*\))$")
_ENDS_WHAT_IS_TOLD = (
    "[ERROR]", "[INFO]", "[WARNING]", "Tests run:", "FAILURES!", "ERRORS!", "Failed!", "  Passed ", "  Skipped ", "Results",
)  # fmt: skip


class OtherTestsReader:
    """Reads rspec, minitest, gradle, maven's surefire, PHPUnit, dotnet test, behave, Robot Framework and ExUnit."""

    kind: Kind = "test"

    def __init__(self) -> None:
        self._found = Collector()
        self._numbered = False
        self._told: Told | None = None
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
            self._robot_said(self._robot, line)
        if self._numbered and (test := _MINITEST.match(line) or _MINITEST_ERROR.match(line)):
            self._named(test["name"], test)
        elif self._behave and (scenario := _BEHAVE.match(line)):
            self._named(f"{scenario['path']}:{scenario['line']} {scenario['name']}", scenario)
        else:
            self._line(line)
        self._numbered = bool(_NUMBERED.match(line))
        self._behave = self._behave or line == "Failing scenarios:"

    def failures(self) -> list[Failure]:
        """What failed."""
        self._end()
        return self._found.all()

    def _line(self, line: str) -> None:
        if line.startswith("rspec ") and (rspec := _RSPEC.match(line)):
            place = f":{rspec['line']}" if rspec["line"] else rspec["nth"]
            path = relative(rspec["path"])
            said = shorten(rspec["name"])
            self._found.add(Failure(f"{path}{place}", "rspec", said, path, _line_of(rspec)))
        elif loading := _RSPEC_LOADING.match(line):
            path = relative(loading["path"])
            self._begin(Failure(path, "error", "", path))
        elif line.endswith(" FAILED") and " > " in line and (gradle := _GRADLE.match(line)):
            self._begin(Failure(gradle["name"], "error", ""))
            self._gradle = True
        elif line.endswith("!") and (maven := _SUREFIRE.match(line)):
            name = maven["name"] or f"{maven['class']}.{maven['method']}"
            self._begin(Failure(name, maven["what"].lower(), ""))
        elif section := _PHPUNIT_SECTION.match(line):
            self._end()
            self._counts = "failure" in section["what"] or "error" in section["what"]
        elif found := _PHPUNIT.match(line):
            self._end()
            if self._counts:
                self._begin(Failure(found["name"], "error", ""))
        elif found := _DOTNET.match(line) or _EXUNIT.match(line):
            self._begin(Failure(found["name"], "error", ""))
        elif line.endswith("| FAIL |") and (robot := _ROBOT.match(line)):
            self._robot = robot["name"].strip()
        elif self._told is not None:
            self._tell(self._told, line)

    def _begin(self, failure: Failure) -> None:
        self._end()
        self._told = Told(failure)

    def _end(self) -> None:
        if self._told is not None:
            self._found.add(self._told.failure())
        self._told, self._gradle = None, False

    def _tell(self, told: Told, line: str) -> None:
        """What stands below a name: gradle's is indented, the others' ends where something else begins."""
        if self._gradle and (said := _GRADLE_SAID.match(line)) and said["path"]:
            # without its trace gradle says kind and place in one line
            told.feed(f"{said['kind']}{': ' + said['message'] if said['message'] else ''}")
            told.feed(f"    at {said['kind']}.x({said['path']}:{said['line']})")
        elif (
            line == "--"
            or line.startswith(_ENDS_WHAT_IS_TOLD)
            or (self._gradle and not line.startswith("    "))
        ):
            self._end()
        else:
            told.feed(line)

    def _robot_said(self, name: str, line: str) -> None:
        """Robot says a test's error below its name; below a suite's it counts."""
        self._robot = None
        if not _ROBOT_COUNT.match(line):
            self._found.add(Failure(name, "robot", shorten(line)))

    def _named(self, name: str, found: re.Match[str]) -> None:
        groups = found.groupdict()
        path = relative(groups["path"]) if groups.get("path") else None
        self._found.add(Failure(name, "error", "", path, _line_of(found)))


def _line_of(found: re.Match[str]) -> int | None:
    line = found.groupdict().get("line")
    return number(line) if line else None
