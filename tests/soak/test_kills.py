"""Kill -9 at any instant: nothing acknowledged is lost, nothing is said twice, nothing finished is done again.

Long; `make soak` runs it. Reviews, repairs, bisections, schedules and commands go on while `regreen serve` is
killed: all of it, its parent alone, or one of its processes, at work or while it starts, with the database locked
now and then.

    REGREEN_SOAK_KILLS    how many kills (200)
    REGREEN_SOAK_SECONDS  stop killing after so many seconds, even if there were fewer (no limit)
    REGREEN_SOAK_SEED     what happens when (20261121)
    REGREEN_SOAK_PAUSE_S  how long it lives, on average, once it answers (4)
    REGREEN_SOAK_DRAIN_S  how long what is left may take after the last kill (1200)
    REGREEN_SOAK_REPORT   a file to which a line of JSON on each run is appended
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import sqlalchemy as sa
from regreen_playground import Playground, serve
from regreen_playground.model import ScriptedModel
from regreen_playground.things import Json

from regreen.adapters.store.connection import engine_for
from tests.soak import reckoning
from tests.soak.scenes import Scene
from tests.soak.served import Nursery, Served, environment, free_port

KILLS = int(os.environ.get("REGREEN_SOAK_KILLS", "200"))
SECONDS = float(os.environ.get("REGREEN_SOAK_SECONDS", "inf"))
PAUSE_S = float(os.environ.get("REGREEN_SOAK_PAUSE_S", "4"))
SEED = int(os.environ.get("REGREEN_SOAK_SEED", "20261121"))
_AT_ONCE = 6
_DRAIN_S = float(os.environ.get("REGREEN_SOAK_DRAIN_S", "1200"))

pytestmark = [pytest.mark.soak, pytest.mark.timeout(4 * 3600)]


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'regreen.sqlite'}"
    return str(request.getfixturevalue("postgres"))


@pytest.fixture
def playground() -> Iterator[Playground]:
    with serve(port=0) as running:
        yield running


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


class _Witness:
    """A model that never says the same thing twice, so that one can tell which of its answers was kept."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self.first: dict[str, str] = {}
        self.model = ScriptedModel(self._answer)

    def _answer(self, asked: Json) -> str:
        text = f"Answer number {next(self._numbers)}."
        self.first.setdefault(json.dumps(asked, sort_keys=True), text)
        return text


def test_two_hundred_kills(
    url: str, playground: Playground, nursery: Nursery, tmp_path: Path
) -> None:
    state, dice, witness = playground.state, random.Random(SEED), _Witness()
    port, scene = free_port(), Scene(playground, dice)
    names = scene.set_up()
    app, key = state.app("Regreen", hook_url=f"http://127.0.0.1:{port}/webhooks/github")
    env = environment(tmp_path, url, playground, app, key) | {
        "ANTHROPIC_API_KEY": "scripted",
        "ANTHROPIC_BASE_URL": witness.model.url,
    }
    served = Served(nursery, port, env, tmp_path)
    began, kills = time.monotonic(), 0
    try:
        served.start()
        state.install(app, *names)
        while kills < KILLS and time.monotonic() - began < SECONDS:
            if reckoning.live_jobs(url, besides="care") < _AT_ONCE:
                scene.something_happens()
            _one_kill(served, url, dice)
            kills += 1
        killing = time.monotonic() - began
        scene.calm_down()
        reckoning.drain(url, _DRAIN_S)
    finally:
        served.kill()
        witness.model.close()
        _report(url, kills, tmp_path, killing=time.monotonic() - began)
    reckoning.nothing_is_lost(url, app)
    for repository in scene.repositories():
        reckoning.nothing_is_doubled(repository)
    reckoning.nothing_finished_runs_again(url, witness.model, witness.first)
    assert state.surprises == []
    assert killing > 0


def _one_kill(served: Served, url: str, dice: random.Random) -> None:
    how = dice.random()
    if how < 0.1:
        with _locked(url):
            time.sleep(dice.uniform(0.2, 3.0))
            served.kill()
    elif how < 0.3:
        time.sleep(dice.expovariate(1 / PAUSE_S))
        served.kill_child(dice)
        served.answers()
        return
    elif how < 0.45:
        time.sleep(0.02 + dice.expovariate(1 / PAUSE_S))
        served.kill_parent()
    else:
        time.sleep(0.02 + dice.expovariate(1 / PAUSE_S))
        served.kill()
    # now and then it is killed again before it answers
    served.start(wait=dice.random() > 0.15)


class _locked:  # noqa: N801 - reads as a statement
    """Somebody else holds the database meanwhile, as a backup does."""

    def __init__(self, url: str) -> None:
        self._engine = engine_for(url)

    def __enter__(self) -> None:
        self._connection = self._engine.connect()
        if self._engine.dialect.name == "sqlite":
            self._connection.execute(sa.text("UPDATE jobs SET note = note WHERE 1 = 0"))
        else:
            # in the order in which a delivery is written, or both sides wait for each other
            lock = "LOCK TABLE deliveries, jobs, service_state IN ACCESS EXCLUSIVE MODE"
            with suppress(sa.exc.OperationalError):
                self._connection.execute(sa.text(lock))

    def __exit__(self, *_: object) -> None:
        self._connection.rollback()
        self._connection.close()
        self._engine.dispose()


def _report(url: str, kills: int, home: Path, killing: float) -> None:
    log = (home / "serve.log").read_text(errors="replace")
    line = {
        "database": url.partition(":")[0],
        "seed": SEED,
        "kills": kills,
        "seconds": round(killing),
        "jobs": reckoning.jobs_by_kind(url),
        "attempts_at_most": reckoning.most_attempts(url),
        "taken_up_by_mending": log.count("enqueued again") + log.count("taken up again"),
    }
    where = os.environ.get("REGREEN_SOAK_REPORT")
    if where:
        with Path(where).open("a") as report:
            report.write(json.dumps(line) + "\n")


def test_a_dead_workers_jobs_are_taken_over(
    postgres: str, playground: Playground, nursery: Nursery, tmp_path: Path
) -> None:
    state, port = playground.state, free_port()
    scene = Scene(playground, random.Random(1))
    names = scene.set_up()
    app, key = state.app("Regreen", hook_url=f"http://127.0.0.1:{port}/webhooks/github")
    env = environment(tmp_path, postgres, playground, app, key)
    served = Served(nursery, port, env, tmp_path)
    served.start()
    argv = [sys.executable, "-m", "regreen", "worker", "--id", "second"]
    log = (tmp_path / "worker.log").open("ab")
    worker = subprocess.Popen(argv, env=env, cwd=tmp_path, stdout=log, stderr=log)
    try:
        state.install(app, *names)
        for _ in range(8):
            scene.something_happens()
        _until(lambda: _holds_jobs(postgres, "second"), 240)
        worker.kill()
        assert worker.wait() == -signal.SIGKILL
        reckoning.drain(postgres, _DRAIN_S)
    finally:
        worker.kill()
        worker.wait()
        log.close()
        served.kill()
    assert b"worker second is gone: taking over" in served.log.read_bytes()
    reckoning.nothing_is_lost(postgres, app)
    for repository in scene.repositories():
        reckoning.nothing_is_doubled(repository)


def _until(holds: Callable[[], bool], seconds: float) -> None:
    deadline, over = time.monotonic() + seconds, threading.Event()
    while not holds():
        assert time.monotonic() < deadline
        over.wait(0.2)


def _holds_jobs(url: str, worker: str) -> bool:
    engine = engine_for(url)
    with engine.connect() as connection:
        query = sa.text("SELECT count(*) FROM jobs WHERE state = 'running' AND worker = :w")
        held = connection.execute(query, {"w": worker}).scalar_one()
    engine.dispose()
    return bool(held)
