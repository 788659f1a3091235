"""Counts what a process does; the store keeps the totals, so that `/metrics` is the same from every process."""

from __future__ import annotations

import logging
import threading
from collections import Counter

from regreen.domain.errors import OutsideError
from regreen.domain.list_queries import MetricsStore
from regreen.domain.state_records import RateLimit

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
