"""Reads pytest's terminal output, whatever its verbosity, traceback style and plugins."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from regreen.fixers.logs.pytest_ids import (
    EXCEPTION,
    is_id,
    kind_of,
    name_in_heading,
    split_entry,
    without_kind,
)
from regreen.fixers.logs.reader import (
    MAX_FAILURES,
    Kind,
    innermost,
    is_foreign,
    number,
    relative,
    shorten,
)
from regreen.models import Failure, Frame

_TITLE = re.compile(r"^={2,} (\S.*\S|\S) ={2,}$")
_TALLY = re.compile(
    r"^(?:=+ )?(?:\x20?no tests ran|\d+ (?:failed|passed|error|errors|skipped|deselected|xfailed|xpassed|warnings?|rerun|subtests)\b).*"
    r" in \d+(?:\.\d+)?s\b.*$"
)
_HEADING = re.compile(r"^_{2,} (\S.*\S|\S) _{2,}(?: \[gw\d+\].*)?$")
_ENTRY = re.compile(r"^(FAILED|ERROR|SUBFAIL(?:ED)?)((?: ?(?:\([^)]*\)|\[[^\]]*\])){0,4}) +(\S.*)$")
_VERBOSE = re.compile(r"^(?:\[gw\d+\] (?:\[ *\d+%\] )?)?(FAILED|ERROR) (\S+::.*)$")
_VERBOSE_AFTER = re.compile(r"^([^\s:]\S*?::.*\S) (FAILED|ERROR)(?: +\[ *\d+%\])?$")
_PLACE = re.compile(
    r"^(\S[^:]*(?::[^:\d][^:]*)?\.\w{1,4}|<[\w ]+>):(\d+): ?(?:in (\S.*)|([A-Za-z_][\w.]*)(?:: .*)?)?$"
)
_CAPTURED = re.compile(r"^-{3,} ?Captured (?:stdout|stderr|log)\b.* -{3,}$")
_LINE_STYLE = re.compile(r"^(\S[^:]*\.\w{1,4}):(\d+): ([A-Za-z_][\w.]*)(?:: (.*))?$")
_FIXTURE_FILE = re.compile(r"^file (\S.*), line (\d+)$")
_NATIVE_FRAME = re.compile(r'^ {2,}File "([^"]+)", line (\d+)(?:, in (.+))?$')
_CONFTEST = re.compile(r"^ImportError while loading conftest '([^']+)'\.?$")
_USAGE = re.compile(r"^ERROR: (?!\()(\S.*)$")
_COVERAGE = re.compile(
    r"^(?:FAIL|ERROR: )\s*(Required test coverage of .* not reached.*|Coverage failure: .*)$"
)
_SPECIAL = re.compile(r"^ERROR (?:at (?:setup|teardown) of|collecting) (.+)$")

_MAX_BLOCK_LINES = 400


@dataclass
class _Block:
    """One traceback under FAILURES or ERRORS."""

    name: str
    phase: str = "call"
    said: list[str] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    kind: str = ""
    lines: int = 0
    captured: bool = False

    def feed(self, line: str) -> None:
        self.lines += 1
        if self.captured or self.lines > _MAX_BLOCK_LINES:
            return
        if _CAPTURED.match(line):
            self.captured = True
        elif line.startswith("E ") or line == "E":
            self.said.append(line[1:].strip())
        elif place := _PLACE.match(line):
            self._place(place)
        elif frame := _FIXTURE_FILE.match(line) or _NATIVE_FRAME.match(line):
            self.frames.append(Frame(relative(frame[1]), number(frame[2]), _function(frame)))
        elif not line.startswith((" ", ">")) and (named := EXCEPTION.match(line)) and not self.said:
            self.kind = named[1]
            self.said.append(line.strip())

    def _place(self, place: re.Match[str]) -> None:
        self.frames.append(Frame(relative(place[1]), number(place[2]), place[3] or ""))
        if place[4]:
            self.kind = place[4]

    def failure(self, test: str, summary: str = "") -> Failure:
        """What this block tells, under the id that the summary gave."""
        said = [line for line in self.said if line]
        message = "\n".join(said[:20]) or summary
        frames = tuple(self.frames[-50:])
        path, line = innermost(frames)
        if path is None:
            path = relative(test.split("::", 1)[0])
        return Failure(
            test,
            self.kind.rsplit(".", 1)[-1] or kind_of(summary, said),
            shorten(message),
            path,
            line,
            frames,
        )


@dataclass
class _Session:
    """One run of pytest."""

    blocks: list[_Block] = field(default_factory=list)
    entries: list[tuple[str, str, str]] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    notes: list[Failure] = field(default_factory=list)
    short: dict[str, list[tuple[str, int, str, str]]] = field(default_factory=dict)


def _function(frame: re.Match[str]) -> str:
    return (frame[3] or "") if frame.re is _NATIVE_FRAME else ""


class PytestReader:
    """Reads pytest's sections; the short summary names the tests, the blocks above say why."""

    kind: Kind = "test"

    def __init__(self) -> None:
        self._done: list[Failure] = []
        self._session = _Session()
        self._section = ""
        self._nested = False
        self._running = False
        self._doubtful = False

    def feed(self, line: str) -> None:
        """Take the next line."""
        if not line:
            return
        if _TALLY.match(line):
            self._end()
            return
        if line[0] == "=" and (title := _TITLE.match(line)):
            self._title(title[1])
        elif not self._nested:
            self._body(line)

    @property
    def busy(self) -> bool:
        """Whether the lines now are pytest's own, so that nobody else should read them."""
        return self._running or self._section != "" or self._nested

    def failures(self) -> list[Failure]:
        """What failed in all sessions seen."""
        return [*self._done, *_told(self._session)][:MAX_FAILURES]

    def _title(self, title: str) -> None:
        lowered = title.lower()
        if lowered == "test session starts":
            if self._section == "blocks" and self._in_captured():
                self._nested = True
                return
            self._finish()
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

    def _end(self) -> None:
        if self._nested:
            self._nested = False
            return
        if self._section == "blocks" and self._in_captured() and not self._session.entries:
            return  # a test printed somebody else's tally
        self._finish()

    def _finish(self) -> None:
        if len(self._done) < MAX_FAILURES:
            self._done.extend(_told(self._session))
        self._session = _Session()
        self._section = ""
        self._running = self._doubtful = False

    def _body(self, line: str) -> None:
        session = self._session
        if coverage := _COVERAGE.match(line):
            session.notes.append(Failure("coverage", "coverage", shorten(coverage[1])))
        elif self._section == "summary":
            self._summary(line)
        elif self._section == "blocks":
            self._block(line)
        elif self._section == "conftest":
            self._session.blocks[-1].feed(line)
        elif conftest := _CONFTEST.match(line):
            self._section = "conftest"
            session.blocks.append(_Block(relative(conftest[1]), "conftest"))
        else:
            self._outside(line)

    def _summary(self, line: str) -> None:
        if self._doubtful and (_HEADING.match(line) or _CAPTURED.match(line)):
            # a test had printed somebody else's summary: the blocks go on
            self._session.entries.clear()
            self._section, self._doubtful = "blocks", False
            self._block(line)
            return
        entry = _ENTRY.match(line)
        if entry and len(self._session.entries) < MAX_FAILURES:
            self._session.entries.append((entry[1], entry[2].strip(), entry[3]))

    def _block(self, line: str) -> None:
        session = self._session
        if heading := _HEADING.match(line):
            if len(session.blocks) < MAX_FAILURES:
                session.blocks.append(_block_for(heading[1]))
        elif session.blocks:
            if style := _LINE_STYLE.match(line):
                _keep_short(session, style)
            session.blocks[-1].feed(line)
        elif style := _LINE_STYLE.match(line):
            _keep_short(session, style)  # --tb=line has no headings
        elif len(session.blocks) < MAX_FAILURES and line.startswith("Traceback"):
            session.blocks.append(_Block(""))

    def _outside(self, line: str) -> None:
        session = self._session
        if line.startswith("INTERNALERROR>"):
            _internal(session, line.removeprefix("INTERNALERROR>").strip())
        elif (verbose := _VERBOSE.match(line)) or (after := _VERBOSE_AFTER.match(line)):
            test = verbose[2] if verbose else after[1]  # type: ignore[index]
            # cargo says `module::test --- FAILED`
            if len(session.seen) < MAX_FAILURES and is_id(test) and not test.endswith(" ---"):
                session.seen.append(test)
        elif (usage := _USAGE.match(line)) and _is_pytest_usage(usage[1]):
            session.notes.append(Failure("pytest", "UsageError", shorten(usage[1])))


_USAGE_WORDS = (
    "usage:",
    "file or directory not found",
    "not found:",
    "unrecognized arguments",
    "found no collectors",
)


def _is_pytest_usage(text: str) -> bool:
    return text.startswith(_USAGE_WORDS)


def _internal(session: _Session, said: str) -> None:
    """Keep the last exception line of an internal error."""
    if session.notes and session.notes[-1].test == "pytest" and not EXCEPTION.match(said):
        return
    kind = named[1] if (named := EXCEPTION.match(said)) else "InternalError"
    note = Failure("pytest", kind.rsplit(".", 1)[-1], shorten(said))
    session.notes = [*[one for one in session.notes if one.test != "pytest"], note]


def _keep_short(session: _Session, style: re.Match[str]) -> None:
    path = relative(style[1])
    session.short.setdefault(path.rsplit("/", 1)[-1], []).append(
        (path, number(style[2]), style[3], style[4] or "")
    )


def _block_for(heading: str) -> _Block:
    if special := _SPECIAL.match(heading):
        phase = "collect" if heading.startswith("ERROR collecting") else "setup"
        return _Block(special[1], phase)
    return _Block(heading)


def _told(session: _Session) -> list[Failure]:
    """The failures of one session: ids from the summary where there is one, else from what stands above it."""
    if session.entries:
        found = _from_entries(session)
    elif session.blocks:
        found = _from_blocks(session)
    else:
        found = [_bare(test, "") for test in dict.fromkeys(session.seen)]
    notes = {note.test: note for note in session.notes}
    unique: dict[tuple[str, str], Failure] = {}
    for failure in (*found, *notes.values()):
        unique.setdefault((failure.test, failure.message), failure)
    return list(unique.values())


def _from_entries(session: _Session) -> list[Failure]:
    blocks: dict[str, list[_Block]] = {}
    for block in session.blocks:
        blocks.setdefault(block.name, []).append(block)
    names = frozenset(blocks)
    found: dict[str, Failure] = {}
    for word, label, text in session.entries:
        test, message = split_entry(text, names)
        if not is_id(test):
            continue
        told = _take(blocks, test, word)
        failure = (
            told.failure(test, message) if told is not None else _from_short(session, test, message)
        )
        if word.startswith("SUBFAIL"):
            failure = _labelled(failure, label)
        found.setdefault(
            failure.test, failure
        )  # a teardown's error adds nothing to a test that failed
    return list(found.values())


def _labelled(failure: Failure, label: str) -> Failure:
    return Failure(
        f"{failure.test} {label}".strip(),
        failure.kind,
        failure.message,
        failure.path,
        failure.line,
        failure.frames,
    )


def _take(blocks: dict[str, list[_Block]], test: str, word: str) -> _Block | None:
    """The block of a test, in order where several have the same name."""
    names = [name_in_heading(test)]
    if word == "ERROR":
        names.insert(0, test)
    for name in names:
        if waiting := blocks.get(name):
            return waiting.pop(0) if len(waiting) > 1 else waiting[0]
    return None


def _from_short(session: _Session, test: str, message: str) -> Failure:
    """--tb=line says `path:line: Kind: message`; taken where only one line can be meant."""
    path = relative(test.split("::", 1)[0])
    waiting = session.short.get(path.rsplit("/", 1)[-1], [])
    for at, (where, line, kind, said) in enumerate(waiting):
        if where.endswith(path):
            del waiting[at]
            return Failure(
                test,
                kind.rsplit(".", 1)[-1],
                shorten(said or message),
                path,
                line,
                (Frame(path, line),),
            )
    return _bare(test, message)


def _bare(test: str, message: str) -> Failure:
    return Failure(
        test,
        kind_of(message, []),
        shorten(without_kind(message)),
        relative(test.split("::", 1)[0]) or None,
    )


def _from_blocks(session: _Session) -> list[Failure]:
    """No summary was printed: a heading and its first frame make the id that pytest would have shown."""
    seen = {name_in_heading(test): test for test in session.seen}
    found: list[Failure] = []
    near = ""  # a block without a frame stands among those of its own file
    for block in session.blocks:
        if block.name:
            test = seen.get(block.name) or _made_up(block, near)
            found.append(block.failure(test))
            near = test.partition("::")[0] if "::" in test else near
    return found


def _made_up(block: _Block, near: str) -> str:
    if block.phase in {"collect", "conftest"}:
        return relative(block.name)
    name, bracket, parameters = block.name.partition("[")
    path = next((frame.path for frame in block.frames if not is_foreign(frame.path)), near)
    return "::".join(
        part for part in (path, name.replace(".", "::") + bracket + parameters) if part
    )
