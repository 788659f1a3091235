"""The runs of one bisection in order: each is stored before anything depends on it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import astuple, replace
from uuid import uuid4

from regreen.bisect.posterior import RateHistory
from regreen.bisect.result import RunPart
from regreen.bisect.verdict_memory import (
    UNTESTABLE_REASON,
    CommitRun,
    VerdictMemory,
    from_line,
    verdict_key,
)
from regreen.domain.models import Commit
from regreen.runs.trial import Trial

_MAX_BISECTIONS = 20


class RunLog:
    """The runs of one bisection, and the verdicts that it shares with others.

    Args:
        memory: where lines are stored.
        key: the bisection's key: its range and trial.
        rule: which failures count; verdicts under another rule are not used.
        resume: continue the last bisection under `key`.
        reuse: use the verdicts of earlier bisections.
        known: runs of the same command elsewhere.
        scope: the repository, whose bisections share what they learn about failure rates.
    """

    def __init__(
        self,
        memory: VerdictMemory,
        key: str,
        rule: str,
        *,
        resume: bool,
        reuse: bool,
        known: Sequence[CommitRun] = (),
        scope: str = "",
    ) -> None:
        self._known = tuple(known)
        self._memory, self._key, self._rule, self._reuse = memory, key, rule, reuse
        self._trees: dict[str, str] = {}
        self._trial: Trial | None = None
        self.runs: list[CommitRun] = []
        self.reused: list[CommitRun] = []
        self.later: list[tuple[RunPart, CommitRun, str | None]] = []
        self.doubted = False
        self.session = ""
        self.since: str | None = None
        self.past: tuple[RateHistory, ...] = ()
        self._experience = f"past:{scope}"
        for line in memory.get(key) if resume else ():
            self._replay_line(line)
        self.resumed = len(self.runs)
        if not self.session:
            self.session = uuid4().hex
            self.past = self._load_rate_histories() if reuse else ()
            begins = {
                "session": self.session,
                "begins": True,
                "past": [astuple(p) for p in self.past],
            }
            memory.append(key, json.dumps(begins))

    def _replay_line(self, line: str) -> None:
        value = json.loads(line)
        if value.get("begins"):
            self.session, self.runs, self.since = value["session"], [], None
            self.doubted = False
            self.past = tuple(RateHistory(*counts) for counts in value.get("past", ()))
        elif "since" in value:
            self.since = value["since"]
        elif "doubted" in value:
            self.doubted = True
        elif "ran" in value:
            self.runs.append(from_line(line))

    def _load_rate_histories(self) -> tuple[RateHistory, ...]:
        """The counts of the latest bisections of this repository."""
        lines = self._memory.get(self._experience)[-_MAX_BISECTIONS:]
        return tuple(RateHistory(*json.loads(line)) for line in lines)

    def save_rate_history(self, past: RateHistory) -> None:
        """Store the counts of a bisection that found its culprit."""
        self._memory.append(self._experience, json.dumps(astuple(past)))

    @property
    def python(self) -> str | None:
        """The interpreter of the last run."""
        return self.runs[-1].python if self.runs else None

    def start_trial(self, trial: Trial) -> None:
        """Set the trial of all later runs, so that their verdicts may be shared."""
        self._trial = trial

    def load_verdicts(self, commits: Iterable[Commit]) -> None:
        """Record the tree of each commit, and load the earlier verdicts for these trees."""
        for commit in commits:
            if commit.sha in self._trees:
                continue
            self._trees[commit.sha] = commit.tree
            self.reused += [run for run in self._known if run.sha == commit.sha]
            if self._reuse and self._trial is not None:
                for line in self._memory.get(verdict_key(self._trial, self._rule, commit.tree)):
                    run = from_line(line)
                    if run.session != self.session:
                        self.reused.append(replace(run, sha=commit.sha))

    def begin_at(self, sha: str) -> None:
        """Record that the search restarts here: older commits fail for another reason."""
        self.since = sha
        self._memory.append(self._key, json.dumps({"since": sha}))

    def record_failed_proof(self) -> None:
        """Record a proof that failed: the next answer must be surer."""
        self.doubted = True
        self._memory.append(self._key, json.dumps({"doubted": True}))

    def runs_at(self, sha: str) -> list[CommitRun]:
        """The runs of this bisection at a commit."""
        return [run for run in self.runs if run.sha == sha]

    def is_known_good(self, sha: str) -> bool:
        """Whether the command is known to have passed there elsewhere."""
        return any(run.sha == sha and run.ran == "pass" for run in self._known)

    def record_run(self, run: CommitRun) -> CommitRun:
        """Store one run."""
        run = replace(run, session=self.session)
        self._memory.append(self._key, run.to_line())
        tree = self._trees.get(run.sha)
        shared = run.ran in {"pass", "fail"} or run.reason == UNTESTABLE_REASON
        if tree and self._trial is not None and shared:
            self._memory.append(verdict_key(self._trial, self._rule, tree), run.to_line())
        self.runs.append(run)
        return run

    def list_later_runs(
        self, part: RunPart, runs: Iterable[CommitRun], reverted: str | None = None
    ) -> None:
        """List runs in the result that the search does not count; `reverted` is the commit that was taken back for them."""
        self.later += [(part, run, reverted) for run in runs]
