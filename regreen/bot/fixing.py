"""Something is red: reproduce it, repair it, and show the patch as a draft pull request, or say why there is none."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from regreen.adapters.git import GitRepository
from regreen.bot import branches, say
from regreen.bot.asks import Fix as FixAsk
from regreen.bot.ci import Red, red_of_run
from regreen.bot.configuration import Loaded
from regreen.bot.desk import Desk
from regreen.bot.plan import BRANCH_PREFIX
from regreen.bot.replies import Reply
from regreen.bot.reviewing import rules_of, tests_of
from regreen.bot.running import Job
from regreen.errors import Cancelled, UserError
from regreen.fixers.fix import Fix, FixJob, fix
from regreen.fixers.report import markdown
from regreen.forge import FIX, CheckRun, GitHub, Pull, Repository, WorkflowRun
from regreen.records import Document, JobRecord
from regreen.repo_config import RepoConfig, Rung
from regreen.webhooks.events import CheckFailed, CheckPassed, Where

_ATTEMPTS_A_DAY = 5
_PENDING = "pending"
_QUIET = frozenset({"fixed", "already_green"})


@dataclass(frozen=True)
class _Target:
    """What is to be made green: a commit, the branch it is on, and the pull request if there is one."""

    branch: str
    sha: str
    pull: Pull | None

    @property
    def number(self) -> int | None:
        return self.pull.number if self.pull else None

    @property
    def fork(self) -> bool:
        return self.pull is not None and self.pull.fork

    @property
    def fix_branch(self) -> str:
        """Ours for this target: the same name again, so that the same pull request is found again."""
        if self.pull is not None:
            return f"{BRANCH_PREFIX}fix-{self.pull.number}"
        plain = "".join(c if c.isalnum() and c.isascii() else "-" for c in self.branch)[:40]
        return f"{BRANCH_PREFIX}fix-{plain}-{hashlib.sha256(self.branch.encode()).hexdigest()[:8]}"


def fix_failed_check(desk: Desk, job: Job, event: CheckFailed) -> str:
    """CI went red by itself: repair it where the repository wants that."""
    if event.app == desk.app.slug:
        return "our own check: what it found is said already"
    github = desk.github(event.where, FIX)
    repository = github.repository()
    loaded = desk.config(event.where, github, repository)
    config = loaded.config
    if not config.fix.enabled or "ci_failure" not in config.fix.on or repository.archived:
        return "repairs after CI failures are switched off"
    target = _target_of(github, event)
    if target is None:
        return "the branch has moved on"
    if target.fork or event.fork:
        return "a fork: nothing can be pushed there"
    if _tried_too_often(desk, repository, target):
        return f"tried {_ATTEMPTS_A_DAY} times today already"
    flow = _Flow(desk, job, github=github, repository=repository, loaded=loaded, target=target)
    run = github.workflow_run(event.run_id) if event.run_id is not None else None
    return flow.run(run, asked_by="", hint="", reply=flow.own_reply())


def fix_asked(desk: Desk, job: Job, ask: FixAsk) -> str:
    """Somebody asked for a repair: the same, and the answer goes to the comment."""
    github = desk.github(ask.where, FIX)
    reply = Reply(github, desk.store, ask.number, ask.comment, job.record.id)
    repository = github.repository()
    loaded = desk.config(ask.where, github, repository)
    if not loaded.config.fix.enabled or "command" not in loaded.config.fix.on:
        raise UserError("repairs are switched off in this repository's configuration (fix.on)")
    target = _target_asked(desk, github, repository, ask)
    flow = _Flow(desk, job, github=github, repository=repository, loaded=loaded, target=target)
    run = _latest_red(github, target)
    try:
        note = flow.run(run, asked_by=ask.asked_by, hint=ask.hint, reply=reply)
    except Cancelled:
        reply.say(say.was_cancelled())
        raise
    reply.react("rocket")
    return note


def publish_approved(desk: Desk, job: Job, where: Where, number: int, login: str) -> str | None:
    """Publish the patch that waits for a person's approval; what to answer, None where none waits."""
    kept = desk.store.get(f"{_PENDING}/{where.repo}", str(number))
    if kept is None:
        return None
    data = json.loads(kept)
    github = desk.github(where, FIX)
    repository = github.repository()
    loaded = desk.config(where, github, repository)
    pull = github.pull(number) if data["on_pull"] else None
    if pull is not None and pull.head_sha != data["sha"]:
        # a person's yes is to what was shown, on the commit that it was shown for
        desk.store.delete(f"{_PENDING}/{where.repo}", str(number))
        return say.approval_too_late(data["sha"], pull.head_sha)
    target = _Target(data["branch"], data["sha"], pull)
    flow = _Flow(desk, job, github=github, repository=repository, loaded=loaded, target=target)
    opened = flow.open(data["patch"], data["title"], f"{data['body']}\n\nApproved by @{login}.")
    desk.store.delete(f"{_PENDING}/{where.repo}", str(number))
    desk.log(job, login, "approved", opened.html_url)
    return say.fix_opened(opened.number, "approved")


def close_needless_fix(desk: Desk, job: Job, event: CheckPassed) -> str:
    """The branch is green without us: a draft of ours that nobody took up is closed."""
    if event.head_branch.startswith(BRANCH_PREFIX):
        return "our own branch"
    space = f"fix-open/{event.where.repo}"
    kept = desk.store.get(space, event.head_branch)
    if kept is None:
        return "no fix is open for this branch"
    github = desk.github(event.where, FIX)
    pull = github.pull(int(kept))
    desk.store.delete(space, event.head_branch)
    if pull.state != "open" or not pull.draft:
        return f"#{kept} is taken up or closed"
    job.check()
    mark = say.marker("needless", pull.number)
    github.comment(pull.number, mark, say.needless_fix(event.head_branch, event.head_sha))
    github.close_pull(pull.number)
    return f"closed #{kept}"


def say_broken_down(desk: Desk, record: JobRecord, event: CheckFailed, reason: str) -> None:
    """A repair that nobody asked for broke down: one quiet check run on the red commit, no comment.

    Drafts and forks get nothing: the one is not done, the other we could not repair anyway.
    """
    github = desk.github(event.where, FIX)
    target = _target_of(github, event)
    if target is None or target.fork or event.fork or (target.pull and target.pull.draft):
        return
    github.check_run(_no_repair(target, say.failed(reason, record.id)))


def _no_repair(target: _Target, text: str) -> CheckRun:
    return say.not_repaired(target.sha, f"repair-{target.sha[:24]}", text)


class _Flow:
    """One repair from the red run to the draft pull request or the reason."""

    def __init__(
        self,
        desk: Desk,
        job: Job,
        *,
        github: GitHub,
        repository: Repository,
        loaded: Loaded,
        target: _Target,
    ) -> None:
        self._desk = desk
        self._job = job
        self._github = github
        self._repository = repository
        self._config: RepoConfig = loaded.config
        self._target = target
        self._space = "fix-result"

    def own_reply(self) -> Reply | None:
        """Where a repair that nobody asked for speaks: the pull request's one comment about red CI."""
        if self._target.number is None:
            return None
        return Reply(
            self._github,
            self._desk.store,
            self._target.number,
            None,
            f"fix-{self._target.number}",
        )

    def run(self, run: WorkflowRun | None, *, asked_by: str, hint: str, reply: Reply | None) -> str:
        """Repair and publish; a repair that is done already is only published."""
        kept = self._desk.store.get(self._space, self._job.record.id)
        if kept is None:
            found, red = self._repair(run, hint)
            result = {"fix": asdict(found), "name": red.name, "step": red.step, "url": red.url}
            self._desk.store.put(self._space, self._job.record.id, json.dumps(result))
        else:
            data = json.loads(kept)
            found, red = _fix_from(data["fix"]), Red(data["name"], data["step"], data["url"], None)
        return self._publish(found, red, asked_by, reply)

    def _repair(self, run: WorkflowRun | None, hint: str) -> tuple[Fix, Red]:
        job, target, config = self._job, self._target, self._config
        job.say("fetching the repository")
        refs = [f"refs/pull/{target.number}/head"] if target.number is not None else []
        git = self._desk.mirrors.fetch(self._github, self._repository, refs)
        red = self._red(git, run)
        if red.trial is None:
            return Fix("not_reproduced", reason=red.reason), red
        model = self._desk.model(job, self._repository.full_name, target.number, config)
        base = target.pull.base_sha if target.pull else None
        work = FixJob(
            trial=red.trial,
            rev=target.sha,
            base=base,
            rungs=_rungs(config, git, target),
            max_usd=config.budget.usd_per_pull_request,
            protected_paths=config.fix.protected_paths,
            max_changed_lines=config.fix.max_changed_lines,
            hint=hint,
            attempts_before=self._attempts_before(),
            expected=red.failures,
            allow_network=config.tests.allow_network,
            tests=tests_of(config, self._repository, fork=target.fork, base=self._trusted()),
        )
        found = fix(
            work,
            git=git,
            sandbox=self._desk.sandbox(),
            model=model[0] if model else None,
            progress=job.say,
            cancel=job.cancel,
        )
        return (replace(found, cost=model[1]()) if model else found), red

    def _attempts_before(self) -> int:
        """How many other repairs were tried at this very commit; a job that goes on after a crash is one."""
        space = f"fix-attempts/{self._repository.full_name}"
        own = f"{self._target.sha}/{self._job.record.id}"
        earlier = [
            key for key, _ in self._desk.store.items(space, f"{self._target.sha}/") if key != own
        ]
        self._desk.store.put(space, own, "1")
        return len(earlier)

    def _red(self, git: GitRepository, run: WorkflowRun | None) -> Red:
        scope = self._repository.full_name + ("/fork" if self._target.fork else "")
        reason = "no failed run of this commit, and the configuration names no tests.command"
        if run is not None:
            pythons = self._desk.sandbox().pythons()
            found = red_of_run(
                self._github, git, run, scope=scope, trust="pull_request", pythons=pythons
            )
            if found and (planned := found[0].trial) is not None:
                # the workflow file is the tree's own, so its commands are judged as the tree is
                rules = rules_of(self._config, trusts_command=False)
                return replace(found[0], trial=replace(planned, base=self._trusted(), rules=rules))
            reason = found[0].reason if found else "the run has no failed job"
        trial = tests_of(
            self._config, self._repository, fork=self._target.fork, base=self._trusted()
        )
        name = run.name if run else "tests.command"
        return Red(name, "", run.html_url if run else "", trial, reason=reason)

    def _trusted(self) -> str:
        """The revision whose dependencies need no permission: a pull request's base, or the broken branch itself."""
        return self._target.pull.base_sha if self._target.pull else self._target.sha

    def _publish(self, found: Fix, red: Red, asked_by: str, reply: Reply | None) -> str:
        self._job.check()
        self._keep(found)
        title = say.fix_title(red.name, found)
        report = markdown(found, branch=self._target.fix_branch)
        body = say.fix_body(found, red.step or red.name, red.url, report)
        if self._target.fork and found.outcome in {"fixed", "needs_human"} and found.patch:
            answer = say.fix_for_fork(markdown(found))
        elif found.outcome == "fixed" and found.patch:
            opened = self.open(found.patch, title, body)
            answer = say.fix_opened(opened.number, found.cause or "")
        elif found.outcome == "needs_human" and found.patch and self._target.number is not None:
            self._wait_for_approval(found.patch, title, body)
            answer = say.fix_waits(markdown(found))
        elif found.outcome == "needs_human" and found.patch:
            answer = say.fix_by_hand(markdown(found))
        else:
            answer = say.no_fix(red.step or red.name, markdown(found))
        if reply is not None:
            reply.say(answer)
        elif found.outcome not in _QUIET:
            self._github.check_run(_no_repair(self._target, answer))
        self._desk.log(
            self._job, asked_by, "fix", f"{found.outcome} at {self._target.sha[:12]} ({red.name})"
        )
        return f"{found.outcome}: {found.reason or found.cause or found.rung or ''}"

    def open(self, patch: str, title: str, body: str) -> Pull:
        """The patch as a commit on our branch, and a draft pull request from it."""
        desk, target = self._desk, self._target
        refs = [f"refs/pull/{target.number}/head"] if target.number is not None else []
        git = self._desk.mirrors.fetch(self._github, self._repository, refs)
        commit = git.apply(target.sha, patch, f"{title}\n\nFound and verified by Regreen.\n")
        if commit is None:
            raise UserError(
                "the branch has changed, and the patch applies no longer; run /fix again"
            )
        self._job.check()
        there = _tip(git, target.fix_branch)
        if there is None or git.tree_id(there) != git.tree_id(commit):
            branches.push(desk, self._job, git, commit, target.fix_branch, repository=self._repository, github=self._github)  # fmt: skip
        self._job.check()
        opened = self._github.open_pull(
            head=target.fix_branch, base=target.branch, title=title, body=body, draft=True
        )
        branches.stands(desk, self._github.repo, opened)
        desk.store.put(f"fix-open/{self._repository.full_name}", target.branch, str(opened.number))
        return opened

    def _wait_for_approval(self, patch: str, title: str, body: str) -> None:
        target = self._target
        waiting = {
            "patch": patch,
            "branch": target.branch,
            "sha": target.sha,
            "title": title,
            "body": body,
            "on_pull": target.pull is not None,
        }
        self._desk.store.put(
            f"{_PENDING}/{self._repository.full_name}", str(target.number), json.dumps(waiting)
        )

    def _keep(self, found: Fix) -> None:
        self._desk.store.keep(
            Document(
                kind="fix",
                repo=self._repository.full_name,
                number=self._target.number,
                subject=self._job.record.id,
                job=self._job.record.id,
                at=self._desk.clock.now(),
                body={"version": 1, **asdict(found)},
            )
        )


def _target_of(github: GitHub, event: CheckFailed) -> _Target | None:
    pulls = [github.pull(n) for n in event.pulls] or github.pulls(head_sha=event.head_sha)
    pull = next((p for p in pulls if p.state == "open" and p.head_sha == event.head_sha), None)
    if pull is not None:
        return _Target(pull.head_ref, pull.head_sha, pull)
    if event.pulls or not event.head_branch:
        return None
    return _Target(event.head_branch, event.head_sha, None)


def _target_asked(desk: Desk, github: GitHub, repository: Repository, ask: FixAsk) -> _Target:
    if ask.on_pull:
        pull = github.pull(ask.number)
        return _Target(pull.head_ref, pull.head_sha, pull)
    git = desk.mirrors.fetch(github, repository)
    return _Target(repository.default_branch, git.resolve(repository.default_branch), None)


def _latest_red(github: GitHub, target: _Target) -> WorkflowRun | None:
    runs = github.runs(target.branch)
    return next((r for r in runs if r.head_sha == target.sha and r.conclusion == "failure"), None)


def _tried_too_often(desk: Desk, repository: Repository, target: _Target) -> bool:
    """Nobody asked: a repair that does not help must not go round for ever."""
    day = desk.clock.now().date().isoformat()
    space = f"fix-tries/{repository.full_name}/{day}"
    tries = len(desk.store.items(space, f"{target.branch}@"))
    desk.store.put(space, f"{target.branch}@{target.sha}"[:400], "1")
    return tries >= _ATTEMPTS_A_DAY


def _rungs(config: RepoConfig, git: GitRepository, target: _Target) -> tuple[Rung, ...]:
    """Reverting the one commit of a pull request would be closing it: no repair."""
    if target.pull is None or len(git.commits(target.pull.base_sha, target.sha)) > 1:
        return config.fix.rungs
    return tuple(rung for rung in config.fix.rungs if rung != "revert")


def _tip(git: GitRepository, branch: str) -> str | None:
    try:
        return git.resolve(f"refs/heads/{branch}")
    except UserError:
        return None


def _fix_from(data: dict[str, Any]) -> Fix:
    from pydantic import TypeAdapter

    kept: Fix = TypeAdapter(Fix).validate_python(data)
    return kept
