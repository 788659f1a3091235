"""Reads go and cargo: their tests, their compilers, clippy."""

from __future__ import annotations

import re

from regreen.fixers.logs.reader import Collector, Kind, number, relative, shorten
from regreen.models import Failure, Frame

_GO_FAIL = re.compile(r"^ *--- FAIL: (?P<name>\S+) \([\d.]+s\)$")
_GOTESTSUM = re.compile(r"^=== FAIL: \S+ (?P<name>\S+) \([\d.]+s\)$")
_GO_OTHER = re.compile(r"^ *(?:--- (?:PASS|SKIP|BENCH)|=== (?:RUN|PAUSE|CONT|NAME)|PASS$|ok  )")
_GO_SAID = re.compile(r"^ +(?P<path>[^\s:]+\.go):(?P<line>\d+): ?(?P<message>.*)$")
_GO_PACKAGE = re.compile(r"^FAIL\t(?P<package>\S+)(?:\t(?P<time>[\d.]+s)| \[(?P<why>[^\]]+)\])$")
_GO_BUILD = re.compile(
    r"^(?:vet: )?(?P<path>(?:\./|\.\./)*[^\s:]+\.go):(?P<line>\d+):(?P<col>\d+): (?P<message>\S.*)$"
)
_GO_PANIC = re.compile(r"^(?P<kind>panic|fatal error): (?P<message>.*)$")
_GO_RUNNING = re.compile(r"^\t(?P<name>(?:Test|Fuzz|Example|Benchmark)\S*) \([\d.hm]+s\)$")
_GO_FRAME = re.compile(r"^\t(?P<path>\S+\.go):(?P<line>\d+)(?: \+0x[0-9a-f]+)?$")
_GO_MODULE = re.compile(
    r"^go: (?P<message>(?:.*(?:missing go\.sum entry|updates to go\.(?:mod|sum) needed|inconsistent vendoring|no required module provides|unknown revision).*))$"
)
_GO_IMPORT = re.compile(
    r"^(?P<path>[^\s:]+\.go):(?P<line>\d+):(?P<col>\d+): (?P<message>(?:no required module|cannot find (?:package|module)|cannot find module providing|missing go\.sum|package \S+ is not in).*)$"
)


_GO_BARE = re.compile(
    r"^(?P<path>[^\s:]+\.go):(?P<line>\d+):(?P<col>\d+): (?P<message>[^\s(].*[^)])$"
)


class GoReader:
    """Reads `go test`."""

    kind: Kind = "test"

    def __init__(self) -> None:
        self._found: dict[str, Failure] = {}
        self._name: str | None = None
        self._running: str | None = None
        self._panic: Failure | None = None

    def feed(self, line: str) -> None:
        """Take the next line."""
        if line.startswith(("=== RUN ", "=== CONT ", "=== NAME ")):
            self._running, self._name = line.rsplit(None, 1)[-1], None
        elif fail := _GO_FAIL.match(line) or _GOTESTSUM.match(line):
            self._name = fail["name"]
            self._keep(self._found.get(self._name) or Failure(self._name, "FAIL", ""))
        elif _GO_OTHER.match(line):
            self._name = None
        elif said := _GO_SAID.match(line):
            self._said(self._name or self._running, said)
        elif package := _GO_PACKAGE.match(line):
            self._package(package)
        elif panic := _GO_PANIC.match(line):
            self._panic = Failure(self._name or "", panic["kind"], shorten(panic["message"]))
        elif self._panic is not None:
            self._in_panic(self._panic, line)

    def failures(self) -> list[Failure]:
        """The tests that failed; a panic belongs to the test that ran."""
        found = [one for one in self._found.values() if one.kind != "log"]
        if self._panic is not None and not any(
            one.kind in {"panic", "fatal error"} for one in found
        ):
            found.append(self._panic)
        return found

    def _keep(self, failure: Failure) -> None:
        if failure.kind == "log":
            failure = Failure(failure.test, "FAIL", failure.message, failure.path, failure.line)
        if len(self._found) < 5000:
            self._found[failure.test] = failure

    def _said(self, name: str | None, said: re.Match[str]) -> None:
        if name is None:
            return
        known = self._found.get(name)
        message = shorten(
            "\n".join(part for part in ((known.message if known else ""), said["message"]) if part)
        )
        if len(self._found) < 5000 or known:
            kind = known.kind if known else "log"
            path, line = (
                (known.path, known.line)
                if known and known.path
                else (said["path"], number(said["line"]))
            )
            self._found[name] = Failure(name, kind, message, path, line)

    def _package(self, package: re.Match[str]) -> None:
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

    def _in_panic(self, panic: Failure, line: str) -> None:
        name = panic.test
        if running := _GO_RUNNING.match(line):
            name = running["name"]
        path, at, frames = panic.path, panic.line, panic.frames
        if (frame := _GO_FRAME.match(line)) and len(frames) < 50:
            where = Frame(relative(frame["path"]), number(frame["line"]))
            frames = (*frames, where)
            if path is None and not re.search(
                r"/(?:src/(?:runtime|testing)|libexec|pkg/mod)/", where.path
            ):
                path, at = where.path, where.line
        self._panic = Failure(name, panic.kind, panic.message, path, at, frames)
        if name and name != panic.test:
            self._found[name] = self._panic


class GoBuildReader:
    """Reads the go compiler, vet and the module loader."""

    kind: Kind = "build"

    def __init__(self) -> None:
        self._found = Collector()
        self._in_package = False

    def feed(self, line: str) -> None:
        """Take the next line."""
        if line.startswith("# "):
            self._in_package = not line.startswith("# [")  # vet's own header follows the compiler's
        elif build := _GO_IMPORT.match(line):
            self._add(build, "dependency")
        elif self._in_package and (build := _GO_BUILD.match(line)):
            self._add(build, "build" if not line.startswith("vet: ") else "vet")
        elif build := _GO_BARE.match(line) or (
            _GO_BUILD.match(line) if line[:5] == "vet: " else None
        ):
            self._add(build, "vet")
        elif module := _GO_MODULE.match(line):
            self._found.add(Failure("go.mod", "dependency", shorten(module["message"]), "go.mod"))
        elif not line.startswith(("\t", " ")):
            self._in_package = False

    def failures(self) -> list[Failure]:
        """What did not build."""
        return self._found.all()

    def _add(self, build: re.Match[str], kind: str) -> None:
        path = relative(build["path"])
        test = f"{path}:{build['line']}:{build['col']}"
        self._found.add(Failure(test, kind, shorten(build["message"]), path, number(build["line"])))


_CARGO_TEST = re.compile(r"^test (?P<name>\S.*?)(?: - should panic)? \.\.\. FAILED$")
_CARGO_FAILED_LATE = re.compile(r"^ {4}(?P<name>\S.*)$")
_NEXTEST = re.compile(
    r"^ *(?:FAIL|TIMEOUT|SIG[A-Z]+|ABORT) \[ *[\d.]+s\] (?:\( *\d+/\d+\) )?(?P<crate>\S+) (?P<name>\S.*)$"
)
_PANIC = re.compile(
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
_CLIPPY = re.compile(r"clippy::(?P<rule>[\w-]+)")
_CARGO_DEPENDENCY = re.compile(
    r"^error: (?P<message>(?:failed to (?:select a version|get `|load source|download|resolve)|no matching package|the lock file|cannot update the lock file|failed to parse lock file|no matching version).*)$"
)


class CargoReader:
    """Reads `cargo test` and nextest."""

    kind: Kind = "test"

    def __init__(self) -> None:
        self._found: dict[str, Failure] = {}
        self._panics: dict[str, Failure] = {}
        self._said: str | None = None
        self._listing = False
        self._listed: list[str] = []

    def feed(self, line: str) -> None:
        """Take the next line."""
        if self._said is not None:
            self._message(line)
        elif test := _CARGO_TEST.match(line) or _NEXTEST.match(line):
            self._found.setdefault(test["name"], Failure(test["name"], "panic", ""))
        elif panic := _PANIC.match(line.removeprefix("    ")):
            self._panics[panic["name"]] = _at(panic, "")
            self._said = panic["name"]
        elif old := _OLD_PANIC.match(line):
            self._panics[old["name"]] = _at(old, old["message"])
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
        return [self._with_panic(one) for one in self._found.values()][:5000]

    def _message(self, line: str) -> None:
        name, line = self._said or "", line.removeprefix("    ")
        known = self._panics[name]
        if not line or line.startswith(("note: ", "stack backtrace:")) or len(known.message) > 1000:
            self._said = None
            return
        message = f"{known.message}\n{line}".strip()
        self._panics[name] = Failure(known.test, known.kind, message, known.path, known.line)

    def _with_panic(self, failure: Failure) -> Failure:
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


def _at(panic: re.Match[str], message: str) -> Failure:
    path = relative(panic["path"])
    line = number(panic["line"])
    return Failure(panic["name"], "panic", shorten(message), path, line, (Frame(path, line),))


def _doc_line(name: str) -> int:
    found = re.search(r"\(line (\d+)\)", name)
    return number(found[1]) if found else 0


class RustBuildReader:
    """Reads rustc and clippy: `error[E0308]: message` and the place below it."""

    kind: Kind = "build"

    def __init__(self) -> None:
        self._found: list[Failure] = []
        self._head: re.Match[str] | None = None
        self._waited = 0
        self._clippy = False

    def feed(self, line: str) -> None:
        """Take the next line."""
        if dependency := _CARGO_DEPENDENCY.match(line):
            self._keep(
                Failure("Cargo.toml", "dependency", shorten(dependency["message"]), "Cargo.toml")
            )
            self._head = None
        elif head := _RUST_ERROR.match(line):
            self._head, self._waited = (
                (None if head["message"].startswith(_RUST_SUMMARY) else head),
                0,
            )
        elif self._head is not None and (place := _RUST_PLACE.match(line)):
            path = relative(place["path"])
            kind = self._head["code"] or "error"
            test = f"{path}:{place['line']}:{place['col']}: {kind}"
            self._keep(
                Failure(test, kind, shorten(self._head["message"]), path, number(place["line"]))
            )
            self._head = None
        elif self._head is not None:
            self._waited += 1
            self._head = self._head if self._waited < 3 else None
        elif self._found and (rule := _CLIPPY.search(line)) and self._found[-1].kind == "error":
            self._rename(rule["rule"])

    def failures(self) -> list[Failure]:
        """What did not compile."""
        if self._found and all(one.kind.startswith("clippy") for one in self._found):
            self.kind = "lint"
        unique = {(one.test, one.message): one for one in self._found}
        return list(unique.values())

    def _keep(self, failure: Failure) -> None:
        if len(self._found) < 5000:
            self._found.append(failure)

    def _rename(self, rule: str) -> None:
        last = self._found[-1]
        kind = f"clippy::{rule.replace('-', '_')}"
        test = last.test.removesuffix(": error") + f": {kind}"
        self._found[-1] = Failure(test, kind, last.message, last.path, last.line)
