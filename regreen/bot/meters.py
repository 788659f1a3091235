"""What a process counts while it works: kept in the store, so that `/metrics` tells it whichever process answers."""

from __future__ import annotations

import logging
import threading
from collections import Counter

from regreen.errors import OutsideError
from regreen.listing import Limit, Watched

STARTS = "sandbox_starts/"
"""Counters of boxes that were opened, by backend."""

_log = logging.getLogger(__name__)


class Meters:
    """Counts in memory, from any thread, and hands over to the store now and then: work never waits for it."""

    def __init__(self, store: Watched) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._limits: dict[tuple[str, str], Limit] = {}

    def box_opened(self, backend: str) -> None:
        """A sandbox started."""
        with self._lock:
            self._counts[STARTS + backend] += 1

    def limit(self, limit: Limit) -> None:
        """GitHub said how much is left."""
        with self._lock:
            self._limits[limit.owner, limit.resource] = limit

    def hand_over(self) -> None:
        """Bring what was counted to the store; what it does not take now is brought the next time."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
            limits, self._limits = self._limits, {}
        try:
            if counts:
                self._store.add(counts)
                counts = Counter()
            if limits:
                self._store.keep_limits(list(limits.values()))
        except OutsideError as error:
            _log.debug("the meters keep what they have: %s", error)
            with self._lock:
                self._counts += counts
                self._limits = limits | self._limits
