"""How git is called: without user or system configuration, without prompts, a token only in the environment."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from urllib.parse import urlsplit

from regreen.domain.errors import Cancelled, OutsideError
from regreen.domain.models import Commit

# Neither the operator's nor the system's git configuration may change what a command means ...
NO_CONFIG = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
# ... but for the user's own checkout, `safe.directory` is for that user to set.
_CLEAN_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "LC_ALL": "C.UTF-8",
    "GIT_AUTHOR_NAME": "Regreen",
    "GIT_AUTHOR_EMAIL": "regreen@users.noreply.github.com",
    "GIT_COMMITTER_NAME": "Regreen",
    "GIT_COMMITTER_EMAIL": "regreen@users.noreply.github.com",
}
_LOWEST_BYTES_PER_SECOND = 1000
_CANCEL_POLL_S = 0.2
_MAX_DATE = 253_402_300_799
"""The last second of the year 9999, where `datetime` ends."""


@dataclass(frozen=True, slots=True)
class GitTimeouts:
    """How long git may take, in seconds.

    Attributes:
        stalled: a transfer of under 1,000 bytes a second ends after this time.
        transfer: one fetch or push.
        local: every other command.
    """

    stalled: int = 60
    transfer: float = 1800.0
    local: float = 300.0


DEFAULT_TIMEOUTS = GitTimeouts()


def init_bare(git_dir: Path) -> None:
    """Create a bare repository of our own, unless it exists."""
    if (git_dir / "HEAD").exists():
        return
    git_dir.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Created beside and moved into place, so that other processes never see a half-made one.
    with tempfile.TemporaryDirectory(dir=git_dir.parent, prefix=".new-") as folder:
        fresh = Path(folder) / "bare"
        run_git(["init", "--quiet", "--bare", "--template=", str(fresh)], env=NO_CONFIG)
        (fresh / "info").mkdir(exist_ok=True)
        # The whole tree reaches the box: tests need what .gitattributes leaves out or rewrites on export.
        (fresh / "info" / "attributes").write_text(
            "* -export-ignore -export-subst -text -filter -ident\n"
        )
        try:
            fresh.rename(git_dir)
        except OSError:
            if not (git_dir / "HEAD").exists():
                raise


def copy_shallow_marks(source: Path, view: Path) -> None:
    """Make a view shallow where its source repository is shallow."""
    marks = source / "shallow"
    if marks.exists():
        (view / "shallow").write_bytes(marks.read_bytes())
    else:
        (view / "shallow").unlink(missing_ok=True)


def run_git(
    args: Sequence[str],
    *,
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
    check: bool = True,
    timeout: float = DEFAULT_TIMEOUTS.local,
    cancel: Event | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run one git command. After `timeout` seconds, or when `cancel` is set, git and its children are killed.

    Raises:
        OutsideError: git is missing, took too long, or failed and `check` requires success.
        Cancelled: `cancel` was set.
    """
    try:
        process = subprocess.Popen(
            ["git", *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=build_environment(env or {}),
            start_new_session=True,  # one process group, so that git-remote-https and others end as well
        )
    except FileNotFoundError as error:
        message = "git is not installed; install it with your package manager"
        raise OutsideError(message) from error
    with process:
        try:
            out, err = _wait_for_output(process, stdin or b"", timeout, cancel)
        except subprocess.TimeoutExpired as error:
            message = (
                f"git {_find_subcommand(args)} was stopped: it took longer than {timeout:.0f} s"
            )
            raise OutsideError(message) from error
        finally:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
    if check and process.returncode != 0:
        message = f"git {_find_subcommand(args)} failed: {git_error_reason(err)}"
        raise OutsideError(message)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _wait_for_output(
    process: subprocess.Popen[bytes], stdin: bytes, timeout: float, cancel: Event | None
) -> tuple[bytes, bytes]:
    deadline = time.monotonic() + timeout
    data: bytes | None = stdin
    while True:
        left = max(deadline - time.monotonic(), 0.0)
        try:
            return process.communicate(data, left if cancel is None else min(left, _CANCEL_POLL_S))
        except subprocess.TimeoutExpired:
            if cancel is not None and cancel.is_set():
                raise Cancelled("cancelled") from None
            if time.monotonic() >= deadline:
                raise
        data = None  # `communicate` keeps what it has not sent yet


def _find_subcommand(args: Sequence[str]) -> str:
    return next((a for a in args if not a.startswith("-") and "/" not in a), "git")


def read_blobs(git_dir: Path, ids: Sequence[str]) -> Iterator[bytes | None]:
    """The content of these object ids in order, from one process; None for ids of no blob here.

    Raises:
        OutsideError: git failed before it answered all.
    """
    if not ids:
        return
    # requests come from a file: with a pipe, git would wait for us to read while we wait for git to read
    with tempfile.TemporaryFile() as requests:
        requests.write("".join(f"{blob_id}\n" for blob_id in ids).encode())
        requests.seek(0)
        with subprocess.Popen(
            ["git", "--git-dir", str(git_dir), "cat-file", "--batch", "--buffer"],
            stdin=requests,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=build_environment(NO_CONFIG),
        ) as process:
            assert process.stdout is not None  # noqa: S101 - PIPE was asked for
            for blob_id in ids:
                header = process.stdout.readline().split()
                if not header:
                    message = f"git cat-file ended before it answered for {blob_id[:12]}"
                    raise OutsideError(message)
                if len(header) < 3:
                    yield None
                    continue
                data = process.stdout.read(int(header[2]))
                process.stdout.read(1)
                yield data if header[1] == b"blob" else None


def build_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of git processes, with little of our own."""
    inherited = {
        k: v
        for k, v in os.environ.items()
        if k in {"PATH", "HOME", "TMPDIR", "SSL_CERT_FILE", "GIT_SSL_CAINFO"}
    }
    return inherited | _CLEAN_ENVIRONMENT | dict(extra)


def auth_environment(
    url: str, token: str | None, stalled: int = DEFAULT_TIMEOUTS.stalled
) -> dict[str, str]:
    """Git's configuration by environment, so that a token is in no argv and no file."""
    settings = {
        "http.lowSpeedLimit": str(_LOWEST_BYTES_PER_SECOND),
        "http.lowSpeedTime": str(stalled),
        "protocol.allow": "never",
        f"protocol.{urlsplit(url).scheme or 'file'}.allow": "always",
    }
    if token:
        basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        parts = urlsplit(url)  # limited to its host, whatever else git may come to ask
        settings[f"http.{parts.scheme}://{parts.netloc}/.extraHeader"] = (
            f"Authorization: Basic {basic}"
        )
    settings["http.followRedirects"] = "false"
    pairs = {"GIT_CONFIG_COUNT": str(len(settings))}
    for i, (key, value) in enumerate(settings.items()):
        pairs |= {f"GIT_CONFIG_KEY_{i}": key, f"GIT_CONFIG_VALUE_{i}": value}
    return pairs


def require_success(done: subprocess.CompletedProcess[bytes], action: str) -> None:
    """Raise OutsideError if git failed."""
    if done.returncode != 0:
        message = f"{action}: {git_error_reason(done.stderr)}"
        raise OutsideError(message)


def parse_commits(text: str) -> list[Commit]:
    """The commits of a log in our own format."""
    fields = text.split("\x00")
    return [
        Commit(
            sha=fields[i].strip(),
            parents=tuple(fields[i + 1].split()),
            tree=fields[i + 2],
            author=fields[i + 3],
            email=fields[i + 4],
            # anybody can write any date into a commit, or none
            date=datetime.fromtimestamp(min(max(int(fields[i + 5] or 0), 0), _MAX_DATE), UTC),
            subject=fields[i + 6],
        )
        for i in range(0, len(fields) - 1, 7)
    ]


def describe_missing_repository(path: Path, reason: str) -> str:
    """The message for a path without a repository."""
    if not path.is_dir():
        problem = "is not a folder" if path.exists() else "does not exist"
        return f"{path} {problem}; name a repository with --repo"
    why = "" if "not a git repository" in reason else f" that can be used ({reason})"
    return f"{path.absolute()} is not in a git repository{why}; name one with --repo"


def unknown_revision_message(rev: str) -> str:
    """The message for an unknown revision."""
    return f"no such revision: {rev!r}; it is the name of no branch or tag, and no commit that was fetched; `git fetch origin pull/NUMBER/head` fetches the commits of a fork's pull request"


def remove_url_credentials(url: str) -> str:
    """An address without credentials."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"


def decode_text(data: bytes) -> str:
    """Bytes of git as text that converts back without loss."""
    return data.decode("utf-8", "surrogateescape")


def git_error_reason(data: bytes) -> str:
    """The most informative line of git's error output."""
    lines = [x for x in data.decode("utf-8", "replace").split("\n") if x.strip()]
    fatal = [x for x in lines if x.startswith(("fatal:", "error:"))]
    return (
        (fatal or lines or ["no reason given"])[0].removeprefix("fatal: ").removeprefix("error: ")
    )
