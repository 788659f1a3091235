"""Reads the log of a failed CI job: which step failed, what kind of failure it is, and each failure in it.

The log is hostile and may be huge: it is read once, line by line, in bounded memory.
"""

from __future__ import annotations

import io
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

from regreen.fixers.logs.compiled import CargoReader, GoBuildReader, GoReader, RustBuildReader
from regreen.fixers.logs.environment import (
    BuildReader,
    DependencyReader,
    EnvironmentReader,
    InfraReader,
)
from regreen.fixers.logs.go_events import GoEvents
from regreen.fixers.logs.installed import InstalledReader
from regreen.fixers.logs.javascript import JestReader, MochaReader, NodeReader, VitestReader
from regreen.fixers.logs.linters import LintReader, PreCommitReader, TypeReader
from regreen.fixers.logs.more_linters import GroupedReader
from regreen.fixers.logs.other_builds import OtherBuildsReader
from regreen.fixers.logs.other_tests import OtherTestsReader
from regreen.fixers.logs.pytest_log import PytestReader
from regreen.fixers.logs.reader import Kind, Reader, shorten
from regreen.fixers.logs.unittest_log import TracebackReader, UnittestReader
from regreen.fixers.logs.web_checkers import AvaReader, WebCheckReader
from regreen.models import Failure

MAX_LINE = 4_096
"""Longer lines are cut: no tool prints a place behind this column."""

_STAMP = re.compile(r"^\ufeff?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z ?")
_TABBED = re.compile(r"^\ufeff?[^\t]{1,300}\t(?P<step>[^\t]{1,300})\t(?=\ufeff?\d{4}-\d\d-\d\dT)")
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_MARK = re.compile(r"^##\[(?P<what>\w+(?:-\w+)?)\](?P<text>.*)$")
_COMMAND = re.compile(r"^::error(?: [^\n]{0,1000}?)?::(?P<text>.*)$")
_EXIT = re.compile(r"^Process completed with exit code (?P<code>-?\d+)\.?$")
_CODE = re.compile(
    r"^(?:Error: )?(?:The process '.*' failed with exit code|Process completed with exit code) (\d+)"
)
# What runs many things at once puts before each line whose it is: docker compose, turbo, pnpm.
_WHOSE = re.compile(
    r"^(?:[a-z][\w.-]{0,60}[-_]\d{1,3} {1,30}\| ?|@?[\w.-]{1,60}(?:/[\w.-]{1,60})?:[a-z][\w-]{0,40}: "
    r"|(?:packages|apps|libs|services|crates|tools)/[\w./-]{1,80} [a-z][\w:-]{0,40}: )"
)
_SIGN = re.compile(
    r"\b(?:error|errors|failed|failure|fatal|panic|panicked|traceback|exception|cannot|abort(?:ed)?)\b",
    re.IGNORECASE,
)
_ERROR_BLOCK = 20


@dataclass(frozen=True)
class CiLog:
    """What a job's log says: the failing step, its command, the kind of failure, every failure found.

    `exit_code` is None where the log does not hold it; `truncated` says that the log ends before the job does;
    `installed` are the versions that pip and uv put in, as `name==version`, and `built` those that they built from a tree.
    """

    step: str
    kind: Kind
    failures: tuple[Failure, ...]
    command: str = ""
    exit_code: int | None = None
    truncated: bool = False
    installed: tuple[str, ...] = ()
    built: tuple[str, ...] = ()


def parse(lines: Iterable[bytes] | bytes, *, step: str | None = None) -> CiLog:
    """Read a job's log, GitHub's or plain.

    Args:
        lines: the log, whole or line by line.
        step: the failing step's name where the API told it; else the log decides.
    """
    job = _Job(step)
    for raw in read_lines(io.BytesIO(lines)) if isinstance(lines, bytes) else lines:
        job.feed(raw)
    return job.result()


def read_lines(stream: BinaryIO) -> Iterator[bytes]:
    """The lines of a stream, long ones cut into pieces, so that no line fills the memory."""
    while line := stream.readline(16 * MAX_LINE):
        yield line


def output_of(log: bytes, command: str) -> str:
    """What the last step that ran `command` printed, as its tools wrote it; empty where the log does not show it."""
    heading = f"##[group]Run {command.strip().splitlines()[0]}"
    kept: list[str] = []
    inside = False
    for raw in read_lines(io.BytesIO(log)):
        text = raw[:MAX_LINE].decode("utf-8", "replace")
        line = clean(_STAMP.sub("", _TABBED.sub("", text, count=1), count=1).removeprefix("\ufeff"))
        if line.startswith("##[group]Run ") or line == "Post job cleanup.":
            inside = line == heading
            kept = [] if inside else kept
        elif inside and not line.startswith("##["):
            kept.append(line)
    return "\n".join(kept)


def failures_in(text: str) -> tuple[Failure, ...]:
    """The failures that a tool's plain output tells; empty where it tells none."""
    section = _Section("")
    for line in text.splitlines():
        section.feed(clean(line))
    return section.result(strong_only=True)[1]


def clean(line: str) -> str:
    """A line without colours and without what a carriage return has overwritten."""
    if "\x1b" in line:
        line = _ANSI.sub("", line)
    line = line.rstrip("\r\n \t")
    if "\r" in line:
        line = line.rsplit("\r", 1)[1]
    return line


class _Section:
    """One step of a job, or a whole plain log: its lines go through every reader."""

    def __init__(self, step: str) -> None:
        self.step = step
        self.command: list[str] = []
        self.in_header = False
        self.exit_code: int | None = None
        self.complaints: list[str] = []
        self.tail: deque[str] = deque(maxlen=_ERROR_BLOCK)
        self.empty = True
        self.step_from_api = False
        self._pytest = PytestReader()
        self._unittest = UnittestReader()
        self._readers: tuple[Reader, ...] = (
            JestReader(), VitestReader(), MochaReader(), NodeReader(), CargoReader(), GoReader(),
            TypeReader(), PreCommitReader(), LintReader(), GroupedReader(), RustBuildReader(), GoBuildReader(),
            BuildReader(), OtherTestsReader(), OtherBuildsReader(), WebCheckReader(), AvaReader(),
            DependencyReader(),
        )  # fmt: skip
        self._events = GoEvents()
        self._infra = InfraReader()
        self._environments = EnvironmentReader()
        self._traceback = TracebackReader()

    @property
    def failed(self) -> bool:
        """GitHub said that this step's process ended badly."""
        return self.exit_code not in (None, 0)

    def feed(self, line: str) -> None:
        """Take the next line of output."""
        line = _WHOSE.sub("", line, count=1)
        events = self._events.lines(line)
        for one in [line] if events is None else events:
            self._plain(one)

    def _plain(self, line: str) -> None:
        if line.strip():
            self.tail.append(line[:500])
            self.empty = False
        self._environments.feed(line)
        self._pytest.feed(line)
        if self._pytest.busy:
            return
        self._unittest.feed(line)
        self._traceback.feed(line)
        if self._unittest.busy:
            return
        for reader in self._readers:
            reader.feed(line)
        self._infra.feed(line)

    def result(self, *, strong_only: bool = False) -> tuple[Kind, tuple[Failure, ...]]:
        """The kind of what was found, and all of it; the first reader that found something names the kind."""
        kind: Kind | None = None
        found: list[Failure] = []
        readers: tuple[Reader, ...] = (self._pytest, self._unittest, *self._readers)
        for reader in readers:
            failures = reader.failures()
            if failures and kind is None:
                kind = reader.kind
            found.extend(failures)
        if kind is not None:
            return _kind_of(kind, found), tuple(found)
        return self._weak(strong_only)

    def _weak(self, strong_only: bool) -> tuple[Kind, tuple[Failure, ...]]:
        """Nothing a tool reported: the runner's complaint, an environment's name, a traceback, the last lines."""
        signs = self._infra.failures()
        environments = self._environments.failures()
        if environments:
            kind: Kind = "infra" if signs else "unknown"
            return kind, tuple(
                replace(one, message=one.message or self._block()) for one in environments
            )
        if signs:
            return "infra", tuple(signs[-1:])
        if tracebacks := self._traceback.failures():
            return "unknown", tuple(tracebacks[-1:])
        if not strong_only and not self.empty:
            return "unknown", (Failure("", "error", self._block()),)
        return "unknown", ()

    def _block(self) -> str:
        return shorten("\n".join([*self.complaints[-5:], *self.tail]))

    def looks_bad(self) -> bool:
        """Whether the last lines speak of an error at all."""
        return any(_SIGN.search(line) for line in self.tail)


def _kind_of(kind: Kind, found: list[Failure]) -> Kind:
    """A collection that failed for a missing module is still a test; a build that lacked a package is not."""
    if kind == "build" and all(one.kind == "dependency" for one in found):
        return "dependency"
    return kind


class _Job:
    """The whole log: cuts it into steps and remembers the one that matters."""

    def __init__(self, wanted: str | None) -> None:
        self._wanted = wanted
        self._now = _Section("")
        self._chosen: _Section | None = None
        self._suspect: _Section | None = None
        self._last: tuple[_Section, Kind, tuple[Failure, ...]] | None = None
        self._github = False
        self._ended = False
        self._continues = False
        self._installed = InstalledReader()

    def feed(self, raw: bytes) -> None:
        """Take the next raw line."""
        whole = raw.endswith(b"\n")
        if not self._continues:
            self._line(raw[:MAX_LINE].decode("utf-8", "replace"))
        self._continues = not whole and len(raw) >= MAX_LINE

    def result(self) -> CiLog:
        """What the log said."""
        self._close()
        section = self._chosen or self._suspect
        if section is None and self._github and self._ended:
            return CiLog("", "unknown", (), installed=self._installed.versions())
        if section is None and self._last is not None:
            section = self._last[0]
        section = section or self._now
        strong_only = (
            section.exit_code is None and not section.complaints and not section.looks_bad()
        )
        kind, failures = section.result(strong_only=strong_only)
        command = "\n".join(section.command)
        truncated = self._github and not self._ended and not section.failed
        return CiLog(
            section.step,
            kind,
            failures,
            command,
            section.exit_code,
            truncated,
            self._installed.versions(),
            self._installed.built(),
        )

    def _line(self, text: str) -> None:
        if tabbed := _TABBED.match(text):
            text = text[tabbed.end() :]
            self._named(tabbed["step"])
        stamped = _STAMP.sub("", text, count=1)
        self._github = self._github or len(stamped) != len(text)
        line = clean(stamped.removeprefix("\ufeff"))
        if line.startswith("##[") and (mark := _MARK.match(line)):
            self._github = True
            self._marked(mark["what"], mark["text"])
        elif self._github and line in {"Post job cleanup.", "Cleaning up orphan processes"}:
            self._ended = True
            self._start("")
        elif self._now.in_header:
            self._header(line)
        elif line.startswith("::error") and (command := _COMMAND.match(line)):
            self._error(command["text"].replace("%0A", "\n").replace("%25", "%").split("\n")[0])
        else:
            self._installed.feed(line)
            self._now.feed(line)

    def _marked(self, what: str, text: str) -> None:
        if what == "group" and text.startswith("Run "):
            if self._now.step_from_api and not self._now.command:
                self._now.in_header = True
                self._now.command = [text.removeprefix("Run ")]
                return
            self._start(text)
        elif what == "endgroup":
            self._now.in_header = False
        elif what == "error":
            self._error(text)
        elif what in {"warning", "notice"}:
            self._now.feed(text)

    def _error(self, text: str) -> None:
        if ended := _EXIT.match(text):
            self._now.exit_code = int(ended["code"][:9])
            return
        if code := _CODE.match(text):
            self._now.exit_code = self._now.exit_code or int(code[1][:9])
        self._now.feed(text)
        if len(self._now.complaints) < 50:
            self._now.complaints.append(text[:500])

    def _header(self, line: str) -> None:
        if line.startswith(("shell: ", "env:", "with:", "  ")):
            return
        if len(self._now.command) < 200:
            self._now.command.append(line)

    def _named(self, step: str) -> None:
        if step not in {"UNKNOWN STEP", self._now.step}:
            self._start(step, from_api=True)

    def _start(self, step: str, *, from_api: bool = False) -> None:
        self._close()
        self._now = _Section(step)
        self._now.step_from_api = from_api
        if step.startswith("Run ") and not from_api:
            self._now.command = []
            self._now.in_header = True

    def _close(self) -> None:
        """Decide about the section that ends: the first that failed is the one; else the first that complained."""
        section = self._now
        if (self._wanted is not None and section.step in {self._wanted, f"Run {self._wanted}"}) or (
            section.failed and self._chosen is None
        ):
            self._chosen = section
        elif section.complaints and self._suspect is None:
            self._suspect = section
        elif not section.empty and not self._ended:
            kind, failures = section.result(strong_only=True)
            if failures or self._last is None or not self._last[2]:
                self._last = (section, kind, failures)
