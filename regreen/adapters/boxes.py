"""What boxes of every kind share: the layout, the checks on the way in, the shape of the answer."""

from __future__ import annotations

import io
import itertools
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from regreen.adapters import scripts
from regreen.adapters.watch import Tap
from regreen.errors import UserError
from regreen.models import Ended, Limits, RunResult

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
HELPER_TIMEOUT_S = 120.0
MiB = 1024**2
# Below these no program starts, and the engine's own complaint would say nothing about why.
_LEAST = Limits(
    memory=16 * MiB, disk=64 * 1024, tmp=64 * 1024, pids=4, cpus=0.05, output=0, flood=1
)

SETUP_LIMITS = Limits(
    memory=4 * 1024 * MiB,
    disk=4 * 1024 * MiB,
    tmp=1024 * MiB,
    pids=1024,
    cpus=64.0,
    flood=256 * MiB,
)

WHY: Mapping[Ended, str] = {
    "timeout": "it took longer than it was given",
    "flood": "it printed more than a box may",
    "cancelled": "it was cancelled",
}


def environment(path: str) -> dict[str, str]:
    """The variables of every command in a box; nothing of the host's comes in. `path` is the image's own."""
    return {
        "PATH": f"{scripts.ENV}/bin:{scripts.HOME}/.local/bin:{path}",
        "HOME": scripts.HOME,
        "USER": "regreen",
        "LOGNAME": "regreen",
        "TMPDIR": "/tmp",  # noqa: S108 - the box's own tmpfs
        "LANG": "C.UTF-8",
        "VIRTUAL_ENV": scripts.ENV,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
    }


def in_shell(argv: Sequence[str], cwd: str) -> list[str]:
    """The command as a shell would start it in a directory of the box: 127 when there is no such program."""
    return ["/bin/sh", "-c", scripts.RUN, "sh", str(PurePosixPath(scripts.WORK, cwd)), *argv]


def afresh(mark: str, argv: Sequence[str], env: Mapping[str, str], *, kills: bool) -> list[str]:
    """The command that empties a box, takes a tree, prints `mark` and then is `argv` with its variables."""
    if env:
        # not the variables of our own script: one of them may be PATH or HOME
        argv = ["env", *(f"{name}={value}" for name, value in env.items()), *_named(argv)]
    first = "kill" if kills else "-"
    return ["/bin/sh", "-c", scripts.AFRESH, "sh", first, mark, scripts.WORK, *argv]


def _named(argv: Sequence[str]) -> Sequence[str]:
    """The command, so that `env` cannot take its name for one more variable."""
    return ["/bin/sh", "-c", 'exec "$@"', "sh", *argv] if "=" in argv[0] else argv


def reading(path: str, limit: int) -> list[str]:
    """The command that prints the first bytes of a regular file."""
    return ["/bin/sh", "-c", scripts.READ, "sh", _plain(path), str(limit)]


def check_command(argv: Sequence[str], env: Mapping[str, str]) -> None:
    """Refuse what no system can run.

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


def check_limits(limits: Limits) -> Limits:
    """The limits themselves.

    Raises:
        UserError: one is so low that nothing could start.
    """
    for name in ("memory", "disk", "tmp", "pids", "cpus", "output", "flood"):
        least, asked = getattr(_LEAST, name), getattr(limits, name)
        if asked < least:
            message = f"a box needs {name} of at least {least}, not {asked}"
            raise UserError(message)
    return limits


def begun(tree: Iterable[bytes]) -> Iterator[bytes] | None:
    """The tar stream from its first byte on; None when there is none: an empty stream is no tar file."""
    chunks = iter(tree)
    for first in chunks:
        if first:
            return itertools.chain((first,), chunks)
    return None


@contextmanager
def spooled(tree: Iterable[bytes], limit: int) -> Iterator[Path | None]:
    """The tar stream as a file for as long as the block runs; None when there is no tree.

    Raises:
        UserError: it is larger than `limit` allows.
    """
    chunks = begun(tree)
    if chunks is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="regreen-") as folder:  # 0700: nobody else's to read
        spool = Path(folder, "tree.tar")
        with spool.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)
                if (
                    file.tell() > 2 * limit + MiB
                ):  # heads and padding at most double what the files hold
                    message = (
                        f"the tree does not fit into the box's {limit} bytes; give it more disk"
                    )
                    raise UserError(message)
        spool.chmod(0o644)
        yield spool


def can_be_read(path: str, limit: int) -> bool:
    """Whether the path names anything at all."""
    return bool(path) and "\0" not in path and limit >= 0


def pack(files: Mapping[str, bytes]) -> bytes:
    """Files as a tar file, paths relative to /work.

    Raises:
        UserError: a path is absolute or leads out.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in files.items():
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or "\0" in name or not path.parts:
                message = f"not a path inside the tree: {name!r}"
                raise UserError(message)
            entry = tarfile.TarInfo(str(path))
            entry.size, entry.mode, entry.mtime = len(content), 0o644, int(time.time())
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def result(ended: Ended, code: int | None, tap: Tap, since: float, detail: str = "") -> RunResult:
    """How a command ended, with what it printed."""
    return RunResult(
        ended=ended,
        exit_code=code,
        stdout=tap.out.text(),
        stderr=tap.err.text(),
        truncated=tap.truncated,
        seconds=round(time.monotonic() - since, 4),
        detail=detail,
    )


def out_of_memory(limits: Limits) -> str:
    """What is said when the kernel killed for memory."""
    return f"out of memory ({limits.memory // MiB} MiB for its processes and files)"


def _plain(path: str) -> str:
    """An absolute path without `.` and `..`, relative ones taken from /work."""
    parts: list[str] = []
    for part in PurePosixPath(scripts.WORK, path).parts[1:]:
        if part == "..":
            del parts[-1:]
        else:
            parts.append(part)
    return "/" + "/".join(parts)
