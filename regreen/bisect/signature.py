"""What a failure looks like, so that only the failure we look for counts against a commit.

A signature is read from what the command printed: failing test ids, the exception's type, its message without
numbers and addresses, the innermost frame in the project. Where the output says nothing, the exit status alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher

from regreen.models import RunResult

_KIND = r"(?:[A-Za-z_][\w.]{0,120}\.)?(?:[A-Z]\w{0,80}(?:Error|Exception|Warning|Interrupt|Exit|Failure|Failed|Fault)|Exception)"
_RAISED = re.compile(rf"^(?:E {{1,8}})?({_KIND})(?:: ?(.{{0,400}}))?$")
_SAID = re.compile(rf"^({_KIND})\b[: ]? ?(.{{0,400}})$")
_PYTEST = re.compile(r"^(?:FAILED|ERROR) (\S{1,300})(?: - (.{0,400}))?$")
_TESTS = (
    re.compile(r"^(?:FAIL|ERROR): (\S{1,200} ?\(?[\w.]{0,200}\)?)"),  # unittest
    re.compile(r"^\s{0,16}--- FAIL: (\S{1,200})"),  # go
    re.compile(r"^test (\S{1,200}) \.\.\. FAILED"),  # cargo
    re.compile(r"^\s{0,8}● (.{1,200})$"),  # jest
    re.compile(r"^not ok \d{1,9} -? ?(.{1,200})$"),  # TAP
)
_FRAME = re.compile(r'^\s{0,40}File "([^"]{1,300})", line \d{1,9}, in (\S{1,120})')
_PLACE = re.compile(r"^([\w./+-]{1,300}\.\w{1,5}):\d{1,9}: ")  # pytest: where a traceback passes
_MOST_PATHS = 8
_VARYING = re.compile(r"0x[0-9a-fA-F]+|\d+|/(?:tmp|work|env|home)/[^\s'\",:)]{0,300}")
_QUOTED = re.compile(r"['\"]([^'\"]{1,120})['\"]")
_ABOUT_A_NAME = frozenset(
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
_ALIKE = 0.6
_WINDOW = 20_000


@dataclass(frozen=True, slots=True)
class Signature:
    """How one run failed. `ended` is "exit", or "timeout", "oom", "flood" where it never came to an exit.

    `paths` are the files of the tree that its tracebacks go through: a hint where to look, no part of the likeness.
    `says` is what the runner's summary says of each of `tests`, where it does.
    """

    ended: str
    exit_code: int | None
    tests: tuple[str, ...] = ()
    kind: str = ""
    message: str = ""
    frame: str = ""
    paths: tuple[str, ...] = ()
    says: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """One line for people and for the JSON document."""
        said = f"{self.kind}: {self.message}" if self.kind and self.message else self.kind
        where = f" in {self.frame}" if self.frame else ""
        status = f"exit {self.exit_code}" if self.ended == "exit" else self.ended
        words = [*self.tests[:3], f"{said}{where}" if said else ""]
        return " | ".join([word for word in words if word] or [status])

    def to_json(self) -> dict[str, object]:
        """For the log of observations."""
        return asdict(self)


def from_json(value: dict[str, object]) -> Signature:
    """What `to_json` wrote."""
    code = value.get("exit_code")
    return Signature(
        str(value.get("ended", "exit")),
        code if isinstance(code, int) else None,
        _words(value.get("tests")),
        str(value.get("kind", "")),
        str(value.get("message", "")),
        str(value.get("frame", "")),
        _words(value.get("paths")),
        _words(value.get("says")),
    )


def _words(value: object) -> tuple[str, ...]:
    return tuple(str(word) for word in value) if isinstance(value, list | tuple) else ()


def read(result: RunResult) -> Signature:
    """The signature of a run that did not pass."""
    if result.ended != "exit":
        return Signature(result.ended, None)
    lines = [
        line.rstrip()
        for text in (result.stdout, result.stderr)
        for line in text[-_WINDOW:].splitlines()
    ]
    found = _tests(lines)
    kind, message = _raised(lines)
    if not kind:
        kind, message = _raised([next((said for said in found.values() if said), "")])
    return Signature(
        "exit",
        result.exit_code,
        tuple(found),
        kind,
        _plain(message),
        _frame(lines),
        _paths(lines),
        tuple(_plain(said) for said in found.values()) if any(found.values()) else (),
    )


def matches(seen: Signature, wanted: Sequence[Signature]) -> bool:
    """Whether a failure is like one of those that were seen where the fault is known to be."""
    return any(_alike(seen, one) for one in wanted)


def _alike(one: Signature, other: Signature) -> bool:
    if one.ended != other.ended:
        return False
    if not one.tests and not other.tests:
        return one.exit_code == other.exit_code and _raise_alike(one, other)
    common = set(one.tests) & set(other.tests)
    here, there = (dict(zip(s.tests, s.says, strict=False)) for s in (one, other))
    pairs = [(here.get(test, ""), there.get(test, "")) for test in common]
    if pairs and all(said and also for said, also in pairs):
        return any(_say_alike(said, also) for said, also in pairs)
    return bool(common) and _raise_alike(one, other)


def _raise_alike(one: Signature, other: Signature) -> bool:
    """Whether the exceptions are alike; two failures without any are."""
    if one.kind != other.kind or _names_another(one.kind, one.message, other.message):
        return False
    same_frame = bool(one.frame) and one.frame == other.frame
    return not one.kind or same_frame or _ratio(one.message, other.message) >= _ALIKE


def _say_alike(said: str, also: str) -> bool:
    """Whether a runner's summary says the same of one test twice; it may be cut short."""
    (kind, message), (other, words) = _raised([said]), _raised([also])
    if kind != other:
        return False
    if not kind:
        return _ratio(said, also) >= _ALIKE
    return not _names_another(kind, message, words) and _ratio(message, words) >= _ALIKE


def _names_another(kind: str, message: str, other: str) -> bool:
    """Whether two errors that are about a name are about different ones: another import, another attribute."""
    if kind not in _ABOUT_A_NAME:
        return False
    here, there = (_QUOTED.findall(text) for text in (message, other))
    at = 0 if kind in {"ImportError", "ModuleNotFoundError", "KeyError", "NameError"} else -1
    return bool(here and there and str(here[at]) != str(there[at]))


def _ratio(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def is_environmental(signature: Signature | None) -> bool:
    """Whether a failure looks like the wrong interpreter or a missing package rather than a fault of the code."""
    return signature is not None and signature.kind.rsplit(".", 1)[-1] in {
        "ImportError",
        "ModuleNotFoundError",
        "SyntaxError",
        "IndentationError",
        "TabError",
    }


def _tests(lines: Sequence[str]) -> dict[str, str]:
    """Ids of the failing tests, and what pytest's summary says of each."""
    found: dict[str, str] = {}
    for line in lines:
        if match := _PYTEST.match(line):
            found[match[1]] = match[2] or ""
            continue
        for pattern in _TESTS:
            if match := pattern.match(line):
                found.setdefault(match[1].strip(), "")
    return found


def _plain(message: str) -> str:
    """A message without what differs from run to run."""
    return _VARYING.sub("#", message).strip()


def _raised(lines: Sequence[str]) -> tuple[str, str]:
    """The last exception that was printed as Python prints one, else as `print(type, error)` does."""
    for pattern in (_RAISED, _SAID):
        for line in reversed(lines):
            if match := pattern.match(line):
                return match[1].rsplit(".", 1)[-1], (match[2] or "")
    return "", ""


def _frame(lines: Sequence[str]) -> str:
    """The innermost frame in the tree under test, as file and function."""
    for line in reversed(lines):
        if match := _FRAME.match(line):
            path = match[1]
            if path.startswith("/work/") or not path.startswith(("/", "<")):
                return f"{path.removeprefix('/work/')}:{match[2]}"
    return ""


def _paths(lines: Sequence[str]) -> tuple[str, ...]:
    """The files of the tree that tracebacks go through, innermost first."""
    found: dict[str, None] = {}
    for line in reversed(lines):
        match = _FRAME.match(line) or _PLACE.match(line)
        if match is None:
            continue
        path = match[1].removeprefix("/work/").removeprefix("./")
        if not path.startswith(("/", "<")):
            found[path] = None
    return tuple(found)[:_MOST_PATHS]
