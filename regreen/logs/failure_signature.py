"""What a failure looks like, so that only the failure we look for counts against a commit.

A signature is read from what the command printed: failing test ids, the exception's type, its message, the innermost
frame in the project. Without these, it is the exit status, and people are shown the line that tells most. They are shown
a message as it was printed; two messages are compared without their numbers, addresses and temporary paths.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher

from regreen.domain.models import RunResult
from regreen.domain.text_limits import strip_terminal_codes
from regreen.secrets.redaction import HIDDEN_MARK, redact_all

_EXCEPTION_KIND = r"(?:[A-Za-z_][\w.]{0,120}\.)?(?:[A-Z]\w{0,80}(?:Error|Exception|Warning|Interrupt|Exit|Failure|Failed|Fault)|Exception)"
_RAISED_EXCEPTION = re.compile(rf"^(?:E {{1,8}})?({_EXCEPTION_KIND})(?:: ?(.{{0,400}}))?$")
_PRINTED_EXCEPTION = re.compile(rf"^({_EXCEPTION_KIND})\b[: ]? ?(.{{0,400}})$")
_PYTEST_SUMMARY = re.compile(r"^(?:FAILED|ERROR) (?!\()(\S{1,300})(?: - (.{0,400}))?$")
_FAILING_TEST_LINES = (
    re.compile(r"^(?:FAIL|ERROR): (\S{1,200} ?\(?[\w.]{0,200}\)?)"),  # unittest
    re.compile(r"^\s{0,16}--- FAIL: (\S{1,200})"),  # go
    re.compile(r"^test (\S{1,200}) \.\.\. FAILED"),  # cargo
    re.compile(r"^\s{0,8}● (.{1,200})$"),  # jest
    re.compile(r"^not ok \d{1,9} -? ?(.{1,200})$"),  # TAP
)
_FRAME = re.compile(r'^\s{0,40}File "([^"]{1,300})", line \d{1,9}, in (\S{1,120})')
# What `python -m` says of a module that it cannot find; nothing is raised.
_MODULE_NOT_FOUND = re.compile(r"^\S{0,200}python[\d.]*: (No module named) ([\w.]{1,100})$")
_PLACE = re.compile(r"^([\w./+-]{1,300}\.\w{1,5}):\d{1,9}: ")  # pytest: where a traceback passes
_MAX_PATHS = 8
_VARYING_TEXT = re.compile(r"0x[0-9a-fA-F]+|\d+|/(?:tmp|work|env|home)/[^\s'\",:)]{0,300}")
_QUOTED_TEXT = re.compile(r"['\"]([^'\"]{1,120})['\"]")
_NAME_ERROR_KINDS = frozenset(
    {
        "AttributeError",
        "FileNotFoundError",
        "ImportError",
        "KeyError",
        "ModuleNotFoundError",
        "NameError",
        "TypeError",
        "UnboundLocalError",
    }
)
_MIN_SIMILARITY = 0.6
_MAX_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class FailureSignature:
    """How one run failed. `ended` is "exit", or "timeout", "oom", "flood" where it never came to an exit.

    `paths` are the files of the tree that its tracebacks go through: a hint where to look, not part of the comparison.
    `says` is the runner's summary of each of `tests`, if it gives one. `line` is for people, where nothing else tells: the
    line of the output that tells most.
    """

    ended: str
    exit_code: int | None
    tests: tuple[str, ...] = ()
    kind: str = ""
    message: str = ""
    frame: str = ""
    paths: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    line: str = field(default="", compare=False)

    @property
    def text(self) -> str:
        """One line for people and for the JSON document."""
        summary = f"{self.kind}: {self.message}" if self.kind and self.message else self.kind
        where = f" in {self.frame}" if self.frame else ""
        status = self.line or (f"exit {self.exit_code}" if self.ended == "exit" else self.ended)
        tests = self.tests or ("",)
        says = self.says or ("",) * len(tests)
        if summary and (len(tests) == 1 or not all(says)):
            # what was printed last belongs to the test that failed last
            says = ("",) * (len(tests) - 1) + (f"{summary}{where}",)
        words = [": ".join(filter(None, pair)) for pair in zip(tests, says, strict=False)][:3]
        words += [f"and {len(self.tests) - 3} more"] if len(self.tests) > 3 else []
        return " | ".join([word for word in words if word] or [status])

    def to_json(self) -> dict[str, object]:
        """For the log of observations."""
        return asdict(self)


def from_json(value: dict[str, object]) -> FailureSignature:
    """What `to_json` wrote."""
    code = value.get("exit_code")
    return FailureSignature(
        str(value.get("ended", "exit")),
        code if isinstance(code, int) else None,
        _string_tuple(value.get("tests")),
        str(value.get("kind", "")),
        str(value.get("message", "")),
        str(value.get("frame", "")),
        _string_tuple(value.get("paths")),
        _string_tuple(value.get("says")),
        str(value.get("line", "")),
    )


def _string_tuple(value: object) -> tuple[str, ...]:
    return tuple(str(word) for word in value) if isinstance(value, list | tuple) else ()


def read_signature(result: RunResult) -> FailureSignature:
    """The signature of a run that did not pass."""
    if result.ended != "exit":
        return FailureSignature(result.ended, None)
    lines = [
        line.rstrip()
        for text in (result.stdout, result.stderr)
        for line in text[-_MAX_CHARACTERS:].splitlines()
    ]
    found = _find_failing_tests(lines)
    kind, message = _find_exception(lines)
    if not kind:
        kind, message = _find_exception([next((item for item in found.values() if item), "")])
    return FailureSignature(
        "exit",
        result.exit_code,
        tuple(found),
        kind,
        message.strip(),
        _find_innermost_frame(lines),
        _list_frame_paths_innermost_first(lines),
        tuple(item.strip() for item in found.values()) if any(found.values()) else (),
        "" if found or kind else _find_line_to_show(lines),
    )


def hide_credentials(signature: FailureSignature) -> FailureSignature:
    """The signature as it may be kept: with no credential in a test's name or a message."""
    return from_json(redact_all(signature.to_json()))


def matches_any(signature: FailureSignature, wanted: Sequence[FailureSignature]) -> bool:
    """Whether a failure is like one of those that were observed where the fault is known to be.

    One that was kept has its credentials hidden, so the other's are hidden too before they are compared.
    """
    if any(HIDDEN_MARK in repr(one) for one in wanted):
        signature, wanted = hide_credentials(signature), [hide_credentials(one) for one in wanted]
    elif HIDDEN_MARK in repr(signature):
        wanted = [hide_credentials(one) for one in wanted]
    return any(_is_same_failure(signature, one) for one in wanted)


def _is_same_failure(signature: FailureSignature, other: FailureSignature) -> bool:
    if signature.ended != other.ended:
        return False
    if not signature.tests and not other.tests:
        return signature.exit_code == other.exit_code and _is_same_exception(signature, other)
    common = set(signature.tests) & set(other.tests)
    here, there = (dict(zip(s.tests, s.says, strict=False)) for s in (signature, other))
    pairs = [(here.get(test, ""), there.get(test, "")) for test in common]
    if pairs and all(pair and also for pair, also in pairs):
        return any(_is_same_summary(pair, also) for pair, also in pairs)
    return bool(common) and _is_same_exception(signature, other)


def _is_same_exception(signature: FailureSignature, other: FailureSignature) -> bool:
    """Whether the exceptions are alike; two failures without an exception are."""
    here, there = (strip_varying_text(text) for text in (signature.message, other.message))
    if signature.kind != other.kind or _are_about_other_names(signature.kind, here, there):
        return False
    same_frame = bool(signature.frame) and signature.frame == other.frame
    return not signature.kind or same_frame or _similarity_ratio(here, there) >= _MIN_SIMILARITY


def _is_same_summary(text: str, also: str) -> bool:
    """Whether two summaries of one test agree; they may be truncated."""
    text, also = strip_varying_text(text), strip_varying_text(also)
    (kind, message), (other, words) = _find_exception([text]), _find_exception([also])
    if kind != other:
        return False
    if not kind:
        return _similarity_ratio(text, also) >= _MIN_SIMILARITY
    return (
        not _are_about_other_names(kind, message, words)
        and _similarity_ratio(message, words) >= _MIN_SIMILARITY
    )


def _are_about_other_names(kind: str, message: str, other: str) -> bool:
    """Whether two errors that are about a name are about different ones: another import, another attribute."""
    here, there = (_find_wanted_name(kind, text) for text in (message, other))
    return bool(here and there and here != there)


def _find_wanted_name(kind: str, message: str) -> str:
    """The name that an error is about; "" for an error that is about none."""
    quoted = _QUOTED_TEXT.findall(message) if kind in _NAME_ERROR_KINDS else []
    at = 0 if kind in {"ImportError", "ModuleNotFoundError", "KeyError", "NameError"} else -1
    return str(quoted[at]) if quoted else ""


def _similarity_ratio(signature: str, other: str) -> float:
    return SequenceMatcher(None, signature, other, autojunk=False).ratio()


def is_environmental(signature: FailureSignature | None) -> bool:
    """Whether a failure looks like the wrong interpreter or a missing package rather than a fault of the code."""
    return signature is not None and signature.kind.rsplit(".", 1)[-1] in {
        "ImportError",
        "ModuleNotFoundError",
        "SyntaxError",
        "IndentationError",
        "TabError",
    }


def _find_failing_tests(lines: Sequence[str]) -> dict[str, str]:
    """The ids of the failing tests, and pytest's summary of each."""
    found: dict[str, str] = {}
    for line in lines:
        if match := _PYTEST_SUMMARY.match(line):
            found[match[1]] = match[2] or ""
            continue
        for pattern in _FAILING_TEST_LINES:
            if match := pattern.match(line):
                found.setdefault(match[1].strip(), "")
    return found


def strip_varying_text(message: str) -> str:
    """A message without what differs from run to run."""
    return _VARYING_TEXT.sub("#", message).strip()


def _find_exception(lines: Sequence[str]) -> tuple[str, str]:
    """The last exception that was printed as Python prints one, else as `print(type, error)` does."""
    for pattern in (_RAISED_EXCEPTION, _PRINTED_EXCEPTION):
        for line in reversed(lines):
            if match := pattern.match(line):
                return match[1].rsplit(".", 1)[-1], (match[2] or "")
    for line in reversed(lines):
        if match := _MODULE_NOT_FOUND.match(line):
            return "ModuleNotFoundError", f"{match[1]} '{match[2]}'"
    return "", ""


def _find_innermost_frame(lines: Sequence[str]) -> str:
    """The innermost frame in the tree under test, as file and function."""
    for line in reversed(lines):
        if match := _FRAME.match(line):
            path = match[1]
            if path.startswith("/work/") or not path.startswith(("/", "<")):
                return f"{path.removeprefix('/work/')}:{match[2]}"
    return ""


def _list_frame_paths_innermost_first(lines: Sequence[str]) -> tuple[str, ...]:
    """The files of the tree that tracebacks go through, innermost first."""
    found: dict[str, None] = {}
    for line in reversed(lines):
        match = _FRAME.match(line) or _PLACE.match(line)
        if match is None:
            continue
        path = match[1].removeprefix("/work/").removeprefix("./")
        if not path.startswith(("/", "<")):
            found[path] = None
    return tuple(found)[:_MAX_PATHS]


_TELLING_LINE = re.compile(
    r"(?i)\b(?:\w*error|failed|no module|not found|no matching|cannot|unable)\b"
)
_UNSOLVABLE = re.compile(r"(?:cause: )?Because \S+ ")  # how uv explains that no versions fit
_RAISED = re.compile(r"(?:E\s+)?(?:\w{1,60}\.){0,9}\w{0,60}(?:Error|Exception|SystemExit)\b: \S")
_CODE_PLACE = re.compile(r"E\s+File \"([^\"\n]{1,200})\", line (\d{1,7})")
_IN_CODE = re.compile(r"\b(?:Syntax|Indentation|Tab)Error: ")
NO_CAUSE = (
    "ERROR: Command errored out with exit status"  # the head and the end of what old pips show
)
_FINDING = re.compile(
    r"(?:[\w./+-]{1,300}\.\w{1,5}:\d{1,9}(?::\d{1,9})?:|[A-Z]{1,5}\d{2,5}(?: \[\*\])?) \S"
)
_ERROR = re.compile(r"(?i)\S+:\d{1,9}:(?:\d{1,9}:)? (?:fatal )?error\b")
_PREFIX = re.compile(r"^(?:INTERNALERROR>|npm (?:error|ERR!) )")  # pytest's own traceback; npm
_SOURCE = re.compile(
    rf"{NO_CAUSE}|at .{{1,300}}(?:\)|:\d+)$|(?:\S{{1,200}}:\d{{1,7}}: )?\w{{0,40}}(?i:warning): "
    r"|[_=]{3}|(?:ERROR: )?usage: |raise |return |except\b|File \"|\d+│|hint:|error: (?:subprocess-exited-with-error|metadata-generation-failed)|\w+(?:Error|Exception)$|\w+ = "
)


def _find_line_to_show(lines: Sequence[str]) -> str:
    """What a linter or a compiler found first, else the line that tells most."""
    plain = [strip_terminal_codes(line) for line in lines]
    found = [line[:200] for line in plain if _FINDING.match(line) and not _SOURCE.match(line)]
    error = next((line for line in found if _ERROR.match(line)), "")
    return error or next(iter(found), "") or find_telling_line("\n".join(plain))


def find_telling_line(output: str) -> str:
    """What was raised and ended the command, else the first line that names a fault, else the last one printed."""
    lines = [_PREFIX.sub("", line) for line in output.splitlines()]
    lines = [line.strip(" \t×╰─▶├│") for line in lines if len(line) < 2000]
    lines = [line for line in lines if re.search(r"\w", line)]
    marked = (line[1:].strip() for line in lines if line.startswith("E "))
    shown = [_find_raised_in_report(lines) or next(marked, "")]
    raised = [line for line in lines if _RAISED.match(line)]
    causes = [line for line in lines if _UNSOLVABLE.match(line)]
    faults = (
        line
        for line in lines
        if _TELLING_LINE.search(line) and not _SOURCE.match(line) and line[-1] != ":"
    )
    found = (*shown, *raised[-1:], *causes[:1], *faults, *lines[-1:])
    return next(filter(None, found), "")[:200]


def _find_raised_in_report(lines: Sequence[str]) -> str:
    """What pytest's first report says was raised, the last of what was raised meanwhile; of code in error, where."""
    shown = place = ""
    goes_on = False
    for line in lines:
        goes_on = goes_on or line.startswith("During handling of the above exception")
        if shown and line.startswith("___"):
            break
        if at := _CODE_PLACE.match(line):
            path = posixpath.relpath(at[1], "/work") if at[1].startswith("/work") else at[1]
            place = f" ({path}, line {at[2]})"
        elif _RAISED.match(line) and line.startswith("E ") and (goes_on or not shown):
            shown = line[1:].strip() + (place if _IN_CODE.search(line) else "")
            goes_on = False
    return shown
