"""What a developer reads who hands over the failed job's log too: only CI's own failure is repaired."""

from __future__ import annotations

import json
import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner

from regreen.cli import cli
from tests.unit.repairs import CALC, GREEN, SETUP, Repository, sandbox_or_skip

pytestmark = pytest.mark.sandbox
BROKEN = CALC.replace("result += value", "result = value")
LOG = """2026-01-05T10:00:00.0000000Z ##[group]Run pytest -q
2026-01-05T10:00:00.0000000Z pytest -q
2026-01-05T10:00:00.0000000Z ##[endgroup]
2026-01-05T10:00:01.0000000Z =========================== short test summary info ============================
2026-01-05T10:00:01.0000000Z FAILED {test} - assert 3 == 6
2026-01-05T10:00:01.0000000Z 1 failed, 2 passed in 0.03s
2026-01-05T10:00:01.0000000Z ##[error]Process completed with exit code 1.
"""
FAR = (
    "from urllib.request import urlopen\n\n\ndef test_far():\n"
    "    assert urlopen('http://{host}:{port}/', timeout=20).status == 200\n"
)


class Answers(BaseHTTPRequestHandler):
    """Says that all is well."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Nothing."""


def own_address() -> str:
    """An address of this machine that is not loopback: what a box without a network finds unreachable."""
    with socket.socket(type=socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return str(probe.getsockname()[0])


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    sandbox_or_skip()
    return Repository(tmp_path / "repo")


def fixed(repository: Repository, *argv: str) -> dict[str, Any]:
    return told(repository, "--setup", SETUP, *argv, "--", "pytest", "-q")


def told(repository: Repository, *argv: str) -> dict[str, Any]:
    given = ("fix", "--repo", str(repository.path), "--no-model", "--format", "json")
    whole = (*given, "--rungs", "recipe", *argv)
    done = CliRunner().invoke(cli, whole, standalone_mode=False, catch_exceptions=False)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def log_of(tmp_path: Path, test: str) -> str:
    (tmp_path / "job.log").write_text(LOG.format(test=test))
    return str(tmp_path / "job.log")


def test_another_failure_than_cis_is_none_to_repair(tmp_path: Path, repository: Repository) -> None:
    repository.commit("broken", {**GREEN, "pkg/calc.py": BROKEN})
    found = fixed(repository, "--log", log_of(tmp_path, "tests/test_shop.py::test_basket"))
    assert (found["outcome"], found["attempts"]) == ("not_reproduced", [])
    assert "it failed, but otherwise than in CI: tests/test_calc.py::test_total" in found["reason"]
    found = fixed(repository, "--log", log_of(tmp_path, "tests/test_calc.py::test_mean"))
    assert (found["outcome"], len(found["attempts"])) == ("gave_up", 1)


@pytest.mark.slow
def test_a_command_that_needs_a_network_gets_one_where_it_is_allowed(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = own_address()
    with ThreadingHTTPServer((host, 0), Answers) as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        port = server.server_address[1]
        monkeypatch.setenv("REGREEN_SETUP_HOSTS", f"{host}:{port}")
        far = FAR.format(host=host, port=port)
        repository.commit("far", {**GREEN, "tests/test_far.py": far})
        found = fixed(repository)
        assert found["before"]["failures"][0]["test"] == "tests/test_far.py::test_far"
        found = fixed(repository, "--allow-network")
        server.shutdown()
    assert found["outcome"] == "already_green"
    assert "# with a network: it cannot work without one" in found["before"]["command"]


WORKFLOW = """on: push
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: python -m unittest check
      - run: echo never reached
"""
CHECK = """import unittest


class T(unittest.TestCase):
    def test_one(self):
        self.assertEqual(1, 2)
"""
UNITTEST_LOG = """2026-01-05T10:00:00.0000000Z ##[group]Run python -m unittest check
2026-01-05T10:00:00.0000000Z ##[endgroup]
2026-01-05T10:00:01.0000000Z ======================================================================
2026-01-05T10:00:01.0000000Z FAIL: {test} (check.T.{test})
2026-01-05T10:00:01.0000000Z ----------------------------------------------------------------------
2026-01-05T10:00:01.0000000Z AssertionError: 1 != 2
2026-01-05T10:00:01.0000000Z
2026-01-05T10:00:01.0000000Z Ran 1 test in 0.001s
2026-01-05T10:00:01.0000000Z
2026-01-05T10:00:01.0000000Z FAILED (failures=1)
2026-01-05T10:00:01.0000000Z ##[error]Process completed with exit code 1.
"""


def test_the_step_that_the_log_shows_failing_is_the_one_that_is_run(
    tmp_path: Path, repository: Repository
) -> None:
    repository.commit("red", {"check.py": CHECK, "ci.yml": WORKFLOW})
    (tmp_path / "job.log").write_text(UNITTEST_LOG.format(test="test_one"))
    job = ("--workflow", str(repository.path / "ci.yml"), "--job", "test")
    found = told(repository, *job, "--log", str(tmp_path / "job.log"))
    assert found["before"]["command"] == "python -m unittest check"
    assert [one["test"] for one in found["before"]["failures"]] == ["check.T.test_one"]
    (tmp_path / "job.log").write_text(UNITTEST_LOG.format(test="test_two"))
    found = told(repository, *job, "--log", str(tmp_path / "job.log"))
    assert (found["outcome"], found["attempts"]) == ("not_reproduced", [])


NEEDS_ROOT = """on: push
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: sudo apt-get install -y libnobody-has-this-dev
      - run: python -m unittest check
"""


def test_what_a_box_cannot_give_is_named_and_nothing_is_repaired(repository: Repository) -> None:
    repository.commit("red", {"check.py": CHECK, "ci.yml": NEEDS_ROOT})
    found = told(repository, "--workflow", str(repository.path / "ci.yml"), "--job", "test")
    assert (found["outcome"], found["attempts"]) == ("not_reproduced", [])
    assert found["reason"].startswith("unsupported: apt-get install libnobody-has-this-dev")
