"""Acknowledging webhooks: requests per second and latency, ours beside others that check and keep the same delivery.

    python benchmarks/webhooks.py [--peers PYTHON] [--seconds 2] [--rounds 3] [--connections 1 16 64]

Every server checks the signature of the same 22 KB payload and answers 2xx. `none` stores nothing; `raw` stores
the delivery's id, repository and body in one SQLite insert (WAL, synchronous=FULL); `ours` is Regreen's web application:
the delivery's row, with its job process beside it, which makes and stores the jobs. These three run behind
Regreen's HTTP server with sixteen threads, `celery` behind gunicorn with one process of sixteen threads. With `--peers`, an interpreter that has flask,
gunicorn, celery, redis and pr-agent installed, two more are started for real: `celery` enqueues a task in Redis
(append-only, fsync always; `redis-server` has to be installed), and `pr-agent` is PR-Agent's own server with its
own gunicorn settings and one worker, which keeps nothing durable. Rounds are interleaved, because a shared machine
is never equally fast twice.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import http.client
import json
import multiprocessing
import os
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECRET = "benchmark"  # noqa: S105 - of this file alone


def payload() -> bytes:
    """A push to a pull request that is closed: the cheapest job, so that accepting is what is measured."""
    pull = {
        "number": 7,
        "draft": False,
        "user": {"login": "ann", "type": "User"},
        "head": {"sha": "a" * 40, "ref": "topic", "repo": {"id": 1}},
        "base": {"sha": "b" * 40, "ref": "main", "repo": {"id": 1}},
        "body": "x" * 21_000,
    }
    return json.dumps(
        {
            "action": "synchronize",
            "pull_request": pull,
            "repository": {"id": 1, "full_name": "octo/hello", "default_branch": "main"},
            "installation": {"id": 3},
            "sender": {"login": "ann", "type": "User"},
        }
    ).encode()


# The servers, each run by `python webhooks.py --serve NAME PORT HOME`


def application(name: str, home: Path) -> Any:
    """The WSGI application of one contestant."""
    if name == "ours":
        return ours(home)
    task = _celery_task() if name == "celery" else None
    from flask import Flask, Response, request

    local = threading.local()
    database = home / "raw.sqlite"
    if name == "raw":
        with sqlite3.connect(database) as setup:
            setup.execute("PRAGMA journal_mode=WAL")
            setup.execute(
                "CREATE TABLE IF NOT EXISTS d (id TEXT PRIMARY KEY, repo TEXT, body TEXT)"
            )
    flask = Flask("raw")

    def insert(delivery: str, repo: str, body: str) -> None:
        if not hasattr(local, "db"):
            local.db = sqlite3.connect(database, timeout=30, isolation_level=None)
            local.db.execute("PRAGMA synchronous=FULL")
        local.db.execute("INSERT OR IGNORE INTO d VALUES (?, ?, ?)", (delivery, repo, body))

    @flask.post("/webhooks/github")
    def github() -> Response:
        body = request.get_data()
        digest = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(request.headers["X-Hub-Signature-256"], f"sha256={digest}"):
            return Response(status=401)
        data = json.loads(body)
        if name == "raw":
            repo = data["repository"]["full_name"]
            insert(request.headers["X-GitHub-Delivery"], repo, body.decode())
        if task is not None:
            delivery = request.headers["X-GitHub-Delivery"]
            task.apply_async(
                (delivery, data["repository"]["full_name"], data["action"]), retry=False
            )
        return Response("accepted\n", status=202)

    return flask


def _celery_task() -> Any:
    from celery import Celery  # type: ignore[import-not-found]

    celery = Celery("peer", broker=os.environ["BENCH_REDIS"])
    celery.conf.task_ignore_result = True

    @celery.task(name="job")
    def job(*_: str) -> None:
        """What a worker would do."""

    return job


def ours(home: Path) -> Any:
    """Regreen's own web application, with a job process beside it, as `regreen serve` has it."""
    from pydantic import SecretStr

    from regreen.adapters.clock import SystemClock
    from regreen.app.web import DeliveryIntake, make_web_application, open_store
    from regreen.domain.settings import Settings

    settings = Settings(
        home=home,
        webhook_secret=SecretStr(SECRET),
        review_delay_s=3600,
        database_url=os.environ.get("BENCH_DATABASE_URL"),
    )
    clock = SystemClock()
    store = open_store(settings, clock)
    store.engine.dispose()
    multiprocessing.get_context("fork").Process(target=_jobs, args=(settings,), daemon=True).start()
    intake = DeliveryIntake(store, clock, settings)
    return make_web_application(settings, store, clock, intake)


def _jobs(settings: Any) -> None:
    from regreen.app.wiring import build_app

    class Nowhere:
        slug = "regreen"

        def failed_deliveries(self, _since: object) -> list[object]:
            return []

        def installations(self) -> list[object]:
            return []

    app = build_app(settings, github=Nowhere())  # type: ignore[arg-type]  # GitHub is never asked here
    app.make_worker().start()
    threading.Event().wait()


def serve(name: str, port: int, home: Path) -> None:
    """Run one contestant."""
    if name != "celery":
        from regreen.app.server import HttpServer as OurServer

        OurServer(application(name, home), socket.create_server(("127.0.0.1", port))).run()
        return
    from gunicorn.app.base import BaseApplication

    class Server(BaseApplication):  # type: ignore[misc]
        def load_config(self) -> None:
            options = {
                "bind": [f"127.0.0.1:{port}"],
                "workers": 1,
                "worker_class": "gthread",
                "threads": 16,
                "loglevel": "error",
                "keepalive": 30,
            }
            for key, value in options.items():
                self.cfg.set(key, value)

        def load(self) -> Any:
            return application(name, home)

    Server().run()


# The load


@dataclass(frozen=True)
class Result:
    """One cell."""

    rate: float
    p50: float
    p99: float
    bad: int


def load(port: int, path: str, connections: int, seconds: float) -> Result:
    """As many requests as `connections` can make one after the other."""
    body = payload()
    digest = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    times: list[float] = []
    bad = [0]
    ended = time.monotonic() + seconds

    def client() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        while time.monotonic() < ended:
            headers = {
                "X-Hub-Signature-256": f"sha256={digest}",
                "X-GitHub-Event": "pull_request",
                "X-GitHub-Delivery": str(uuid.uuid4()),
                "Content-Type": "application/json",
            }
            started = time.monotonic()
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            answer.read()
            times.append(time.monotonic() - started)
            if answer.status >= 300:
                bad[0] += 1
        connection.close()

    threads = [threading.Thread(target=client) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times.sort()
    return Result(
        len(times) / seconds, times[len(times) // 2], times[int(len(times) * 0.99)], bad[0]
    )


def main() -> None:
    """Measure, interleaved, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", help="an interpreter with what the peers need")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--serve", nargs=3, metavar=("NAME", "PORT", "HOME"))
    options = parser.parse_args()
    if options.serve:
        name, port, home = options.serve
        serve(name, int(port), Path(home))
        return
    with tempfile.TemporaryDirectory() as folder, ExitStack() as ends:
        servers = _start_all(Path(folder), options.peers, ends)
        cells: dict[tuple[str, int], list[Result]] = {}
        for _ in range(options.rounds):
            for connections in options.connections:
                for name, (port, path) in servers.items():
                    cell = load(port, path, connections, options.seconds)
                    cells.setdefault((name, connections), []).append(cell)
    _table(list(servers), options.connections, cells)


def _start_all(home: Path, peers: str | None, ends: ExitStack) -> dict[str, tuple[int, str]]:
    """Start every server; its port and path."""
    interpreters = dict.fromkeys(("none", "raw", "ours"), sys.executable)
    env = dict(os.environ)
    servers: dict[str, tuple[int, str]] = {}
    if peers is not None:
        interpreters["celery"] = peers
        redis = _free_port()
        env["BENCH_REDIS"] = f"redis://127.0.0.1:{redis}/0"
        keep = ["--appendonly", "yes", "--appendfsync", "always", "--save", "", "--dir", str(home)]
        argv = ["redis-server", "--port", str(redis), "--loglevel", "warning", *keep]
        _run(argv, env, ends)
        port = _free_port()
        servers["pr-agent"] = (port, "/api/v1/github_webhooks")
        _run(_pr_agent(peers, port), env | _PR_AGENT_ENV, ends)
    for name, interpreter in interpreters.items():
        (home / name).mkdir()
        port = _free_port()
        argv = [interpreter, __file__, "--serve", name, str(port), str(home / name)]
        _run(argv, env, ends)
        servers[name] = (port, "/webhooks/github")
    for port, _ in servers.values():
        _wait(port)
    time.sleep(5)  # let the first launch make its tables
    return {name: servers[name] for name in (*interpreters, *servers) if name in servers}


_PR_AGENT_ENV = {
    "GITHUB__WEBHOOK_SECRET": SECRET,
    "GITHUB__DEPLOYMENT_TYPE": "app",
    "GUNICORN_WORKERS": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}


def _pr_agent(peers: str, port: int) -> list[str]:
    """PR-Agent's server as its own image starts it, but on one worker, as all others."""
    bound = ["-k", "uvicorn.workers.UvicornWorker", "-b", f"127.0.0.1:{port}", "-w", "1"]
    return [
        peers,
        "-m",
        "gunicorn",
        *bound,
        "--log-level",
        "error",
        "pr_agent.servers.github_app:app",
    ]


def _run(argv: list[str], env: dict[str, str], ends: ExitStack) -> None:
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(argv, env=env, start_new_session=True, stdout=quiet, stderr=quiet)

    def end() -> None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    ends.callback(end)


def _table(names: list[str], sizes: list[int], cells: dict[tuple[str, int], list[Result]]) -> None:
    print("| connections | server | requests/s | p50 ms | p99 ms | x raw | refused |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for connections in sizes:
        raw = [r.rate for r in cells["raw", connections]]
        for name in names:
            found = cells[name, connections]
            ratio = statistics.median(r.rate / b for r, b in zip(found, raw, strict=True))
            print(
                f"| {connections} | {name} | {statistics.median(r.rate for r in found):.0f} | "
                f"{1000 * statistics.median(r.p50 for r in found):.1f} | "
                f"{1000 * statistics.median(r.p99 for r in found):.0f} | {ratio:.2f} | "
                f"{sum(r.bad for r in found)} |"
            )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait(port: int) -> None:
    for _ in range(900):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("a server did not start")


if __name__ == "__main__":
    main()
