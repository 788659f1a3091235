"""Pull requests that exhaust their reviewer, from forks, all at once, against `regreen serve`: everybody is answered.

Long; `make soak` runs it. The bombs are those of `test_hostile_pulls`.

    REGREEN_SOAK_KINDS   how many of the bombs (all of them)
    REGREEN_SOAK_REPORT  a file to which a line of JSON is appended
"""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from regreen_playground.gitstore import GitStore
from regreen_playground.things import CheckRun, Pull

from tests.contract.test_serve import Serving, served
from tests.soak.test_hostile_pulls import (
    LONG,
    MOST_MIB,
    PLANTED,
    QUICK,
    Bomb,
    kib,
    listening,
    proposed,
    settings_file,
    tree,
)

KINDS = int(os.environ.get("REGREEN_SOAK_KINDS", "1000"))
MOST_HEALTH_SECONDS = 1.0
ATTACKED, BESIDE = "victim", "acme/beside"

pytestmark = [pytest.mark.soak, pytest.mark.timeout(5400)]


def test_bombs_of_strangers_keep_nobody_from_an_answer(tmp_path: Path) -> None:
    with listening() as (address, callers), served(tmp_path) as serving:
        bombs = {name: make() for name, make in [*QUICK.items(), *LONG.items()][:KINDS]}
        bombs["settings that name an address"] = settings_file(address)
        pulls = _open_all(serving, bombs, tmp_path)
        with _watched(serving.url) as answers:
            peak = _until_reviewed(serving, pulls)
    checks = {name: _check(serving, pull) for name, pull in pulls.items()}
    took = {name: _seconds(check) for name, check in checks.items()}
    _report(answers, peak, took)
    assert len(answers) > len(pulls)
    assert max(answers) < MOST_HEALTH_SECONDS
    assert callers == []
    assert peak <= 2 * MOST_MIB, "two reviews run at a time"
    assert {check.conclusion for check in checks.values()} <= {"neutral", "failure"}
    found = {name: {t.comments[0].path for t in pull.threads} for name, pull in pulls.items()}
    assert {name: paths for name, paths in found.items() if not paths >= set(PLANTED)} == {}
    unnamed = {name: _unnamed(bombs[name], check) for name, check in checks.items()}
    assert {name: paths for name, paths in unnamed.items() if paths} == {}
    assert {d.status_code for d in serving.app.deliveries} <= {202, 204}
    assert "has died" not in serving.log
    assert "Traceback" not in serving.log


def _open_all(serving: Serving, bombs: dict[str, Bomb], folder: Path) -> dict[str, Pull]:
    """Mallory forks a repository for each bomb, and opens all pull requests at once."""
    state = serving.playground.state
    state.person("mallory")
    names = {kind: f"{ATTACKED}/r{at}" for at, kind in enumerate(bombs)}
    forks: dict[str, str] = {}
    for kind, bomb in bombs.items():
        written = GitStore(proposed(folder / names[kind], bomb).root / ".git")
        owner, _, name = names[kind].partition("/")
        bare = GitStore.create(state.root / owner / f"{name}.git", "main")
        bare.take(written, "refs/heads/main", "refs/heads/main")
        state.create(names[kind], bare=bare)
        fork = state.fork(names[kind], "mallory")
        fork.git.take(written, "refs/heads/change", "refs/heads/change")
        forks[kind] = fork.full_name
    state.create(BESIDE, {"x.py": "X = 1\n"})
    state.grant("alice", BESIDE, "write")
    state.install(serving.app, *names.values())
    state.install(serving.app, BESIDE)
    return {
        kind: state.open_pull(name, "change", by="mallory", title=kind, from_fork=forks[kind])
        for kind, name in names.items()
    }


def _until_reviewed(serving: Serving, pulls: dict[str, Pull]) -> int:
    """Wait until all are reviewed, and meanwhile one of somebody else's; MiB at the most."""
    peak, beside, waiting, over = 0, list[Pull](), dict(pulls), threading.Event()
    deadline = time.monotonic() + 60 + 60 * len(pulls)
    while waiting:
        assert serving.parent.poll() is None, serving.log[-5000:]
        assert time.monotonic() < deadline, (list(waiting), serving.log[-5000:])
        waiting = {k: p for k, p in waiting.items() if not serving.is_reviewed(p)}
        if not beside and len(waiting) < len(pulls):
            state = serving.playground.state
            state.commit(BESIDE, {"y.py": "Y = 1\n"}, branch="y", by="alice")
            beside.append(state.open_pull(BESIDE, "y", by="alice", title="y"))
        peak = max(peak, sum(map(kib, tree(serving.parent.pid))) // 1024)
        over.wait(0.5)
    ended = max(
        _check(serving, pull).completed or serving.playground.state.now() for pull in pulls.values()
    )
    assert serving.is_reviewed(beside[0])
    other = _check(serving, beside[0])
    assert other.completed is not None
    assert other.completed <= ended, "it waited for all of the stranger's"
    return peak


def _check(serving: Serving, pull: Pull) -> CheckRun:
    name = pull.base.full_name
    (check,) = serving.playground.state.checks_on(name, pull.head_sha)
    return check


def _seconds(check: CheckRun) -> float:
    assert check.completed is not None
    return (check.completed - check.started).total_seconds()


def _unnamed(bomb: Bomb, check: CheckRun) -> list[str]:
    """What was not read, and is not named."""
    said = f"{check.summary}\n{check.text}"
    return [path for path in bomb.unread if path not in said]


@contextmanager
def _watched(url: str) -> Iterator[list[float]]:
    """Have another process ask for the health again and again; how long each answer took."""
    answers: list[float] = []
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    watcher = context.Process(target=_watch, args=(url, theirs))
    watcher.start()
    try:
        yield answers
    finally:
        ours.send("end")
        answers += ours.recv()
        watcher.join()


def _watch(url: str, asker: Connection) -> None:
    answers: list[float] = []
    while not asker.poll(0.2):
        began = time.monotonic()
        with urllib.request.urlopen(f"{url}/healthz", timeout=60) as answer:  # noqa: S310
            answer.read()
        answers.append(time.monotonic() - began)
    asker.send(answers)


def _report(answers: list[float], peak: int, took: dict[str, float]) -> None:
    longest = sorted(took.items(), key=lambda item: -item[1])
    line = {
        "hostile_forks": len(took),
        "slowest_health_s": round(max(answers), 3),
        "health_asked": len(answers),
        "peak_mib": peak,
        "longest_s": {name: round(seconds, 1) for name, seconds in longest[:6]},
    }
    print(json.dumps(line))  # noqa: T201
    where = os.environ.get("REGREEN_SOAK_REPORT")
    if where:
        with Path(where).open("a") as report:
            report.write(json.dumps(line) + "\n")
