"""Reads test runners of other languages by the one line that names a failing test: rspec, minitest, JUnit, PHPUnit."""

from __future__ import annotations

import re

from regreen.fixers.logs.reader import Collector, Kind, number, relative, shorten
from regreen.models import Failure

_RSPEC = re.compile(
    r"^rspec '?(?P<path>\.?/?[^\s'\[:]+)(?::(?P<line>\d+)|\[[\d:]+\])'? # (?P<name>\S.*)$"
)
_MINITEST = re.compile(r"^(?P<name>[A-Z][\w:]*#\S+) \[(?P<path>[^\]]+):(?P<line>\d+)\]:$")
_MINITEST_ERROR = re.compile(r"^(?P<name>[A-Z][\w:]*#\S+):$")
_NUMBERED = re.compile(r"^ +\d+\) (?:Failure|Error):$")
_GRADLE = re.compile(r"^(?P<name>[A-Za-z_][\w.$]*(?: > [^>\n]{1,200}){1,5}) FAILED$")
_GRADLE_SAID = re.compile(
    r"^ {4}(?P<kind>[\w.$]+(?:Error|Exception|Failed\w*))(?:: (?P<message>.*?))?(?: at (?P<path>\S+):(?P<line>\d+))?$"
)
_SUREFIRE = re.compile(
    r"^\[ERROR\] (?:(?P<method>\w+(?:\{[^}]*\})?(?:\[[^\]]*\])?)\((?P<class>[\w.$]+)\)|(?P<name>[\w.$]+\.\w+(?:\([^)]*\))?(?:\[[^\]]*\])?))\s+(?:-- )?Time elapsed: .{1,40}<<< (?P<what>FAILURE|ERROR)!$"
)
_PHPUNIT = re.compile(r"^\d+\) (?P<name>[A-Za-z_][\w\\]*::\w+(?: with data set .{1,200})?)$")
_DOTNET = re.compile(r"^ {2}Failed (?P<name>\S.{0,400}) \[(?:< )?\d+(?:\.\d+)? \w{1,3}\]$")
_BEHAVE = re.compile(r"^ {2}(?P<path>\S+\.feature):(?P<line>\d+) {2}(?P<name>\S.*)$")
_ROBOT = re.compile(r"^(?P<name>\S.{0,300}?) +\| FAIL \|$")
_ROBOT_COUNT = re.compile(r"^\d+ (?:critical )?tests?, \d+ passed, ")
_EXUNIT = re.compile(r"^ +\d+\) (?P<name>test .{1,300} \([A-Z][\w.]*\))$")


class OtherTestsReader:
    """Reads rspec, minitest, gradle, maven's surefire, PHPUnit, dotnet test, behave, Robot Framework and ExUnit."""

    kind: Kind = "test"

    def __init__(self) -> None:
        self._found = Collector()
        self._numbered = False
        self._gradle: str | None = None
        self._behave = False
        self._robot: str | None = None

    def feed(self, line: str) -> None:
        """Take the next line."""
        if not line:
            self._behave = False
            return
        if self._robot is not None:
            self._robot_said(self._robot, line)
        if self._numbered and (test := _MINITEST.match(line) or _MINITEST_ERROR.match(line)):
            self._named(test["name"], test)
        elif self._gradle is not None and line.startswith("    "):
            self._told(self._gradle, line)
        elif self._behave and (scenario := _BEHAVE.match(line)):
            self._named(f"{scenario['path']}:{scenario['line']} {scenario['name']}", scenario)
        else:
            self._line(line)
        self._numbered = bool(_NUMBERED.match(line))
        self._behave = self._behave or line == "Failing scenarios:"

    def failures(self) -> list[Failure]:
        """What failed."""
        if self._gradle is not None:
            self._found.add(Failure(self._gradle, "error", ""))
            self._gradle = None
        return self._found.all()

    def _line(self, line: str) -> None:
        if self._gradle is not None:
            self._found.add(Failure(self._gradle, "error", ""))
            self._gradle = None
        if line.startswith("rspec ") and (rspec := _RSPEC.match(line)):
            place = f":{rspec['line']}" if rspec["line"] else ""
            path = relative(rspec["path"])
            said = shorten(rspec["name"])
            self._found.add(Failure(f"{path}{place}", "rspec", said, path, _line_of(rspec)))
        elif line.endswith(" FAILED") and " > " in line and (gradle := _GRADLE.match(line)):
            self._gradle = gradle["name"]
        elif line.endswith("!") and (maven := _SUREFIRE.match(line)):
            name = maven["name"] or f"{maven['class']}.{maven['method']}"
            self._found.add(Failure(name, maven["what"].lower(), ""))
        elif found := _PHPUNIT.match(line) or _DOTNET.match(line) or _EXUNIT.match(line):
            self._found.add(Failure(found["name"], "error", ""))
        elif line.endswith("| FAIL |") and (robot := _ROBOT.match(line)):
            self._robot = robot["name"].strip()

    def _robot_said(self, name: str, line: str) -> None:
        """Robot says a test's error below its name; below a suite's it counts."""
        self._robot = None
        if not _ROBOT_COUNT.match(line):
            self._found.add(Failure(name, "robot", shorten(line)))

    def _told(self, name: str, line: str) -> None:
        said = _GRADLE_SAID.match(line)
        if said is not None:
            kind = said["kind"].rpartition(".")[2]
            line_number = number(said["line"]) if said["line"] else None
            self._found.add(
                Failure(name, kind, shorten(said["message"] or ""), said["path"], line_number)
            )
            self._gradle = None

    def _named(self, name: str, found: re.Match[str]) -> None:
        groups = found.groupdict()
        path = relative(groups["path"]) if groups.get("path") else None
        self._found.add(Failure(name, "error", "", path, _line_of(found)))


def _line_of(found: re.Match[str]) -> int | None:
    line = found.groupdict().get("line")
    return number(line) if line else None
