"""A git server that accepts a connection and says nothing delays no job for long, and /cancel reaches git."""

from __future__ import annotations

import fcntl
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Timer
from typing import cast

import pytest

from regreen.adapters.git.mirrors import GitMirrors
from regreen.adapters.git.process import GitTimeouts, run_git
from regreen.adapters.git.repository import GitRepository
from regreen.domain.errors import Cancelled, OutsideError
from regreen.domain.github import GitHub, Repository
from tests.checkout import Checkout

# Never asked: the lock is waited for before the token is.
_GITHUB = cast("GitHub", None)


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a repository whose server accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/a/b.git"


def children() -> set[str]:
    """The git processes that this process has started, and theirs."""
    if shutil.which("ps") is None:
        pytest.skip("no ps on this machine")
    listed = subprocess.run(
        ["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True
    ).stdout
    return {row for row in listed.splitlines() if "git" in row and "127.0.0.1" in row}


def ends_all_git(silent: str) -> bool:
    """Whether no git process speaks to this address any more; the kernel takes a moment to end those that are killed."""
    until = time.monotonic() + 5
    while any(silent in row for row in children()):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def test_a_fetch_from_a_silent_server_ends_when_nothing_was_transferred(
    silent: str, tmp_path: Path
) -> None:
    begun = time.monotonic()
    with pytest.raises(OutsideError, match="cannot fetch from"):
        GitRepository.clone_mirror(silent, tmp_path / "m.git", timeouts=GitTimeouts(stalled=1))
    assert time.monotonic() - begun < 20


def test_a_fetch_that_takes_too_long_is_killed_with_its_children(
    silent: str, tmp_path: Path
) -> None:
    limits = GitTimeouts(stalled=600, transfer=1.0)
    with pytest.raises(OutsideError, match="git fetch was stopped: it took longer than 1 s"):
        GitRepository.clone_mirror(silent, tmp_path / "m.git", timeouts=limits)
    assert ends_all_git(silent)


def test_a_cancelled_job_does_not_wait_for_git(silent: str, tmp_path: Path) -> None:
    cancel = Event()
    Timer(0.5, cancel.set).start()
    begun = time.monotonic()
    with pytest.raises(Cancelled):
        GitRepository.clone_mirror(silent, tmp_path / "m.git", cancel=cancel)
    assert time.monotonic() - begun < 20
    assert ends_all_git(silent)


def test_a_cancelled_job_does_not_wait_for_another_jobs_fetch(silent: str, tmp_path: Path) -> None:
    cancel = Event()
    with (tmp_path / "7.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        Timer(0.5, cancel.set).start()
        with pytest.raises(Cancelled):
            GitMirrors(tmp_path).fetch(_GITHUB, Repository("a/b", 7, "main", silent), cancel=cancel)


def test_a_local_command_has_a_time_limit_as_well(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "checkout")
    checkout.commit("one", a="1\n")
    begun = time.monotonic()
    with pytest.raises(OutsideError, match="longer than 1 s"):
        run_git(["-C", str(checkout.root), "-c", "alias.slow=!sleep 60", "slow"], timeout=1.0)
    assert time.monotonic() - begun < 20
