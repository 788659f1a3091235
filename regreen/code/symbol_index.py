"""The structure of every file of a repository, read once per blob and kept."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from regreen.code.file_languages import has_outline, language_of
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

INDEX_VERSION = 1
"""Changes whenever `outline` would read the same file differently."""
_MAX_SINGLE_READS = 40


class OutlineStore(Protocol):
    """Where outlines are kept, by a key that names the blob's content."""

    def get(self, keys: Iterable[str]) -> dict[str, bytes]:
        """What is kept under these keys; those not kept are left out."""
        ...

    def put(self, rows: Mapping[str, bytes]) -> None:
        """Keep these."""
        ...


class SqliteOutlineStore:
    """Outlines in one SQLite file. A damaged or foreign file is only a cache that misses."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def get(self, keys: Iterable[str]) -> dict[str, bytes]:
        """What is kept under these keys."""
        found: dict[str, bytes] = {}
        wanted = list(keys)
        with closing(self._open_database()) as db:
            for at in range(0, len(wanted), 500):
                part = wanted[at : at + 500]
                marks = ",".join("?" * len(part))
                rows = db.execute(f"SELECT key, data FROM outline WHERE key IN ({marks})", part)  # noqa: S608 - only question marks
                found.update(rows)
        return found

    def put(self, rows: Mapping[str, bytes]) -> None:
        """Keep these."""
        with closing(self._open_database()) as db, db:
            db.executemany("INSERT OR REPLACE INTO outline VALUES (?, ?)", rows.items())

    def _open_database(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self.path, timeout=30)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=OFF")  # lost on a crash, it is read again
        db.execute(
            "CREATE TABLE IF NOT EXISTS outline (key TEXT PRIMARY KEY, data BLOB) WITHOUT ROWID"
        )
        return db


@dataclass(frozen=True)
class SymbolIndex:
    """Every structured file of one revision, by path. `read` says how many had to be read anew."""

    outlines: Mapping[str, Outline]
    read: int


def build_index(
    git: Git,
    rev: str,
    store: OutlineStore | None = None,
    *,
    skip: Callable[[str], bool] = lambda _path: False,
) -> SymbolIndex:
    """Index a revision; a blob that the store knows is not read again. `skip` leaves paths out."""
    entries = [
        e
        for e in git.tree(rev)
        if e.mode.startswith("100")
        and has_outline(e.path)
        and (e.size or 0) <= MAX_PARSED_BYTES
        and not skip(e.path)
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
    return f"{INDEX_VERSION}:{language_of(entry.path)}:{entry.sha}"


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
