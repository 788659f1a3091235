"""Runs ruff and basedpyright on files of a revision, laid out in a temporary folder as data."""

from __future__ import annotations

import errno
import json
import posixpath
import secrets
import signal
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from regreen.domain.errors import OutsideError
from regreen.domain.private_folders import temporary_folder
from regreen.reviewers.analyzers.baseline import Diagnostic

UNREAD_RULE = "unread"
"""The rule of a hit for a file that could not be read; its message is the reason."""
_REFUSED_NAMES = frozenset(
    {errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EILSEQ, errno.EINVAL}
)


@dataclass(frozen=True, slots=True)
class Checkout:
    """A folder with files of a revision: their paths by their names on disk, and those that the disk refused."""

    root: Path
    paths: dict[str, str] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    def write_files(self, files: Iterable[tuple[str, str | bytes]]) -> None:
        """Lay out these files, over those of the same name.

        Raises:
            OutsideError: the disk is full, or cannot be written for another reason than a file's name.
        """
        for path, content in files:
            data = (
                content
                if isinstance(content, bytes)
                else content.encode("utf-8", "surrogateescape")
            )
            place = posixpath.join(self.root, *PurePosixPath(path).parts)
            if is_safe_path(path) and _write_file(Path(place), data):
                self.paths[place] = path
            else:
                self.refused.append(path)

    def remove_files(self, paths: Collection[str]) -> None:
        """Take files away, and the folders that nothing is left in."""
        for place in [place for place, path in self.paths.items() if path in paths]:
            del self.paths[place]
            Path(place).unlink(missing_ok=True)
            with suppress(OSError):  # something is left
                for folder in Path(place).relative_to(self.root).parents[:-1]:
                    self.root.joinpath(folder).rmdir()

    def diagnostics_for_unread_files(self) -> list[Diagnostic]:
        """One hit for each file that is not there."""
        why = "its path cannot be laid out beside the other files"
        return [Diagnostic(UNREAD_RULE, path, 1, 1, why) for path in self.refused]


@contextmanager
def write_temporary_checkout(
    files: Mapping[str, str | bytes] | Iterable[tuple[str, str | bytes]],
) -> Iterator[Checkout]:
    """A temporary folder holding these files. Nothing in it is ever imported or run.

    Raises:
        OutsideError: the disk is full, or cannot be written for another reason than a file's name.
    """
    with temporary_folder("review") as folder:
        laid = Checkout(folder.resolve())
        laid.write_files(files.items() if isinstance(files, Mapping) else files)
        yield laid


def _write_file(place: Path, data: bytes) -> bool:
    """Write a file; False where its name is too long, or a folder is where it has to be, or the reverse."""
    try:
        try:
            place.write_bytes(data)
        except FileNotFoundError:  # most files stand in a folder that is there by now
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
    except OSError as error:
        if error.errno in _REFUSED_NAMES:
            return False
        message = f"cannot write the files to read to {place.parent}: {error.strerror}"
        raise OutsideError(message) from error
    return True


def is_safe_path(path: str) -> bool:
    """Whether a path names something below the folder it is joined to, on every file system and in a tool's JSON."""
    parts = PurePosixPath(path).parts
    is_text = path.encode("utf-8", "replace").decode() == path
    return (
        bool(parts)
        and is_text
        and not path.startswith("/")
        and ".." not in parts
        and "\0" not in path
    )


# ruff over a change's Python files, with our own rules and never the repository's configuration.

SYNTAX_RULE = "invalid-syntax"
_RUFF_SECONDS = 300


def run_ruff(
    files: Mapping[str, str], rules: Sequence[str], *, python: str = "py313"
) -> list[Diagnostic]:
    """What ruff finds in these files; a file that does not parse has one hit of `SYNTAX_RULE`.

    One that could not be read has one of `UNREAD_RULE`.

    Raises:
        OutsideError: ruff itself failed.
    """
    if not files:
        return []
    with write_temporary_checkout(files) as laid:
        command = [
            *(
                _find_ruff(),
                "check",
                "--isolated",
                "--no-cache",
                "--preview",
                "--exit-zero",
                "--quiet",
            ),
            *("--output-format", "json", "--target-version", python, "--select", ",".join(rules)),
            *("--config", "lint.explicit-preview-rules = true", "."),
        ]
        try:
            done = subprocess.run(
                command, cwd=laid.root, capture_output=True, timeout=_RUFF_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            message = f"ruff took more than {_RUFF_SECONDS} s"
            raise OutsideError(message) from None
        if done.returncode != 0:
            message = f"ruff failed: {done.stderr.decode('utf-8', 'replace')[:300]}"
            raise OutsideError(message)
        found = [
            hit
            for row in json.loads(done.stdout)
            if (hit := _parse_diagnostic(row, laid.paths, files))
        ]
        return [*found, *laid.diagnostics_for_unread_files()]


def _find_ruff() -> str:
    from ruff import find_ruff_bin  # type: ignore[import-untyped]

    return str(find_ruff_bin())


def _parse_diagnostic(
    row: dict[str, object], written: Mapping[str, str], texts: Mapping[str, str]
) -> Diagnostic | None:
    path = written.get(str(Path(str(row["filename"])).resolve()))
    start, end = row["location"], row["end_location"]
    if path is None or not isinstance(start, dict) or not isinstance(end, dict):
        return None
    rule = str(row["code"] or SYNTAX_RULE)
    first, last = int(start["row"]), int(end["row"])
    mended = _apply_fix(row.get("fix"), texts[path].split("\n")[first - 1 : last], first)
    return Diagnostic(rule, path, first, last, str(row["message"]), suggestion=mended)


def _apply_fix(fix: object, rows: Sequence[str], first: int) -> str | None:
    """The rows, which begin with line `first`, as ruff's fix leaves them; None without one, or where it reaches beyond."""
    if not isinstance(fix, dict) or fix["applicability"] == "display":
        return None
    lines = [row.removesuffix("\r") for row in rows]
    starts = [sum(len(line) + 1 for line in lines[:n]) for n in range(len(lines) + 1)]
    text = "\n".join([*lines, ""])
    for edit in reversed(fix["edits"]):
        places = [
            (place["row"] - first, place["column"] - 1)
            for place in (edit["location"], edit["end_location"])
        ]
        if any(
            row not in range(len(starts)) or starts[row] + column > len(text)
            for row, column in places
        ):
            return None
        begin, end = (starts[row] + column for row, column in places)
        text = text[:begin] + str(edit["content"]) + text[end:]
    return text.removesuffix("\n") if text.endswith("\n") or not text else None


# basedpyright over a change's Python files, with our own rules, and the repository's files as data around them.
#
# It never sees an interpreter or an installed package: what a library offers is unknown to it, and it is silent
# where it does not know.

_PYRIGHT_SECONDS = 240
_NODE_HEAP_MIB = 700


def has_pyright() -> bool:
    """Whether basedpyright is installed: it comes with the extra `types`, for its JavaScript runtime is large."""
    return find_spec("basedpyright") is not None


def run_pyright(
    files: Mapping[str, str | bytes] | Iterable[tuple[str, str | bytes]],
    targets: Sequence[str],
    rules: Sequence[str],
    *,
    python: str = "3.13",
) -> list[Diagnostic]:
    """What basedpyright finds in `targets`, with all of `files` there to be imported.

    A target that it could not read has one hit of `UNREAD_RULE`.

    Raises:
        OutsideError: it failed, or took too long or too much memory.
    """
    if not targets:
        return []
    with write_temporary_checkout(files) as laid:
        root = laid.root
        config = {
            "include": sorted(set(targets) & set(laid.paths.values())),
            "typeCheckingMode": "off",
            "pythonVersion": python,
            "pythonPlatform": "All",
            "useLibraryCodeForTypes": False,
            "extraPaths": [p for p in ("src", "lib") if (root / p).is_dir()],
            **dict.fromkeys(rules, "error"),
        }
        # a name that no file of the repository can have
        place = root / f"{secrets.token_hex(16)}.json"
        place.write_text(json.dumps(config))
        output = _run_command(["--outputjson", "-p", place.name], root)
        found = [
            h for row in _parse_rows(output) if (h := _parse_pyright_diagnostic(row, laid.paths))
        ]
        wanted = {*rules, UNREAD_RULE}
        return [*(h for h in found if h.rule in wanted), *laid.diagnostics_for_unread_files()]


def _run_command(options: Sequence[str], root: Path) -> bytes:
    command = [sys.executable, "-I", "-m", "basedpyright", *options]
    # no PATH: with an interpreter in sight it would look into that interpreter's packages
    environment = {
        "PATH": "/nonexistent",
        "HOME": str(root),
        # a large young generation spares a short run most of its garbage collections
        "NODE_OPTIONS": f"--max-old-space-size={_NODE_HEAP_MIB} --max-semi-space-size=64",
    }
    try:
        done = subprocess.run(
            command,
            cwd=root,
            env=environment,
            capture_output=True,
            timeout=_PYRIGHT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        message = f"basedpyright took more than {_PYRIGHT_SECONDS} s"
        raise OutsideError(message) from None
    if -done.returncode in {signal.SIGXCPU, signal.SIGABRT}:
        what = "CPU time" if -done.returncode == signal.SIGXCPU else "memory"
        message = f"basedpyright took too much {what}"
        raise OutsideError(message)
    if done.returncode not in {0, 1}:
        message = f"basedpyright failed: {done.stderr.decode('utf-8', 'replace')[-300:]}"
        raise OutsideError(message)
    return done.stdout


def _parse_rows(output: bytes) -> list[dict[str, object]]:
    try:
        rows = json.loads(output)["generalDiagnostics"]
    except (ValueError, KeyError) as error:
        raise OutsideError("basedpyright answered with something else than JSON") from error
    return [r for r in rows if isinstance(r, dict)]


def _parse_pyright_diagnostic(
    row: dict[str, object], written: Mapping[str, str]
) -> Diagnostic | None:
    path = written.get(str(Path(str(row.get("file"))).resolve()))
    place = row.get("range")
    if path is None:
        return None
    if not isinstance(place, dict):
        # a message about the whole file: it is too complex, or nested too deeply
        return Diagnostic(UNREAD_RULE, path, 1, 1, "too complex for basedpyright")
    first, last = int(place["start"]["line"]) + 1, int(place["end"]["line"]) + 1
    return Diagnostic(str(row.get("rule", "")), path, first, last, str(row["message"]))
