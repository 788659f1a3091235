"""The job engine: takes due jobs from the store and runs each in a thread of its own.

The `jobs` table is the queue. A worker claims a job in one statement, which also enforces that jobs with the same key
run one at a time. A job whose worker died goes back to the queue when its worker starts again, or when another worker
has missed its heartbeat for a minute. The store remembers what an attempt has paid for, so a repeated attempt takes
the same steps without paying again.
"""

from __future__ import annotations

import ctypes
import fcntl
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO

from croniter import CroniterError, croniter

from regreen.bot.jobs.runner import Job, JobRunner
from regreen.domain.errors import OutsideError, UserError
from regreen.domain.events import RepositoryRef, Tick
from regreen.domain.ports import Clock
from regreen.domain.records import Store
from regreen.domain.repo_config import Schedule

_MAX_DELAY = timedelta(hours=6)


def find_due_ticks(
    schedules: Mapping[RepositoryRef, Iterable[Schedule]], after: datetime, until: datetime
) -> tuple[Tick, ...]:
    """The ticks with `after < t <= until`, at most one for each schedule: missed ones are not made up.

    A schedule whose cron line never matches is left out and logged; the others are still due.
    """
    start = max(after, until - _MAX_DELAY)
    ticks = []
    for where, listed in schedules.items():
        for schedule in listed:
            try:
                last = _last_cron_time(schedule.cron, until)
            except CroniterError as error:
                _log.warning("%s: schedule %s never runs: %s", where.repo, schedule.name, error)
                continue
            if start < last <= until:
                ticks.append(Tick(where, schedule.name, last.strftime("%Y-%m-%dT%H:%MZ")))
    return tuple(ticks)


def _last_cron_time(cron: str, until: datetime) -> datetime:
    """The latest time at or before `until` that the cron line matches."""
    # get_prev excludes its start, and a tick on the minute itself is due
    before = until.astimezone(UTC) + timedelta(microseconds=1)
    time: datetime = croniter(cron, before).get_prev(datetime)
    return time


def find_next_cron_time(cron: str, after: datetime) -> datetime | None:
    """The first time after `after` that the cron line matches; None where it never does."""
    try:
        time: datetime = croniter(cron, after.astimezone(UTC)).get_next(datetime)
    except CroniterError:
        return None
    return time


JOBS_PER_QUEUE = {"talk": 4, "review": 2, "work": 2, "care": 1}
"""How many jobs of each queue one worker runs at once."""
_POLL_SECONDS = 0.5
_HEARTBEAT_SECONDS = 10.0
_TICK_S = 20.0
_GRACE_S = 5.0
_TRIM_S = 60.0

_log = logging.getLogger(__name__)


class JobWorker:
    """Runs the queue's jobs in this process until `stop`.

    One process, one id: a second process under the same id would put the first one's running jobs back, so the id is
    locked with a file below `home`.
    """

    def __init__(
        self,
        *,
        store: Store,
        runner: JobRunner,
        clock: Clock,
        home: Path,
        dispatch: Callable[[], object],
        tick: Callable[[], object],
    ) -> None:
        self._store = store
        self._runner = runner
        self._clock = clock
        self._home = home
        self._dispatch = dispatch
        self._tick = tick
        self._stop = threading.Event()
        self._has_room = threading.Event()
        self._lock: IO[str] | None = None
        self._thread = threading.Thread(
            target=self._dispatch_and_start_jobs, name="regreen-jobs", daemon=True
        )
        self._beat = threading.Thread(target=self._run_chores, name="regreen-beat", daemon=True)

    def start(self) -> None:
        """Start working. Call it after a fork, never before.

        Raises:
            UserError: another process works under this id.
            OutsideError: the database does not answer.
        """
        self._lock = _lock_worker_name(self._home, self._runner.worker)
        self._store.record_heartbeat(
            self._runner.worker
        )  # before the first job, or others take it over
        self._thread.start()
        self._beat.start()

    def stop(self) -> None:
        """Stop taking jobs; the next start resumes the running ones."""
        self._stop.set()
        self._has_room.set()
        self._runner.stop_all_jobs()
        deadline = time.monotonic() + _GRACE_S
        for thread in (self._thread, self._beat):
            thread.join(max(0.0, deadline - time.monotonic()))
        while self._runner.running_jobs() and time.monotonic() < deadline:
            time.sleep(0.05)
        if self._lock is not None:
            self._lock.close()

    def _dispatch_and_start_jobs(self) -> None:
        """Dispatch deliveries and claim jobs until `stop`; look again when a job ends, or after half a second."""
        next_sweep = float("-inf")
        while not self._stop.is_set():
            self._has_room.clear()
            try:
                if self._clock.monotonic() >= next_sweep:
                    self._take_back_lost_jobs()
                    next_sweep = self._clock.monotonic() + _TICK_S
                self._dispatch()
                self._start_due_jobs()
            except OutsideError as error:
                _log.warning("the queue waits for the database: %s", error)
                self._stop.wait(_POLL_SECONDS)
            except Exception:  # noqa: BLE001 - one failing pass must not end the worker
                _log.exception("the queue cannot be read")
                self._stop.wait(_POLL_SECONDS)
            self._has_room.wait(_POLL_SECONDS)

    def _start_due_jobs(self) -> None:
        for queue in self._store.due_queues(self._clock.now()):
            while self._has_place(queue) and (job := self._runner.claim(queue=queue)) is not None:
                thread = threading.Thread(
                    target=self._run_job, args=(job,), name=f"regreen-{queue}", daemon=True
                )
                try:
                    thread.start()
                except RuntimeError:  # no more threads: the next look for lost jobs puts it back
                    self._runner.forget(job)
                    raise

    def _take_back_lost_jobs(self) -> None:
        if stopped := self._runner.take_back_lost_jobs():
            threading.Thread(
                target=self._runner.report_stopped_jobs,
                args=(stopped,),
                name="regreen-stopped",
                daemon=True,
            ).start()

    def _has_place(self, queue: str) -> bool:
        running = sum(job.record.queue == queue for job in self._runner.running_jobs())
        return running < JOBS_PER_QUEUE.get(queue, 0)

    def _run_job(self, job: Job) -> None:
        self._runner.run(job)
        self._has_room.set()

    def _run_chores(self) -> None:
        """Run each periodic task when it is due, until `stop`; a failed task is due again after its usual time."""
        chores: list[tuple[float, Callable[[], object]]] = [
            (0.0, self._runner.propagate_cancellations),
            (_HEARTBEAT_SECONDS, lambda: self._store.record_heartbeat(self._runner.worker)),
            (_HEARTBEAT_SECONDS, self._runner.hand_over),
            (_TICK_S, self._tick),
            (_TRIM_S, trim_memory),
        ]
        next_run = [float("-inf")] * len(chores)
        while not self._stop.wait(1.0):
            for index, (seconds, chore) in enumerate(chores):
                now = self._clock.monotonic()
                if now < next_run[index]:
                    continue
                next_run[index] = now + seconds
                try:
                    chore()
                except Exception:  # noqa: BLE001 - see below
                    # A failing task must not stop the others: without the heartbeat, other workers take over our jobs.
                    _log.exception("a periodic task of the worker failed")


def _lock_worker_name(home: Path, worker: str) -> IO[str]:
    home.mkdir(parents=True, exist_ok=True)
    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in worker)
    lock = (home / f"worker-{name}.lock").open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        message = (
            f"another process works as '{worker}' here; stop it, or give this one another --id"
        )
        raise UserError(message) from error
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


# Unused memory is returned to the system, if the C library can.

_M_ARENA_MAX = -8
_MAX_ARENAS = 2


def limit_malloc_arenas() -> None:
    """Let threads share heaps. Call it before many threads exist.

    glibc gives nearly every thread its own heap, and each heap keeps its peak size; Python's threads hardly ever
    allocate at the same time.
    """
    _call_libc("mallopt", _M_ARENA_MAX, _MAX_ARENAS)


def trim_memory() -> None:
    """Return free memory after the imports and after large jobs; that is about a tenth of the total."""
    _call_libc("malloc_trim", 0)


def _call_libc(name: str, *arguments: int) -> None:
    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None:  # other C libraries have no `malloc_trim`
        function(*arguments)
