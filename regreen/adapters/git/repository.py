"""Git plumbing: every command runs in a bare repository of our own, never in a work tree.

`GitRepository.open` creates a bare view of a user's repository: it borrows that repository's objects
(`objects/info/alternates`) and writes new ones (reverts, applied patches) into its own. So no hook, filter,
fsmonitor or attribute of the repository takes effect, and nothing is written into it.
`GitRepository.clone_mirror` makes such a repository of a remote, and `fetch` keeps it in step.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath
from threading import Event

from regreen.adapters.git import tar_stream
from regreen.adapters.git.process import (
    DEFAULT_TIMEOUTS,
    NO_CONFIG,
    GitTimeouts,
    auth_environment,
    build_environment,
    copy_shallow_marks,
    decode_text,
    describe_missing_repository,
    git_error_reason,
    init_bare,
    parse_commits,
    read_blobs,
    remove_url_credentials,
    require_success,
    run_git,
    unknown_revision_message,
)
from regreen.adapters.git.tar_stream import Fill, replace_paths_in_tar
from regreen.domain.errors import NotARepository, OutsideError, UserError
from regreen.domain.models import Commit, TreeEntry
from regreen.domain.private_folders import cache_home, make_private, remove_unused, temporary_folder
from regreen.secrets.markdown_sanitizer import defuse_ci_skips

_SHA_PATTERN = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_COMMIT_FORMAT = "%H%x00%P%x00%T%x00%an%x00%ae%x00%ct%x00%s%x00"
_NO_COMMITS = "this repository has no commits yet (HEAD names none); commit something first"
_VIEW_RETENTION_DAYS = 30
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def _is_inside_repository(folder: Path) -> bool:
    """Whether the folder belongs to another repository, in its work tree or its own files."""
    done = run_git(["-C", str(folder), "rev-parse", "--git-dir"], check=False)
    return done.returncode == 0 or b"not a git repository" not in done.stderr


class GitRepository:
    """One repository's objects, as `ports.Git` asks for them.

    Args:
        git_dir: a bare repository that belongs to us.
        source: the repository that resolves revisions (HEAD, main, HEAD~3); None: `git_dir` itself.
        cancel: ends the running git command and every later one with `Cancelled`.
        timeouts: how long git may take.
    """

    def __init__(
        self,
        git_dir: Path,
        source: Path | None = None,
        *,
        cancel: Event | None = None,
        timeouts: GitTimeouts = DEFAULT_TIMEOUTS,
    ) -> None:
        self.git_dir = git_dir
        self.source = source
        self._cancel = cancel
        self._timeouts = timeouts

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle for a child process without the cancel event: the child itself is ended when its caller cancels."""
        make = partial(GitRepository, timeouts=self._timeouts)
        return make, (self.git_dir, self.source)

    @classmethod
    def open(cls, path: Path, home: Path | None = None) -> GitRepository:
        """Create a bare view of the repository that contains `path`.

        Args:
            path: a folder in a work tree, or a bare repository.
            home: the folder for views; default: REGREEN_HOME, else the user's cache.

        Raises:
            NotARepository: there is none, or it belongs to another user.
        """
        done = run_git(
            ["-C", str(path), "rev-parse", "--absolute-git-dir", "--git-common-dir"], check=False
        )
        if done.returncode != 0:
            raise NotARepository(describe_missing_repository(path, git_error_reason(done.stderr)))
        git_dir, common = decode_text(done.stdout).split("\n")[:2]
        if ".git" not in Path(git_dir).parts and _is_inside_repository(Path(git_dir).parent):
            message = (
                f"{git_dir} lies in another repository, whose commits may have brought it and its "
                "configuration along; name the outer one with --repo, or move it"
            )
            raise NotARepository(message)
        objects = (
            Path(common) if Path(common).is_absolute() else Path(path) / common
        ).resolve() / "objects"
        views = make_private((home or cache_home()) / "views")
        view = views / hashlib.sha256(os.fsencode(objects)).hexdigest()[:24]
        init_bare(view)
        os.utime(view)
        remove_unused(views, "*", _VIEW_RETENTION_DAYS)
        (view / "objects" / "info" / "alternates").write_bytes(os.fsencode(objects) + b"\n")
        copy_shallow_marks(Path(common) if Path(common).is_absolute() else objects.parent, view)
        return cls(view, Path(git_dir))

    @staticmethod
    def find_work_tree(path: Path) -> Path:
        """The root of the work tree that contains `path`.

        Raises:
            UserError: there is none, as in a bare repository.
        """
        done = run_git(["-C", str(path), "rev-parse", "--show-toplevel"], check=False)
        if done.returncode != 0:
            message = f"{path} is in no working tree; name a checkout with --repo"
            raise UserError(message)
        return Path(decode_text(done.stdout).removesuffix("\n"))

    @classmethod
    def clone_mirror(
        cls,
        url: str,
        git_dir: Path,
        token: str | None = None,
        *,
        cancel: Event | None = None,
        timeouts: GitTimeouts = DEFAULT_TIMEOUTS,
    ) -> GitRepository:
        """A bare copy of the repository at `url`, brought up to date: branches, tags and pull request heads.

        Args:
            url: https (or http on loopback) address without credentials.
            git_dir: the folder of the copy.
            token: an installation token; it reaches git only by the environment.
            cancel: ends this fetch and every later command of the copy.
            timeouts: how long git may take.

        Raises:
            OutsideError: the remote cannot be reached, refuses, or takes too long.
            Cancelled: `cancel` was set.
        """
        init_bare(git_dir)
        repository = cls(git_dir, cancel=cancel, timeouts=timeouts)
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
        done = self._run_git(
            ["fetch", "--quiet", *options, "--", url, *refspecs],
            env=auth_environment(url, token, self._timeouts.stalled),
            check=False,
            timeout=self._timeouts.transfer,
        )
        require_success(done, f"cannot fetch from {remove_url_credentials(url)}")

    def drop_old_refs(self, prefix: str, before: datetime) -> None:
        """Delete the refs under `prefix` with commits older than that, and the objects that only they reached.

        Objects younger than two weeks stay, because a running job may need them.
        """
        shown = self._run_git(
            ["for-each-ref", "--format=%(refname) %(committerdate:unix)", prefix]
        ).stdout
        rows = (line.rpartition(" ") for line in decode_text(shown).splitlines())
        old = [name for name, _, at in rows if not at or int(at) < before.timestamp()]
        if old:
            self._run_git(
                ["update-ref", "--stdin"], stdin="".join(f"delete {n}\n" for n in old).encode()
            )
            self._run_git(["gc", "--quiet", "--prune=2.weeks.ago"])

    def resolve(self, rev: str) -> str:
        """The full commit id that `rev` names; see `ports.Git`."""
        if not rev or rev.startswith("-") or "\x00" in rev:
            raise UserError(unknown_revision_message(rev))
        where = ["--git-dir", str(self.source or self.git_dir)]
        done = run_git(
            [*where, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}"],
            check=False,
        )
        if done.returncode != 0 and self.source is not None:
            # A commit that we made (a snapshot, a revert) exists only in the view.
            done = self._run_git(
                ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}"],
                check=False,
            )
        # rev-parse echoes --end-of-options before git 2.44 removed it
        out = decode_text(done.stdout).replace("--end-of-options", "").strip()
        if done.returncode != 0 or not _SHA_PATTERN.fullmatch(out):
            raise UserError(unknown_revision_message(rev) if rev != "HEAD" else _NO_COMMITS)
        return out

    def commit_work_tree(self, work_tree: Path, parent: str) -> str:
        """Commit the content of `work_tree` (untracked files included, ignored ones not) on top of `parent`.

        The user's own index and branches stay unchanged. Only for the user's own checkout on the command
        line: git reads that checkout's configuration here.
        """
        with self._temporary_index() as env:
            # Only the index knows of tracked files that are ignored or outside of a sparse checkout.
            if self.source is not None and (index := self.source / "index").is_file():
                # with its time, by which git knows what was changed in the same second
                shutil.copy2(index, env["GIT_INDEX_FILE"])
            done = run_git(
                [
                    "-C",
                    str(work_tree),
                    "--literal-pathspecs",
                    "-c",
                    "core.hooksPath=/dev/null",
                    "-c",
                    "core.splitIndex=false",
                    "add",
                    "-A",
                    "--sparse",
                ],
                env=env
                | {
                    "GIT_OBJECT_DIRECTORY": str(self.git_dir / "objects"),
                    "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(self._source_objects()),
                },
                check=False,
            )
            if done.returncode != 0:
                message = (
                    f"cannot read the working tree at {work_tree}: {git_error_reason(done.stderr)}"
                )
                raise UserError(message)
            tree = decode_text(self._run_git(["write-tree"], env=env).stdout).strip()
        if tree == self.tree_id(parent):
            return parent
        return self._commit_tree(tree, "The working tree as it stands", (parent,))

    def commit(self, sha: str) -> Commit:
        """One commit; see `ports.Git`."""
        done = self._run_git(["log", "-1", f"--format={_COMMIT_FORMAT}", sha])
        return parse_commits(decode_text(done.stdout))[0]

    def message(self, sha: str) -> str:
        """A commit's whole message; see `ports.Git`."""
        return decode_text(self._run_git(["log", "-1", "--format=%B", sha]).stdout).strip()

    def commits(self, good: str | None, bad: str, *, first_parent: bool = False) -> list[Commit]:
        """`good..bad`, parents before children; see `ports.Git`."""
        options = ["--topo-order", "--reverse", *(["--first-parent"] if first_parent else [])]
        span = [bad] if good is None else [bad, f"^{good}"]
        done = self._run_git(["log", f"--format={_COMMIT_FORMAT}", *options, *span])
        return parse_commits(decode_text(done.stdout))

    def merge_base(self, first: str, second: str) -> str | None:
        """The best common ancestor; see `ports.Git`."""
        done = self._run_git(["merge-base", first, second], check=False)
        return decode_text(done.stdout).strip().split("\n")[0] or None

    def is_ancestor(self, first: str, second: str) -> bool:
        """Whether `first` is `second` or an ancestor of it."""
        return (
            self._run_git(["merge-base", "--is-ancestor", first, second], check=False).returncode
            == 0
        )

    def is_on_branch(self, sha: str) -> bool:
        """Whether a branch or tag contains the commit: then somebody with push access put it there."""
        options = ["--count=1", f"--contains={sha}", "--", "refs/heads/", "refs/tags/"]
        return bool(self._run_git(["for-each-ref", *options], check=False).stdout.strip())

    def merged_tree(self, first: str, second: str) -> str | None:
        """The tree of merging two commits, None if they conflict."""
        done = self._run_git(
            ["merge-tree", "--write-tree", "--no-messages", first, second], check=False
        )
        return decode_text(done.stdout).strip() if done.returncode == 0 else None

    def is_shallow(self) -> bool:
        """Whether the history is shallow."""
        return (self.git_dir / "shallow").exists()

    def tree(self, rev: str, *, recursive: bool = True) -> list[TreeEntry]:
        """Every file of a tree; see `ports.Git`."""
        done = self._run_git(["ls-tree", "-z", "--long", *(["-r"] if recursive else []), rev])
        entries = []
        for row in decode_text(done.stdout).split("\x00"):
            if row:
                meta, path = row.split("\t", 1)
                mode, _kind, sha, size = meta.split()
                entries.append(TreeEntry(path, mode, sha, int(size) if size.isdigit() else None))
        return entries

    def tree_id(self, rev: str, path: str = "") -> str | None:
        """The id of the tree, or of the entry at `path`; see `ports.Git`."""
        name = f"{rev}^{{tree}}" if not path else f"{rev}:{path}"
        done = self._run_git(["rev-parse", "--verify", "--quiet", name], check=False)
        return decode_text(done.stdout).strip() or None

    def show(self, rev: str, path: str, limit: int = 8 * 1024 * 1024) -> bytes | None:
        """A file's bytes at a revision; see `ports.Git`."""
        name = f"{rev}:{path}".encode("utf-8", "surrogateescape")
        if b"\n" in name:
            return self._show_by_tree(rev, path, limit)
        head = self._run_git(["cat-file", "--batch-check"], stdin=name + b"\n").stdout.split()
        if len(head) < 3 or head[-2] != b"blob" or int(head[-1]) > limit:
            return None
        return self._run_git(["cat-file", "blob", decode_text(head[-3])]).stdout

    def blobs(self, ids: Sequence[str]) -> Iterator[bytes | None]:
        """The bytes of these blobs in order; see `ports.Git`."""
        return read_blobs(self.git_dir, ids)

    def diff(self, base: str, head: str, *, paths: Sequence[str] = (), context: int = 3) -> str:
        """The unified diff between two trees; see `ports.Git`."""
        options = [
            "--full-index",
            "-M",
            "-l500",
            f"-U{context}",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
        ]
        limit = ["--", *(f":(literal){p}" for p in paths)] if paths else []
        return decode_text(self._run_git(["diff", *options, base, head, *limit]).stdout)

    def changed_paths(self, sha: str) -> tuple[str, ...]:
        """Paths that a commit changes against its first parent; see `ports.Git`."""
        done = self._run_git(
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
        return tuple(dict.fromkeys(p for p in decode_text(done.stdout).split("\x00") if p))

    def archive(self, rev: str, overlay: Mapping[str, bytes] | None = None) -> Iterator[bytes]:
        """The tree as a tar stream; see `ports.Git`."""
        fill, inner = self._collect_external_content(rev)
        with subprocess.Popen(
            ["git", "--git-dir", str(self.git_dir), "archive", "--format=tar", rev],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=build_environment(NO_CONFIG),
        ) as process:
            assert process.stdout is not None  # noqa: S101 - PIPE was asked for
            assert process.stderr is not None  # noqa: S101
            if overlay or fill or inner:
                small = tar_stream.POINTER_SIZE
                yield from replace_paths_in_tar(
                    process.stdout, overlay or {}, fill=fill, max_filled_bytes=small, inner=inner
                )
            else:
                while chunk := process.stdout.read(1 << 18):
                    yield chunk
            complaint = process.stderr.read()
        if process.returncode != 0:
            message = f"git archive {rev[:12]} failed: {git_error_reason(complaint)}"
            raise OutsideError(message)

    def commits_touching(self, good: str | None, bad: str, paths: Sequence[str]) -> frozenset[str]:
        """The commits of a range that change one of these files; see `ports.Git`."""
        span = [bad] if good is None else [bad, f"^{good}"]
        limit = ["--", *(f":(literal){path}" for path in paths)]
        return frozenset(
            decode_text(self._run_git(["rev-list", "--full-history", *span, *limit]).stdout).split()
        )

    def shallow_boundary(self) -> frozenset[str]:
        """Commits whose parents are missing in a shallow clone; see `ports.Git`."""
        marks = self.git_dir / "shallow"
        return frozenset(marks.read_text().split()) if marks.exists() else frozenset()

    def count_missing_objects(self, good: str | None, bad: str) -> int:
        """How many objects of a range are missing in a partial clone; see `ports.Git`."""
        if self.source is None or not any((self._source_objects() / "pack").glob("*.promisor")):
            return 0
        span = [bad] if good is None else [bad, f"^{good}"]
        ways = [span] if good is None else [span, [f"{good}^{{tree}}"]]
        missing: set[bytes] = set()
        for revs in ways:
            listed = self._run_git(["rev-list", "--objects", "--missing=print", *revs], check=False)
            missing |= {row for row in listed.stdout.split(b"\n") if row.startswith(b"?")}
            if listed.returncode != 0:
                missing.add(listed.stderr)
        return len(missing)

    def list_missing_content(self, rev: str) -> tuple[str, ...]:
        """Content that a commit names but this clone lacks; see `ports.Git`."""
        modules = [
            module for module in self._list_submodules(rev) if self._open_submodule(module) is None
        ]
        pointers = [
            path
            for path, oid in self._list_lfs_pointers(rev)
            if tar_stream.find_lfs_file(self._common_directory, oid) is None
        ]
        return tar_stream.describe_missing_content(
            modules, pointers, is_clone=self.source is not None
        )

    @property
    def _common_directory(self) -> Path | None:
        """The git directory that holds the user's objects, submodules and large files."""
        return self._source_objects().parent if self.source is not None else None

    def _collect_external_content(
        self, rev: str
    ) -> tuple[Fill | None, list[tuple[str, Iterator[bytes]]]]:
        """The content that `archive` has to add to a tree because git leaves it out."""
        if self.source is None:
            return None, []
        names = b"".join(f"{rev}:{name}\n".encode() for name in (".gitmodules", ".gitattributes"))
        heads = self._run_git(["cat-file", "--batch-check"], stdin=names).stdout.split(b"\n")
        has_modules, has_attributes = (b" blob " in head for head in heads[:2])
        fill = tar_stream.make_lfs_fill(self._common_directory)
        inner = [
            (module.path, repository.archive(module.sha))
            for module in (self._list_submodules(rev) if has_modules else ())
            if (repository := self._open_submodule(module)) is not None
        ]
        return fill if has_attributes and self._has_large_files(rev) else None, inner

    def _list_submodules(self, rev: str) -> tuple[tar_stream.Submodule, ...]:
        links = [(entry.path, entry.sha) for entry in self.tree(rev) if entry.mode == "160000"]
        if not links:
            return ()
        modules = self.show(rev, ".gitmodules") or b""
        listed = self._run_git(
            ["config", "--file", "-", "--list", "-z"], stdin=modules, check=False
        )
        rows = [row.partition("\n") for row in decode_text(listed.stdout).split("\x00") if row]
        settings = {key: value for key, _, value in rows}
        return tar_stream.list_submodules(links, settings, self._common_directory)

    def _open_submodule(self, module: tar_stream.Submodule) -> GitRepository | None:
        """A submodule's repository, if this clone has it and its commit."""
        if module.git_dir is None:
            return None
        repository = GitRepository.open(module.git_dir, self.git_dir.parent.parent)
        check = repository._run_git(["cat-file", "-e", f"{module.sha}^{{commit}}"], check=False)
        return repository if check.returncode == 0 else None

    def _has_large_files(self, rev: str) -> bool:
        return b"filter=lfs" in (self.show(rev, ".gitattributes") or b"")

    def _list_lfs_pointers(self, rev: str) -> list[tuple[str, str]]:
        """Path and object id of each Git LFS file."""
        if not self._has_large_files(rev):
            return []
        listed = self._run_git(
            ["grep", "-z", "-l", "-e", "^version https://git-lfs.github.com/spec/v1", rev],
            check=False,
        )
        paths = [row.partition(":")[2] for row in decode_text(listed.stdout).split("\x00") if row]
        oids = {path: tar_stream.parse_lfs_oid(self.show(rev, path, 4096) or b"") for path in paths}
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
        with self._temporary_index() as env:
            self._run_git(["read-tree", onto], env=env)
            how = ["--cached", "--whitespace=nowarn", *(["--3way"] if three_way else [])]
            data = patch.encode("utf-8", "surrogateescape")
            if (
                self._run_git(["apply", *how, "-"], stdin=data, env=env, check=False).returncode
                != 0
            ):
                return None
            if self._run_git(["ls-files", "--unmerged"], env=env).stdout:
                return None
            tree = decode_text(self._run_git(["write-tree"], env=env).stdout).strip()
        self._refuse_forbidden(onto, tree)
        return self._commit_tree(
            tree, message, parents if parents is not None else (self.resolve(onto),)
        )

    def revert(
        self, sha: str, onto: str, *, paths: Sequence[str] = (), mainline: int = 1
    ) -> str | None:
        """A commit on `onto` that undoes `sha`; see `ports.Git`."""
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
        patch = decode_text(self._run_git(["diff", *options, sha, before, *limit]).stdout)
        reason = f'Revert "{commit.subject}"\n\nThis reverts commit {sha}.'
        try:
            return self.apply(onto, patch, reason, three_way=True)
        except UserError:  # it would bring back a link, or touch a submodule
            return None

    def blame(self, rev: str, path: str, start: int, end: int) -> list[str]:
        """The commit that last touched each line; see `ports.Git`."""
        done = self._run_git(
            ["blame", "--porcelain", f"-L{start},{end}", rev, "--", path], check=False
        )
        header = re.compile(r"([0-9a-f]{40}) \d+ \d+")
        return [
            m.group(1) for row in decode_text(done.stdout).split("\n") if (m := header.match(row))
        ]

    def _run_git(
        self,
        args: Sequence[str],
        *,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        check: bool = True,
        timeout: float | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        return run_git(
            ["--git-dir", str(self.git_dir), *args],
            stdin=stdin,
            env=NO_CONFIG | dict(env or {}),
            check=check,
            timeout=timeout or self._timeouts.local,
            cancel=self._cancel,
        )

    @contextmanager
    def _temporary_index(self) -> Iterator[dict[str, str]]:
        with temporary_folder("index") as folder:
            yield {"GIT_INDEX_FILE": str(folder / "index")}

    def _commit_tree(self, tree: str, message: str, parents: Iterable[str]) -> str:
        parents = tuple(parents)
        flags = [flag for parent in parents for flag in ("-p", parent)]
        # The same patch on the same commit always gives the same commit, whose day is that of its dependencies.
        day = self.commit(parents[0]).date.isoformat() if parents else "2000-01-01T00:00:00Z"
        when = {"GIT_AUTHOR_DATE": day, "GIT_COMMITTER_DATE": day}
        text = defuse_ci_skips(message).encode()
        done = self._run_git(["commit-tree", tree, *flags], stdin=text, env=when)
        return decode_text(done.stdout).strip()

    def _refuse_forbidden(self, onto: str, tree: str) -> None:
        """Whether the patch adds symlinks, submodules or anything that git itself acts on."""
        done = self._run_git(
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
        fields = decode_text(done.stdout).split("\x00")
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
                return self._run_git(["cat-file", "blob", entry.sha]).stdout
        return None

    def _source_objects(self) -> Path:
        alternates = (self.git_dir / "objects" / "info" / "alternates").read_bytes()
        return Path(os.fsdecode(alternates.removesuffix(b"\n")))
