"""What a runner says below the name of a failing test: the kind of error, its words, the places in the tree."""

from __future__ import annotations

import re
from dataclasses import replace

from regreen.fixers.logs.reader import innermost, number, relative, shorten
from regreen.models import Failure, Frame

_MOST_LINES = 60
_JVM = re.compile(
    r"^\s+at (?:[\w.@-]{0,100}/){0,3}(?P<cls>[\w.$]{1,300})\.[\w$<>]{1,200}\((?P<path>[\w$]{1,200}\.\w{1,10}):(?P<line>\d+)\)$"
)
_DOTNET = re.compile(r"^\s+at .{1,500} in (?P<path>\S.{0,400}?):line (?P<line>\d+)$")
_PHP = re.compile(r"^(?P<path>/\S{1,400}\.php):(?P<line>\d+)$")
_KIND = re.compile(
    r"^(?:[\w$\\]{1,100}[.\\])*(?P<kind>[A-Z][\w$]{0,100}(?:Error|Exception|Failure|Failed)\w{0,40})(?: ?: (?P<message>.*))?$"
)
_HEADS = frozenset({"Error Message:", "Stack Trace:", "Standard Output Messages:"})


class Told:
    """Collects what is said of one failure, from its name on."""

    def __init__(self, failure: Failure) -> None:
        self._failure = failure
        self._said: list[str] = []
        self._frames: list[Frame] = []
        self._kind = ""
        self._lines = 0

    def feed(self, line: str) -> None:
        """Take a line below the name."""
        self._lines += 1
        if self._lines > _MOST_LINES:
            return
        place = _JVM.match(line) or _DOTNET.match(line) or _PHP.match(line)
        if place is not None:
            called = place.groupdict().get("cls") or ""
            self._frames.append(Frame(relative(place["path"]), number(place["line"]), called))
            return
        said = line.strip()
        if said in _HEADS or not said or said.startswith("at "):
            return
        if not self._kind and not self._said and (named := _KIND.match(said)):
            self._kind, said = named["kind"], named["message"] or ""
        if said and len(self._said) < 12:
            self._said.append(said)

    def failure(self) -> Failure:
        """The failure with all that was said."""
        own = [one for one in self._frames if _class_of(one) in self._failure.test]
        path, line = innermost(tuple(reversed(own or self._frames)))
        return replace(
            self._failure,
            kind=self._kind or self._failure.kind,
            message=shorten("\n".join(self._said)),
            path=path or self._failure.path,
            line=line or self._failure.line,
            frames=tuple(self._frames),
        )


def _class_of(frame: Frame) -> str:
    """The outer class of a frame; nothing that a name could hold where there is none."""
    return frame.function.rpartition(".")[2].partition("$")[0] or "\0"
