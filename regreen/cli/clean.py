"""`regreen clean`: shows what Regreen keeps on this machine and can make again, and empties it on request."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regreen.cli.options import format_option
from regreen.cli.terminal import print_answer
from regreen.domain.errors import NoSandbox, OutsideError, UserError
from regreen.domain.private_folders import cache_home, find_old_temporary_folders, lock_caches

if TYPE_CHECKING:
    from regreen.adapters.sandbox.retention import StoredEnvironment

_DAY_S = 86400.0
_MiB = 1024**2
_ENVIRONMENT_PREFIX = "regreen-env:"  # of the engine's images; the others are below them
_IN_USE = "in use, or another image stands on it"


@dataclass(frozen=True, slots=True)
class _Entry:
    """One thing that is kept; `used` is when it last was, in seconds of the epoch."""

    name: str
    size: int
    used: float


@dataclass(frozen=True, slots=True)
class _Cache:
    """A kind of things that are kept. `remove` returns the names of the entries that are gone."""

    kind: str
    about: str
    path: str
    entries: tuple[_Entry, ...]
    remove: Callable[[Sequence[_Entry]], Iterable[str]]

    def describe(self) -> dict[str, object]:
        """Its part of the JSON document."""
        ages = sorted((time.time() - entry.used) / _DAY_S for entry in self.entries)
        return {
            "kind": self.kind,
            "path": self.path,
            "entries": len(self.entries),
            "bytes": sum(entry.size for entry in self.entries),
            "newest_days": round(ages[0], 2) if ages else None,
            "oldest_days": round(ages[-1], 2) if ages else None,
        }


KINDS = {
    "environments": "what setups installed",
    "images": "what environments stand on",
    "mirrors": "copies of repositories on GitHub",
    "repositories": "patched commits beside your repositories",
    "runs": "runs that bisect and fix remember",
    "answers": "answers of the model, which cost money to ask for again",
    "capsules": "evidence of `why` and `prove`, for `regreen replay`",
    "index": "outlines of source files, and what checkers said of them",
    "temporary": "leftovers of killed commands, a day old",
}


@click.command("clean")
@click.argument("kinds", nargs=-1, type=click.Choice(list(KINDS)), metavar="[KIND]...")
@click.option("--all", "everything", is_flag=True, help="Empty every kind.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@format_option("form", "text", "json")
def command(*, kinds: tuple[str, ...], everything: bool, yes: bool, form: str) -> int:
    """Show what Regreen keeps on this machine, and empty the kinds that are named.

    All of it is made again when it is needed. The operator's database, keys and settings are never touched.
    """
    caches = _find_caches()
    chosen = [cache for cache in caches if (everything or cache.kind in kinds) and cache.entries]
    document: dict[str, object] = {
        "version": 1,
        "caches": [cache.describe() for cache in caches],
        "removed": [],
        "kept": [],
    }
    if chosen:
        for cache in chosen:
            if cache.kind == "temporary":  # the only kind outside of Regreen's own folders
                for entry in cache.entries:
                    click.echo(f"leftover: {cache.path}/{entry.name}", err=True)
        _confirm_removal(chosen, yes=yes)
        document |= _empty_caches({cache.kind for cache in chosen})
    if form == "json":
        click.echo(json.dumps(document))
    else:
        print_answer(_format_text(caches, document, asked=bool(kinds) or everything))
    return 1 if document["kept"] else 0


def _confirm_removal(chosen: Sequence[_Cache], *, yes: bool) -> None:
    if yes:
        return
    size = sum(entry.size for cache in chosen for entry in cache.entries)
    names = ", ".join(cache.kind for cache in chosen)
    if not sys.stdin.isatty():
        raise UserError("confirmation needs a terminal; --yes removes without asking")
    click.confirm(f"remove {names} ({_format_size(size)})?", abort=True, err=True)


def _empty_caches(kinds: set[str]) -> dict[str, object]:
    """Remove everything of these kinds; what was removed and what is kept, for the document.

    Raises:
        OutsideError: another Regreen process uses the caches.
    """
    removed: list[dict[str, object]] = []
    kept: list[dict[str, object]] = []
    with lock_caches(alone=True) as is_alone:
        if not is_alone:
            raise OutsideError(
                "another regreen command is running and uses the caches; let it end, or stop it"
            )
        for cache in _find_caches():
            if cache.kind not in kinds:
                continue
            gone = set(cache.remove(cache.entries))
            sizes = [entry.size for entry in cache.entries if entry.name in gone]
            removed += [{"kind": cache.kind, "entries": len(sizes), "bytes": sum(sizes)}]
            kept += [
                {"kind": cache.kind, "name": entry.name, "reason": _IN_USE}
                for entry in cache.entries
                if entry.name not in gone
            ]
    return {"removed": removed, "kept": kept}


def _format_text(caches: Sequence[_Cache], document: dict[str, object], *, asked: bool) -> str:
    if not asked:
        lines = [_format_cache(cache) for cache in caches]
        total = _format_size(sum(entry.size for cache in caches for entry in cache.entries))
        return "\n".join(
            [*lines, f"{total} in all; `regreen clean --all` or `regreen clean KIND...` removes it"]
        )
    removed, kept = document["removed"], document["kept"]
    assert isinstance(removed, list)  # noqa: S101 - narrows the document
    assert isinstance(kept, list)  # noqa: S101
    lines = [
        f"removed {row['kind']}: {row['entries']}, {_format_size(row['bytes'])}" for row in removed
    ]
    lines += [f"kept {row['kind']} {row['name']}: {row['reason']}" for row in kept]
    return "\n".join(lines or ["there is nothing to remove"])


def _format_cache(cache: _Cache) -> str:
    shown = cache.describe()
    ages = ""
    if cache.entries:
        newest, oldest = _format_age(shown["newest_days"]), _format_age(shown["oldest_days"])
        ages = f", last used {newest} ago" + (
            "" if newest == oldest else f", the oldest {oldest} ago"
        )
    size = _format_size(sum(entry.size for entry in cache.entries))
    return f"{cache.kind:<13} {len(cache.entries):>4} {size:>11}  {cache.about}{ages}; {cache.path}"


def _format_age(days: object) -> str:
    assert isinstance(days, int | float)  # noqa: S101 - narrows the document
    for number, unit in ((int(days), "day"), (int(days * 24), "hour")):
        if number:
            return f"{number} {unit}" + ("" if number == 1 else "s")
    return "less than an hour"


def _format_size(size: int) -> str:
    return f"{size / _MiB:.1f} MiB" if size < 1024 * _MiB else f"{size / _MiB / 1024:.1f} GiB"


# What there is


def _find_caches() -> list[_Cache]:
    from regreen.app.settings_loader import read_settings

    home, views = read_settings().home, cache_home() / "views"
    caches = [
        *_find_environments(),
        _find_mirrors(home / "mirrors"),
        _make_folder_cache("repositories", views, views.glob("*")),
        _find_databases("runs", home / "bisect.db"),
        _find_databases("answers", home / "answers.sqlite"),
        _make_folder_cache("capsules", home / "capsules", (home / "capsules").glob("*.json")),
        _find_databases("index", home / "index.sqlite"),
        _make_folder_cache("temporary", Path(tempfile.gettempdir()), find_old_temporary_folders()),
    ]
    order = list(KINDS)
    return sorted(caches, key=lambda cache: order.index(cache.kind))


def _find_environments() -> list[_Cache]:
    """The environments of both backends, and the images below them.

    An image that another home's Regreen made is not ours to remove.
    """
    from regreen.adapters.sandbox.bubblewrap.bubblewrap_sandbox import BwrapSandbox
    from regreen.adapters.sandbox.docker.docker_images import DockerImages, connect_engine
    from regreen.adapters.sandbox.retention import UsageLedger

    place = cache_home() / "sandbox"
    folders = BwrapSandbox(place).list_environments()

    def remove_folders(entries: Sequence[StoredEnvironment]) -> Iterable[str]:
        with suppress(NoSandbox):  # they are emptied inside a box
            return [env.name for env in BwrapSandbox.connect(place).remove(entries)]
        return ()

    in_folders = _make_environment_cache(
        "environments", str(place / "environments"), folders, remove_folders
    )
    try:
        ledger = UsageLedger(place / "used")
        images = DockerImages(connect_engine(), ledger)
        ours = [env for env in images.list_environments() if ledger.knows(env.name)]
    except (NoSandbox, OutsideError):
        return [in_folders]

    def remove_images(entries: Sequence[StoredEnvironment]) -> Iterable[str]:
        return [env.name for env in images.remove(entries)]

    prepared = [env for env in ours if env.name.startswith(_ENVIRONMENT_PREFIX)]
    below = [env for env in ours if env not in prepared]
    return [
        *([in_folders] if folders else []),
        _make_environment_cache("environments", "the Docker engine", prepared, remove_images),
        _make_environment_cache("images", "the Docker engine", below, remove_images),
    ]


def _make_environment_cache(
    kind: str,
    path: str,
    stored: Sequence[StoredEnvironment],
    remove: Callable[[Sequence[StoredEnvironment]], Iterable[str]],
) -> _Cache:
    by_name = {env.name: env for env in stored}
    entries = tuple(_Entry(env.name, env.size, env.used) for env in stored)
    return _Cache(
        kind, KINDS[kind], path, entries, lambda some: remove([by_name[one.name] for one in some])
    )


def _find_mirrors(folder: Path) -> _Cache:
    from regreen.adapters.git.mirrors import GitMirrors

    def remove(entries: Sequence[_Entry]) -> Iterable[str]:
        for entry in entries:
            GitMirrors(folder).remove(int(entry.name.removesuffix(".git")))
            yield entry.name

    found = [path for path in folder.glob("*.git") if path.stem.isdigit()]
    return _make_cache("mirrors", folder, found, remove)


def _make_folder_cache(kind: str, folder: Path, found: Iterable[Path]) -> _Cache:
    """Folders and files in `folder`."""

    def remove(entries: Sequence[_Entry]) -> Iterable[str]:
        for entry in entries:
            path = folder / entry.name
            with suppress(OSError):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
                yield entry.name

    return _make_cache(kind, folder, found, remove)


def _find_databases(kind: str, file: Path) -> _Cache:
    """An SQLite file with what belongs to it."""

    def remove(entries: Sequence[_Entry]) -> Iterable[str]:
        for entry in entries:
            (file.parent / entry.name).unlink(missing_ok=True)
            yield entry.name

    parts = [file.with_name(file.name + end) for end in ("", "-journal", "-shm", "-wal")]
    return _make_cache(kind, file, parts, remove)


def _make_cache(
    kind: str,
    place: Path,
    paths: Iterable[Path],
    remove: Callable[[Sequence[_Entry]], Iterable[str]],
) -> _Cache:
    entries = []
    for path in paths:
        with suppress(OSError):  # it is gone by now
            entries.append(_Entry(path.name, _measure_bytes(path), path.lstat().st_mtime))
    return _Cache(kind, KINDS[kind], str(place), tuple(entries), remove)


def _measure_bytes(place: Path) -> int:
    """The bytes of a file, or of all files below a folder; links are not followed."""
    if place.is_symlink() or not place.is_dir():
        return place.lstat().st_size
    total = 0
    for folder, _, names in os.walk(place):
        for name in names:
            with suppress(OSError):  # it is gone by now
                total += (Path(folder) / name).lstat().st_size
    return total
