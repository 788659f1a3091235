"""The runs of one bisection, in the order they came: each is in memory before anything depends on it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import astuple, replace
from uuid import uuid4

from regreen.bisect.experience import Past
from regreen.bisect.memory import Memory, Run, from_line, verdict_key
from regreen.codebase.trial import Trial
from regreen.models import Commit

_REMEMBERED = 20


class Log:
    """One bisection's runs, and the verdicts it shares with others.

    Args:
        memory: where lines are kept.
        key: of this bisection: its range and trial.
        rule: which failures count; verdicts under another rule are no evidence.
        resume: go on with the bisection last begun under `key`.
        reuse: take the verdicts of earlier bisections as evidence.
        known: runs of the same command elsewhere.
        scope: the repository, whose bisections learn from each other how its tests fail.
    """

    def __init__(
        self,
        memory: Memory,
        key: str,
        rule: str,
        *,
        resume: bool,
        reuse: bool,
        known: Sequence[Run] = (),
        scope: str = "",
    ) -> None:
        self._known = tuple(known)
        self._memory, self._key, self._rule, self._reuse = memory, key, rule, reuse
        self._trees: dict[str, str] = {}
        self._trial: Trial | None = None
        self.runs: list[Run] = []
        self.reused: list[Run] = []
        self.doubted = False
        self.session = ""
        self.since: str | None = None
        self.past: tuple[Past, ...] = ()
        self._experience = f"past:{scope}"
        for line in memory.get(key) if resume else ():
            self._replay(line)
        self.resumed = len(self.runs)
        if not self.session:
            self.session = uuid4().hex
            self.past = self._remembered() if reuse else ()
            begins = {
                "session": self.session,
                "begins": True,
                "past": [astuple(p) for p in self.past],
            }
            memory.append(key, json.dumps(begins))

    def _replay(self, line: str) -> None:
        value = json.loads(line)
        if value.get("begins"):
            self.session, self.runs, self.since = value["session"], [], None
            self.doubted = False
            self.past = tuple(Past(*counts) for counts in value.get("past", ()))
        elif "since" in value:
            self.since = value["since"]
        elif "doubted" in value:
            self.doubted = True
        elif "ran" in value:
            self.runs.append(from_line(line))

    def _remembered(self) -> tuple[Past, ...]:
        """What the latest bisections of this repository came to."""
        lines = self._memory.get(self._experience)[-_REMEMBERED:]
        return tuple(Past(*json.loads(line)) for line in lines)

    def learn(self, past: Past) -> None:
        """Keep what a bisection that found its culprit came to."""
        self._memory.append(self._experience, json.dumps(astuple(past)))

    @property
    def python(self) -> str | None:
        """The interpreter of the last run."""
        return self.runs[-1].python if self.runs else None

    def start(self, trial: Trial) -> None:
        """From here on runs are of this very trial, so that their verdicts may be shared."""
        self._trial = trial

    def know(self, commits: Iterable[Commit]) -> None:
        """Learn which tree each commit has; fetch what earlier bisections saw of these trees."""
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
        """Remember that the search goes on from here: what is older fails for another reason."""
        self.since = sha
        self._memory.append(self._key, json.dumps({"since": sha}))

    def doubt(self) -> None:
        """Remember that a proof was tried and did not convince: the next answer must be surer."""
        self.doubted = True
        self._memory.append(self._key, json.dumps({"doubted": True}))

    def at(self, sha: str) -> list[Run]:
        """The runs of this bisection at a commit."""
        return [run for run in self.runs if run.sha == sha]

    def is_known_good(self, sha: str) -> bool:
        """Whether the command is known to have passed there elsewhere."""
        return any(run.sha == sha and run.ran == "pass" for run in self._known)

    def record(self, run: Run) -> Run:
        """Keep one run."""
        run = replace(run, session=self.session)
        self._memory.append(self._key, run.to_line())
        tree = self._trees.get(run.sha)
        shared = run.ran in {"pass", "fail"} or run.reason == "exit 125"
        if tree and self._trial is not None and shared:
            self._memory.append(verdict_key(self._trial, self._rule, tree), run.to_line())
        self.runs.append(run)
        return run

    def keep(self, runs: Iterable[Run]) -> None:
        """Keep the runs of a proof that was not enough: they are evidence like any other."""
        for run in runs:
            self.record(run)
