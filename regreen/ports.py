"""What the parts need from outside, as protocols. Adapters satisfy them; `bot/app.py` joins the two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from threading import Event
from types import TracebackType
from typing import Protocol, Self

from regreen.models import (
    Check,
    Commit,
    Env,
    EnvSpec,
    Limits,
    ModelAnswer,
    ModelRequest,
    RunResult,
    TreeEntry,
)


class Clock(Protocol):
    """Time, so that tests need not wait for it."""

    def now(self) -> datetime:
        """The time now, in UTC, with its zone."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class Box(Protocol):
    """One isolated place with a tree at /work. Killed whole; dead for good after a timeout, flood or cancel."""

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

        Never raises for what the command does: see `RunResult.ended`.
        """
        ...

    def afresh(
        self,
        tree: Iterable[bytes],
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        cancel: Event | None = None,
    ) -> RunResult:
        """Kill and delete whatever earlier commands left, lay `tree` out at /work, and run one command there.

        A fifth of a fresh box's price. Enough to explore; what is to be relied on is run in a fresh box.

        Raises:
            OutsideError: the box is gone, or could not be made new.
        """
        ...

    def read(self, path: str, limit: int = 1024 * 1024) -> bytes | None:
        """The first `limit` bytes of a regular file in the box (relative to /work), None where there is none."""
        ...

    def write(self, files: Mapping[str, bytes]) -> None:
        """Put files (paths relative to /work) into the box."""
        ...

    def close(self) -> None:
        """Kill whatever runs and leave nothing behind. Safe to call twice."""
        ...


class Sandbox(Protocol):
    """Where foreign code runs: no credential, no network but in `prepare`, limits on everything."""

    name: str

    def prepare(self, spec: EnvSpec, tree: Iterable[bytes], cancel: Event | None = None) -> Env:
        """Make, or find again, the environment that `spec` asks for. The only phase with a network.

        `tree` is a tar stream, consumed only when the setup has to run.

        Raises:
            SetupFailed: the setup command failed or timed out.
            OutsideError: the engine failed.
        """
        ...

    def open(self, env: Env, tree: Iterable[bytes], limits: Limits | None = None) -> Box:
        """A fresh box with `tree` (a tar stream) unpacked at /work."""
        ...

    def pythons(self) -> tuple[str, ...]:
        """The Python versions that boxes can have ("3.11")."""
        ...

    def doctor(self) -> list[Check]:
        """Attack it, and say line by line what holds."""
        ...


class Git(Protocol):
    """One repository's objects. Nothing here has a work tree, runs a hook or reads repository configuration."""

    def resolve(self, rev: str) -> str:
        """The full commit id that `rev` names.

        Raises:
            UserError: no such revision.
        """
        ...

    def commit(self, sha: str) -> Commit:
        """One commit."""
        ...

    def commits(self, good: str | None, bad: str, *, first_parent: bool = False) -> list[Commit]:
        """`good..bad` (all of `bad`'s history when `good` is None), parents before children."""
        ...

    def merge_base(self, one: str, other: str) -> str | None:
        """The best common ancestor, None where the histories are unrelated."""
        ...

    def is_ancestor(self, one: str, other: str) -> bool:
        """Whether `one` is `other` or an ancestor of it."""
        ...

    def is_shallow(self) -> bool:
        """Whether history is cut off, so that ranges and merge bases cannot be trusted."""
        ...

    def touching(self, good: str | None, bad: str, paths: Sequence[str]) -> frozenset[str]:
        """The commits of `good..bad` that change one of these files."""
        ...

    def cut(self) -> frozenset[str]:
        """Commits whose parents a shallow clone has left out."""
        ...

    def absent(self, good: str | None, bad: str) -> int:
        """How many files and trees of `good..bad`, `good` included, a partial clone has left out."""
        ...

    def lacking(self, rev: str) -> tuple[str, ...]:
        """What a commit names and this clone does not have (submodules, large files), with what to do about it."""
        ...

    def tree(self, rev: str, *, recursive: bool = True) -> list[TreeEntry]:
        """Every file of a tree, sorted by path."""
        ...

    def tree_id(self, rev: str, path: str = "") -> str | None:
        """The object id of the tree, or of the entry at `path` in it; None where there is none."""
        ...

    def show(self, rev: str, path: str, limit: int = 8 * 1024 * 1024) -> bytes | None:
        """A file's bytes at a revision; None where it is not there, no file, or larger than `limit`."""
        ...

    def blobs(self, ids: Sequence[str]) -> Iterator[bytes | None]:
        """The bytes of these blobs in the order asked, from one process; None for what is not here."""
        ...

    def diff(self, base: str, head: str, *, paths: Sequence[str] = (), context: int = 3) -> str:
        """The unified diff between two trees, renames found, binary files named, full object ids."""
        ...

    def changed_paths(self, sha: str) -> tuple[str, ...]:
        """Paths that a commit changes against its first parent."""
        ...

    def archive(self, rev: str, overlay: Mapping[str, bytes] | None = None) -> Iterator[bytes]:
        """The tree as a tar stream, every file of it (no export-ignore), `overlay` laid over it.

        Submodules and the content of large files are in it where this clone has them.
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
        """Apply a patch to a tree without a work tree; the new commit's id, or None where it does not apply.

        Raises:
            UserError: the patch touches what no patch may (symlinks, submodules, `.git`, paths outside).
        """
        ...

    def revert(
        self, sha: str, onto: str, *, paths: Sequence[str] = (), mainline: int = 1
    ) -> str | None:
        """A commit on `onto` without what `sha` did (only at `paths` where given); None on conflict."""
        ...

    def blame(self, rev: str, path: str, start: int, end: int) -> list[str]:
        """The commit that last touched each line from `start` to `end` (1-based, inclusive)."""
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


Value = str | int | float | bool


class Span(Protocol):
    """One piece of work while it goes on."""

    def note(self, found: Mapping[str, Value]) -> None:
        """Add what came out of it."""
        ...


class Traces(Protocol):
    """Where an operator can see what took the time: a job, and below it each call that it made."""

    def span(self, name: str, about: Mapping[str, Value]) -> AbstractContextManager[Span]:
        """One piece of work, for as long as the `with` lasts; below the one that this thread is in."""
        ...

    def close(self) -> None:
        """Send what waits to be sent."""
        ...


class NoTraces:
    """Nobody looks: satisfies `Traces` and `Span`."""

    @contextmanager
    def span(self, name: str, about: Mapping[str, Value]) -> Iterator[NoTraces]:  # noqa: ARG002 - nobody looks
        """Nothing is kept."""
        yield self

    def note(self, found: Mapping[str, Value]) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing waits."""
