"""Group commit: deliveries that arrive together share one transaction, and each is answered after the commit.

SQLite has one writer at a time; threads that queue for it wait in back-offs of up to a second. Here one thread writes
for all that wait, and one flush to disk serves every delivery that came meanwhile. Whoever comes while nobody writes
writes for himself: no other thread has to wake up before he has his answer.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from regreen.errors import OutsideError
from regreen.records import DeliveryRecord, Order

_MOST = 64
_LONGEST_WAIT_S = 8.0  # GitHub hangs up after ten seconds

_log = logging.getLogger(__name__)

Item = tuple[DeliveryRecord, Sequence[Order]]
AcceptAll = Callable[[Sequence[Item]], list[bool]]
"""Writes them all or none. It has to give up by itself before GitHub does: nobody stops who writes."""


@dataclass(eq=False)
class _Waiting:
    item: Item
    woken: threading.Event = field(default_factory=threading.Event)
    """Set when it is decided, or when it is this one's turn to write."""
    is_new: bool | None = None
    error: OutsideError | None = None

    @property
    def is_decided(self) -> bool:
        return self.is_new is not None or self.error is not None


class GroupCommit:
    """One writer at a time among many threads."""

    def __init__(self, accept_all: AcceptAll, longest_wait_s: float = _LONGEST_WAIT_S) -> None:
        self._accept_all = accept_all
        self._longest_wait_s = longest_wait_s
        self._lock = threading.Lock()
        self._queue: deque[_Waiting] = deque()
        self._is_writing = False

    def accept(self, delivery: DeliveryRecord, orders: Sequence[Order]) -> bool:
        """Make a delivery durable; False where it was there already.

        Raises:
            OutsideError: it could not be stored, or not in time; it may still be, and is then a duplicate.
        """
        waiting = _Waiting((delivery, orders))
        with self._lock:
            self._queue.append(waiting)
            writes, self._is_writing = not self._is_writing, True
        if not writes:
            self._wait(waiting)
        if not waiting.is_decided:
            self._write()
        if waiting.error is not None:
            raise waiting.error
        return waiting.is_new is True

    def _wait(self, waiting: _Waiting) -> None:
        if waiting.woken.wait(self._longest_wait_s):
            return
        with self._lock:
            if waiting.woken.is_set():
                return  # at the last moment
            if waiting in self._queue:
                self._queue.remove(waiting)
        raise OutsideError("the database takes too long")

    def _write(self) -> None:
        """Write what waits, the caller's own first, and pass the turn on."""
        with self._lock:
            batch = [self._queue.popleft() for _ in range(min(_MOST, len(self._queue)))]
        try:
            self._commit(batch)
        finally:
            with self._lock:
                self._is_writing = bool(self._queue)
                if self._queue:
                    self._queue[0].woken.set()
            for waiting in batch:
                if not waiting.is_decided:  # whatever happened, nobody is told that it was stored
                    waiting.error = OutsideError("the delivery was not written")
                waiting.woken.set()

    def _commit(self, batch: Sequence[_Waiting]) -> None:
        try:
            answers = self._accept_all([w.item for w in batch])
        except OutsideError as error:
            for waiting in batch:
                waiting.error = error
        except Exception:  # noqa: BLE001 - see below
            # One delivery that cannot be written must not take others with it.
            if len(batch) > 1:
                for waiting in batch:
                    self._commit([waiting])
                return
            _log.exception("delivery %s cannot be written", batch[0].item[0].id)
            batch[0].error = OutsideError("the delivery cannot be written")
        else:
            for waiting, is_new in zip(batch, answers, strict=True):
                waiting.is_new = is_new
