"""A test is broken: find the commit, prove it, and say so, once."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

from regreen.adapters.git import GitRepository
from regreen.bisect import report
from regreen.bisect.result import Bisection
from regreen.bisect.run import BisectJob, bisect
from regreen.bot import say
from regreen.bot.asks import Bisect as BisectAsk
from regreen.bot.ci_history import seen_in_ci
from regreen.bot.desk import Desk
from regreen.bot.memories import BisectMemory
from regreen.bot.replies import Reply
from regreen.bot.reverting import Revert
from regreen.bot.reviewing import rules_of, tests_of
from regreen.bot.running import Job
from regreen.codebase.trial import Trial, open_box
from regreen.errors import Cancelled, UserError
from regreen.forge import BISECT, GitHub, Pull, Repository
from regreen.records import Document
from regreen.repo_config import RepoConfig, Schedule
from regreen.webhooks.events import Tick, Where

_EDIT_EVERY_S = 15.0
_MAX_MINUTES = 120.0
_SCHEDULED_MINUTES = 240.0


def bisect_asked(desk: Desk, job: Job, ask: BisectAsk) -> str:
    """Somebody asked: one comment, edited as it goes, ends with the culprit or the reason there is none."""
    github = desk.github(ask.where, BISECT)
    repository = github.repository()
    config = desk.config(ask.where, github, repository).config
    reply = Reply(github, desk.store, ask.number, ask.comment, job.record.id)
    on_pull = ask.bad is None and _is_pull(github, ask.number)
    pull = github.pull(ask.number) if on_pull else None
    base = pull.base_sha if pull else repository.default_branch
    fork = pull is not None and pull.fork
    trial = _trial(config, repository, ask.test, fork=fork, base=base)
    refs = [f"refs/pull/{ask.number}/head"] if pull else []
    git = desk.mirrors.fetch(github, repository, refs)
    bad = ask.bad or (pull.head_sha if pull else repository.default_branch)
    good = ask.good or (pull.base_sha if pull else None)
    branch = pull.head_ref if pull else repository.default_branch
    task = BisectJob(
        trial=trial,
        good=good,
        bad=bad,
        max_minutes=_MAX_MINUTES,
        resume=True,
        known=seen_in_ci(github, git, branch, trial.shown),
    )
    try:
        found = _search(desk, job, git, task, _telling(desk, job, reply))
        _keep(desk, job, repository, ask.number, found)
        job.check()
    except Cancelled:
        reply.say(say.was_cancelled())
        raise
    wanted = config.bisect.revert_pr and (pull is None or not pull.fork)
    revert = Revert(desk, job, ask.where, repository, git, repository.default_branch, trial, found)
    opened = revert.offer() if wanted else None
    reply.say(say.bisected(report.markdown(found), opened.number if opened else None))
    reply.react("rocket")
    desk.log(job, ask.asked_by, "bisect", _summary(found))
    return _summary(found)


def look_at_schedule(desk: Desk, job: Job, tick: Tick) -> str:
    """A schedule is due: green is remembered, red is bisected, one issue for each regression."""
    github = desk.github(tick.where, BISECT)
    repository = github.repository()
    config = desk.config(tick.where, github, repository).config
    schedule = next((s for s in config.bisect.schedules if s.name == tick.schedule), None)
    if schedule is None or repository.archived:
        return "the schedule is gone"
    flow = _Scheduled(desk, job, github, repository, schedule, where=tick.where)
    trial = _trial(config, repository, schedule.test, fork=False, base=schedule.branch)
    return flow.run(trial, revert=config.bisect.revert_pr)


class _Scheduled:
    """One look of one schedule."""

    def __init__(
        self,
        desk: Desk,
        job: Job,
        github: GitHub,
        repository: Repository,
        schedule: Schedule,
        *,
        where: Where,
    ) -> None:
        self._desk = desk
        self._job = job
        self._github = github
        self._repository = repository
        self._schedule = schedule
        self._where = where
        self._space = f"schedule/{repository.full_name}/{schedule.name}"

    def run(self, trial: Trial, *, revert: bool) -> str:
        """Run the test at the branch's head, and look for the culprit where it fails."""
        desk, job = self._desk, self._job
        git = desk.mirrors.fetch(self._github, self._repository)
        head = git.resolve(f"refs/heads/{self._schedule.branch}")
        job.say(f"running {trial.shown} at {head[:12]}")
        if _passes(trial, head, git, desk, job):
            return self._green(head)
        known = desk.store.get(self._space, "red")
        if known is not None and json.loads(known)["head"] == head:
            return "still red, and the issue says why"
        found = self._search(trial, git, head)
        _keep(desk, job, self._repository, None, found)
        if found.outcome == "not_reproduced":
            return "failed once and not again: flaky"
        job.check()
        offer = Revert(
            desk, job, self._where, self._repository, git, self._schedule.branch, trial, found
        )
        return self._tell(found, head, offer.offer() if revert else None)

    def _search(self, trial: Trial, git: GitRepository, head: str) -> Bisection:
        store = self._desk.store
        good = store.get(self._space, "green") or self._good_by_age(git, head)
        task = BisectJob(
            trial=trial,
            good=good,
            bad=head,
            max_minutes=_SCHEDULED_MINUTES,
            resume=True,
            known=seen_in_ci(self._github, git, self._schedule.branch, trial.shown),
        )
        return _search(self._desk, self._job, git, task, self._job.say)

    def _good_by_age(self, git: GitRepository, head: str) -> str | None:
        """The newest commit that is older than the lookback: where the search starts when nothing is known."""
        oldest = self._desk.clock.now() - timedelta(days=self._schedule.lookback_days)
        older = [c for c in git.commits(None, head, first_parent=True) if c.date <= oldest]
        return older[-1].sha if older else None

    def _green(self, head: str) -> str:
        store = self._desk.store
        store.put(self._space, "green", head)
        known = store.get(self._space, "red")
        if known is None:
            return "green"
        mark = say.marker("green-again", self._schedule.name, head)
        for number in _open_issues(known):
            self._job.check()
            self._github.comment(number, mark, say.green_again(self._schedule.name, head))
            self._github.close_issue(number)
        store.delete(self._space, "red")
        return "green again: closed " + ", ".join(f"#{number}" for number in _open_issues(known))

    def _tell(self, found: Bisection, head: str, opened: Pull | None) -> str:
        culprit = found.culprit.sha if found.culprit else "unknown"
        mark = say.marker("regression", self._schedule.name, culprit)
        title = say.regression_title(
            self._schedule.branch, found.culprit.subject if found.culprit else None
        )
        told = say.bisected(report.markdown(found), opened.number if opened else None)
        body = say.regression_body(self._schedule.name, self._schedule.test, told)
        issue = self._github.issue(mark, title, body)
        known = self._desk.store.get(self._space, "red")
        issues = sorted({*(_open_issues(known) if known else ()), issue.number})
        red = json.dumps({"head": head, "issue": issue.number, "issues": issues})
        self._desk.store.put(self._space, "red", red)
        self._desk.log(self._job, "", "regression", f"#{issue.number}: {_summary(found)}")
        return f"red: #{issue.number}, {_summary(found)}"


def _open_issues(red: str) -> list[int]:
    """The issues of a schedule that is red: one for each regression since it was green."""
    known = json.loads(red)
    return [int(number) for number in known.get("issues", [known["issue"]])]


def _trial(
    config: RepoConfig, repository: Repository, test: str | None, *, fork: bool, base: str
) -> Trial:
    configured = tests_of(config, repository, fork=fork, base=base)
    if test is None:
        if configured is None:
            raise UserError(
                'which test? say /bisect test="pytest tests/test_x.py", or set tests.command'
            )
        return configured
    given = Trial(
        command=("bash", "-c", test),
        timeout=config.tests.timeout_minutes * 60,
        setup=config.tests.setup or None,
        image=config.tests.image,
        trust="pull_request" if fork else "default_branch",
        scope=f"{repository.full_name}/fork" if fork else repository.full_name,
        base=base,
        rules=rules_of(config),
    )
    return replace(configured, command=given.command) if configured else given


def _search(
    desk: Desk, job: Job, git: GitRepository, task: BisectJob, progress: Callable[[str], None]
) -> Bisection:
    memory = BisectMemory(job)
    return bisect(
        task,
        git=git,
        sandbox=desk.sandbox(),
        memory=memory,
        progress=progress,
        cancel=job.cancel,
    )


def _passes(trial: Trial, rev: str, git: GitRepository, desk: Desk, job: Job) -> bool:
    with open_box(trial, rev, git=git, sandbox=desk.sandbox(), cancel=job.cancel) as box:
        done = box.run(trial.command, timeout=trial.timeout, env=dict(trial.env), cancel=job.cancel)
    return done.passed


def _telling(desk: Desk, job: Job, reply: Reply) -> Callable[[str], None]:
    """Progress for the dashboard at once, for the comment now and then: GitHub counts every edit."""
    last = [desk.clock.monotonic()]

    def tell(text: str) -> None:
        job.say(text)
        if desk.clock.monotonic() - last[0] >= _EDIT_EVERY_S:
            last[0] = desk.clock.monotonic()
            reply.say(say.on_it(text))

    return tell


def _is_pull(github: GitHub, number: int) -> bool:
    return "/pull/" in github.issue_text(number).html_url


def _summary(found: Bisection) -> str:
    if found.culprit is None:
        return found.outcome
    return f"{found.outcome}: {found.culprit.sha[:12]} at {found.probability:.3f}"


def _keep(
    desk: Desk, job: Job, repository: Repository, number: int | None, found: Bisection
) -> None:
    body: dict[str, Any] = {"version": 1, **asdict(found), "svg": report.svg(found)}
    desk.store.keep(
        Document(
            kind="bisect",
            repo=repository.full_name,
            number=number,
            subject=job.record.id,
            job=job.record.id,
            at=desk.clock.now(),
            body=body,
        )
    )
