"""SQLite is for one process that runs jobs: a second one is refused, and a dead one is in nobody's way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.stories.conftest import app_key


def environment(home: Path, url: str | None = None) -> dict[str, str]:
    pem, _ = app_key()
    settings = {
        "REGREEN_APP_ID": "1",
        "REGREEN_PRIVATE_KEY": pem,
        "REGREEN_WEBHOOK_SECRET": "x",
        "REGREEN_HOME": str(home),
        "REGREEN_GITHUB_API_URL": "http://127.0.0.1:9",
    }
    return os.environ | settings | ({"REGREEN_DATABASE_URL": url} if url else {})


def start_worker(home: Path, name: str, url: str | None = None) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "regreen", "worker", "--id", name]
    return subprocess.Popen(argv, env=environment(home, url), stderr=subprocess.PIPE, text=True)


def wait_until_running(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    lines: list[str] = []
    for line in process.stderr:
        lines.append(line)
        if "is running" in line:
            return
    raise AssertionError("".join(lines))


def test_a_second_worker_on_one_sqlite_file_is_refused_in_one_line(tmp_path: Path) -> None:
    with start_worker(tmp_path, "one") as first:
        try:
            wait_until_running(first)
            with start_worker(tmp_path, "two") as second:
                _, said = second.communicate(timeout=60)
            assert second.returncode == 2
            (tmp_path / "other").mkdir()
            (tmp_path / "other/link.sqlite").symlink_to(tmp_path / "regreen.sqlite")
            url = f"sqlite:///{tmp_path}/other/link.sqlite"
            with start_worker(tmp_path, "linked", url) as linked:
                try:
                    _, refused = linked.communicate(timeout=60)
                finally:
                    linked.kill()
            assert (linked.returncode, "another process runs the jobs" in refused) == (2, True)
            line = said.splitlines()[-1]
            assert line.startswith(f"regreen: another process runs the jobs of {tmp_path}/regreen.sqlite")  # fmt: skip
            assert "Traceback" not in said
            argv = [sys.executable, "-m", "regreen", "serve", "--port", "0"]
            served = subprocess.run(argv, env=environment(tmp_path), capture_output=True, text=True, check=False, timeout=60)  # fmt: skip
            assert served.returncode == 2
            assert "another process runs the jobs" in served.stderr
        finally:
            first.kill()
    with start_worker(tmp_path, "three") as third:
        try:
            wait_until_running(third)
        finally:
            third.kill()


def test_workers_share_a_postgresql_database(postgres: str, tmp_path: Path) -> None:
    with start_worker(tmp_path, "one", postgres) as first:
        try:
            wait_until_running(first)
            with start_worker(tmp_path, "two", postgres) as second:
                try:
                    wait_until_running(second)
                finally:
                    second.kill()
        finally:
            first.kill()
