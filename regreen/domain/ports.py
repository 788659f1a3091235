"""Protocols for everything outside the core. Adapters satisfy them; `app/wiring.py` joins the two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from threading import Event
from types import TracebackType
from typing import Protocol, Self

from regreen.domain.models import (
    BoxLimits,
    Commit,
    DoctorCheck,
    EnvSpec,
    ModelAnswer,
    ModelRequest,
    PreparedEnv,
    RunResult,
    TreeEntry,
)


class Clock(Protocol):
    """The time, so that tests need not wait."""

    def now(self) -> datetime:
        """The time now, in UTC, with its zone."""
        ...

    def monotonic(self) -> float:
        """Seconds of a monotonic clock."""
        ...

    def sleep(self, seconds: float) -> None:
        """Sleep."""
        ...


BOX_HOME = "/home/regreen"
"""The home directory of every box, outside of the tree."""


class Box(Protocol):
    """One isolated place with a tree at /work. Killed as a whole; unusable after a timeout, flood or cancel."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        cwd: str = "/work",
        stdin: bytes | None = None,
        cancel: Event | None = None,
    ) -> RunResult:
        """Run one command without network; `timeout` in seconds.

        The command itself never makes this raise: see `RunResult.ended`.
        """
        ...

    def reset_and_run(
        self,
        tree: Iterable[bytes],
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        cancel: Event | None = None,
    ) -> RunResult:
        """Kill and delete what earlier commands left, unpack `tree` at /work, and run one command there.

        A fifth of the cost of a fresh box. Good for exploring; reliable results come from a fresh box.

        Raises:
            OutsideError: the box is gone, or could not be reset.
        """
        ...

    def read(self, path: str, limit: int = 1024 * 1024) -> bytes | None:
        """The first `limit` bytes of a regular file in the box (relative to /work), None if there is none."""
        ...

    def write(self, files: Mapping[str, bytes]) -> None:
        """Put files into the box: paths relative to /work, or absolute ones below `BOX_HOME`."""
        ...

    def close(self) -> None:
        """Kill all processes and delete everything. Safe to call twice."""
        ...


class Sandbox(Protocol):
    """Where untrusted code runs: no credential, no network except in `prepare`, limits on everything."""

    name: str

    def prepare(
        self, spec: EnvSpec, tree: Iterable[bytes], cancel: Event | None = None
    ) -> PreparedEnv:
        """Make or find the environment for `spec`. The only phase with a network.

        `tree` is a tar stream, which is only read if the setup has to run.

        Raises:
            SetupFailed: the setup command failed or timed out.
            OutsideError: the engine failed.
        """
        ...

    def open(self, env: PreparedEnv, tree: Iterable[bytes], limits: BoxLimits | None = None) -> Box:
        """A fresh box with `tree` (a tar stream) unpacked at /work."""
        ...

    def pythons(self) -> tuple[str, ...]:
        """The Python versions available in boxes ("3.11")."""
        ...

    def doctor(self) -> list[DoctorCheck]:
        """Attack the sandbox, and report line by line what holds."""
        ...


class Git(Protocol):
    """One repository's objects. No method uses a work tree, runs a hook or reads repository configuration."""

    def resolve(self, rev: str) -> str:
        """The full commit id that `rev` names.

        Raises:
            UserError: no such revision.
        """
        ...

    def commit(self, sha: str) -> Commit:
        """One commit."""
        ...

    def message(self, sha: str) -> str:
        """A commit's whole message."""
        ...

    def commits(self, good: str | None, bad: str, *, first_parent: bool = False) -> list[Commit]:
        """`good..bad` (all of `bad`'s history when `good` is None), parents before children."""
        ...

    def merge_base(self, first: str, second: str) -> str | None:
        """The best common ancestor, None if the histories are unrelated."""
        ...

    def is_ancestor(self, first: str, second: str) -> bool:
        """Whether `first` is `second` or an ancestor of it."""
        ...

    def is_shallow(self) -> bool:
        """Whether the history is shallow, so that ranges and merge bases cannot be trusted."""
        ...

    def commits_touching(self, good: str | None, bad: str, paths: Sequence[str]) -> frozenset[str]:
        """The commits of `good..bad` that change one of these files."""
        ...

    def shallow_boundary(self) -> frozenset[str]:
        """Commits whose parents are missing in a shallow clone."""
        ...

    def count_missing_objects(self, good: str | None, bad: str) -> int:
        """How many files and trees of `good..bad`, `good` included, are missing in a partial clone."""
        ...

    def list_missing_content(self, rev: str) -> tuple[str, ...]:
        """Content that a commit names but this clone lacks (submodules, large files), with the remedy."""
        ...

    def tree(self, rev: str, *, recursive: bool = True) -> list[TreeEntry]:
        """Every file of a tree, sorted by path."""
        ...

    def tree_id(self, rev: str, path: str = "") -> str | None:
        """The object id of the tree, or of the entry at `path` in it; None if it does not exist."""
        ...

    def show(self, rev: str, path: str, limit: int = 8 * 1024 * 1024) -> bytes | None:
        """A file's bytes at a revision; None if it does not exist, is no file, or is larger than `limit`."""
        ...

    def blobs(self, ids: Sequence[str]) -> Iterator[bytes | None]:
        """The bytes of these blobs in order, from one process; None for a missing one."""
        ...

    def diff(self, base: str, head: str, *, paths: Sequence[str] = (), context: int = 3) -> str:
        """The unified diff between two trees, with renames, names of binary files and full object ids."""
        ...

    def changed_paths(self, sha: str) -> tuple[str, ...]:
        """The paths that a commit changes against its first parent."""
        ...

    def archive(self, rev: str, overlay: Mapping[str, bytes] | None = None) -> Iterator[bytes]:
        """The tree as a tar stream, every file of it (no export-ignore), `overlay` laid over it.

        Submodules and large files are included if this clone has them.
        """
        ...

    def apply(
        self,
        onto: str,
        patch: str,
        message: str,
        *,
        three_way: bool = False,
        parents: Sequence[str] | None = None,
    ) -> str | None:
        """Apply a patch without a work tree; return the new commit's id, or None if the patch does not apply.

        Raises:
            UserError: the patch touches what no patch may (symlinks, submodules, `.git`, paths outside).
        """
        ...

    def revert(
        self, sha: str, onto: str, *, paths: Sequence[str] = (), mainline: int = 1
    ) -> str | None:
        """A commit on `onto` that undoes `sha` (only at `paths` if given).

        None on conflict, and where it would change a link or submodule.
        """
        ...

    def blame(self, rev: str, path: str, start: int, end: int) -> list[str]:
        """The commit that last touched each line from `start` to `end` (1-based, inclusive)."""
        ...


class Mirror(Git, Protocol):
    """A local copy of a repository on GitHub."""

    def is_on_branch(self, sha: str) -> bool:
        """Whether a branch or tag contains the commit: then somebody with push access put it there."""
        ...

    def merged_tree(self, first: str, second: str) -> str | None:
        """The tree of merging two commits, None if they conflict."""
        ...


class Model(Protocol):
    """A language model behind a money cap and a ledger."""

    def ask(self, request: ModelRequest) -> ModelAnswer:
        """Ask once.

        Raises:
            OutOfBudget: the call could cost more than is left; nothing was sent.
            OutsideError: the endpoint failed after its retries.
        """
        ...


SpanValue = str | int | float | bool


class Span(Protocol):
    """One traced piece of work."""

    def note(self, values: Mapping[str, SpanValue]) -> None:
        """Add attributes with results."""
        ...


class Traces(Protocol):
    """Traces for the operator: a job, and below it each of its calls."""

    def span(self, name: str, about: Mapping[str, SpanValue]) -> AbstractContextManager[Span]:
        """A span for the duration of the `with`, below the current span of this thread."""
        ...

    def close(self) -> None:
        """Send the waiting spans."""
        ...


class NoTraces:
    """Discards traces: satisfies `Traces` and `Span`."""

    @contextmanager
    def span(self, name: str, about: Mapping[str, SpanValue]) -> Iterator[NoTraces]:  # noqa: ARG002 - nobody looks
        """Do nothing."""
        yield self

    def note(self, values: Mapping[str, SpanValue]) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
