"""Reads the log of a failed CI job: which step failed, what kind of failure it is, and each failure in it.

The log is hostile and may be huge: it is read once, line by line, in bounded memory.
"""

from __future__ import annotations

import io
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copyfileobj
from tempfile import NamedTemporaryFile
from typing import BinaryIO

from packaging.utils import canonicalize_name

from regreen.domain.errors import AnalysisFailed
from regreen.domain.models import Failure
from regreen.domain.text_limits import strip_terminal_codes
from regreen.isolation import ChildLimits, name_failed_input, run_in_child
from regreen.logs.go_and_cargo import CargoReader, GoEvents, GoReader, RustBuildReader
from regreen.logs.javascript import (
    AvaReader,
    BunReader,
    HeadedReader,
    JestReader,
    MochaReader,
    NodeReader,
    NpmReader,
    VitestReader,
)
from regreen.logs.problem_matchers import MatchReader, PreCommitReader, TypeReader
from regreen.logs.python_tests import PytestReader, TracebackReader, UnittestReader
from regreen.logs.reader import Kind, LogReader, shorten_message

_PIP_INSTALLED = re.compile(r"^Successfully installed (?P<all>\S.*)$")
_PIP_PACKAGE = re.compile(
    r"^(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)-(?P<version>\d[A-Za-z0-9.!+_]*)$"
)
_UV_PACKAGE = re.compile(
    r"^ \+ (?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>\d[^\s(]*)(?P<origin> \(from .*)?$"
)
_MAX_VERSIONS = 2_000
# What installs is not what is installed: these follow the machine, not the day.
_INSTALLER_NAMES = frozenset(
    {"pip", "uv", "wheel", "virtualenv", "distlib", "filelock", "platformdirs"}
)


class InstalledReader:
    """Collects `name==version` from pip's and uv's own words."""

    def __init__(self) -> None:
        self._found: dict[str, str] = {}
        self._unclear: set[str] = set()
        self._built: dict[str, str] = {}

    def feed(self, line: str) -> None:
        """Take the next line of output."""
        if line.startswith("Successfully installed ") and (match := _PIP_INSTALLED.match(line)):
            for word in match["all"].split():
                if one := _PIP_PACKAGE.match(word):
                    self._record_version(one["name"], one["version"])
        elif line.startswith(" + ") and (one := _UV_PACKAGE.match(line)):
            if not one["origin"]:
                self._record_version(one["name"], one["version"])
            elif "file://" in one["origin"]:
                self._note_built(canonicalize_name(one["name"]), one["version"])

    def installed_versions(self) -> tuple[str, ...]:
        """`name==version`, by name; none that differed between two environments, none of a local build."""
        return tuple(
            f"{name}=={version}"
            for name, version in sorted(self._found.items())
            if name not in self._unclear and name not in _INSTALLER_NAMES
        )

    def locally_built(self) -> tuple[str, ...]:
        """`name==version` of what was built from a tree, the project itself above all."""
        return tuple(f"{name}=={version}" for name, version in sorted(self._built.items()))

    def _note_built(self, plain: str, version: str) -> None:
        if len(self._built) < _MAX_VERSIONS and re.fullmatch(r"\d[A-Za-z0-9.!+_]*", version):
            self._built.setdefault(plain, version)

    def _record_version(self, name: str, version: str) -> None:
        plain = canonicalize_name(name)
        local = "+" in version or ".dev" in version or len(self._found) >= _MAX_VERSIONS
        if "+" in version or ".dev" in version:
            self._note_built(plain, version)
        if local or self._found.setdefault(plain, version) != version:
            self._unclear.add(plain)


MAX_LINE = 4_096
"""Longer lines are cut: no tool prints a place behind this column."""

_MAX_EMPTY_LINES = 100
"""More empty lines in a row are left out: millions of them would cost every reader time."""
_READ_LIMITS = ChildLimits(cpu=60, seconds=600, memory=1024)
_TIMESTAMP = re.compile(r"^\ufeff?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z ?")
_STEP_COLUMN = re.compile(
    r"^\ufeff?[^\t]{1,300}\t(?P<step>[^\t]{1,300})\t(?=\ufeff?\d{4}-\d\d-\d\dT)"
)
_MARKER_LINE = re.compile(r"^##\[(?P<what>\w+(?:-\w+)?)\](?P<text>.*)$")
_ERROR_COMMAND = re.compile(r"^::error(?: [^\n]{0,1000}?)?::(?P<text>.*)$")
_EXIT_LINE = re.compile(r"^Process completed with exit code (?P<code>-?\d+)\.?$")
_ACTION_EXIT_LINE = re.compile(
    r"^(?:Error: )?(?:The process '.*' failed with exit code|Process completed with exit code) (\d+)"
)
# Tools that run several programs at once put the program's name before each line: docker compose, turbo, pnpm.
_OUTPUT_PREFIX = re.compile(
    r"^(?:[a-z][\w.-]{0,60}[-_]\d{1,3} {1,30}\| ?|@?[\w.-]{1,60}(?:/[\w.-]{1,60})?:[a-z][\w-]{0,40}: "
    r"|(?:packages|apps|libs|services|crates|tools)/[\w./-]{1,80} [a-z][\w:-]{0,40}: )"
)
_ERROR_WORD = re.compile(
    r"\b(?:error|errors|failed|failure|fatal|panic|panicked|traceback|exception|cannot|abort(?:ed)?)\b",
    re.IGNORECASE,
)
_ERROR_BLOCK = 20


@dataclass(frozen=True)
class CiLog:
    """The content of a job's log: the failing step, its command, the kind of failure, all failures.

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


def read_log(
    log: bytes | BinaryIO, step: str | None = None, *, limits: ChildLimits = _READ_LIMITS
) -> CiLog:
    """Read a job's log in a child process; see `parse_log`. A stream may have any length.

    Raises:
        AnalysisFailed: it cannot be read within the limits; the text says so.
    """
    with name_failed_input("the CI log"):
        if isinstance(log, bytes):
            return run_in_child(parse_log, log, step, limits=limits)
        with NamedTemporaryFile(prefix="regreen-log-") as copy:
            copyfileobj(log, copy)
            copy.flush()
            return run_in_child(_parse_file, copy.name, step, limits=limits)


def _parse_file(path: str, step: str | None) -> CiLog:
    with Path(path).open("rb") as log:
        return parse_log(read_lines(log), step)


def read_failures(output: str, guess: bool = False) -> tuple[Failure, ...]:
    """`failures_in` from a child process; output that cannot be read is a failure without a test's name."""
    try:
        with name_failed_input("the output"):
            return run_in_child(failures_in, output, guess, limits=_READ_LIMITS)
    except AnalysisFailed as error:
        return (Failure("", "error", str(error)),)


def parse_log(lines: Iterable[bytes] | bytes, step: str | None = None) -> CiLog:
    """Read a job's log, GitHub's or plain.

    Args:
        lines: the log, whole or line by line.
        step: the failing step's name from the API; without it, the log decides.
    """
    job = _Job(step)
    for raw in read_lines(io.BytesIO(lines)) if isinstance(lines, bytes) else lines:
        job.feed(raw)
    return job.collect_result()


def read_lines(stream: BinaryIO) -> Iterator[bytes]:
    """The lines of a stream; long ones are cut into pieces, and of a long run of empty ones the rest is left out."""
    empty = 0
    while line := stream.readline(16 * MAX_LINE):
        empty = empty + 1 if line.isspace() and line.endswith(b"\n") else 0
        if empty <= _MAX_EMPTY_LINES:
            yield line


def extract_command_output(log: bytes, command: str) -> str:
    """What the last step that ran `command` printed, as its tools wrote it; empty where the log does not show it."""
    heading = f"##[group]Run {command.strip().splitlines()[0]}"
    kept_lines: list[str] = []
    inside = False
    for raw in read_lines(io.BytesIO(log)):
        text = raw[:MAX_LINE].decode("utf-8", "replace")
        line = clean_line(
            _TIMESTAMP.sub("", _STEP_COLUMN.sub("", text, count=1), count=1).removeprefix("\ufeff")
        )
        if line.startswith("##[group]Run ") or line == "Post job cleanup.":
            inside = line == heading
            kept_lines = [] if inside else kept_lines
        elif inside and not line.startswith("##["):
            kept_lines.append(line)
    return "\n".join(kept_lines)


def failures_in(text: str, guess: bool = False) -> tuple[Failure, ...]:
    """The failures in a tool's plain output; without any, with `guess`, its last lines."""
    section = _Section("")
    for line in text.splitlines():
        section.feed(clean_line(line[:MAX_LINE]))
    return section.collect_result(strong_only=True)[1] or (
        parse_log(text.encode()).failures if guess else ()
    )


def failure_kinds_in(text: str) -> frozenset[Kind]:
    """The kinds of failure in a tool's plain output; empty without a failure."""
    section = _Section("")
    for line in text.splitlines():
        section.feed(clean_line(line))
    return frozenset(reader.kind for reader in section.readers if reader.failures())


def clean_line(line: str) -> str:
    """A line without colours and without what a carriage return has overwritten."""
    line = strip_terminal_codes(line).rstrip("\r\n \t")
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
        self._readers: tuple[LogReader, ...] = (
            JestReader(),
            VitestReader(),
            MochaReader(),
            NodeReader(),
            HeadedReader(),
            BunReader(),
            CargoReader(),
            GoReader(),
            TypeReader(),
            PreCommitReader(),
            MatchReader("lint", "lint"),
            MatchReader("grouped", "lint"),
            RustBuildReader(),
            MatchReader("compilers", "build"),
            MatchReader("tests", "test"),
            MatchReader("builds", "build"),
            MatchReader("web", "lint"),
            AvaReader(),
            MatchReader("installers", "dependency"),
            NpmReader(),
        )
        self._events = GoEvents()
        self._infra = MatchReader("infra", "infra")
        self._environments = MatchReader("environments", "unknown")
        self._traceback = TracebackReader()

    @property
    def has_failed(self) -> bool:
        """Whether the step's process ended with an error, according to GitHub."""
        return self.exit_code not in (None, 0)

    @property
    def readers(self) -> tuple[LogReader, ...]:
        """Those that name the kind of a failure."""
        return (self._pytest, self._unittest, *self._readers)

    def feed(self, line: str) -> None:
        """Take the next line of output."""
        line = _OUTPUT_PREFIX.sub("", line, count=1)
        events = self._events.convert_line(line)
        for event in [line] if events is None else events:
            self._feed_readers(event)

    def _feed_readers(self, line: str) -> None:
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

    def collect_result(self, *, strong_only: bool = False) -> tuple[Kind, tuple[Failure, ...]]:
        """The kind of what was found, and all of it; the first reader that found something names the kind."""
        kind: Kind | None = None
        found: list[Failure] = []
        for reader in self.readers:
            failures = reader.failures()
            if failures and kind is None:
                kind = reader.kind
            found.extend(failures)
        if kind is not None:
            return _refine_kind(kind, found), tuple(found)
        return self._collect_weak_signs(strong_only)

    def _collect_weak_signs(self, strong_only: bool) -> tuple[Kind, tuple[Failure, ...]]:
        """Without a tool's report: the runner's error, an environment's name, a traceback, the last lines."""
        signs = self._infra.failures()
        environments = self._environments.failures()
        if environments:
            kind: Kind = "infra" if signs else "unknown"
            return kind, tuple(
                replace(failure, message=failure.message or self._error_block())
                for failure in environments
            )
        if signs:
            return "infra", tuple(signs[-1:])
        if tracebacks := self._traceback.failures():
            return "unknown", tuple(tracebacks[-1:])
        if not strong_only and not self.empty:
            return "unknown", (Failure("", "error", self._error_block()),)
        return "unknown", ()

    def _error_block(self) -> str:
        return shorten_message("\n".join([*self.complaints[-5:], *self.tail]))

    def looks_bad(self) -> bool:
        """Whether the last lines mention an error."""
        return any(_ERROR_WORD.search(line) for line in self.tail)


def _refine_kind(kind: Kind, found: list[Failure]) -> Kind:
    """A collection that failed for a missing module is still a test; a build that lacked a package is not."""
    if kind == "build" and all(item.kind == "dependency" for item in found):
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
            self._feed_line(raw[:MAX_LINE].decode("utf-8", "replace"))
        self._continues = not whole and len(raw) >= MAX_LINE

    def collect_result(self) -> CiLog:
        """The content of the log."""
        self._close_section()
        section = self._chosen or self._suspect
        if section is None and self._github and self._ended:
            return CiLog("", "unknown", (), installed=self._installed.installed_versions())
        if section is None and self._last is not None:
            section = self._last[0]
        section = section or self._now
        strong_only = (
            section.exit_code is None and not section.complaints and not section.looks_bad()
        )
        kind, failures = section.collect_result(strong_only=strong_only)
        command = "\n".join(section.command)
        truncated = self._github and not self._ended and not section.has_failed
        return CiLog(
            section.step,
            kind,
            failures,
            command,
            section.exit_code,
            truncated,
            self._installed.installed_versions(),
            self._installed.locally_built(),
        )

    def _feed_line(self, text: str) -> None:
        if tabbed := _STEP_COLUMN.match(text):
            text = text[tabbed.end() :]
            self._enter_named_step(tabbed["step"])
        stamped = _TIMESTAMP.sub("", text, count=1)
        self._github = self._github or len(stamped) != len(text)
        line = clean_line(stamped.removeprefix("\ufeff"))
        if line.startswith("##[") and (mark := _MARKER_LINE.match(line)):
            self._github = True
            self._handle_workflow_command(mark["what"], mark["text"])
        elif self._github and line in {"Post job cleanup.", "Cleaning up orphan processes"}:
            self._ended = True
            self._start_section("")
        elif self._now.in_header:
            self._feed_header(line)
        elif line.startswith("::error") and (command := _ERROR_COMMAND.match(line)):
            self._record_error_annotation(
                command["text"].replace("%0A", "\n").replace("%25", "%").split("\n")[0]
            )
        else:
            self._installed.feed(line)
            self._now.feed(line)

    def _handle_workflow_command(self, what: str, text: str) -> None:
        if what == "group" and text.startswith("Run "):
            if self._now.step_from_api and not self._now.command:
                self._now.in_header = True
                self._now.command = [text.removeprefix("Run ")]
                return
            self._start_section(text)
        elif what == "endgroup":
            self._now.in_header = False
        elif what == "error":
            self._record_error_annotation(text)
        elif what in {"warning", "notice"}:
            self._now.feed(text)

    def _record_error_annotation(self, text: str) -> None:
        if ended := _EXIT_LINE.match(text):
            self._now.exit_code = int(ended["code"][:9])
            return
        if code := _ACTION_EXIT_LINE.match(text):
            self._now.exit_code = self._now.exit_code or int(code[1][:9])
        self._now.feed(text)
        if len(self._now.complaints) < 50:
            self._now.complaints.append(text[:500])

    def _feed_header(self, line: str) -> None:
        if line.startswith(("shell: ", "env:", "with:", "  ")):
            return
        if len(self._now.command) < 200:
            self._now.command.append(line)

    def _enter_named_step(self, step: str) -> None:
        if step not in {"UNKNOWN STEP", self._now.step}:
            self._start_section(step, from_api=True)

    def _start_section(self, step: str, *, from_api: bool = False) -> None:
        self._close_section()
        self._now = _Section(step)
        self._now.step_from_api = from_api
        if step.startswith("Run ") and not from_api:
            self._now.command = []
            self._now.in_header = True

    def _close_section(self) -> None:
        """Decide about the section that ends: the first that failed is the one; else the first that complained."""
        section = self._now
        if (self._wanted is not None and section.step in {self._wanted, f"Run {self._wanted}"}) or (
            section.has_failed and self._chosen is None
        ):
            self._chosen = section
        elif section.complaints and self._suspect is None:
            self._suspect = section
        elif not section.empty and not self._ended:
            kind, failures = section.collect_result(strong_only=True)
            if failures or self._last is None or not self._last[2]:
                self._last = (section, kind, failures)
