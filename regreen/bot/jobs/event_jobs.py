"""Decides which jobs an event leads to: queue, mutual exclusion, replacement. Pure."""

from __future__ import annotations

import hashlib
import threading
import zlib
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from regreen.bot.jobs.serialization import serialize_work
from regreen.domain.events import (
    BisectRequest,
    ButtonPressed,
    CauseRequest,
    CheckFailed,
    CheckPassed,
    CheckRerequested,
    CommentPosted,
    FixRequest,
    InstallationChanged,
    Maintenance,
    MergeGroupRequested,
    NewTestRequest,
    Pinged,
    ProofRequest,
    PullRequestApproved,
    PullRequestChanged,
    Pushed,
    QuestionRequest,
    RepositoryChanged,
    RepositoryRef,
    ReviewRequest,
    ThreadChanged,
    Tick,
    Work,
)
from regreen.domain.ports import Clock
from regreen.domain.records import JobKind, Order

ASKED, PUSHED, SCHEDULED = 1, 1001, 2001  # `FairQueue` adds up to 900
BRANCH_PREFIX = "regreen/"
_INACTIVE_CHANGES = frozenset({"converted_to_draft", "closed"})


def make_orders(  # noqa: C901, PLR0911, PLR0912 - one case a kind of event, each a line or three
    work: Work, source: str, *, delay: float = 0.0
) -> tuple[Order, ...]:
    """The orders for `work`; `source` is the delivery's id, or something else that makes the id unique."""
    match work:
        case PullRequestChanged() if work.change in _INACTIVE_CHANGES:
            return (_make_order(work, source, "comment", work.number, ASKED),)
        case PullRequestChanged():
            replaces = f"review/{work.where.repo}/{work.number}"
            return (
                _make_order(
                    work, source, "review", work.number, PUSHED, delay=delay, replaces=replaces
                ),
            )
        case PullRequestApproved():
            replaces = f"approved/{work.where.repo}/{work.number}"
            return (_make_order(work, source, "why", work.number, PUSHED, replaces=replaces),)
        case CommentPosted():
            # dropped here because it is cheap: comments of bots, and comments without a possible command
            if work.actor.is_bot or not work.body.strip():
                return ()
            return (_make_order(work, source, "comment", work.number, ASKED),)
        case CheckFailed():
            if work.head_branch.startswith(BRANCH_PREFIX):
                return ()
            number = work.pulls[0] if work.pulls else None
            replaces = f"fix/{work.where.repo}/{work.head_branch or work.head_sha}/{work.name}"
            # GitHub numbers the runs of a workflow and their attempts in order
            rank = (work.run_id or 0) * 1000 + work.attempt
            fix = _make_order(work, source, "fix", number, PUSHED, replaces=replaces, rank=rank)
            if not (work.pulls or work.fork) and work.head_branch == work.where.default_branch:
                return (fix,)
            why = CauseRequest(
                work.where,
                number or 0,
                work.head_sha,
                name=work.name,
                run_id=work.run_id,
                app=work.app,
            )
            # first: both share a lane, and no repair is tried of a failure that is not the change's
            first = _make_order(why, source, "why", number, PUSHED)
            return (first,) if work.is_status else (first, fix)
        case CheckPassed():
            return (_make_order(work, source, "comment", None, PUSHED),)
        case CheckRerequested() | ButtonPressed() | ThreadChanged():
            pulls = (work.number,) if isinstance(work, ThreadChanged) else work.pulls
            return (_make_order(work, source, "comment", pulls[0] if pulls else None, ASKED),)
        case MergeGroupRequested() | RepositoryChanged():
            return (_make_order(work, source, "comment", None, ASKED),)
        case Pushed():
            if work.branch != work.where.default_branch or set(work.after) == {"0"}:
                return ()
            return (_make_order(work, source, "comment", None, PUSHED),)
        case InstallationChanged():
            return (
                _make_simple_order(
                    work, source, f"installation/{work.installation}", work.installation
                ),
            )
        case Pinged():
            return ()
        case Tick():
            return (_make_order(work, source, "tick", None, SCHEDULED),)
        case ReviewRequest():
            replaces = f"review/{work.where.repo}/{work.number}"
            return (_make_order(work, source, "review", work.number, ASKED, replaces=replaces),)
        case FixRequest():
            return (_make_order(work, source, "fix", work.number, ASKED),)
        case BisectRequest():
            return (_make_order(work, source, "bisect", work.number, ASKED),)
        case CauseRequest():
            return (_make_order(work, source, "why", work.number or None, ASKED),)
        case ProofRequest():
            return (_make_order(work, source, "prove", work.number, ASKED),)
        case NewTestRequest() | QuestionRequest():
            return (_make_order(work, source, "review", work.number, ASKED),)
        case Maintenance():
            return (_make_simple_order(work, source, "care", 0),)


_QUEUE_BY_KIND: dict[JobKind, str] = {
    "comment": "talk",
    "review": "review",
    "fix": "work",
    "bisect": "work",
    "why": "work",
    "prove": "review",
    "tick": "work",
    "care": "care",
}


def _make_order(
    work: Work,
    source: str,
    kind: JobKind,
    number: int | None,
    priority: int,
    *,
    delay: float = 0.0,
    replaces: str | None = None,
    rank: int = 0,
) -> Order:
    assert not isinstance(work, InstallationChanged | Pinged | Maintenance)  # noqa: S101 - narrows
    where: RepositoryRef = work.where
    per_pull = kind in {"review", "prove", "comment"} and number is not None
    return Order(
        id=f"{kind}/{where.repo}/{number if number is not None else '-'}/{_shorten_source(source)}",
        kind=kind,
        repo=where.repo,
        number=number,
        installation=where.installation,
        queue=_QUEUE_BY_KIND[kind],
        key=f"{where.repo}#{number}" if per_pull else where.repo,
        priority=priority,
        event=serialize_work(work),
        delay=delay,
        replaces=_shorten_key(replaces) if replaces else None,
        rank=rank,
    )


def _make_simple_order(
    work: InstallationChanged | Maintenance, source: str, key: str, installation: int
) -> Order:
    return Order(
        id=f"care/{key}/{_shorten_source(source)}",
        kind="care",
        repo="",
        number=None,
        installation=installation,
        queue="care",
        key=key,
        # removals go first: work for a removed repository would only fail
        priority=ASKED if isinstance(work, InstallationChanged) else PUSHED,
        event=serialize_work(work),
    )


def _shorten_source(source: str) -> str:
    """A delivery id as it is, or its digest if it is long."""
    if len(source) <= 64:
        return source
    return hashlib.sha256(source.encode()).hexdigest()[:32]


def _shorten_key(key: str) -> str:
    """Shorten names of branches and workflows, which have no limit, to the column's width."""
    if len(key) <= 300:
        return key
    return key[:200] + hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


# Fairness of the queue: no installation takes all workers, and none waits for the crowd of another.

_RECENT_SECONDS = 600.0
_MAX_QUEUE_POSITION = 900  # less than the distance between the priorities above
_LIMITED_QUEUES = frozenset({"review", "work"})


class FairQueue:
    """Limits and fairness between installations; the orders already say what excludes each other within one.

    Args:
        clock: the time.
        lanes: how many reviews, and how many repairs and bisections, of one installation run at once on all
            workers together. A repository (or a pull request, for reviews) always has the same lane.
    """

    def __init__(self, clock: Clock, lanes: int) -> None:
        self._clock = clock
        self._lanes = lanes
        self._lock = threading.Lock()
        self._recent: dict[int, deque[float]] = {}

    def admit_orders(self, orders: Sequence[Order]) -> tuple[Order, ...]:
        """The orders with their final queue, lane and priority."""
        return tuple(self._admit_order(order) for order in orders)

    def _admit_order(self, order: Order) -> Order:
        if order.queue not in _LIMITED_QUEUES:
            return order
        lane = zlib.crc32(order.key.encode()) % self._lanes
        return replace(
            order,
            key=f"{order.installation}/{lane}",
            priority=order.priority + self._queue_position(order.installation),
        )

    def _queue_position(self, installation: int) -> int:
        """The distance from the front of the queue: one place for each order of the last ten minutes."""
        now = self._clock.monotonic()
        with self._lock:
            for other in [
                i for i, past in self._recent.items() if now - past[-1] > _RECENT_SECONDS
            ]:
                del self._recent[other]
            past = self._recent.setdefault(installation, deque(maxlen=_MAX_QUEUE_POSITION))
            while past and now - past[0] > _RECENT_SECONDS:
                past.popleft()
            past.append(now)
            return len(past) - 1
