"""Who calls whom: callers and callees of a definition, as far as names and imports tell it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from regreen.code.file_languages import language_family, language_row
from regreen.code.symbols import CallSite, Definition, Outline

_MAX_SAME_NAMES = 12
"""A name defined in more places than this says nothing about which one is meant."""


@dataclass(frozen=True, slots=True)
class CallLink:
    """A definition at one end of a call. `sure` when an import or the same file ties the two together."""

    path: str
    definition: Definition | None
    line: int
    sure: bool


@dataclass(frozen=True)
class CallGraph:
    """The call graph of one revision, built from its outlines."""

    outlines: Mapping[str, Outline]

    def find_callers(self, path: str, name: str) -> list[CallLink]:
        """Places that call a definition (`name` dotted, as its outline has it), the sure ones first."""
        short = name.rpartition(".")[2]
        others = len(self._definitions.get(short, ()))
        links = [
            CallLink(p, self._enclosing_definition(p, call), call.line, sure)
            for p, call in self._calls.get(short, ())
            if language_family(p) == language_family(path)
            and ((sure := self.are_files_linked(p, path)) or others <= _MAX_SAME_NAMES)
            and not (p == path and call.inside == name)
        ]
        return sorted(links, key=lambda x: (not x.sure, x.path != path, x.path, x.line))

    def find_definitions(self, name: str) -> list[tuple[str, Definition]]:
        """Every definition of this short name, constants left out, with its file."""
        return self._definitions.get(name, [])

    def resolve_call(self, path: str, call: CallSite) -> Iterator[tuple[str, Definition]]:
        """The definitions that a call in a file can mean."""
        found = [
            t
            for t in self._definitions.get(call.name, ())
            if language_family(t[0]) == language_family(path)
        ]
        near = [t for t in found if self.are_files_linked(path, t[0])]
        yield from near or (found if len(found) <= 2 else ())

    def _enclosing_definition(self, path: str, call: CallSite) -> Definition | None:
        return next((d for d in self.outlines[path].definitions if d.name == call.inside), None)

    def are_files_linked(self, user: str, used: str) -> bool:
        """Whether one file is, or imports, or stands in the same package as the other."""
        if user == used:
            return True
        pure, row = PurePosixPath(used), language_row(used)
        if row.package_folders and PurePosixPath(user).parent == pure.parent:
            return True
        by_folder = row.folder_imports or pure.stem in row.folder_modules
        return (pure.parent.name if by_folder else pure.stem) in self._import_words[user]

    @cached_property
    def _definitions(self) -> dict[str, list[tuple[str, Definition]]]:
        found: dict[str, list[tuple[str, Definition]]] = defaultdict(list)
        for path, outline in self.outlines.items():
            for definition in outline.definitions:
                if definition.kind != "constant":
                    found[definition.short_name].append((path, definition))
        return found

    @cached_property
    def _calls(self) -> dict[str, list[tuple[str, CallSite]]]:
        found: dict[str, list[tuple[str, CallSite]]] = defaultdict(list)
        for path, outline in self.outlines.items():
            for call in outline.calls:
                found[call.name].append((path, call))
        return found

    @cached_property
    def _import_words(self) -> dict[str, frozenset[str]]:
        """The words in each file's imports, which name the files it uses."""
        return {p: _split_words(" ".join(o.imports)) for p, o in self.outlines.items()}


def _split_words(text: str) -> frozenset[str]:
    return frozenset("".join(c if c.isalnum() or c == "_" else " " for c in text).split())
