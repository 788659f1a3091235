"""Git as plumbing: every command runs in a bare repository of our own, never in a work tree.

`GitRepository.open` lays a bare view over somebody's repository: it borrows that repository's objects
(`objects/info/alternates`) and writes new ones (reverts, applied patches) into its own. So no hook, filter,
fsmonitor or attribute of the repository is ever honoured, and nothing is written into it.
`GitRepository.mirror` keeps such a bare repository in step with a remote.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from regreen.adapters import elsewhere
from regreen.adapters.git_process import (
    NO_CONFIG,
    auth,
    bare_url,
    commits_of,
    copy_shallow_marks,
    demand,
    environment,
    first_line,
    init_bare,
    no_repository,
    read_blobs,
    run_git,
    text_of,
    unknown,
)
from regreen.adapters.tree_stream import Fill, laid_over
from regreen.errors import NotARepository, OutsideError, UserError
from regreen.models import Commit, TreeEntry

_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_FORMAT = "%H%x00%P%x00%T%x00%an%x00%ae%x00%ct%x00%s%x00"
_NO_COMMITS = "this repository has no commits yet (HEAD names none); commit something first"
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


class GitRepository:
    """One repository's objects, as `ports.Git` asks for them.

    Args:
        git_dir: a bare repository that belongs to us.
        source: the repository whose revisions `resolve` understands (HEAD, main, HEAD~3); None: `git_dir` itself.
    """

    def __init__(self, git_dir: Path, source: Path | None = None) -> None:
        self.git_dir = git_dir
        self.source = source

    @classmethod
    def open(cls, path: Path, home: Path | None = None) -> GitRepository:
        """Lay a bare view over the repository that holds `path`.

        Args:
            path: a folder in a work tree, or a bare repository.
            home: where views are kept; default: the user's temporary folder.

        Raises:
            NotARepository: there is none, or its owner is somebody else.
        """
        found = run_git(
            ["-C", str(path), "rev-parse", "--absolute-git-dir", "--git-common-dir"], check=False
        )
        if found.returncode != 0:
            raise NotARepository(no_repository(path, first_line(found.stderr)))
        git_dir, common = text_of(found.stdout).split("\n")[:2]
        objects = (
            Path(common) if Path(common).is_absolute() else Path(path) / common
        ).resolve() / "objects"
        root = home or Path(tempfile.gettempdir()) / f"regreen-{os.getuid()}"
        view = root / "views" / hashlib.sha256(str(objects).encode()).hexdigest()[:24]
        init_bare(view)
        (view / "objects" / "info" / "alternates").write_text(f"{objects}\n")
        copy_shallow_marks(Path(common) if Path(common).is_absolute() else objects.parent, view)
        return cls(view, Path(git_dir))

    @classmethod
    def mirror(cls, url: str, git_dir: Path, token: str | None = None) -> GitRepository:
        """A bare copy of the repository at `url`, brought up to date: branches, tags and pull request heads.

        Args:
            url: https (or http on loopback) address without credentials.
            git_dir: where the copy is kept.
            token: an installation token; it reaches git by the environment only.

        Raises:
            OutsideError: the remote cannot be reached or refuses.
        """
        init_bare(git_dir)
        repository = cls(git_dir)
        repository.fetch(
            url, ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"], token, prune=True
        )
        return repository

    def fetch(
        self, url: str, refspecs: Sequence[str], token: str | None = None, *, prune: bool = False
    ) -> None:
        """Fetch `refspecs` from `url`.

        Raises:
            OutsideError: the remote cannot be reached or refuses.
        """
        options = ["--no-tags", "--no-write-fetch-head", "--force", *(["--prune"] if prune else [])]
        done = self._run(
            ["fetch", "--quiet", *options, "--", url, *refspecs], env=auth(url, token), check=False
        )
        demand(done, f"cannot fetch from {bare_url(url)}")

    def push(
        self,
        url: str,
        sha: str,
        branch: str,
        token: str | None = None,
        *,
        expect: str | None = None,
    ) -> None:
        """Put `sha` on `branch` at `url`; only if the branch stands at `expect` ("" : does not exist), where given.

        Raises:
            OutsideError: the remote cannot be reached or refuses.
        """
        lease = [] if expect is None else [f"--force-with-lease=refs/heads/{branch}:{expect}"]
        refspec = f"{'+' if expect is None else ''}{sha}:refs/heads/{branch}"
        done = self._run(
            ["push", "--quiet", *lease, "--", url, refspec], env=auth(url, token), check=False
        )
        demand(done, f"cannot push to {bare_url(url)}")

    def resolve(self, rev: str) -> str:
        """The full commit id that `rev` names; see `ports.Git`."""
        if not rev or rev.startswith("-") or "\x00" in rev:
            raise UserError(unknown(rev))
        where = ["--git-dir", str(self.source or self.git_dir)]
        done = run_git(
            [*where, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}"],
            check=False,
        )
        if done.returncode != 0 and self.source is not None:
            # A commit that we made (a snapshot, a revert) stands only in the view.
            done = self._run(
                ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}"],
                check=False,
            )
        # rev-parse echoes --end-of-options before git 2.44 did away with it
        out = text_of(done.stdout).replace("--end-of-options", "").strip()
        if done.returncode != 0 or not _SHA.fullmatch(out):
            raise UserError(unknown(rev) if rev != "HEAD" else _NO_COMMITS)
        return out

    def snapshot(self, work_tree: Path, parent: str) -> str:
        """Commit what stands in `work_tree` (untracked files included, ignored ones not) on top of `parent`.

        The user's own index and branches stay as they are. Only for the user's own checkout on the command
        line: git reads that checkout's configuration here.
        """
        with self._index() as env:
            done = run_git(
                [
                    "-C",
                    str(work_tree),
                    "--literal-pathspecs",
                    "-c",
                    "core.hooksPath=/dev/null",
                    "add",
                    "-A",
                ],
                env=env
                | {
                    "GIT_OBJECT_DIRECTORY": str(self.git_dir / "objects"),
                    "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(self._source_objects()),
                },
                check=False,
            )
            if done.returncode != 0:
                message = f"cannot read the working tree at {work_tree}: {first_line(done.stderr)}"
                raise UserError(message)
            tree = text_of(self._run(["write-tree"], env=env).stdout).strip()
        if tree == self.tree_id(parent):
            return parent
        return self._commit_tree(tree, "The working tree as it stands", (parent,))

    def commit(self, sha: str) -> Commit:
        """One commit; see `ports.Git`."""
        done = self._run(["log", "-1", f"--format={_FORMAT}", sha])
        return commits_of(text_of(done.stdout))[0]

    def commits(self, good: str | None, bad: str, *, first_parent: bool = False) -> list[Commit]:
        """`good..bad`, parents before children; see `ports.Git`."""
        options = ["--topo-order", "--reverse", *(["--first-parent"] if first_parent else [])]
        span = [bad] if good is None else [bad, f"^{good}"]
        done = self._run(["log", f"--format={_FORMAT}", *options, *span])
        return commits_of(text_of(done.stdout))

    def merge_base(self, one: str, other: str) -> str | None:
        """The best common ancestor; see `ports.Git`."""
        done = self._run(["merge-base", one, other], check=False)
        return text_of(done.stdout).strip().split("\n")[0] or None

    def is_ancestor(self, one: str, other: str) -> bool:
        """Whether `one` is `other` or an ancestor of it."""
        return self._run(["merge-base", "--is-ancestor", one, other], check=False).returncode == 0

    def is_shallow(self) -> bool:
        """Whether history is cut off."""
        return (self.git_dir / "shallow").exists()

    def tree(self, rev: str, *, recursive: bool = True) -> list[TreeEntry]:
        """Every file of a tree; see `ports.Git`."""
        done = self._run(["ls-tree", "-z", "--long", *(["-r"] if recursive else []), rev])
        entries = []
        for row in text_of(done.stdout).split("\x00"):
            if row:
                meta, path = row.split("\t", 1)
                mode, _kind, sha, size = meta.split()
                entries.append(TreeEntry(path, mode, sha, int(size) if size.isdigit() else None))
        return entries

    def tree_id(self, rev: str, path: str = "") -> str | None:
        """The id of the tree, or of the entry at `path`; see `ports.Git`."""
        what = f"{rev}^{{tree}}" if not path else f"{rev}:{path}"
        done = self._run(["rev-parse", "--verify", "--quiet", what], check=False)
        return text_of(done.stdout).strip() or None

    def show(self, rev: str, path: str, limit: int = 8 * 1024 * 1024) -> bytes | None:
        """A file's bytes at a revision; see `ports.Git`."""
        asked = f"{rev}:{path}".encode("utf-8", "surrogateescape")
        if b"\n" in asked:
            return self._show_by_tree(rev, path, limit)
        head = self._run(["cat-file", "--batch-check"], stdin=asked + b"\n").stdout.split()
        if len(head) < 3 or head[-2] != b"blob" or int(head[-1]) > limit:
            return None
        return self._run(["cat-file", "blob", text_of(head[-3])]).stdout

    def blobs(self, ids: Sequence[str]) -> Iterator[bytes | None]:
        """The bytes of these blobs in the order asked; see `ports.Git`."""
        return read_blobs(self.git_dir, ids)

    def diff(self, base: str, head: str, *, paths: Sequence[str] = (), context: int = 3) -> str:
        """The unified diff between two trees; see `ports.Git`."""
        options = [
            "--full-index",
            "-M",
            "-l2000",
            f"-U{context}",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
        ]
        limit = ["--", *(f":(literal){p}" for p in paths)] if paths else []
        return text_of(self._run(["diff", *options, base, head, *limit]).stdout)

    def changed_paths(self, sha: str) -> tuple[str, ...]:
        """Paths that a commit changes against its first parent; see `ports.Git`."""
        done = self._run(
            [
                "diff-tree",
                "-z",
                "-r",
                "--root",
                "-m",
                "--first-parent",
                "--name-only",
                "--no-commit-id",
                sha,
            ]
        )
        return tuple(dict.fromkeys(p for p in text_of(done.stdout).split("\x00") if p))

    def archive(self, rev: str, overlay: Mapping[str, bytes] | None = None) -> Iterator[bytes]:
        """The tree as a tar stream; see `ports.Git`."""
        fill, inner = self._from_elsewhere(rev)
        with subprocess.Popen(
            ["git", "--git-dir", str(self.git_dir), "archive", "--format=tar", rev],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(NO_CONFIG),
        ) as process:
            assert process.stdout is not None  # noqa: S101 - PIPE was asked for
            assert process.stderr is not None  # noqa: S101
            if overlay or fill or inner:
                small = elsewhere.POINTER_SIZE
                yield from laid_over(
                    process.stdout, overlay or {}, fill=fill, small=small, inner=inner
                )
            else:
                while chunk := process.stdout.read(1 << 18):
                    yield chunk
            complaint = process.stderr.read()
        if process.returncode != 0:
            message = f"git archive {rev[:12]} failed: {first_line(complaint)}"
            raise OutsideError(message)

    def touching(self, good: str | None, bad: str, paths: Sequence[str]) -> frozenset[str]:
        """The commits of a range that change one of these files; see `ports.Git`."""
        span = [bad] if good is None else [bad, f"^{good}"]
        limit = ["--", *(f":(literal){path}" for path in paths)]
        return frozenset(
            text_of(self._run(["rev-list", "--full-history", *span, *limit]).stdout).split()
        )

    def cut(self) -> frozenset[str]:
        """Commits whose parents a shallow clone has left out; see `ports.Git`."""
        marks = self.git_dir / "shallow"
        return frozenset(marks.read_text().split()) if marks.exists() else frozenset()

    def absent(self, good: str | None, bad: str) -> int:
        """How many objects of a range a partial clone has left out; see `ports.Git`."""
        if self.source is None or not any((self._source_objects() / "pack").glob("*.promisor")):
            return 0
        span = [bad] if good is None else [bad, f"^{good}"]
        ways = [span] if good is None else [span, [f"{good}^{{tree}}"]]
        found: set[bytes] = set()
        for revs in ways:
            listed = self._run(["rev-list", "--objects", "--missing=print", *revs], check=False)
            found |= {row for row in listed.stdout.split(b"\n") if row.startswith(b"?")}
            if listed.returncode != 0:
                found.add(listed.stderr)
        return len(found)

    def lacking(self, rev: str) -> tuple[str, ...]:
        """What a commit names and this clone does not have; see `ports.Git`."""
        modules = [one for one in self._submodules(rev) if self._inside(one) is None]
        pointers = [
            path
            for path, oid in self._pointers(rev)
            if elsewhere.large_file(self._common, oid) is None
        ]
        return elsewhere.told(modules, pointers, is_clone=self.source is not None)

    @property
    def _common(self) -> Path | None:
        """The git directory that holds the user's objects, submodules and large files."""
        return self._source_objects().parent if self.source is not None else None

    def _from_elsewhere(self, rev: str) -> tuple[Fill | None, list[tuple[str, Iterator[bytes]]]]:
        """What `archive` has to put into a tree that git itself leaves out."""
        if self.source is None:
            return None, []
        asked = b"".join(f"{rev}:{name}\n".encode() for name in (".gitmodules", ".gitattributes"))
        heads = self._run(["cat-file", "--batch-check"], stdin=asked).stdout.split(b"\n")
        has_modules, has_attributes = (b" blob " in head for head in heads[:2])
        fill = elsewhere.pointers_filled(self._common)
        inner = [
            (one.path, repository.archive(one.sha))
            for one in (self._submodules(rev) if has_modules else ())
            if (repository := self._inside(one)) is not None
        ]
        return fill if has_attributes and self._has_large_files(rev) else None, inner

    def _submodules(self, rev: str) -> tuple[elsewhere.Submodule, ...]:
        links = [(entry.path, entry.sha) for entry in self.tree(rev) if entry.mode == "160000"]
        if not links:
            return ()
        said = self.show(rev, ".gitmodules") or b""
        listed = self._run(["config", "--file", "-", "--list", "-z"], stdin=said, check=False)
        rows = [row.partition("\n") for row in text_of(listed.stdout).split("\x00") if row]
        settings = {key: value for key, _, value in rows}
        return elsewhere.submodules(links, settings, self._common)

    def _inside(self, module: elsewhere.Submodule) -> GitRepository | None:
        """A submodule's repository, where this clone has it and its commit."""
        if module.git_dir is None:
            return None
        repository = GitRepository.open(module.git_dir, self.git_dir.parent.parent)
        there = repository._run(["cat-file", "-e", f"{module.sha}^{{commit}}"], check=False)
        return repository if there.returncode == 0 else None

    def _has_large_files(self, rev: str) -> bool:
        return b"filter=lfs" in (self.show(rev, ".gitattributes") or b"")

    def _pointers(self, rev: str) -> list[tuple[str, str]]:
        """Path and object id of each Git LFS file."""
        if not self._has_large_files(rev):
            return []
        found = self._run(
            ["grep", "-z", "-l", "-e", "^version https://git-lfs.github.com/spec/v1", rev],
            check=False,
        )
        paths = [row.partition(":")[2] for row in text_of(found.stdout).split("\x00") if row]
        oids = {path: elsewhere.oid_of(self.show(rev, path, 4096) or b"") for path in paths}
        return [(path, oid) for path, oid in oids.items() if oid]

    def apply(
        self,
        onto: str,
        patch: str,
        message: str,
        *,
        three_way: bool = False,
        parents: Sequence[str] | None = None,
    ) -> str | None:
        """Apply a patch without a work tree; see `ports.Git`."""
        if not patch.strip():
            return None
        with self._index() as env:
            self._run(["read-tree", onto], env=env)
            how = ["--cached", "--whitespace=nowarn", *(["--3way"] if three_way else [])]
            data = patch.encode("utf-8", "surrogateescape")
            if self._run(["apply", *how, "-"], stdin=data, env=env, check=False).returncode != 0:
                return None
            if self._run(["ls-files", "--unmerged"], env=env).stdout:
                return None
            tree = text_of(self._run(["write-tree"], env=env).stdout).strip()
        self._refuse_forbidden(onto, tree)
        return self._commit_tree(
            tree, message, parents if parents is not None else (self.resolve(onto),)
        )

    def revert(
        self, sha: str, onto: str, *, paths: Sequence[str] = (), mainline: int = 1
    ) -> str | None:
        """A commit on `onto` without what `sha` did; see `ports.Git`."""
        commit = self.commit(sha)
        before = commit.parents[mainline - 1] if commit.parents else _EMPTY_TREE
        limit = ["--", *(f":(literal){p}" for p in paths)] if paths else []
        options = [
            "--full-index",
            "--binary",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
        ]
        patch = text_of(self._run(["diff", *options, sha, before, *limit]).stdout)
        reason = f'Revert "{commit.subject}"\n\nThis reverts commit {sha}.'
        return self.apply(onto, patch, reason, three_way=True)

    def blame(self, rev: str, path: str, start: int, end: int) -> list[str]:
        """The commit that last touched each line; see `ports.Git`."""
        done = self._run(["blame", "--porcelain", f"-L{start},{end}", rev, "--", path], check=False)
        header = re.compile(r"([0-9a-f]{40}) \d+ \d+")
        return [m.group(1) for row in text_of(done.stdout).split("\n") if (m := header.match(row))]

    def _run(
        self,
        args: Sequence[str],
        *,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> subprocess.CompletedProcess[bytes]:
        return run_git(
            ["--git-dir", str(self.git_dir), *args],
            stdin=stdin,
            env=NO_CONFIG | dict(env or {}),
            check=check,
        )

    @contextmanager
    def _index(self) -> Iterator[dict[str, str]]:
        with tempfile.TemporaryDirectory(prefix="regreen-index-") as folder:
            yield {"GIT_INDEX_FILE": str(Path(folder) / "index")}

    def _commit_tree(self, tree: str, message: str, parents: Iterable[str]) -> str:
        flags = [flag for parent in parents for flag in ("-p", parent)]
        # A fixed date makes the same patch on the same commit the same commit, whenever it is made.
        when = {
            "GIT_AUTHOR_DATE": "2000-01-01T00:00:00Z",
            "GIT_COMMITTER_DATE": "2000-01-01T00:00:00Z",
        }
        done = self._run(["commit-tree", tree, *flags], stdin=message.encode(), env=when)
        return text_of(done.stdout).strip()

    def _refuse_forbidden(self, onto: str, tree: str) -> None:
        """A patch may not bring in symlinks, submodules or anything git itself would act on."""
        done = self._run(
            [
                "diff-tree",
                "-z",
                "-r",
                "--raw",
                "--no-renames",
                "--no-abbrev",
                f"{onto}^{{tree}}",
                tree,
            ]
        )
        fields = text_of(done.stdout).split("\x00")
        for meta, path in zip(fields[::2], fields[1::2], strict=False):
            new_mode = meta.split()[1]
            parts = [p.lower() for p in PurePosixPath(path).parts]
            if new_mode in {"120000", "160000"}:
                message = f"a patch may not add or change a symlink or submodule: {path}"
                raise UserError(message)
            if ".git" in parts or ".." in parts or parts[-1:] == [".gitmodules"]:
                message = f"a patch may not touch {path}"
                raise UserError(message)

    def _show_by_tree(self, rev: str, path: str, limit: int) -> bytes | None:
        for entry in self.tree(rev):
            if entry.path == path and entry.mode.startswith("100") and (entry.size or 0) <= limit:
                return self._run(["cat-file", "blob", entry.sha]).stdout
        return None

    def _source_objects(self) -> Path:
        return Path((self.git_dir / "objects" / "info" / "alternates").read_text().strip())
