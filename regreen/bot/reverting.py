"""A proven culprit: one draft pull request that takes it back, where the repository wants that."""

from __future__ import annotations

from dataclasses import dataclass

from regreen.adapters.git import GitRepository
from regreen.bisect import report
from regreen.bisect.result import Bisection
from regreen.bisect.verify import source_of
from regreen.bot import branches, say
from regreen.bot.desk import Desk
from regreen.bot.plan import BRANCH_PREFIX
from regreen.bot.running import Job
from regreen.codebase.trial import Trial, open_box
from regreen.errors import OutsideError, UserError
from regreen.forge import FIX, Pull, Repository
from regreen.webhooks.events import Where

MOST_A_DAY = 4


@dataclass(frozen=True)
class Revert:
    """What it takes to offer one: the bisection that found `found` on `branch` by running `trial`."""

    desk: Desk
    job: Job
    where: Where
    repository: Repository
    git: GitRepository
    branch: str
    trial: Trial
    found: Bisection

    def offer(self) -> Pull | None:
        """Open the draft, or find it again; None where nothing is proven, wanted any more, or left of the day."""
        found, culprit = self.found, self.found.culprit
        if culprit is None or found.find_fix or not _is_proven(found):
            return None
        tip = self.git.resolve(f"refs/heads/{self.branch}")
        if not self.git.is_ancestor(culprit.sha, tip):
            return None
        github = self.desk.github(self.where, FIX)
        head = f"{BRANCH_PREFIX}revert-{culprit.sha[:12]}"
        there = github.pulls(head=head)
        if there:
            return there[0]
        if not self._may(culprit.sha):
            return None
        commit = self._commit(culprit.sha, tip)
        if commit is None:
            return None
        self.job.check()
        branches.push(self.desk, self.job, self.git, commit, head, repository=self.repository, github=github)  # fmt: skip
        self.job.check()
        opened = github.open_pull(
            head=head,
            base=self.branch,
            title=say.revert_title(culprit.subject),
            body=say.revert_body(self.trial.shown, report.markdown(found)),
            draft=True,
        )
        branches.stands(self.desk, github.repo, opened)
        self.desk.store.put(self._space, culprit.sha, str(opened.number))
        self.desk.log(self.job, "", "revert", f"#{opened.number} takes back {culprit.sha[:12]}")
        return opened

    @property
    def _space(self) -> str:
        return f"reverts/{self.repository.full_name}"

    def _may(self, culprit: str) -> bool:
        """Whether one more may be opened today, and nobody has closed one for this commit."""
        store = self.desk.store
        if store.get(self._space, culprit) is not None:
            return False
        today = f"{self._space}/{self.desk.clock.now():%Y-%m-%d}"
        known = {key for key, _ in store.items(today)}
        if culprit not in known and len(known) >= MOST_A_DAY:
            return False
        store.put(today, culprit, "1")
        return True

    def _commit(self, culprit: str, tip: str) -> str | None:
        """The revert on the branch as it is now, whole or its source alone, whichever makes the test pass there."""
        ways: dict[str, tuple[str, ...]] = {"whole": (), "source": source_of(self.git, culprit)}
        space, key = f"{self._space}/passed", f"{culprit}@{tip}"
        known = self.desk.store.get(space, key)
        if (
            known in ways
        ):  # a process died between this and the pull request; the branch may be there
            return self.git.revert(culprit, tip, paths=ways[known])
        if not ways["source"]:
            del ways["source"]
        for name, paths in ways.items():
            commit = self.git.revert(culprit, tip, paths=paths)
            if commit is not None and self._passes(commit):
                self.desk.store.put(space, key, name)
                self.job.got_further()
                return commit
        return None

    def _passes(self, commit: str) -> bool:
        trial = self.trial
        try:
            with open_box(
                trial,
                commit,
                git=self.git,
                sandbox=self.desk.sandbox(),
                cancel=self.job.cancel,
            ) as box:
                ran = box.run(
                    trial.command,
                    timeout=trial.timeout,
                    env=dict(trial.env),
                    cancel=self.job.cancel,
                )
        except (UserError, OutsideError):
            self.job.check()
            return False
        return ran.passed


def _is_proven(found: Bisection) -> bool:
    proof = found.verified
    return proof is not None and proof.ok and "revert" in proof.by
