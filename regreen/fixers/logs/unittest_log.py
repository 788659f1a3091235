"""Reads Python's own reports: unittest's blocks, doctest's, and tracebacks that nobody caught."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from regreen.fixers.logs.reader import Collector, Kind, innermost, number, relative, shorten
from regreen.models import Failure, Frame

_HEADER = re.compile(r"^(FAIL|ERROR|UNEXPECTED SUCCESS): (\S.*)$")
_NAMED = re.compile(r"^(\S+) \(([\w.<>]+)\)(.*)$")
_FRAME = re.compile(r'^ {1,}(?:[|] +)?File "([^"]+)", line (\d+)(?:, in (.+))?$')
_EXCEPTION = re.compile(r"^((?:[A-Za-z_]\w*\.)*[A-Z_a-z]\w*)(?::(?: (.*))?)?$")
_DOCTEST = re.compile(r'^File "([^"]+)", line (\d+), in (\S+)$')
_LIKELY = re.compile(
    r"(?:Error|Exception|Warning|Interrupt|Exit|Failure|Timeout|Iteration|Skip\w*|Group)$"
)
_MAX_BLOCK_LINES = 500


@dataclass
class _Block:
    header: str
    word: str
    frames: list[Frame] = field(default_factory=list)
    kind: str = ""
    said: list[str] = field(default_factory=list)
    lines: int = 0
    open: bool = True


class UnittestReader:
    """Reads `FAIL: test (case)` blocks between lines of equal signs."""

    kind: Kind = "test"

    def __init__(self) -> None:
        self._found = Collector()
        self._block: _Block | None = None
        self._after_rule = False
        self._doctest: tuple[str, int, str] | None = None
        self._failed_example = False
        self._doctests: dict[str, Failure] = {}

    def feed(self, line: str) -> None:
        """Take the next line."""
        if line.startswith("=" * 70) and not line.strip("="):
            self._close()
            self._after_rule = True
        elif self._after_rule:
            self._after_rule = False
            if header := _HEADER.match(line):
                self._block = _Block(header[2], header[1])
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
            found.append(_failure(self._block))
        if not any(one.kind == "DocTestFailure" for one in found):
            found.extend(self._doctests.values())
        return found

    def _in_block(self, block: _Block, line: str) -> None:
        if line.startswith("Ran ") and " test" in line:
            self._close()
            return
        block.lines += 1
        if not block.open or block.lines > _MAX_BLOCK_LINES:
            return
        if frame := _FRAME.match(line):
            block.frames.append(Frame(relative(frame[1]), number(frame[2]), frame[3] or ""))
        elif line in {"Stdout:", "Stderr:"}:
            block.open = False
        elif (
            block.frames
            and not line.startswith(" ")
            and (named := _EXCEPTION.match(line))
            and _is_exception(named)
        ):
            block.kind, block.said = named[1], [line]
        elif block.kind and line.strip() and len(block.said) < 20 and not line.startswith("-" * 70):
            block.said.append(line.rstrip())

    def _close(self) -> None:
        if self._block is not None:
            self._found.add(_failure(self._block))
            self._block = None

    def _doctest_line(self, line: str) -> None:
        if place := _DOCTEST.match(line):
            self._doctest = (relative(place[1]), number(place[2]), place[3])
        elif self._doctest and line == "Failed example:":
            path, at, name = self._doctest
            if len(self._doctests) < 1000:
                self._doctests.setdefault(
                    name, Failure(name, "DocTestFailure", "Failed example", path, at)
                )
            self._doctest = None


def _is_exception(named: re.Match[str]) -> bool:
    return ":" in named[0] or bool(_LIKELY.search(named[1])) or "." in named[1]


def _failure(block: _Block) -> Failure:
    frames = tuple(block.frames[-50:])
    path, line = innermost(frames)
    kind = block.kind.rsplit(".", 1)[-1] or ("AssertionError" if block.word == "FAIL" else "error")
    if block.word == "UNEXPECTED SUCCESS":
        kind = "UnexpectedSuccess"
    return Failure(_test_id(block.header), kind, shorten("\n".join(block.said)), path, line, frames)


def _test_id(header: str) -> str:
    """One dotted id: Python 3.11 prints `test (mod.Case.test)`, older ones `test (mod.Case)`."""
    named = _NAMED.match(header)
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
        self._frames: list[Frame] | None = None
        self._found: list[Failure] = []

    def feed(self, line: str) -> None:
        """Take the next line."""
        if line.startswith("Traceback (most recent call last):"):
            self._frames = []
        elif self._frames is None or not line:
            return
        elif frame := _FRAME.match(line):
            self._frames.append(Frame(relative(frame[1]), number(frame[2]), frame[3] or ""))
            del self._frames[:-50]
        elif not line.startswith(" "):
            self._end(line)

    def failures(self) -> list[Failure]:
        """The last few."""
        return list(self._found)

    def _end(self, line: str) -> None:
        frames, self._frames = tuple(self._frames or ()), None
        named = _EXCEPTION.match(line)
        if named and frames:
            path, at = innermost(frames)
            self._found.append(
                Failure("", named[1].rsplit(".", 1)[-1], shorten(line), path, at, frames)
            )
            del self._found[:-3]
