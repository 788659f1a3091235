"""One job from its row to its end: attempts, cancelling, what an error means."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from regreen.bot.logs import about
from regreen.errors import Cancelled, OutsideError, UserError
from regreen.forge import Gone, NotAllowed, Paced
from regreen.ports import Clock, NoTraces, Span, Traces, Value
from regreen.records import JobRecord, JobState, Store

MAX_ATTEMPTS = 5
_FIRST_WAIT_S = 5.0
_LONGER = 6  # five tries take nineteen minutes: GitHub is seldom away for longer
_LONGEST_WAIT_S = 15 * 60.0
_LIMITED_S = 60.0
_AFTER_STOP_S = 3.0
_SUSPECT_FROM = 2
_TRIES_TO_TELL = 3
_GIVING_UP = "giving-up"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Job:
    """A job while it runs. `cancel` is set when somebody cancels it or a newer one supersedes it."""

    record: JobRecord
    cancel: threading.Event
    store: Store

    def say(self, text: str) -> None:
        """Show on the dashboard what is being done."""
        self.store.note_progress(self.record.id, text)

    def got_further(self) -> None:
        """Say that what was done so far will not be done again: only attempts that get nowhere are counted."""
        if self.record.attempts > 1:
            self.store.got_further(self.record.id)

    def check(self) -> None:
        """Stop here if the job is not wanted any more; asked before every write.

        Raises:
            Cancelled: it is not.
        """
        if self.cancel.is_set() or self.store.stopped([self.record.id]):
            raise Cancelled("cancelled")


Handle = Callable[[Job], str]
"""Does a job's work and returns one line on what came out."""

Failed = Callable[[JobRecord, str], None]
"""Tells whoever asked that a job failed, in one sentence."""


class Runner:
    """Runs jobs by id, in the calling thread; knows which run now, so that they can be cancelled."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        handle: Handle,
        failed: Failed,
        worker: str,
        stopped: Callable[[JobRecord], None] = lambda _: None,
        traces: Traces | None = None,
        hand_over: Callable[[], None] = lambda: None,
    ) -> None:
        self.worker = worker
        self.hand_over = hand_over
        self._traces = traces or NoTraces()
        self._store = store
        self._clock = clock
        self._handle = handle
        self._failed = failed
        self._stopped = stopped
        self._lock = threading.Lock()
        self._suspects = threading.Lock()
        self._is_stopping = False
        self._running: dict[str, threading.Event] = {}
        self._held: set[str] = set()

    def run(self, job_id: str) -> float | None:
        """Run a job; None when it has ended, else the seconds after which it wants to be tried again."""
        with self._lock:
            if job_id in self._held:
                return _FIRST_WAIT_S  # the engine has it twice; the other thread's outcome counts
            self._held.add(job_id)
        try:
            before = self._store.job(job_id)
            if before is None or before.state != "running" or before.attempts < _SUSPECT_FROM:
                return self._begin(job_id)
            # One of those that ran when the process died has killed it, maybe more than once. They run one
            # after the other now, so that only the guilty one's attempts are used up.
            with self._suspects:
                return self._begin(job_id)
        except OutsideError as error:
            # only the database fails here, so nothing can be written down, and nothing is counted
            _log.warning("job %s waits for the database: %s", job_id, error)
            return _FIRST_WAIT_S
        finally:
            with self._lock:
                self._held.discard(job_id)

    def holds(self, job_id: str) -> bool:
        """Whether a thread of this process has the job in hand."""
        with self._lock:
            return job_id in self._held

    def _begin(self, job_id: str) -> float | None:
        if self._is_stopping:
            return _AFTER_STOP_S
        record = self._store.begin(job_id, self.worker)
        if record is None:
            self._tell_stopped(job_id)
            return None
        untold = self._store.get(_GIVING_UP, job_id)
        if untold is not None:
            return self._give_up(record, untold)
        if record.attempts > MAX_ATTEMPTS:
            reason = f"stopped after {MAX_ATTEMPTS} attempts that did not end"
            return self._give_up(record, reason)
        cancel = threading.Event()
        with self._lock:
            self._running[job_id] = cancel
        try:
            with about(record), self._traces.span(f"job {record.kind}", _named(record)) as span:
                _log.info("job %s starts, attempt %d", job_id, record.attempts)
                wait = self._attempt(Job(record, cancel, self._store))
                self._note(span, job_id)
                return wait
        finally:
            with self._lock:
                del self._running[job_id]
            self.hand_over()

    def _note(self, span: Span, job_id: str) -> None:
        """Put into the span how the attempt ended."""
        ended = self._store.job(job_id)
        if ended is not None:
            span.note({"regreen.state": ended.state, "regreen.outcome": ended.note})

    def _tell_stopped(self, job_id: str) -> None:
        """Its process died, and it was stopped before it could run again: what it began is to be ended all the same."""
        record = self._store.job(job_id)
        if record is None or record.state not in {"cancelled", "superseded"} or not record.started:
            return
        try:
            self._stopped(record)
        except (OutsideError, UserError) as error:
            _log.warning("job %s: could not say that it was stopped: %s", job_id, error)

    def notice_cancelled(self) -> None:
        """Set the cancel event of every running job that is not wanted any more."""
        with self._lock:
            running = dict(self._running)
        for job_id in self._store.stopped(list(running)):
            running[job_id].set()

    def stop_all(self) -> None:
        """Have every running job stop at its next check; their rows stay, so they run again later."""
        with self._lock:
            self._is_stopping = True
            for event in self._running.values():
                event.set()

    def _attempt(self, job: Job) -> float | None:
        record = job.record
        try:
            note = self._handle(job)
        except Cancelled as error:
            if self._is_stopping and not self._store.stopped([record.id]):
                return self._put_off(record, "interrupted", _AFTER_STOP_S)
            self._end(record, "cancelled", str(error))
        except (UserError, NotAllowed) as error:
            # what is not granted now will not be granted by asking again
            return self._give_up(record, str(error))
        except Paced as error:
            return self._put_off(record, str(error), error.retry_after or self._longer(record))
        except OutsideError as error:
            return self._again(record, error)
        except Exception:  # noqa: BLE001 - see below
            # The top: whatever gets here is a bug, and one bug must not end the worker.
            _log.exception("job %s failed", record.id)
            reason = "something went wrong inside Regreen; the log has the details"
            return self._give_up(record, reason)
        else:
            self._end(record, "done", note)
        return None

    def _put_off(self, record: JobRecord, reason: str, wait: float) -> float:
        """Run it later; it is no attempt of its own."""
        due = self._clock.now() + timedelta(seconds=wait)
        self._store.wait_again(record.id, due, reason, counted=False)
        return wait

    def _longer(self, record: JobRecord) -> float:
        """The wait where GitHub says only that it is too much: a minute, and longer the longer it goes on."""
        since = record.started or self._clock.now()
        lasts = (self._clock.now() - since).total_seconds()
        return min(max(_LIMITED_S, lasts / 2), _LONGEST_WAIT_S)

    def _again(self, record: JobRecord, error: OutsideError) -> float | None:
        now = self._store.job(record.id) or record  # it may have got further, which counts anew
        if now.attempts >= MAX_ATTEMPTS:
            return self._give_up(record, f"gave up after {now.attempts} attempts: {error}")
        wait = error.retry_after or _FIRST_WAIT_S * _LONGER ** (now.attempts - 1)
        wait = min(wait, _LONGEST_WAIT_S)
        _log.warning("job %s is tried again in %.0f s: %s", record.id, wait, error)
        due = self._clock.now() + timedelta(seconds=wait)
        self._store.wait_again(record.id, due, str(error))
        return wait

    def _give_up(self, record: JobRecord, reason: str) -> float | None:
        # Told first: a process that dies in between tells again, and the marker makes that once. Ended first,
        # a check run would spin for ever. But telling that kills the process is not tried for ever either.
        if record.attempts <= MAX_ATTEMPTS + _TRIES_TO_TELL:
            try:
                self._failed(record, reason)
            except (UserError, NotAllowed, Gone) as error:
                _log.warning("job %s: could not say that it failed: %s", record.id, error)
            except OutsideError as error:
                return self._tell_later(record, reason, error)
        self._end(record, "failed", reason)
        return None

    def _tell_later(self, record: JobRecord, reason: str, error: OutsideError) -> float:
        """GitHub may be away for longer than a job is tried; what the job began must not seem to go on for ever."""
        _log.warning("job %s: says later that it failed: %s", record.id, error)
        self._store.put(_GIVING_UP, record.id, reason)
        if isinstance(error, Paced):
            return self._put_off(record, reason, error.retry_after or self._longer(record))
        wait = error.retry_after or _LONGEST_WAIT_S
        self._store.wait_again(record.id, self._clock.now() + timedelta(seconds=wait), reason)
        return wait

    def _end(self, record: JobRecord, state: JobState, note: str) -> None:
        self._store.end(record.id, state, note)
        _log.info("job %s ends: %s (%s)", record.id, state, note[:200])


def _named(record: JobRecord) -> dict[str, Value]:
    named: dict[str, Value] = {
        "regreen.job": record.id,
        "regreen.repository": record.repo,
        "regreen.attempt": record.attempts,
    }
    return named if record.number is None else named | {"regreen.number": record.number}
