"""A pull request is reviewed: one check run always, one review only where there is something to say."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from functools import cached_property, partial
from typing import Any

from regreen.adapters.git import GitRepository
from regreen.bot import lessons, say, scanning
from regreen.bot.configuration import Loaded
from regreen.bot.desk import Desk
from regreen.bot.linked import intent
from regreen.bot.outcomes import Outcomes
from regreen.bot.remembering import Remembered
from regreen.bot.running import Job
from regreen.bot.say.markup import counted
from regreen.codebase.setup_guard import Rules
from regreen.codebase.trial import Trial
from regreen.errors import Cancelled, OutsideError
from regreen.forge import REVIEW, CheckRun, GitHub, Pull, Refused, Repository
from regreen.models import Review, Side
from regreen.records import Document, JobRecord
from regreen.repo_config import RepoConfig
from regreen.reviewers.document import document
from regreen.reviewers.review import ReviewJob, review
from regreen.webhooks.events import Where

_LOOKS_FOR_PUSH = 3
_BLOCKED_AUTHORS = "bots are not reviewed"


def review_pull(
    desk: Desk,
    job: Job,
    where: Where,
    number: int,
    *,
    asked_by: str = "",
    full: bool = False,
    pushed: str = "",
) -> str:
    """Review a pull request as it is now; one line on what came out. `asked_by` is empty for a push."""
    github = desk.github(where, REVIEW)
    pull = github.pull(number)
    if pushed not in {"", pull.head_sha} and job.record.attempts < _LOOKS_FOR_PUSH:
        # either a newer push came, and its event supersedes this job, or GitHub's answer is an old one
        raise OutsideError("GitHub does not show the push yet", retry_after=2)
    repository = github.repository()
    loaded = desk.config(where, github, repository)
    if (reason := _reason_not_to(pull, repository, loaded.config, asked_by)) is not None:
        return reason
    flow = _Flow(desk, job, where, github=github, repository=repository, pull=pull, loaded=loaded)
    if loaded.problems and loaded.source == "defaults":
        return flow.say_broken()
    try:
        return flow.run(asked_by or pull.author, full=full)
    except Cancelled:
        flow.say_cancelled()
        raise


def say_failed(desk: Desk, record: JobRecord, where: Where, number: int, reason: str) -> None:
    """End the check run of a review that broke down: neutral, never green, with the reason."""
    github = desk.github(where, REVIEW)
    head = github.pull(number).head_sha
    text = say.failed(reason, record.id)
    github.check_run(say.not_reviewed(head, _external_id(record), "Not reviewed", text))


def say_stopped(desk: Desk, record: JobRecord, where: Where, head: str) -> None:
    """End the check run of a review that was stopped while no process ran it."""
    github = desk.github(where, REVIEW)
    text = "A newer push came, or somebody cancelled this review."
    github.check_run(say.not_reviewed(head, _external_id(record), "Superseded", text))


def _external_id(record: JobRecord) -> str:
    return "review-" + hashlib.sha256(record.id.encode()).hexdigest()[:24]


def _reason_not_to(
    pull: Pull, repository: Repository, config: RepoConfig, asked_by: str
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
        return "a draft"
    return _BLOCKED_AUTHORS if pull.author_is_bot else None


class _Flow:
    """One review from the check run that announces it to the one that concludes it."""

    def __init__(
        self,
        desk: Desk,
        job: Job,
        where: Where,
        *,
        github: GitHub,
        repository: Repository,
        pull: Pull,
        loaded: Loaded,
    ) -> None:
        self._desk = desk
        self._job = job
        self._where = where
        self._github = github
        self._repository = repository
        self._pull = pull
        self._loaded = loaded
        self._external_id = _external_id(job.record)
        self._remembered = Remembered(desk.store, f"{repository.full_name}#{pull.number}")

    def say_broken(self) -> str:
        """No valid configuration, now or before: say where it is wrong."""
        text = say.broken_config(self._loaded.problems)
        title = "The configuration cannot be read"
        self._check(say.not_reviewed(self._pull.head_sha, self._external_id, title, text))
        return title

    def say_cancelled(self) -> None:
        """A check run that was begun is ended."""
        text = "A newer push came, or somebody cancelled this review."
        check = say.not_reviewed(self._pull.head_sha, self._external_id, "Superseded", text)
        self._github.check_run(check)

    def run(self, asked_by: str, *, full: bool) -> str:
        """Review, then publish; a review that is done already is only published."""
        self._check(
            say.reviewing(self._pull.head_sha, self._external_id, self._desk.page(self._job))
        )
        kept = self._desk.store.get("review", self._external_id)
        found = _review_from(json.loads(kept)) if kept else self._review(full=full)
        if not kept:
            self._desk.store.put("review", self._external_id, json.dumps(asdict(found)))
        self._publish(found, asked_by)
        return f"{counted(len(found.findings), 'finding')}, {len(found.withheld)} withheld"

    def _review(self, *, full: bool) -> Review:
        desk, job, pull, config = self._desk, self._job, self._pull, self._loaded.config
        model = desk.model(job, self._repository.full_name, pull.number, config)
        lessons.hear(desk, self._github, pull.number)
        weights, needed = Outcomes(desk.store).lessons(
            self._repository.full_name, config.review.min_confidence
        )
        memory = replace(self._remembered.memory(full=full), thresholds=needed)
        trusted = not pull.fork or self._is_approved()
        limit = config.review.max_comments_per_push if memory.posted else config.review.max_comments
        work = ReviewJob(
            base=pull.base_sha,
            head=pull.head_sha,
            title=pull.title,
            body=intent(desk, self._where, pull),
            config=config,
            max_comments=limit,
            tests=tests_of(config, self._repository, fork=pull.fork, base=pull.base_sha)
            if trusted
            else None,
            run_tests=bool(config.tests.command) and trusted,
            weights=weights,
        )
        found = review(
            work,
            git=self._git,
            sandbox=desk.sandbox_or_none() if work.tests is not None else None,
            model=model[0] if model else None,
            memory=memory,
            progress=job.say,
            cancel=job.cancel,
        )
        return replace(found, cost=model[1]()) if model else found

    def _is_approved(self) -> bool:
        """Whether somebody let this very commit of a stranger run its tests."""
        key = f"{self._pull.number}@{self._pull.head_sha}"
        space = f"approved/{self._repository.full_name}"
        return self._desk.store.get(space, key) is not None

    def _publish(self, found: Review, asked_by: str) -> None:
        pull, config = self._pull, self._loaded.config
        note = say.broken_config(self._loaded.problems) if self._loaded.problems else ""
        if found.findings:
            self._job.check()
            note = "\n\n".join(n for n in (note, self._post(found)) if n)
        text_of = partial(self._text, found)
        gone = self._remembered.gone(found, text_of)
        if gone:
            self._job.check()
            posted = self._remembered.posted()
            there = {name: posted[name] for name in gone}
            lessons.mended(
                self._desk,
                self._github.repo,
                pull.number,
                there,
                lambda path: text_of(path, "RIGHT"),
            )
            self._remembered.forget(gone)
        self._remembered.close(self._github, pull.number, gone)
        standing = self._remembered.standing(found)
        if config.review.code_scanning:
            self._job.check()
            refused = scanning.hand_over(self._desk, self._where, pull, found, standing=standing, key=self._external_id)  # fmt: skip
            note = "\n\n".join(n for n in (note, refused) if n)
        check = say.review_check(
            found,
            config,
            external_id=self._external_id,
            details_url=self._desk.page(self._job),
            note=note,
            standing=standing,
            gone=len(gone),
        )
        self._check(check)
        for finding in found.findings:
            self._remembered.remember(finding, text_of)
        self._keep(found)
        detail = f"{counted(len(found.findings), 'finding')} at {pull.head_sha[:12]}, ${found.cost.usd:.3f}"
        self._desk.log(self._job, asked_by, "review", detail)

    def _post(self, found: Review) -> str:
        """Post the review; a note for the check run where GitHub did not take its comments."""
        mark = say.marker("review", self._pull.number, self._external_id)
        body = say.review_body(found)
        comments = [say.finding_comment(f) for f in found.findings]
        head = self._pull.head_sha
        try:
            self._github.review(self._pull.number, head, mark, body, comments)
        except Refused as error:
            # Which comment it was GitHub does not say. What was found must still be seen.
            self._desk.log(self._job, "", "review refused", str(error))
            text = say.without_lines(found)
            self._github.review(self._pull.number, head, mark, text, [])
            return "GitHub refused the inline comments; the findings are in the review's text."
        return ""

    def _check(self, check: CheckRun) -> None:
        self._job.check()
        self._github.check_run(check)

    @cached_property
    def _git(self) -> GitRepository:
        self._job.say("fetching the repository")
        refs = [f"refs/pull/{self._pull.number}/head"]
        return self._desk.mirrors.fetch(self._github, self._repository, refs)

    def _text(self, found: Review, path: str, side: Side) -> str | None:
        data = self._git.show(found.head if side == "RIGHT" else found.merge_base, path)
        return None if data is None else data.decode("utf-8", "replace")

    def _keep(self, found: Review) -> None:
        self._desk.store.keep(
            Document(
                kind="review",
                repo=self._repository.full_name,
                number=self._pull.number,
                subject=f"{self._pull.number}@{found.head}",
                job=self._job.record.id,
                at=self._desk.clock.now(),
                body=document(found),
            )
        )


def tests_of(config: RepoConfig, repository: Repository, *, fork: bool, base: str) -> Trial | None:
    """How the repository's tests run. A stranger's tree gets its own prepared environments.

    What `base` does not ask to be installed, a tree may only under the configuration's rules.
    """
    if not config.tests.command:
        return None
    return Trial(
        command=("bash", "-c", config.tests.command),
        setup=config.tests.setup or None,
        image=config.tests.image,
        timeout=config.tests.timeout_minutes * 60,
        trust="pull_request",
        scope=f"{repository.full_name}/fork" if fork else repository.full_name,
        base=base,
        rules=rules_of(config),
    )


def rules_of(config: RepoConfig, *, trusts_command: bool = True) -> Rules:
    """What a tree may ask to be installed beyond what is known, by the default branch's configuration."""
    return Rules(
        frozenset(config.tests.allow_packages),
        frozenset(host.lower() for host in config.tests.allow_indexes),
        trusts_command,
    )


def _review_from(data: dict[str, Any]) -> Review:
    """A review as it was kept between doing it and publishing it."""
    from pydantic import TypeAdapter

    kept: Review = TypeAdapter(Review).validate_python(data)
    return kept
