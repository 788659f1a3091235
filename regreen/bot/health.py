"""`/healthz`, `/readyz` and `/metrics`."""

from __future__ import annotations

from collections.abc import Iterator

from flask import Blueprint, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from regreen.bot.care import SANDBOX_NOTE
from regreen.bot.desk import Desk
from regreen.records import Store

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def health(desk: Desk) -> Blueprint:
    """The pages that machines ask for."""
    pages = Blueprint("health", __name__)
    registry = CollectorRegistry()
    registry.register(_Counts(desk.store))

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

    def __init__(self, store: Store) -> None:
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
