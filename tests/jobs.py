"""Jobs in tests: claimed by id whatever their time, and deliveries with jobs of the test's own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from regreen.adapters.store.database import Database
from regreen.adapters.store.inbox import DeliveryInbox
from regreen.bot.jobs.runner import JobRunner
from regreen.domain.records import DeliveryRecord, JobRecord, Order

_LATER = datetime(2100, 1, 1, tzinfo=UTC)


def run_job(runner: JobRunner, job_id: str) -> float | None:
    """Run a job now; the seconds until its next attempt, None if it has ended or cannot be claimed."""
    job = runner.claim(_LATER, job_id=job_id)
    return None if job is None else runner.run(job)


def claim(store: Database, job_id: str, worker: str) -> JobRecord | None:
    """Claim a job for a worker."""
    return store.claim_job(worker, _LATER, job_id=job_id)


def lose(store: Database, job_id: str) -> None:
    """Claim a job for a worker that dies."""
    assert claim(store, job_id, "a worker that died") is not None
    store.release_lost_jobs("its neighbour", [], timedelta(minutes=1))


def accept(store: Database, delivery: DeliveryRecord, orders: Sequence[Order] = ()) -> bool:
    """Store a delivery that asks for these orders; False if it is stored already."""
    is_new = DeliveryInbox(store.engine).accept_all([delivery])[0]
    store.dispatch_deliveries(lambda _: orders, 100)
    return is_new
