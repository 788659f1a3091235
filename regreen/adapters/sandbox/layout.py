"""The common part of all boxes: the layout, the checks of input, the shape of results."""

from __future__ import annotations

import io
import itertools
import tarfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from regreen.adapters.sandbox import box_scripts
from regreen.adapters.sandbox.process_watch import OutputDrain
from regreen.domain.errors import UserError
from regreen.domain.models import BoxLimits, RunEnding, RunResult
from regreen.domain.private_folders import temporary_folder

PROGRAMS_DIR = "/etc/regreen/bin"
"""Links to this machine's toolchains that lie outside /usr."""
DEFAULT_PATH = f"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:{PROGRAMS_DIR}"
HOST_NAME = "localhost"
"""The host name in a box. It has an address, which a JVM, as Spark's, looks up when it starts."""
HELPER_TIMEOUT_S = 120.0
MiB = 1024**2
# Below these limits no program starts, and the engine's own message would not say why.
_MIN_LIMITS = BoxLimits(
    memory=16 * MiB, disk=64 * 1024, tmp=64 * 1024, pids=4, cpus=0.05, output=0, flood=1
)

SETUP_LIMITS = BoxLimits(
    memory=4 * 1024 * MiB,
    disk=4 * 1024 * MiB,
    tmp=2048 * MiB,  # pip keeps every wheel of a setup there until all are installed
    pids=1024,
    cpus=64.0,
    flood=256 * MiB,
)

END_REASONS: Mapping[RunEnding, str] = {
    "timeout": "it took longer than it was given",
    "flood": "it printed more than a box may",
    "cancelled": "it was cancelled",
}


def command_environment(path: str) -> dict[str, str]:
    """The variables of every command in a box, none of them the host's. `path` is the image's own."""
    return {
        "PATH": f"{box_scripts.ENV_DIR}/bin:{box_scripts.HOME_DIR}/.local/bin:{path}",
        "HOME": box_scripts.HOME_DIR,
        "USER": "regreen",
        "LOGNAME": "regreen",
        "TMPDIR": "/tmp",  # noqa: S108 - the box's own tmpfs
        "LANG": "C.UTF-8",
        "VIRTUAL_ENV": box_scripts.ENV_DIR,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
    }


def in_shell(argv: Sequence[str], cwd: str) -> list[str]:
    """The command as a shell would start it in a directory of the box: 127 when there is no such program."""
    return [
        "/bin/sh",
        "-c",
        box_scripts.RUN_SCRIPT,
        "sh",
        str(PurePosixPath(box_scripts.WORK_DIR, cwd)),
        *argv,
    ]


def reset_command(
    mark: str, argv: Sequence[str], env: Mapping[str, str], *, kills: bool
) -> list[str]:
    """The command that empties a box, unpacks a tree, prints `mark` and then runs `argv` with its variables."""
    if env:
        # not the variables of our own script: one of them may be PATH or HOME
        argv = [
            "env",
            *(f"{name}={value}" for name, value in env.items()),
            *_protect_command_name(argv),
        ]
    first = "kill" if kills else "-"
    return [
        "/bin/sh",
        "-c",
        box_scripts.RESET_SCRIPT,
        "sh",
        first,
        mark,
        box_scripts.WORK_DIR,
        *argv,
    ]


def _protect_command_name(argv: Sequence[str]) -> Sequence[str]:
    """The command, so that `env` cannot take its name for one more variable."""
    return ["/bin/sh", "-c", 'exec "$@"', "sh", *argv] if "=" in argv[0] else argv


def read_command(path: str, limit: int) -> list[str]:
    """The command that prints the first bytes of a regular file."""
    return ["/bin/sh", "-c", box_scripts.READ_SCRIPT, "sh", _normalize_path(path), str(limit)]


def check_command(argv: Sequence[str], env: Mapping[str, str]) -> None:
    """Refuse a command that no system can run.

    Raises:
        UserError: an empty command, a NUL byte, or a variable without a proper name.
    """
    if not argv or not argv[0]:
        msg = "there is no command to run"
        raise UserError(msg)
    if any("\0" in part for part in (*argv, *env, *env.values())):
        msg = "a command and its variables cannot hold a NUL byte"
        raise UserError(msg)
    if bad := [name for name in env if not name or "=" in name]:
        message = f"not a variable's name: {bad[0]!r}"
        raise UserError(message)


def check_limits(limits: BoxLimits) -> BoxLimits:
    """The limits after a check.

    Raises:
        UserError: one is so low that nothing could start.
    """
    for name in ("memory", "disk", "tmp", "pids", "cpus", "output", "flood"):
        least, limit = getattr(_MIN_LIMITS, name), getattr(limits, name)
        if limit < least:
            message = f"a box needs {name} of at least {least}, not {limit}"
            raise UserError(message)
    return limits


def nonempty_stream(tree: Iterable[bytes]) -> Iterator[bytes] | None:
    """The tar stream from its first byte on; None if there is none: an empty stream is no tar file."""
    chunks = iter(tree)
    for first in chunks:
        if first:
            return itertools.chain((first,), chunks)
    return None


@contextmanager
def write_temporary_tar(tree: Iterable[bytes], limit: int) -> Iterator[Path | None]:
    """The tar stream as a file while the block runs; None if there is no tree.

    Raises:
        UserError: it is larger than `limit` allows.
    """
    chunks = nonempty_stream(tree)
    if chunks is None:
        yield None
        return
    with temporary_folder("tree") as folder:
        spool = folder / "tree.tar"
        with spool.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)
                # heads and padding at most double what the files hold
                if file.tell() > 2 * limit + MiB:
                    message = (
                        f"the tree does not fit into the box's {limit} bytes; give it more disk"
                    )
                    raise UserError(message)
        spool.chmod(0o644)
        yield spool


def can_be_read(path: str, limit: int) -> bool:
    """Whether the path names anything at all."""
    return bool(path) and "\0" not in path and limit >= 0


def pack_files(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files as a tar file for each directory of the box under which they belong: the tree, the home directory.

    Raises:
        UserError: a path leads out of both.
    """
    home = PurePosixPath(box_scripts.HOME_DIR)
    below: dict[str, dict[PurePosixPath, bytes]] = {}
    for name, content in files.items():
        path, folder = PurePosixPath(name), box_scripts.WORK_DIR
        if path.is_relative_to(home):
            path, folder = path.relative_to(home), box_scripts.HOME_DIR
        if path.is_absolute() or ".." in path.parts or "\0" in name or not path.parts:
            message = f"not a path inside the tree: {name!r}"
            raise UserError(message)
        below.setdefault(folder, {})[path] = content
    return {folder: _make_tar(its_files) for folder, its_files in below.items()}


def _make_tar(files: Mapping[PurePosixPath, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, content in files.items():
            entry = tarfile.TarInfo(str(path))
            entry.size, entry.mode, entry.mtime = len(content), 0o644, int(time.time())
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def make_run_result(
    ended: RunEnding, code: int | None, tap: OutputDrain, since: float, detail: str = ""
) -> RunResult:
    """How a command ended, with what it printed."""
    return RunResult(
        ended=ended,
        exit_code=code,
        stdout=tap.out.to_text(),
        stderr=tap.err.to_text(),
        truncated=tap.is_truncated,
        seconds=round(time.monotonic() - since, 4),
        detail=detail,
    )


def out_of_memory(limits: BoxLimits) -> str:
    """The message after the kernel killed for memory."""
    return f"out of memory ({limits.memory // MiB} MiB for its processes and files)"


def _normalize_path(path: str) -> str:
    """An absolute path without `.` and `..`, relative ones taken from /work."""
    parts: list[str] = []
    for part in PurePosixPath(box_scripts.WORK_DIR, path).parts[1:]:
        if part == "..":
            del parts[-1:]
        else:
            parts.append(part)
    return "/" + "/".join(parts)
