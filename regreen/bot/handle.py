"""An event, or what somebody asked for, becomes an action: the one `match`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial

from regreen.bot import branches, care, lessons, say
from regreen.bot.answering import answer_question, write_test
from regreen.bot.asks import Ask, Bisect, Care, Fix, Review, WriteTest
from regreen.bot.bisecting import bisect_asked, look_at_schedule
from regreen.bot.desk import Desk
from regreen.bot.envelope import unpack
from regreen.bot.fixing import (
    close_needless_fix,
    fix_asked,
    fix_failed_check,
    publish_approved,
    say_broken_down,
)
from regreen.bot.replies import Reply
from regreen.bot.reviewing import review_pull, say_failed, say_stopped
from regreen.bot.running import Job
from regreen.bot.talking import Talk
from regreen.forge import REVIEW, TALK
from regreen.records import JobRecord, Order
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

OrderWork = Callable[[tuple[Order, ...]], None]


class Handler:
    """Does a job's work: satisfies `running.Handle` and, for what went wrong, `running.Failed`."""

    def __init__(self, desk: Desk, order: OrderWork) -> None:
        self._desk = desk
        self._order = order
        self._talk = Talk(desk, order, partial(publish_approved, desk))

    def __call__(self, job: Job) -> str:  # noqa: C901, PLR0911, PLR0912 - one case a kind of work
        """Do it; one line on what came out."""
        desk = self._desk
        match care.as_it_is_now(desk, unpack(job.record.event)):
            case PullRequestChanged(change="closed" | "converted_to_draft") as event:
                # what people said before is still answered, and dismissals are still learnt from
                stopped = desk.store.cancel(event.where.repo, event.number, job.record.id, comments=False)  # fmt: skip
                lessons.hear(desk, desk.github(event.where, REVIEW), event.number)
                return f"stopped {len(stopped)} jobs"
            case PullRequestChanged() as event:
                return review_pull(desk, job, event.where, event.number, pushed=event.head_sha)
            case Review() as ask:
                return review_pull(
                    desk, job, ask.where, ask.number, asked_by=ask.asked_by, full=ask.full
                )
            case CommentPosted() as event:
                return self._talk.comment(job, event)
            case ButtonPressed() as event:
                return self._talk.button(job, event)
            case CheckRerequested() as event:
                return self._review_again(job, event)
            case MergeGroupRequested() as event:
                return self._merge_group(job, event.where, event.head_sha)
            case CheckFailed() as event:
                return fix_failed_check(desk, job, event)
            case Fix() as ask:
                return fix_asked(desk, job, ask)
            case CheckPassed() as event:
                return close_needless_fix(desk, job, event)
            case Bisect() as ask:
                return bisect_asked(desk, job, ask)
            case Tick() as event:
                return look_at_schedule(desk, job, event)
            case Ask() as ask:
                return answer_question(desk, job, ask)
            case WriteTest() as ask:
                return write_test(desk, job, ask)
            case Pushed() as event:
                return care.learn(desk, event.where)
            case InstallationChanged() as event:
                return care.installation_changed(desk, job, event)
            case RepositoryChanged() as event:
                return care.repository_changed(desk, job, event, self._order)
            case ThreadChanged() as event:
                return lessons.thread_changed(desk, event)
            case Care(task="redeliver"):
                return care.redeliver_missed(desk)
            case Care(task="sandbox"):
                return care.try_sandbox(desk)
            case Care(task="schedules"):
                return care.read_schedules_anew(desk, job)
            case Care(task="branches"):
                return branches.take_back(desk)
            case Care():
                return care.prune(desk)
            case Pinged():
                return "pong"

    def failed(self, record: JobRecord, reason: str) -> None:
        """Tell whoever waits for a job that it failed, and why; nothing half done of it stays."""
        if record.queue == "work" or record.kind == "comment":
            branches.take_back(self._desk, record.id)
        self._tell(record, reason)

    def _tell(self, record: JobRecord, reason: str) -> None:
        match care.as_it_is_now(self._desk, unpack(record.event)):
            case PullRequestChanged() | Review() as work:
                say_failed(self._desk, record, work.where, work.number, reason)
            case CheckFailed() as event:
                say_broken_down(self._desk, record, event, reason)
            case Fix() | Bisect() | WriteTest() | Ask() as ask:
                github = self._desk.github(ask.where, TALK)
                reply = Reply(github, self._desk.store, ask.number, ask.comment, record.id)
                reply.say(say.failed(reason, record.id))
                reply.react("confused")
            case CommentPosted() | ButtonPressed() as event:
                self._talk.failed(record, event, reason)
            case _:
                pass

    def stopped(self, record: JobRecord) -> None:
        """End what a job began that was stopped while no process ran it: a check run must not spin for ever."""
        match care.as_it_is_now(self._desk, unpack(record.event)):
            case PullRequestChanged() as event:
                say_stopped(self._desk, record, event.where, event.head_sha)
            case Review() as ask if record.state == "cancelled":
                github = self._desk.github(ask.where, REVIEW)
                say_stopped(self._desk, record, ask.where, github.pull(ask.number).head_sha)
            case Fix() | Bisect() | WriteTest() | Ask() as ask:
                github = self._desk.github(ask.where, TALK)
                reply = Reply(github, self._desk.store, ask.number, ask.comment, record.id)
                reply.say(say.was_cancelled())
            case _:
                pass

    def _review_again(self, job: Job, event: CheckRerequested) -> str:
        numbers = event.pulls
        if not numbers:
            github = self._desk.github(event.where, REVIEW)
            numbers = tuple(p.number for p in github.pulls(head_sha=event.head_sha))
        notes = [
            review_pull(self._desk, job, event.where, number, asked_by=event.actor.login)
            for number in numbers[:5]
        ]
        return "; ".join(notes) or "no pull request has this head"

    def _merge_group(self, job: Job, where: Where, head_sha: str) -> str:
        github = self._desk.github(where, REVIEW)
        external_id = "queue-" + hashlib.sha256(head_sha.encode()).hexdigest()[:24]
        job.check()
        github.check_run(say.passed_in_queue(head_sha, external_id))
        return "said that each pull request was reviewed"
