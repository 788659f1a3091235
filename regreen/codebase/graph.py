"""Who calls whom: callers and callees of a definition, as far as names and imports tell it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from regreen.codebase.language import language_of
from regreen.codebase.symbols import Call, Definition, Outline

_COMMON = 12
"""A name defined in more places than this says nothing about which one is meant."""
_WHOLE_FOLDER = {"python": {"__init__"}, "javascript": {"index"}, "rust": {"mod", "lib"}}
"""Files that are imported by their folder's name."""


@dataclass(frozen=True, slots=True)
class Link:
    """A definition at one end of a call. `sure` when an import or the same file ties the two together."""

    path: str
    definition: Definition | None
    line: int
    sure: bool


@dataclass(frozen=True)
class Graph:
    """The call graph of one revision, built from its outlines."""

    outlines: Mapping[str, Outline]

    def callers(self, path: str, name: str) -> list[Link]:
        """Places that call a definition (`name` dotted, as its outline has it), the sure ones first."""
        short = name.rpartition(".")[2]
        others = len(self._definitions.get(short, ()))
        links = [
            Link(p, self._around(p, call), call.line, sure)
            for p, call in self._calls.get(short, ())
            if _family(p) == _family(path)
            and ((sure := self.tied(p, path)) or others <= _COMMON)
            and not (p == path and call.inside == name)
        ]
        return sorted(links, key=lambda x: (not x.sure, x.path != path, x.path, x.line))

    def callees(self, path: str, name: str) -> list[Link]:
        """Definitions in the repository that a definition calls, the sure ones first."""
        outline = self.outlines.get(path)
        links: list[Link] = []
        seen: set[tuple[str, str]] = set()
        for call in outline.calls if outline else ():
            if call.inside != name and not call.inside.startswith(f"{name}."):
                continue
            for other, definition in self.targets(path, call):
                if (other, definition.name) not in seen and (other, definition.name) != (
                    path,
                    name,
                ):
                    seen.add((other, definition.name))
                    links.append(Link(other, definition, definition.start, self.tied(path, other)))
        return sorted(links, key=lambda x: (not x.sure, x.path != path, x.path, x.line))

    def named(self, name: str) -> list[tuple[str, Definition]]:
        """Every definition of this short name, constants left out, with its file."""
        return self._definitions.get(name, [])

    def targets(self, path: str, call: Call) -> Iterator[tuple[str, Definition]]:
        """The definitions that a call in a file can mean."""
        found = [t for t in self._definitions.get(call.name, ()) if _family(t[0]) == _family(path)]
        near = [t for t in found if self.tied(path, t[0])]
        yield from near or (found if len(found) <= 2 else ())

    def _around(self, path: str, call: Call) -> Definition | None:
        return next((d for d in self.outlines[path].definitions if d.name == call.inside), None)

    def tied(self, user: str, used: str) -> bool:
        """Whether one file is, or imports, or stands in the same package as the other."""
        if user == used:
            return True
        if (
            language_of(used) in {"go", "java"}
            and PurePosixPath(user).parent == PurePosixPath(used).parent
        ):
            return True
        pure = PurePosixPath(used)
        whole = pure.stem in _WHOLE_FOLDER.get(_family(used), ())
        stem = pure.parent.name if whole else pure.stem
        if language_of(used) == "go":
            stem = pure.parent.name
        return stem in self._imported[user]

    @cached_property
    def _definitions(self) -> dict[str, list[tuple[str, Definition]]]:
        found: dict[str, list[tuple[str, Definition]]] = defaultdict(list)
        for path, outline in self.outlines.items():
            for definition in outline.definitions:
                if definition.kind != "constant":
                    found[definition.short].append((path, definition))
        return found

    @cached_property
    def _calls(self) -> dict[str, list[tuple[str, Call]]]:
        found: dict[str, list[tuple[str, Call]]] = defaultdict(list)
        for path, outline in self.outlines.items():
            for call in outline.calls:
                found[call.name].append((path, call))
        return found

    @cached_property
    def _imported(self) -> dict[str, frozenset[str]]:
        """The words in each file's imports, which name the files it uses."""
        return {p: _words(" ".join(o.imports)) for p, o in self.outlines.items()}


def _words(text: str) -> frozenset[str]:
    return frozenset("".join(c if c.isalnum() or c == "_" else " " for c in text).split())


def _family(path: str) -> str:
    """Languages that call each other count as one."""
    language = language_of(path)
    return "javascript" if language in {"javascript", "typescript", "tsx"} else str(language)
