"""How long a page of the dashboard takes beside 100,000 rows, against the same page over an empty database.

python benchmarks/dashboard.py [--rows 100000] [--url postgresql://...]
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from flask import Flask
from flask.testing import FlaskClient
from pydantic import SecretStr

from regreen.adapters.clock import SystemClock
from regreen.adapters.store import tables as t
from regreen.adapters.store.connection import engine_for
from regreen.adapters.store.database import Database
from regreen.dashboard.pages import make_dashboard
from regreen.domain.settings import Settings

DICE = random.Random(7)
KINDS = ("review", "fix", "bisect", "comment", "tick", "care")
STATES = ("done",) * 995 + ("failed",) * 3 + ("cancelled", "running")
EVENT = json.dumps({"kind": "Fix", "hint": "x" * 900})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--url", default="")
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        empty = client(f"sqlite:///{home}/empty.sqlite")
        full = client(asked.url or f"sqlite:///{home}/full.sqlite", asked.rows)
        print(f"{'page':58}{'empty':>9}{'full':>9}{'worst':>9}{'cpu':>9}")
        for page in pages(full):
            nothing, everything = timed(empty, page, asked.rounds), timed(full, page, asked.rounds)
            began = time.process_time()
            full.get(page)
            cpu = time.process_time() - began  # what it would be with nobody else on the machine
            shown = (
                statistics.median(nothing),
                statistics.median(everything),
                max(everything),
                cpu,
            )
            print(f"{page[:56]:58}" + "".join(f"{1000 * s:7.1f}ms" for s in shown))


def client(url: str, rows: int = 0) -> FlaskClient:
    store = Database(engine_for(url), SystemClock())
    store.create_or_upgrade_tables()
    if rows:
        fill(store, rows)
    app = Flask("benchmark")
    settings = Settings(dashboard_auth=SecretStr("benchmark"))
    app.register_blueprint(make_dashboard(store, settings, SystemClock(), order=lambda _: None))
    client = app.test_client()
    client.environ_base["HTTP_AUTHORIZATION"] = "Bearer benchmark"
    return client


def fill(store: Database, rows: int) -> None:
    now = datetime.now(UTC)
    repos = [f"acme/shop{n}" for n in range(50)]
    body = json.dumps(
        {
            "outcome": "fixed",
            "rung": "model",
            "cause": "y" * 200,
            "findings": [],
            "trail": "z" * 4000,
        }
    )

    def at(n: int) -> float:
        return (now - timedelta(seconds=n * 60)).timestamp()

    def spread(make: Callable[[int], dict[str, object]]) -> Iterator[list[dict[str, object]]]:
        for first in range(0, rows, 5000):
            yield [make(n) for n in range(first, min(rows, first + 5000))]

    def job(n: int) -> dict[str, object]:
        repo = repos[n % 50]
        return {
            "id": f"fix/{repo}/{n}", "kind": DICE.choice(KINDS), "repo": repo, "number": n % 400, "installation": 1,
            "queue": "work", "key": repo, "priority": 1, "event": EVENT, "replaces": None, "state": DICE.choice(STATES),
            "attempts": 1, "created": at(n), "due": at(n), "started": at(n), "ended": at(n), "worker": "main",
            "note": "fixed by a recipe" if n != rows - 1 else "a needle", "progress": "",
        }  # fmt: skip

    makers = {
        t.jobs: job,
        t.deliveries: lambda n: {"id": f"d{n}", "name": "push", "repo": repos[n % 50], "event": EVENT, "received": at(n)},
        t.documents: lambda n: {"kind": ("review", "fix", "bisect")[n % 3], "repo": repos[n % 50], "subject": str(n), "number": n % 400, "job": f"fix/{repos[n % 50]}/{n}", "at": at(n), "body": body},
        t.ledger: lambda n: {"at": at(n), "job": f"fix/{repos[n % 50]}/{n}", "repo": repos[n % 50], "number": n % 400, "purpose": "fix", "model": "m", "usd": 0.01, "calls": 1, "input_tokens": 1, "output_tokens": 1, "cached_tokens": 0},
        t.actions: lambda n: {"at": at(n), "job": f"fix/{repos[n % 50]}/{n}", "repo": repos[n % 50], "number": n % 400, "asked_by": "ann", "action": "fix", "detail": "x"},
    }  # fmt: skip
    with store.engine.begin() as connection:
        for table, make in makers.items():
            for some in spread(make):
                connection.execute(sa.insert(table), some)


def pages(full: FlaskClient) -> list[str]:
    """Each page, and of the longest list the next one, the filters, and words that stand in the oldest row only."""
    listed = full.get("/jobs").text
    older = listed.partition('href="/jobs?after=')[2].partition('"')[0]
    deep = f"{datetime.now(UTC).timestamp() - 60 * 90_000},x"
    return [
        "/", "/jobs", f"/jobs?after={older}", f"/jobs?after={deep}", "/jobs?state=done", "/jobs?state=failed",
        "/jobs?kind=bisect", "/jobs?repo=acme/shop7", "/jobs?repo=acme/shop7&state=failed", "/jobs?number=7", "/jobs?q=needle",
        "/reviews", "/reviews?repo=acme/shop7", "/fixes?q=needle", "/bisections", "/deliveries", "/deliveries?repo=acme/shop7",
        "/deliveries?q=needle", "/ledger", "/ledger?repo=acme/shop7", "/audit", "/audit?repo=acme/shop7", "/audit?q=needle",
        "/calibration", "/repositories/acme/shop7", "/jobs/fix/acme/shop7/7",
    ]  # fmt: skip


def timed(page: FlaskClient, address: str, rounds: int) -> list[float]:
    spans = []
    for _ in range(rounds):
        began = time.perf_counter()
        page.get(address)
        spans.append(time.perf_counter() - began)
    return spans


if __name__ == "__main__":
    main()
