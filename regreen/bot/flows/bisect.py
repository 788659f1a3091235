"""Finds the commit that broke a test, proves it, reports it once, and offers its revert where the repository wants that."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

from regreen.bisect import report
from regreen.bisect.bisection import BisectJob, run_bisection
from regreen.bisect.box_pool import BoxPool
from regreen.bisect.commit_graph import resolve_range
from regreen.bisect.commit_runner import PairedRunner, TrialRunner
from regreen.bisect.proof import changed_source_paths
from regreen.bisect.result import Bisection
from regreen.bot import messages
from regreen.bot import messages as say
from regreen.bot.flows import branches
from regreen.bot.flows.conventions import read_conventions
from regreen.bot.flows.failed_job import find_ci_runs
from regreen.bot.flows.trials import complete_tests, make_suite_trial
from regreen.bot.jobs.event_jobs import BRANCH_PREFIX
from regreen.bot.jobs.runner import Job, JobEnd
from regreen.bot.observe import is_observed
from regreen.bot.replies import CommandReply
from regreen.bot.services import Services
from regreen.bot.trust import refuse_command_for_old_head, require_clearance
from regreen.domain.errors import Cancelled, NoSandbox, OutsideError, UserError
from regreen.domain.events import BisectRequest as BisectAsk
from regreen.domain.events import RepositoryRef, Tick
from regreen.domain.github import BISECT_SCOPE, FIX_SCOPE, GitHub, PullRequest, Repository
from regreen.domain.ports import Mirror
from regreen.domain.records import ResultDocument
from regreen.domain.repo_config import RepoConfig, Schedule
from regreen.domain.state_records import Revert, RevertProof, RevertTry, ScheduleState
from regreen.environment.preparation import CompletedTrial
from regreen.fixers.case import FixJob
from regreen.fixers.judge_patch import judge_revert
from regreen.runs.trial import Trial, open_box
from regreen.secrets.markdown_sanitizer import format_probability

# Opens one draft pull request that reverts a proven culprit, if the repository wants that.

MAX_REVERTS_PER_DAY = 4


@dataclass(frozen=True)
class RevertOffer:
    """A revert that can be offered: `found` was bisected on `branch` by running `trial` over all the `tests`."""

    services: Services
    job: Job
    where: RepositoryRef
    repository: Repository
    git: Mirror
    branch: str
    trial: Trial
    tests: Trial | None
    found: Bisection

    def open_draft(self) -> PullRequest | None:
        """Open the draft or find the existing one; None if nothing is proven, wanted, or left of today's limit."""
        bisection, culprit = self.found, self.found.culprit
        if culprit is None or bisection.find_fix or not _is_proven(bisection):
            return None
        tip = self.git.resolve(f"refs/heads/{self.branch}")
        if not self.git.is_ancestor(culprit.sha, tip):
            return None
        github = self.services.github_client(self.where, FIX_SCOPE)
        head = f"{BRANCH_PREFIX}revert-{culprit.sha[:12]}"
        drafts = github.pulls(head=head)
        if drafts:
            return drafts[0]
        if is_observed(github) or not self._may_open_another(culprit.sha):
            return None
        commit = self._make_revert_commit(culprit.sha, tip)
        if commit is None:
            return None
        self.job.check_cancelled()
        customs = read_conventions(self.git, tip)
        title = customs.adapt_title(say.revert_title(culprit.subject))
        branches.push_branch(
            self.services,
            self.job,
            self.git,
            commit,
            head,
            github=github,
            sign_off=customs.sign_off,
            message=f"{title}\n\nThis reverts commit {culprit.sha}.\n",
        )
        self.job.check_cancelled()
        opened = github.open_pull(
            head=head,
            base=self.branch,
            title=title,
            body=customs.adapt_body(
                say.revert_body(self.trial.command_line, bisection),
                self.git.changed_paths(commit),
            ),
            draft=True,
        )
        branches.release_branch(self.services, github.repo, opened)
        self.services.store.save(Revert(self.repository.full_name, culprit.sha, opened.number))
        self.services.log_action(
            self.job, "", "revert", f"#{opened.number} takes back {culprit.sha[:12]}"
        )
        return opened

    def _may_open_another(self, culprit: str) -> bool:
        """Whether today's limit allows one more, and nobody has closed one for this commit."""
        store, repo = self.services.store, self.repository.full_name
        if store.find(Revert, repo=repo, culprit=culprit) is not None:
            return False
        day = f"{self.services.clock.now():%Y-%m-%d}"
        known = {tried.culprit for tried in store.find_all(RevertTry, repo=repo, day=day)}
        if culprit not in known and len(known) >= MAX_REVERTS_PER_DAY:
            return False
        store.add(RevertTry(repo, day, culprit))
        return True

    def _make_revert_commit(self, culprit: str, tip: str) -> str | None:
        """The revert on top of the branch, whole or its source alone, whichever may be published."""
        ways: dict[str, tuple[str, ...]] = {
            "whole": (),
            "source": changed_source_paths(self.git, culprit),
        }
        store, repo = self.services.store, self.repository.full_name
        proof = store.find(RevertProof, repo=repo, culprit=culprit, tip=tip)
        # a process died between the push and the pull request; the branch may exist
        if proof is not None and proof.way in ways:
            return self.git.revert(culprit, tip, paths=ways[proof.way])
        if not ways["source"]:
            del ways["source"]
        for name, paths in ways.items():
            commit = self.git.revert(culprit, tip, paths=paths)
            if commit is not None and self._passes_gate(culprit, tip, commit):
                store.save(RevertProof(repo, culprit, tip, name))
                self.job.reset_attempts()
                return commit
        return None

    def _passes_gate(self, culprit: str, tip: str, commit: str) -> bool:
        """Whether a repair by this revert would be published without an approval."""
        work = FixJob(self.trial, tip, tests=self.tests)
        sandbox = self.services.sandbox()
        try:
            report = judge_revert(
                work, culprit, commit, git=self.git, sandbox=sandbox, say=self.job.report_progress
            )
        except (UserError, OutsideError):
            self.job.check_cancelled()
            return False
        return report.verdict == "allow"


def _is_proven(bisection: Bisection) -> bool:
    proof = bisection.verified
    return proof is not None and proof.ok and "revert" in proof.by


_MAX_NAMED_COMMITS = 10
_MIN_EDIT_SECONDS = 15.0
_MAX_MINUTES = 120.0
_SCHEDULED_MINUTES = 240.0


def bisect_on_request(services: Services, job: Job, ask: BisectAsk) -> str:
    """Bisect on request: one comment, updated on the way, ends with the culprit or with the reason for none."""
    github = services.github_client(ask.where, BISECT_SCOPE)
    repository = github.repository()
    config = services.load_repo_config(ask.where, github, repository).config
    services.require_job_minutes(repository.full_name, config)
    reply = CommandReply(github, services.store, ask.number, ask.comment, job.record.id)
    pull = github.pull(ask.number) if ask.bad is None and _is_pull(github, ask.number) else None
    if pull is not None:
        refuse_command_for_old_head("bisect", ask.sha, pull)
    base = pull.base_sha if pull else repository.default_branch
    refs = [f"refs/pull/{ask.number}/head"] if pull else []
    git = services.mirrors.fetch(github, repository, refs, job.cancel)
    bad = ask.bad or (pull.head_sha if pull else repository.default_branch)
    good = ask.good or (pull.base_sha if pull else None)
    fetch = pull.fetch_command if pull else ""
    try:
        _require_measure(ask.slower, good)
        services.sandbox()  # fails early
        ends = _find_range_ends(git, good, bad)
        cleared = require_clearance(services.store, git, repository, pull, *ends)
    except NoSandbox:
        raise
    except UserError as error:
        # whoever typed the range is told, so that no failed job waits for somebody else
        refused = replace(job.record, outcome="refused")
        reply.decline(
            messages.job_failed(str(error), refused, services.job_page_url(job.record.id))
        )
        return f"not run: {error}"
    branch = pull.head_ref if pull else repository.default_branch
    try:
        tests = complete_tests(
            services,
            job,
            git,
            config,
            cleared,
            github=github,
            rev=bad,
            base=base,
            minutes=_MAX_MINUTES,
            command=ask.test,
            asked_by=ask.asked_by,
        )
        trial = tests.trial
        if not trial.command:
            command = '/bisect test="pytest tests/test_x.py"'
            reply.decline(messages.ask_for_test_command(command))
            return "not run: no test command is known"
        task = BisectJob(
            trial=trial,
            good=good,
            bad=bad,
            jobs=_parallel_job_count(config),
            max_minutes=tests.minutes_left,
            resume=True,
            slower=ask.slower,
            known=find_ci_runs(github, git, branch, trial.command_line)
            if ask.slower is None
            else (),
        )
        bisection = _run_bisection(
            services,
            job,
            repository,
            task,
            git=git,
            progress=_make_progress_reporter(services, job, reply),
            fetch=fetch,
        )
        bisection = replace(
            bisection, environment=tests.document, seconds=services.measure_job(job)
        )
        brought = _find_culprit_pull(github, bisection)
        _save_bisection(
            services,
            job,
            repository,
            bisection,
            git,
            pull=brought,
            number=ask.number,
            fetch=fetch,
        )
        job.check_cancelled()
    except Cancelled:
        reply.post_text(messages.job_cancelled(services.store.job(job.record.id)))
        raise
    wanted = config.bisect.revert_pr and (pull is None or not pull.fork)
    suite = make_suite_trial(config, cleared, git, rev=bad, base=base, like=trial)
    revert = RevertOffer(
        services,
        job,
        ask.where,
        repository,
        git,
        repository.default_branch,
        trial,
        suite,
        bisection,
    )
    opened = revert.open_draft() if wanted else None
    body = messages.bisection_body(
        bisection,
        opened.number if opened else None,
        services.job_page_url(job.record.id),
        messages.describe_culprit_pull(brought.number, brought.author) if brought else "",
        fetch,
    )
    reply.post_text(body)
    reply.show_reaction("rocket")
    services.log_action(job, ask.asked_by, "bisect", _summarize_bisection(bisection))
    return _summarize_bisection(bisection)


def _require_measure(slower: float | None, good: str | None) -> None:
    """Refuse a search for a slower commit that names none to compare with.

    Raises:
        UserError: there is no good revision.
    """
    if slower is not None and good is None:
        raise UserError("`slower=` needs `good=`: the commit whose time is the measure")


def _find_range_ends(git: Mirror, good: str | None, bad: str) -> list[str]:
    """The revisions to run, without ancestors of others.

    Raises:
        UserError: they are no range.
    """
    ends = [bad] if good is None or git.is_ancestor(good, bad) else [bad, good]
    resolve_range(good, bad, find_fix=False, git=git)
    return ends


def run_schedule(services: Services, job: Job, tick: Tick) -> JobEnd:
    """Handle a due schedule: record a passing test, bisect a failing one, open one issue for each regression."""
    github = services.github_client(tick.where, BISECT_SCOPE)
    repository = github.repository()
    config = services.load_repo_config(tick.where, github, repository).config
    schedule = next((s for s in config.bisect.schedules if s.name == tick.schedule), None)
    if schedule is None or repository.archived:
        return JobEnd("the schedule is gone")
    services.require_job_minutes(repository.full_name, config)
    jobs = _parallel_job_count(config)
    flow = _ScheduledBisect(
        services, job, github, repository, schedule, where=tick.where, jobs=jobs
    )
    return flow.run(config)


class _ScheduledBisect:
    """One run of one schedule."""

    def __init__(
        self,
        services: Services,
        job: Job,
        github: GitHub,
        repository: Repository,
        schedule: Schedule,
        *,
        where: RepositoryRef,
        jobs: int,
    ) -> None:
        self._desk = services
        self._job = job
        self._github = github
        self._repository = repository
        self._schedule = schedule
        self._where = where
        self._jobs = jobs
        empty = ScheduleState(repository.full_name, schedule.name)
        known = services.store.find(ScheduleState, repo=empty.repo, schedule=empty.schedule)
        self._state = known or empty

    def run(self, config: RepoConfig) -> JobEnd:
        """Run the test at the branch's head, and bisect if it fails."""
        services, job = self._desk, self._job
        git = services.mirrors.fetch(self._github, self._repository, cancel=job.cancel)
        head = git.resolve(f"refs/heads/{self._schedule.branch}")
        cleared = require_clearance(services.store, git, self._repository, None, head)
        tests = complete_tests(
            services,
            job,
            git,
            config,
            cleared,
            github=self._github,
            rev=head,
            base=self._schedule.branch,
            minutes=_SCHEDULED_MINUTES,
            command=self._schedule.test,
        )
        trial = tests.trial
        job.report_progress(f"running {trial.command_line} at {head[:12]}")
        passes = _test_passes(trial, head, git, services, job)
        fast = self._find_reference_commit(git, head) if passes and self._schedule.slower else None
        if passes and (fast is None or not self._is_slower(trial, git, head, fast)):
            return self._record_green(head)
        if self._state.red == head and (self._state.issue or is_observed(self._github)):
            return JobEnd("still red, and the issue says why", "red")
        bisection = self._search_culprit(tests, git, head, fast)
        brought = _find_culprit_pull(self._github, bisection)
        _save_bisection(services, job, self._repository, bisection, git, pull=brought)
        if bisection.outcome == "not_reproduced":
            is_flaky = fast is None
            flaky = JobEnd("failed once and not again: flaky", "flaky")
            return flaky if is_flaky else self._record_green(head)
        job.check_cancelled()
        suite = make_suite_trial(
            config, cleared, git, rev=head, base=self._schedule.branch, like=trial
        )
        offer = RevertOffer(
            services,
            job,
            self._where,
            self._repository,
            git,
            self._schedule.branch,
            trial,
            suite,
            bisection,
        )
        opened = offer.open_draft() if config.bisect.revert_pr else None
        summary = self._report_regression(bisection, head, opened, brought)
        issue = self._state.issue
        _save_bisection(services, job, self._repository, bisection, git, pull=brought, opened=issue)
        return JobEnd(f"red: {summary}", "red")

    def _find_reference_commit(self, git: Mirror, head: str) -> str | None:
        """The commit whose time is the reference: older than the lookback, so that small slowdowns add up."""
        green = self._state.green
        aged = self._find_old_commit(git, head)
        return aged if aged and (not green or git.is_ancestor(aged, green)) else green or None

    def _is_slower(self, trial: Trial, git: Mirror, head: str, fast: str) -> bool:
        """Whether the test takes longer at `head` than at `fast` by more than the schedule allows."""
        threshold = self._schedule.slower
        if threshold is None or fast == head:
            return False
        self._job.report_progress(f"timing {trial.command_line} at {head[:12]} against {fast[:12]}")
        boxes = BoxPool(git, self._desk.sandbox(), self._job.cancel, in_turn=True)
        try:
            run = PairedRunner(TrialRunner(trial, boxes, self._job.cancel), fast, threshold)(head)
        finally:
            boxes.close()
        return run.ran == "fail"

    def _search_culprit(
        self, tests: CompletedTrial, git: Mirror, head: str, fast: str | None
    ) -> Bisection:
        """Look for the commit that broke the test or, starting at `fast`, made the test slower."""
        trial = tests.trial
        good = fast or self._state.green or self._find_old_commit(git, head)
        ci = (
            ()
            if fast
            else find_ci_runs(self._github, git, self._schedule.branch, trial.command_line)
        )
        task = BisectJob(
            trial=trial,
            good=good,
            bad=head,
            jobs=self._jobs,
            max_minutes=tests.minutes_left,
            resume=True,
            slower=self._schedule.slower if fast else None,
            known=ci,
        )
        found = _run_bisection(
            self._desk,
            self._job,
            self._repository,
            task,
            git=git,
            progress=self._job.report_progress,
        )
        took = self._desk.measure_job(self._job)
        return replace(found, environment=tests.document, seconds=took)

    def _find_old_commit(self, git: Mirror, head: str) -> str | None:
        """The newest commit that is older than the lookback: the start of a search without a known good commit."""
        oldest = self._desk.clock.now() - timedelta(days=self._schedule.lookback_days)
        older = [c for c in git.commits(None, head, first_parent=True) if c.date <= oldest]
        return older[-1].sha if older else None

    def _record_green(self, head: str) -> JobEnd:
        self._save_state(replace(self._state, green=head))
        if not self._state.red:
            return JobEnd("green", "green")
        mark = messages.make_marker("green-again", self._schedule.name, head)
        issues = self._state.issues
        for number in issues:
            self._job.check_cancelled()
            text = messages.regression_over(self._schedule, head)
            self._github.post_comment(number, mark, text)
            self._github.close_issue(number)
        self._save_state(replace(self._state, red="", issue=None, issues=()))
        did = "would close" if is_observed(self._github) else "closed"
        closed = ", ".join(f"#{number}" for number in issues)
        return JobEnd(f"green again: {did} {closed}", "green")

    def _save_state(self, state: ScheduleState) -> None:
        self._state = state
        self._desk.store.save(state)

    def _report_regression(
        self,
        bisection: Bisection,
        head: str,
        opened: PullRequest | None,
        brought: PullRequest | None,
    ) -> str:
        culprit = bisection.culprit.sha if bisection.culprit else "unknown"
        mark = messages.make_marker("regression", self._schedule.name, culprit)
        title = messages.regression_title(self._schedule.branch, bisection)
        page = self._desk.job_page_url(self._job.record.id)
        note = messages.describe_regression(self._schedule.name, self._schedule.test, bisection)
        if brought:
            note = f"{messages.describe_culprit_pull(brought.number, brought.author)}\n\n{note}"
        body = messages.bisection_body(bisection, opened.number if opened else None, page, note)
        issue = self._github.post_issue(mark, title, body, [messages.REGRESSION_LABEL])
        number = None if is_observed(self._github) else issue.number
        issues = tuple(sorted({*self._state.issues, *([number] if number else [])}))
        self._save_state(replace(self._state, red=head, issue=number, issues=issues))
        where = f"#{number}" if number else "would open an issue"
        summary = f"{where}, {_summarize_bisection(bisection)}"
        self._desk.log_action(self._job, "", "regression", summary)
        return summary


def _parallel_job_count(config: RepoConfig) -> int:
    return min(config.bisect.jobs, os.cpu_count() or 1)


def _run_bisection(
    services: Services,
    job: Job,
    repository: Repository,
    task: BisectJob,
    *,
    git: Mirror,
    progress: Callable[[str], None],
    fetch: str = "",
) -> Bisection:
    memory = BisectMemory(job)
    return run_bisection(
        task,
        git=git,
        sandbox=services.sandbox(),
        memory=memory,
        progress=progress,
        cancel=job.cancel,
        keep=partial(services.store_capsule, repository, fetch=fetch),
    )


def _test_passes(trial: Trial, rev: str, git: Mirror, services: Services, job: Job) -> bool:
    with open_box(trial, rev, git=git, sandbox=services.sandbox(), cancel=job.cancel) as box:
        done = box.run(trial.command, timeout=trial.timeout, env=dict(trial.env), cancel=job.cancel)
    return done.passed


def _make_progress_reporter(
    services: Services, job: Job, reply: CommandReply
) -> Callable[[str], None]:
    """Report progress to the dashboard at once and to the comment rarely: GitHub counts every edit."""
    last = [services.clock.monotonic()]

    def tell(text: str) -> None:
        job.report_progress(text)
        if services.clock.monotonic() - last[0] >= _MIN_EDIT_SECONDS:
            last[0] = services.clock.monotonic()
            reply.post_text(messages.work_started(text))

    return tell


def _is_pull(github: GitHub, number: int) -> bool:
    return "/pull/" in github.issue_text(number).html_url


def _find_culprit_pull(github: GitHub, bisection: Bisection) -> PullRequest | None:
    """The merged pull request that brought the culprit."""
    return github.find_merged_pull(bisection.culprit.sha) if bisection.culprit else None


def _summarize_bisection(bisection: Bisection) -> str:
    if bisection.culprit is None:
        return report.render_headline(bisection)
    did = "made it slower" if bisection.slower else "broke it"
    return f"{bisection.culprit.sha[:12]} {did} ({format_probability(bisection.probability)})"


def _save_bisection(
    services: Services,
    job: Job,
    repository: Repository,
    bisection: Bisection,
    git: Mirror,
    *,
    pull: PullRequest | None,
    number: int | None = None,
    opened: int | None = None,
    fetch: str = "",
) -> None:
    likeliest = sorted(bisection.posterior, key=lambda p: -p.p)[:_MAX_NAMED_COMMITS]
    named = [git.commit(point.sha) for point in likeliest]
    branch = repository.default_branch
    blamed = bisection.culprit.sha if bisection.culprit else bisection.range.bad
    body: dict[str, Any] = {
        "version": 1,
        **asdict(bisection),
        "svg": report.render_svg(bisection),
        "commits": {c.sha: {"subject": c.subject, "author": c.author} for c in named},
        "headline": report.render_headline(bisection),
        "opened": opened,
        "branch": branch if git.is_ancestor(blamed, f"refs/heads/{branch}") else "",
        "culprit_pull": {"number": pull.number, "author": pull.author} if pull else None,
        "runs_made": report.describe_runs(bisection),
        "reproduce": messages.reproduce_bisection(bisection, fetch),
        "undo": messages.undo_culprit(bisection),
    }
    services.store.save_document(
        ResultDocument(
            kind="bisect",
            repo=repository.full_name,
            number=number,
            subject=job.record.id,
            job=job.record.id,
            at=services.clock.now(),
            body=body,
        )
    )


# The observations of a bisection, stored before the next choice: a search that is killed repeats the same steps.


class BisectMemory:
    """Satisfies `bisect.verdict_memory.VerdictMemory` with the store."""

    def __init__(self, job: Job) -> None:
        self._store = job.store
        self._job = job

    def get(self, key: str) -> Sequence[str]:
        """Every line under `key`, oldest first."""
        return self._store.observations(key)

    def append(self, key: str, line: str) -> None:
        """Append one line under `key`."""
        self._store.add_observation(key, line)
        self._job.reset_attempts()
