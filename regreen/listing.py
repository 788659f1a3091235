"""Lists that stay fast however long they are: which rows are asked for, and one page of them with the way to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from regreen.records import (
    Action,
    DeliveryRecord,
    Document,
    JobRecord,
    LedgerLine,
    Store,
)

Row = TypeVar("Row")

PAGE = 50


@dataclass(frozen=True, slots=True)
class Sought:
    """Which rows of a list are asked for. What is empty does not narrow it.

    `repos` are those that the reader may see, None for all; `after` is the place where the page before ended.
    """

    repos: tuple[str, ...] | None = None
    repo: str = ""
    number: int | None = None
    kind: str = ""
    state: str = ""
    words: str = ""
    job: str = ""
    after: str = ""
    limit: int = PAGE


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows, newest first, and the `after` of the next page; empty where this is the last one."""

    rows: Sequence[Row]
    after: str = ""


@dataclass(frozen=True, slots=True)
class Month:
    """What a repository had since a moment: results by kind, and dollars, of them those since `today`."""

    repo: str
    reviews: int = 0
    fixes: int = 0
    bisections: int = 0
    usd: float = 0.0
    usd_today: float = 0.0


@dataclass(frozen=True, slots=True)
class Look:
    """One look of a schedule at its branch: when, how the job stands, and what it said."""

    repo: str
    at: datetime
    job: str
    state: str
    note: str


@dataclass(frozen=True, slots=True)
class QueueState:
    """What stands in a queue: jobs that are due, how long the oldest of them has been, jobs that run."""

    queue: str
    waiting: int
    oldest_s: float
    running: int


@dataclass(frozen=True, slots=True)
class Spans:
    """Ended jobs of one kind: how many, and the seconds that all of them took and had waited."""

    kind: str
    count: int
    took_s: float
    waited_s: float


@dataclass(frozen=True, slots=True)
class Tokens:
    """What model calls took in and gave out, and what of it came from the cache."""

    read: int
    written: int
    cached: int


@dataclass(frozen=True, slots=True)
class Limit:
    """What GitHub said last of a rate limit: whose, of what, how much is left of how much, and when it is whole again."""

    owner: str
    resource: str
    left: int
    most: int
    resets: float


class Watched(Store, Protocol):
    """A store with the sums that machines watch."""

    def add(self, counts: Mapping[str, int]) -> None:
        """Add to counters that only grow; one that is new begins at nought."""
        ...

    def counters(self) -> dict[str, int]:
        """Every counter."""
        ...

    def keep_limits(self, limits: Sequence[Limit]) -> None:
        """Keep what GitHub said last of its limits."""
        ...

    def limits(self) -> list[Limit]:
        """What GitHub said last of each limit that was used within a day."""
        ...

    def queues(self) -> list[QueueState]:
        """Each queue that holds work."""
        ...

    def spans(self) -> list[Spans]:
        """How long ended jobs of each kind waited and took."""
        ...

    def tokens(self) -> Tokens:
        """What all model calls took in and gave out."""
        ...


class Shelf(Store, Protocol):
    """A store that can be leafed through."""

    def list_jobs(self, sought: Sought) -> Page[JobRecord]:
        """Jobs, by when they were ordered."""
        ...

    def list_deliveries(self, sought: Sought) -> Page[DeliveryRecord]:
        """Deliveries, by when they came."""
        ...

    def list_documents(self, sought: Sought) -> Page[Document]:
        """Results, by when they came out."""
        ...

    def list_ledger(self, sought: Sought) -> Page[LedgerLine]:
        """Model calls."""
        ...

    def list_actions(self, sought: Sought) -> Page[Action]:
        """The audit log."""
        ...

    def results_of(self, job_id: str) -> list[Document]:
        """What one job found out."""
        ...

    def trail(self, job_id: str) -> list[tuple[datetime, str]]:
        """What a job said that it was doing, oldest first."""
        ...

    def months(self, since: datetime, today: datetime) -> list[Month]:
        """Every repository with its sums."""
        ...

    def looks(self, since: datetime) -> list[Look]:
        """What schedules saw since then, newest first."""
        ...

    def regressions(self) -> list[tuple[str, str]]:
        """The schedules that are red, as `REPOSITORY/NAME`, each with what was noted, as JSON."""
        ...

    def cancel_job(self, job_id: str) -> bool:
        """Cancel one job; whether it had not ended."""
        ...
