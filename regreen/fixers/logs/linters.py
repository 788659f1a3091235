"""Reads linters, formatters and type checkers: one finding a line, or a finding and its place below."""

from __future__ import annotations

import json
import re

from regreen.fixers.logs.reader import Collector, Kind, number, relative, shorten
from regreen.models import Failure

_PATH = r"(?P<path>(?:[A-Za-z]:)?[^\s:(][^:(\n]{0,500}?\.\w{1,10}|[\w./-]{1,300}file)"
_CODED = re.compile(
    rf"^{_PATH}:(?P<line>\d+):(?P<col>\d+):? (?P<code>[A-Z]{{1,6}}\d{{1,5}}|invalid-syntax|SyntaxError|[a-z]+(?:-[a-z]+)+):? (?P<message>\S.*)$"
)
_PYLINT = re.compile(
    rf"^{_PATH}:(?P<line>\d+):(?P<col>\d+): (?P<code>[CRWEF]\d{{4}}): (?P<message>\S.*)$"
)
_RUFF_HEAD = re.compile(
    r"^(?P<code>[A-Z]{1,6}\d{1,5}|invalid-syntax|unformatted)(?:(?: \[\*\])|:)? (?:\[\*\] )?(?P<message>\S.*)$"
)
_RUFF_FORMAT_HEAD = re.compile(r"^unformatted: (?P<message>File would be reformatted)$")
_ARROW = re.compile(r"^ *--> (?P<path>\S.*?):(?P<line>\d+):(?P<col>\d+)$")
_REFORMAT = re.compile(r"^(?:Would reformat: |would reformat )(?P<path>\S.*)$")
_CANNOT_FORMAT = re.compile(r"^error: cannot format (?P<path>[^:]+): (?P<message>\S.*)$")
_RUFF_PARSE = re.compile(
    r"^error: Failed to (?:parse|format) (?P<path>[^:]+):(?P<line>\d+):(?P<col>\d+): (?P<message>.*)$"
)
_WOULD_DIFFER = re.compile(r"^\d+ files? would be reformatted")
_ISORT = re.compile(r"^ERROR: (?P<path>\S.*?) Imports are incorrectly sorted and/or formatted\.$")
_CODESPELL = re.compile(rf"^{_PATH}:(?P<line>\d+): (?P<message>\S+ +==> \S.*)$")
_PRETTIER = re.compile(r"^\[(?:warn|error)\] (?P<path>[^\s:]+\.\w{1,10})(?:: (?P<message>.*))?$")
_ESLINT = re.compile(
    r"^ +(?P<line>\d+):(?P<col>\d+) {1,}(?P<level>error|warning) {1,}(?P<message>\S.*)$"
)
_ESLINT_FILE = re.compile(r"^(?P<path>/?[^\s:]\S*\.(?:[cm]?[jt]sx?|vue|svelte|json|md))$")
_RUSTFMT = re.compile(r"^Diff in (?P<path>.+?)(?: at line (?P<line>\d+)|:(?P<line2>\d+)):$")
_YAMLLINT = re.compile(
    r"^ +(?P<line>\d+):(?P<col>\d+) +error +(?P<message>\S.*?)(?: +\((?P<code>[\w-]+)\))?$"
)
_GOLANGCI = re.compile(
    rf"^{_PATH}:(?P<line>\d+):(?P<col>\d+): (?P<message>\S.*) \((?P<code>[a-z][a-zA-Z]+)\)$"
)
_SHELLCHECK = re.compile(
    rf"^{_PATH}:(?P<line>\d+):(?P<col>\d+): (?P<level>error|warning|note|style): (?P<message>.*) \[(?P<code>SC\d+)\]$"
)

_MYPY = re.compile(
    rf"^{_PATH}:(?P<line>\d+)(?::(?P<col>\d+))?(?::\d+:\d+)?: error: (?P<message>\S.*?)(?: {{1,4}}\[(?P<code>[a-z][\w-]*)\])?$"
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
    rf"^{_PATH}:(?P<line>\d+):(?P<col>\d+): error\[(?P<code>[a-z][\w-]*)\] (?P<message>\S.*)$"
)
_COMPILED = re.compile(r"\.(?:c|cc|cpp|cxx|h|hh|hpp|m|mm|java|kt|swift|f90|cu)$")
_MYPY_CRASH = re.compile(
    r"^(?:mypy: )?(?P<message>.*(?:error: INTERNAL ERROR|can't read file|is not a valid Python package name).*)$"
)


class LintReader:
    """Reads ruff, flake8, pylint, black, isort, codespell, eslint, prettier, rustfmt, yamllint."""

    kind: Kind = "lint"

    def __init__(self) -> None:
        self._found = Collector()
        self._head: re.Match[str] | None = None
        self._file: str | None = None
        self._differing: list[str] = []

    def feed(self, line: str) -> None:
        """Take the next line."""
        head, self._head = self._head, None
        if not line:
            return
        if head is not None and (place := _ARROW.match(line)):
            self._placed(head, place)
            return
        if coded := _PYLINT.match(line) or _CODED.match(line):
            if not coded["message"].startswith("error: "):
                self._add(
                    coded["path"], coded["line"], coded["col"], coded["code"], coded["message"]
                )
            return
        self._head = _RUFF_HEAD.match(line)
        self._others(line)

    def failures(self) -> list[Failure]:
        """What was found."""
        return self._found.all()

    def _placed(self, head: re.Match[str], place: re.Match[str]) -> None:
        if head["code"] == "unformatted":
            self._file_failure(place["path"], "format", head["message"])
        else:
            self._add(place["path"], place["line"], place["col"], head["code"], head["message"])

    def _others(self, line: str) -> None:
        if line.startswith("+++ "):
            self._differing = [
                *self._differing[-200:],
                line[4:].split("\t", 1)[0].removeprefix("b/"),
            ]
        elif _WOULD_DIFFER.match(line):
            for path in self._differing:
                self._file_failure(path, "format", "would be reformatted")
            self._differing = []
        else:
            self._by_tool(line)

    def _by_tool(self, line: str) -> None:  # noqa: C901 - a table of tools, one line each
        if line[0] in "Ww" and (reformat := _REFORMAT.match(line)):
            self._file_failure(reformat["path"], "format", "would be reformatted")
        elif line.startswith("error: ") and (parse := _RUFF_PARSE.match(line)):
            self._add(parse["path"], parse["line"], parse["col"], "syntax", parse["message"])
        elif line.startswith("error: ") and (cannot := _CANNOT_FORMAT.match(line)):
            self._file_failure(cannot["path"], "format", cannot["message"])
        elif line.startswith("ERROR: ") and (isort := _ISORT.match(line)):
            self._file_failure(
                isort["path"], "isort", "Imports are incorrectly sorted and/or formatted."
            )
        elif " ==> " in line and (spell := _CODESPELL.match(line)):
            self._add(spell["path"], spell["line"], None, "codespell", spell["message"])
        elif line.startswith("Diff in ") and (rustfmt := _RUSTFMT.match(line)):
            self._add(
                rustfmt["path"],
                rustfmt["line"] or rustfmt["line2"],
                None,
                "format",
                "would be reformatted",
            )
        elif line[0] == "[" and (prettier := _PRETTIER.match(line)):
            self._file_failure(
                prettier["path"], "format", prettier["message"] or "Code style issues found"
            )
        elif line.endswith(")") and (golangci := _GOLANGCI.match(line)):
            self._add(
                golangci["path"],
                golangci["line"],
                golangci["col"],
                golangci["code"],
                golangci["message"],
            )
        elif line.endswith("]") and (shell := _SHELLCHECK.match(line)):
            self._add(shell["path"], shell["line"], shell["col"], shell["code"], shell["message"])
        elif file := _ESLINT_FILE.match(line):
            self._file = file["path"]
        elif self._file and line[0] == " " and (finding := _ESLINT.match(line)):
            self._eslint(finding)
        elif line[0] != " ":
            self._file = None

    def _eslint(self, finding: re.Match[str]) -> None:
        if finding["level"] == "error" and self._file:
            message, _, rule = finding["message"].rstrip().rpartition("  ")
            code = rule if message and " " not in rule else "eslint"
            self._add(self._file, finding["line"], finding["col"], code, (message or rule).strip())

    def _add(self, path: str, line: str, col: str | None, code: str, message: str) -> None:
        where = relative(path)
        test = f"{where}:{line}:{col}: {code}" if col else f"{where}:{line}: {code}"
        self._found.add(
            Failure(test, code, shorten(message.removeprefix("[*] ")), where, number(line))
        )

    def _file_failure(self, path: str, code: str, message: str) -> None:
        where = relative(path)
        self._found.add(Failure(f"{where}: {code}", code, shorten(message), where))


class TypeReader:
    """Reads mypy, pyright, ty and the TypeScript compiler."""

    kind: Kind = "type"

    def __init__(self) -> None:
        self._found = Collector()
        self._head: re.Match[str] | None = None
        self._open: re.Match[str] | None = None
        self._said: list[str] = []

    def feed(self, line: str) -> None:
        """Take the next line."""
        head, self._head = self._head, None
        if self._open is not None and self._continues(self._open, line):
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
            if finding and not _is_another(finding):
                self._start(finding)
            elif "INTERNAL ERROR" in line or line.startswith("mypy: "):
                self._crash(line)
            elif line.startswith('{"file"'):
                self._json(line)
        elif head is not None and (place := _ARROW.match(line)):
            self._add(place, head["code"], head["message"])

    def failures(self) -> list[Failure]:
        """What was found."""
        self._close()
        return self._found.all()

    def _start(self, finding: re.Match[str]) -> None:
        if finding["code"]:
            self._add(finding, finding["code"], finding["message"])
        else:
            self._open, self._said = finding, [finding["message"]]

    def _continues(self, finding: re.Match[str], line: str) -> bool:
        """Long messages go on below, with the rule at their end."""
        goes_on = len(self._said) < 8 and not _PYRIGHT.match(line) and not _MYPY.match(line)
        if goes_on and (rule := _RULE_AT_END.search(line)):
            self._said.append(line[: rule.start()].strip())
            self._add(finding, rule["report"] or rule["code"], "\n".join(self._said))
            self._open = None
            return True
        if goes_on and line[:1].isspace():
            self._said.append(line.strip())
            return True
        self._close()
        return False

    def _close(self) -> None:
        if self._open is not None:
            self._add(self._open, "error", self._said[0])
        self._open = None

    def _json(self, line: str) -> None:
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            return
        if (
            isinstance(told, dict)
            and told.get("severity") == "error"
            and isinstance(told.get("line"), int)
        ):
            path, at, code = (
                relative(str(told.get("file"))),
                told["line"],
                str(told.get("code") or "error"),
            )
            self._found.add(
                Failure(f"{path}:{at}: {code}", code, shorten(str(told.get("message"))), path, at)
            )

    def _add(self, place: re.Match[str], code: str, message: str) -> None:
        where = relative(place["path"])
        at = ":".join(part for part in (place["line"], place["col"]) if part)
        self._found.add(
            Failure(f"{where}:{at}: {code}", code, shorten(message), where, number(place["line"]))
        )

    def _crash(self, line: str) -> None:
        if crash := _MYPY_CRASH.match(line):
            self._found.add(Failure("mypy", "crash", shorten(crash["message"])))


_RULE_AT_END = re.compile(r"(?:\[(?P<code>[a-z][\w-]*)\]|\((?P<report>report\w+)\))$")


def _is_another(finding: re.Match[str]) -> bool:
    """Whether shellcheck or a compiler speaks the same way."""
    return bool(re.fullmatch(r"SC\d+", finding["code"] or "") or _COMPILED.search(finding["path"]))


_HOOK_DETAIL = re.compile(
    r"^- (?P<key>hook id|exit code|duration|files were modified by this hook)(?:: (?P<value>.*))?$"
)


def _hook(line: str) -> tuple[str, str] | None:
    """`name.......(reason)Failed` as name and result; by hand, for a row of dots would cost a pattern dear."""
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
        self._found = Collector()
        self._hook: dict[str, str] | None = None
        self._said: list[str] = []

    def feed(self, line: str) -> None:
        """Take the next line."""
        if (hook := _hook(line)) is not None:
            self._close()
            name, result = hook
            if result == "Failed":
                self._hook = {"name": name}
        elif self._hook is not None:
            if detail := _HOOK_DETAIL.match(line):
                self._hook[detail["key"]] = detail["value"] or ""
            elif line and len(self._said) < 40:
                self._said.append(line)

    def failures(self) -> list[Failure]:
        """The hooks that failed."""
        found = self._found.all()
        if self._hook is not None and "hook id" in self._hook:
            found.append(self._failure(self._hook))
        return found

    def _close(self) -> None:
        if self._hook is not None and "hook id" in self._hook:
            self._found.add(self._failure(self._hook))
        self._hook, self._said = None, []

    def _failure(self, hook: dict[str, str]) -> Failure:
        said = "\n".join(self._said)
        if "files were modified by this hook" in hook:
            said = f"files were modified by this hook\n{said}"
        return Failure(hook["hook id"], "pre-commit", shorten(said or hook["name"]))
