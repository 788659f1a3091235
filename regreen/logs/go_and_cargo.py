"""Reads go and cargo: their tests, their compilers, clippy."""

from __future__ import annotations

import json
import re

from regreen.domain.models import Failure, StackFrame
from regreen.logs.reader import (
    Kind,
    make_relative,
    parse_line_number,
    shorten_message,
)

_GO_FAIL = re.compile(r"^ *--- FAIL: (?P<name>\S+) \([\d.]+s\)$")
_GOTESTSUM = re.compile(r"^=== FAIL: \S+ (?P<name>\S+) \([\d.]+s\)$")
_GO_OTHER = re.compile(r"^ *(?:--- (?:PASS|SKIP|BENCH)|=== (?:RUN|PAUSE|CONT|NAME)|PASS$|ok  )")
_GO_MESSAGE = re.compile(r"^ +(?P<path>[^\s:]+\.go):(?P<line>\d+): ?(?P<message>.*)$")
_GO_PACKAGE = re.compile(r"^FAIL\t(?P<package>\S+)(?:\t(?P<time>[\d.]+s)| \[(?P<why>[^\]]+)\])$")
_GO_PANIC = re.compile(r"^(?P<kind>panic|fatal error): (?P<message>.*)$")
_GO_RUNNING = re.compile(r"^\t(?P<name>(?:Test|Fuzz|Example|Benchmark)\S*) \([\d.hm]+s\)$")
_GO_FRAME = re.compile(r"^\t(?P<path>\S+\.go):(?P<line>\d+)(?: \+0x[0-9a-f]+)?$")


_GO_RACE_FRAME = re.compile(r"^ {6}(?P<path>/\S+\.go):(?P<line>\d+) \+0x[0-9a-f]+$")
_GO_RACE = "race detected during execution of test"


class GoReader:
    """Reads `go test`."""

    kind: Kind = "test"

    def __init__(self) -> None:
        self._found: dict[str, Failure] = {}
        self._name: str | None = None
        self._running: str | None = None
        self._panic: Failure | None = None
        self._race: re.Match[str] | None = None
        self._in_race = False

    def feed(self, line: str) -> None:
        """Take the next line."""
        if line.startswith(("=== RUN ", "=== CONT ", "=== NAME ")):
            self._running, self._name = line.rsplit(None, 1)[-1], None
        elif fail := _GO_FAIL.match(line) or _GOTESTSUM.match(line):
            self._name = fail["name"]
            self._record_failure(self._found.get(self._name) or Failure(self._name, "FAIL", ""))
        elif _GO_OTHER.match(line):
            self._name = None
        elif line == "WARNING: DATA RACE":
            self._in_race = True
        elif self._in_race and (race := _GO_RACE_FRAME.match(line)):
            self._race, self._in_race = race, False
        elif match := _GO_MESSAGE.match(line):
            self._record_message(self._name or self._running, match)
        elif package := _GO_PACKAGE.match(line):
            self._record_package(package)
        elif panic := _GO_PANIC.match(line):
            self._panic = Failure(
                self._name or "", panic["kind"], shorten_message(panic["message"])
            )
        elif self._panic is not None:
            self._feed_panic(self._panic, line)

    def failures(self) -> list[Failure]:
        """The tests that failed; a panic belongs to the test that ran."""
        found = [item for item in self._found.values() if item.kind != "log"]
        if self._panic is not None and not any(
            item.kind in {"panic", "fatal error"} for item in found
        ):
            found.append(self._panic)
        return found

    def _record_failure(self, failure: Failure) -> None:
        if failure.kind == "log":
            failure = Failure(failure.test, "FAIL", failure.message, failure.path, failure.line)
        if len(self._found) < 5000:
            self._found[failure.test] = failure

    def _record_message(self, name: str | None, match: re.Match[str]) -> None:
        if name is None:
            return
        if match["message"] == _GO_RACE and self._race is not None:
            # the testing package found it; the first access of the race is where to look
            place = StackFrame(
                make_relative(self._race["path"]), parse_line_number(self._race["line"])
            )
            self._race = None
            self._record_failure(
                Failure(name, "data race", _GO_RACE, place.path, place.line, (place,))
            )
            return
        known = self._found.get(name)
        message = shorten_message(
            "\n".join(part for part in ((known.message if known else ""), match["message"]) if part)
        )
        if len(self._found) < 5000 or known:
            kind = known.kind if known else "log"
            path, line = (
                (known.path, known.line)
                if known and known.path
                else (match["path"], parse_line_number(match["line"]))
            )
            self._found[name] = Failure(name, kind, message, path, line)

    def _record_package(self, package: re.Match[str]) -> None:
        if package["why"] and package["why"] not in {"build failed", "setup failed"}:
            self._found.setdefault(
                package["package"], Failure(package["package"], "FAIL", package["why"])
            )
        if self._panic is not None:
            name = self._panic.test or self._running or package["package"]
            self._found[name] = Failure(
                name, self._panic.kind, self._panic.message, self._panic.path, self._panic.line
            )
            self._panic = None

    def _feed_panic(self, panic: Failure, line: str) -> None:
        name = panic.test
        if running := _GO_RUNNING.match(line):
            name = running["name"]
        path, at, frames = panic.path, panic.line, panic.frames
        if (frame := _GO_FRAME.match(line)) and len(frames) < 50:
            where = StackFrame(make_relative(frame["path"]), parse_line_number(frame["line"]))
            frames = (*frames, where)
            if path is None and not re.search(
                r"/(?:src/(?:runtime|testing)|libexec|pkg/mod)/", where.path
            ):
                path, at = where.path, where.line
        self._panic = Failure(name, panic.kind, panic.message, path, at, frames)
        if name and name != panic.test:
            self._found[name] = self._panic


_CARGO_TEST = re.compile(r"^test (?P<name>\S.*?)(?: - should panic)? \.\.\. FAILED$")
_CARGO_FAILED_LATE = re.compile(r"^ {4}(?P<name>\S.*)$")
_NEXTEST = re.compile(
    r"^ *(?:FAIL|TIMEOUT|SIG[A-Z]+|ABORT) \[ *[\d.]+s\] (?:\( *\d+/\d+\) )?(?P<crate>\S+) (?P<name>\S.*)$"
)
_PANIC_LINE = re.compile(
    r"^thread '(?P<name>[^']+)' (?:\(\d+\) )?panicked at (?P<path>[^\s:']+):(?P<line>\d+):(?P<col>\d+):$"
)
_OLD_PANIC = re.compile(
    r"^thread '(?P<name>[^']+)' panicked at '(?P<message>.*)', (?P<path>[^\s:]+):(?P<line>\d+):(?P<col>\d+)$"
)
_RUST_ERROR = re.compile(r"^error(?:\[(?P<code>E\d+)\])?: (?P<message>\S.*)$")
_RUST_PLACE = re.compile(r"^ *--> (?P<path>\S.*?):(?P<line>\d+):(?P<col>\d+)$")
_RUST_SUMMARY = (
    "could not compile",
    "aborting due to",
    "test failed, to rerun",
    "build failed",
    "process didn't exit",
    "doctest failed",
    "1 target failed",
    "Some tests failed",
)
_CLIPPY_RULE = re.compile(r"clippy::(?P<rule>[\w-]+)")
_CARGO_DEPENDENCY = re.compile(
    r"^error: (?P<message>(?:failed to (?:select a version|get `|load source|download|resolve)|no matching package|the lock file|cannot update the lock file|failed to parse lock file|no matching version).*)$"
)


class CargoReader:
    """Reads `cargo test` and nextest."""

    kind: Kind = "test"

    def __init__(self) -> None:
        self._found: dict[str, Failure] = {}
        self._panics: dict[str, Failure] = {}
        self._panicking: str | None = None
        self._listing = False
        self._listed: list[str] = []

    def feed(self, line: str) -> None:
        """Take the next line."""
        if self._panicking is not None:
            self._extend_message(line)
        elif test := _CARGO_TEST.match(line) or _NEXTEST.match(line):
            self._found.setdefault(test["name"], Failure(test["name"], "panic", ""))
        elif panic := _PANIC_LINE.match(line.removeprefix("    ")):
            self._panics[panic["name"]] = _panic_failure(panic, "")
            self._panicking = panic["name"]
        elif old := _OLD_PANIC.match(line):
            self._panics[old["name"]] = _panic_failure(old, old["message"])
        elif line == "failures:":
            self._listing = True
        elif self._listing and (late := _CARGO_FAILED_LATE.match(line)):
            self._listed.append(late["name"])
            del self._listed[5000:]
        elif line.startswith("test result: FAILED"):
            for name in self._listed:
                self._found.setdefault(name, Failure(name, "panic", ""))
            self._listed, self._listing = [], False
        elif line and not line.startswith(" "):
            self._listed, self._listing = [], False

    def failures(self) -> list[Failure]:
        """The tests that failed, with what they panicked about."""
        return [self._replace_by_panic(item) for item in self._found.values()][:5000]

    def _extend_message(self, line: str) -> None:
        name, line = self._panicking or "", line.removeprefix("    ")
        known = self._panics[name]
        if not line or line.startswith(("note: ", "stack backtrace:")) or len(known.message) > 1000:
            self._panicking = None
            return
        message = f"{known.message}\n{line}".strip()
        self._panics[name] = Failure(known.test, known.kind, message, known.path, known.line)

    def _replace_by_panic(self, failure: Failure) -> Failure:
        panic = self._panics.get(failure.test)
        if panic is None and " (line " in failure.test:
            path = failure.test.split(" - ", 1)[0]
            return Failure(
                failure.test, "doctest", self._main_message(), path, _doc_line(failure.test)
            )
        return panic or failure

    def _main_message(self) -> str:
        main = self._panics.get("main")
        return main.message if main else ""


def _panic_failure(panic: re.Match[str], message: str) -> Failure:
    path = make_relative(panic["path"])
    line = parse_line_number(panic["line"])
    return Failure(
        panic["name"], "panic", shorten_message(message), path, line, (StackFrame(path, line),)
    )


def _doc_line(name: str) -> int:
    found = re.search(r"\(line (\d+)\)", name)
    return parse_line_number(found[1]) if found else 0


class RustBuildReader:
    """Reads rustc and clippy: `error[E0308]: message` and the place below it."""

    kind: Kind = "build"

    def __init__(self) -> None:
        self._found: list[Failure] = []
        self._head: re.Match[str] | None = None
        self._waited = 0

    def feed(self, line: str) -> None:
        """Take the next line."""
        if dependency := _CARGO_DEPENDENCY.match(line):
            self._record_failure(
                Failure(
                    "Cargo.toml", "dependency", shorten_message(dependency["message"]), "Cargo.toml"
                )
            )
            self._head = None
        elif head := _RUST_ERROR.match(line):
            self._head, self._waited = (
                (None if head["message"].startswith(_RUST_SUMMARY) else head),
                0,
            )
        elif self._head is not None and (place := _RUST_PLACE.match(line)):
            path = make_relative(place["path"])
            kind = self._head["code"] or "error"
            test = f"{path}:{place['line']}:{place['col']}: {kind}"
            self._record_failure(
                Failure(
                    test,
                    kind,
                    shorten_message(self._head["message"]),
                    path,
                    parse_line_number(place["line"]),
                )
            )
            self._head = None
        elif self._head is not None:
            self._waited += 1
            self._head = self._head if self._waited < 3 else None
        elif (
            self._found and (rule := _CLIPPY_RULE.search(line)) and self._found[-1].kind == "error"
        ):
            self._apply_clippy_rule(rule["rule"])

    def failures(self) -> list[Failure]:
        """What did not compile."""
        if self._found and all(item.kind.startswith("clippy") for item in self._found):
            self.kind = "lint"
        unique = {(item.test, item.message): item for item in self._found}
        return list(unique.values())

    def _record_failure(self, failure: Failure) -> None:
        if len(self._found) < 5000:
            self._found.append(failure)

    def _apply_clippy_rule(self, rule: str) -> None:
        last = self._found[-1]
        kind = f"clippy::{rule.replace('-', '_')}"
        test = last.test.removesuffix(": error") + f": {kind}"
        self._found[-1] = Failure(test, kind, last.message, last.path, last.line)


# Reads the events of `go test -json` as the lines that `go test` prints.


class GoEvents:
    """Turns events into plain lines, and adds the test's name where tests run in parallel."""

    def __init__(self) -> None:
        self._test: tuple[str, str] | None = None

    def convert_line(self, line: str) -> list[str] | None:
        """The lines of an event; None if the line is not an event."""
        if not (line.startswith("{") and '"Action":"' in line[:400]):
            return None
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(event, dict):
            return None
        action, test = event.get("Action"), _string_field(event, "Test")
        if action == "fail" and test:
            return [f"--- FAIL: {test} (0.00s)"]
        if action not in {"output", "build-output"}:
            return []
        output = _string_field(event, "Output").rstrip("\n")
        return [*self._announce_other_test(_string_field(event, "Package"), test, output), output]

    def _announce_other_test(self, package: str, test: str, text: str) -> list[str]:
        """The line that `go test -v` prints where the output of another test follows."""
        now = (package, test)
        if not test or now == self._test or text.startswith(("===", "---", "panic:")):
            return []
        self._test = now
        return [f"=== NAME  {test}"]


def _string_field(event: dict[str, object], key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""
