"""What we keep: the rows of the store as values, and the protocol that the database satisfies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

from regreen.models import Cost

JobKind = Literal["review", "fix", "bisect", "comment", "tick", "care"]
JobState = Literal["waiting", "running", "done", "failed", "cancelled", "superseded"]
ENDED: frozenset[JobState] = frozenset({"done", "failed", "cancelled", "superseded"})


@dataclass(frozen=True, slots=True)
class Order:
    """Work to be done, as it is enqueued.

    `key` is what runs one at a time; a newer order with the same `replaces` supersedes older ones;
    `event` is the JSON that the handler takes. Lower `priority` goes first.
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


@dataclass(frozen=True, slots=True)
class JobRecord:
    """An order and what became of it."""

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


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """A webhook delivery that was accepted."""

    id: str
    name: str
    repo: str | None
    event: str
    received: datetime


@dataclass(frozen=True, slots=True)
class Action:
    """One line of the audit log: who asked, what was done, to what, with what result."""

    at: datetime
    job: str
    repo: str
    number: int | None
    asked_by: str
    action: str
    detail: str


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One model call and what it cost."""

    at: datetime
    job: str
    repo: str
    number: int | None
    purpose: str
    model: str
    cost: Cost


@dataclass(frozen=True, slots=True)
class Document:
    """A result worth showing again: a review, a fix or a bisection, as INTERFACE's JSON."""

    kind: Literal["review", "fix", "bisect"]
    repo: str
    number: int | None
    subject: str
    job: str
    at: datetime
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Totals:
    """A few sums for the metrics."""

    deliveries: int
    usd: float
    calls: int
    oldest_waiting_s: float


class Store(Protocol):
    """Everything that must survive a restart, but the engine's own tables."""

    def accept(
        self,
        delivery: DeliveryRecord,
        orders: Sequence[Order],
        enqueue: Callable[[Any, Order], None],
    ) -> bool:
        """Store a delivery and its orders, and call `enqueue` with each, in one transaction.

        False, and nothing done, where the delivery is there already.
        """
        ...

    def order(self, orders: Sequence[Order], enqueue: Callable[[Any, Order], None]) -> None:
        """Store orders that no delivery brought; an id that is there already is left alone."""
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
        repo: str | None = None,
        number: int | None = None,
        limit: int = 100,
    ) -> list[JobRecord]:
        """The latest jobs."""
        ...

    def next_job(self, now: datetime) -> JobRecord | None:
        """The waiting job that is due and goes first, for a runner without an engine."""
        ...

    def begin(self, job_id: str, worker: str) -> JobRecord | None:
        """Mark a job running and count the attempt; None where it has ended (cancelled, superseded, done)."""
        ...

    def end(self, job_id: str, state: JobState, note: str) -> None:
        """Mark a job ended, unless it has ended."""
        ...

    def wait_again(self, job_id: str, due: datetime, note: str, *, counted: bool = True) -> None:
        """Put a running job back, to be tried again; not `counted`: as if this attempt had not been."""
        ...

    def overdue(self, before: datetime, limit: int = 200) -> list[JobRecord]:
        """Jobs that are not ended and were due before then, those that run first."""
        ...

    def got_further(self, job_id: str) -> None:
        """A running job has something that outlives it: its attempts count from here again."""
        ...

    def note_progress(self, job_id: str, text: str) -> None:
        """What a job is doing now."""
        ...

    def stopped(self, job_ids: Sequence[str]) -> list[str]:
        """Which of these were cancelled or superseded."""
        ...

    def cancel(
        self, repo: str, number: int | None, except_job: str = "", *, comments: bool = True
    ) -> list[str]:
        """Cancel what waits or runs for an issue or pull request, what was said there included or not; the ids."""
        ...

    def abandon(
        self, *, repo: str | None = None, installation: int | None = None, except_job: str = ""
    ) -> list[str]:
        """Cancel what waits or runs for a repository or an installation that is out of reach; the ids."""
        ...

    def rename(self, before: str, after: str) -> None:
        """A repository has another name: what is remembered of it goes along."""
        ...

    def beat(self, worker: str, now: datetime) -> None:
        """A worker is alive."""
        ...

    def alone(self, name: str) -> AbstractContextManager[bool]:
        """Keep every other process out of what goes by this name; False where one is in there."""
        ...

    def dead_workers(self, before: datetime) -> list[str]:
        """Workers not seen since `before` that still hold running jobs."""
        ...

    def answer(self, key: str) -> str | None:
        """A model's answer by its request's hash, as JSON."""
        ...

    def keep_answer(self, key: str, answer: str) -> None:
        """Remember a model's answer."""
        ...

    def charge(self, line: LedgerLine) -> None:
        """Write a model call to the ledger."""
        ...

    def spent(self, repo: str, since: datetime, number: int | None = None) -> float:
        """What model calls for a repository (or one pull request) cost since then, in US dollars."""
        ...

    def ledger(self, limit: int = 100) -> list[LedgerLine]:
        """The latest model calls."""
        ...

    def keep(self, document: Document) -> None:
        """Keep a result; the same kind, repository and subject replaces."""
        ...

    def documents(
        self,
        *,
        kind: str | None = None,
        repo: str | None = None,
        number: int | None = None,
        limit: int = 50,
    ) -> list[Document]:
        """The latest results."""
        ...

    def get(self, space: str, key: str) -> str | None:
        """A remembered value: last valid configurations, dismissed findings, what was answered."""
        ...

    def put(self, space: str, key: str, value: str) -> None:
        """Remember a value."""
        ...

    def put_new(self, space: str, key: str, value: str) -> bool:
        """Remember a value unless there is one; whether it was new."""
        ...

    def items(self, space: str, prefix: str = "") -> list[tuple[str, str]]:
        """Remembered keys that start so, with their values, oldest first."""
        ...

    def delete(self, space: str, key: str) -> None:
        """Forget a value."""
        ...

    def lines(self, key: str) -> list[str]:
        """The lines kept under `key`, oldest first."""
        ...

    def append(self, key: str, line: str) -> None:
        """Keep one more line under `key`; it has survived a crash when this returns."""
        ...

    def log(self, action: Action) -> None:
        """Append to the audit log."""
        ...

    def actions(self, *, repo: str | None = None, limit: int = 200) -> list[Action]:
        """The latest lines of the audit log."""
        ...

    def prune(self, before: datetime, results_before: datetime | None = None) -> int:
        """Forget deliveries, ended jobs and answers older than that; how many rows went."""
        ...

    def job_counts(self) -> list[tuple[str, str, int]]:
        """How many jobs there are of each kind and state."""
        ...

    def totals(self) -> Totals:
        """A few sums for the metrics."""
        ...

    def is_healthy(self) -> bool:
        """Whether the database answers a write."""
        ...
