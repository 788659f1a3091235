"""Reads Python's own reports: unittest's blocks, doctest's, and uncaught tracebacks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from regreen.domain.models import Failure, StackFrame
from regreen.logs.reader import (
    FailureCollector,
    Kind,
    find_innermost,
    make_relative,
    parse_line_number,
    shorten_message,
)

_BLOCK_HEADER = re.compile(r"^(FAIL|ERROR|UNEXPECTED SUCCESS): (\S.*)$")
_TEST_CASE = re.compile(r"^(\S+) \(([\w.<>]+)\)(.*)$")
_FRAME_LINE = re.compile(r'^ {1,}(?:[|] +)?File "([^"]+)", line (\d+)(?:, in (.+))?$')
_EXCEPTION_LINE = re.compile(r"^((?:[A-Za-z_]\w*\.)*[A-Z_a-z]\w*)(?::(?: (.*))?)?$")
_DOCTEST_PLACE = re.compile(r'^File "([^"]+)", line (\d+), in (\S+)$')
_EXCEPTION_WORD = re.compile(
    r"(?:Error|Exception|Warning|Interrupt|Exit|Failure|Timeout|Iteration|Skip\w{0,40}|Group)$"
)
_MAX_BLOCK_LINES = 500


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
        if not block.open or block.lines > _MAX_BLOCK_LINES:
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
