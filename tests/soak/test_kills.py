"""Kill -9 at any instant: nothing acknowledged is lost, nothing is written twice.

Long; `make soak` runs it. REGREEN_SOAK_KILLS says how many kills (200), REGREEN_SOAK_PAUSE_S how far apart they
are at most (10): further apart than a job takes, or every job looks like poison.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from regreen.adapters.connection import engine_for
from regreen.playground import Playground, serve
from regreen.playground.things import Pull

REPO = "acme/shop"
KILLS = int(os.environ.get("REGREEN_SOAK_KILLS", "200"))
PAUSE_S = float(os.environ.get("REGREEN_SOAK_PAUSE_S", "10"))
_STOPPED = "stopped after 5 attempts that did not end"
_FAULT = "import subprocess\n\n\ndef run(name):\n    subprocess.run('echo ' + name, shell=True)\n"

pytestmark = [pytest.mark.soak, pytest.mark.timeout(4 * 3600)]


class _Served:
    """`regreen serve` as its own process group, killed and started again."""

    def __init__(self, port: int, env: dict[str, str], home: Path) -> None:
        self._port, self._env, self._home = port, env, home
        self._log = (home / "serve.log").open("ab")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        argv = [sys.executable, "-m", "regreen", "serve", "--port", str(self._port)]
        self._process = subprocess.Popen(
            argv,
            env=self._env,
            cwd=self._home,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/healthz", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise AssertionError((self._home / "serve.log").read_text()[-3000:])

    def kill(self) -> None:
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._log.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'regreen.sqlite'}"
    return str(request.getfixturevalue("postgres"))


@pytest.fixture
def playground() -> Iterator[Playground]:
    with serve(port=0) as running:
        running.state.create(REPO, {"shop.py": "PRICE = 1\n"})
        running.state.grant("alice", REPO, "write")
        yield running


def test_two_hundred_kills(url: str, playground: Playground, tmp_path: Path) -> None:
    state = playground.state
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    app, key = state.app("Regreen", hook_url=f"http://127.0.0.1:{port}/webhooks/github")
    env = _environment(tmp_path, url, app.id, key, app.secret, playground.api_url)
    dice = random.Random(20261121)
    served = _Served(port, env, tmp_path)
    served.start()
    state.install(app, REPO)
    pulls: list[Pull] = []
    try:
        for kill in range(KILLS):
            pulls += _something_happens(playground, dice, kill)
            time.sleep(dice.uniform(0.05, PAUSE_S))
            served.kill()
            served.start()
        _drain(url)
    finally:
        served.close()
    acknowledged = {d.guid for d in app.deliveries if d.status_code == 202}
    _nothing_is_lost(url, acknowledged)
    for pull in pulls:
        _nothing_is_doubled(playground, pull)
    assert state.surprises == []


def test_a_dead_workers_jobs_are_taken_over(
    postgres: str, playground: Playground, tmp_path: Path
) -> None:
    state = playground.state
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    app, key = state.app("Regreen", hook_url=f"http://127.0.0.1:{port}/webhooks/github")
    env = _environment(tmp_path, postgres, app.id, key, app.secret, playground.api_url)
    served = _Served(port, env, tmp_path)
    served.start()
    argv = [sys.executable, "-m", "regreen", "worker", "--id", "second"]
    log = (tmp_path / "worker.log").open("ab")
    worker = subprocess.Popen(argv, env=env, cwd=tmp_path, stdout=log, stderr=log)
    try:
        state.install(app, REPO)
        pulls = [p for i in range(8) for p in _something_happens(playground, random.Random(i), i)]
        deadline = time.monotonic() + 240
        while not _holds_jobs(postgres, "second"):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        worker.kill()
        assert worker.wait() == -signal.SIGKILL
        _drain(postgres)
    finally:
        worker.kill()
        worker.wait()
        log.close()
        served.close()
    assert b"worker second is gone: taking over" in (tmp_path / "serve.log").read_bytes()
    _nothing_is_lost(postgres, {d.guid for d in app.deliveries if d.status_code == 202})
    for pull in pulls:
        _nothing_is_doubled(playground, pull)


def _holds_jobs(url: str, worker: str) -> bool:
    engine = engine_for(url)
    with engine.connect() as connection:
        query = sa.text("SELECT count(*) FROM jobs WHERE state = 'running' AND worker = :w")
        held = connection.execute(query, {"w": worker}).scalar_one()
    engine.dispose()
    return bool(held)


def _environment(  # noqa: PLR0917 - one a setting
    home: Path, url: str, app_id: int, key: str, secret: str, api_url: str
) -> dict[str, str]:
    (home / "key.pem").write_text(key)
    return {
        **os.environ,
        "REGREEN_HOME": str(home / "home"),
        "REGREEN_DATABASE_URL": url,
        "REGREEN_APP_ID": str(app_id),
        "REGREEN_PRIVATE_KEY_PATH": str(home / "key.pem"),
        "REGREEN_WEBHOOK_SECRET": secret,
        "REGREEN_GITHUB_API_URL": api_url,
        "REGREEN_REVIEW_DELAY_S": "0",
    }


def _something_happens(playground: Playground, dice: random.Random, kill: int) -> list[Pull]:
    state = playground.state
    branch = f"change-{kill}"
    text = _FAULT if dice.random() < 0.5 else f"X = {kill}\n"
    state.commit(REPO, {f"new_{kill}.py": text}, branch=branch, message="New", by="alice")
    pull = state.open_pull(REPO, branch, by="alice", title=f"Change {kill}")
    state.comment(pull, dice.choice(["/config", "/help\n/cancel", "/retry"]), by="alice")
    return [pull]


def _drain(url: str) -> None:
    """Wait until every job has ended."""
    engine = engine_for(url)
    deadline = time.monotonic() + 1800
    left = -1
    while left != 0 and time.monotonic() < deadline:
        with engine.connect() as connection:
            query = sa.text("SELECT count(*) FROM jobs WHERE state IN ('waiting', 'running')")
            left = connection.execute(query).scalar_one()
        time.sleep(1)
    engine.dispose()
    assert left == 0


def _nothing_is_lost(url: str, acknowledged: set[str]) -> None:
    engine = engine_for(url)
    with engine.connect() as connection:
        kept = set(connection.execute(sa.text("SELECT id FROM deliveries")).scalars())
        states = Counter(connection.execute(sa.text("SELECT state FROM jobs")).scalars())
        failed = connection.execute(
            sa.text("SELECT id, note FROM jobs WHERE state = 'failed'")
        ).all()
    engine.dispose()
    assert acknowledged <= kept
    # a job that was killed in five attempts running is taken for poison, and says so
    assert {note for _, note in failed} <= {_STOPPED}
    assert len(failed) <= states["done"] // 20


def _nothing_is_doubled(playground: Playground, pull: Pull) -> None:
    checks = playground.state.checks_on(REPO, pull.head_sha)
    assert len(checks) <= len({c.external_id for c in checks})
    reviews = Counter(_marker(r.body) for r in pull.reviews if r.body)
    comments = Counter(_marker(c.body) for c in pull.issue.comments if c.user.type == "Bot")
    assert all(n == 1 for n in (reviews + comments).values()), (pull.number, reviews, comments)


def _marker(body: str) -> str:
    return body[body.rfind("<!-- regreen:") :]
