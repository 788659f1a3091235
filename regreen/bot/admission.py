"""Every order on its way into the queue: no installation takes all the workers, and none has to wait for another's crowd."""

from __future__ import annotations

import threading
import zlib
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from regreen.ports import Clock
from regreen.records import Order

_SPAN_S = 600.0
_FURTHEST_BACK = 900  # less than the distance between asked, pushed and scheduled in `plan`
_LIMITED = frozenset({"review", "work"})


class Admission:
    """Limits and fairness between installations; within one, `plan` has said what runs one at a time.

    Args:
        clock: the time.
        lanes: how many reviews, and how many repairs and bisections, of one installation run at once, on all
            workers together. A repository (or a pull request, for reviews) always has the same lane.
    """

    def __init__(self, clock: Clock, lanes: int) -> None:
        self._clock = clock
        self._lanes = lanes
        self._lock = threading.Lock()
        self._recent: dict[int, deque[float]] = {}

    def admit(self, orders: Sequence[Order]) -> tuple[Order, ...]:
        """The orders as they are to be enqueued."""
        return tuple(self._one(order) for order in orders)

    def _one(self, order: Order) -> Order:
        if order.queue not in _LIMITED:
            return order
        lane = zlib.crc32(order.key.encode()) % self._lanes
        return replace(
            order,
            key=f"{order.installation}/{lane}",
            priority=order.priority + self._place(order.installation),
        )

    def _place(self, installation: int) -> int:
        """How far back in the queue: one place for each order of the last ten minutes."""
        now = self._clock.monotonic()
        with self._lock:
            for other in [i for i, past in self._recent.items() if now - past[-1] > _SPAN_S]:
                del self._recent[other]
            past = self._recent.setdefault(installation, deque(maxlen=_FURTHEST_BACK))
            while past and now - past[0] > _SPAN_S:
                past.popleft()
            past.append(now)
            return len(past) - 1
