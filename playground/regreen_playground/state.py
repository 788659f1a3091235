"""What people do on the playground, as they would say it: open a pull, comment, push, let CI fail."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from regreen_playground.acts import actions, checks, issues, pulls, pushes, reviews
from regreen_playground.acts.actions import JobReport
from regreen_playground.events import emit, queue
from regreen_playground.gitstore import GitStore, Person
from regreen_playground.outbox import Transport, flush, over_http
from regreen_playground.routes.apps import register
from regreen_playground.shape import apps as shape_apps
from regreen_playground.shape.commits import simple_commit
from regreen_playground.shape.people import user as shape_user
from regreen_playground.things import (
    App,
    CheckRun,
    Comment,
    Installation,
    Issue,
    Json,
    Level,
    Pull,
    Reaction,
    Repository,
    Review,
    ReviewComment,
    User,
    WorkflowRun,
)
from regreen_playground.world import World, comment_of, thread_of

Files = Mapping[str, bytes | str | None]
PERMISSIONS = {
    "actions": "read",
    "checks": "write",
    "contents": "write",
    "issues": "write",
    "metadata": "read",
    "pull_requests": "write",
    "statuses": "write",
    "security_events": "write",
}
EVENTS = (
    "check_run",
    "check_suite",
    "create",
    "delete",
    "issue_comment",
    "issues",
    "merge_group",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "pull_request_review_thread",
    "push",
    "repository",
    "status",
    "workflow_job",
    "workflow_run",
)


class State(World):
    """The world, with verbs. Names are given as text: logins, "owner/name", branch names."""

    def person(self, login: str) -> User:
        """The account with this login, made if new."""
        with self.lock:
            return self.add_user(login)

    def create(
        self,
        full_name: str,
        files: Files | None = None,
        *,
        private: bool = True,
        branch: str = "main",
        bare: GitStore | None = None,
    ) -> Repository:
        """A repository with one first commit of `files`, or over the bare repository given."""
        with self.lock:
            owner, _, name = full_name.partition("/")
            git = bare or GitStore.create(self.root / owner / f"{name}.git", branch)
            made = Repository(
                self.new_id(), self.add_user(owner), name, git, private, branch, self.now()
            )
            self.repositories[full_name.lower()] = made
            if files:
                self.commit(full_name, files, message="Start", by=owner, quiet=True)
            return made

    def fork(self, full_name: str, owner: str) -> Repository:
        """A fork under another account, with every branch."""
        with self.lock:
            parent = self.repository(full_name)
            fork_name = f"{owner}/{parent.name}"
            git = GitStore.create(self.root / owner / f"{parent.name}.git", parent.default_branch)
            git.take(parent.git, "refs/heads/*", "refs/heads/*")
            made = self.create(
                fork_name, private=parent.private, branch=parent.default_branch, bare=git
            )
            made.parent = parent
            return made

    def grant(self, login: str, full_name: str, level: Level = "write") -> None:
        """Give somebody a permission on a repository."""
        with self.lock:
            self.add_user(login)
            self.repository(full_name).collaborators[login.lower()] = level

    def app(
        self,
        name: str = "Regreen",
        permissions: Mapping[str, str] | None = None,
        *,
        hook_url: str = "",
        secret: str = "",
        events: Sequence[str] = EVENTS,
        owner: str = "acme",
        keys: tuple[str, bytes] | None = None,
    ) -> tuple[App, str]:
        """Register an App; it, and its private key in PEM (of `keys`, private and public, if given)."""
        with self.lock:
            wanted = dict(permissions or PERMISSIONS)
            key = secret or secrets.token_hex(16)
            return register(self, name, owner, wanted, tuple(events), hook_url, key, keys=keys)

    def install(self, app: App, *full_names: str) -> Installation:
        """Install an App on repositories of one owner; the App hears of it."""
        with self.lock:
            chosen = [self.repository(name) for name in full_names]
            account = chosen[0].owner
            known = [
                one
                for one in self.installations.values()
                if one.app is app and one.account is account
            ]
            ids = {one.id for one in chosen}
            shown = [_brief(one) for one in chosen]
            if known:
                made, event, action = known[0], "installation_repositories", "added"
                made.repositories = (made.repositories or set()) | ids
                more: Json = {
                    "repository_selection": "selected",
                    "repositories_added": shown,
                    "repositories_removed": [],
                    "requester": None,
                }
            else:
                made = Installation(
                    self.new_id(), app, account, ids, dict(app.permissions), self.now()
                )
                self.installations[made.id] = made
                event, action = "installation", "created"
                more = {"repositories": shown, "requester": None}
            body: Json = {
                "action": action,
                "installation": shape_apps.installation(self, made),
                **more,
                "sender": shape_user(self, account),
            }
            queue(self, app, event, action, body, made)
            return made

    def commit(
        self,
        full_name: str,
        files: Files,
        *,
        branch: str | None = None,
        message: str = "Change",
        by: str = "octocat",
        at: datetime | None = None,
        start: str | None = None,
        quiet: bool = False,
    ) -> str:
        """Commit files on a branch (made from `start`, or the default branch, if new) and push it."""
        with self.lock:
            repository = self.repository(full_name)
            git, name = repository.git, branch or repository.default_branch
            tip = git.branch(name) or git.resolve(start or repository.default_branch)
            who = self.add_user(by)
            person = Person(who.name, who.email, at or self.now())
            tree = git.write_files(tip, files)
            sha = git.write_commit(tree, [tip] if tip else [], message, person)
            before = git.refs()
            git.set_ref(f"refs/heads/{name}", sha)
            if not quiet:
                pushes.moved(self, repository, before, who)
            return sha

    def push(self, full_name: str, branch: str, sha: str, *, by: str = "octocat") -> None:
        """Point a branch at a commit that is already there (a forced push, if need be)."""
        with self.lock:
            repository = self.repository(full_name)
            before = repository.git.refs()
            repository.git.set_ref(f"refs/heads/{branch}", sha)
            pushes.moved(self, repository, before, self.add_user(by))

    def open_pull(
        self,
        full_name: str,
        head: str,
        *,
        by: str = "octocat",
        title: str = "A change",
        body: str | None = None,
        base: str | None = None,
        draft: bool = False,
        from_fork: str | None = None,
    ) -> Pull:
        """Open a pull request from a branch (of the fork `from_fork`, where given)."""
        with self.lock:
            repository = self.repository(full_name)
            source = self.repository(from_fork) if from_fork else repository
            return pulls.open_pull(
                self,
                repository,
                self.add_user(by),
                head=source,
                head_ref=head,
                base_ref=base or repository.default_branch,
                title=title,
                body=body,
                draft=draft,
            )

    def open_issue(
        self, full_name: str, title: str, body: str | None = None, *, by: str = "octocat"
    ) -> Issue:
        """Open an issue."""
        with self.lock:
            repository = self.repository(full_name)
            return issues.open_issue(self, repository, self.add_user(by), title, body=body)

    def comment(self, on: Issue | Pull, body: str, *, by: str = "octocat") -> Comment:
        """Comment on an issue or pull."""
        with self.lock:
            issue = on.issue if isinstance(on, Pull) else on
            return issues.comment(self, issue, self.add_user(by), body)

    def edit(self, comment: Comment, body: str, *, by: str = "octocat") -> None:
        """Change a comment's text."""
        with self.lock:
            for repository in self.repositories.values():
                for issue in repository.issues.values():
                    if comment in issue.comments:
                        issues.edit_comment(self, issue, comment, self.add_user(by), body)

    def reply(self, pull: Pull, to: ReviewComment, body: str, *, by: str = "octocat") -> None:
        """Answer a comment on the diff."""
        with self.lock:
            _, thread, _ = thread_of(pull.base, to.id)
            reviews.reply(self, pull, thread, self.add_user(by), body)

    def review(
        self, pull: Pull, body: str = "", *, by: str = "octocat", event: str = "COMMENT"
    ) -> Review:
        """Submit a review without comments on lines."""
        with self.lock:
            return reviews.submit(
                self, pull, self.add_user(by), event=event, body=body, commit=None, drafts=[]
            )

    def resolve(self, pull: Pull, comment: ReviewComment, *, by: str = "octocat") -> None:
        """Resolve the thread a comment stands in."""
        with self.lock:
            _, thread, _ = thread_of(pull.base, comment.id)
            reviews.resolve(self, pull, thread, self.add_user(by))

    def react(
        self, to: Issue | Comment | ReviewComment, content: str, *, by: str = "octocat"
    ) -> Reaction:
        """React to something. GitHub sends no event for this."""
        with self.lock:
            return issues.react(self, to, self.add_user(by), content)[0]

    def label(self, on: Issue | Pull, name: str, *, by: str = "octocat") -> None:
        """Put a label on an issue or pull."""
        with self.lock:
            issue = on.issue if isinstance(on, Pull) else on
            issues.add_label(self, issue, name, self.add_user(by))

    def close(self, one: Issue | Pull, *, by: str = "octocat") -> None:
        """Close an issue or pull."""
        with self.lock:
            if isinstance(one, Pull):
                pulls.update(self, one, self.add_user(by), state="closed")
            else:
                issues.set_state(self, one, self.add_user(by), "closed")

    def reopen(self, pull: Pull, *, by: str = "octocat") -> None:
        """Open a closed pull again."""
        with self.lock:
            pulls.update(self, pull, self.add_user(by), state="open")

    def set_draft(self, pull: Pull, *, draft: bool, by: str = "octocat") -> None:
        """Turn a pull into a draft, or ready for review."""
        with self.lock:
            pulls.set_draft(self, pull, draft, self.add_user(by))

    def merge(self, pull: Pull, *, by: str = "octocat") -> str:
        """Merge a pull; the merge commit."""
        with self.lock:
            who, before = self.add_user(by), pull.base.git.refs()
            sha = pulls.merge(self, pull, who, sha=None, message=None, squash=False)
            pushes.moved(self, pull.base, before, who)
            return sha

    def report_status(
        self, full_name: str, sha: str, context: str, state: str, *, by: str = "octocat"
    ) -> None:
        """Another CI system reports a commit status."""
        with self.lock:
            repository = self.repository(full_name)
            checks.report_status(
                self, repository, sha, context=context, state=state, sender=self.add_user(by)
            )

    def press(self, run: CheckRun, identifier: str, *, by: str = "octocat") -> None:
        """Press a button of a check run."""
        with self.lock:
            asked: Json = {"requested_action": {"identifier": identifier}}
            for repository in self.repositories.values():
                if run.suite in repository.suites:
                    who, app = self.add_user(by), run.suite.app
                    checks.tell_run(
                        self, repository, run, "requested_action", who, more=asked, only=app
                    )

    def rerequest(self, run: CheckRun, *, by: str = "octocat") -> None:
        """Press "Re-run" on a check run."""
        with self.lock:
            for repository in self.repositories.values():
                if run.suite in repository.suites:
                    who = self.add_user(by)
                    checks.tell_run(self, repository, run, "rerequested", who, only=run.suite.app)

    def run_ci(
        self,
        full_name: str,
        sha: str,
        reports: Sequence[JobReport],
        *,
        workflow: str = ".github/workflows/ci.yml",
        name: str = "CI",
        event: str = "push",
        by: str = "octocat",
        branch: str | None = None,
        head: Repository | None = None,
    ) -> WorkflowRun:
        """Let a workflow run on a commit (of the fork `head`) end as its jobs' reports say, with all its events."""
        with self.lock:
            repository = self.repository(full_name)
            heads = {tip: ref for ref, tip in repository.git.refs("refs/heads/").items()}
            where = branch or heads.get(sha, "refs/heads/main").removeprefix("refs/heads/")
            return actions.run(
                self,
                repository,
                actions.workflow_at(self, repository, workflow, name),
                sha=sha,
                branch=where,
                event=event,
                actor=self.add_user(by),
                reports=reports,
                head=head,
            )

    def fail_ci(
        self,
        full_name: str,
        sha: str,
        *,
        job: str,
        steps: Sequence[str],
        failed: str,
        log: bytes | str,
        workflow: str = ".github/workflows/ci.yml",
        name: str = "CI",
        event: str = "push",
        by: str = "octocat",
    ) -> WorkflowRun:
        """Let one job fail at one of its steps; the later ones are skipped."""
        index = list(steps).index(failed)
        words = ["success"] * index + ["failure"] + ["skipped"] * (len(steps) - index - 1)
        data = log.encode() if isinstance(log, str) else log
        report = JobReport(job, tuple(zip(steps, words, strict=True)), data)
        return self.run_ci(
            full_name, sha, [report], workflow=workflow, name=name, event=event, by=by
        )

    def queue_merge(self, *queued: Pull, squash: bool = False, message: str = "") -> str:
        """Put pulls in the merge queue: a commit for each on a gh-readonly-queue branch, and its event."""
        with self.lock:
            pull, base = queued[-1], queued[-1].base
            git, person = base.git, Person("merge-queue", "noreply@example.com", self.now())
            sha = tip = git.branch(pull.base_ref) or pull.base_sha
            for one in queued:
                tree = git.merge(sha, one.head_sha) or git.text(
                    "rev-parse", f"{one.head_sha}^{{tree}}"
                )
                parents = [sha] if squash else [sha, one.head_sha]
                said = f"{one.issue.title} (#{one.number})" if squash else f"Merge #{one.number}"
                sha = git.write_commit(tree, parents, message or said, person)
            ref = f"refs/heads/gh-readonly-queue/{pull.base_ref}/pr-{pull.number}-{tip}"
            git.set_ref(ref, sha)
            group: Json = {
                "head_sha": sha,
                "head_ref": ref,
                "base_sha": tip,
                "base_ref": f"refs/heads/{pull.base_ref}",
                "head_commit": simple_commit(git.commit(sha)),
            }
            payload: Json = {"merge_group": group}
            emit(self, base, "merge_group", "checks_requested", payload, pull.issue.user)
            return sha

    def flush(self, transport: Transport = over_http) -> int:
        """Deliver the webhooks that wait, here and now; how many."""
        return flush(self, transport)

    def pass_time(self, **parts: float) -> None:
        """Let every installation token grow older by this much (hours=, minutes=)."""
        with self.lock:
            for token in self.tokens.values():
                token.expires -= timedelta(**parts)

    def checks_on(self, full_name: str, sha: str) -> list[CheckRun]:
        """The check runs Apps made on a commit, Actions' own left out."""
        repository = self.repository(full_name)
        return [
            run
            for suite in repository.suites
            if suite.head_sha == sha and suite.app.slug != actions.ACTIONS
            for run in suite.runs
        ]

    def when(self, fault: Callable[[str, str], object]) -> None:
        """Ask `fault(method, path)` before every request; a Fault it gives is the answer."""
        self.fault = fault  # type: ignore[assignment]


def _brief(one: Repository) -> Json:
    return {
        "id": one.id,
        "node_id": f"R_{one.id}",
        "name": one.name,
        "full_name": one.full_name,
        "private": one.private,
    }


__all__ = ["EVENTS", "PERMISSIONS", "Files", "State", "comment_of"]
