"""`regreen serve` as it runs: a web process that answers whatever the job process does, and a parent that keeps both."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from regreen_playground import Playground, serve
from regreen_playground.things import Pull

from tests.soak.served import environment, free_port

pytestmark = pytest.mark.timeout(300)

_REPO = "acme/shop"


class Serving:
    """One `regreen serve` on a playground of its own."""

    def __init__(self, playground: Playground, home: Path) -> None:
        self.playground, self.port = playground, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        state = playground.state
        state.create(_REPO, {"shop.py": "PRICE = 1\n"})
        state.grant("alice", _REPO, "write")
        app, key = state.app("Regreen", hook_url=f"{self.url}/webhooks/github")
        self.app, self._log = app, home / "serve.log"
        database = f"sqlite:///{home / 'regreen.sqlite'}"
        self.env = environment(home, database, playground, app, key) | {"REGREEN_SANDBOX": "bwrap"}
        with self._log.open("wb") as log:
            argv = [sys.executable, "-m", "regreen", "serve", "--port", str(self.port)]
            self.parent = subprocess.Popen(
                argv, env=self.env, cwd=home, stdout=log, stderr=log, start_new_session=True
            )
        self.until(lambda: "worker main is running" in self.log)
        state.install(app, _REPO)

    @property
    def log(self) -> str:
        return self._log.read_text()

    def pid(self, name: str) -> int:
        """The newest process of that name."""
        return int(re.findall(rf"the {name} process is (\d+)", self.log)[-1])

    def is_alive(self) -> bool:
        """Whether it answers within a second."""
        with urllib.request.urlopen(f"{self.url}/healthz", timeout=1) as answer:  # noqa: S310
            return bool(answer.status == 200)

    def pull(self, branch: str) -> Pull:
        """Alice opens a pull request."""
        state = self.playground.state
        state.commit(_REPO, {f"{branch}.py": "X = 1\n"}, branch=branch, by="alice")
        return state.open_pull(_REPO, branch, by="alice", title=branch)

    def has_arrived(self, number: int) -> bool:
        """Whether all deliveries, at least so many, were acknowledged."""
        codes = [delivery.status_code for delivery in self.app.deliveries]
        return len(codes) >= number and all(code in {202, 204} for code in codes)

    def is_reviewed(self, pull: Pull) -> bool:
        checks = self.playground.state.checks_on(pull.base.full_name, pull.head_sha)
        return [check.status for check in checks] == ["completed"]

    def until(self, holds: Callable[[], bool], seconds: float = 120) -> None:
        deadline, over = time.monotonic() + seconds, threading.Event()
        while not holds():
            assert self.parent.poll() is None, self.log
            assert time.monotonic() < deadline, self.log
            over.wait(0.1)


@contextmanager
def served(home: Path) -> Iterator[Serving]:
    """`regreen serve`, until the end of the block."""
    with serve(port=0) as playground:
        running = Serving(playground, home)
        try:
            yield running
        finally:
            running.parent.terminate()
            try:
                running.parent.wait(60)
            finally:
                if running.parent.poll() is None:
                    os.killpg(running.parent.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """One for all tests that leave it running."""
    with served(tmp_path_factory.mktemp("serve")) as running:
        yield running


@pytest.fixture
def doomed(tmp_path: Path) -> Iterator[Serving]:
    """One for a test that ends it."""
    with served(tmp_path) as running:
        yield running


def _is_gone(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    return not status.exists() or "State:\tZ" in status.read_text()


def test_deliveries_are_taken_while_the_job_process_hangs(serving: Serving) -> None:
    before = len(serving.app.deliveries)
    os.kill(serving.pid("jobs"), signal.SIGSTOP)
    pull = serving.pull("change")
    for _ in range(5):
        assert serving.is_alive()
    serving.until(lambda: serving.has_arrived(before + 1), 20)
    assert not serving.is_reviewed(pull)
    os.kill(serving.pid("jobs"), signal.SIGCONT)
    serving.until(lambda: serving.is_reviewed(pull))


def test_a_job_process_that_dies_is_started_again(serving: Serving) -> None:
    first = serving.pid("jobs")
    os.kill(first, signal.SIGKILL)
    pull = serving.pull("another")
    serving.until(lambda: serving.is_reviewed(pull))
    assert serving.pid("jobs") != first
    assert "the jobs process has died (signal 9); it is started again" in serving.log


def test_a_web_process_that_dies_is_started_again(serving: Serving) -> None:
    os.kill(serving.pid("web"), signal.SIGKILL)
    serving.until(lambda: "the web process has died (signal 9)" in serving.log)
    with urllib.request.urlopen(f"{serving.url}/healthz", timeout=60) as answer:  # noqa: S310
        assert answer.status == 200, "whoever came meanwhile has only waited"


def test_a_delivery_is_run_again_beside_it(serving: Serving) -> None:
    pull = serving.pull("repeated")
    serving.until(lambda: serving.is_reviewed(pull))
    (guid, *_) = [d.guid for d in serving.app.deliveries if d.event == "pull_request"]
    argv = [sys.executable, "-m", "regreen", "redeliver", guid]
    done = subprocess.run(
        argv, env=serving.env, capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout.partition(":")[0]) == (0, "done"), done.stderr


def test_the_web_process_holds_no_parser(serving: Serving) -> None:
    web, jobs = (Path(f"/proc/{serving.pid(name)}/maps").read_text() for name in ("web", "jobs"))
    assert "cryptography" in jobs, "as GitHub's client needs it"
    assert not {name for name in ("cryptography", "tree_sitter", "ruamel") if name in web}


def test_a_taken_port_is_said_in_one_line(serving: Serving, tmp_path: Path) -> None:
    port = serving.url.rpartition(":")[2]
    argv = [sys.executable, "-m", "regreen", "serve", "--port", port]
    env = {
        **os.environ,
        "REGREEN_HOME": str(tmp_path),
        "REGREEN_APP_ID": "1",
        "REGREEN_PRIVATE_KEY": "-----BEGIN PRIVATE KEY-----",
    }
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert f"cannot listen on 127.0.0.1:{port}" in line


_BOMBS = {
    "go.mod": "module x\nrequire " + ".tr" * 40_000 + "\n",
    "src/app.ts": 'const key = "AKIAIOSFODNN7EXAMPLQ";\n' + "(" * 200_000,
    "pyproject.toml": "a" + ".a" * 20_000 + " = 1\n",
    ".github/workflows/x.yml": "a: &a [x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in pairwise("abcdefghij"))
    + "on: *j\n",
    "lines.txt": "\n" * 300_000,
    "deep.py": "x = " + "(" * 5_000 + ")" * 5_000 + "\n",
}


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_strangers_bombs_keep_nobody_from_an_answer(doomed: Serving) -> None:
    state, slowest = doomed.playground.state, 0.0
    state.create("acme/second", {"x.py": "X = 1\n"})
    state.grant("alice", "acme/second", "write")
    state.install(doomed.app, _REPO, "acme/second")
    state.person("mallory")
    fork = state.fork(_REPO, "mallory").full_name
    state.commit(fork, _BOMBS, branch="change", by="mallory")
    pull = state.open_pull(_REPO, "change", by="mallory", title="Mine", from_fork=fork)
    over = threading.Event()
    other = None
    deadline = time.monotonic() + 600
    while not doomed.is_reviewed(pull):
        assert time.monotonic() < deadline, doomed.log
        began = time.monotonic()
        assert doomed.is_alive()
        slowest = max(slowest, time.monotonic() - began)
        if other is None and "job review/" in doomed.log:  # in the thick of it
            state.commit("acme/second", {"y.py": "Y = 1\n"}, branch="y", by="alice")
            other = state.open_pull("acme/second", "y", by="alice", title="y")
        over.wait(0.2)
    assert slowest < 1.0
    assert other is not None
    seen = [other]
    doomed.until(lambda: state.checks_on("acme/second", seen[0].head_sha) != [], 300)
    assert {d.status_code for d in doomed.app.deliveries} <= {202, 204}


def test_a_signal_ends_them_all(doomed: Serving) -> None:
    children = [doomed.pid("web"), doomed.pid("jobs")]
    doomed.parent.terminate()
    assert doomed.parent.wait(60) == 0
    assert all(_is_gone(pid) for pid in children)


def test_children_end_when_their_parent_is_killed(doomed: Serving) -> None:
    children = [doomed.pid("web"), doomed.pid("jobs")]
    doomed.parent.kill()
    doomed.parent.wait()
    over, deadline = threading.Event(), time.monotonic() + 60
    while not all(_is_gone(pid) for pid in children):
        assert time.monotonic() < deadline, doomed.log
        over.wait(0.1)
