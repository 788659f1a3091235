"""What people ask for by command or button, in the imperative; jobs carry these beside GitHub's events."""

from __future__ import annotations

from dataclasses import dataclass

from regreen.webhooks.events import Event, Where


@dataclass(frozen=True, slots=True)
class CommentRef:
    """The comment that asked, to be answered and given its last reaction; `line` of several commands in it."""

    id: int
    review: bool
    line: int = 0


@dataclass(frozen=True, slots=True)
class Review:
    """Review a pull request now; `full`: as if nothing had been said before."""

    where: Where
    number: int
    full: bool
    asked_by: str
    comment: CommentRef | None = None


@dataclass(frozen=True, slots=True)
class Fix:
    """Repair what is red on a pull request or, for an issue, on the default branch."""

    where: Where
    number: int
    on_pull: bool
    hint: str
    asked_by: str
    comment: CommentRef | None = None


@dataclass(frozen=True, slots=True)
class Bisect:
    """Find the commit that broke `test` (default: the configured test command)."""

    where: Where
    number: int
    good: str | None
    bad: str | None
    test: str | None
    asked_by: str
    comment: CommentRef | None = None


@dataclass(frozen=True, slots=True)
class WriteTest:
    """Propose a test for what a pull request leaves uncovered."""

    where: Where
    number: int
    path: str
    asked_by: str
    comment: CommentRef | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """Answer a question about a pull request or issue; an empty question asks for an explanation.

    `thread` is the remark on a line that the comment answers.
    """

    where: Where
    number: int
    on_pull: bool
    question: str
    asked_by: str
    comment: CommentRef | None = None
    thread: int | None = None


@dataclass(frozen=True, slots=True)
class Care:
    """Look after ourselves: the "sandbox", "redeliver" missed deliveries, "branches" taken back, "prune" what is old, "schedules" read anew."""

    task: str


Demand = Review | Fix | Bisect | WriteTest | Ask | Care
Work = Event | Demand
