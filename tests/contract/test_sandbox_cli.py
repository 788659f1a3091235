"""`regreen sandbox` and `regreen doctor`, as a person or a script calls them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract.sandboxes import BACKENDS, sandbox_or_skip

pytestmark = pytest.mark.sandbox


def regreen(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "regreen", *arguments],
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.parametrize("kind", BACKENDS)
def test_the_document_is_exact(kind: str, tmp_path: Path) -> None:
    sandbox_or_skip(kind)
    (tmp_path / "a.txt").write_text("tracked or not")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("[core]\nfsmonitor = touch /tmp/owned\n")
    (tmp_path / "link").symlink_to("/etc/shadow")
    os.mkfifo(tmp_path / "fifo")
    done = regreen(
        "sandbox", "--tree", str(tmp_path), "--sandbox", kind, "--env", "A=1", "--read", "a.txt", "--read", "link",
        "--read", "none", "--format", "json", "--", "sh", "-c", "ls -A; echo $A >&2; exit 3",
    )  # fmt: skip
    document = json.loads(done.stdout)
    assert done.returncode == 1
    assert document.pop("seconds") > 0
    assert document == {
        "version": 1,
        "backend": kind,
        "exit_code": 3,
        "ended": "exit",
        "stdout": "a.txt\nlink\n",
        "stderr": "1\n",
        "truncated": False,
        "detail": "",
        "files": {"a.txt": "tracked or not", "link": None, "none": None},
    }


@pytest.mark.parametrize("kind", BACKENDS)
def test_a_timeout_is_a_no_and_takes_the_files_along(kind: str) -> None:
    sandbox_or_skip(kind)
    done = regreen("sandbox", "--sandbox", kind, "--timeout", "1", "--read", "x", "--format", "json", "--",
                   "sh", "-c", "echo 1 > x; sleep 60")  # fmt: skip
    document = json.loads(done.stdout)
    assert (done.returncode, document["ended"], document["exit_code"]) == (1, "timeout", None)
    assert document["files"] == {"x": None}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--"], "COMMAND"),
        (["--env", "novalue", "--", "true"], "K=V"),
        (["--memory", "5", "--", "true"], "memory of at least"),
        (["--tree", "/no/such/place", "--", "true"], "/no/such/place"),
        (["--sandbox", "none", "--", "true"], "none"),
        (["--python", "3.99", "--", "true"], "3.99"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(arguments: list[str], says: str) -> None:
    sandbox_or_skip("docker")
    done = regreen("sandbox", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_no_sandbox_is_exit_3_with_the_remedy(tmp_path: Path) -> None:
    away = {"DOCKER_HOST": f"unix://{tmp_path}/none.sock", "PATH": str(tmp_path), "PYTHONWARNINGS": "default"}  # fmt: skip
    done = regreen("sandbox", "--sandbox", "auto", "--format", "json", "--", "true", env=away)
    assert (done.returncode, done.stdout) == (3, "")
    assert "systemctl start docker" in done.stderr
    assert "install bubblewrap" in done.stderr
    assert "ResourceWarning" not in done.stderr  # a connection that fails is closed


def test_a_tree_larger_than_the_disk_is_refused_before_it_is_read(tmp_path: Path) -> None:
    sandbox_or_skip("docker")
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(2**40)
    done = regreen("sandbox", "--tree", str(tmp_path), "--", "true")
    assert done.returncode == 2
    assert "more disk" in done.stderr


def test_the_doctor_answers_for_the_rest_of_the_machine(tmp_path: Path) -> None:
    home = {"REGREEN_HOME": str(tmp_path)}
    done = regreen(
        "doctor",
        "--only",
        "git",
        "--only",
        "database",
        "--only",
        "config",
        "--format",
        "json",
        env=home,
    )
    document = json.loads(done.stdout)
    assert (done.returncode, document["version"]) == (0, 1)
    assert {check["group"] for check in document["checks"]} == {"git", "database", "config"}
    assert all(
        set(check) == {"name", "group", "ok", "required", "detail", "remedy"}
        for check in document["checks"]
    )


def test_the_doctor_says_no_where_no_sandbox_works(tmp_path: Path) -> None:
    away = {"DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
    done = regreen(
        "doctor", "--only", "sandbox", "--sandbox", "docker", "--format", "json", env=away
    )
    (check,) = json.loads(done.stdout)["checks"]
    assert (done.returncode, check["ok"], check["required"]) == (1, False, True)
    assert "start docker" in check["remedy"]
