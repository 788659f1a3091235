"""Reads the terminal output of pytest, whatever its verbosity, traceback style and plugins, and of unittest."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from regreen.domain.models import Failure, StackFrame
from regreen.logs.reader import (
    MAX_FAILURES,
    FailureCollector,
    Kind,
    find_innermost,
    is_foreign,
    make_relative,
    parse_line_number,
    shorten_message,
)

# Reads Python's own reports: unittest's blocks, doctest's, and uncaught tracebacks.

_BLOCK_HEADER = re.compile(r"^(FAIL|ERROR|UNEXPECTED SUCCESS): (\S.*)$")
_TEST_CASE = re.compile(r"^(\S+) \(([\w.<>]+)\)(.*)$")
_FRAME_LINE = re.compile(r'^ {1,}(?:[|] +)?File "([^"]+)", line (\d+)(?:, in (.+))?$')
_EXCEPTION_LINE = re.compile(r"^((?:[A-Za-z_]\w*\.)*[A-Z_a-z]\w*)(?::(?: (.*))?)?$")
_DOCTEST_PLACE = re.compile(r'^File "([^"]+)", line (\d+), in (\S+)$')
_EXCEPTION_WORD = re.compile(
    r"(?:Error|Exception|Warning|Interrupt|Exit|Failure|Timeout|Iteration|Skip\w{0,40}|Group)$"
)
_MAX_UNITTEST_LINES = 500


@dataclass
class _UnittestBlock:
    header: str
    word: str
    frames: list[StackFrame] = field(default_factory=list)
    kind: str = ""
    message_lines: list[str] = field(default_factory=list)
    lines: int = 0
    open: bool = True


class UnittestReader:
    """Reads `FAIL: test (case)` blocks between lines of equal signs."""

    kind: Kind = "test"

    def __init__(self) -> None:
        self._found = FailureCollector()
        self._block: _UnittestBlock | None = None
        self._after_rule = False
        self._doctest: tuple[str, int, str] | None = None
        self._doctests: dict[str, Failure] = {}

    def feed(self, line: str) -> None:
        """Take the next line."""
        if line.startswith("=" * 70) and not line.strip("="):
            self._close_block()
            self._after_rule = True
        elif self._after_rule:
            self._after_rule = False
            if header := _BLOCK_HEADER.match(line):
                self._block = _UnittestBlock(header[2], header[1])
        elif self._block is not None:
            self._in_block(self._block, line)
        else:
            self._doctest_line(line)

    @property
    def busy(self) -> bool:
        """Whether the lines now belong to a failure's block."""
        return self._block is not None

    def failures(self) -> list[Failure]:
        """What failed."""
        found = self._found.all()
        if self._block is not None:
            found.append(_make_failure(self._block))
        if not any(item.kind == "DocTestFailure" for item in found):
            found.extend(self._doctests.values())
        return found

    def _in_block(self, block: _UnittestBlock, line: str) -> None:
        if line.startswith("Ran ") and " test" in line:
            self._close_block()
            return
        block.lines += 1
        if not block.open or block.lines > _MAX_UNITTEST_LINES:
            return
        if frame := _FRAME_LINE.match(line):
            block.frames.append(
                StackFrame(make_relative(frame[1]), parse_line_number(frame[2]), frame[3] or "")
            )
        elif line in {"Stdout:", "Stderr:"}:
            block.open = False
        elif (
            block.frames
            and not line.startswith(" ")
            and (named := _EXCEPTION_LINE.match(line))
            and _is_exception(named)
        ):
            block.kind, block.message_lines = named[1], [line]
        elif (
            block.kind
            and line.strip()
            and len(block.message_lines) < 20
            and not line.startswith("-" * 70)
        ):
            block.message_lines.append(line.rstrip())

    def _close_block(self) -> None:
        if self._block is not None:
            self._found.add(_make_failure(self._block))
            self._block = None

    def _doctest_line(self, line: str) -> None:
        if place := _DOCTEST_PLACE.match(line):
            self._doctest = (make_relative(place[1]), parse_line_number(place[2]), place[3])
        elif self._doctest and line == "Failed example:":
            path, at, name = self._doctest
            if len(self._doctests) < 1000:
                self._doctests.setdefault(
                    name, Failure(name, "DocTestFailure", "Failed example", path, at)
                )
            self._doctest = None


def _is_exception(named: re.Match[str]) -> bool:
    return ":" in named[0] or bool(_EXCEPTION_WORD.search(named[1])) or "." in named[1]


def _make_failure(block: _UnittestBlock) -> Failure:
    frames = tuple(block.frames[-50:])
    path, line = find_innermost(frames)
    kind = block.kind.rsplit(".", 1)[-1] or ("AssertionError" if block.word == "FAIL" else "error")
    if block.word == "UNEXPECTED SUCCESS":
        kind = "UnexpectedSuccess"
    return Failure(
        _test_id(block.header),
        kind,
        shorten_message("\n".join(block.message_lines)),
        path,
        line,
        frames,
    )


def _test_id(header: str) -> str:
    """One dotted id: Python 3.11 prints `test (mod.Case.test)`, older ones `test (mod.Case)`."""
    named = _TEST_CASE.match(header)
    if not named:
        return header
    method, owner, rest = named[1], named[2], named[3].rstrip()
    if owner.startswith("unittest.loader._FailedTest"):
        return method
    if method in {"setUpClass", "tearDownClass", "setUpModule", "tearDownModule"}:
        return f"{owner}.{method}"
    dotted = owner if owner.rsplit(".", 1)[-1] == method else f"{owner}.{method}"
    return dotted + rest


class TracebackReader:
    """Reads tracebacks that ended a program; used where no tool's own report was found."""

    kind: Kind = "unknown"

    def __init__(self) -> None:
        self._frames: list[StackFrame] | None = None
        self._found: list[Failure] = []

    def feed(self, line: str) -> None:
        """Take the next line."""
        if line.startswith("Traceback (most recent call last):"):
            self._frames = []
        elif self._frames is None or not line:
            return
        elif frame := _FRAME_LINE.match(line):
            self._frames.append(
                StackFrame(make_relative(frame[1]), parse_line_number(frame[2]), frame[3] or "")
            )
            del self._frames[:-50]
        elif not line.startswith(" "):
            self._end_traceback(line)

    def failures(self) -> list[Failure]:
        """The last few."""
        return list(self._found)

    def _end_traceback(self, line: str) -> None:
        frames, self._frames = tuple(self._frames or ()), None
        named = _EXCEPTION_LINE.match(line)
        if named and frames:
            path, at = find_innermost(frames)
            self._found.append(
                Failure("", named[1].rsplit(".", 1)[-1], shorten_message(line), path, at, frames)
            )
            del self._found[:-3]


_SECTION_TITLE = re.compile(r"^={2,} (\S.*\S|\S) ={2,}$")
_TALLY_LINE = re.compile(
    r"^(?:=+ )?(?:\x20?no tests ran|\d+ (?:failed|passed|error|errors|skipped|deselected|xfailed|xpassed|warnings?|rerun|subtests)\b).*"
    r" in \d+(?:\.\d+)?s\b.*$"
)
_BLOCK_HEADING = re.compile(
    r"^_(?:_+ | (?=[^_].{70}))(\S.*\S|\S) _+(?: \[gw\d+\].*)?$"
)  # a long name leaves room for one
_SUMMARY_ENTRY = re.compile(
    r"^(FAILED|ERROR|SUBFAIL(?:ED)?)((?: ?(?:\([^)]*\)|\[[^\]]*\])){0,4}) +(\S.*)$"
)
_VERBOSE_RESULT = re.compile(r"^(?:\[gw\d+\] (?:\[ *\d+%\] )?)?(FAILED|ERROR) (\S+::.*)$")
_VERBOSE_AFTER = re.compile(r"^([^\s:](?>(?:(?!::)\S)*)::.*\S) (FAILED|ERROR)(?: +\[ *\d+%\])?$")
_FRAME_PLACE = re.compile(
    r"^(\S[^:]*(?::[^:\d][^:]*)?\.\w{1,4}|<[\w ]+>):(\d+): ?(?:in (\S.*)|([A-Za-z_][\w.]*)(?:: .*)?)?$"
)
_CAPTURED_HEADING = re.compile(r"^-{3,} ?Captured (?:stdout|stderr|log)\b.* -{3,}$")
_LINE_STYLE = re.compile(r"^(\S[^:]*\.\w{1,4}):(\d+): ([A-Za-z_][\w.]*)(?:: (.*))?$")
_FIXTURE_FILE = re.compile(r"^file (\S.*), line (\d+)$")
_NATIVE_FRAME = re.compile(r'^ {2,}File "([^"]+)", line (\d+)(?:, in (.+))?$')
_CONFTEST_ERROR = re.compile(r"^ImportError while loading conftest '([^']+)'\.?$")
_USAGE_ERROR = re.compile(r"^ERROR: (?!\()(\S.*)$")
_COVERAGE_ERROR = re.compile(
    r"^(?:FAIL|ERROR: )\s*(Required test coverage of .* not reached.*|Coverage failure: .*)$"
)
_SPECIAL_HEADING = re.compile(r"^ERROR (?:at (?:setup|teardown) of|collecting) (.+)$")

_MAX_MESSAGE_LINES = 400


@dataclass
class _TracebackBlock:
    """One traceback under FAILURES or ERRORS."""

    name: str
    phase: str = "call"
    message_lines: list[str] = field(default_factory=list)
    frames: list[StackFrame] = field(default_factory=list)
    kind: str = ""
    captured: bool = False

    def feed(self, line: str) -> None:
        if self.captured:
            return
        if _CAPTURED_HEADING.match(line):
            self.captured = True
        elif line.startswith("E ") or line == "E":
            if len(self.message_lines) < _MAX_MESSAGE_LINES:
                self.message_lines.append(line[1:].strip())
        elif place := _FRAME_PLACE.match(line):
            self._add_frame(place)
        elif frame := _FIXTURE_FILE.match(line) or _NATIVE_FRAME.match(line):
            self._keep_frame(
                StackFrame(
                    make_relative(frame[1]), parse_line_number(frame[2]), _function_name(frame)
                )
            )
        elif (
            not line.startswith((" ", ">"))
            and (named := EXCEPTION_LINE.match(line))
            and not self.message_lines
        ):
            self.kind = named[1]
            self.message_lines.append(line.strip())

    def _keep_frame(self, frame: StackFrame) -> None:
        """Keep the outermost and the innermost frames; the error stands below them, however many there are."""
        self.frames.append(frame)
        del self.frames[50:-50]

    def _add_frame(self, place: re.Match[str]) -> None:
        self._keep_frame(
            StackFrame(make_relative(place[1]), parse_line_number(place[2]), place[3] or "")
        )
        if place[4]:
            self.kind = place[4]

    def make_failure(self, test: str, summary: str = "") -> Failure:
        """The failure of this block, under the id from the summary."""
        text = [line for line in self.message_lines if line]
        message = "\n".join(text[:20]) or summary
        frames = tuple(self.frames[-50:])
        path, line = find_innermost(frames)
        if path is None:
            path = make_relative(test.split("::", 1)[0])
        return Failure(
            test,
            self.kind.rsplit(".", 1)[-1] or find_exception_kind(summary, text),
            shorten_message(message),
            path,
            line,
            frames,
        )


@dataclass
class _PytestSession:
    """One run of pytest."""

    blocks: list[_TracebackBlock] = field(default_factory=list)
    entries: list[tuple[str, str, str]] = field(default_factory=list)
    verbose_results: list[str] = field(default_factory=list)
    notes: list[Failure] = field(default_factory=list)
    short: dict[str, list[tuple[str, int, str, str]]] = field(default_factory=dict)


def _function_name(frame: re.Match[str]) -> str:
    return (frame[3] or "") if frame.re is _NATIVE_FRAME else ""


class PytestReader:
    """Reads pytest's sections; the short summary names the tests, the blocks above give the reasons."""

    kind: Kind = "test"

    def __init__(self) -> None:
        self._done: list[Failure] = []
        self._session = _PytestSession()
        self._section = ""
        self._nested = False
        self._running = False
        self._doubtful = False

    def feed(self, line: str) -> None:
        """Take the next line."""
        if not line:
            return
        if _TALLY_LINE.match(line):
            self._handle_tally()
            return
        if line[0] == "=" and (title := _SECTION_TITLE.match(line)):
            self._handle_title(title[1])
        elif not self._nested:
            self._feed_body(line)

    @property
    def busy(self) -> bool:
        """Whether the current lines are pytest's own, which no other reader should get."""
        return self._running or self._section != "" or self._nested

    def failures(self) -> list[Failure]:
        """What failed in all sessions seen."""
        return [*self._done, *_session_failures(self._session)][:MAX_FAILURES]

    def _handle_title(self, title: str) -> None:
        lowered = title.lower()
        if lowered == "test session starts":
            if self._section == "blocks" and self._in_captured():
                self._nested = True
                return
            self._finish_session()
            self._running = True
        if self._nested:
            return
        if title in {"FAILURES", "ERRORS"}:
            self._section = "blocks"
        elif lowered == "short test summary info":
            if self._doubtful:
                self._session.entries.clear()
            self._doubtful = self._section == "blocks" and self._in_captured()
            self._section = "summary"
        elif self._section != "blocks" or not self._in_captured():
            self._section = ""

    def _in_captured(self) -> bool:
        return bool(self._session.blocks) and self._session.blocks[-1].captured

    def _handle_tally(self) -> None:
        if self._nested:
            self._nested = False
            return
        if self._section == "blocks" and self._in_captured() and not self._session.entries:
            return  # a test printed the tally of another run
        self._finish_session()

    def _finish_session(self) -> None:
        if len(self._done) < MAX_FAILURES:
            self._done.extend(_session_failures(self._session))
        self._session = _PytestSession()
        self._section = ""
        self._running = self._doubtful = False

    def _feed_body(self, line: str) -> None:
        session = self._session
        if coverage := _COVERAGE_ERROR.match(line):
            session.notes.append(Failure("coverage", "coverage", shorten_message(coverage[1])))
        elif self._section == "summary":
            self._feed_summary(line)
        elif self._section == "blocks":
            self._feed_block(line)
        elif self._section == "conftest":
            self._session.blocks[-1].feed(line)
        elif conftest := _CONFTEST_ERROR.match(line):
            self._section = "conftest"
            session.blocks.append(_TracebackBlock(make_relative(conftest[1]), "conftest"))
        else:
            self._feed_progress(line)

    def _feed_summary(self, line: str) -> None:
        if self._doubtful and (_BLOCK_HEADING.match(line) or _CAPTURED_HEADING.match(line)):
            # a test had printed the summary of another run: the blocks continue
            self._session.entries.clear()
            self._section, self._doubtful = "blocks", False
            self._feed_block(line)
            return
        entry = _SUMMARY_ENTRY.match(line)
        if entry and len(self._session.entries) < MAX_FAILURES:
            self._session.entries.append((entry[1], entry[2].strip(), entry[3]))

    def _feed_block(self, line: str) -> None:
        session = self._session
        if heading := _BLOCK_HEADING.match(line):
            if len(session.blocks) < MAX_FAILURES:
                session.blocks.append(_block_for(heading[1]))
        elif session.blocks:
            if style := _LINE_STYLE.match(line):
                _record_line_style(session, style)
            session.blocks[-1].feed(line)
        elif style := _LINE_STYLE.match(line):
            _record_line_style(session, style)  # --tb=line has no headings
        elif len(session.blocks) < MAX_FAILURES and line.startswith("Traceback"):
            session.blocks.append(_TracebackBlock(""))

    def _feed_progress(self, line: str) -> None:
        session = self._session
        if line.startswith("INTERNALERROR>"):
            _record_internal_error(session, line.removeprefix("INTERNALERROR>").strip())
        elif (verbose := _VERBOSE_RESULT.match(line)) or (after := _VERBOSE_AFTER.match(line)):
            test = verbose[2] if verbose else after[1]  # type: ignore[index]
            # cargo prints `module::test --- FAILED`
            if (
                len(session.verbose_results) < MAX_FAILURES
                and is_id(test)
                and not test.endswith(" ---")
            ):
                session.verbose_results.append(test)
        elif (usage := _USAGE_ERROR.match(line)) and _is_pytest_usage(usage[1]):
            session.notes.append(Failure("pytest", "UsageError", shorten_message(usage[1])))


_USAGE_WORDS = (
    "usage:",
    "file or directory not found",
    "not found:",
    "unrecognized arguments",
    "found no collectors",
)


def _is_pytest_usage(text: str) -> bool:
    return text.startswith(_USAGE_WORDS)


def _record_internal_error(session: _PytestSession, text: str) -> None:
    """Keep the last exception line of an internal error."""
    if session.notes and session.notes[-1].test == "pytest" and not EXCEPTION_LINE.match(text):
        return
    kind = named[1] if (named := EXCEPTION_LINE.match(text)) else "InternalError"
    note = Failure("pytest", kind.rsplit(".", 1)[-1], shorten_message(text))
    session.notes = [*[one for one in session.notes if one.test != "pytest"], note]


def _record_line_style(session: _PytestSession, style: re.Match[str]) -> None:
    path = make_relative(style[1])
    session.short.setdefault(path.rsplit("/", 1)[-1], []).append(
        (path, parse_line_number(style[2]), style[3], style[4] or "")
    )


def _block_for(heading: str) -> _TracebackBlock:
    if special := _SPECIAL_HEADING.match(heading):
        phase = "collect" if heading.startswith("ERROR collecting") else "setup"
        return _TracebackBlock(special[1], phase)
    return _TracebackBlock(heading)


def _session_failures(session: _PytestSession) -> list[Failure]:
    """The failures of one session: ids from the summary where there is one, else from what stands above it."""
    if session.entries:
        found = _from_entries(session)
    elif session.blocks:
        found = _from_blocks(session)
    else:
        found = [
            _failure_without_block(test, "") for test in dict.fromkeys(session.verbose_results)
        ]
    notes = {note.test: note for note in session.notes}
    unique: dict[tuple[str, str], Failure] = {}
    for failure in (*found, *notes.values()):
        unique.setdefault((failure.test, failure.message), failure)
    return list(unique.values())


def _from_entries(session: _PytestSession) -> list[Failure]:
    blocks: dict[str, list[_TracebackBlock]] = {}
    for block in session.blocks:
        blocks.setdefault(block.name, []).append(block)
    names = frozenset(blocks)
    found: dict[str, Failure] = {}
    for word, label, text in session.entries:
        test, message = split_entry(text, names)
        if not is_id(test):
            continue
        traceback_block = _take_block(blocks, test, word)
        failure = (
            traceback_block.make_failure(test, message)
            if traceback_block is not None
            else _failure_from_line_style(session, test, message)
        )
        if word.startswith("SUBFAIL"):
            failure = replace(failure, test=f"{failure.test} {label}".strip())
        # a teardown's error adds nothing to a test that failed
        found.setdefault(failure.test, failure)
    return list(found.values())


def _take_block(
    blocks: dict[str, list[_TracebackBlock]], test: str, word: str
) -> _TracebackBlock | None:
    """The block of a test, in order where several have the same name."""
    names = (name_in_heading(test), test)
    for name in names if word != "ERROR" else reversed(names):
        if waiting := blocks.get(name):
            return waiting.pop(0) if len(waiting) > 1 else waiting[0]
    return None


def _failure_from_line_style(session: _PytestSession, test: str, message: str) -> Failure:
    """--tb=line prints `path:line: Kind: message`; used if only one line fits."""
    path = make_relative(test.split("::", 1)[0])
    waiting = session.short.get(path.rsplit("/", 1)[-1], [])
    for at, (where, line, kind, item) in enumerate(waiting):
        if where.endswith(path):
            del waiting[at]
            return Failure(
                test,
                kind.rsplit(".", 1)[-1],
                shorten_message(item or message),
                path,
                line,
                (StackFrame(path, line),),
            )
    return _failure_without_block(test, message)


def _failure_without_block(test: str, message: str) -> Failure:
    return Failure(
        test,
        find_exception_kind(message, []),
        shorten_message(without_kind(message)),
        make_relative(test.split("::", 1)[0]) or None,
    )


def _from_blocks(session: _PytestSession) -> list[Failure]:
    """No summary was printed: a heading and its first frame make the id that pytest would have shown."""
    known = {name_in_heading(test): test for test in session.verbose_results}
    found: list[Failure] = []
    near = ""  # a block without a frame stands among those of its own file
    for block in session.blocks:
        if block.name:
            test = known.get(block.name) or _build_test_id(block, near)
            found.append(block.make_failure(test))
            near = test.partition("::")[0] if "::" in test else near
    return found


def _build_test_id(block: _TracebackBlock, near: str) -> str:
    name, bracket, parameters = block.name.partition("[")
    if block.phase in {"collect", "conftest"} or "::" in name:
        return make_relative(block.name)
    path = next((frame.path for frame in block.frames if not is_foreign(frame.path)), near)
    return "::".join(
        part for part in (path, name.replace(".", "::") + bracket + parameters) if part
    )


# Node ids as pytest prints them: what of a line is the id, how it is titled, which exception was meant.

EXCEPTION_LINE = re.compile(
    r"^([A-Za-z_][\w.]{0,200}(?:Error|Exception|Warning|Exit|Interrupt|Failed|Timeout|Failure|Skipped)\w{0,100})(?::\s*(.*))?$"
)


def name_in_heading(test: str) -> str:
    """How pytest titles the block of a node id: `a.py::Class::test[x]` is `Class.test[x]`."""
    _, _, inside = test.partition("::")
    name, bracket, parameters = inside.partition("[")
    return name.replace("::", ".") + bracket + parameters


def split_entry(text: str, names: frozenset[str] = frozenset()) -> tuple[str, str]:
    """Split `node id - message`; either may hold ' - ', so the blocks' names and the brackets decide."""
    cuts = [match.start() for match in re.finditer(" - ", text)][:200]
    if names:
        for cut in (*reversed(cuts), None):
            test = text if cut is None else text[:cut]
            if name_in_heading(test) in names or test in names:
                return test.strip(), "" if cut is None else text[cut + 3 :]
    for cut in cuts:
        test = text[:cut]
        inside = test.partition("::")[2]
        if "[" not in inside or test.endswith("]"):
            return test.strip(), text[cut + 3 :]
    return text.strip(), ""


def is_id(test: str) -> bool:
    """Whether a text can be a node id at all."""
    path = test.split("::", 1)[0]
    return "::" in test or "." in path or "/" in path


def find_exception_kind(message: str, lines: list[str]) -> str:
    """The exception's name from its message."""
    # a SyntaxError shows its place, the line and a mark before it says what it is
    last = 6 if lines and lines[0].startswith('File "') else 3
    for text in (*lines[:1], message, *lines[1:last]):
        if named := EXCEPTION_LINE.match(text):
            return named[1].rsplit(".", 1)[-1]
        if text.startswith("assert ") or text == "assert False":
            return "AssertionError"
        if text.startswith("fixture '"):
            return "FixtureLookupError"
        if text.startswith("Failed: "):
            return "Failed"
    if lines and message.endswith("...") and lines[0].startswith(message[:-3]):
        message = lines[0]  # the summary cuts long lines short
    first = re.match(r"^((?:[a-z_]\w{0,100}\.){0,20}[A-Z][\w.]*)(?::|$)", message)
    return first[1].rsplit(".", 1)[-1] if first else "error"


def without_kind(message: str) -> str:
    """The message without the exception's name before it."""
    named = EXCEPTION_LINE.match(message)
    return (named[2] or message) if named else message
