"""Local copies of the repositories we work on, fetched with a token that never touches the disk."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from regreen.adapters.git import GitRepository
from regreen.forge import GitHub, Repository
from regreen.ports import NoTraces, Traces


class Mirrors:
    """Bare mirrors under one folder, one for each repository id (names change, ids do not)."""

    def __init__(self, home: Path, traces: Traces | None = None) -> None:
        self._home = home
        self._traces = traces or NoTraces()

    def fetch(
        self, github: GitHub, repository: Repository, refs: Sequence[str] = ()
    ) -> GitRepository:
        """The repository, brought up to date; `refs` besides branches and tags ("refs/pull/7/head")."""
        at = self._home / f"{repository.id}.git"
        about = {"regreen.repository": repository.full_name}
        with self._alone(repository.id), self._traces.span("git fetch", about):
            git = GitRepository.mirror(repository.clone_url, at, github.token())
            if refs:
                specs = [f"+{ref}:refs/regreen/{ref.removeprefix('refs/')}" for ref in refs]
                git.fetch(repository.clone_url, specs, github.token())
        return git

    @contextmanager
    def _alone(self, repository_id: int) -> Iterator[None]:
        """One fetch at a time for each repository, over all processes here."""
        self._home.mkdir(parents=True, exist_ok=True)
        with (self._home / f"{repository_id}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
