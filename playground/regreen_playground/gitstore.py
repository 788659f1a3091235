"""One bare git repository on disk, worked on with git's own plumbing; no work tree, no user configuration."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import threading
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

NO_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_OBJECT_ID = re.compile(r"\^?[0-9a-f]{40}")


_CONFIG = """\
[http]
	receivepack = true
[uploadpack]
	allowFilter = true
	allowAnySHA1InWant = true
[core]
	logAllRefUpdates = false
[gc]
	auto = 0
"""


# Set for pushes by Apps that may not touch workflows, as GitHub refuses them.
NO_WORKFLOWS = "PLAYGROUND_NO_WORKFLOWS"
_PRE_RECEIVE = f"""\
#!/bin/sh
[ -n "${NO_WORKFLOWS}" ] || exit 0
while read -r old new ref; do
  case "$new" in 0000000000000000000000000000000000000000) continue ;; esac
  base=$(git merge-base "$new" HEAD) || base={NO_TREE}
  if [ -n "$(git diff --name-only "$base" "$new" -- .github/workflows)" ]; then
    echo "refusing to allow a GitHub App to create or update workflow without 'workflows' permission"
    exit 1
  fi
done
"""


class GitRefused(Exception):
    """Git would not do it; the text is what it said."""


@dataclass(frozen=True, slots=True)
class Person:
    """Who wrote or committed, and when."""

    name: str
    email: str
    date: datetime


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """A commit as git knows it."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    author: Person
    committer: Person
    message: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a tree."""

    path: str
    mode: str
    kind: str
    sha: str
    size: int | None


def environment() -> dict[str, str]:
    """What git is run with: the path, and nothing of the user's configuration."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
    }


class GitStore:
    """The objects and refs of one repository."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path, default_branch: str) -> GitStore:
        """Make an empty bare repository."""
        path.parent.mkdir(parents=True, exist_ok=True)
        argv = [
            "git",
            "init",
            "--quiet",
            "--bare",
            "--template=",
            f"--initial-branch={default_branch}",
        ]
        subprocess.run([*argv, str(path)], check=True, env=environment(), capture_output=True)
        with (path / "config").open("a") as config:
            config.write(_CONFIG)
        hook = path / "hooks" / "pre-receive"
        hook.parent.mkdir()
        hook.write_text(_PRE_RECEIVE)
        hook.chmod(0o755)
        return cls(path)

    def run(
        self, *args: str, stdin: bytes | None = None, env: Mapping[str, str] | None = None
    ) -> bytes:
        """Run one git command and give its output.

        Raises:
            GitRefused: it failed.
        """
        argv = ["git", f"--git-dir={self.path}", "-c", "core.quotePath=false", *args]
        environ = {**environment(), **(env or {})}
        done = subprocess.run(
            argv, input=stdin or b"", capture_output=True, check=False, env=environ
        )
        if done.returncode != 0:
            raise GitRefused(done.stderr.decode(errors="replace").strip())
        return done.stdout

    def text(self, *args: str) -> str:
        """The output of a git command as stripped text."""
        return self.run(*args).decode(errors="replace").strip()

    def _read(self, revs: Sequence[str], *args: str) -> bytes:
        """The output of a command that reads only what `revs` name; it runs once where each is an object id.

        An object never changes, and a git process costs more than most answers of this server.
        """
        if all(_OBJECT_ID.fullmatch(rev) for rev in revs):
            return _read_objects(self.path, args)
        return self.run(*args)

    def _read_line(self, revs: Sequence[str], *args: str) -> str:
        return self._read(revs, *args).decode(errors="replace").strip()

    def resolve(self, rev: str, kind: str = "commit") -> str | None:
        """The object id that `rev` names, None where there is none."""
        if not rev or rev.startswith("-") or "\0" in rev:
            return None
        try:
            options = ("--verify", "--quiet", "--end-of-options")
            return self._read_line([rev], "rev-parse", *options, f"{rev}^{{{kind}}}")
        except GitRefused:
            return None

    def branch(self, name: str) -> str | None:
        """The head of a branch."""
        return self.refs("refs/heads").get(f"refs/heads/{name}")

    def refs(self, prefix: str = "refs/") -> dict[str, str]:
        """Every ref under a prefix with its object id; each is a file, since nothing packs them here."""
        place = self.path / prefix
        found: dict[str, str] = {}
        for file in [place, *sorted(place.rglob("*"))]:
            with suppress(OSError):  # a folder, or a ref that is gone since
                if file.suffix != ".lock":
                    found[file.relative_to(self.path).as_posix()] = file.read_text().strip()
        return found

    def set_ref(self, ref: str, sha: str) -> None:
        """Create or move a ref."""
        self.run("update-ref", ref, sha)

    def delete_ref(self, ref: str) -> None:
        """Remove a ref."""
        self.run("update-ref", "-d", ref)

    def kind(self, sha: str) -> str | None:
        """commit, tree, blob or tag; None where there is no such object."""
        try:
            return self._read_line([sha], "cat-file", "-t", sha)
        except GitRefused:
            return None

    def commits(
        self, *revs: str, limit: int | None = None, path: str | None = None
    ) -> list[CommitRecord]:
        """Commits reachable from revs (`^rev` excludes), newest first."""
        args = ["log", "-z", f"--format={_FORMAT}", *([f"-n{limit}"] if limit is not None else [])]
        args += ["--end-of-options", *revs, "--", *([path] if path else [])]
        out = self._read(revs, *args)
        return [_record(one) for one in out.decode(errors="replace").split("\0") if one]

    def commit(self, sha: str) -> CommitRecord:
        """One commit."""
        return self.commits(sha, limit=1)[0]

    def merge_base(self, one: str, other: str) -> str | None:
        """The best common ancestor."""
        try:
            return self._read_line([one, other], "merge-base", one, other)
        except GitRefused:
            return None

    def count(self, include: str, exclude: str) -> int:
        """How many commits `include` has that `exclude` has not."""
        revs = (include, f"^{exclude}")
        return int(self._read_line(revs, "rev-list", "--count", *revs))

    def tree(self, rev: str, path: str = "", *, recursive: bool = False) -> list[Entry]:
        """The entries of the tree at a path."""
        args = ["ls-tree", "-z", "--long", *(["-r", "-t"] if recursive else [])]
        out = self._read([rev], *args, f"{rev}:{path}" if path else rev)
        return [_entry(line) for line in out.decode(errors="surrogateescape").split("\0") if line]

    def at(self, rev: str, path: str) -> Entry | None:
        """The entry at a path, None where there is none."""
        args = ("ls-tree", "-z", "--long", "--full-tree", rev, "--", f":(literal){path}")
        out = self._read([rev], *args)
        lines = [line for line in out.decode(errors="surrogateescape").split("\0") if line]
        return _entry(lines[0]) if lines else None

    def blob(self, sha: str) -> bytes:
        """A blob's bytes."""
        return self.run("cat-file", "blob", sha)

    def write_blob(self, data: bytes) -> str:
        """Store bytes, get their id."""
        content = b"blob %d\0%b" % (len(data), data)
        sha = hashlib.sha1(content, usedforsecurity=False).hexdigest()
        place = self.path / "objects" / sha[:2] / sha[2:]
        if not place.exists():
            place.parent.mkdir(exist_ok=True)
            unfinished = place.with_name(f"tmp_{sha}.{threading.get_ident()}")
            unfinished.write_bytes(zlib.compress(content, 1))
            unfinished.rename(place)
        return sha

    def write_tree(self, base: str | None, changes: Sequence[tuple[str, str, str | None]]) -> str:
        """A tree like `base` with changes laid over it: (mode, path, object id or None to remove)."""
        index = self.path / f"index.{os.getpid()}.{id(changes)}"
        env = {"GIT_INDEX_FILE": str(index)}
        lines = "".join(
            f"{mode} {sha}\t{path}\0" if sha else f"0 {'0' * 40}\t{path}\0"
            for mode, path, sha in changes
        )
        try:
            self.run("read-tree", *([base] if base else ["--empty"]), env=env)
            self.run("update-index", "-z", "--index-info", stdin=lines.encode(), env=env)
            return self.run("write-tree", env=env).decode().strip()
        finally:
            index.unlink(missing_ok=True)

    def write_files(self, base: str | None, files: Mapping[str, bytes | str | None]) -> str:
        """A tree like `base` with these files written, or removed where None."""
        changes: list[tuple[str, str, str | None]] = []
        for path, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            changes.append(("100644", path, None if data is None else self.write_blob(data)))
        return self.write_tree(base, changes)

    def write_commit(
        self,
        tree: str,
        parents: Sequence[str],
        message: str,
        author: Person,
        committer: Person | None = None,
    ) -> str:
        """Store a commit; refs stay as they are."""
        by = committer or author
        env = {
            "GIT_AUTHOR_NAME": author.name,
            "GIT_AUTHOR_EMAIL": author.email,
            "GIT_AUTHOR_DATE": author.date.isoformat(),
            "GIT_COMMITTER_NAME": by.name,
            "GIT_COMMITTER_EMAIL": by.email,
            "GIT_COMMITTER_DATE": by.date.isoformat(),
        }
        flags = [flag for parent in parents for flag in ("-p", parent)]
        out = self.run("commit-tree", *flags, "-F", "-", tree, stdin=message.encode(), env=env)
        return out.decode().strip()

    def merge(self, one: str, other: str) -> str | None:
        """The tree of a clean merge; None on conflict."""
        try:
            found = self._read_line([one, other], "merge-tree", "--write-tree", one, other)
            return found.splitlines()[0]
        except GitRefused:
            return None

    def take(self, other: GitStore, ref: str, into: str) -> None:
        """Copy a ref and its objects from another repository."""
        self.run("fetch", "--quiet", "--no-tags", str(other.path), f"+{ref}:{into}")


@lru_cache(maxsize=4096)
def _read_objects(store: Path, args: tuple[str, ...]) -> bytes:
    return GitStore(store).run(*args)


_FORMAT = "%H%x1f%T%x1f%P%x1f%an%x1f%ae%x1f%at%x1f%cn%x1f%ce%x1f%ct%x1f%B"


def _record(text: str) -> CommitRecord:
    sha, tree, parents, an, ae, at, cn, ce, ct, message = text.split("\x1f", 9)
    author = Person(an, ae, datetime.fromtimestamp(int(at), UTC))
    committer = Person(cn, ce, datetime.fromtimestamp(int(ct), UTC))
    return CommitRecord(sha, tree, tuple(parents.split()), author, committer, message.rstrip("\n"))


def _entry(line: str) -> Entry:
    meta, _, path = line.partition("\t")
    mode, kind, sha, size = meta.split()
    return Entry(path, mode, kind, sha, None if size == "-" else int(size))
