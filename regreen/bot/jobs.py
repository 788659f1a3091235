"""Durable jobs on DBOS: the only module that knows the engine.

A job is one workflow whose steps are attempts; what an attempt has paid for is remembered in the store, so an
attempt that is killed and made again walks the same way. Only the job's id goes through the engine.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import sqlalchemy as sa
from dbos import (
    DBOS,
    DBOSClient,
    DBOSConfig,
    DBOSPortableJSONSerializer,
    EnqueueOptions,
    WorkflowStatus,
)

from regreen.adapters import heap
from regreen.bot.engine_rows import Statement, learn
from regreen.bot.plan import QUEUES
from regreen.bot.running import Runner
from regreen.errors import UserError
from regreen.ports import Clock
from regreen.records import JobRecord, Order, Store

# Another value strands every job that runs during the deploy: change it only when nothing else will do.
APPLICATION_VERSION = "1"
_APPLICATION = "regreen"
_WORKFLOW = "job"
_PER_WORKER = {"talk": 4, "review": 2, "work": 2, "care": 1}
_POLL_S = {"talk": 0.5, "review": 1.0, "work": 1.0, "care": 2.0}  # each look costs milliseconds
_BEAT_S = 10.0
_TICK_S = 20.0
_DEAD_AFTER = timedelta(seconds=60)
_GRACE_S = 5
_LOST_AFTER = timedelta(seconds=60)
_OVER = frozenset({"SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"})
_AGAIN = "~"  # no job's id has one
_LONGEST_NAP_S = 10.0
_PRUNE_S = 3600.0
_TRIM_S = 60.0
_KEEP = timedelta(days=14)

_log = logging.getLogger(__name__)


class Queue:
    """The way into the engine: enqueues inside the caller's transaction, and runs nothing."""

    def __init__(self, engine: sa.Engine) -> None:
        self._dialect = engine.dialect
        self._client = DBOSClient(
            system_database_engine=engine,
            serializer=DBOSPortableJSONSerializer(),
            application_name=_APPLICATION,
            lazy=True,
            retry_connection_errors=False,
        )

    def enqueue(self, connection: Any, order: Order) -> None:
        """Enqueue an order; it exists when `connection`'s transaction is committed."""
        self._client.enqueue_in_transaction(connection, _options(order), _job_of(order.id))

    @cached_property
    def rows(self) -> Callable[[Order], list[Statement]] | None:
        """What `enqueue` writes, for who writes it himself; None where that cannot be told."""
        return learn(self.enqueue, self._dialect)

    def close(self) -> None:
        """Let go of the client's resources; the database engine is the caller's."""
        self._client.destroy()


class Worker:
    """Runs the queue's jobs in this process, until `stop`.

    One process, one id: a second process under the same id would take over the first one's jobs while they
    run, so the id is locked with a file beside the database.
    """

    def __init__(
        self,
        *,
        engine: sa.Engine,
        store: Store,
        runner: Runner,
        clock: Clock,
        home: Path,
        tick: Callable[[], object],
    ) -> None:
        self._engine = engine
        self._store = store
        self._runner = runner
        self._clock = clock
        self._home = home
        self._tick = tick
        self._queue = Queue(engine)
        self._stop = threading.Event()
        self._idle: set[str] = set()
        self._lock: IO[str] | None = None
        self._thread = threading.Thread(target=self._beat, name="regreen-beat", daemon=True)

    def start(self) -> None:
        """Start working. Call it after a fork, never before.

        Raises:
            UserError: another process works under this id.
        """
        self._lock = _locked(self._home, self._runner.worker)
        logging.getLogger("dbos").addFilter(_is_news)
        config: DBOSConfig = {
            "name": _APPLICATION,
            "system_database_engine": self._engine,
            "application_version": APPLICATION_VERSION,
            "executor_id": self._runner.worker,
            "serializer": DBOSPortableJSONSerializer(),
            "log_level": "WARNING",
            "max_executor_threads": 64,
        }
        DBOS(config=config)
        _log_as_we_do()
        self._register()
        DBOS.launch()
        for name in QUEUES:
            DBOS.register_queue(
                name,
                worker_concurrency=_PER_WORKER[name],
                partition_concurrency=1,
                polling_interval_sec=_POLL_S[name],
            )
        self._thread.start()

    def _register(self) -> None:
        run = self._runner.run

        @DBOS.step(name="attempt")
        def attempt(job_id: str) -> float | None:
            return run(job_id)

        @DBOS.step(name="later")
        def later(workflow_id: str, wait: float) -> None:
            self._go_on_later(workflow_id, wait)

        @DBOS.workflow(name=_WORKFLOW)
        def job(job_id: str) -> None:
            while (wait := attempt(job_id)) is not None:
                if wait > _LONGEST_NAP_S:
                    later(str(DBOS.workflow_id), wait)
                    return
                DBOS.sleep(wait)

    def _go_on_later(self, workflow_id: str, wait: float) -> None:
        """Enqueue a job anew, for when its wait is over: one that sleeps would keep others from its place."""
        job_id = _job_of(workflow_id)
        job = self._store.job(job_id)
        if job is not None:
            times = int(workflow_id.partition(_AGAIN)[2] or 0) + 1
            order = _order_of(job, f"{job_id}{_AGAIN}{times}")
            with self._engine.begin() as connection:
                self._queue.enqueue(connection, replace(order, delay=wait))

    def stop(self) -> None:
        """Stop taking jobs; the ones that run are taken up again by the next start."""
        self._stop.set()
        self._runner.stop_all()
        self._thread.join(timeout=5)
        DBOS.destroy(workflow_completion_timeout_sec=_GRACE_S)
        self._queue.close()
        if self._lock is not None:
            self._lock.close()

    def _beat(self) -> None:
        beaten = ticked = pruned = trimmed = float("-inf")
        while not self._stop.wait(1.0):
            now = self._clock.monotonic()
            try:
                self._runner.notice_cancelled()
                if now - beaten >= _BEAT_S:
                    self._store.beat(self._runner.worker, self._clock.now())
                    self._runner.hand_over()
                    beaten = now
                if now - ticked >= _TICK_S:
                    self._sweep()
                    self._mend()
                    self._tick()
                    ticked = now
                if now - trimmed >= _TRIM_S:
                    heap.give_back()
                    trimmed = now
                if now - pruned >= _PRUNE_S:
                    self._prune()
                    pruned = now
            except Exception:  # noqa: BLE001 - see below
                # The beat must go on whatever the database does, or the others take us for dead.
                _log.exception("the worker's beat failed")

    def _prune(self) -> None:
        """Delete the engine's rows of jobs that ended long ago: the engine keeps them for ever."""
        before = (self._clock.now() - _KEEP).isoformat()
        old = DBOS.list_workflows(
            completed_before=before, limit=1000, load_input=False, load_output=False
        )
        if old:
            DBOS.delete_workflows([w.workflow_id for w in old])

    def _sweep(self) -> None:
        """Take over the jobs of workers that have not been seen for a minute.

        One process at a time: a job that another has taken over and begun meanwhile would be taken from it, and run
        twice at once.
        """
        with self._store.alone("sweep") as is_alone:
            if is_alone:
                self._take_over()

    def _take_over(self) -> None:
        for worker in self._store.dead_workers(self._clock.now() - _DEAD_AFTER):
            if worker == self._runner.worker:
                continue
            for workflow in DBOS.list_workflows(status="PENDING", executor_id=worker):
                job = self._store.job(_job_of(workflow.workflow_id))
                if job is not None:
                    _log.warning("worker %s is gone: taking over %s", worker, job.id)
                    DBOS.resume_workflow(workflow.workflow_id, queue_name=job.queue)

    def _mend(self) -> None:
        """Put jobs back into the engine that it has lost.

        Where a full disk or a lost connection keeps the engine from writing down how a workflow goes on, the
        workflow's thread ends, and nothing would run the job again before the next start.
        """
        overdue = self._store.overdue(self._clock.now() - _LOST_AFTER)
        # seen idle twice: after a start the engine itself takes up what ran, one after the other, and what it has
        # taken from the queue this very moment has no thread yet either. Such a job would be run twice at once.
        seen, self._idle = self._idle, {j.id for j in overdue if not self._runner.holds(j.id)}
        idle = [job for job in overdue if job.id in seen & self._idle]
        if not idle:
            return
        first = {w.workflow_id: w for w in _workflows(workflow_ids=[job.id for job in idle])}
        for job in idle:
            known = [first[job.id]] if job.id in first else []
            if known and known[0].status in _OVER:
                found = _workflows(workflow_id_prefix=job.id, sort_desc=True)
                known = [w for w in found if _job_of(w.workflow_id) == job.id]
            last = known[0] if known else None
            if last is None or last.status in _OVER:
                _log.warning("the engine has lost %s: enqueued again", job.id)
                again = f"{job.id}{_AGAIN}{len(known)}"
                with self._engine.begin() as connection:
                    self._queue.enqueue(connection, _order_of(job, again))
            elif last.status == "PENDING" and last.executor_id == self._runner.worker:
                _log.warning("%s has no thread any more: taken up again", job.id)
                DBOS.resume_workflow(last.workflow_id, queue_name=job.queue)


def _workflows(**which: Any) -> list[WorkflowStatus]:
    return DBOS.list_workflows(load_input=False, load_output=False, **which)


def _options(order: Order) -> EnqueueOptions:
    options: EnqueueOptions = {
        "workflow_name": _WORKFLOW,
        "queue_name": order.queue,
        "workflow_id": order.id,
        "queue_partition_key": order.key,
        "priority": order.priority,
        "app_version": APPLICATION_VERSION,
    }
    if order.delay > 0:
        options["delay_seconds"] = order.delay
    return options


def _order_of(job: JobRecord, workflow_id: str) -> Order:
    return Order(
        id=workflow_id,
        kind=job.kind,
        repo=job.repo,
        number=job.number,
        installation=job.installation,
        queue=job.queue,
        key=job.key,
        priority=job.priority,
        event=job.event,
    )


def _job_of(workflow_id: str) -> str:
    """The job that a workflow runs; a job that the engine lost has a second workflow."""
    return workflow_id.partition(_AGAIN)[0]


def _locked(home: Path, worker: str) -> IO[str]:
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


def _log_as_we_do() -> None:
    """The engine prints its lines itself; through our handler no secret is in them."""
    logger = logging.getLogger("dbos")
    logger.handlers.clear()
    logger.propagate = True


def _is_news(record: logging.LogRecord) -> bool:
    """Cancelling is ordinary for us; the engine reports it with an error and a traceback."""
    return "DBOSAwaitedWorkflowCancelled" not in record.getMessage()
