"""Paged lists: the query for rows, and one page of them with a cursor for the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from regreen.domain.records import (
    AuditEntry,
    DeliveryRecord,
    JobOutcome,
    JobRecord,
    LedgerLine,
    ResultDocument,
    Store,
)

Row = TypeVar("Row")

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class ListQuery:
    """A query for rows of a list. Empty fields do not restrict it.

    `repos` are those that the reader may see, None for all; `after` is the end of the previous page. Rows of a kind in
    `hidden` are left out, unless `kind` asks for it.
    """

    repos: tuple[str, ...] | None = None
    repo: str = ""
    number: int | None = None
    kind: str = ""
    state: str = ""
    words: str = ""
    job: str = ""
    after: str = ""
    limit: int = PAGE_SIZE
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows, newest first, and the `after` of the next page; empty on the last page."""

    rows: Sequence[Row]
    after: str = ""


@dataclass(frozen=True, slots=True)
class RepositoryMonth:
    """A repository's sums since a moment: results by kind, and dollars, in total and since `today`."""

    repo: str
    reviews: int = 0
    fixes: int = 0
    bisections: int = 0
    usd: float = 0.0
    usd_today: float = 0.0


@dataclass(frozen=True, slots=True)
class ScheduleRun:
    """One run of a schedule: its time, the job's state, its message, and what that means."""

    repo: str
    at: datetime
    job: str
    state: str
    note: str
    outcome: JobOutcome


@dataclass(frozen=True, slots=True)
class QueueState:
    """The state of a queue: due jobs, the age of the oldest of them, running jobs."""

    queue: str
    waiting: int
    oldest_s: float
    running: int


@dataclass(frozen=True, slots=True)
class JobDurations:
    """Ended jobs of one kind: their number, and the total seconds of running and of waiting."""

    kind: str
    count: int
    took_s: float
    waited_s: float


@dataclass(frozen=True, slots=True)
class TokenTotals:
    """Input and output tokens of model calls, and those from the cache."""

    read: int
    written: int
    cached: int


class MetricsStore(Store, Protocol):
    """A store with the sums for metrics."""

    def add_counts(self, counts: Mapping[str, int]) -> None:
        """Add to counters that only grow; a new one starts at zero."""
        ...

    def counters(self) -> dict[str, int]:
        """Every counter."""
        ...

    def queues(self) -> list[QueueState]:
        """Each queue with work."""
        ...

    def job_durations(self) -> list[JobDurations]:
        """The waiting and running times of ended jobs by kind."""
        ...

    def tokens(self) -> TokenTotals:
        """The tokens of all model calls."""
        ...


class DashboardStore(Store, Protocol):
    """A store whose lists can be paged through."""

    def list_jobs(self, query: ListQuery) -> Page[JobRecord]:
        """Jobs by their creation time."""
        ...

    def list_deliveries(self, query: ListQuery) -> Page[DeliveryRecord]:
        """Deliveries by their arrival time."""
        ...

    def list_documents(self, query: ListQuery) -> Page[ResultDocument]:
        """Results by their time."""
        ...

    def list_ledger(self, query: ListQuery) -> Page[LedgerLine]:
        """Model calls."""
        ...

    def list_actions(self, query: ListQuery) -> Page[AuditEntry]:
        """The audit log."""
        ...

    def results_of(self, job_id: str) -> list[ResultDocument]:
        """The result of one job."""
        ...

    def list_job_progress(self, job_id: str) -> list[tuple[datetime, str]]:
        """The progress lines of a job, oldest first."""
        ...

    def months(self, since: datetime, today: datetime) -> list[RepositoryMonth]:
        """Every repository with its sums."""
        ...

    def schedule_runs(self, since: datetime) -> list[ScheduleRun]:
        """The runs of schedules since then, newest first."""
        ...

    def cancel_jobs(self, job_ids: Sequence[str], note: str = "cancelled") -> list[str]:
        """Cancel those of these jobs that have not ended; return their ids. `note`: who or what cancelled them."""
        ...
