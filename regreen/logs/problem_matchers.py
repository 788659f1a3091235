"""Reads compilers, linters, type checkers, pre-commit and test runners that name each failing test in one line: by
`log_matchers.toml`, and messages that continue on the next lines.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from regreen.domain.models import Failure, StackFrame
from regreen.logs.javascript import STACK_FRAME
from regreen.logs.reader import (
    FailureCollector,
    Kind,
    find_innermost,
    make_relative,
    parse_line_number,
    shorten_message,
)

_PATH_PATTERN = r"(?P<path>(?:[A-Za-z]:)?[^\s:(][^:(\n]{0,500}?\.\w{1,10}|[\w./-]{1,300}file)"
_ARROW_PLACE = re.compile(r"^ *--> (?P<path>\S.*?):(?P<line>\d+):(?P<col>\d+)$")
_MYPY = re.compile(
    rf"^{_PATH_PATTERN}:(?P<line>\d+)(?::(?P<col>\d+))?(?::\d+:\d+)?: error: (?P<message>\S.*?)(?: {{1,4}}\[(?P<code>[a-z][\w-]*)\])?$"
)
_PYRIGHT = re.compile(
    r"^ *(?P<path>/?[^\s:][^:]*\.pyi?):(?P<line>\d+):(?P<col>\d+) - error:? ?(?P<message>\S.*?)(?: \((?P<code>report\w+)\))?$"
)
_TSC = re.compile(
    r"^(?P<path>[^\s(][^(]*\.[cm]?[jt]sx?|[^\s(]+\.(?:vue|svelte))\((?P<line>\d+),(?P<col>\d+)\): error (?P<code>TS\d+): (?P<message>.*)$"
)
_TSC_PRETTY = re.compile(
    r"^(?P<path>[^\s:]+\.[cm]?[jt]sx?):(?P<line>\d+):(?P<col>\d+) - error (?P<code>TS\d+): (?P<message>.*)$"
)
_TY_HEAD = re.compile(r"^error\[(?P<code>[a-z][\w-]*)\]: (?P<message>\S.*)$")
_TY_CONCISE = re.compile(
    rf"^{_PATH_PATTERN}:(?P<line>\d+):(?P<col>\d+): error\[(?P<code>[a-z][\w-]*)\] (?P<message>\S.*)$"
)
_COMPILED_SUFFIX = re.compile(r"\.(?:c|cc|cpp|cxx|h|hh|hpp|m|mm|java|kt|swift|f90|cu)$")
_MYPY_CRASH = re.compile(
    r"^(?:mypy: )?(?P<message>.*(?:error: INTERNAL ERROR|can't read file|is not a valid Python package name).*)$"
)


class TypeReader:
    """Reads mypy, pyright, ty and the TypeScript compiler."""

    kind: Kind = "type"

    def __init__(self) -> None:
        self._found = FailureCollector()
        self._head: re.Match[str] | None = None
        self._open: re.Match[str] | None = None
        self._message_lines: list[str] = []

    def feed(self, line: str) -> None:
        """Take the next line."""
        head, self._head = self._head, None
        if self._open is not None and self._continues_message(self._open, line):
            return
        if "error" in line:
            self._head = _TY_HEAD.match(line)
            finding = (
                _MYPY.match(line)
                or _PYRIGHT.match(line)
                or _TSC.match(line)
                or _TSC_PRETTY.match(line)
                or _TY_CONCISE.match(line)
            )
            if finding and not _is_other_tools_finding(finding):
                self._start_finding(finding)
            elif "INTERNAL ERROR" in line or line.startswith("mypy: "):
                self._add_crash(line)
            elif line.startswith('{"file"'):
                self._add_json_finding(line)
        elif head is not None and (place := _ARROW_PLACE.match(line)):
            self._add_failure(place, head["code"], head["message"])

    def failures(self) -> list[Failure]:
        """What was found."""
        self._close_finding()
        return self._found.all()

    def _start_finding(self, finding: re.Match[str]) -> None:
        if finding["code"]:
            self._add_failure(finding, finding["code"], finding["message"])
        else:
            self._open, self._message_lines = finding, [finding["message"]]

    def _continues_message(self, finding: re.Match[str], line: str) -> bool:
        """Long messages continue on the next lines, with the rule at the end."""
        goes_on = (
            len(self._message_lines) < 8 and not _PYRIGHT.match(line) and not _MYPY.match(line)
        )
        if goes_on and (rule := _RULE_AT_END.search(line)):
            self._message_lines.append(line[: rule.start()].strip())
            self._add_failure(
                finding, rule["report"] or rule["code"], "\n".join(self._message_lines)
            )
            self._open = None
            return True
        if goes_on and line[:1].isspace():
            self._message_lines.append(line.strip())
            return True
        self._close_finding()
        return False

    def _close_finding(self) -> None:
        if self._open is not None:
            self._add_failure(self._open, "error", self._message_lines[0])
        self._open = None

    def _add_json_finding(self, line: str) -> None:
        try:
            finding = json.loads(line)
        except (ValueError, RecursionError):
            return
        if (
            isinstance(finding, dict)
            and finding.get("severity") == "error"
            and isinstance(finding.get("line"), int)
        ):
            path, at, code = (
                make_relative(str(finding.get("file"))),
                finding["line"],
                str(finding.get("code") or "error"),
            )
            self._found.add(
                Failure(
                    f"{path}:{at}: {code}",
                    code,
                    shorten_message(str(finding.get("message"))),
                    path,
                    at,
                )
            )

    def _add_failure(self, place: re.Match[str], code: str, message: str) -> None:
        where = make_relative(place["path"])
        at = ":".join(part for part in (place["line"], place["col"]) if part)
        self._found.add(
            Failure(
                f"{where}:{at}: {code}",
                code,
                shorten_message(message),
                where,
                parse_line_number(place["line"]),
            )
        )

    def _add_crash(self, line: str) -> None:
        if crash := _MYPY_CRASH.match(line):
            self._found.add(Failure("mypy", "crash", shorten_message(crash["message"])))


_RULE_AT_END = re.compile(r"(?:\[(?P<code>[a-z][\w-]*)\]|\((?P<report>report\w+)\))$")


def _is_other_tools_finding(finding: re.Match[str]) -> bool:
    """Whether the line is shellcheck's or a compiler's, which have the same form."""
    return bool(
        re.fullmatch(r"SC\d+", finding["code"] or "") or _COMPILED_SUFFIX.search(finding["path"])
    )


_HOOK_DETAIL = re.compile(
    r"^- (?P<key>hook id|exit code|duration|files were modified by this hook)(?:: (?P<value>.*))?$"
)


def _parse_hook(line: str) -> tuple[str, str] | None:
    """`name.......(reason)Failed` as name and result; without a pattern, which would be slow on a row of dots."""
    result = next((word for word in ("Failed", "Passed", "Skipped") if line.endswith(word)), None)
    if result is None:
        return None
    rest = line[: -len(result)]
    if rest.endswith(")") and "(" in rest:
        rest = rest[: rest.rindex("(")]
    name = rest.rstrip(".")
    return (name, result) if len(rest) - len(name) >= 3 and name.strip() else None


class PreCommitReader:
    """Reads pre-commit's (and prek's) list of hooks; a failed hook is a failure under its id."""

    kind: Kind = "lint"

    def __init__(self) -> None:
        self._found = FailureCollector()
        self._hook: dict[str, str] | None = None
        self._message_lines: list[str] = []

    def feed(self, line: str) -> None:
        """Take the next line."""
        if (hook := _parse_hook(line)) is not None:
            self._close_hook()
            name, result = hook
            if result == "Failed":
                self._hook = {"name": name}
        elif self._hook is not None:
            if detail := _HOOK_DETAIL.match(line):
                self._hook[detail["key"]] = detail["value"] or ""
            elif line and len(self._message_lines) < 40:
                self._message_lines.append(line)

    def failures(self) -> list[Failure]:
        """The hooks that failed."""
        found = self._found.all()
        if self._hook is not None and "hook id" in self._hook:
            found.append(self._make_failure(self._hook))
        return found

    def _close_hook(self) -> None:
        if self._hook is not None and "hook id" in self._hook:
            self._found.add(self._make_failure(self._hook))
        self._hook, self._message_lines = None, []

    def _make_failure(self, hook: dict[str, str]) -> Failure:
        text = "\n".join(self._message_lines)
        if "files were modified by this hook" in hook:
            text = f"files were modified by this hook\n{text}"
        return Failure(hook["hook id"], "pre-commit", shorten_message(text or hook["name"]))


# The lines below the name of a failing test: the kind of error, its message, its stack frames.

_MAX_LINES = 60
_JVM_FRAME = re.compile(
    r"^\s+(?:at )?(?:[\w.@-]{0,100}/){0,3}(?P<cls>[\w.$]{1,300})\.[\w$<>]{1,200}\((?P<path>[\w$]{1,200}\.\w{1,10}):(?P<line>\d+)\)$"
)
_DOTNET_FRAME = re.compile(r"^\s+at .{1,500} in (?P<path>\S.{0,400}?):line (?P<line>\d+)$")
_PLACED_MESSAGE = re.compile(
    r"^ {4}(?P<kind>[\w.$]{1,200}(?:Error|Exception|Failed\w{0,40}))(?:: (?P<message>.{0,1000}?))? at (?P<path>\S{1,400}):(?P<line>\d+)$"
)
"""What gradle prints without a stack trace."""
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
        frames = (_JVM_FRAME, _DOTNET_FRAME, _PHP_FRAME, STACK_FRAME)
        if place := next(filter(None, (frame.match(line) for frame in frames)), None):
            called = place.groupdict().get("cls") or ""
            self._frames.append(
                StackFrame(make_relative(place["path"]), parse_line_number(place["line"]), called)
            )
            return
        if (placed := _PLACED_MESSAGE.match(line)) is not None:
            where = parse_line_number(placed["line"])
            self._frames.append(StackFrame(make_relative(placed["path"]), where, placed["kind"]))
            line = ": ".join(part for part in (placed["kind"], placed["message"]) if part)
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


_MAX_OPEN = 200

MatchedFields = dict[str, str | None]


@dataclass(frozen=True)
class MatcherRow:
    """One row: which lines it takes, and what they mean."""

    match: str
    tool: str = ""
    has: str | list[str] = ""
    after: str = ""
    within: int = 0
    opens: str = ""
    gathers: bool = False
    closes: str = ""
    collects: bool = False
    skips: bool = False
    passes: bool = False
    code: str = ""
    message: str = ""
    kind: str = ""
    test: str = ""
    path: str = ""
    example: str = ""
    finds: str = ""


@cache
def load_rows() -> Mapping[str, tuple[tuple[MatcherRow, re.Pattern[str]], ...]]:
    """Each reader's rows with their patterns."""
    text = resources.files("regreen.logs").joinpath("log_matchers.toml").read_text("utf-8")
    tables = tomllib.loads(text)
    path = tables.pop("parts")["PATH"]
    return {
        reader: tuple(
            (MatcherRow(**row), re.compile(row["match"].replace("{PATH}", path))) for row in table
        )
        for reader, table in tables.items()
    }


class MatchReader:
    """Reads the tools of one table."""

    def __init__(self, table: str, kind: Kind) -> None:
        self.kind = kind
        self._rows = load_rows()[table]
        self._found = FailureCollector()
        self._open: dict[str, list[MatchedFields]] = {}
        self._opened: dict[str, int] = {}
        self._lines = 0
        self._block: FailureBlock | None = None

    def feed(self, line: str) -> None:
        """Take the next line."""
        self._lines += 1
        lowered = line.lower()
        for row, pattern in self._rows:
            if isinstance(row.has, str):
                if row.has not in line:
                    continue
            elif not any(word in lowered for word in row.has):
                continue
            if row.after and not self._is_open(row):
                continue
            if (match := pattern.match(line)) is not None:
                self._apply_row(row, {"text": line, **match.groupdict()})
                if not row.passes:
                    return
        if self._block is not None and line:
            self._block.feed(line)

    def failures(self) -> list[Failure]:
        """The failures found, in the order of the log."""
        self._end_block()
        return self._found.all()

    def _end_block(self) -> None:
        if self._block is not None:
            self._found.add(self._block.make_failure())
        self._block = None

    def _is_open(self, row: MatcherRow) -> bool:
        age = self._lines - self._opened.get(row.after, 0)
        return row.after in self._open and (not row.within or age <= row.within)

    def _apply_row(self, row: MatcherRow, fields: MatchedFields) -> None:
        self._end_block()
        if row.opens:
            before = self._open.get(row.opens, [])[-_MAX_OPEN:] if row.gathers else []
            self._open[row.opens], self._opened[row.opens] = [*before, fields], self._lines
        if row.collects:
            self._block = FailureBlock(_make_failure(row, _without_empty(fields)))
        elif not row.skips and not row.opens:
            for opened in self._open.get(row.after, [{}]):
                both = {**_without_empty(opened), **_without_empty(fields)}
                self._found.add(_make_failure(row, both))
        self._open.pop(row.closes, None)


def _make_failure(row: MatcherRow, fields: dict[str, str]) -> Failure:
    line, code = fields.get("line"), fields.get("code") or row.code
    path = row.path or fields.get("path")
    if path:
        fields["path"] = path = make_relative(path)
    place = ":".join(part for part in (path, line, fields.get("col")) if part)
    test = row.test.format_map(fields) or ": ".join(part for part in (place, code) if part)
    return Failure(
        test.strip(" ,"),
        row.kind or code,
        shorten_message(fields.get("message") or row.message.format_map(fields)),
        path,
        parse_line_number(line) if line else None,
    )


def _without_empty(fields: MatchedFields) -> dict[str, str]:
    return {name: text for name, text in fields.items() if text}
