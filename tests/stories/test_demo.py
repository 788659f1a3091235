"""The demo, as a newcomer starts it: the real command, its own process, the real App beside it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stories.test_fixes import needs_sandbox

pytestmark = [needs_sandbox, pytest.mark.sandbox]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC", "REGREEN"))}  # fmt: skip
    argv = [sys.executable, "-u", "-m", "regreen", "demo"]
    started = subprocess.Popen(argv, cwd=tmp_path, env=env | {"TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # fmt: skip
    with started:
        yield started
        started.kill()


@pytest.mark.slow
def test_whatever_ends_the_demo_ends_the_app_that_it_started(
    demo: subprocess.Popen[str], tmp_path: Path
) -> None:
    assert demo.stdout is not None
    said = next(line for line in demo.stdout if line.startswith("App: "))
    app = int(re.findall(r"process (\d+)", said)[0])
    demo.send_signal(signal.SIGTERM)
    assert demo.wait(timeout=60) == 128 + signal.SIGTERM
    assert not Path(f"/proc/{app}").exists()
    assert list(tmp_path.glob("regreen-demo-*")) == [], "nor does it leave its files"


def play_without_sandbox(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    nowhere = {"REGREEN_SANDBOX": "docker", "DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
    argv = [sys.executable, "-m", "regreen", "demo", *arguments]
    return subprocess.run(argv, cwd=tmp_path, env=os.environ | nowhere, capture_output=True, text=True, check=False, timeout=240)  # fmt: skip


@pytest.mark.slow
def test_without_a_sandbox_it_shows_the_review_and_names_what_it_leaves_out(tmp_path: Path) -> None:
    done = play_without_sandbox(tmp_path)
    assert done.returncode == 0, done.stdout
    assert "no Docker engine is running" in done.stdout
    assert "reviews #1: 3 comments on lines" in done.stdout
    assert "Left out, because code would have to run: failing CI is repaired" in done.stdout


def test_an_act_that_needs_a_sandbox_says_so_at_once(tmp_path: Path) -> None:
    done = play_without_sandbox(tmp_path, "--act", "2")
    assert (done.returncode, done.stdout) == (3, "")
    assert "no Docker engine is running" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.soak
def test_all_four_acts_are_played(demo: subprocess.Popen[str]) -> None:
    said, _ = demo.communicate(timeout=1800)
    assert demo.returncode == 0, said
    for words in ("reviews #1: 3 comments on lines", "CI on the repair #3: 'test' success", "(verified, ", "only people with write access may do that", "main is red since"):  # fmt: skip
        assert words in said
