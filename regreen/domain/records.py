"""The rows of the store as values, and the protocol that the database satisfies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, TypeVar

from regreen.domain.models import Cost, SentPart
from regreen.domain.state_records import StateRecord

Record = TypeVar("Record", bound=StateRecord)

JobKind = Literal["review", "fix", "bisect", "why", "prove", "comment", "tick", "care"]
JobState = Literal["waiting", "running", "done", "failed", "cancelled", "superseded"]
JobOutcome = Literal["", "refused", "unreadable", "green", "red", "flaky"]
"""What an end means beyond its state: a setting or budget refused the work; the configuration cannot be read; how a schedule's branch stands."""
SUSPECT_ATTEMPTS = 2
"""After so many attempts, a job whose worker died runs alone among its like."""
ENDED_STATES: frozenset[JobState] = frozenset({"done", "failed", "cancelled", "superseded"})


@dataclass(frozen=True, slots=True)
class Order:
    """A job to be enqueued.

    Jobs with the same `key` run one at a time; a newer order with the same `replaces` supersedes older ones; newer is
    a higher `rank`, then a later arrival; `event` is the handler's JSON. Lower `priority` goes first.
    """

    id: str
    kind: JobKind
    repo: str
    number: int | None
    installation: int
    queue: str
    key: str
    priority: int
    event: str
    delay: float = 0.0
    replaces: str | None = None
    rank: int = 0


@dataclass(frozen=True, slots=True)
class JobRecord:
    """An order and its progress; `lost` counts the attempts since the last orderly one whose worker died."""

    id: str
    kind: JobKind
    repo: str
    number: int | None
    installation: int
    queue: str
    key: str
    priority: int
    event: str
    replaces: str | None
    state: JobState
    attempts: int
    created: datetime
    due: datetime
    started: datetime | None
    ended: datetime | None
    worker: str | None
    note: str
    progress: str
    usd: float
    lost: int = 0
    outcome: JobOutcome = ""

    @property
    def began(self) -> datetime:
        """When its work began: an attempt after a wait sets `due` to its own start, not to that of the job."""
        return max(self.started or self.due, self.due)

    @property
    def seconds(self) -> float | None:
        """How long its work took; None before its end, or where it never began."""
        if self.started is None or self.ended is None:
            return None
        return max(0.0, (self.ended - self.began).total_seconds())

    @property
    def is_suspect(self) -> bool:
        """Whether the worker died in an earlier attempt but the first: the job may be what killed it."""
        return self.lost > 0 and self.attempts > SUSPECT_ATTEMPTS


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """A webhook delivery that was accepted."""

    id: str
    name: str
    repo: str | None
    event: str
    received: datetime


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One line of the audit log: person, action, target, result."""

    at: datetime
    job: str
    repo: str
    number: int | None
    asked_by: str
    action: str
    detail: str


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One model call, what it cost, what was sent, and in how many lines of that a credential was hidden."""

    at: datetime
    job: str
    repo: str
    number: int | None
    purpose: str
    model: str
    cost: Cost
    sent: tuple[SentPart, ...] = ()
    masked: int = 0


@dataclass(frozen=True, slots=True)
class ResultDocument:
    """A result to show again, as the JSON of docs/interface.md."""

    kind: Literal["review", "fix", "bisect", "why", "prove"]
    repo: str
    number: int | None
    subject: str
    job: str
    at: datetime
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoreTotals:
    """A few sums for the metrics."""

    deliveries: int
    usd: float
    calls: int
    oldest_waiting_s: float


class Store(Protocol):
    """Everything that must survive a restart."""

    def dispatch_deliveries(
        self, decide: Callable[[DeliveryRecord], Sequence[Order]], limit: int
    ) -> int:
        """Store the jobs of pending deliveries in the order of their arrival; return how many deliveries.

        Raises:
            Exception: what `decide` or a job's row raised; all of these deliveries are still pending.
        """
        ...

    def reject_oldest_delivery(self) -> str | None:
        """Set the oldest pending delivery aside, which cannot be dispatched; return its id, None if there is none."""
        ...

    def store_orders(self, orders: Sequence[Order]) -> None:
        """Store orders without a delivery; an existing id is left alone."""
        ...

    def delivery(self, delivery_id: str) -> DeliveryRecord | None:
        """One delivery."""
        ...

    def deliveries(self, limit: int = 100) -> list[DeliveryRecord]:
        """The latest deliveries."""
        ...

    def job(self, job_id: str) -> JobRecord | None:
        """One job."""
        ...

    def jobs(
        self,
        *,
        states: Sequence[JobState] = (),
        kinds: Sequence[JobKind] = (),
        repo: str | None = None,
        number: int | None = None,
        limit: int = 100,
    ) -> list[JobRecord]:
        """The latest jobs."""
        ...

    def due_queues(self, now: datetime) -> list[str]:
        """The queues with jobs that are due."""
        ...

    def claim_job(
        self,
        worker: str,
        now: datetime,
        *,
        queue: str = "",
        job_id: str = "",
        suspects: bool = True,
        except_jobs: Sequence[str] = (),
    ) -> JobRecord | None:
        """Mark the due job that goes first as running, count the attempt and return the job; None if there is none.

        A job whose key is that of a running job of its queue has to wait; without `suspects`, so has a suspect.
        """
        ...

    def release_lost_jobs(
        self, worker: str, running: Sequence[str], silent: timedelta
    ) -> list[JobRecord]:
        """Put back the jobs that `worker` holds besides those it is `running`, and those of dead workers.

        A worker is dead without a heartbeat for `silent`. Returned are these jobs as they were, and the jobs that were
        cancelled or superseded when nobody ran them, each once.
        """
        ...

    def release_again(self, job: JobRecord) -> None:
        """Return this stopped job once more from `release_lost_jobs`: its end could not be reported."""
        ...

    def end(
        self,
        job_id: str,
        state: JobState,
        note: str,
        *,
        worker: str = "",
        outcome: JobOutcome = "",
    ) -> None:
        """Mark a job ended, unless it has ended; `worker`: only if the job is still this worker's."""
        ...

    def reschedule_job(
        self, job: JobRecord, due: datetime, note: str, *, counted: bool = True
    ) -> None:
        """Put a running job back for another attempt, if it is still its worker's; not `counted`: this one is free."""
        ...

    def reset_attempts(self, job_id: str) -> None:
        """Reset the attempts of a running job, which has made durable progress."""
        ...

    def note_progress(self, job_id: str, text: str) -> None:
        """Record a job's present step."""
        ...

    def find_stopped_jobs(self, job_ids: Sequence[str], worker: str | None) -> list[str]:
        """Which of these jobs `worker` should not run any more: cancelled, superseded, or taken over."""
        ...

    def cancel_jobs(self, job_ids: Sequence[str], note: str = "cancelled") -> list[str]:
        """Cancel those of these jobs that have not ended; return their ids. `note`: who or what cancelled them."""
        ...

    def abandon(
        self, *, repo: str | None = None, installation: int | None = None, except_job: str = ""
    ) -> list[str]:
        """Cancel the unfinished jobs of a repository or installation that is out of reach; return the ids."""
        ...

    def rename(self, before: str, after: str) -> None:
        """Move everything of a renamed repository; what the new name has already is replaced."""
        ...

    def record_heartbeat(self, worker: str) -> None:
        """Record that a worker is alive, by the database's clock."""
        ...

    def cached_answer(self, key: str) -> str | None:
        """A model's answer by its request's hash, as JSON."""
        ...

    def cache_answer(self, key: str, answer: str) -> None:
        """Remember a model's answer."""
        ...

    def charge(self, line: LedgerLine) -> None:
        """Write a model call to the ledger."""
        ...

    def total_spent(self, repo: str, since: datetime, number: int | None = None) -> float:
        """The cost of model calls for a repository (or one pull request) since then, in US dollars."""
        ...

    def total_job_seconds(self, repo: str, since: datetime) -> float:
        """How long a repository's jobs have taken since then, together; those that run count until now.

        Of a job that was put off, only its latest attempt counts.
        """
        ...

    def ledger(self, limit: int = 100) -> list[LedgerLine]:
        """The latest model calls."""
        ...

    def save_document(self, document: ResultDocument) -> None:
        """Store a result; it replaces one of the same kind, repository and subject."""
        ...

    def documents(
        self,
        *,
        kind: str | None = None,
        repo: str | None = None,
        number: int | None = None,
        limit: int = 50,
    ) -> list[ResultDocument]:
        """The latest results."""
        ...

    def save(self, record: StateRecord) -> None:
        """Store a record; it replaces the one with its key."""
        ...

    def add(self, record: StateRecord) -> bool:
        """Store a record unless there is one with its key; return whether it was new."""
        ...

    def find(self, kind: type[Record], /, **values: object) -> Record | None:
        """The oldest record of a type with these values, None if there is none."""
        ...

    def find_all(
        self, kind: type[Record], /, *, repos_of: str = "", **values: object
    ) -> list[Record]:
        """The records of a type with these values, oldest first; `repos_of`: only of repositories of this account."""
        ...

    def remove(self, kind: type[StateRecord], /, **values: object) -> None:
        """Delete the records of a type with these values."""
        ...

    def observations(self, key: str) -> list[str]:
        """The observations of bisections under a digest, oldest first."""
        ...

    def add_observation(self, key: str, line: str) -> None:
        """Append an observation under a digest; it is durable when this returns."""
        ...

    def log(self, action: AuditEntry) -> None:
        """Append to the audit log."""
        ...

    def actions(self, *, repo: str | None = None, limit: int = 200) -> list[AuditEntry]:
        """The latest lines of the audit log."""
        ...

    def prune(self, before: datetime, results_before: datetime | None = None) -> int:
        """Delete deliveries, ended jobs and answers older than that; return how many rows."""
        ...

    def job_counts(self) -> list[tuple[str, str, int]]:
        """The number of jobs of each kind and state."""
        ...

    def totals(self) -> StoreTotals:
        """A few sums for the metrics."""
        ...
