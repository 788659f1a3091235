"""Turns an event or a request into an action: the one `match`."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from functools import partial

from regreen.bot import feedback, messages
from regreen.bot.command_handler import CommandHandler
from regreen.bot.flows import branches, maintenance
from regreen.bot.flows.answer import answer_question, write_test
from regreen.bot.flows.bisect import bisect_on_request, run_schedule
from regreen.bot.flows.fix import (
    close_needless_fix,
    fix_failed_check,
    fix_on_request,
    publish_approved,
    record_closed_repair,
    report_broken_repair,
)
from regreen.bot.flows.prove import prove_on_request
from regreen.bot.flows.review import (
    refresh_check,
    report_failed_review,
    report_stopped_review,
    review_pull,
)
from regreen.bot.flows.why import answer_failed_check, try_approved_change
from regreen.bot.jobs.runner import Job, JobEnd
from regreen.bot.jobs.serialization import deserialize_work
from regreen.bot.open_tasks import post_digest
from regreen.bot.replies import CommandReply
from regreen.bot.services import Services
from regreen.domain.events import (
    AnswerRequest,
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
    MaintenanceTask,
    MergeGroupRequested,
    NewTestRequest,
    Pinged,
    ProofRequest,
    PullRequestApproved,
    PullRequestChanged,
    Pushed,
    QuestionRequest,
    RepositoryChanged,
    ReviewRequest,
    ThreadChanged,
    Tick,
)
from regreen.domain.github import COMMENT_SCOPE, REVIEW_SCOPE, GitHub, NotFound
from regreen.domain.models import Commit
from regreen.domain.records import JobRecord
from regreen.domain.state_records import ReviewedHead


class EventHandler:
    """Does a job's work: satisfies `runner.HandleJob` and, for failures, `runner.ReportFailure`."""

    def __init__(self, services: Services) -> None:
        self._desk = services

    def _command_handler(self, services: Services) -> CommandHandler:
        publish, refresh = partial(publish_approved, services), partial(refresh_check, services)
        return CommandHandler(services, publish, refresh)

    def __call__(self, job: Job) -> str | JobEnd:  # noqa: C901, PLR0911, PLR0912 - one case a kind of work
        """Do the work."""
        services = replace(self._desk, job=job.record.id)
        match maintenance.with_current_repository(services, deserialize_work(job.record.event)):
            case PullRequestChanged(change="closed" | "converted_to_draft") as event:
                # replies to earlier findings are still answered, and dismissals still learnt
                record_closed_repair(services.store, event)
                why = f"cancelled: the pull request was {event.change.replace('_', ' ')}"
                stopped = job.cancel_earlier_jobs(why, comments=False)
                feedback.collect_feedback(
                    services, job, services.github_client(event.where, REVIEW_SCOPE), event.number
                )
                return f"stopped {len(stopped)} jobs"
            case PullRequestChanged() as event:
                if event.change == "reopened":
                    record_closed_repair(services.store, event)
                return review_pull(services, job, event.where, event.number, pushed=event.head_sha)
            case ReviewRequest() as ask:
                return review_pull(
                    services, job, ask.where, ask.number, asked_by=ask.asked_by, full=ask.full
                )
            case CommentPosted() as event:
                return self._command_handler(services).handle_comment(job, event)
            case ButtonPressed() as event:
                return self._command_handler(services).handle_button(job, event)
            case CheckRerequested() as event:
                return _review_again(services, job, event)
            case MergeGroupRequested() as event:
                return _check_merge_group(services, job, event)
            case CheckFailed() as event:
                return fix_failed_check(services, job, event)
            case FixRequest() as ask:
                return fix_on_request(services, job, ask)
            case CheckPassed() as event:
                return close_needless_fix(services, job, event)
            case BisectRequest() as ask:
                return bisect_on_request(services, job, ask)
            case CauseRequest() as ask:
                return answer_failed_check(services, job, ask)
            case PullRequestApproved() as event:
                return try_approved_change(services, job, event)
            case ProofRequest() as ask:
                return prove_on_request(services, job, ask)
            case Tick() as event:
                return run_schedule(services, job, event)
            case QuestionRequest() as ask:
                return answer_question(services, job, ask)
            case NewTestRequest() as ask:
                return write_test(services, job, ask)
            case Pushed() as event:
                return maintenance.read_and_store_schedules(services, event.where)
            case InstallationChanged() as event:
                return maintenance.handle_installation_change(services, job, event)
            case RepositoryChanged() as event:
                return maintenance.handle_repository_change(services, job, event)
            case ThreadChanged() as event:
                return feedback.dismiss_by_thread(services, job, event)
            case Maintenance() as ask:
                return self._maintain(job, ask.task)
            case Pinged():
                return "pong"

    def _maintain(self, job: Job, task: MaintenanceTask) -> str:
        match task:
            case "redeliver":
                return maintenance.redeliver_missed(self._desk)
            case "sandbox":
                return maintenance.test_and_record_sandbox(self._desk)
            case "schedules":
                return maintenance.read_all_schedules(self._desk, job)
            case "branches":
                return branches.delete_leftover_branches(self._desk)
            case "prune":
                return maintenance.prune_old_data(self._desk)
            case "digest":
                return post_digest(self._desk)

    def report_failure(self, record: JobRecord, reason: str) -> None:
        """Report a failed job and its reason where people wait for it, and undo what is half done."""
        if record.queue == "work" or record.kind == "comment":
            branches.delete_leftover_branches(self._desk, record.id)
        self._post_failure(record, reason)

    def _post_failure(self, record: JobRecord, reason: str) -> None:
        services = replace(self._desk, job=record.id)
        match maintenance.with_current_repository(services, deserialize_work(record.event)):
            case PullRequestChanged() | ReviewRequest() as work:
                report_failed_review(services, record, work.where, work.number, reason)
            case MergeGroupRequested() as event:
                _report_unchecked_group(
                    services,
                    event,
                    messages.job_failed(reason, record, services.job_page_url(record.id)),
                )
            case CheckFailed() as event:
                report_broken_repair(services, record, event, reason)
            case CauseRequest(asked_by="") | PullRequestApproved():
                pass  # the failed check, or the approval, stays without an answer
            case (
                FixRequest()
                | BisectRequest()
                | CauseRequest()
                | ProofRequest()
                | NewTestRequest()
                | QuestionRequest() as ask
            ):
                github = services.github_client(ask.where, COMMENT_SCOPE)
                reply = CommandReply(github, services.store, ask.number, ask.comment, record.id)
                is_answer = isinstance(ask, AnswerRequest)
                page = services.job_page_url(record.id)
                reply.decline(messages.job_failed(reason, record, page, is_answer=is_answer))
            case CommentPosted() | ButtonPressed() as event:
                self._command_handler(services).report_failure(record, event, reason)
            case (
                CheckPassed()
                | CheckRerequested()
                | InstallationChanged()
                | Maintenance()
                | Pinged()
                | Pushed()
                | RepositoryChanged()
                | ThreadChanged()
                | Tick()
            ):
                pass  # nobody waits for these

    def end_stopped_job(self, record: JobRecord) -> None:
        """End what a cancelled job began while no process ran it: a check run must not stay in progress."""
        services = replace(self._desk, job=record.id)
        match maintenance.with_current_repository(services, deserialize_work(record.event)):
            case PullRequestChanged() as event:
                report_stopped_review(services, record, event.where, event.head_sha)
            case ReviewRequest() as ask if record.state == "cancelled":
                github = services.github_client(ask.where, REVIEW_SCOPE)
                report_stopped_review(services, record, ask.where, github.pull(ask.number).head_sha)
            case CauseRequest(asked_by="") | PullRequestApproved():
                pass  # it posts nothing before its end
            case (
                FixRequest()
                | BisectRequest()
                | CauseRequest()
                | ProofRequest()
                | NewTestRequest()
                | QuestionRequest() as ask
            ):
                github = services.github_client(ask.where, COMMENT_SCOPE)
                reply = CommandReply(github, services.store, ask.number, ask.comment, record.id)
                reply.post_text(messages.job_cancelled(record))
            case (
                ButtonPressed()
                | CheckFailed()
                | CheckPassed()
                | CheckRerequested()
                | CommentPosted()
                | InstallationChanged()
                | Maintenance()
                | MergeGroupRequested()
                | Pinged()
                | Pushed()
                | RepositoryChanged()
                | ReviewRequest()
                | ThreadChanged()
                | Tick()
            ):
                pass  # nothing of these is left unfinished on GitHub


def _review_again(services: Services, job: Job, event: CheckRerequested) -> JobEnd:
    numbers = event.pulls
    if not numbers:
        github = services.github_client(event.where, REVIEW_SCOPE)
        numbers = tuple(p.number for p in github.pulls(head_sha=event.head_sha))
    ends = [
        review_pull(services, job, event.where, number, asked_by=event.actor.login)
        for number in numbers[:5]
    ]
    notes = "; ".join(end.note for end in ends) or "no pull request has this head"
    return JobEnd(notes, next((end.outcome for end in ends if end.outcome), ""))


# Reports on a merge group: the review of each of its pull requests, and commits without a review.

_QUEUE_BRANCH_PATTERN = re.compile(r"/pr-(\d{1,9})-[0-9a-f]{40,64}$")
_SQUASH_SUBJECT_PATTERN = re.compile(r"\(#(\d{1,9})\)$")


def _check_merge_group(services: Services, job: Job, event: MergeGroupRequested) -> str:
    """Set the merge group's check run: success if everything was reviewed without findings."""
    github = services.github_client(event.where, REVIEW_SCOPE)
    repository = github.repository()
    git = services.mirrors.fetch(github, repository, cancel=job.cancel)
    commits = git.commits(event.base_sha, event.head_sha, first_parent=True)
    named = [(commit, _find_merged_pull(github, event, commit)) for commit in commits]
    refs = [f"refs/pull/{head[0]}/head" for _, head in named if head]
    git = services.mirrors.fetch(github, repository, refs, job.cancel)
    queued, reached = [], event.base_sha
    for commit, head in named:
        if head and git.merged_tree(reached, head[1]) == git.tree_id(commit.sha):
            # a commit message only counts if merging the head that it names gives this very tree
            reviewed = services.store.find(ReviewedHead, repo=github.repo, sha=head[1])
            queued.append(messages.QueuedPull(*head, reviewed.conclusion if reviewed else None))
            reached = commit.sha
    unknown = reached != event.head_sha
    job.check_cancelled()
    check = messages.merge_group_check(event.head_sha, _external_id(event), queued, unknown=unknown)
    github.post_check_run(check)
    return check.title


def _report_unchecked_group(services: Services, event: MergeGroupRequested, reason: str) -> None:
    """End the check run of a failed job as neutral with the reason, so that the queue goes on."""
    github = services.github_client(event.where, REVIEW_SCOPE)
    github.post_check_run(
        messages.skipped_review_check(
            event.head_sha, _external_id(event), "the review failed", reason
        )
    )


def _find_merged_pull(
    github: GitHub, event: MergeGroupRequested, commit: Commit
) -> tuple[int, str] | None:
    """The pull request that a commit of the queue merges, and its head; None if the message names none."""
    if len(commit.parents) > 1:
        pulls = github.pulls(head_sha=commit.parents[1])
        return (pulls[0].number, pulls[0].head_sha) if pulls else None
    is_last = commit.sha == event.head_sha
    named = (
        _QUEUE_BRANCH_PATTERN.search(event.head_ref)
        if is_last
        else _SQUASH_SUBJECT_PATTERN.search(commit.subject)
    )
    if named is None:
        return None
    try:
        pull = github.pull(int(named[1]))
    except NotFound:
        return None
    return pull.number, pull.head_sha


def _external_id(event: MergeGroupRequested) -> str:
    return "queue-" + hashlib.sha256(event.head_sha.encode()).hexdigest()[:24]
