"""The structure of every file of a repository, read once per blob and kept; who calls whom in it."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Protocol

from regreen.code.file_languages import has_outline, language_family, language_of, language_row
from regreen.code.symbols import (
    MAX_PARSED_BYTES,
    CallSite,
    Definition,
    Outline,
    read_outline,
    read_sources,
)
from regreen.domain.models import TreeEntry
from regreen.domain.ports import Git

_MAX_SINGLE_READS = 40
_MAX_STORED_BYTES = 512 * 2**20


class OutlineStore(Protocol):
    """Where outlines and the outputs of checkers are kept, by a key that names all content they were made of."""

    def get(self, keys: Iterable[str]) -> dict[str, bytes]:
        """What is kept under these keys; those not kept are left out."""
        ...

    def put(self, rows: Mapping[str, bytes]) -> None:
        """Keep these."""
        ...


class SqliteOutlineStore:
    """What is kept, in one SQLite file, which is emptied once it is large. A damaged or foreign file holds nothing."""

    def __init__(self, path: Path, *, max_bytes: int = _MAX_STORED_BYTES) -> None:
        self.path = path
        self.max_bytes = max_bytes

    def get(self, keys: Iterable[str]) -> dict[str, bytes]:
        """What is kept under these keys."""
        found: dict[str, bytes] = {}
        wanted = list(keys)
        with suppress(sqlite3.DatabaseError), closing(self._open_database()) as db:
            for at in range(0, len(wanted), 500):
                part = wanted[at : at + 500]
                marks = ",".join("?" * len(part))
                rows = db.execute(f"SELECT key, data FROM outline WHERE key IN ({marks})", part)  # noqa: S608 - only question marks
                found.update(rows)
        return found

    def put(self, rows: Mapping[str, bytes]) -> None:
        """Keep these."""
        with suppress(sqlite3.DatabaseError), closing(self._open_database()) as db, db:
            (free,) = db.execute("PRAGMA freelist_count").fetchone()
            (pages,) = db.execute("PRAGMA page_count").fetchone()
            (size,) = db.execute("PRAGMA page_size").fetchone()
            if (pages - free) * size > self.max_bytes:
                db.execute("DELETE FROM outline")
            db.executemany("INSERT OR REPLACE INTO outline VALUES (?, ?)", rows.items())

    def _open_database(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self.path, timeout=30)
        try:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=OFF")  # lost on a crash, it is read again
            db.execute(
                "CREATE TABLE IF NOT EXISTS outline (key TEXT PRIMARY KEY, data BLOB) WITHOUT ROWID"
            )
        except sqlite3.DatabaseError:
            db.close()
            raise
        return db


@dataclass(frozen=True)
class SymbolIndex:
    """Every structured file of one revision, by path. `read` says how many had to be read anew."""

    outlines: Mapping[str, Outline]
    read: int


def build_index(git: Git, rev: str, store: OutlineStore | None = None) -> SymbolIndex:
    """Index a revision; a blob that the store knows is not read again."""
    entries = [
        e
        for e in git.tree(rev)
        if e.mode.startswith("100") and has_outline(e.path) and (e.size or 0) <= MAX_PARSED_BYTES
    ]
    kept = store.get({_store_key(e) for e in entries}) if store else {}
    missing = {e.path: e for e in entries if _store_key(e) not in kept}
    fresh = {path: read_outline(path, data) for path, data in _read_blobs(git, rev, missing)}
    if store and fresh:
        store.put({_store_key(missing[p]): encode_outline(o) for p, o in fresh.items()})
    outlines = {
        e.path: fresh[e.path] if e.path in fresh else decode_outline(kept[_store_key(e)])
        for e in entries
        if e.path in fresh or _store_key(e) in kept
    }
    return SymbolIndex(outlines, read=len(fresh))


def encode_outline(one: Outline) -> bytes:
    """An outline as bytes to keep."""
    rows = {
        "d": [[d.name, d.kind, d.start, d.end] for d in one.definitions],
        "c": [[c.name, c.line, c.inside] for c in one.calls],
        "i": one.imports,
        "b": one.broken,
    }
    return json.dumps(rows, separators=(",", ":")).encode()


def decode_outline(data: bytes) -> Outline:
    """An outline from what `encode` made."""
    rows = json.loads(data)
    return Outline(
        tuple(Definition(*d) for d in rows["d"]),
        tuple(CallSite(*c) for c in rows["c"]),
        tuple(rows["i"]),
        bool(rows["b"]),
    )


def _store_key(entry: TreeEntry) -> str:
    return f"{_digest_reader()}:{language_of(entry.path)}:{entry.sha}"


@cache
def _digest_reader() -> str:
    """A digest of what reads outlines: another version may read the same file differently."""
    sources = [files("regreen.code").joinpath(n) for n in ("symbols.py", "languages.toml")]
    return hashlib.sha256(b"".join(one.read_bytes() for one in sources)).hexdigest()[:16]


def _read_blobs(
    git: Git, rev: str, missing: Mapping[str, TreeEntry]
) -> Iterable[tuple[str, bytes]]:
    """A few files one by one, many in one stream."""
    if len(missing) > _MAX_SINGLE_READS:
        yield from read_sources(git, rev, missing.__contains__)
        return
    for path in missing:
        data = git.show(rev, path, MAX_PARSED_BYTES)
        if data is not None:
            yield path, data


@dataclass(frozen=True, slots=True)
class CallLink:
    """A definition at one end of a call; an import or the same file ties the two together."""

    path: str
    definition: Definition | None
    line: int


@dataclass(frozen=True)
class CallGraph:
    """The call graph of one revision, built from its outlines."""

    outlines: Mapping[str, Outline]

    def find_callers(self, path: str, name: str) -> list[CallLink]:
        """Places that call a definition (`name` dotted, as its outline has it), in files that are or import its own."""
        links = [
            CallLink(p, self._enclosing_definition(p, call), call.line)
            for p, call in self._calls.get(name.rpartition(".")[2], ())
            if language_family(p) == language_family(path)
            and self.are_files_linked(p, path)
            and not (p == path and call.inside == name)
        ]
        return sorted(links, key=lambda x: (x.path != path, x.path, x.line))

    def is_called(self, name: str) -> bool:
        """Whether anything anywhere is called by this short name."""
        return name in self._calls

    def find_definitions(self, name: str) -> list[tuple[str, Definition]]:
        """Every definition of this short name, constants left out, with its file."""
        return self._definitions.get(name, [])

    def resolve_call(self, path: str, call: CallSite) -> Iterator[tuple[str, Definition]]:
        """The definitions that a call in a file can mean: in the file itself, or in what it imports."""
        for target, definition in self._definitions.get(call.name, ()):
            if language_family(target) == language_family(path) and self.are_files_linked(
                path, target
            ):
                yield target, definition

    def _enclosing_definition(self, path: str, call: CallSite) -> Definition | None:
        around = (d for d in self.outlines[path].definitions if d.kind != "constant")
        return next((d for d in around if d.name == call.inside), None)

    def are_files_linked(self, user: str, used: str) -> bool:
        """Whether one file is, or imports, or stands in the same package as the other."""
        if user == used:
            return True
        pure, row = PurePosixPath(used), language_row(used)
        folders = [
            str(PurePosixPath(p).parent).replace("src/test/", "src/main/") for p in (user, used)
        ]
        if row.package_folders and folders[0] == folders[1]:
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
