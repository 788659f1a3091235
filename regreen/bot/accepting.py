"""Group commit: deliveries that arrive together share one transaction, and each is answered after the commit.

SQLite has one writer at a time; threads that queue for it wait in back-offs of up to a second. One thread that
writes for all of them waits for nobody, and one flush to disk serves every delivery that came meanwhile.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from regreen.errors import OutsideError
from regreen.records import DeliveryRecord, Order

_MOST = 64
_LONGEST_WAIT_S = 8.0  # GitHub hangs up after ten seconds

_log = logging.getLogger(__name__)

Item = tuple[DeliveryRecord, Sequence[Order]]
AcceptAll = Callable[[Sequence[Item]], list[bool]]


@dataclass
class _Waiting:
    item: Item
    done: threading.Event = field(default_factory=threading.Event)
    is_new: bool | None = None
    error: OutsideError | None = None


class GroupCommit:
    """One writer for many threads. Start it by the first `accept`, stop it with `close`."""

    def __init__(self, accept_all: AcceptAll) -> None:
        self._accept_all = accept_all
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def accept(self, delivery: DeliveryRecord, orders: Sequence[Order]) -> bool:
        """Make a delivery durable; False where it was there already.

        Raises:
            OutsideError: it could not be stored, or not in time; it may still be, and is then a duplicate.
        """
        waiting = _Waiting((delivery, orders))
        self._start()
        self._queue.put(waiting)
        if not waiting.done.wait(_LONGEST_WAIT_S):
            raise OutsideError("the database takes too long")
        if waiting.error is not None:
            raise waiting.error
        return waiting.is_new is True

    def close(self) -> None:
        """Write what waits, then stop."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(timeout=_LONGEST_WAIT_S)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._write, name="regreen-accept", daemon=True
                )
                self._thread.start()

    def _write(self) -> None:
        while (first := self._queue.get()) is not None:
            batch, ended = [first], False
            while len(batch) < _MOST and not self._queue.empty():
                more = self._queue.get()
                if more is None:
                    ended = True
                    break
                batch.append(more)
            self._commit(batch)
            if ended:
                return

    def _commit(self, batch: Sequence[_Waiting]) -> None:
        try:
            answers = self._accept_all([w.item for w in batch])
        except OutsideError as error:
            self._fail(batch, error)
        except Exception:  # noqa: BLE001 - see below
            # One delivery that cannot be written must neither end the writer nor take others with it.
            if len(batch) > 1:
                for waiting in batch:
                    self._commit([waiting])
                return
            _log.exception("delivery %s cannot be written", batch[0].item[0].id)
            self._fail(batch, OutsideError("the delivery cannot be written"))
        else:
            for waiting, is_new in zip(batch, answers, strict=True):
                waiting.is_new = is_new
                waiting.done.set()

    @staticmethod
    def _fail(batch: Sequence[_Waiting], error: OutsideError) -> None:
        for waiting in batch:
            waiting.error = error
            waiting.done.set()
