"""Health and metrics of the App: the pages for machines, and what they count.

The store keeps the totals of all processes, so that `/metrics` is the same from each.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from flask import Blueprint, Response
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from regreen.domain.errors import OutsideError
from regreen.domain.list_queries import MetricsStore
from regreen.domain.ports import Clock
from regreen.domain.records import Store
from regreen.domain.state_records import RateLimit, ServiceState

_MAX_TICK_AGE = timedelta(minutes=2)
_DAY_S = 86_400
_LATENCY_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SANDBOX_STARTS_PREFIX = "sandbox_starts/"
"""Counters of sandbox containers that were started, by backend."""

_log = logging.getLogger(__name__)


class MetricCounters:
    """Counts in memory from any thread and writes to the store now and then, so that work never waits."""

    def __init__(self, store: MetricsStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._limits: dict[tuple[str, str], RateLimit] = {}

    def count_box(self, backend: str) -> None:
        """Count the start of a sandbox."""
        with self._lock:
            self._counts[SANDBOX_STARTS_PREFIX + backend] += 1

    def record_rate_limit(self, limit: RateLimit) -> None:
        """Record how much of a rate limit is left."""
        with self._lock:
            self._limits[limit.owner, limit.resource] = limit

    def flush_metrics(self) -> None:
        """Write the counts to the store; counts that fail to be written are written the next time."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
            limits, self._limits = self._limits, {}
        try:
            if counts:
                self._store.add_counts(counts)
                counts = Counter()
            for limit in limits.values():
                self._store.save(limit)
        except OutsideError as error:
            _log.debug("the counters are written later: %s", error)
            with self._lock:
                self._counts += counts
                self._limits = limits | self._limits


def make_acknowledgement_histogram() -> Histogram:
    """How long this process takes to store a delivery; GitHub waits ten seconds."""
    return Histogram(
        "regreen_acknowledgement_seconds",
        "Time until a webhook delivery was durable.",
        buckets=_LATENCY_BUCKETS_S,
        registry=None,
    )


def make_health_blueprint(store: MetricsStore, clock: Clock, acknowledged: Histogram) -> Blueprint:
    """The pages for machines."""
    pages = Blueprint("health", __name__)
    registry = CollectorRegistry()
    registry.register(_StoreCollector(store, clock))
    registry.register(acknowledged)

    @pages.get("/healthz")
    def healthz() -> Response:
        return Response("ok\n", mimetype="text/plain")

    @pages.get("/readyz")
    def readyz() -> Response:
        try:
            lines = [_describe_database(store, clock), _describe_sandbox(store)]
        except OutsideError:
            lines = ["database: does not answer"]
        status = 200 if lines[0].endswith("ok") else 503
        return Response("\n".join(lines) + "\n", status=status, mimetype="text/plain")

    @pages.get("/metrics")
    def metrics() -> Response:
        return Response(generate_latest(registry), content_type=CONTENT_TYPE)

    return pages


def _describe_database(store: Store, clock: Clock) -> str:
    """Whether the jobs process writes its heartbeat every few seconds; the check itself writes nothing."""
    last = store.find(ServiceState, name="tick")
    is_late = last is not None and clock.now() - datetime.fromisoformat(last.value) > _MAX_TICK_AGE
    return "database: has taken no write for two minutes" if is_late else "database: ok"


def _describe_sandbox(store: Store) -> str:
    """The state of the sandbox. Reviews work without one, so it does not affect readiness."""
    noted = store.find(ServiceState, name="sandbox")
    return f"sandbox: {'not tried yet' if noted is None else noted.value or 'ok'}"


def current_limits(store: Store, clock: Clock) -> list[RateLimit]:
    """GitHub's rate limits that were used within a day; after its reset, a whole limit is available again."""
    now = clock.now().timestamp()
    return [
        limit if limit.resets >= now else replace(limit, left=limit.most)
        for limit in store.find_all(RateLimit)
        if limit.resets > now - _DAY_S
    ]


class _StoreCollector(Collector):
    """Counts from the store, read on request: every process gives the same answer."""

    def __init__(self, store: MetricsStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Every metric, one query each."""
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
        yield from self._collect_queue_metrics()
        yield from self._collect_job_durations()
        tokens = self._store.tokens()
        spent = CounterMetricFamily(
            "regreen_model_tokens", "Tokens of model calls.", labels=["way"]
        )
        for way in ("read", "written", "cached"):
            spent.add_metric([way], getattr(tokens, way))
        yield spent
        yield from self._collect_external_metrics()

    def _collect_external_metrics(self) -> Iterator[Metric]:
        opened = CounterMetricFamily(
            "regreen_sandbox_starts", "Boxes that were opened.", labels=["backend"]
        )
        for name, number in sorted(self._store.counters().items()):
            if name.startswith(SANDBOX_STARTS_PREFIX):
                opened.add_metric([name.removeprefix(SANDBOX_STARTS_PREFIX)], number)
        labels = ["owner", "resource"]
        left = GaugeMetricFamily(
            "regreen_github_limit_left", "Requests that GitHub still takes.", labels=labels
        )
        most = GaugeMetricFamily(
            "regreen_github_limit", "Requests that GitHub takes an hour.", labels=labels
        )
        for limit in current_limits(self._store, self._clock):
            left.add_metric([limit.owner, limit.resource], limit.left)
            most.add_metric([limit.owner, limit.resource], limit.most)
        yield from (opened, left, most)

    def _collect_queue_metrics(self) -> Iterator[Metric]:
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

    def _collect_job_durations(self) -> Iterator[Metric]:
        took = SummaryMetricFamily(
            "regreen_job_seconds", "What kept jobs took, from their first start.", labels=["kind"]
        )
        waited = SummaryMetricFamily(
            "regreen_job_wait_seconds",
            "How long kept jobs waited, delays included.",
            labels=["kind"],
        )
        for kind in self._store.job_durations():
            took.add_metric([kind.kind], kind.count, kind.took_s)
            waited.add_metric([kind.kind], kind.count, kind.waited_s)
        yield from (took, waited)
