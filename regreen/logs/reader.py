"""What all readers of tool output share: the protocol, paths, limits."""

from __future__ import annotations

import re
from typing import Literal, Protocol

from regreen.domain.models import Failure, StackFrame

Kind = Literal["test", "lint", "type", "build", "dependency", "infra", "unknown"]

MAX_FAILURES = 5_000
"""More failures than this from one tool are counted, not kept."""

MAX_MESSAGE = 2_000
"""A message keeps this many characters."""

_WORKSPACE_PREFIX = re.compile(
    r"^(?:file://)?(?:/home/runner/work/[^/]+/[^/]+/|/__w/[^/]+/[^/]+/|/github/workspace/|/work/|/Users/runner/work/[^/]+/[^/]+/)"
)
_FOREIGN_PARTS = (
    "site-packages/",
    "dist-packages/",
    "/lib/python",
    "node_modules/",
    "/usr/",
    "<frozen",
    "<string>",
    "node:",
    "/rustc/",
    "/opt/hostedtoolcache/",
    "/.cargo/registry/",
)


class LogReader(Protocol):
    """Reads one tool's output line by line, in bounded memory."""

    kind: Kind

    def feed(self, line: str) -> None:
        """Take the next line, cleaned of what GitHub and terminals add."""
        ...

    def failures(self) -> list[Failure]:
        """What failed, in the order it was printed."""
        ...


def make_relative(path: str) -> str:
    """A path as the repository knows it: without the checkout's place on the runner and a leading './'."""
    path = _WORKSPACE_PREFIX.sub("", path.strip())
    return path.removeprefix("./")


def is_foreign(path: str) -> bool:
    """Whether a frame is not in the repository: the standard library, an installed package."""
    return any(part in path for part in _FOREIGN_PARTS)


def find_innermost(frames: tuple[StackFrame, ...]) -> tuple[str | None, int | None]:
    """Where it failed: the innermost frame in the repository's own code, else the innermost of all."""
    own = [frame for frame in frames if not is_foreign(frame.path)] or list(frames)
    return (own[-1].path, own[-1].line) if own else (None, None)


def shorten_message(message: str) -> str:
    """A message cut to what a report can hold."""
    message = message.strip()
    return message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + " ..."


def parse_line_number(text: str) -> int:
    """A line number; 0 where a hostile log printed something no file has."""
    return int(text) if len(text) < 10 else 0


class FailureCollector:
    """Failures in order, each once, no more than `MAX_FAILURES`."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str | None, int | None], Failure] = {}

    def __len__(self) -> int:
        return len(self._found)

    def add(self, failure: Failure) -> None:
        """Keep `failure` unless the same one is there already."""
        key = (failure.test, failure.kind, failure.path, failure.line)
        if key not in self._found and len(self._found) < MAX_FAILURES:
            self._found[key] = failure

    def all(self) -> list[Failure]:
        """What was kept, in order."""
        return list(self._found.values())
