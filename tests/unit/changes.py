"""A change as tests tell it: files before and after, as two commits of a real repository."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from regreen.adapters.git.repository import GitRepository
from regreen.domain.models import Review
from regreen.domain.ports import Git, Sandbox
from regreen.domain.repo_config import RepoConfig
from regreen.reviewers.analyzers.correctness import Pyright
from regreen.reviewers.context import ReviewContext
from regreen.reviewers.pipeline import ReviewJob, make_context, review_change
from regreen.reviewers.reviewer_table import REVIEWERS

Files = Mapping[str, str | bytes | None]
ENV = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}


class Story:
    """A repository whose `main` is the base and whose `change` branch is the head."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.run("init", "-q", "-b", "main")

    def run(self, *args: str) -> str:
        done = subprocess.run(
            ["git", *args], cwd=self.root, env=ENV, capture_output=True, check=True
        )
        return done.stdout.decode()

    def commit(self, files: Files, message: str = "x") -> str:
        for name, data in files.items():
            place = self.root / name
            if data is None:
                place.unlink()
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data if isinstance(data, bytes) else data.encode())
        self.run("add", "-A")
        self.run("commit", "-q", "--allow-empty", "-m", message)
        return self.run("rev-parse", "HEAD").strip()

    def change(self, before: Files, after: Files) -> None:
        """Commit `before` on main and `after` (only what differs) on the branch `change`."""
        self.commit(before)
        self.run("checkout", "-q", "-B", "change")
        self.commit(after)

    @property
    def git(self) -> Git:
        return GitRepository.open(self.root, self.root.parent / "views")

    def job(self, config: RepoConfig | None = None, **options: object) -> ReviewJob:
        return ReviewJob(base="main", head="HEAD", config=config or RepoConfig(), **options)  # type: ignore[arg-type]

    def context(self, config: RepoConfig | None = None) -> ReviewContext:
        return make_context(self.job(config), git=self.git, sandbox=None, model=None)[0]

    def review(
        self,
        config: RepoConfig | None = None,
        sandbox: Sandbox | None = None,
        *,
        types: bool = False,
        **options: object,
    ) -> Review:
        """Review the change; `types` lets the type checker read too, which takes seconds."""
        table = REVIEWERS if types else tuple(r for r in REVIEWERS if not isinstance(r[1], Pyright))
        job = self.job(config, **options)
        return review_change(job, git=self.git, sandbox=sandbox, model=None, reviewers=table)
