"""An engine without threads: jobs wait in the store until `work` is called. For stories and `replay`."""

from __future__ import annotations

from datetime import datetime, timedelta

from regreen.bot.running import Runner
from regreen.records import Order, Store


class InlineEngine:
    """Runs jobs in the calling thread, in the order a worker would take them."""

    def __init__(self, store: Store, runner: Runner) -> None:
        self._store = store
        self._runner = runner

    def enqueue(self, connection: object, order: Order) -> None:
        """The row in the store is the queue."""

    def rows(self, order: Order) -> tuple[()]:  # noqa: ARG002 - as the other engine's
        """Nothing more than the row in the store."""
        return ()

    def work(self, now: datetime, limit: int = 1000) -> int:
        """Run what is due by `now`, and what that leads to; how many runs there were."""
        for done in range(limit):
            job = self._store.next_job(now)
            if job is None:
                return done
            again = self._runner.run(job.id)
            if again is not None:
                now = max(now, job.due + timedelta(seconds=again))
        return limit
