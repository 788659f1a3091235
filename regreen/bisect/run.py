"""A bisection from beginning to end: reproduce, find the range, search, prove.

Every run is in `memory` before the next one is chosen, and every choice is a function of the runs so far: so a
bisection that was killed walks on as if it had not been.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Event

from regreen.bisect import dependencies, endpoints, lockfiles, pythons, report
from regreen.bisect.boxes import Boxes
from regreen.bisect.endpoints import Ends, refuse_lacking
from regreen.bisect.graph import BEFORE
from regreen.bisect.hunt import Hunt, Stop, View
from regreen.bisect.log import Log
from regreen.bisect.memory import Forgetful, Memory, Run, session_key
from regreen.bisect.performance import Paired
from regreen.bisect.result import Bisection, Dependency, Outcome, Verified
from regreen.bisect.runner import Judge, Runner, Runs, pattern
from regreen.bisect.verify import Proof, prove, source_of, tally
from regreen.codebase.trial import Trial
from regreen.errors import UserError
from regreen.ports import Git, Sandbox

_TRIES_AT_BAD = 8
_CONTRADICTIONS = 4

Say = Callable[[str], None]
Watch = Callable[[View], None]


@dataclass(frozen=True)
class BisectJob:
    """What to bisect.

    Args:
        trial: the command, and how to run it at a commit.
        good: a revision where it passed; None: found by going back.
        bad: a revision where it fails.
        first_parent: look at the first parents only, so that a merge is one step.
        jobs: how many tests run at once.
        confidence: the probability at which a commit is named.
        max_tests: stop after so many runs of the search.
        max_minutes: stop after so long.
        signature: "auto", "exit" or a regular expression: which failures count.
        find_fix: look for the commit that repaired it; the older end fails, the newer passes.
        verify: prove the culprit by running it again and by reverting it.
        resume: go on where a bisection of the same range and command was interrupted.
        slower: a run that passes but takes so many times longer than at `good` counts as a failure; any other
            failure is untestable.
        reuse: start from the verdicts of earlier bisections of the same command on the same trees.
        passed: commits where the same command is known to have passed elsewhere, in CI: evidence like any run.
    """

    trial: Trial
    good: str | None = None
    bad: str = "HEAD"
    first_parent: bool = False
    jobs: int = 1
    confidence: float = 0.99
    max_tests: int | None = None
    max_minutes: float | None = None
    signature: str = "auto"
    find_fix: bool = False
    verify: bool = True
    resume: bool = False
    slower: float | None = None
    reuse: bool = True
    known: tuple[Run, ...] = ()


def bisect(
    job: BisectJob,
    *,
    git: Git,
    sandbox: Sandbox,
    memory: Memory | None = None,
    progress: Say | None = None,
    watch: Watch | None = None,
    cancel: Event | None = None,
) -> Bisection:
    """Find the commit that broke `job.trial`.

    Args:
        job: what to bisect.
        git: the repository.
        sandbox: where the command runs.
        memory: keeps every run; without it nothing outlives the call.
        progress: is told one line a step.
        watch: is shown the state of the search after every run.
        cancel: set it to stop.

    Raises:
        UserError: the range makes no sense, or the clone is shallow.
        Cancelled: `cancel` was set.
        OutsideError: the sandbox failed again and again.
    """
    started = time.monotonic()
    ends = endpoints.resolve(job.good, job.bad, find_fix=job.find_fix, git=git)
    work = _Work(
        job,
        ends,
        git=git,
        sandbox=sandbox,
        memory=memory or Forgetful(),
        progress=progress,
        watch=watch,
        cancel=cancel,
        started=started,
    )
    try:
        return work.result()
    finally:
        work.boxes.close()


class _Work:
    """One bisection under way."""

    def __init__(
        self,
        job: BisectJob,
        ends: Ends,
        *,
        git: Git,
        sandbox: Sandbox,
        memory: Memory,
        progress: Say | None,
        watch: Watch | None,
        cancel: Event | None,
        started: float,
    ) -> None:
        self.job, self.ends, self.git = job, ends, git
        self.say: Say = progress or (lambda _: None)
        self.watch = watch
        self.started = started
        self.notes = list(ends.notes)
        self.lacking: tuple[str, ...] = ()
        key = session_key(
            job.trial,
            (ends.good, ends.bad, job.first_parent, job.signature, job.find_fix, job.slower),
        )
        rule = job.signature if job.slower is None else f"slower than {ends.good} {job.slower}"
        self.log = Log(memory, key, rule, resume=job.resume, reuse=job.reuse, known=job.known)
        self.boxes = Boxes(git, sandbox, cancel, in_turn=job.slower is not None)
        plain = Runner(job.trial, self.boxes, cancel, pattern(job.signature))
        self.plain = plain
        self.runner: Runs = plain
        self.sandbox = sandbox
        self.judge = Judge(job.signature if job.slower is None else "auto")

    def result(self) -> Bisection:
        """Do all of it."""
        for note in self.notes:
            self.say(note)
        broken, fixed = self.ends.bad, self.ends.good
        self.lacking = self.git.lacking(broken)
        if self.job.find_fix and fixed is not None:
            broken, fixed = fixed, broken
        if self.job.slower is not None:
            self.runner = self._timed(self.job.slower)
        else:
            chosen = pythons.settle(
                self.plain,
                git=self.git,
                sandbox=self.sandbox,
                log=self.log,
                broken=broken,
                fixed=fixed,
                say=self.say,
                lacking=self.lacking,
            )
            self.runner = self.plain = chosen.runner
            self.notes += chosen.notes
        self.log.start(self.runner.trial)
        if not self._reproduce(broken):
            refuse_lacking(self.lacking, "the command does not fail there as it should")
            return self._report(None, "not_reproduced", None)
        self.notes += self.lacking
        limit = Stop(self.job.max_tests, self._deadline())
        return self._search(broken, limit)

    def _open(self, broken: str, good: str | None, limit: Stop) -> Hunt:
        hunt = Hunt(
            self.git,
            self.runner,
            self.log,
            self.judge,
            broken,
            first_parent=self.job.first_parent,
            find_fix=self.job.find_fix,
            jobs=self.job.jobs,
            confidence=self.job.confidence,
            say=self.say,
            watch=self.watch,
            started=self.started,
            verify=self.job.verify,
        )
        hunt.open(good, self.ends.bad, limit)
        works = broken != self.ends.bad or hunt.outcome_at(hunt.good) in {None, "pass"}
        if not works:
            refuse_lacking(self.lacking, f"the command does not pass at {(hunt.good or '')[:12]}")
        return hunt

    def _timed(self, threshold: float) -> Runs:
        """Runs that are judged by how long they take, against the end that is fast."""
        fast = self.ends.bad if self.job.find_fix else self.ends.good
        if fast is None:
            raise UserError("--slower needs --good: the commit whose time is the measure")
        return Paired(self.plain, fast, threshold)

    def _reproduce(self, broken: str) -> bool:
        """Run the broken end until it fails, and learn what that looks like."""
        while True:
            runs = self.log.at(broken)
            failures = [run for run in runs if self.judge(run)[0] == "fail"]
            if failures:
                for run in failures:
                    self.judge = self.judge.learn(run)
                return True
            allowed = min(_TRIES_AT_BAD, self.job.max_tests or _TRIES_AT_BAD)
            hopeless = any(self.judge(run)[0] == "untestable" for run in runs)
            if hopeless or len(runs) >= allowed or time.monotonic() > self._deadline():
                reasons = "; ".join(sorted({self.judge(run)[1] for run in runs}))
                self.notes.append(f"{broken[:12]} failed in 0 of {len(runs)} runs: {reasons}")
                return False
            run = self.log.record(self.runner(broken))
            outcome, reason = self.judge(run)
            self.say(f"{broken[:12]} {outcome} ({reason}) {run.seconds:.1f} s, an end of the range")

    def _search(self, broken: str, limit: Stop) -> Bisection:
        hunt = self._open(broken, self.log.since or self.ends.good, limit)
        for _ in range(_CONTRADICTIONS):
            outcome = hunt.search(limit)
            if hunt.mended is not None:
                self.notes.append(
                    f"an earlier fault that looks the same was mended at or before {hunt.mended[:12]}"
                )
                hunt = self._since(hunt.mended, broken, limit)
                continue
            if outcome != "found" or not self.job.verify:
                return self._report(hunt, outcome, None)
            if limit.passed(0):
                self.notes.append("no time left to prove it")
                sure = hunt.is_sure_of(hunt.state.best()[0])
                return self._report(hunt, outcome if sure else hunt.unsure(), None)
            self.say("found; proving it")
            proof = self._prove(hunt)
            if not proof.holds:
                self.say("the proof does not bear it out; searching on")
                self.notes += [proof.verified.detail] if proof.verified.detail else []
                self.log.doubt()
                continue
            if proof.since is not None and proof.since.mended is not None:
                for run in proof.since.runs:
                    self.log.record(run)
                culprit, mended = hunt.sha(hunt.state.best()[0]), proof.since.mended
                self.notes.append(f"{culprit[:12]} broke it as well, but {mended[:12]} works again")
                hunt = self._since(mended, broken, limit)
                continue
            if self.job.slower is None:
                self.log.learn(tally(hunt, hunt.state.best()[0]))
            found = self._report(hunt, outcome, proof.verified)
            return replace(found, dependency=self._dependency(hunt))
        return self._report(hunt, "undecided", None)

    def _since(self, mended: str, broken: str, limit: Stop) -> Hunt:
        """Go on from a commit where all is well: what failed before it is another fault."""
        self.log.begin_at(mended)
        self.say(f"searching from {mended[:12]}")
        return self._open(broken, mended, limit)

    def _prove(self, hunt: Hunt) -> Proof:
        culprit, _ = hunt.state.best()
        assert culprit != BEFORE  # noqa: S101 - `found` names a commit
        return prove(hunt, culprit, git=self.git, runner=self.runner, bad=self.ends.bad)

    def _dependency(self, hunt: Hunt) -> Dependency | None:
        """Which upgrade it was, where all that the culprit did was to move versions."""
        sha = hunt.sha(hunt.state.best()[0])
        paths = self.git.changed_paths(sha)
        source = [p for p in source_of(self.git, sha) if not lockfiles.declares(p)]
        moved = [path for path in paths if lockfiles.pins_versions(path)]
        parent = self.git.commit(sha).parents[:1]
        if source or not moved or not parent or self.job.find_fix or self.job.slower is not None:
            return None
        for path in moved:
            old, new = (self.git.show(rev, path) for rev in (parent[0], sha))
            if old is None or new is None:
                continue
            self.say(f"it only moved versions in {path}; looking for the package")
            blamed = dependencies.blame(
                self.plain.trial,
                path,
                old.decode("utf-8", "replace"),
                new.decode("utf-8", "replace"),
                run=lambda trial: replace(self.plain, trial=trial)(sha),
                judge=hunt.judge,
            )
            if blamed.upgrade is not None:
                one = blamed.upgrade
                return Dependency(
                    path, one.name, one.old, one.new, blamed.probability, blamed.tests
                )
        self.notes.append(self._no_package(moved))
        return None

    def _no_package(self, moved: list[str]) -> str:
        """Why no package is named, and what would be needed."""
        files = ", ".join(moved)
        if self.plain.trial.setup is None:
            return f"which package of {files} is unknown: nothing installs from it; say so with --setup"
        return f"no single package of {files} is to blame, or they cannot be installed one by one"

    def _report(self, hunt: Hunt | None, outcome: Outcome, verified: Verified | None) -> Bisection:
        found = report.assemble(
            hunt,
            outcome,
            verified,
            ends=self.ends,
            log=self.log,
            judge=self.judge,
            confidence=self.job.confidence,
            notes=tuple(self.notes),
            git=self.git,
            builds=len(self.runner.environments),
            seconds=time.monotonic() - self.started,
        )
        return replace(
            found, command=self.job.trial.shown, python=self.log.python, find_fix=self.job.find_fix
        )

    def _deadline(self) -> float:
        if self.job.max_minutes is None:
            return float("inf")
        return self.started + 60 * self.job.max_minutes
