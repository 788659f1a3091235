"""Which work an event asks for: queue, what runs one at a time, what replaces what. Pure."""

from __future__ import annotations

import hashlib

from regreen.bot.asks import Ask, Bisect, Care, Fix, Review, Work, WriteTest
from regreen.bot.envelope import pack
from regreen.records import JobKind, Order
from regreen.webhooks.events import (
    ButtonPressed,
    CheckFailed,
    CheckPassed,
    CheckRerequested,
    CommentPosted,
    InstallationChanged,
    MergeGroupRequested,
    Pinged,
    PullRequestChanged,
    Pushed,
    RepositoryChanged,
    ThreadChanged,
    Tick,
    Where,
)

ASKED, PUSHED, SCHEDULED = 1, 1001, 2001  # `admission` puts orders up to 900 places back
BRANCH_PREFIX = "regreen/"
_HIDDEN_WORK = frozenset({"converted_to_draft", "closed"})


def orders(  # noqa: C901, PLR0911, PLR0912 - one case a kind of event, each a line or three
    work: Work, source: str, *, delay: float = 0.0
) -> tuple[Order, ...]:
    """The orders that `work` leads to; `source` is the delivery's id, or what else makes the id unique."""
    match work:
        case PullRequestChanged() if work.change in _HIDDEN_WORK:
            return (_order(work, source, "comment", work.number, ASKED),)
        case PullRequestChanged():
            replaces = f"review/{work.where.repo}/{work.number}"
            return (
                _order(work, source, "review", work.number, PUSHED, delay=delay, replaces=replaces),
            )
        case CommentPosted():
            # cheap to drop here: what bots write, and what holds no word that could be a command
            if work.actor.is_bot or not work.body.strip():
                return ()
            return (_order(work, source, "comment", work.number, ASKED),)
        case CheckFailed():
            if work.head_branch.startswith(BRANCH_PREFIX):
                return ()
            number = work.pulls[0] if work.pulls else None
            replaces = f"fix/{work.where.repo}/{work.head_branch or work.head_sha}/{work.name}"
            return (_order(work, source, "fix", number, PUSHED, replaces=replaces),)
        case CheckPassed():
            return (_order(work, source, "comment", None, PUSHED),)
        case CheckRerequested() | ButtonPressed() | ThreadChanged():
            pulls = (work.number,) if isinstance(work, ThreadChanged) else work.pulls
            return (_order(work, source, "comment", pulls[0] if pulls else None, ASKED),)
        case MergeGroupRequested() | RepositoryChanged():
            return (_order(work, source, "comment", None, ASKED),)
        case Pushed():
            if work.branch != work.where.default_branch or set(work.after) == {"0"}:
                return ()
            return (_order(work, source, "comment", None, PUSHED),)
        case InstallationChanged():
            return (_plain(work, source, f"installation/{work.installation}", work.installation),)
        case Pinged():
            return ()
        case Tick():
            return (_order(work, source, "tick", None, SCHEDULED),)
        case Review():
            replaces = f"review/{work.where.repo}/{work.number}"
            return (_order(work, source, "review", work.number, ASKED, replaces=replaces),)
        case Fix():
            return (_order(work, source, "fix", work.number, ASKED),)
        case Bisect():
            return (_order(work, source, "bisect", work.number, ASKED),)
        case WriteTest() | Ask():
            return (_order(work, source, "review", work.number, ASKED),)
        case Care():
            return (_plain(work, source, "care", 0),)


_QUEUES: dict[JobKind, str] = {
    "comment": "talk",
    "review": "review",
    "fix": "work",
    "bisect": "work",
    "tick": "work",
    "care": "care",
}
QUEUES = ("talk", "review", "work", "care")


def _order(
    work: Work,
    source: str,
    kind: JobKind,
    number: int | None,
    priority: int,
    *,
    delay: float = 0.0,
    replaces: str | None = None,
) -> Order:
    assert not isinstance(work, InstallationChanged | Pinged | Care)  # noqa: S101 - narrows
    where: Where = work.where
    per_pull = kind in {"review", "comment"} and number is not None
    return Order(
        id=f"{kind}/{where.repo}/{number if number is not None else '-'}/{_short(source)}",
        kind=kind,
        repo=where.repo,
        number=number,
        installation=where.installation,
        queue=_QUEUES[kind],
        key=f"{where.repo}#{number}" if per_pull else where.repo,
        priority=priority,
        event=pack(work),
        delay=delay,
        replaces=_fitting(replaces) if replaces else None,
    )


def _plain(work: InstallationChanged | Care, source: str, key: str, installation: int) -> Order:
    return Order(
        id=f"care/{key}/{_short(source)}",
        kind="care",
        repo="",
        number=None,
        installation=installation,
        queue="care",
        key=key,
        # who is let out, goes first: work for them would only fail
        priority=ASKED if isinstance(work, InstallationChanged) else PUSHED,
        event=pack(work),
    )


def _short(source: str) -> str:
    """Delivery ids as they are; anything longer by its digest."""
    if len(source) <= 64:
        return source
    return hashlib.sha256(source.encode()).hexdigest()[:32]


def _fitting(key: str) -> str:
    """Branches and workflows may have names of any length; a column has not."""
    if len(key) <= 300:
        return key
    return key[:200] + hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
