"""Opens one draft pull request that reverts a proven culprit, if the repository wants that."""

from __future__ import annotations

from dataclasses import dataclass

from regreen.bisect import report
from regreen.bisect.proof import changed_source_paths
from regreen.bisect.result import Bisection
from regreen.bot import messages as say
from regreen.bot.flows import branches
from regreen.bot.flows.conventions import read_conventions
from regreen.bot.jobs.event_jobs import BRANCH_PREFIX
from regreen.bot.jobs.runner import Job
from regreen.bot.observe import is_observed
from regreen.bot.services import Services
from regreen.domain.errors import OutsideError, UserError
from regreen.domain.events import RepositoryRef
from regreen.domain.github import FIX_SCOPE, PullRequest, Repository
from regreen.domain.ports import Mirror
from regreen.domain.state_records import Revert, RevertProof, RevertTry
from regreen.fixers.case import FixJob
from regreen.fixers.judge_patch import judge_revert
from regreen.runs.trial import Trial

MAX_REVERTS_PER_DAY = 4


@dataclass(frozen=True)
class RevertOffer:
    """A revert that can be offered: `found` was bisected on `branch` by running `trial` over all the `tests`."""

    desk: Services
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
        github = self.desk.github_client(self.where, FIX_SCOPE)
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
        title = customs.fit_title(say.revert_title(culprit.subject))
        branches.push_branch(
            self.desk, self.job, self.git, commit, head, github=github, sign_off=customs.sign_off,
            message=f"{title}\n\nThis reverts commit {culprit.sha}.\n",
        )  # fmt: skip
        self.job.check_cancelled()
        opened = github.open_pull(
            head=head,
            base=self.branch,
            title=title,
            body=customs.fit_body(
                say.revert_body(self.trial.command_line, report.render_markdown(bisection)),
                self.git.changed_paths(commit),
            ),
            draft=True,
        )
        branches.release_branch(self.desk, github.repo, opened)
        self.desk.store.save(Revert(self.repository.full_name, culprit.sha, opened.number))
        self.desk.log_action(
            self.job, "", "revert", f"#{opened.number} takes back {culprit.sha[:12]}"
        )
        return opened

    def _may_open_another(self, culprit: str) -> bool:
        """Whether today's limit allows one more, and nobody has closed one for this commit."""
        store, repo = self.desk.store, self.repository.full_name
        if store.find(Revert, repo=repo, culprit=culprit) is not None:
            return False
        day = f"{self.desk.clock.now():%Y-%m-%d}"
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
        store, repo = self.desk.store, self.repository.full_name
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
        sandbox = self.desk.sandbox()
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
