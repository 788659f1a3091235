"""Reproduces a failure, repairs it, and opens a draft pull request with the patch or reports the reason for none."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from regreen.bot import messages
from regreen.bot.flows import branches
from regreen.bot.flows.conventions import read_conventions
from regreen.bot.flows.failed_job import FailedJob, find_failed_jobs
from regreen.bot.flows.trials import complete_tests, make_suite_trial
from regreen.bot.flows.why import ask_again, explain_needless_repair
from regreen.bot.jobs.event_jobs import BRANCH_PREFIX
from regreen.bot.jobs.runner import Job
from regreen.bot.observe import OnlyObserved, is_observed
from regreen.bot.replies import CommandReply, settle_waiting_patches
from regreen.bot.repository_settings import LoadedConfig
from regreen.bot.services import Services
from regreen.bot.trust import Clearance, refuse_command_for_old_head, require_clearance
from regreen.code.path_settings import find_changed_paths, narrow_limits
from regreen.domain.errors import Cancelled, NotStarted, OutsideError, UserError
from regreen.domain.events import CheckFailed, CheckPassed, PullRequestChanged, RepositoryRef
from regreen.domain.events import FixRequest as FixAsk
from regreen.domain.github import FIX_SCOPE, CheckRun, GitHub, PullRequest, Repository, WorkflowRun
from regreen.domain.models import RungName
from regreen.domain.ports import Mirror
from regreen.domain.records import JobRecord, ResultDocument, Store
from regreen.domain.repo_config import CONFIG_PATH, RepoConfig
from regreen.domain.state_records import (
    FinishedWork,
    OpenRepair,
    PendingPatch,
    RepairAttempt,
    RepairTry,
)
from regreen.environment.preparation import CompletedTrial
from regreen.fixers.case import QUICK_MINUTES
from regreen.fixers.ladder import FixJob, FixResult, fix_failure
from regreen.fixers.report import format_markdown
from regreen.packages.setup_guard import InstallPolicy
from regreen.secrets.redaction import HIDDEN_MARK

_MAX_ATTEMPTS_PER_DAY = 5
_MAX_MINUTES = 20.0
_QUIET_OUTCOMES = frozenset({"fixed", "already_green"})


@dataclass(frozen=True)
class _FixTarget:
    """What to repair: a commit, its branch, and its pull request if there is one, or the issue that asked for it.

    `command` is what the issue was bisected with: its own failure, whatever else is red on the branch.
    """

    branch: str
    sha: str
    pull: PullRequest | None
    issue: int | None = None
    command: str = ""

    @property
    def number(self) -> int | None:
        return self.pull.number if self.pull else None

    @property
    def fork(self) -> bool:
        return self.pull is not None and self.pull.fork

    @property
    def fetch_command(self) -> str:
        return self.pull.fetch_command if self.pull else ""

    @property
    def own_issue(self) -> int:
        """The issue whose own command is repaired; 0 where it is what CI runs."""
        return self.issue or 0 if self.command else 0

    @property
    def fix_branch(self) -> str:
        """Our branch for this target: always the same name, so that an existing pull request is found again."""
        if self.pull is not None:
            return f"{BRANCH_PREFIX}fix-{self.pull.number}"
        name = f"{self.branch}-issue-{self.issue}" if self.own_issue else self.branch
        plain = "".join(c if c.isalnum() and c.isascii() else "-" for c in name)[:40]
        return f"{BRANCH_PREFIX}fix-{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def fix_failed_check(services: Services, job: Job, event: CheckFailed) -> str:
    """Repair CI that failed on its own, if the repository wants that."""
    if event.app == services.app.slug:
        return "our own check: what it found is said already"
    where = event.where
    github = services.github_client(where, FIX_SCOPE)
    repository = github.repository()
    loaded = services.load_repo_config(where, github, repository)
    config = loaded.config
    if not config.fix.enabled or "ci_failure" not in config.fix.on or repository.archived:
        return "repairs after CI failures are switched off"
    target = _target_from_event(github, event)
    if target is None or not _is_head(services, job, github, repository, target):
        return "the branch has moved on"
    if target.fork or event.fork:
        return "a fork: nothing can be pushed there"
    reason = explain_needless_repair(
        services.store, repository.full_name, target.number, target.sha
    )
    if not reason and _tried_too_often(services, repository, target):
        reason = f"tried {_MAX_ATTEMPTS_PER_DAY} times today already"
    if reason:
        return reason
    services.require_job_minutes(repository.full_name, config)
    flow = _FixFlow(
        services, job, where, github=github, repository=repository, loaded=loaded, target=target
    )
    run = github.workflow_run(event.run_id) if event.run_id is not None else None
    return flow.run(run, asked_by="", hint="", reply=flow.own_reply())


def fix_on_request(services: Services, job: Job, ask: FixAsk) -> str:
    """Repair on request; the answer goes to the comment."""
    where = ask.where
    github = services.github_client(where, FIX_SCOPE)
    reply = CommandReply(github, services.store, ask.number, ask.comment, job.record.id)
    repository = github.repository()
    loaded = services.load_repo_config(where, github, repository)
    if not loaded.config.fix.enabled or "command" not in loaded.config.fix.on:
        msg = f"`/fix` is switched off by `fix.on` or `fix.enabled` in `{CONFIG_PATH}`; change it there"
        raise NotStarted(msg)
    services.require_job_minutes(repository.full_name, loaded.config)
    target = _target_from_request(services, github, repository, ask)
    flow = _FixFlow(
        services, job, where, github=github, repository=repository, loaded=loaded, target=target
    )
    run = None if target.command else _find_latest_failed_run(github, target)
    try:
        note = flow.run(run, asked_by=ask.asked_by, hint=ask.hint, reply=reply)
    except Cancelled:
        reply.post_text(messages.job_cancelled(services.store.job(job.record.id)))
        raise
    reply.show_reaction("rocket")
    return note


def publish_approved(
    services: Services, job: Job, where: RepositoryRef, place: str, login: str
) -> str | None:
    """Publish the patch that waits for approval; return the reply, or None if no patch waits.

    `place` is where the patch was shown: the number of an issue or pull request, or "@" and a commit.
    """
    pending = services.store.find(PendingPatch, repo=where.repo, place=place)
    if pending is None:
        return None
    if job.record.created.timestamp() < pending.at:
        return messages.approval_too_early()
    github = services.github_client(where, FIX_SCOPE)
    repository = github.repository()
    loaded = services.load_repo_config(where, github, repository)
    pull = github.pull(int(place)) if pending.on_pull else None
    if pull is not None and pull.head_sha != pending.sha:
        # an approval covers the patch that was shown, at the commit for which it was shown
        services.store.remove(PendingPatch, repo=where.repo, place=place)
        late = messages.describe_late_approval(login, services.clock.now(), pull.head_sha)
        settle_waiting_patches(github, services.store, pull.number, late, on_pull=True)
        return messages.approval_too_late(pending.sha, pull.head_sha)
    found = _find_proposal(services.store, pending)
    target = _FixTarget(pending.branch, pending.sha, pull)
    if found is not None and found.body.get("issue"):
        # it is published as what it was proposed as
        command = found.body["before"]["command"]
        target = replace(target, issue=found.body["issue"], command=command)
    flow = _FixFlow(
        services, job, where, github=github, repository=repository, loaded=loaded, target=target
    )
    flow.workflow = pending.workflow
    body = messages.approved_body(login, services.clock.now(), pending.body)
    try:
        opened, reply = flow.open_draft(
            pending.patch,
            pending.title,
            body,
            "approved",
            fix=_fix_from(found.body) if found else FixResult("fixed"),
        )
    except (branches.BranchTaken, OnlyObserved) as error:
        return messages.command_not_run(str(error))
    services.store.remove(PendingPatch, repo=where.repo, place=place)
    if found is not None:
        # both are known to belong together
        shown = {**found.body, "opened": opened.number, "approved_by": login}
        services.store.save_document(replace(found, body=shown))
    if place.startswith("@"):
        _post_opened_check(github, target, opened.number, reply)
    else:
        done = messages.describe_approval(login, services.clock.now(), opened.number)
        settle_waiting_patches(github, services.store, int(place), done, on_pull=pending.on_pull)
    services.log_action(job, login, "approved", opened.html_url)
    return reply


def _find_proposal(store: Store, approved: PendingPatch) -> ResultDocument | None:
    """The result that proposed the patch, if no draft was opened for it."""
    found = store.documents(repo=approved.repo, kind="fix", limit=50)
    same = (d for d in found if d.body.get("patch") == approved.patch and not d.body.get("opened"))
    return next(same, None)


def close_needless_fix(services: Services, job: Job, event: CheckPassed) -> str:
    """Close our draft when the failed workflow passes at the branch's head and nobody has changed the draft."""
    own = {"repo": event.where.repo, "branch": event.head_branch, "issue": 0}
    repair = services.store.find(OpenRepair, **own)
    if repair is None:
        return "no fix is open for this branch"
    github = services.github_client(event.where, FIX_SCOPE)
    pull = github.pull(repair.number)
    if pull.state == "open":
        if reason := _reason_to_keep_open(services, job, github, repair, pull, event=event):
            return f"#{pull.number} stays: {reason}"
        job.check_cancelled()
        mark = messages.make_marker("needless", pull.number)
        github.post_comment(
            pull.number, mark, messages.needless_fix(event.head_branch, event.head_sha)
        )
        github.close_pull(pull.number)
    # last: a process that dies before this line repeats the work
    services.store.remove(OpenRepair, **own)
    return f"closed #{pull.number}"


def record_closed_repair(store: Store, event: PullRequestChanged) -> None:
    """Record whether `event` closed or merged the draft of a repair, or opened it again."""
    if event.change in ("closed", "reopened"):
        for repair in store.find_all(OpenRepair, repo=event.where.repo, number=event.number):
            store.save(replace(repair, closed=event.change == "closed"))


def _reason_to_keep_open(
    services: Services,
    job: Job,
    github: GitHub,
    repair: OpenRepair,
    pull: PullRequest,
    *,
    event: CheckPassed,
) -> str:
    """Why a repair's draft stays open after a passing workflow run; "" if the draft is not needed any more."""
    if event.fork:
        return "the run is a fork's"
    if not event.path or repair.workflow != event.path:
        return "it repairs another workflow"
    git = services.mirrors.fetch(github, github.repository(), cancel=job.cancel)
    if branches.branch_tip(git, event.head_branch) != event.head_sha:
        return "the run is not of the branch's present head"
    if not _is_green(github, event):
        return "another run of the workflow at this commit did not pass"
    at = branches.branch_tip(git, pull.head_ref)
    if not (
        _is_untouched(repair, pull)
        and branches.is_our_branch(services, github.repo, pull.head_ref, at)
    ):
        return "a person has taken it up"
    return ""


def _is_green(github: GitHub, event: CheckPassed) -> bool:
    """Whether the newest run of the workflow passed for each kind of event that it ran for at this commit.

    Raises:
        OutsideError: GitHub does not list the run yet.
    """
    runs = [r for r in github.runs(event.head_branch, event.path) if r.head_sha == event.head_sha]
    if event.run_id not in {run.id for run in runs}:
        raise OutsideError("GitHub does not list the workflow run yet", retry_after=5)
    ours = sorted((run for run in runs if not run.fork), key=lambda run: run.id)
    newest = {run.event: run.conclusion for run in ours}
    return set(newest.values()) == {"success"}


def _is_untouched(repair: OpenRepair | None, pull: PullRequest) -> bool:
    """Whether our pull request is unchanged: still a draft, with our title and text."""
    if repair is None:
        return True
    return pull.draft >= repair.draft and repair.text in {None, _pull_digest(pull)}


def _pull_digest(pull: PullRequest) -> str:
    text = f"{pull.title}\n{pull.body}".replace("\r\n", "\n").strip()
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def report_broken_repair(
    services: Services, record: JobRecord, event: CheckFailed, reason: str
) -> None:
    """Report a failed automatic repair: one neutral check run on the failing commit, no comment.

    Drafts and forks get no report: drafts are unfinished, and Regreen cannot push to forks.
    """
    github = services.github_client(event.where, FIX_SCOPE)
    target = _target_from_event(github, event)
    if target is None or target.fork or event.fork or (target.pull and target.pull.draft):
        return
    check = messages.broken_repair_check(
        target.sha,
        _repair_check_id(target),
        reason,
        number=target.number,
        page=services.job_page_url(record.id),
        is_refused=record.outcome == "refused",
    )
    _post_failed_check(services, github, check)


def _post_failed_check(services: Services, github: GitHub, check: CheckRun) -> None:
    """Post that a commit was not repaired, and remember it, so that a later draft for the commit corrects it."""
    github.post_check_run(check)
    services.store.save(FinishedWork("repair_check", f"{github.repo}@{check.head_sha}", ""))


def _post_opened_check(github: GitHub, target: _FixTarget, number: int, text: str) -> None:
    check = messages.opened_repair_check(target.sha, _repair_check_id(target), number, text)
    github.post_check_run(check)


def _repair_check_id(target: _FixTarget) -> str:
    return f"repair-{target.sha[:24]}"


class _FixFlow:
    """One repair, from the failed run to the draft pull request or the reason for none."""

    def __init__(
        self,
        services: Services,
        job: Job,
        where: RepositoryRef,
        *,
        github: GitHub,
        repository: Repository,
        loaded: LoadedConfig,
        target: _FixTarget,
    ) -> None:
        self._desk = services
        self._job = job
        self._where = where
        self._github = github
        self._repository = repository
        self._config: RepoConfig = loaded.config
        self._target = target
        self.workflow = ""

    def own_reply(self) -> CommandReply | None:
        """Where an automatic repair reports: the pull request's one comment about failing CI."""
        if self._target.number is None:
            return None
        return CommandReply(
            self._github,
            self._desk.store,
            self._target.number,
            None,
            f"fix-{self._target.number}",
        )

    def run(
        self, run: WorkflowRun | None, *, asked_by: str, hint: str, reply: CommandReply | None
    ) -> str:
        """Repair and publish; a finished repair is only published."""
        self.workflow = run.path if run else ""
        stored = self._desk.store.find(FinishedWork, kind="fix", id=self._job.record.id)
        if stored is None:
            fix, red = self._find_repair(run, hint, asked_by=asked_by)
            fix = replace(fix, seconds=self._desk.measure_job(self._job))
            result = {"fix": asdict(fix), "name": red.name, "step": red.step, "url": red.url}
            self._desk.store.save(FinishedWork("fix", self._job.record.id, json.dumps(result)))
        else:
            data = json.loads(stored.body)
            fix, red = (
                _fix_from(data["fix"]),
                FailedJob(data["name"], data["step"], data["url"], None),
            )
        return self._publish_result(fix, red, asked_by, reply)

    def _find_repair(
        self, run: WorkflowRun | None, hint: str, *, asked_by: str
    ) -> tuple[FixResult, FailedJob]:
        job, target, config = self._job, self._target, self._config
        job.report_progress("fetching the repository")
        refs = [f"refs/pull/{target.number}/head"] if target.number is not None else []
        git = self._desk.mirrors.fetch(self._github, self._repository, refs, job.cancel)
        cleared = require_clearance(
            self._desk.store, git, self._repository, target.pull, target.sha, patched=True
        )
        red, environment = self._find_failed_job(git, run, cleared, asked_by=asked_by)
        document = environment.document if environment else None
        if red.trial is None:
            return FixResult("not_reproduced", reason=red.reason, environment=document), red
        base = target.pull.base_sha if target.pull else None
        touched = find_changed_paths(git, base, target.sha) if base and config.paths else ()
        config = narrow_limits(config, touched)
        model = self._desk.model(job, self._repository.full_name, target.number, config)
        work = FixJob(
            trial=red.trial,
            rev=target.sha,
            base=base,
            rungs=_allowed_rungs(config, git, target),
            max_usd=config.budget.usd_per_pull_request,
            max_minutes=environment.minutes_left if environment else _MAX_MINUTES,
            quick_minutes=QUICK_MINUTES,
            protected_paths=config.fix.protected_paths,
            max_changed_lines=config.fix.max_changed_lines,
            hint=hint,
            attempts_before=self._count_earlier_attempts(),
            expected=red.failures,
            allow_network=config.tests.allow_network,
            tests=make_suite_trial(
                config,
                cleared,
                git,
                rev=target.sha,
                base=self._trusted_revision(),
                like=environment.trial if environment else None,
            ),
            other_jobs=red.other_jobs,
        )
        fix = fix_failure(
            work,
            git=git,
            sandbox=self._desk.sandbox(),
            model=model[0] if model else None,
            progress=job.report_progress,
            cancel=job.cancel,
            keep=partial(self._desk.store_capsule, self._repository, fetch=target.fetch_command),
        )
        fix = replace(fix, environment=document)
        is_repaired = bool(target.command) and fix.outcome == "already_green"
        if is_repaired and (red_run := _find_latest_failed_run(self._github, target)) is not None:
            # what was bisected here is repaired, and something else is red
            self._target, self.workflow = replace(target, command=""), red_run.path
            return self._find_repair(red_run, hint, asked_by=asked_by)
        if fix.outcome == "already_green" and run is not None and environment is not None:
            # what failed in CI is something else
            reason = f"{red.reason}; `{red.trial.command_line}` passes here"
            fix = replace(fix, outcome="not_reproduced", reason=reason)
        fix = self._use_verified_probability(fix)
        return (replace(fix, cost=model[1]()) if model else fix), red

    def _use_verified_probability(self, fix: FixResult) -> FixResult:
        """With the probability that a stored bisection of the same command has verified for the culprit."""
        if (culprit := fix.culprit) is None:
            return fix
        for known in self._desk.store.documents(kind="bisect", repo=self._repository.full_name):
            body = known.body
            if (
                (body.get("culprit") or {}).get("sha") == culprit.sha
                and (body.get("verified") or {}).get("ok")
                and body["command"].strip() == fix.before.command.strip()
            ):
                return replace(fix, culprit=replace(culprit, probability=body["probability"]))
        return fix

    def _count_earlier_attempts(self) -> int:
        """How many other repairs were tried at this commit; a job that resumes after a crash counts once."""
        own = RepairAttempt(self._repository.full_name, self._target.sha, self._job.record.id)
        self._desk.store.add(own)
        known = self._desk.store.find_all(RepairAttempt, repo=own.repo, sha=own.sha)
        return len(known) - 1

    def _find_failed_job(
        self, git: Mirror, run: WorkflowRun | None, cleared: Clearance, *, asked_by: str
    ) -> tuple[FailedJob, CompletedTrial | None]:
        """What failed: a job as its workflow runs it, else the repository's tests with their environment."""
        reason = "no workflow run has failed at this commit"
        if run is not None:
            pythons = self._desk.sandbox().pythons()
            jobs = find_failed_jobs(
                self._github, git, run, scope=cleared.scope, trust=cleared.trust, pythons=pythons
            )
            if jobs and (planned := jobs[0].trial) is not None:
                # the workflow file belongs to the tree, so its commands are judged as the tree is
                rules = InstallPolicy.from_config(self._config.tests, trusts_command=False)
                trial = replace(planned, base=self._trusted_revision(), rules=rules)
                return replace(jobs[0], trial=trial), None
            reason = jobs[0].reason if jobs else "the run has no failed job"
        tests = complete_tests(
            self._desk,
            self._job,
            git,
            self._config,
            cleared,
            github=self._github,
            rev=self._target.sha,
            base=self._trusted_revision(),
            minutes=_MAX_MINUTES,
            command=self._target.command,
            asked_by=asked_by,
        )
        name, url = (run.name, run.html_url) if run else ("the tests", "")
        if not tests.trial.command:
            reason += (
                ", and no test command is known: neither `tests.command` nor a file of the "
                "repository says how the tests run"
            )
            return FailedJob(name, "", url, None, reason=reason), tests
        return FailedJob(name, "", url, tests.trial, reason=reason), tests

    def _trusted_revision(self) -> str:
        """The revision whose dependencies need no permission: a pull request's base, or the failing branch itself."""
        return self._target.pull.base_sha if self._target.pull else self._target.sha

    def _publish_result(
        self, fix: FixResult, red: FailedJob, asked_by: str, reply: CommandReply | None
    ) -> str:
        self._job.check_cancelled()
        self._save_fix(fix)
        # without a failed job it is a command that was run
        failing = red.step or (red.name if red.url else fix.before.command or red.name)
        title = messages.fix_or_revert_title(red.name, fix)
        in_branch = messages.fix_report(fix, format_markdown(fix, branch=self._target.fix_branch))
        target = self._target
        branch = f"the branch `{target.branch.replace('`', '')}`"
        place = f"#{target.number}" if target.number is not None else branch
        body = messages.fix_body(
            fix,
            failing,
            red.url,
            in_branch,
            place=place,
            is_step=bool(red.step),
            issue=target.issue,
        )
        is_waiting = bool(fix.outcome == "needs_human" and fix.patch and not self._target.fork)
        fetch = self._target.fetch_command
        shown = format_markdown(fix, is_waiting=is_waiting, fetch=fetch)
        report = messages.fix_report(fix, shown, fetch)
        claim = messages.describe_claim(fix)
        is_quiet, is_opened = fix.outcome in _QUIET_OUTCOMES, False
        if self._target.fork and fix.outcome in {"fixed", "needs_human"} and fix.patch:
            answer = messages.fix_for_fork(claim, report)
        elif fix.outcome == "fixed" and fix.patch:
            try:
                draft, answer = self.open_draft(fix.patch, title, body, fix.cause or "", fix=fix)
                self._save_fix(fix, draft.number)
                is_opened = True
            except (branches.BranchTaken, OnlyObserved) as error:
                answer, is_quiet = messages.fix_withheld(str(error), claim, report), False
        elif fix.outcome == "needs_human" and fix.patch:
            place = str(reply.number) if reply else f"@{self._target.sha}"
            self._wait_for_approval(place, fix.patch, title, body)
            answer = messages.fix_awaits_approval(fix, failing, report, by_button=reply is None)
        else:
            answer = messages.fix_not_found(fix, failing, report)
        if reply is not None:
            reply.post_text(answer)
        elif fix.outcome == "needs_human" and fix.patch:
            check = messages.repair_approval_check(
                self._target.sha,
                _repair_check_id(self._target),
                fix,
                failing,
                answer,
            )
            self._github.post_check_run(check)
        elif not is_quiet:
            check = messages.failed_repair_check(
                self._target.sha, _repair_check_id(self._target), answer, fix
            )
            _post_failed_check(self._desk, self._github, check)
        word = messages.name_repair(
            fix.outcome, is_observed=is_observed(self._github), is_opened=is_opened
        )
        at = f"{word} at {self._target.sha[:12]} ({red.name})"
        self._desk.log_action(self._job, asked_by, "fix", at)
        return f"{word}: {fix.reason or fix.cause or fix.rung or ''}"

    def open_draft(
        self, patch: str, title: str, body: str, cause: str, *, fix: FixResult
    ) -> tuple[PullRequest, str]:
        """Push the patch to our branch, open a draft pull request, and return both with a message.

        Raises:
            BranchTaken: somebody has pushed to the branch, or taken the pull request out of draft.
            OnlyObserved: nothing may be written to the repository.
            UserError: the patch no longer applies.
        """
        services, target = self._desk, self._target
        if is_observed(self._github):
            self._github.open_pull(
                head=target.fix_branch, base=target.branch, title=title, body=body
            )
        refs = [f"refs/pull/{target.number}/head"] if target.number is not None else []
        git = self._desk.mirrors.fetch(self._github, self._repository, refs, self._job.cancel)
        own = git.commits(target.pull.base_sha, target.sha) if target.pull and fix.culprit else ()
        is_own = any(fix.culprit and commit.sha == fix.culprit.sha for commit in own)
        customs = read_conventions(git, self._trusted_revision())
        title = customs.adapt_title(title)
        commit = git.apply(target.sha, patch, f"{title}\n\nFound and verified by Regreen.\n")
        if commit is None:
            raise UserError(
                "the branch has changed, and the patch applies no longer; run /fix again"
            )
        body = customs.adapt_body(body, git.changed_paths(commit))
        self._job.check_cancelled()
        repo = self._repository.full_name
        note = services.store.find(
            OpenRepair, repo=repo, branch=target.branch, issue=target.own_issue
        )
        opened = next(iter(self._github.pulls(head=target.fix_branch)), None)
        if opened is not None and note is not None and note.draft and not opened.draft:
            msg = f"#{opened.number} is no draft any more, so it was left as it is"
            raise branches.BranchTaken(msg)
        tip = branches.branch_tip(git, target.fix_branch)
        if tip is None or git.tree_id(tip) != git.tree_id(commit):
            branches.push_branch(
                services,
                self._job,
                git,
                commit,
                target.fix_branch,
                github=self._github,
                sign_off=customs.sign_off,
            )
        self._job.check_cancelled()
        is_edited = opened is not None and not _is_untouched(note, opened)
        if opened is None or not is_edited:
            opened = self._github.open_pull(
                head=target.fix_branch, base=target.branch, title=title, body=body, draft=True
            )
            note = OpenRepair(
                repo,
                target.branch,
                opened.number,
                opened.draft,
                _pull_digest(opened),
                issue=target.own_issue,
            )
        note = note or OpenRepair(repo, target.branch, opened.number, issue=target.own_issue)
        branches.release_branch(services, self._github.repo, opened)
        note = replace(note, number=opened.number, workflow=self.workflow, closed=False)
        services.store.save(note)
        if target.number is not None and self.workflow:
            ask_again(services, self._job, self._where, target.number, target.sha)
        answer = messages.fix_opened(
            opened.number,
            cause,
            branch=target.branch,
            fix=fix,
            patch=patch,
            body=body,
            is_edited=is_edited,
            is_own=is_own,
        )
        if services.store.find(FinishedWork, kind="repair_check", id=f"{repo}@{target.sha}"):
            _post_opened_check(self._github, target, opened.number, answer)
        return opened, answer

    def _wait_for_approval(self, place: str, patch: str, title: str, body: str) -> None:
        target = self._target
        if is_observed(self._github):
            return
        if place.isdecimal():
            over = messages.describe_replacement(self._desk.clock.now())
            settle_waiting_patches(
                self._github, self._desk.store, int(place), over, on_pull=target.pull is not None
            )
        self._desk.store.save(
            PendingPatch(
                repo=self._repository.full_name,
                place=place,
                at=self._desk.clock.now().timestamp(),
                patch=patch,
                branch=target.branch,
                sha=target.sha,
                title=title,
                body=body,
                on_pull=target.pull is not None,
                workflow=self.workflow,
            )
        )

    def _save_fix(self, fix: FixResult, opened: int | None = None) -> None:
        pull = self._target.pull
        self._desk.store.save_document(
            ResultDocument(
                kind="fix",
                repo=self._repository.full_name,
                number=self._target.number,
                subject=self._job.record.id,
                job=self._job.record.id,
                at=self._desk.clock.now(),
                body={
                    "version": 1,
                    **asdict(fix),
                    "title": pull.title if pull else self._target.branch,
                    "issue": self._target.own_issue,
                    "author": pull.author if pull else "",
                    "opened": opened,
                    "observed": is_observed(self._github),
                    "reproduce": messages.reproduce_fix(fix, self._target.fetch_command),
                },
            )
        )


def _target_from_event(github: GitHub, event: CheckFailed) -> _FixTarget | None:
    pulls = [github.pull(n) for n in event.pulls] or github.pulls(head_sha=event.head_sha)
    pull = next((p for p in pulls if p.state == "open" and p.head_sha == event.head_sha), None)
    if pull is not None:
        return _FixTarget(pull.head_ref, pull.head_sha, pull)
    if event.pulls or not event.head_branch:
        return None
    return _FixTarget(event.head_branch, event.head_sha, None)


def _is_head(
    services: Services, job: Job, github: GitHub, repository: Repository, target: _FixTarget
) -> bool:
    """Whether a target without a pull request is the tip of its branch in this repository."""
    if target.pull is not None:
        return True
    return (
        branches.branch_tip(
            services.mirrors.fetch(github, repository, cancel=job.cancel), target.branch
        )
        == target.sha
    )


def _target_from_request(
    services: Services, github: GitHub, repository: Repository, ask: FixAsk
) -> _FixTarget:
    if ask.on_pull:
        pull = github.pull(ask.number)
        refuse_command_for_old_head("fix", ask.sha, pull)
        return _FixTarget(pull.head_ref, pull.head_sha, pull)
    git = services.mirrors.fetch(github, repository)
    branch = repository.default_branch
    command = _find_bisected_command(services.store, repository.full_name, ask.number)
    return _FixTarget(branch, git.resolve(branch), None, ask.number, command)


def _find_bisected_command(store: Store, repo: str, issue: int | None) -> str:
    """The command that the newest bisection in an issue saw fail; "" without one."""
    if issue is None:
        return ""
    known = store.documents(kind="bisect", repo=repo, number=issue, limit=1)
    seen = (
        one.body["command"]
        for one in known
        if one.body["outcome"] != "not_reproduced" and not one.body.get("slower")
    )
    command = next(seen, "")
    return "" if HIDDEN_MARK in command else command  # it is not what was run


def _find_latest_failed_run(github: GitHub, target: _FixTarget) -> WorkflowRun | None:
    runs = github.runs(target.branch)
    return next((r for r in runs if r.head_sha == target.sha and r.conclusion == "failure"), None)


def _tried_too_often(services: Services, repository: Repository, target: _FixTarget) -> bool:
    """Limit automatic repairs: one that does not help must not start the next one for ever."""
    repo, day = repository.full_name, services.clock.now().date().isoformat()
    tries = services.store.find_all(RepairTry, repo=repo, day=day, branch=target.branch)
    services.store.add(RepairTry(repo, day, target.branch, target.sha))
    return len(tries) >= _MAX_ATTEMPTS_PER_DAY


def _allowed_rungs(config: RepoConfig, git: Mirror, target: _FixTarget) -> tuple[RungName, ...]:
    """Whether the repair reverts the only commit of the pull request, which amounts to closing it."""
    if target.pull is None or len(git.commits(target.pull.base_sha, target.sha)) > 1:
        return config.fix.rungs
    return tuple(rung for rung in config.fix.rungs if rung != "revert")


def _fix_from(data: dict[str, Any]) -> FixResult:
    from pydantic import TypeAdapter

    fix: FixResult = TypeAdapter(FixResult).validate_python(data)
    return fix
