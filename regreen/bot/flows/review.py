"""Reviews a pull request: always one check run, and one review if there are findings."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import logging
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from regreen.bot import feedback, messages
from regreen.bot.feedback import OutcomeStore
from regreen.bot.flows.prove import prove_reviewed
from regreen.bot.flows.trials import complete_tests, select_config
from regreen.bot.jobs.runner import Job, JobEnd
from regreen.bot.messages.markup import has_marker
from regreen.bot.observe import is_observed
from regreen.bot.posted_findings import PostedFindings
from regreen.bot.repository_settings import LoadedConfig
from regreen.bot.services import Services
from regreen.bot.trust import NotCleared, require_clearance
from regreen.code.path_settings import (
    find_changed_paths,
    narrow_limits,
    need_several_images,
)
from regreen.domain.errors import Cancelled, NoSandbox, OutsideError, UserError
from regreen.domain.events import RepositoryRef
from regreen.domain.github import (
    CODE_SCANNING_SCOPE,
    ISSUES_SCOPE,
    REVIEW_SCOPE,
    CheckRun,
    GitHub,
    GitHubServer,
    NotAllowed,
    PullRequest,
    Repository,
    ValidationFailed,
)
from regreen.domain.models import Finding, Review, Side
from regreen.domain.ports import Mirror
from regreen.domain.records import JobRecord, ResultDocument, Store
from regreen.domain.repo_config import RepoConfig
from regreen.domain.state_records import FinishedWork, ReviewedHead, UploadedReview
from regreen.domain.text_limits import shorten_text
from regreen.environment.preparation import CompletedTrial
from regreen.reviewers.context import ClaimTests
from regreen.reviewers.document import make_document, make_sarif
from regreen.reviewers.pipeline import ReviewJob, review_change
from regreen.reviewers.summary import list_all_findings, list_over_budget
from regreen.secrets.markdown_sanitizer import count_noun
from regreen.secrets.redaction import redact_all

_MAX_PUSH_WAITS = 3
_MAX_EARLIER_REVIEWS = 50
# the analyzers, a model's reading, and the quarter of an hour that the tests of its claims may take
_READING_TIME = timedelta(minutes=30)
_MAX_TEST_RUNS = 4  # preparing the environment, the tests at the head, and twice at the merge base
_BLOCKED_AUTHORS = "bots are not reviewed"
_UNREADABLE_CONFIG = "the configuration cannot be read"


def review_pull(
    services: Services,
    job: Job,
    where: RepositoryRef,
    number: int,
    *,
    asked_by: str = "",
    full: bool = False,
    pushed: str = "",
) -> JobEnd:
    """Review a pull request as it is now. `asked_by` is empty for a push."""
    github = services.github_client(where, REVIEW_SCOPE)
    pull = github.pull(number)
    if pushed not in {"", pull.head_sha} and job.record.attempts < _MAX_PUSH_WAITS:
        # either a newer push supersedes this job, or GitHub's answer is out of date
        raise OutsideError("GitHub does not show the push yet", retry_after=2)
    repository = github.repository()
    loaded = services.load_repo_config(where, github, repository)
    if (reason := _reason_to_skip(pull, repository, loaded.config, asked_by)) is not None:
        return JobEnd(reason)
    services.require_job_minutes(repository.full_name, loaded.config)
    flow = _ReviewFlow(
        services, job, where, github=github, repository=repository, pull=pull, loaded=loaded
    )
    if loaded.problems and loaded.source == "defaults":
        return flow.report_broken_config()
    try:
        note = flow.run(asked_by, full=full)
    except Cancelled:
        flow.report_cancelled()
        raise
    flow.judge_tests(asked_by)
    return JobEnd(note)


def report_failed_review(
    services: Services, record: JobRecord, where: RepositoryRef, number: int, reason: str
) -> None:
    """End the check run of a failed review as neutral, never as success, with the reason."""
    github = services.github_client(where, REVIEW_SCOPE)
    head = github.pull(number).head_sha
    text = messages.job_failed(reason, record, services.job_page_url(record.id))
    title = f"the review {'was not started' if record.outcome == 'refused' else 'failed'}"
    github.post_check_run(messages.skipped_review_check(head, _external_id(record), title, text))


def report_stopped_review(
    services: Services, record: JobRecord, where: RepositoryRef, head: str
) -> None:
    """End the check run of a review that was cancelled while no process ran it."""
    github = services.github_client(where, REVIEW_SCOPE)
    github.post_check_run(_make_stopped_check(services.store, record, head))


def _make_stopped_check(store: Store, record: JobRecord, head: str) -> CheckRun:
    """The check run of a review that was stopped: whether a newer one replaced it, and how to start it again."""
    now = store.job(record.id) or record
    title, text = "cancelled", messages.job_cancelled(now)
    if now.state == "superseded":
        title = "superseded by a newer push or request"
        text = "A newer review of this pull request replaced this one."
    again = "The comment `/review` starts a review of the newest commit."
    return messages.skipped_review_check(head, _external_id(record), title, f"{text} {again}")


def refresh_check(
    services: Services, where: RepositoryRef, number: int, loaded: LoadedConfig
) -> str:
    """Post the check run of the newest review once more, without the findings that were dismissed since.

    Returns "CONCLUSION: TITLE" of the check run; "" where there is no review.
    """
    github = services.github_client(where, REVIEW_SCOPE)
    newest = services.store.documents(kind="review", repo=github.repo, number=number, limit=1)
    key = _make_external_id(newest[0].job) if newest else ""
    stored = services.store.find(FinishedWork, kind="review", id=key)
    if stored is None:
        return ""
    review = _review_from(json.loads(stored.body))
    posted = PostedFindings(services.store, github.repo, number)
    standing, dismissed = posted.still_standing(review), posted.dismissals()
    fixed = [messages.FixedFinding(**one) for one in newest[0].body.get("fixed") or ()]
    check = messages.review_check(
        review,
        loaded.config,
        external_id=key,
        details_url=services.job_page_url(newest[0].job),
        problems=loaded.problems,
        standing=standing,
        fixed=fixed,
        dismissed=dismissed,
        author=newest[0].body.get("author", ""),
        web=github.server.repository_url(github.repo),
        waits_for_approval=bool(newest[0].body.get("waits_for_approval")),
        fetch=newest[0].body.get("fetch", ""),
    )
    run = github.post_check_run(check)
    # nothing was pushed since: what this review found is no longer new, and its own text is updated too
    progress = messages.ReviewProgress(
        review.head,
        (),
        (*standing, *list_all_findings(review)),
        fixed,
        dismissed,
        posted.load_posted(),
        newest[0].body.get("author", ""),
        f"{github.server.repository_url(github.repo)}/runs/{run}",
    )
    _update_earlier_reviews(services.store, github, number, progress)
    conclusion = f"{check.conclusion}: {check.title}"
    services.store.save(ReviewedHead(github.repo, check.head_sha, conclusion))
    shown = {**newest[0].body, **_describe_for_dashboard(check, standing, dismissed)}
    services.store.save_document(replace(newest[0], body=shown))
    return conclusion


def _update_earlier_reviews(
    store: Store,
    github: GitHub,
    number: int,
    progress: messages.ReviewProgress,
    *,
    keep: str = "",
) -> None:
    """Say in the texts of earlier reviews what became of their findings; the one with the marker `keep` is up to date.

    The newest of those of older heads tells all; those of the newest head change once a finding is dismissed.
    A failure does not fail the job.
    """
    earlier = store.documents(
        kind="review", repo=github.repo, number=number, limit=_MAX_EARLIER_REVIEWS
    )
    heads = {
        messages.make_marker("review", number, _make_external_id(one.job)): one.body.get("head")
        for one in earlier
        if one.body.get("findings")
    }
    if not heads:
        return
    older = (marker for marker, at in heads.items() if at != progress.head and marker != keep)
    newest = next(older, "")
    gone = [messages.FixedFinding(**f) for d in earlier for f in d.body.get("fixed") or ()]
    progress = replace(progress, fixed=[*progress.fixed, *gone])

    def rewrite(marker: str, body: str, urls: Mapping[str, str]) -> str:
        if marker == keep or marker not in heads:
            return body
        if heads[marker] == progress.head:
            text = messages.describe_progress(progress, only_dismissals=True)
            return messages.put_above_review(text, body)
        later = urls.get(newest, "") if marker != newest else ""
        what = f"What became of its findings stands in [a later review]({later})."
        text = messages.describe_progress(progress, newest=urls.get(keep, ""))
        return messages.put_above_review(what if later else text, body)

    try:
        github.rewrite_reviews(number, rewrite)
    except (OutsideError, UserError) as error:
        _log.warning("reviews of %s#%d stay as they are: %s", github.repo, number, error)


def _describe_for_dashboard(
    check: CheckRun, standing: Sequence[Finding], dismissed: Collection[str]
) -> dict[str, object]:
    """What the dashboard shows of a review as its check run says it."""
    still_open = [f.fingerprint for f in standing if f.fingerprint not in dismissed]
    return {"headline": check.title, "still_open": still_open, "dismissed": sorted(dismissed)}


def _external_id(record: JobRecord) -> str:
    return _make_external_id(record.id)


def _make_external_id(job: str) -> str:
    return "review-" + hashlib.sha256(job.encode()).hexdigest()[:24]


def _reason_to_skip(
    pull: PullRequest, repository: Repository, config: RepoConfig, asked_by: str
) -> str | None:
    if pull.state != "open":
        return "the pull request is closed"
    if repository.archived:
        return "the repository is archived"
    if asked_by:
        return None
    if not config.review.enabled:
        return "reviews are switched off"
    if pull.draft and not config.review.drafts:
        return "not reviewed: a draft"
    return _BLOCKED_AUTHORS if pull.author_is_bot else None


def _limit_review(config: RepoConfig) -> timedelta:
    """How long a review should take at the most; of a change to several `paths` with tests of their own, longer."""
    if not config.review.run_tests:
        return _READING_TIME
    own = [one.tests.timeout_minutes or 0.0 for one in config.paths.values()]
    return _READING_TIME + _MAX_TEST_RUNS * timedelta(
        minutes=max(config.tests.timeout_minutes, *own, 0.0)
    )


class _ReviewFlow:
    """One review, from the check run that announces it to its conclusion."""

    def __init__(
        self,
        services: Services,
        job: Job,
        where: RepositoryRef,
        *,
        github: GitHub,
        repository: Repository,
        pull: PullRequest,
        loaded: LoadedConfig,
    ) -> None:
        self._desk = services
        self._job = job
        self._where = where
        self._github = github
        self._repository = repository
        self._pull = pull
        self._loaded = loaded
        self._external_id = _external_id(job.record)
        self._found_tests: tuple[CompletedTrial | None, str] | None = None
        self._overflow: list[Finding] = []
        self._web = github.server.repository_url(github.repo)
        self._waits_for_approval = False
        self._remembered = PostedFindings(services.store, repository.full_name, pull.number)

    def report_broken_config(self) -> JobEnd:
        """Report the faults of the configuration when no valid one was ever read."""
        problems = self._loaded.problems
        text = messages.describe_unusable_config(problems, has_valid=False)
        self._update_check(
            messages.skipped_review_check(
                self._pull.head_sha, self._external_id, _UNREADABLE_CONFIG, text
            )
        )
        return JobEnd(messages.name_config_problem(problems), "unreadable")

    def report_cancelled(self) -> None:
        """End a check run that was begun."""
        check = _make_stopped_check(self._desk.store, self._job.record, self._pull.head_sha)
        self._github.post_check_run(check)

    def run(self, asked_by: str, *, full: bool) -> str:
        """Review, then publish; a finished review is only published. `asked_by` is empty for a push."""
        now, page = self._desk.clock.now(), self._desk.job_page_url(self._job.record.id)
        until = now + _limit_review(self._loaded.config)
        self._update_check(
            messages.review_started_check(
                self._pull.head_sha, self._external_id, page, began=now, until=until
            )
        )
        store = self._desk.store
        stored = store.find(FinishedWork, kind="review", id=self._external_id)
        review = (
            _review_from(json.loads(stored.body))
            if stored
            else self._review_pull(full=full, asked_by=asked_by)
        )
        if not stored:
            store.save(FinishedWork("review", self._external_id, json.dumps(asdict(review))))
        self._publish_review(review, asked_by or self._pull.author, full=full)
        withheld = len(review.withheld) - len(list_over_budget(review.withheld))
        held = f" ({withheld} withheld)" if withheld else ""
        if review.tests is not None and not review.tests.passed:
            return f"the tests fail, {count_noun(len(list_all_findings(review)), 'finding')}{held}"
        return f"{count_noun(len(list_all_findings(review)), 'finding')}{held}"

    def judge_tests(self, asked_by: str) -> None:
        """Say whether the tests of the pull request prove it."""
        prove_reviewed(
            self._desk,
            self._job,
            self._git,
            github=self._github,
            repository=self._repository,
            pull=self._pull,
            config=self._loaded.config,
            find_tests=lambda: self._choose_tests(asked_by=asked_by),
        )

    def _choose_tests(self, *, asked_by: str) -> CompletedTrial | None:
        tests, no_tests = self._found_tests or self._find_tests(asked_by=asked_by)
        return None if no_tests else tests

    def _review_pull(self, *, full: bool, asked_by: str) -> Review:
        services, job, pull, config = self._desk, self._job, self._pull, self._loaded.config
        if config.paths:
            changed = find_changed_paths(self._git, pull.base_sha, pull.head_sha)
            config = narrow_limits(config, changed)
        model = services.model(job, self._repository.full_name, pull.number, config, fork=pull.fork)
        feedback.collect_feedback(services, job, self._github, pull.number)
        weights, needed = OutcomeStore(services.store).learned_thresholds(
            self._repository.full_name, config.review.min_confidence
        )
        shown = self._remembered.find_shown(self._github, pull.head_sha) if full else ()
        memory = self._remembered.review_memory(full=full, shown=shown)
        memory = replace(memory, thresholds=needed)
        self._found_tests = self._find_tests(asked_by=asked_by)
        tests, no_tests = self._found_tests
        runs = tests is not None and not no_tests
        is_later = bool(memory.posted) and not full
        limit = config.review.max_comments_per_push if is_later else config.review.max_comments
        merge_base = self._git.merge_base(pull.base_sha, pull.head_sha) or pull.base_sha
        intent, issues = read_intent(services, self._where, pull)
        work = ReviewJob(
            base=pull.base_sha,
            head=pull.head_sha,
            title=pull.title,
            body=intent,
            linked_issues=issues,
            config=config,
            max_comments=limit,
            tests=tests.trial if tests and runs else None,
            run_tests=runs,
            no_tests=no_tests,
            find_claim_tests=partial(self._find_claim_tests, tests, no_tests)
            if config.review.run_tests
            else None,
            find_sandbox=services.sandbox_or_none,
            may_run=runs,
            weights=weights,
        )
        review = review_change(
            work,
            git=self._git,
            sandbox=services.sandbox_or_none() if runs else None,
            model=model[0] if model else None,
            memory=memory,
            find_unsaid=partial(
                self._remembered.find_unsaid,
                text_of=partial(self._read_text, pull.head_sha, merge_base),
            ),
            progress=job.report_progress,
            cancel=job.cancel,
            reviewers=services.reviewers,
        )
        review = replace(
            review,
            environment=tests.document if tests else None,
            seconds=services.measure_job(job),
        )
        return replace(review, cost=model[1]()) if model else review

    def _find_claim_tests(self, tests: CompletedTrial | None, no_tests: str) -> ClaimTests:
        """How a model's claims are tested, or why they are not."""
        if tests is None:
            return ClaimTests(reason=no_tests)
        sandbox = self._desk.sandbox_or_none()
        keep = partial(self._desk.store_capsule, self._repository, fetch=self._pull.fetch_command)
        return ClaimTests(tests.trial, sandbox, tests.reason_unready, tests.doubt, keep)

    def _find_tests(self, *, asked_by: str) -> tuple[CompletedTrial | None, str]:
        """How the tests run, and why they are not run; "" where they are."""
        services, git, pull, config = self._desk, self._git, self._pull, self._loaded.config
        if not config.review.run_tests:
            return None, "the tests were not run: review.run_tests is off"
        if config.paths and not config.tests.command:
            changed = find_changed_paths(git, pull.base_sha, pull.head_sha)
            if need_several_images(config, changed):
                return None, (
                    "the tests were not run: the change touches parts whose tests need different images; "
                    "set tests.command in .github/regreen.yml to what is to run then"
                )
        try:
            cleared = require_clearance(services.store, git, self._repository, pull, pull.head_sha)
            tests = complete_tests(
                services,
                self._job,
                git,
                config,
                cleared,
                github=self._github,
                rev=pull.head_sha,
                base=pull.base_sha,
                asked_by=asked_by,
            )
        except Cancelled:
            raise
        except NotCleared as error:
            self._waits_for_approval = True
            return None, f"the tests were not run: {error}"
        except NoSandbox:
            return None, "the tests were not run: this machine has no sandbox"
        except (OutsideError, UserError) as error:  # the rest is reviewed all the same
            return None, f"the tests were not run: {error}"
        why = ""
        configured = select_config(git, config, pull.base_sha, pull.head_sha).tests.command
        if not tests.trial.command:
            why = "no file says how the tests run; set tests.command in .github/regreen.yml"
        elif not (tests.works or tests.trial.setup or configured) and tests.notes:
            why = f"the tests were not run: {tests.notes[-1]}"
        return tests, why

    def _publish_review(self, review: Review, asked_by: str, *, full: bool) -> None:
        pull, config = self._pull, self._loaded.config
        note = ""
        if review.findings:
            self._job.check_cancelled()
            is_first = full or not self._remembered.load_posted()
            note = self._post_review(review, is_first=is_first)
        text_of = partial(self._read_text, review.head, review.merge_base)
        gone = self._remembered.find_gone(review, text_of)
        posted = self._remembered.load_posted() if gone else {}
        left = [posted[name] for name in sorted(gone)]
        fixed = [messages.FixedFinding(f.id, f.path, f.title) for f in left]
        if gone:
            self._job.check_cancelled()
            feedback.record_fixed(self._desk, left, lambda path: text_of(path, "RIGHT"))
            self._remembered.forget_findings(gone)
        self._remembered.close_threads(self._github, pull.number, gone)
        standing, dismissed = self._remembered.still_standing(review), self._remembered.dismissals()
        still_open = [f for f in standing if f.fingerprint not in dismissed]
        if config.review.code_scanning:
            self._job.check_cancelled()
            refused = upload_findings(
                self._desk, self._where, pull, review, standing=still_open, key=self._external_id
            )
            note = "\n\n".join(n for n in (note, refused) if n)
        check = messages.review_check(
            review,
            config,
            external_id=self._external_id,
            details_url=self._desk.job_page_url(self._job.record.id),
            note=note,
            problems=self._loaded.problems,
            standing=standing,
            fixed=fixed,
            dismissed=dismissed,
            author=pull.author,
            web=self._web,
            waits_for_approval=self._waits_for_approval,
            fetch=pull.fetch_command,
        )
        run = self._update_check(check)
        progress = messages.ReviewProgress(
            review.head,
            list_all_findings(review),
            standing,
            fixed,
            dismissed,
            self._remembered.load_posted(),
            pull.author,
            f"{self._web}/runs/{run}",
        )
        mark = messages.make_marker("review", pull.number, self._external_id)
        _update_earlier_reviews(self._desk.store, self._github, pull.number, progress, keep=mark)
        conclusion = f"{check.conclusion}: {check.title}"
        self._desk.store.save(ReviewedHead(self._github.repo, check.head_sha, conclusion))
        # what was only observed is posted once the repository's mode is `act`
        for finding in () if is_observed(self._github) else (*review.findings, *self._overflow):
            self._remembered.record_posted(finding, text_of)
        shown = _describe_for_dashboard(check, standing, dismissed)
        self._save_review(review, {**shown, "fixed": [asdict(one) for one in fixed]})
        new = len(list_all_findings(review))
        found = f"{count_noun(new, 'new finding')}, {new + len(still_open)} open"
        detail = f"{found} at {pull.head_sha[:12]}, ${review.cost.usd:.3f}"
        self._desk.log_action(self._job, asked_by, "review", detail)

    def _post_review(self, review: Review, *, is_first: bool) -> str:
        """Post the review; return a note for the check run if GitHub rejects the comments."""
        mark = messages.make_marker("review", self._pull.number, self._external_id)
        page = self._desk.job_page_url(self._job.record.id)
        fetch = self._pull.fetch_command
        body = messages.review_body(review, page, self._web, is_first=is_first, fetch=fetch)
        again = messages.reproduce_review(review, fetch)
        comments = [messages.finding_comment(f, again) for f in review.findings]
        head = self._pull.head_sha
        try:
            self._github.post_review(self._pull.number, head, mark, body, comments)
        except ValidationFailed as error:
            # GitHub does not say which comment it rejects; all findings must still be visible.
            self._desk.log_action(self._job, "", "review refused", str(error))
            text = messages.review_without_comments(review, self._web, fetch)
            self._github.post_review(self._pull.number, head, mark, text, [])
            return "GitHub refused the inline comments; the findings are in the review's text."
        self._overflow = post_overflow(self._github, self._pull.number, review, again)
        return ""

    def _update_check(self, check: CheckRun) -> int:
        self._job.check_cancelled()
        return self._github.post_check_run(check)

    @cached_property
    def _git(self) -> Mirror:
        self._job.report_progress("fetching the repository")
        refs = [f"refs/pull/{self._pull.number}/head"]
        return self._desk.mirrors.fetch(self._github, self._repository, refs, self._job.cancel)

    def _read_text(self, head: str, base: str, path: str, side: Side) -> str | None:
        data = self._git.show(head if side == "RIGHT" else base, path)
        return None if data is None else data.decode("utf-8", "replace")

    def _save_review(self, review: Review, shown: dict[str, object]) -> None:
        self._desk.store.save_document(
            ResultDocument(
                kind="review",
                repo=self._repository.full_name,
                number=self._pull.number,
                subject=f"{self._pull.number}@{review.head}",
                job=self._job.record.id,
                at=self._desk.clock.now(),
                body={
                    **make_document(review),
                    "title": self._pull.title,
                    "author": self._pull.author,
                    "waits_for_approval": self._waits_for_approval,
                    "base_branch": self._pull.base_ref,
                    "fetch": self._pull.fetch_command,
                    "fail_on_base": review.tests.fail_on_base if review.tests else None,
                    "config_problem": messages.name_config_problem(self._loaded.problems),
                    **shown,
                    "reproduce": messages.reproduce_review(review, self._pull.fetch_command),
                    "snippets": {
                        f.fingerprint: self._read_snippet(review, f)
                        for f in list_all_findings(review)
                    },
                },
            )
        )

    def _read_snippet(self, review: Review, finding: Finding) -> str:
        """The lines of a finding and two around them, numbered, for the dashboard."""
        text_of = partial(self._read_text, review.head, review.merge_base)
        lines = (text_of(finding.path, finding.side) or "").split("\n")
        first, last = max(1, finding.start_line - 2), min(len(lines), finding.line + 2)
        rows = [f"{number:5}  {lines[number - 1][:300]}" for number in range(first, last + 1)[:20]]
        return "\n".join(rows)


def post_overflow(github: GitHub, number: int, review: Review, reproduce: str) -> list[Finding]:
    """Post findings over the budget as threads on their files; return those that stand there now."""
    posted = []
    for finding, comment in messages.overflow_comments(review, reproduce):
        try:
            github.post_file_comment(number, review.head, comment)
        except ValidationFailed:
            continue  # it stands in the review's text
        posted.append(finding)
    return posted


def _review_from(data: dict[str, Any]) -> Review:
    """The review as it was stored between reviewing and publishing."""
    from pydantic import TypeAdapter

    review: Review = TypeAdapter(Review).validate_python(data)
    return review


# Uploads a review's findings to GitHub's code scanning, if the repository wants them there.


def upload_findings(
    services: Services,
    where: RepositoryRef,
    pull: PullRequest,
    review: Review,
    *,
    standing: Sequence[Finding],
    key: str,
) -> str:
    """Upload once for each review; return why GitHub refused, or "".

    Findings that still stand are included: an upload replaces the one before and closes what it lacks.
    """
    if services.store.find(UploadedReview, review=key) is not None:
        return ""
    everything = replace(review, findings=(*review.findings, *standing))
    whole = json.dumps(redact_all(make_sarif(everything)))
    packed = base64.b64encode(gzip.compress(whole.encode(), mtime=0)).decode()
    try:
        github = services.github_client(where, CODE_SCANNING_SCOPE)
        github.upload_sarif(pull.head_sha, f"refs/pull/{pull.number}/head", packed)
    except (OutsideError, UserError) as error:
        # the review is posted in any case: a repository without code scanning must not lose it
        return f"Code scanning did not take the findings: {error}"
    services.store.save(UploadedReview(key, pull.head_sha))
    return ""


# The issues that a pull request closes: part of the author's intent.

_CLOSING_REFERENCE = re.compile(
    r"\b(?:fix(?:e[sd])?|close[sd]?|resolve[sd]?):?\s+#(\d{1,9})\b", re.IGNORECASE
)
_MAX_LINKED_ISSUES = 2
_ISSUE_ROOM, _BODY_ROOM = 1500, 4000
_log = logging.getLogger(__name__)


def read_intent(
    services: Services, where: RepositoryRef, pull: PullRequest
) -> tuple[str, tuple[int, ...]]:
    """The description followed by the text of the linked issues, within a review's limit, and their numbers.

    An issue that cannot be read is left out: a review works without intent.
    """
    numbers = list(dict.fromkeys(int(n) for n in _CLOSING_REFERENCE.findall(pull.body[:20_000])))[
        :_MAX_LINKED_ISSUES
    ]
    if not numbers:
        return pull.body, ()
    github = services.github_client(where, ISSUES_SCOPE)
    issues = {n: text for n in numbers if n != pull.number and (text := _read_issue(github, n))}
    linked = "\n\n".join(issues.values())
    description = shorten_text(pull.body, _BODY_ROOM - len(linked) - 2)
    return f"{description}\n\n{linked}".strip(), tuple(issues)


def _read_issue(github: GitHub, number: int) -> str:
    try:
        issue = github.issue_text(number)
    except (OutsideError, UserError) as error:
        _log.info("issue %s#%d is not read: %s", github.repo, number, error)
        return ""
    return shorten_text(f"Issue #{number}: {issue.title}\n{issue.body}", _ISSUE_ROOM)


# A finished review written with the token of a workflow, for `regreen review --post`.

_MAX_EVENT_BYTES = 25 * 1024**2
# Who writes with a workflow's token: https://docs.github.com/en/actions/concepts/security/github_token
WORKFLOW_LOGIN = "github-actions[bot]"


@dataclass(frozen=True, slots=True)
class PostTarget:
    """Where a review is written, and with what."""

    repo: str
    number: int
    head: str
    api_url: str
    token: str = field(repr=False)


def read_target() -> PostTarget:
    """The pull request that the workflow runs for.

    Raises:
        UserError: a variable or the event's pull request is missing.
    """
    names = ("GITHUB_TOKEN", "GITHUB_REPOSITORY", "GITHUB_EVENT_PATH")
    if missing := [name for name in names if not os.environ.get(name)]:
        message = f"--post needs {', '.join(missing)}: run it in a workflow for a pull request"
        raise UserError(message)
    try:
        pull = _read_pull()
        number, head = int(pull["number"]), str(pull["head"]["sha"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = "--post: the workflow's event has no pull request; use `on: pull_request`"
        raise UserError(message) from error
    api_url = os.environ.get("GITHUB_API_URL") or GitHubServer().api_url
    return PostTarget(
        os.environ["GITHUB_REPOSITORY"], number, head, api_url, os.environ["GITHUB_TOKEN"]
    )


def is_fork_event() -> bool:
    """Whether the workflow runs for a pull request whose branch is in another repository."""
    try:
        pull = _read_pull()
        return bool(
            pull["head"]["repo"] is None
            or pull["head"]["repo"]["full_name"] != pull["base"]["repo"]["full_name"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _read_pull() -> dict[str, Any]:
    with Path(os.environ["GITHUB_EVENT_PATH"]).open("rb") as file:
        pull: dict[str, Any] = json.loads(file.read(_MAX_EVENT_BYTES))["pull_request"]
    return pull


def post_review(github: GitHub, target: PostTarget, review: Review) -> str:
    """Post the findings that do not stand on the pull request yet; return what happened, in a sentence.

    The review is pinned to the pull request's head: what a workflow checks out by default is a merge commit that
    GitHub accepts no review for.

    Raises:
        OutsideError: GitHub cannot be reached, or failed.
    """
    number = target.number
    try:
        ours = [one.body for one in github.review_comments(number) if one.ours]
        fresh = tuple(
            finding
            for finding in review.findings
            if not any(has_marker(body, "finding", finding.fingerprint) for body in ours)
        )
        if not fresh:
            return "nothing new to post"
        new = replace(review, findings=fresh)
        names = "\n".join(sorted(finding.fingerprint for finding in fresh))
        digest = hashlib.sha256(names.encode()).hexdigest()[:16]
        mark = messages.make_marker("review", number, target.head, digest)
        body = messages.review_body(review, web=github.server.repository_url(github.repo))
        again = messages.reproduce_review(review)
        comments = [messages.finding_comment(finding, again) for finding in fresh]
        try:
            posted = github.post_review(number, target.head, mark, body, comments)
            post_overflow(github, number, replace(new, head=target.head), again)
        except ValidationFailed:
            # GitHub does not say which comment it rejects; all findings must still be visible.
            text = messages.review_without_comments(new)
            github.post_review(number, target.head, mark, text, [])
            return "GitHub refused the inline comments; the findings are in the review's text"
    except NotAllowed as error:
        return f"the token may not write reviews, as on a fork's pull request; nothing was posted ({error})"
    except ValidationFailed as error:
        return f"GitHub refused the review of {target.head[:12]}; nothing was posted ({error})"
    if not posted:
        return f"nothing new to post: a review of {target.head[:12]} has these findings"
    return f"posted {len(fresh)} of {len(review.findings)} findings on #{number}"
