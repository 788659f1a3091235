"""How git is called: with nobody's configuration, no prompt, and a token in the environment alone."""

from __future__ import annotations

import base64
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from regreen.errors import OutsideError
from regreen.models import Commit

# Nothing of the operator's or the system's git configuration may change what a command means ...
NO_CONFIG = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
# ... but where we ask the user's own checkout, `safe.directory` is that user's to set.
_CLEAN = {
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


def init_bare(git_dir: Path) -> None:
    """Make a bare repository of our own, unless it is there."""
    if (git_dir / "HEAD").exists():
        return
    git_dir.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Made beside and moved into place, so that two processes never see a half-made one.
    with tempfile.TemporaryDirectory(dir=git_dir.parent, prefix=".new-") as folder:
        fresh = Path(folder) / "bare"
        run_git(["init", "--quiet", "--bare", "--template=", str(fresh)], env=NO_CONFIG)
        (fresh / "info").mkdir(exist_ok=True)
        # The whole tree reaches the box: what .gitattributes leaves out or rewrites on export is needed by tests.
        (fresh / "info" / "attributes").write_text(
            "* -export-ignore -export-subst -text -filter -ident\n"
        )
        try:
            fresh.rename(git_dir)
        except OSError:
            if not (git_dir / "HEAD").exists():
                raise


def copy_shallow_marks(source: Path, view: Path) -> None:
    """Have a view end where the repository that it looks at ends."""
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
) -> subprocess.CompletedProcess[bytes]:
    """Run one git command to its end.

    Raises:
        OutsideError: there is no git, or it failed and `check` asks for success.
    """
    try:
        done = subprocess.run(
            ["git", *args],
            input=stdin if stdin is not None else b"",
            capture_output=True,
            env=environment(env or {}),
            check=False,
        )
    except FileNotFoundError as error:
        message = "git is not installed; install it with your package manager"
        raise OutsideError(message) from error
    if check and done.returncode != 0:
        verb = next((a for a in args if not a.startswith("-") and "/" not in a), "git")
        message = f"git {verb} failed: {first_line(done.stderr)}"
        raise OutsideError(message)
    return done


def read_blobs(git_dir: Path, ids: Sequence[str]) -> Iterator[bytes | None]:
    """What these object ids hold, one after another, from one process; None for what is no blob here.

    Raises:
        OutsideError: git failed before all were answered.
    """
    if not ids:
        return
    # asked from a file: into a pipe git would wait for us to read while we wait for it to take the rest
    with tempfile.TemporaryFile() as asked:
        asked.write("".join(f"{one}\n" for one in ids).encode())
        asked.seek(0)
        with subprocess.Popen(
            ["git", "--git-dir", str(git_dir), "cat-file", "--batch", "--buffer"],
            stdin=asked,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(NO_CONFIG),
        ) as process:
            assert process.stdout is not None  # noqa: S101 - PIPE was asked for
            for one in ids:
                header = process.stdout.readline().split()
                if not header:
                    message = f"git cat-file ended before it answered for {one[:12]}"
                    raise OutsideError(message)
                if len(header) < 3:
                    yield None
                    continue
                data = process.stdout.read(int(header[2]))
                process.stdout.read(1)
                yield data if header[1] == b"blob" else None


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """All that git gets of our own environment."""
    kept = {
        k: v
        for k, v in os.environ.items()
        if k in {"PATH", "HOME", "TMPDIR", "SSL_CERT_FILE", "GIT_SSL_CAINFO"}
    }
    return kept | _CLEAN | dict(extra)


def auth(url: str, token: str | None) -> dict[str, str]:
    """Git's configuration by environment, so that a token stands in no argv and no file."""
    settings = {
        "protocol.allow": "never",
        f"protocol.{urlsplit(url).scheme or 'file'}.allow": "always",
    }
    if token:
        basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        settings["http.extraHeader"] = f"Authorization: Basic {basic}"
    settings["http.followRedirects"] = "false"
    pairs = {"GIT_CONFIG_COUNT": str(len(settings))}
    for i, (key, value) in enumerate(settings.items()):
        pairs |= {f"GIT_CONFIG_KEY_{i}": key, f"GIT_CONFIG_VALUE_{i}": value}
    return pairs


def demand(done: subprocess.CompletedProcess[bytes], doing: str) -> None:
    """Raise OutsideError where git did not do it."""
    if done.returncode != 0:
        message = f"{doing}: {first_line(done.stderr)}"
        raise OutsideError(message)


def commits_of(text: str) -> list[Commit]:
    """The commits of a log in our own format."""
    fields = text.split("\x00")
    return [
        Commit(
            sha=fields[i].strip(),
            parents=tuple(fields[i + 1].split()),
            tree=fields[i + 2],
            author=fields[i + 3],
            email=fields[i + 4],
            date=datetime.fromtimestamp(int(fields[i + 5]), UTC),
            subject=fields[i + 6],
        )
        for i in range(0, len(fields) - 1, 7)
    ]


def no_repository(path: Path, reason: str) -> str:
    """What is said of a path that is no repository."""
    if not path.is_dir():
        what = "is not a folder" if path.exists() else "does not exist"
        return f"{path} {what}; name a repository with --repo"
    why = "" if "not a git repository" in reason else f" that can be used ({reason})"
    return f"{path.absolute()} is not in a git repository{why}; name one with --repo"


def unknown(rev: str) -> str:
    """What is said of a revision that is none."""
    return f"no such revision: {rev!r}; check the spelling, or fetch it first"


def bare_url(url: str) -> str:
    """An address without who asks and with what."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"


def text_of(data: bytes) -> str:
    """Bytes of git as text, and back again without loss."""
    return data.decode("utf-8", "surrogateescape")


def first_line(data: bytes) -> str:
    """The line of its complaints that says most."""
    lines = [x for x in data.decode("utf-8", "replace").split("\n") if x.strip()]
    fatal = [x for x in lines if x.startswith(("fatal:", "error:"))]
    return (
        (fatal or lines or ["no reason given"])[0].removeprefix("fatal: ").removeprefix("error: ")
    )
