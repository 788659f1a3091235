"""`/healthz`, `/readyz` and `/metrics`."""

from __future__ import annotations

from collections.abc import Iterator

from flask import Blueprint, Response
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from regreen.bot.care import SANDBOX_NOTE
from regreen.bot.desk import Desk
from regreen.bot.meters import STARTS
from regreen.listing import Watched
from regreen.records import Store

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def acknowledgements() -> Histogram:
    """How long this process takes to make a delivery durable; GitHub waits ten seconds."""
    return Histogram(
        "regreen_acknowledgement_seconds",
        "Time until a webhook delivery was durable.",
        buckets=_BUCKETS,
        registry=None,
    )


def health(desk: Desk, store: Watched, acknowledged: Histogram) -> Blueprint:
    """The pages that machines ask for."""
    pages = Blueprint("health", __name__)
    registry = CollectorRegistry()
    registry.register(_Counts(store))
    registry.register(acknowledged)

    @pages.get("/healthz")
    def healthz() -> Response:
        return Response("ok\n", mimetype="text/plain")

    @pages.get("/readyz")
    def readyz() -> Response:
        lines = [_database(desk.store), _sandbox(desk)]
        status = 200 if lines[0].endswith("ok") else 503
        return Response("\n".join(lines) + "\n", status=status, mimetype="text/plain")

    @pages.get("/metrics")
    def metrics() -> Response:
        return Response(generate_latest(registry), content_type=CONTENT_TYPE)

    return pages


def _database(store: Store) -> str:
    return "database: ok" if store.is_healthy() else "database: does not take writes"


def _sandbox(desk: Desk) -> str:
    """Without a sandbox reviews go on, so this is told and does not count against readiness."""
    noted = desk.store.get(*SANDBOX_NOTE)
    return f"sandbox: {'not tried yet' if noted is None else noted or 'ok'}"


class _Counts(Collector):
    """Counts from the store, read when they are asked for: the same whichever process answers."""

    def __init__(self, store: Watched) -> None:
        self._store = store

    def collect(self) -> Iterator[Metric]:
        """Every metric, one query."""
        jobs = GaugeMetricFamily(
            "regreen_jobs", "Jobs by kind and state.", labels=["kind", "state"]
        )
        for kind, state, number in self._store.job_counts():
            jobs.add_metric([kind, state], number)
        yield jobs
        totals = self._store.totals()
        yield GaugeMetricFamily(
            "regreen_deliveries", "Webhook deliveries kept.", value=totals.deliveries
        )
        yield GaugeMetricFamily(
            "regreen_model_usd", "What model calls have cost, US dollars.", value=totals.usd
        )
        yield GaugeMetricFamily("regreen_model_calls", "Model calls.", value=totals.calls)
        yield GaugeMetricFamily(
            "regreen_oldest_waiting_seconds",
            "How long the job that waits longest has been due.",
            value=totals.oldest_waiting_s,
        )
        yield from self._queues()
        yield from self._spans()
        tokens = self._store.tokens()
        spent = CounterMetricFamily(
            "regreen_model_tokens", "Tokens of model calls.", labels=["way"]
        )
        for way in ("read", "written", "cached"):
            spent.add_metric([way], getattr(tokens, way))
        yield spent
        yield from self._outside()

    def _outside(self) -> Iterator[Metric]:
        opened = CounterMetricFamily(
            "regreen_sandbox_starts", "Boxes that were opened.", labels=["backend"]
        )
        for name, number in sorted(self._store.counters().items()):
            if name.startswith(STARTS):
                opened.add_metric([name.removeprefix(STARTS)], number)
        labels = ["owner", "resource"]
        left = GaugeMetricFamily(
            "regreen_github_limit_left", "Requests that GitHub still takes.", labels=labels
        )
        most = GaugeMetricFamily(
            "regreen_github_limit", "Requests that GitHub takes an hour.", labels=labels
        )
        for limit in self._store.limits():
            left.add_metric([limit.owner, limit.resource], limit.left)
            most.add_metric([limit.owner, limit.resource], limit.most)
        yield from (opened, left, most)

    def _queues(self) -> Iterator[Metric]:
        waiting = GaugeMetricFamily("regreen_queue_waiting", "Jobs that are due.", labels=["queue"])
        running = GaugeMetricFamily("regreen_queue_running", "Jobs that run.", labels=["queue"])
        oldest = GaugeMetricFamily(
            "regreen_queue_oldest_seconds", "How long the oldest job is due.", labels=["queue"]
        )
        for queue in self._store.queues():
            waiting.add_metric([queue.queue], queue.waiting)
            running.add_metric([queue.queue], queue.running)
            oldest.add_metric([queue.queue], queue.oldest_s)
        yield from (waiting, running, oldest)

    def _spans(self) -> Iterator[Metric]:
        took = SummaryMetricFamily(
            "regreen_job_seconds", "What kept jobs took, from their first start.", labels=["kind"]
        )
        waited = SummaryMetricFamily(
            "regreen_job_wait_seconds",
            "How long kept jobs waited, delays included.",
            labels=["kind"],
        )
        for kind in self._store.spans():
            took.add_metric([kind.kind], kind.count, kind.took_s)
            waited.add_metric([kind.kind], kind.count, kind.waited_s)
        yield from (took, waited)
