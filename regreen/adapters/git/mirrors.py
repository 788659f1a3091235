"""Local copies of repositories, fetched with a token that is never written to disk."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

from regreen.adapters.git.repository import GitRepository
from regreen.domain.errors import Cancelled
from regreen.domain.github import GitHub, Repository
from regreen.domain.ports import NoTraces, Traces

_KEEP_UNUSED = timedelta(days=30)
_KEEP_PULL_HEADS = timedelta(days=30)
_LOCK_POLL_S = 0.1


class GitMirrors:
    """Bare mirrors in one folder, one for each repository id (names change, ids do not)."""

    def __init__(self, home: Path, traces: Traces | None = None) -> None:
        self._home = home
        self._traces = traces or NoTraces()

    def fetch(
        self,
        github: GitHub,
        repository: Repository,
        refs: Sequence[str] = (),
        cancel: Event | None = None,
    ) -> GitRepository:
        """The repository, brought up to date; `refs` besides branches and tags ("refs/pull/7/head").

        `cancel` ends the fetch and every later git command of the result.

        Raises:
            Cancelled: `cancel` was set.
            OutsideError: GitHub cannot be reached, refuses, or takes too long.
        """
        at = self._home / f"{repository.id}.git"
        about = {"regreen.repository": repository.full_name}
        with self._lock_repository(repository.id, cancel), self._traces.span("git fetch", about):
            git = GitRepository.clone_mirror(
                repository.clone_url, at, github.token(), cancel=cancel
            )
            if refs:
                specs = [f"+{ref}:refs/regreen/{ref.removeprefix('refs/')}" for ref in refs]
                git.fetch(repository.clone_url, specs, github.token())
        return git

    def remove(self, repository_id: int) -> None:
        """Delete the copy of a repository that we may no longer read."""
        if (self._home / f"{repository_id}.git").exists():
            with self._lock_repository(repository_id):
                shutil.rmtree(self._home / f"{repository_id}.git", ignore_errors=True)

    def remove_unused(self, now: datetime) -> int:
        """Delete copies unused for a month, and old pull request heads in the others; return how many copies.

        The next job fetches what it still needs.
        """
        removed = 0
        for copy in sorted(self._home.glob("*.git")):
            lock = copy.with_suffix(".lock")
            used = datetime.fromtimestamp((lock if lock.exists() else copy).stat().st_mtime, UTC)
            if now - used > _KEEP_UNUSED:
                self.remove(int(copy.stem))
                removed += 1
            else:
                GitRepository(copy).drop_old_refs("refs/regreen/pull/", now - _KEEP_PULL_HEADS)
        return removed

    @contextmanager
    def _lock_repository(self, repository_id: int, cancel: Event | None = None) -> Iterator[None]:
        """One fetch at a time for each repository, across all local processes."""
        self._home.mkdir(parents=True, exist_ok=True)
        never = Event()
        with (self._home / f"{repository_id}.lock").open("w") as lock:
            os.utime(lock.fileno())  # the time of the copy's last use
            while not _try_lock(lock.fileno()):
                if (cancel or never).wait(_LOCK_POLL_S):
                    raise Cancelled("cancelled")
            yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
