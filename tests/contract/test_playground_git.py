"""Git over HTTP with the API's tokens, by git itself."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from regreen_playground.gitstore import environment

from tests.contract.playground_hub import REPO, Hub, opened


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with opened(tmp_path) as made:
        yield made


def git(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    named = ["-c", "user.name=alice", "-c", "user.email=alice@example.com"]
    argv = ["git", *named, *args]
    return subprocess.run(
        argv, cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )


def address(hub: Hub, token: str, repo: str = REPO) -> str:
    return hub.playground.url.replace("://", f"://x-access-token:{token}@") + f"/{repo}.git"


def test_clone_commit_and_push(hub: Hub, tmp_path: Path) -> None:
    token = hub.token(contents="write")
    git(tmp_path, "clone", "--quiet", address(hub, token), "copy")
    copy = tmp_path / "copy"
    (copy / "new.py").write_text("new = 1\n")
    git(copy, "checkout", "--quiet", "-b", "regreen/fix")
    git(copy, "add", ".")
    git(copy, "commit", "--quiet", "-m", "Add new")
    pushed = git(copy, "push", "--quiet", "origin", "HEAD")
    assert pushed.returncode == 0, pushed.stderr
    assert hub.state.repository(REPO).git.branch("regreen/fix")
    events = [one.event for one in hub.state.outbox]
    assert events[-3:] == ["push", "create", "check_suite"]


def test_reading_is_not_pushing(hub: Hub, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", address(hub, hub.token(contents="read")), "copy")
    refused = git(tmp_path / "copy", "push", "origin", "HEAD:refs/heads/x")
    assert "403" in refused.stderr
    assert hub.state.repository(REPO).git.branch("x") is None


def test_nobody_clones_a_private_repository(hub: Hub, tmp_path: Path) -> None:
    refused = git(tmp_path, "clone", f"{hub.playground.url}/{REPO}.git", "copy")
    assert refused.returncode != 0
    elsewhere = git(tmp_path, "clone", address(hub, hub.token(), "acme/other"), "copy")
    assert "not found" in elsewhere.stderr


def test_the_head_of_a_forks_pull_is_in_the_base_repository(hub: Hub, tmp_path: Path) -> None:
    hub.state.fork(REPO, "mallory")
    sha = hub.state.commit("mallory/lib", {"x.py": "x = 1\n"}, branch="x", by="mallory")
    pull = hub.state.open_pull(REPO, "x", by="mallory", from_fork="mallory/lib")
    (tmp_path / "copy").mkdir()
    git(tmp_path / "copy", "init", "--quiet")
    remote = address(hub, hub.token(contents="read"))
    fetched = git(tmp_path / "copy", "fetch", remote, f"refs/pull/{pull.number}/head")
    assert fetched.returncode == 0, fetched.stderr
    assert git(tmp_path / "copy", "rev-parse", "FETCH_HEAD").stdout.strip() == sha


def test_workflows_are_pushed_only_with_the_permission(hub: Hub, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", address(hub, hub.token(contents="write")), "copy")
    copy = tmp_path / "copy"
    (copy / ".github/workflows").mkdir(parents=True)
    (copy / ".github/workflows/ci.yml").write_text("name: CI\n")
    git(copy, "add", ".")
    git(copy, "commit", "--quiet", "-m", "Run the tests")
    refused = git(copy, "push", "origin", "HEAD:refs/heads/ci")
    assert "without 'workflows' permission" in refused.stderr
    assert hub.state.repository(REPO).git.branch("ci") is None


def test_what_was_missing_is_found_once_it_is_there(hub: Hub) -> None:
    store = hub.state.repository(REPO).git
    tip = store.branch("main")
    assert tip
    late = "7f39ac4c6e16534411f5d94b2c7b32c8d12e0dd2"  # what `git hash-object` says of it
    assert store.kind(late) is None
    assert store.write_blob(b"late\n") == late
    assert (store.kind(late), store.blob(late)) == ("blob", b"late\n")
    before = store.count("main", tip)
    sha = hub.state.commit(REPO, {"late.py": "late\n"})
    assert (before, store.count("main", tip), store.branch("main")) == (0, 1, sha)
