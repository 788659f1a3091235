"""Local copies of repositories: what nobody uses any more goes, what may still be needed stays."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from regreen.adapters.git.mirrors import GitMirrors

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def _git(copy: Path, *args: str, at: datetime = NOW) -> str:
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}  # fmt: skip
    dates = {"GIT_AUTHOR_DATE": f"{at:%s} +0000", "GIT_COMMITTER_DATE": f"{at:%s} +0000"}
    done = subprocess.run(
        ["git", "--git-dir", str(copy), *args],
        env=os.environ | who | dates,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Three copies: used today, used 29 days ago, used 31 days ago."""
    for number, days in ((1, 0), (2, 29), (3, 31)):
        subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / f"{number}.git")], check=True)
        lock = tmp_path / f"{number}.lock"
        lock.touch()
        used = (NOW - timedelta(days=days)).timestamp()
        os.utime(lock, (used, used))
    return tmp_path


def test_copies_that_nobody_used_for_a_month_go(home: Path) -> None:
    assert GitMirrors(home).remove_unused(NOW) == 1
    assert sorted(p.name for p in home.glob("*.git")) == ["1.git", "2.git"]


def test_old_heads_of_pull_requests_go_and_branches_stay(home: Path) -> None:
    copy = home / "1.git"
    tree = _git(copy, "hash-object", "-t", "tree", "-w", "/dev/null")
    long_ago = NOW - timedelta(days=40)
    for name, at in (
        ("refs/heads/main", long_ago),
        ("refs/regreen/pull/1/head", long_ago),
        ("refs/regreen/pull/2/head", NOW),
    ):
        sha = _git(copy, "commit-tree", tree, "-m", name, at=at)
        _git(copy, "update-ref", name, sha)
    GitMirrors(home).remove_unused(NOW)
    assert _git(copy, "for-each-ref", "--format=%(refname)").splitlines() == [
        "refs/heads/main",
        "refs/regreen/pull/2/head",
    ]


def test_a_copy_is_removed_by_its_repositorys_number(home: Path) -> None:
    mirrors = GitMirrors(home)
    mirrors.remove(2)
    mirrors.remove(99)
    assert sorted(p.name for p in home.glob("*.git")) == ["1.git", "3.git"]
