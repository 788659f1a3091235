"""Reads compilers by the one line that names an error's place: javac, Maven, Kotlin, .NET, PHP."""

from __future__ import annotations

import re

from regreen.fixers.logs.reader import Collector, Kind, number, relative, shorten
from regreen.models import Failure

_JAVAC = re.compile(r"^(?P<path>\S{1,400}\.java):(?P<line>\d+): error: (?P<message>\S.*)$")
_MAVEN = re.compile(
    r"^\[ERROR\] (?P<path>\S{1,400}\.(?:java|kt|scala|groovy)):\[(?P<line>\d+),(?P<col>\d+)\] (?:error: )?(?P<message>\S.*)$"
)
_KOTLIN = re.compile(
    r"^e: (?:file://)?(?P<path>\S{1,400}\.kts?):(?P<line>\d+):(?P<col>\d+):? (?P<message>\S.*)$"
)
_DOTNET = re.compile(
    r"^\s{0,12}(?:\d+>)?(?P<path>[^\s(:][^(:]{0,300}\.(?:cs|fs|vb|cshtml|razor|csproj|fsproj|props|targets))\((?P<line>\d+)(?:,(?P<col>\d+))?[\d,]*\): error (?P<code>[A-Z]+\d+): (?P<message>\S.*?)(?: \[[^\]]{1,400}\])?$"
)
_PHP = re.compile(
    r"^(?:PHP )?(?P<code>Parse|Fatal) error: +(?P<message>\S.{0,1000}?) in (?P<path>/\S{1,400}\.php)(?: on line |:)(?P<line>\d+)$"
)


class OtherBuildsReader:
    """Reads the errors of compilers outside of Python, JavaScript, Go, Rust and C."""

    kind: Kind = "build"

    def __init__(self) -> None:
        self._found = Collector()

    def feed(self, line: str) -> None:
        """Take the next line."""
        if "error" not in line and not line.startswith(("e: ", "[ERROR] ")):
            return
        for pattern in (_JAVAC, _MAVEN, _KOTLIN, _DOTNET, _PHP):
            if found := pattern.match(line):
                self._add(found.groupdict())
                return

    def failures(self) -> list[Failure]:
        """What did not compile."""
        return self._found.all()

    def _add(self, found: dict[str, str | None]) -> None:
        path = relative(found["path"] or "")
        place = ":".join(part for part in (path, found["line"], found.get("col")) if part)
        code = found.get("code")
        test = f"{place}: {code}" if code else place
        message, line = shorten(found["message"] or ""), number(found["line"] or "0")
        self._found.add(Failure(test, "build", message, path, line))
