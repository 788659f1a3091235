"""Runs one job from its row to its end: attempts, cancelling, errors."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from regreen.bot.jobs.event_jobs import PUSHED
from regreen.bot.jobs.log_setup import log_context
from regreen.domain.errors import Cancelled, NotStarted, OutsideError, UserError
from regreen.domain.github import NotAllowed, NotFound, RateLimited
from regreen.domain.ports import Clock, NoTraces, Span, SpanValue, Traces
from regreen.domain.records import JobOutcome, JobRecord, JobState, Store
from regreen.domain.state_records import UnreportedFailure

MAX_ATTEMPTS = 5
_FIRST_WAIT_S = 5.0
_BACKOFF_FACTOR = 6  # five attempts take nineteen minutes: GitHub is seldom away for longer
_LONGEST_WAIT_S = 15 * 60.0
_LIMITED_S = 60.0
_STOP_RETRY_SECONDS = 3.0
_DEAD_AFTER = timedelta(seconds=60)
# One try at each look for lost jobs, some twenty seconds apart: half an hour without GitHub.
_MAX_STOP_REPORTS = 90
_MAX_REPORT_ATTEMPTS = 3
_MAX_LIVE_JOBS = 10_000

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Job:
    """A running job. `cancel` is set when somebody cancels the job or a newer job supersedes it."""

    record: JobRecord
    cancel: threading.Event
    store: Store

    def report_progress(self, text: str) -> None:
        """Show the present step on the dashboard."""
        self.store.note_progress(self.record.id, text)

    def reset_attempts(self) -> None:
        """Mark progress that will not be repeated: only attempts without progress count."""
        if self.record.attempts > 1:
            self.store.reset_attempts(self.record.id)

    def check_cancelled(self) -> None:
        """Stop if the job is cancelled; called before every write.

        Raises:
            Cancelled: the job is not wanted any more.
        """
        record = self.record
        if self.cancel.is_set() or self.store.find_stopped_jobs([record.id], record.worker):
            raise Cancelled("cancelled")

    def cancel_earlier_jobs(self, note: str, *, comments: bool = True) -> list[str]:
        """Cancel what its pull request or issue had running or waiting when this job arrived; return the ids.

        Comments are handled in the order of their arrival, so work that a person asked for was asked for earlier, also
        where it was ordered later. A later comment and a later push are not touched. `comments`: earlier ones too.
        """
        own = self.record
        live = self.store.jobs(
            states=("waiting", "running"), repo=own.repo, number=own.number, limit=_MAX_LIVE_JOBS
        )
        return self.store.cancel_jobs(
            [
                job.id
                for job in live
                if job.id != own.id
                and (job.created <= own.created or not _is_from_event(job))
                and (comments or job.kind != "comment")
            ],
            note,
        )


def _is_from_event(record: JobRecord) -> bool:
    """Whether something on GitHub led to a job directly, and not a command in a comment."""
    return record.kind == "comment" or record.priority >= PUSHED


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a job's work ended: one line for people, and what it means for programs."""

    note: str
    outcome: JobOutcome = ""


HandleJob = Callable[[Job], str | JobEnd]
"""Does a job's work and returns how it ended; a line alone means no more than it says."""

ReportFailure = Callable[[JobRecord, str], None]
"""Tells the person who asked that a job failed, in one sentence; the record's outcome says whether it was refused."""


class JobRunner:
    """Claims and runs jobs under the name of one worker; knows the running ones, so that they can be cancelled."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        handle: HandleJob,
        failed: ReportFailure,
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
        self._is_stopping = False
        self._running: dict[str, Job] = {}

    def claim(
        self, now: datetime | None = None, *, queue: str = "", job_id: str = ""
    ) -> Job | None:
        """Take the due job that goes first (of a queue, or this one), which `run` has to run; None if there is none."""
        if self._is_stopping:
            return None
        # A job that ran when the process died killed it, maybe more than once. Such jobs run one
        # after the other, so that only the guilty job uses up its attempts.
        running = self.running_jobs()
        suspects = not any(job.record.is_suspect for job in running)
        record = self._store.claim_job(
            self.worker,
            now or self._clock.now(),
            queue=queue,
            job_id=job_id,
            suspects=suspects,
            # a job that was taken from this worker and given back waits for its old thread
            except_jobs=[job.record.id for job in running],
        )
        if record is None:
            return None
        job = Job(record, threading.Event(), self._store)
        with self._lock:
            self._running[record.id] = job
        return job

    def running_jobs(self) -> list[Job]:
        """The jobs that were claimed and have not ended."""
        with self._lock:
            return list(self._running.values())

    def run(self, job: Job) -> float | None:
        """Run a claimed job; return None at its end, else the seconds to wait before the next attempt."""
        try:
            return self._run_claimed(job)
        except OutsideError as error:
            # only the database fails here, so nothing can be recorded; `take_back_lost_jobs` puts the job back
            _log.warning("job %s waits for the database: %s", job.record.id, error)
            return _FIRST_WAIT_S
        finally:
            self.forget(job)
            self.hand_over()

    def forget(self, job: Job) -> None:
        """Take note that no thread runs the job."""
        with self._lock:
            self._running.pop(job.record.id, None)

    def take_back_lost_jobs(self) -> list[JobRecord]:
        """Put back the jobs of dead workers, and those of this worker that no thread runs.

        Returns the jobs that were stopped when nobody ran them, for `report_stopped_jobs`. Call it from the thread that
        claims jobs.
        """
        stopped = []
        running = [job.record.id for job in self.running_jobs()]
        for record in self._store.release_lost_jobs(self.worker, running, _DEAD_AFTER):
            if record.state == "running" and record.worker != self.worker:
                _log.warning("worker %s is gone: taking over %s", record.worker, record.id)
            elif record.state == "running":
                _log.warning("job %s was interrupted: taken up again", record.id)
            else:
                stopped.append(record)
        return stopped

    def report_stopped_jobs(self, stopped: Sequence[JobRecord]) -> None:
        """End what jobs began that were stopped when nobody ran them. GitHub may be slow: not for the claiming thread."""
        for record in stopped:
            try:
                self._stopped(record)
            except OutsideError as error:
                _log.warning("job %s: its end is reported later: %s", record.id, error)
                if record.lost < _MAX_STOP_REPORTS:
                    with suppress(OutsideError):
                        self._store.release_again(record)
            except Exception:  # noqa: BLE001 - one job's bug must not hide the end of the others
                _log.exception("job %s: its end could not be reported", record.id)

    def _run_claimed(self, job: Job) -> float | None:
        record = job.record
        if self._is_stopping:
            return self._postpone_job(record, "interrupted", _STOP_RETRY_SECONDS)
        unreported = self._store.find(UnreportedFailure, job=record.id)
        if unreported is not None:
            return self._fail_job(record, unreported.reason)
        if record.attempts > MAX_ATTEMPTS:
            reason = f"stopped after {MAX_ATTEMPTS} attempts that did not end"
            return self._fail_job(record, reason)
        with (
            log_context(record),
            self._traces.span(f"job {record.kind}", _span_attributes(record)) as span,
        ):
            _log.info("job %s starts, attempt %d", record.id, record.attempts)
            wait = self._run_attempt(job)
            self._record_outcome(span, record.id)
            return wait

    def _record_outcome(self, span: Span, job_id: str) -> None:
        """Record the end of the attempt in the span."""
        ended = self._store.job(job_id)
        if ended is not None:
            span.note({"regreen.state": ended.state, "regreen.outcome": ended.note})

    def propagate_cancellations(self) -> None:
        """Set the cancel event of every running job that is not wanted any more."""
        running = {job.record.id: job for job in self.running_jobs()}
        for job_id in self._store.find_stopped_jobs(list(running), self.worker):
            running[job_id].cancel.set()

    def stop_all_jobs(self) -> None:
        """Make every running job stop at its next check; the rows stay, so the jobs run again later."""
        with self._lock:
            self._is_stopping = True
            for job in self._running.values():
                job.cancel.set()

    def _run_attempt(self, job: Job) -> float | None:
        record = job.record
        try:
            end = self._handle(job)
        except Cancelled as error:
            if self._is_stopping and not self._store.find_stopped_jobs([record.id], self.worker):
                return self._postpone_job(record, "interrupted", _STOP_RETRY_SECONDS)
            self._end_job(record, "cancelled", str(error))
        except (UserError, NotAllowed) as error:
            # a missing permission stays missing however often it is tried
            is_refused = isinstance(error, NotStarted)
            refused = replace(record, outcome="refused") if is_refused else record
            return self._fail_job(refused, str(error))
        except RateLimited as error:
            return self._postpone_job(
                record, str(error), error.retry_after or self._rate_limit_wait(record)
            )
        except OutsideError as error:
            return self._retry_or_fail(record, error)
        except Exception:  # noqa: BLE001 - see below
            # The outermost frame: every other exception is a bug, and one bug must not end the worker.
            _log.exception("job %s failed", record.id)
            reason = "something went wrong inside Regreen; the log has the details"
            return self._fail_job(record, reason)
        else:
            end = JobEnd(end) if isinstance(end, str) else end
            self._end_job(replace(record, outcome=end.outcome), "done", end.note)
        return None

    def _postpone_job(self, record: JobRecord, reason: str, wait: float) -> float:
        """Postpone the job without counting an attempt."""
        due = self._clock.now() + timedelta(seconds=wait)
        self._store.reschedule_job(record, due, reason, counted=False)
        return wait

    def _rate_limit_wait(self, record: JobRecord) -> float:
        """The wait when GitHub gives none: a minute, and longer each time."""
        since = record.started or self._clock.now()
        lasts = (self._clock.now() - since).total_seconds()
        return min(max(_LIMITED_S, lasts / 2), _LONGEST_WAIT_S)

    def _retry_or_fail(self, record: JobRecord, error: OutsideError) -> float | None:
        # the job may have made progress, which resets the count
        now = self._store.job(record.id) or record
        if now.attempts >= MAX_ATTEMPTS:
            return self._fail_job(record, f"gave up after {now.attempts} attempts: {error}")
        wait = error.retry_after or _FIRST_WAIT_S * _BACKOFF_FACTOR ** (now.attempts - 1)
        wait = min(wait, _LONGEST_WAIT_S)
        _log.warning("job %s is tried again in %.0f s: %s", record.id, wait, error)
        due = self._clock.now() + timedelta(seconds=wait)
        self._store.reschedule_job(record, due, str(error))
        return wait

    def _fail_job(self, record: JobRecord, reason: str) -> float | None:
        # Report before ending the row: a process that dies in between reports again, and the marker prevents a second
        # comment. In the other order a check run would stay in progress for ever. The number of reports is limited.
        if record.attempts <= MAX_ATTEMPTS + _MAX_REPORT_ATTEMPTS:
            try:
                self._failed(record, reason)
            except (UserError, NotAllowed, NotFound) as error:
                _log.warning("job %s: its failure could not be reported: %s", record.id, error)
            except OutsideError as error:
                return self._report_failure_later(record, reason, error)
        is_refused = record.outcome == "refused"
        self._end_job(record, "failed", f"{'not started: ' if is_refused else ''}{reason}")
        return None

    def _report_failure_later(self, record: JobRecord, reason: str, error: OutsideError) -> float:
        """Report a failure later when GitHub is away: what the job began must not seem to go on for ever."""
        _log.warning("job %s: its failure is reported later: %s", record.id, error)
        self._store.save(UnreportedFailure(record.id, reason))
        if isinstance(error, RateLimited):
            return self._postpone_job(
                record, reason, error.retry_after or self._rate_limit_wait(record)
            )
        wait = error.retry_after or _LONGEST_WAIT_S
        self._store.reschedule_job(record, self._clock.now() + timedelta(seconds=wait), reason)
        return wait

    def _end_job(self, record: JobRecord, state: JobState, note: str) -> None:
        self._store.end(record.id, state, note, worker=self.worker, outcome=record.outcome)
        _log.info("job %s ends: %s (%s)", record.id, state, note[:200])


def _span_attributes(record: JobRecord) -> dict[str, SpanValue]:
    named: dict[str, SpanValue] = {
        "regreen.job": record.id,
        "regreen.repository": record.repo,
        "regreen.attempt": record.attempts,
    }
    return named if record.number is None else named | {"regreen.number": record.number}


def run_due_jobs(runner: JobRunner, now: datetime, limit: int = 1000) -> int:
    """Run in this thread the jobs that are due by `now`, and those that follow from them without their waits.

    For stories and commands. Returns the number of runs.
    """
    runner.report_stopped_jobs(runner.take_back_lost_jobs())
    for done in range(limit):
        job = runner.claim(now)
        if job is None:
            return done
        again = runner.run(job)
        if again is not None:
            now = max(now, job.record.due + timedelta(seconds=again))
    return limit
