"""A day with ten thousand deliveries, in minutes: everything is answered, and memory stays flat.

Long; `make soak` runs it. The App's clock is hastened, so that a day's schedules, upkeep and worn-out tokens come.

    REGREEN_SOAK_DELIVERIES  how many (10000)
    REGREEN_SOAK_DAY_S       how long the day takes (240)
    REGREEN_SOAK_REPORT      a file to which a line of JSON is appended
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from regreen_playground import serve

from tests.soak import reckoning
from tests.soak.served import environment, free_port

DELIVERIES = int(os.environ.get("REGREEN_SOAK_DELIVERIES", "10000"))
DAY_S = float(os.environ.get("REGREEN_SOAK_DAY_S", "240"))
REPO = "acme/shop"
_MOST_MB = 190.0
_CONFIG = (
    "bisect:\n  schedules:\n    - {name: nightly, cron: '0 3 * * *', branch: gone, test: 'true'}\n"
)

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]


def test_a_day_with_ten_thousand_deliveries(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'regreen.sqlite'}"
    port = free_port()
    with serve(port=0, deliver=False) as playground:
        state = playground.state
        state.create(REPO, {"shop.py": "PRICE = 1\n", ".github/regreen.yml": _CONFIG})
        state.grant("alice", REPO, "write")
        state.commit(REPO, {"a.py": "A = 1\n"}, branch="change", by="alice")
        pull = state.open_pull(REPO, "change", by="alice", draft=True)
        app, key = state.app("Regreen", hook_url="")
        installation = state.install(app, REPO)
        where: dict[str, Any] = {
            "repository": {
                "id": state.repository(REPO).id,
                "full_name": REPO,
                "default_branch": "main",
            },
            "installation": {"id": installation.id},
            "sender": {"login": "alice", "type": "User"},
        }
        env = environment(tmp_path, url, playground, app, key)
        log = (tmp_path / "serve.log").open("ab")
        argv = [sys.executable, "-m", "tests.soak.fast_serve", str(port), str(86_400 / DAY_S)]
        root = Path(__file__).parents[2]
        serving = subprocess.Popen(
            argv, env=env, cwd=root, stdout=log, stderr=log, start_new_session=True
        )
        try:
            _answers(port)
            sizes = _a_day(port, app.secret, where, pull.number, pull.head_sha, serving.pid)
            reckoning.drain(url, 900)
            sizes.append(memory_mb(serving.pid))
        finally:
            os.killpg(serving.pid, signal.SIGKILL)
            serving.wait()
            log.close()
        assert state.surprises == []
    _report(url, sizes)
    early = max(sizes[: len(sizes) // 4])
    assert max(sizes) < _MOST_MB
    assert sizes[-1] < early * 1.1, sizes
    assert b"Traceback" not in (tmp_path / "serve.log").read_bytes()


def _a_day(  # noqa: PLR0917 - where and what
    port: int, secret: str, where: dict[str, Any], number: int, sha: str, pid: int
) -> list[float]:
    """Deliver at an even pace; the worker's memory, a hundred times."""
    dice, sizes = random.Random(1), list[float]()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    began = time.monotonic()
    for count, (name, payload) in enumerate(_events(dice, where, number, sha)):
        body = json.dumps(payload).encode()
        digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        headers = {
            "X-GitHub-Event": name,
            "X-GitHub-Delivery": str(uuid.UUID(int=dice.getrandbits(128))),
            "X-Hub-Signature-256": f"sha256={digest}",
        }
        connection.request("POST", "/webhooks/github", body, headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status in {202, 204}, (name, answer.status)
        if count % max(1, DELIVERIES // 100) == 0:
            sizes.append(memory_mb(pid))
        time.sleep(max(0.0, began + DAY_S * count / DELIVERIES - time.monotonic()))
    connection.close()
    return sizes


def _events(
    dice: random.Random, where: dict[str, Any], number: int, sha: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a busy organisation sends: mostly what concerns nobody, some talk, a few commands."""
    account = {"login": "alice", "type": "User"}
    pull = {
        "number": number,
        "draft": True,
        "user": account,
        "head": {"sha": sha, "ref": "change", "repo": {"id": where["repository"]["id"]}},
        "base": {"sha": sha, "ref": "main", "repo": {"id": where["repository"]["id"]}},
        "body": "x" * 8000,
    }
    for count in range(DELIVERIES):
        said = {"id": count + 1, "body": "Looks good to me. " * 40, "author_association": "NONE"}
        issue = {"number": number, "pull_request": {"url": "x"}}
        talk = {**where, "action": "created", "issue": issue}
        bot = {**talk, "sender": {"login": "ci[bot]", "type": "Bot"}, "comment": said}
        kinds: list[tuple[float, str, dict[str, Any]]] = [
            (0.35, "issue_comment", bot),
            (0.25, "push", {**where, "ref": "refs/heads/topic", "after": sha}),
            (0.20, "pull_request", {**where, "action": "closed", "pull_request": pull}),
            (0.10, "pull_request", {**where, "action": "synchronize", "pull_request": pull}),
            (0.05, "workflow_run", {**where, "action": "requested"}),
            (0.04, "issue_comment", {**talk, "comment": said}),
            (0.01, "issue_comment", {**talk, "comment": {**said, "body": "/config"}}),
        ]
        weights = [weight for weight, _, _ in kinds]
        _, name, payload = dice.choices(kinds, weights)[0]
        yield name, payload


def _answers(port: int) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/healthz")
            if connection.getresponse().status == 200:
                return
        except OSError:
            time.sleep(0.2)
        finally:
            connection.close()
    raise AssertionError("it does not answer")


def memory_mb(parent: int) -> float:
    """What `regreen serve` and its processes hold together, shared pages counted once."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    rows = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in (parent, *children)]
    kilobytes = [
        line.split()[1] for row in rows for line in row.splitlines() if line.startswith("Pss:")
    ]
    return sum(map(int, kilobytes)) / 1024


def _report(url: str, sizes: list[float]) -> None:
    line = {
        "day": True,
        "deliveries": DELIVERIES,
        "seconds": DAY_S,
        "pss_mb": [round(size, 1) for size in sizes[:: max(1, len(sizes) // 12)]],
        "pss_last_mb": round(sizes[-1], 1),
        "jobs": reckoning.jobs_by_kind(url),
    }
    where = os.environ.get("REGREEN_SOAK_REPORT")
    if where:
        with Path(where).open("a") as report:
            report.write(json.dumps(line) + "\n")
