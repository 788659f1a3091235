"""Answers the failed checks of a pull request: whose failure it is, decided by running it, and what to do."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from typing import Any

from regreen.bot import messages
from regreen.bot.flows.failed_job import FailedJob, find_failed_jobs, find_green_versions
from regreen.bot.flows.trials import complete_tests
from regreen.bot.jobs.event_jobs import make_orders
from regreen.bot.jobs.runner import Job
from regreen.bot.observe import is_observed
from regreen.bot.replies import CommandReply
from regreen.bot.repository_settings import LoadedConfig
from regreen.bot.services import Services
from regreen.bot.trust import (
    FORK_WAITS,
    Clearance,
    NotCleared,
    refuse_command_for_old_head,
    require_clearance,
)
from regreen.causes.investigation import Investigation, RedCase, RedCause
from regreen.domain.errors import Cancelled, NoSandbox, UserError
from regreen.domain.events import CauseRequest, PullRequestApproved, RepositoryRef
from regreen.domain.github import (
    CAUSE_SCOPE,
    RERUN_SCOPE,
    CheckRun,
    GitHub,
    NotAllowed,
    PullRequest,
    Repository,
    ValidationFailed,
    WorkflowRun,
    after_fetch,
)
from regreen.domain.job_control import StopCondition
from regreen.domain.ports import Mirror
from regreen.domain.records import ResultDocument, Store
from regreen.domain.state_records import OpenRepair, ScheduleState
from regreen.environment.preparation import CompletedTrial
from regreen.packages.setup_guard import InstallPolicy
from regreen.runs.test_runs import run_fresh
from regreen.runs.trial import Trial

_MAX_MINUTES = 20.0
_MAX_FAILED_RUNS = 10
_MAX_FAILED_JOBS = 50
_MAX_CAUSES = 3
_OLD_BASE_COMMITS = 10
"""A pull request whose base is this far behind is tried on its branch as it is now when it is approved."""
_FAILED = frozenset({"failure", "timed_out", "startup_failure"})
_UNENDED = frozenset({None, "cancelled", "timed_out"})
_NOT_OF_CHANGE = frozenset({"flaky", "infrastructure", "main"})


def answer_failed_check(services: Services, job: Job, ask: CauseRequest) -> str:
    """Post one answer for all failed checks of a commit, or bring the posted one up to date; return its title."""
    if ask.app == services.app.slug:
        return "our own check: what it found is said already"
    github = services.github_client(ask.where, CAUSE_SCOPE)
    repository = github.repository()
    loaded = services.load_repo_config(ask.where, github, repository)
    if not ask.asked_by and (not loaded.config.why.enabled or repository.archived):
        return "answers to failed checks are switched off"
    pulls = [github.pull(ask.number)] if ask.number else github.pulls(head_sha=ask.sha)
    pull = next(
        (one for one in pulls if one.state == "open" and (ask.asked_by or one.head_sha == ask.sha)),
        None,
    )
    if pull is None:
        return "no open pull request has this head"
    if ask.asked_by:
        refuse_command_for_old_head("why", ask.sha, pull)
    elif pull.draft:
        return "a draft"
    services.require_job_minutes(repository.full_name, loaded.config)
    flow = _WhyFlow(
        services, job, ask, github=github, repository=repository, loaded=loaded, pull=pull
    )
    reply = CommandReply(github, services.store, pull.number, ask.comment, job.record.id)
    try:
        check = flow.answer()
    except Cancelled:
        if ask.asked_by:
            reply.post_text(messages.job_cancelled(services.store.job(job.record.id)))
        raise
    if ask.asked_by:
        reply.post_text(messages.format_as_comment(check.summary))
        reply.show_reaction("rocket")
    return check.title


def try_approved_change(services: Services, job: Job, event: PullRequestApproved) -> str:
    """Run the tests of a change that was approved on an old base on its base branch as it is now; return what came of it."""
    github = services.github_client(event.where, CAUSE_SCOPE)
    repository = github.repository()
    loaded = services.load_repo_config(event.where, github, repository)
    if event.actor.is_bot or not loaded.config.why.enabled or repository.archived:
        return "approvals are not looked at"
    pull = github.pull(event.number)
    if pull.state != "open" or pull.draft or pull.head_sha != event.head_sha:
        return "what was approved is not the head of an open pull request"
    services.require_job_minutes(repository.full_name, loaded.config)
    ask = CauseRequest(event.where, event.number, event.head_sha)
    flow = _WhyFlow(
        services, job, ask, github=github, repository=repository, loaded=loaded, pull=pull
    )
    return flow.try_on_base_branch()


def explain_needless_repair(store: Store, repo: str, number: int | None, sha: str) -> str:
    """Why a failing check is not to be repaired in its pull request; "" where it may be."""
    known = _read_answer(store, repo, number, sha).get("causes", [])
    verdicts = [cause["verdict"] for cause in known]
    if verdicts and all(verdict in _NOT_OF_CHANGE for verdict in verdicts):
        is_open = any(messages.may_be_made_flaky(cause) for cause in known)
        whose = "not known to be the change's" if is_open else "not the change's"
        return f"{whose}: {verdicts[0]}, {known[0]['reason']}"
    return ""


def ask_again(services: Services, job: Job, where: RepositoryRef, number: int, sha: str) -> None:
    """Have an answer that was posted for a commit written again, now that something was done about the failure."""
    if _read_answer(services.store, where.repo, number, sha):
        services.order(make_orders(CauseRequest(where, number, sha), f"{job.record.id}/why"))


def _read_answer(store: Store, repo: str, number: int | None, sha: str) -> dict[str, Any]:
    """The document of the latest answer for a commit; empty where there is none."""
    known = store.documents(kind="why", repo=repo, number=number, limit=20) if number else []
    return next((dict(one.body) for one in known if one.subject == sha), {})


@dataclass(frozen=True)
class _RedCheck:
    """A failed job, and its run where GitHub Actions ran it; `names_failure`: not the tests in place of a failure.

    `event` is what started the run, where another event started the same workflow for this commit too.
    """

    job: FailedJob
    run: WorkflowRun | None
    names_failure: bool = True
    event: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The check's name without and with its workflow; GitHub puts the event behind both."""
        name = f"{self.job.name} ({self.event})" if self.event else self.job.name
        return (name, f"{self.run.name} / {name}") if self.run else (name,)

    @property
    def key(self) -> str:
        """The same for checks that fail alike: what ran, and what failed in it."""
        failed = sorted({failure.test or failure.message[:200] for failure in self.job.failures})
        command = self.job.trial.command_line if self.job.trial else ""
        return hashlib.sha256("\n".join([command, *failed]).encode("utf-8", "replace")).hexdigest()[
            :24
        ]


def _repeat_command(base: str, head: str, trial: Trial, tests: CompletedTrial | None) -> str:
    """The command that asks again, with what the repository itself wrote of a workflow's step; an inferred setup is inferred again."""
    command = trial.command if trial.title is None else ("sh", "-c", trial.command_line)
    setup = "" if tests is not None and tests.is_setup_inferred else trial.setup_to_type
    return messages.reproduce_cause(base, head, setup, command)


def _explain_no_failure(of_branch: Sequence[WorkflowRun], sha: str) -> str:
    """Why no job failed at a commit: nothing ran, or what runs never ends; `of_branch` are its branch's runs, latest first."""
    runs = [run for run in of_branch if run.head_sha == sha]
    if not runs:
        return "no CI ran on this commit"
    if (open_run := next((run for run in runs if run.conclusion in _UNENDED), None)) is None:
        return "no run of GitHub Actions failed at this commit"
    same = [run.conclusion == open_run.conclusion for run in of_branch if run.path == open_run.path]
    count = len(list(takewhile(bool, same)))
    ended = {"cancelled": "was cancelled", "timed_out": "timed out"}
    what = f"{open_run.name} {ended.get(open_run.conclusion or '', 'has not finished')}"
    return f"{what} in its last {count} runs on this branch" if count > 1 else what


@dataclass(frozen=True)
class _WhyFlow:
    services: Services
    job: Job
    ask: CauseRequest
    github: GitHub
    repository: Repository
    loaded: LoadedConfig
    pull: PullRequest

    @cached_property
    def _stop(self) -> StopCondition:
        return StopCondition(time.monotonic() + _MAX_MINUTES * 60, self.job.cancel)

    @cached_property
    def _git(self) -> Mirror:
        refs = [f"refs/pull/{self.pull.number}/head"]
        return self.services.mirrors.fetch(self.github, self.repository, refs, self.job.cancel)

    @property
    def _sha(self) -> str:
        return self.pull.head_sha

    def answer(self) -> CheckRun:
        """Find the causes that are not known yet, act on them, and post the answer."""
        services, store, repo = self.services, self.services.store, self.repository.full_name
        earlier = _read_answer(store, repo, self.pull.number, self._sha)
        known = earlier.get("causes", [])
        asked = bool(self.ask.asked_by)  # then what is not known is looked for once more
        known = [one for one in known if one["key"] and not (asked and one["verdict"] == "unknown")]
        waits_for_approval = False
        try:
            cleared = require_clearance(store, self._git, self.repository, self.pull, self._sha)
            causes = self._find_causes(cleared, known)
        except NotCleared:
            reason = f"fork not approved: nothing runs {FORK_WAITS} and says `/approve`; `/why` approves it too, and answers this check"
            causes, waits_for_approval = [*known, self._give_up(reason)], True
        except NoSandbox:
            causes = [
                *known,
                self._give_up("no sandbox works here, and nothing runs outside of one"),
            ]
        page = services.job_page_url(self.job.record.id)
        seconds = earlier.get("seconds", 0.0) + services.measure_job(self.job)
        check = messages.cause_check(
            self._sha, causes, page, branch=self.pull.base_ref, seconds=seconds
        )
        self.job.check_cancelled()
        self.github.post_check_run(replace(check, started=self.job.record.began))
        first = messages.order_causes(causes)[0]
        now = services.clock.now()
        body = {
            **first,
            "head": self._sha,
            "base": self.pull.base_ref,
            "causes": causes,
            "waits_for_approval": waits_for_approval,
            "title": self.pull.title,
            "author": self.pull.author,
        }
        # an author has waited for the first answer, not for one that names what was done about the failure since
        waited = (now - self.job.record.created).total_seconds()
        body |= {"seconds": seconds, "waited": earlier.get("waited", waited)}
        store.save_document(
            ResultDocument("why", repo, self.pull.number, self._sha, self.job.record.id, now, body)
        )
        services.log_action(self.job, self.ask.asked_by, "why", check.title)
        return check

    def try_on_base_branch(self) -> str:
        """Run the tests on GitHub's merge of the change with its base branch, if that has moved far; post what came of it."""
        pull, name = self.pull, self.pull.base_ref
        refs = [f"refs/pull/{pull.number}/head", f"refs/pull/{pull.number}/merge"]
        git = self.services.mirrors.fetch(self.github, self.repository, refs, self.job.cancel)
        tip, merge = (
            git.resolve(f"refs/heads/{name}"),
            git.resolve(f"refs/regreen/pull/{pull.number}/merge"),
        )
        base = git.merge_base(tip, self._sha)
        behind = len(git.commits(base, tip, first_parent=True)) if base else 0
        if behind < _OLD_BASE_COMMITS:
            return f"its base is {behind} commits behind {name}"
        if _read_answer(self.services.store, self.repository.full_name, pull.number, self._sha):
            return "its checks failed, and were answered"
        if set(git.commit(merge).parents) != {tip, self._sha}:
            return f"GitHub has not merged it with {name} as it is now"
        try:
            tests = self._complete_tests(
                require_clearance(self.services.store, git, self.repository, pull, self._sha)
            )
        except NotCleared:
            return "fork not approved"
        if not tests.trial.command:
            return "neither tests.command nor a file says how the tests run"
        sandbox = self.services.sandbox()
        found = None
        if not run_fresh(
            tests.trial, merge, git=git, sandbox=sandbox, cancel=self.job.cancel
        ).is_green:
            case = RedCase(tests.trial, merge, tip)
            found = Investigation(
                case, git=git, sandbox=sandbox, stop=self._stop, say=self.job.report_progress
            ).find_cause()
        page = self.services.job_page_url(self.job.record.id)
        repeat = _repeat_command(tip, merge, tests.trial, tests)
        # No ordinary clone has GitHub's merge, and its ref leads elsewhere after the next push.
        repeat = after_fetch(f"git fetch origin {merge}", repeat)
        seconds = self.services.measure_job(self.job)
        check = messages.approval_check(
            self._sha, name, behind, found, repeat=repeat, page=page, seconds=seconds
        )
        self.job.check_cancelled()
        self.github.post_check_run(replace(check, started=self.job.record.began))
        self.services.log_action(self.job, "", "why", check.title)
        return check.title

    def _give_up(self, reason: str) -> dict[str, Any]:
        document = messages.make_cause_document(RedCause("unknown", reason, "look"))
        return {
            **document,
            "key": "",
            "checks": [self.ask.name or "the checks"],
            "action": "",
            "repeat": "",
        }

    def _find_causes(self, cleared: Clearance, known: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The causes of all failed checks, each examined once."""
        checks = self._find_red_checks(cleared)
        if not checks and not known:
            return [
                self._give_up(
                    "none of its jobs failed: the workflow could not start, or ran again meanwhile"
                )
            ]
        if any(check.names_failure for check in checks):
            # what was said while no check had failed is not true any more
            known = [one for one in known if one["checks"] not in ([], [messages.NO_CHECK])]
        groups: dict[str, list[_RedCheck]] = {}
        for check in checks:
            groups.setdefault(check.key, []).append(check)
        places = {(one.job.name, one.run.name if one.run else "") for one in checks}
        count = Counter(name for name, _ in places)
        causes = {cause["key"]: cause for cause in known}
        for key, group in groups.items():
            # another workflow may have a job of this name
            names = [one.names[-1] if count[one.job.name] > 1 else one.names[0] for one in group]
            names = list(dict.fromkeys(names))
            if key in causes:
                # what stood for several checks is told apart by now
                unclear = {x for one in checks for x in (*one.names, *replace(one, event="").names)}
                earlier = [name for name in causes[key]["checks"] if name not in unclear]
                names = list(dict.fromkeys([*earlier, *names]))
                causes[key] = causes[key] | {"checks": names}
                if (verdict := causes[key]["verdict"]) in {"change", "main"}:
                    causes[key]["action"] = self._name_remedy(verdict, group)
            elif len(causes) >= _MAX_CAUSES:
                reason = f"{_MAX_CAUSES} other causes were examined, this one was not"
                causes[key] = {**self._give_up(reason), "key": key, "checks": names}
            else:
                self.job.report_progress(f"looking for the cause of {names[0]}")
                found = self._examine(group, cleared)
                failed = group[0].names_failure or any(
                    run["outcome"] == "fail" for run in found["runs"]
                )
                causes[key] = {**found, "key": key, "checks": names if failed else []}
        self._rerun(groups, causes)
        return list(causes.values())

    def _find_red_checks(self, cleared: Clearance) -> list[_RedCheck]:
        """The failed jobs of this commit; the check that the event names, or the tests, where GitHub Actions has none."""
        try:
            of_branch = self.github.runs(self.pull.head_ref, finished=False)
            runs = [run for run in of_branch if run.head_sha == self._sha]
            if self.ask.run_id is not None and all(run.id != self.ask.run_id for run in runs):
                runs.append(self.github.workflow_run(self.ask.run_id))  # the list may lag behind
        except NotAllowed:
            of_branch = runs = []
        started = Counter(name for name, _ in {(run.name, run.event) for run in runs})
        found = [
            _RedCheck(job, run, event=run.event if started[run.name] > 1 else "")
            for run in [run for run in runs if run.conclusion in _FAILED][:_MAX_FAILED_RUNS]
            for job in find_failed_jobs(
                self.github,
                self._git,
                run,
                scope=cleared.scope,
                trust=cleared.trust,
                pythons=self.services.sandbox().pythons(),
                limit=_MAX_FAILED_JOBS,
            )
        ]
        if self.ask.run_id is None and (self.ask.name or not found):
            reason = "its log cannot be read: it is no job of GitHub Actions"
            if not self.ask.name:
                reason = _explain_no_failure(of_branch, self._sha)
            found.append(
                _RedCheck(
                    FailedJob(self.ask.name or messages.NO_CHECK, "", "", None, reason=reason),
                    None,
                    names_failure=bool(self.ask.name),
                )
            )
        return found

    def _examine(self, group: Sequence[_RedCheck], cleared: Clearance) -> dict[str, Any]:
        """Run what failed in checks that fail alike until its cause is known."""
        check = group[0]
        git, red = self._git, check.job
        base = git.merge_base(self.pull.base_sha, self._sha)
        if base is None:
            return self._give_up(f"it has no common history with {self.pull.base_ref}")
        try:
            tests = None if red.trial else self._complete_tests(cleared)
            trial, log = self._choose_trial(red, tests), red.log
            versions: tuple[str, ...] = ()
            if tests is not None and log is not None and log.kind != "infra":
                log = None  # what passes in another environment than CI's is no flake
            elif check.run is not None:
                versions = find_green_versions(
                    self.github, git, check.run, red.name, branch=self.pull.base_ref
                )
            if not trial.command:
                return self._give_up(
                    f"{red.reason}, and neither tests.command nor a file says how the tests run"
                )
            tip = git.resolve(f"refs/heads/{self.pull.base_ref}")
            case = RedCase(trial, self._sha, base, log, versions, tip=tip)
            found = Investigation(
                case,
                git=git,
                sandbox=self.services.sandbox(),
                stop=self._stop,
                say=self.job.report_progress,
            ).find_cause()
        except NoSandbox:
            raise
        except UserError as error:
            return self._give_up(str(error))
        if tests is not None and tests.reason_unproven and found.verdict == "change":
            found = replace(found, verdict="unknown", do="look", reason=tests.reason_unproven)
        if not check.names_failure and all(run.run.is_green for run in found.runs):
            times = f"{len(found.runs)} of {len(found.runs)} runs"
            passing = f"{red.reason}, and the repository's tests pass here in {times}"
            found = replace(found, reason=passing, do="look")
        elif tests is not None:
            found = replace(
                found, reason=f"{found.reason} (the repository's tests ran: {red.reason})"
            )
        repeat, fetch = "", self.pull.fetch_command
        if found.capsule:
            repeat = self.services.store_capsule(self.repository, found.capsule, fetch=fetch)
        document = messages.make_cause_document(
            found, found.capsule.digest if found.capsule else None
        )
        repeat = repeat or after_fetch(fetch, _repeat_command(base, self._sha, trial, tests))
        action = self._name_remedy(found.verdict, group)
        return {**document, "action": action, "repeat": repeat}

    def _name_remedy(self, verdict: str, group: Sequence[_RedCheck]) -> str:
        """What is there already against a failure: the issue about the base branch, the open draft that repairs the branch."""
        notes = [self._name_open_issue()] if verdict == "main" else []
        branch = {"main": self.pull.base_ref, "change": self.pull.head_ref}.get(verdict)
        if branch and (verdict == "main" or not self.pull.fork):
            repo = self.repository.full_name
            repair = self.services.store.find(OpenRepair, repo=repo, branch=branch, issue=0)
            if (
                repair is not None
                and repair.workflow in {check.run.path if check.run else "" for check in group}
                and self.github.pull(repair.number).state == "open"
            ):
                notes.append(messages.repair_note(repair.number, branch))
        return " ".join(note for note in notes if note)

    def _name_open_issue(self) -> str:
        """The issue about a schedule that found the base branch red."""
        branches = {one.name: one.branch for one in self.loaded.config.bisect.schedules}
        states = self.services.store.find_all(ScheduleState, repo=self.repository.full_name)
        red = next(
            (
                one
                for one in states
                if one.red and one.issue and branches.get(one.schedule) == self.pull.base_ref
            ),
            None,
        )
        return messages.regression_note(red.schedule, red.issue) if red and red.issue else ""

    def _choose_trial(self, red: FailedJob, tests: CompletedTrial | None) -> Trial:
        if red.trial is None:
            assert tests is not None  # noqa: S101 - the caller completes them
            return tests.trial
        # the workflow file belongs to the tree, so its commands are judged as the tree is
        rules = InstallPolicy.from_config(self.loaded.config.tests, trusts_command=False)
        return replace(red.trial, base=self.pull.base_sha, rules=rules)

    def _complete_tests(self, cleared: Clearance) -> CompletedTrial:
        return complete_tests(
            self.services,
            self.job,
            self._git,
            self.loaded.config,
            cleared,
            github=self.github,
            rev=self._sha,
            base=self.pull.base_sha,
            minutes=_MAX_MINUTES,
            asked_by=self.ask.asked_by,
        )

    def _rerun(self, groups: dict[str, list[_RedCheck]], causes: dict[str, dict[str, Any]]) -> None:
        """Run the failed jobs of a run again, once, where nothing that failed in it may be the change's or main's."""
        by_run: dict[int, WorkflowRun] = {}
        keys: dict[int, list[str]] = {}
        for key, group in groups.items():
            for check in group:
                run = check.run
                keys.setdefault(run.id if run else 0, []).append(key)
                if run is not None:
                    by_run[run.id] = run
        for number, its in keys.items():
            verdicts = {causes[key]["verdict"] for key in its}
            is_open = any(messages.may_be_made_flaky(causes[key]) for key in its)
            if verdicts <= {"flaky", "infrastructure"} and not is_open:
                is_named = any(check.names_failure for key in its for check in groups[key])
                rerun, attempt = (
                    self._rerun_failed_jobs(by_run.get(number)) if is_named else ("nothing", 1)
                )
                note = messages.rerun_note(rerun, attempt)
                for key in its:
                    causes[key] = {**causes[key], "action": note, "rerun": rerun}

    def _rerun_failed_jobs(self, run: WorkflowRun | None) -> tuple[messages.RerunOutcome, int]:
        """What became of running them again, and which attempt this was."""
        if run is None:
            return "elsewhere", 1
        if is_observed(self.github):
            return "observed", 1
        if self.loaded.config.why.rerun == "never":
            return "off", 1
        # an attempt of this job that was killed may have asked already
        run = self.github.workflow_run(run.id)
        if run.attempt > 1:
            return "again", run.attempt
        self.job.check_cancelled()
        try:
            self.services.github_client(self.ask.where, RERUN_SCOPE).rerun_failed_jobs(run.id)
        except (NotAllowed, ValidationFailed):
            return "refused", 1
        return "asked", 1
