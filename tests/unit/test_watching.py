"""What an operator watches: metrics, and log lines that say which job they are about."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
from regreen_playground import serve

from regreen.adapters.clock import SystemClock
from regreen.adapters.sandbox.selection import choose_sandbox
from regreen.adapters.store.connection import engine_for
from regreen.adapters.store.database import Database
from regreen.adapters.traces import TracedSandbox
from regreen.app.metrics import MetricCounters, current_limits
from regreen.app.wiring import build_app
from regreen.bot.jobs.log_setup import log_context, log_to_stderr
from regreen.bot.sandbox_trust import SandboxProvider
from regreen.domain.events import Pinged
from regreen.domain.job_control import ContextThreadPool
from regreen.domain.models import Cost, EnvSpec
from regreen.domain.ports import NoTraces
from regreen.domain.records import JobRecord, LedgerLine, Order
from regreen.domain.settings import Settings
from regreen.domain.state_records import RateLimit
from regreen.webhooks.receive import WebhookDelivery
from tests.contract.sandboxes import tree
from tests.jobs import claim
from tests.stories.conftest import app_key
from tests.stories.test_fixes import needs_sandbox


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    database = Database(engine_for(f"sqlite:///{tmp_path / 'y.sqlite'}"), SystemClock())
    database.create_or_upgrade_tables()
    yield database
    database.engine.dispose()


@pytest.fixture
def job(tmp_path: Path) -> JobRecord:
    store = Database(engine_for(f"sqlite:///{tmp_path / 'x.sqlite'}"), SystemClock())
    store.create_or_upgrade_tables()
    store.store_orders([Order("fix/o/r/7/d", "fix", "o/r", 7, 1, "work", "o/r", 1, "{}")])
    found = claim(store, "fix/o/r/7/d", "main")
    store.engine.dispose()
    assert found is not None
    return found


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, as it was found afterwards."""
    logger = logging.getLogger()
    before, level = logger.handlers[:], logger.level
    yield logger
    logger.handlers[:] = before
    logger.setLevel(level)


def test_a_line_says_which_job_it_is_about(
    root: logging.Logger, job: JobRecord, capsys: pytest.CaptureFixture[str]
) -> None:
    root.handlers.clear()  # the test runner has its own
    log_to_stderr("json")
    with log_context(job):
        logging.getLogger("x").info("fetched %s", "https://ann:hunter22@host/x")
    logging.getLogger("x").info("nothing in particular")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert {k: lines[0][k] for k in ("level", "job", "repo", "number", "kind", "attempt")} == {
        "level": "info", "job": "fix/o/r/7/d", "repo": "o/r", "number": 7, "kind": "fix", "attempt": 1,
    }  # fmt: skip
    assert "hunter22" not in lines[0]["message"]
    assert "job" not in lines[1]


def test_a_line_for_people_names_the_job_once(
    root: logging.Logger, job: JobRecord, capsys: pytest.CaptureFixture[str]
) -> None:
    root.handlers.clear()
    log_to_stderr()
    with log_context(job):
        logging.getLogger("x").info("job %s starts", job.id)
        logging.getLogger("x").info("fetching")
    first, second = capsys.readouterr().err.splitlines()
    assert first.count(job.id) == 1
    assert second.endswith(f"fetching [{job.id}]")


def _value(shown: str, metric: str) -> float:
    (line,) = [line for line in shown.splitlines() if line.startswith(f"{metric} ")]
    return float(line.rpartition(" ")[2])


def test_what_a_meter_could_not_hand_over_it_hands_over_later(store: Database) -> None:
    meters = MetricCounters(store)
    meters.count_box("docker")
    meters.record_rate_limit(RateLimit("app", "core", 7, 5000, 1e12))
    with store.engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE counters RENAME TO elsewhere"))
        connection.execute(sa.text("CREATE VIEW counters AS SELECT * FROM elsewhere"))
    meters.flush_metrics()
    assert store.counters() == {}
    with store.engine.begin() as connection:
        connection.execute(sa.text("DROP VIEW counters"))
        connection.execute(sa.text("ALTER TABLE elsewhere RENAME TO counters"))
    meters.count_box("docker")
    meters.flush_metrics()
    assert store.counters() == {"sandbox_starts/docker": 2}
    assert [limit.left for limit in store.find_all(RateLimit)] == [7]


def test_a_limit_that_is_over_is_whole_again_and_forgotten_after_a_day(store: Database) -> None:
    clock = SystemClock()
    now = clock.now().timestamp()
    store.save(RateLimit("app", "core", 3, 5000, now - 60))
    store.save(RateLimit("app", "graphql", 3, 5000, now - 90_000))
    assert current_limits(store, clock) == [RateLimit("app", "core", 5000, 5000, now - 60)]


def test_threads_of_a_pool_know_the_job(
    root: logging.Logger, job: JobRecord, capsys: pytest.CaptureFixture[str]
) -> None:
    root.handlers.clear()
    log_to_stderr("json")
    with log_context(job), ContextThreadPool(2) as pool:
        list(pool.map(logging.getLogger("x").info, ["one", "two"]))
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["job"] for line in lines] == [job.id, job.id]


@needs_sandbox
@pytest.mark.sandbox
def test_every_box_that_opens_is_counted(store: Database) -> None:
    meters = MetricCounters(store)
    unproven = SandboxProvider(choose_sandbox, lambda _: "", SystemClock())
    sandbox = unproven.with_tracing(
        lambda held: TracedSandbox(held, NoTraces(), meters.count_box)
    )()
    env = sandbox.prepare(EnvSpec(), tree({}))
    for _ in range(2):
        with sandbox.open(env, tree({"a": "x"})) as box:
            assert box.run(["cat", "a"], timeout=20).stdout == "x"
    meters.flush_metrics()
    assert store.counters() == {f"sandbox_starts/{sandbox.name}": 2}


def test_metrics_count_queues_times_tokens_and_acknowledgements(tmp_path: Path) -> None:
    with serve(root=tmp_path / "hub", deliver=False) as playground:
        app, key = playground.state.app(
            "Regreen", hook_url="http://x/webhooks/github", keys=app_key()
        )
        settings = Settings(
            _env_file=None,
            app_id=app.id,
            private_key=key,
            github_api_url=playground.api_url,
            home=tmp_path / "home",
        )
        regreen = build_app(settings)
        client = regreen.wsgi.test_client()
        before = client.get("/metrics").text
        store = regreen.store
        store.store_orders(
            [Order(f"fix/o/r/7/{n}", "fix", "o/r", 7, 1, "work", f"{n}", 1, "{}") for n in range(3)]
        )
        for name in ("0", "1"):
            claim(store, f"fix/o/r/7/{name}", "main")
        store.end("fix/o/r/7/0", "done", "fixed")
        store.charge(
            LedgerLine(
                datetime.now(UTC), "fix/o/r/7/0", "o/r", 7, "fix", "m", Cost(0.5, 1, 20, 3, 4)
            )
        )
        regreen.intake.accept_delivery(
            WebhookDelivery("d1", "ping", Pinged("Keep it logically awesome."))
        )
        regreen.services.app.installations()  # a call to GitHub, whose answer tells the limit
        regreen.runner.hand_over()
        shown = client.get("/metrics").text
        regreen.services.app.installations()
        regreen.runner.hand_over()
        after = client.get("/metrics").text
        regreen.close()
    assert "regreen_github_limit_left{" not in before
    left = 'regreen_github_limit_left{owner="app",resource="core"}'
    assert 0 < _value(after, left) < _value(shown, left) < 5000
    assert _value(after, 'regreen_github_limit{owner="app",resource="core"}') == 5000
    for metric, number in {
        'regreen_queue_waiting{queue="work"}': 1, 'regreen_queue_running{queue="work"}': 1,
        'regreen_jobs{kind="fix",state="waiting"}': 1, 'regreen_jobs{kind="fix",state="done"}': 1,
        'regreen_job_seconds_count{kind="fix"}': 1, 'regreen_job_wait_seconds_count{kind="fix"}': 1,
        'regreen_model_tokens_total{way="read"}': 20, 'regreen_model_tokens_total{way="written"}': 3,
        'regreen_model_tokens_total{way="cached"}': 4, "regreen_model_usd": 0.5, "regreen_model_calls": 1,
        "regreen_acknowledgement_seconds_count": 1, "regreen_deliveries": 1,
    }.items():  # fmt: skip
        assert f"{metric} " not in before or _value(before, metric) == 0, metric
        assert _value(shown, metric) == number, metric
    for metric in ('regreen_queue_oldest_seconds{queue="work"}', "regreen_oldest_waiting_seconds"):
        assert 0 < _value(shown, metric) < _value(after, metric), metric
