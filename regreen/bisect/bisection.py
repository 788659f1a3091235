"""A bisection from beginning to end: reproduce, find the range, search, prove.

Every run is stored in `memory` before the next one is chosen, and every choice is a function of the runs so far, so
a bisection that was killed resumes exactly where it stopped.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Event

from regreen.bisect import commit_graph, report
from regreen.bisect.box_pool import BoxPool
from regreen.bisect.commit_graph import (
    BEFORE_RANGE,
    RangeEnds,
    linear_graph,
    refuse_missing_content,
)
from regreen.bisect.commit_runner import (
    CommitRunner,
    FailureJudge,
    PairedRunner,
    TrialRunner,
    compile_signature,
)
from regreen.bisect.proof import CulpritProof, changed_source_paths, count_outcomes, prove_culprit
from regreen.bisect.result import (
    STOPPED_AT_LIMIT,
    Bisection,
    BisectionOutcome,
    BlamedDependency,
    CulpritVerification,
)
from regreen.bisect.run_log import RunLog
from regreen.bisect.search import CulpritSearch, calibrate_probability
from regreen.bisect.session import BisectSession, SearchLimit, SearchView
from regreen.bisect.verdict_memory import (
    CommitRun,
    TransientVerdictMemory,
    VerdictMemory,
    session_key,
)
from regreen.code.paths import is_document, is_test
from regreen.domain.errors import AnalysisFailed, Cancelled, UserError
from regreen.domain.job_control import DeadlineEvent
from regreen.domain.ports import Git, Sandbox
from regreen.isolation import run_in_child
from regreen.languages.registry import find_test_files
from regreen.logs.failure_signature import FailureSignature, is_environmental, matches_any
from regreen.packages import lock_edits
from regreen.packages.lock_edits import PackageUpgrade, apply_first_upgrades, find_upgrades
from regreen.packages.python_version import choose_python_version
from regreen.runs.capsule import CapsuleOutcome, ExpectedOutcome, KeepCapsule, make_capsule
from regreen.runs.trial import Trial

# Which Python to bisect with: the one under which the broken end fails and the other end can pass.

_WITHOUT_FILES = 2
_ALIKE = 2  # interpreters after which the oldest is asked whether it is about interpreters at all
_OLDEST_USABLE_PYTHON = (3, 8)  # before this, current installers and tools rarely work


@dataclass(frozen=True)
class PythonChoice:
    """The runner with its interpreter; `notes` list the attempts."""

    runner: TrialRunner
    notes: tuple[str, ...] = ()


def choose_python(
    runner: TrialRunner,
    *,
    git: Git,
    sandbox: Sandbox,
    log: RunLog,
    broken: str,
    fixed: str | None,
    say: Callable[[str], None],
    lacking: tuple[str, ...] = (),
) -> PythonChoice:
    """Choose the interpreter by running both ends; the runs under the chosen one go to the log.

    Signs of a wrong interpreter (an import or syntax error, a failing setup or exit 125 at either end,
    the same exception at both) make the next one be tried: the repository's own choice first, the sandbox's default,
    then from new to old. An import that fails alike under two interpreters, and not at the other end, is the fault
    of the code; a module or program that the first two interpreters and the oldest lack is missing altogether. If none does better, the first that ran stays. If files are `lacking` that the tree
    should have, they are the likelier reason, and at most two interpreters are tried.

    Raises:
        UserError: the ends cannot be run, and files are missing.
    """
    if runner.trial.python or runner.trial.image:
        return PythonChoice(runner)
    if log.runs:
        return PythonChoice(runner.with_python(log.python))
    search = _InterpreterSearch(runner, broken, fixed, say, lacking)
    search.try_in_turn(_list_candidates(git, sandbox, broken))
    chosen, runs = search.best or (runner, [runner(broken)])
    log.list_later_runs(
        "interpreter", [run for run in search.made if all(run is not r for r in runs)]
    )
    for run in runs:
        log.record_run(run)
        end = "bad" if run.sha == broken else "good"
        say(f"{end} commit {run.sha[:12]}: {_describe_run(run)}, {run.seconds:.1f} s")
    tried = search.tried
    notes = (*tried, f"tested with Python {runs[0].python}") if tried else ()
    return PythonChoice(chosen, notes)


@dataclass
class _InterpreterSearch:
    """Tries interpreters (`made`: every run); `best` is the chosen one with its runs, `tried` says what rules the others out."""

    runner: TrialRunner
    broken: str
    fixed: str | None
    say: Callable[[str], None]
    lacking: tuple[str, ...]
    tried: list[str] = field(default_factory=list)
    best: tuple[TrialRunner, list[CommitRun]] | None = None
    made: list[CommitRun] = field(default_factory=list)

    def try_in_turn(self, candidates: Sequence[str | None]) -> None:
        """Run the ends under one after the other, until one fits or none can be at fault."""
        first: tuple[TrialRunner, list[CommitRun]] | None = None
        suspect: tuple[TrialRunner, list[CommitRun]] | None = None
        known: set[str | None] = set()
        for python in (one for one in candidates if one not in known):
            if self.tried:
                self.say(f"trying Python {python or 'of the sandbox'}")
            attempt = self.runner.with_python(python)
            runs = _run_ends(attempt, self.broken, self.fixed, hopeful=not self.tried)
            self.made += runs
            known |= {python, runs[0].python}
            first = first or (attempt, runs)
            if suspect and _is_alike([suspect[1][0], runs[0]]):
                self.best, self.tried = suspect, []
                return
            suspect = suspect or _as_suspect(attempt, runs)
            if not _is_foreign(runs[0]):
                fits = not _is_foreign(runs[-1]) and not _is_alike(runs)
                if self.best is None or fits:
                    self.best = (attempt, runs)
                if fits:
                    return
            self._reject(runs, python)
            if len(self.tried) == _ALIKE and self._is_missing_everywhere(
                first[1][0], runs[0], candidates[-1]
            ):
                self.best, self.tried = first, []
                return

    def _reject(self, runs: Sequence[CommitRun], python: str | None) -> None:
        against = _describe_objection(runs)
        version = runs[0].python or python
        self.tried.append(
            f"not {f'Python {version}' if version else 'the default Python'}: {against}"
        )
        self.say(self.tried[-1])
        if len(self.tried) >= _WITHOUT_FILES:
            refuse_missing_content(self.lacking, against)

    def _is_missing_everywhere(
        self, first: CommitRun, second: CommitRun, oldest: str | None
    ) -> bool:
        """Whether two interpreters and the oldest lack the same module or program: none of them can be at fault then."""
        if not _misses_the_same(first, second):
            return False
        self.made.append(self.runner.with_python(oldest)(self.broken))
        return _misses_the_same(first, self.made[-1])


def _run_ends(
    attempt: TrialRunner, broken: str, fixed: str | None, *, hopeful: bool
) -> list[CommitRun]:
    """Run the bad end, and the other end unless the first run already rules the interpreter out.

    Boxes are opened ahead while nothing rules the interpreter out.
    """
    if hopeful and fixed is not None:
        attempt.prepare_run(broken)
        attempt.prepare_run(fixed)
    runs = [attempt(broken)]
    if not _is_foreign(runs[0]):
        attempt.expect_search(broken)
    if fixed is not None and (not _is_foreign(runs[0]) or (hopeful and runs[0].ran == "fail")):
        runs.append(attempt(fixed))
    return runs


def _list_candidates(git: Git, sandbox: Sandbox, rev: str) -> list[str | None]:
    """Interpreters in the order to try them; None is the sandbox's default."""
    available = list(sandbox.pythons())
    declared: str | None = choose_python_version(git, rev, available)
    older = sorted(available, key=_version_number, reverse=True)
    if declared is None:
        return [None, *older]
    first = (
        [declared, None] if _version_number(declared) >= _OLDEST_USABLE_PYTHON else [None, declared]
    )
    return [*first, *(python for python in older if python != declared)]


def _as_suspect(
    attempt: TrialRunner, runs: list[CommitRun]
) -> tuple[TrialRunner, list[CommitRun]] | None:
    """Whether the ends differ, though by an error that may come from the interpreter."""
    return (attempt, runs) if _is_foreign(runs[0]) and runs[-1].ran == "pass" else None


def _describe_objection(runs: Sequence[CommitRun]) -> str:
    """Why an interpreter is ruled out."""
    example = runs[0] if _is_foreign(runs[0]) else runs[-1]
    where = "both ends" if _is_alike(runs) else example.sha[:12]
    return f"at {where} {_describe_run(example)}"


def _is_foreign(run: CommitRun) -> bool:
    return run.ran == "untestable" or is_environmental(run.signature)


def _is_alike(runs: Sequence[CommitRun]) -> bool:
    """Whether both ends raise the same exception, which may come from the interpreter or from the code."""
    if len(runs) < 2:
        return False
    first, last = runs[0].signature, runs[-1].signature
    return bool(first and last and first.kind and matches_any(first, [last])) and not _is_assertion(
        first
    )


def _misses_the_same(first: CommitRun, second: CommitRun) -> bool:
    """Whether both lack the same module, or the same program."""
    one, other = first.signature, second.signature
    if one is None or other is None:
        return first.missing_tool == second.missing_tool != ""
    return one.kind == "ModuleNotFoundError" and matches_any(one, [other])


def _is_assertion(signature: FailureSignature | None) -> bool:
    return signature is not None and signature.kind == "AssertionError"


def _describe_run(run: CommitRun) -> str:
    return run.signature.text if run.signature else f"{run.ran} ({run.reason})"


def _version_number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


_MAX_BAD_RUNS = 8
_MAX_CONTRADICTIONS = 4

ReportProgress = Callable[[str], None]
ViewCallback = Callable[[SearchView], None]


@dataclass(frozen=True)
class BisectJob:
    """What to bisect.

    Args:
        trial: the command, and how to run it at a commit.
        good: a revision where it passed; None: one is found by going back.
        bad: a revision where it fails.
        first_parent: follow first parents only, so that a merge is one step.
        jobs: how many tests run at once.
        confidence: the probability at which a commit is blamed.
        max_tests: stop after this many runs of the search.
        max_minutes: stop after this many minutes.
        signature: "auto", "exit" or a regular expression: which failures count.
        find_fix: look for the commit that fixed it; the older end fails, the newer passes.
        verify: prove the culprit by repeated runs and by reverting it.
        resume: continue an interrupted bisection of the same range and command.
        slower: a passing run that takes this many times longer than at `good` counts as a failure; any other
            failure is untestable.
        reuse: start from the verdicts of earlier bisections of the same command on the same trees.
        passed: commits where the same command is known to have passed in CI; this counts like a run.
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
    known: tuple[CommitRun, ...] = ()


def run_bisection(
    job: BisectJob,
    *,
    git: Git,
    sandbox: Sandbox,
    memory: VerdictMemory | None = None,
    progress: ReportProgress | None = None,
    watch: ViewCallback | None = None,
    cancel: Event | None = None,
    keep: KeepCapsule | None = None,
) -> Bisection:
    """Find the commit that broke `job.trial`.

    Args:
        job: what to bisect.
        git: the repository.
        sandbox: where the command runs.
        memory: stores every run; without it the runs are lost at the end of the call.
        progress: receives one line for each step.
        watch: receives the state of the search after every run.
        cancel: an event that stops the bisection.
        keep: receives the capsule of the run at the culprit.

    Raises:
        UserError: the range is invalid, or the clone is shallow.
        Cancelled: `cancel` was set.
        OutsideError: the sandbox failed repeatedly.
    """
    started = time.monotonic()
    minutes = float("inf") if job.max_minutes is None else job.max_minutes
    limit = DeadlineEvent(started + 60 * minutes, cancel)
    ends = commit_graph.resolve_range(job.good, job.bad, find_fix=job.find_fix, git=git)
    job = replace(job, trial=carry_tests_back(job.trial, ends.bad, git))
    work = _BisectionRun(
        job,
        ends,
        git=git,
        sandbox=sandbox,
        memory=memory or TransientVerdictMemory(),
        progress=progress,
        watch=watch,
        cancel=limit,
        started=started,
    )
    try:
        found = work.run()
        return work.keep_culprit(found, keep) if keep is not None else found
    except Cancelled:
        if not limit.is_over:
            raise
        return work.stop_at_limit()
    finally:
        work.boxes.close()


class _BisectionRun:
    """One bisection while it runs."""

    def __init__(
        self,
        job: BisectJob,
        ends: RangeEnds,
        *,
        git: Git,
        sandbox: Sandbox,
        memory: VerdictMemory,
        progress: ReportProgress | None,
        watch: ViewCallback | None,
        cancel: Event | None,
        started: float,
    ) -> None:
        self.job, self.ends, self.git = job, ends, git
        self.say: ReportProgress = progress or (lambda _: None)
        self.watch = watch
        self.started = started
        self.notes = list(ends.notes)
        self.lacking: tuple[str, ...] = ()
        key = session_key(
            job.trial,
            (ends.good, ends.bad, job.first_parent, job.signature, job.find_fix, job.slower),
        )
        rule = job.signature if job.slower is None else f"slower than {ends.good} {job.slower}"
        self.log = RunLog(memory, key, rule, resume=job.resume, reuse=job.reuse, known=job.known)
        self.boxes = BoxPool(git, sandbox, cancel, in_turn=job.slower is not None)
        plain = TrialRunner(job.trial, self.boxes, cancel, compile_signature(job.signature))
        self.plain = plain
        self.runner: CommitRunner = plain
        self.session: BisectSession | None = None
        self.is_reproduced = False
        self.sandbox = sandbox
        self.judge = FailureJudge(job.signature if job.slower is None else "auto")

    def run(self) -> Bisection:
        """Run every step and return the result."""
        for note in self.notes:
            self.say(note)
        broken, fixed = self.ends.bad, self.ends.good
        self.lacking = self.git.list_missing_content(broken)
        if self.job.find_fix and fixed is not None:
            broken, fixed = fixed, broken
        if self.job.slower is not None:
            self.runner = self._make_timed_runner(self.job.slower)
        else:
            chosen = choose_python(
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
        self.log.start_trial(self.runner.trial)
        if not self._reproduce_failure(broken):
            refuse_missing_content(self.lacking, "the command does not fail there as it should")
            return self._assemble_result(None, "not_reproduced", None)
        self.notes += self.lacking
        limit = SearchLimit(self.job.max_tests, self._compute_deadline())
        return self._search_range(broken, limit)

    def keep_culprit(self, found: Bisection, keep: KeepCapsule) -> Bisection:
        """The result with the command that repeats what was seen at the culprit."""
        wanted: CapsuleOutcome = "pass" if self.job.find_fix else "fail"
        runs = (
            self.log.runs_at(found.culprit.sha)
            if found.outcome == "found" and found.culprit
            else []
        )
        seen = [run for run in runs if run.ran == wanted and not run.elsewhere]
        if not seen or found.culprit is None or self.job.slower is not None:
            return found
        expected = ExpectedOutcome(wanted, len(seen), len(runs), seen[-1].signature)
        try:
            capsule = make_capsule(
                "bisect",
                self.runner.trial,
                found.culprit.sha,
                expected,
                git=self.git,
                sandbox=self.sandbox,
            )
        except UserError as error:
            self.say(f"no capsule was made: {error}")
            return found
        return replace(found, repeat=keep(capsule) or None)

    def stop_at_limit(self) -> Bisection:
        """The result so far, where a setup or a run was killed because the time was over."""
        self.notes.append(STOPPED_AT_LIMIT)
        outcome: BisectionOutcome = "undecided" if self.is_reproduced else "not_reproduced"
        return self._assemble_result(self.session, outcome, None)

    def _open_session(self, broken: str, good: str | None, limit: SearchLimit) -> BisectSession:
        self.is_reproduced = True
        session = BisectSession(
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
        session.open_range(good, self.ends.bad, limit)
        self.session = session
        works = broken != self.ends.bad or session.last_outcome_at(session.good) in {None, "pass"}
        if not works:
            refuse_missing_content(
                self.lacking, f"the command does not pass at {(session.good or '')[:12]}"
            )
        return session

    def _make_timed_runner(self, threshold: float) -> CommitRunner:
        """A runner that compares a commit's time with that of the fast end."""
        fast = self.ends.bad if self.job.find_fix else self.ends.good
        if fast is None:
            raise UserError("--slower needs --good: the commit whose time is the measure")
        return PairedRunner(self.plain, fast, threshold)

    def _reproduce_failure(self, broken: str) -> bool:
        """Run the bad end until it fails, and record the failure's signature."""
        while True:
            runs = self.log.runs_at(broken)
            failures = [run for run in runs if self.judge(run)[0] == "fail"]
            if failures:
                for run in failures:
                    self.judge = self.judge.with_example(run)
                return True
            allowed = min(_MAX_BAD_RUNS, self.job.max_tests or _MAX_BAD_RUNS)
            hopeless = any(self.judge(run)[0] == "untestable" for run in runs)
            if hopeless or len(runs) >= allowed or time.monotonic() > self._compute_deadline():
                reasons = "; ".join(sorted({self.judge(run)[1] for run in runs}))
                self.notes.append(f"{broken[:12]} failed in 0 of {len(runs)} runs: {reasons}")
                return False
            run = self.log.record_run(self.runner(broken))
            outcome, reason = self.judge(run)
            self.say(f"bad commit {broken[:12]}: {outcome} ({reason}), {run.seconds:.1f} s")

    def _search_range(self, broken: str, limit: SearchLimit) -> Bisection:
        session = self._open_session(broken, self.log.since or self.ends.good, limit)
        for _ in range(_MAX_CONTRADICTIONS):
            outcome = session.run_search(limit)
            if session.mended is not None:
                self.notes.append(
                    f"an earlier fault that looks the same was repaired at or before {session.mended[:12]}"
                )
                session = self._open_later_session(session.mended, broken, limit)
                continue
            if outcome != "found" or not self.job.verify:
                return self._assemble_result(session, outcome, None)
            if limit.is_used_up(0):
                self.notes.append("no time left to prove it")
                sure = session.is_sure_of(session.state.likeliest_commit()[0])
                return self._assemble_result(
                    session, outcome if sure else session.find_unclear_outcome(), None
                )
            self.say("found; proving it")
            proof = self._prove_culprit(session)
            if not proof.holds:
                self.say("the proof does not bear it out; searching on")
                self.notes += [proof.verified.detail] if proof.verified.detail else []
                self.log.record_failed_proof()
                continue
            if proof.since is not None and proof.since.mended is not None:
                for run in proof.since.runs:
                    self.log.record_run(run)
                culprit, mended = (
                    session.commit_at(session.state.likeliest_commit()[0]),
                    proof.since.mended,
                )
                self.notes.append(f"{culprit[:12]} broke it as well, but {mended[:12]} works again")
                session = self._open_later_session(mended, broken, limit)
                continue
            if self.job.slower is None:
                self.log.save_rate_history(
                    count_outcomes(session, session.state.likeliest_commit()[0])
                )
            dependency = self._find_dependency(session)  # its runs and notes belong to the result
            result = self._assemble_result(session, outcome, proof.verified)
            return replace(result, dependency=dependency)
        return self._assemble_result(session, "undecided", None)

    def _open_later_session(self, mended: str, broken: str, limit: SearchLimit) -> BisectSession:
        """Continue from a passing commit: what failed before it is another fault."""
        self.log.begin_at(mended)
        self.say(f"searching from {mended[:12]}")
        return self._open_session(broken, mended, limit)

    def _prove_culprit(self, session: BisectSession) -> CulpritProof:
        culprit, _ = session.state.likeliest_commit()
        assert culprit != BEFORE_RANGE  # noqa: S101 - `found` names a commit
        return prove_culprit(session, culprit, git=self.git, runner=self.runner, bad=self.ends.bad)

    def _find_dependency(self, session: BisectSession) -> BlamedDependency | None:
        """Which upgrade is to blame, if the culprit only changed versions."""
        sha = session.commit_at(session.state.likeliest_commit()[0])
        paths = self.git.changed_paths(sha)
        source = [
            p for p in changed_source_paths(self.git, sha) if not lock_edits.is_matching_manifest(p)
        ]
        moved = [path for path in paths if lock_edits.pins_versions(path)]
        parent = self.git.commit(sha).parents[:1]
        if source or not moved or not parent or self.job.find_fix or self.job.slower is not None:
            return None
        for path in moved:
            old, new = (self.git.show(rev, path) for rev in (parent[0], sha))
            if old is None or new is None:
                continue
            self.say(f"it only moved versions in {path}; looking for the package")
            try:
                blamed = find_blamed_upgrade(
                    self.plain.trial,
                    path,
                    old.decode("utf-8", "replace"),
                    new.decode("utf-8", "replace"),
                    run=lambda trial: self._run_package_trial(trial, sha),
                    judge=session.judge,
                )
            except AnalysisFailed as error:
                self.notes.append(f"{path} could not be read: {error}")
                continue
            if blamed.upgrade is not None:
                upgrade = blamed.upgrade
                return BlamedDependency(
                    path, upgrade.name, upgrade.old, upgrade.new, blamed.probability, blamed.tests
                )
        self.notes.append(self._explain_no_package(moved))
        return None

    def _run_package_trial(self, trial: Trial, sha: str) -> CommitRun:
        run = replace(self.plain, trial=trial)(sha)
        self.log.list_later_runs("package", [run])
        return run

    def _explain_no_package(self, moved: list[str]) -> str:
        """Explain why no package is blamed, and what that would need."""
        files = ", ".join(moved)
        if self.plain.trial.setup is None:
            return f"which package of {files} is unknown: nothing installs from it; say so with --setup"
        return f"no single package of {files} is to blame, or they cannot be installed one by one"

    def _assemble_result(
        self,
        session: BisectSession | None,
        outcome: BisectionOutcome,
        verified: CulpritVerification | None,
    ) -> Bisection:
        tried = [run.sha for run in self.log.runs]
        for path in self.job.trial.carried:
            lacking = sum(self.git.tree_id(sha, path) is None for sha in dict.fromkeys(tried))
            if lacking:
                self.notes.append(
                    f"{path} is newer than {lacking} of the commits tried: its text at {self.ends.bad[:12]} was used there"
                )
        result = report.assemble_bisection(
            session,
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
            result,
            command=self.job.trial.command_line,
            python=self.log.python,
            find_fix=self.job.find_fix,
            slower=self.job.slower,
        )

    def _compute_deadline(self) -> float:
        if self.job.max_minutes is None:
            return float("inf")
        return self.started + 60 * self.job.max_minutes


# Tests newer than the history: commits without a test run its text from the newer end.

_UPGRADE_CONFIDENCE = 0.99
_MAX_UPGRADE_RUNS = 60
_MAX_FILES = 20
_MAX_BYTES = 1024 * 1024
_WORD_PATTERN = re.compile(r"[A-Za-z0-9_./-]{1,300}")


def carry_tests_back(trial: Trial, newest: str, git: Git) -> Trial:
    """The trial with the tests that its command names, as they are at `newest`, for commits without them.

    Only tests are carried: newer program code may be what broke. A command names a file by its path (with or without
    `::test`), or a Python module by its dotted name.
    """
    files = {e.path for e in git.tree(newest) if e.mode.startswith("100")}
    tests: dict[str, bytes] = {}
    for word in _WORD_PATTERN.findall(" ".join(trial.command)):
        path = word.removeprefix("./")
        for name in (path, *find_test_files(path)):
            if name in files and (is_test(name) or is_document(name)) and len(tests) < _MAX_FILES:
                data = git.show(newest, name, limit=_MAX_BYTES)
                if data is not None and name not in trial.overlay:
                    tests[name] = data
                break
    return replace(trial, carried=tests) if tests else trial


# Which upgraded package broke it, if a commit only changed versions: bisection over the upgrades.
#
# The upgrades between two lock files form a line, like commits: "the first j are done". The search is the same.


@dataclass(frozen=True, slots=True)
class BlamedUpgrade:
    """The upgrade to blame, its probability, and the number of runs."""

    upgrade: PackageUpgrade | None
    probability: float
    tests: int


def find_blamed_upgrade(
    trial: Trial,
    path: str,
    old: str,
    new: str,
    *,
    run: Callable[[Trial], CommitRun],
    judge: FailureJudge,
) -> BlamedUpgrade:
    """Find the upgrade by running one commit with its pinned versions changed step by step.

    Args:
        trial: the command; its setup installs what `path` pins.
        path: the file that pins the versions.
        old: its content at which the command passes.
        new: its content at which the command fails.
        run: runs a trial at the failing commit.
        judge: distinguishes the wanted failure from others.

    Raises:
        AnalysisFailed: the files could not be read within the limits.
    """
    changes = run_in_child(find_upgrades, path, old, new)
    if len(changes) < 2:
        return BlamedUpgrade(changes[0] if changes else None, 1.0 if changes else 0.0, 0)
    search = CulpritSearch(linear_graph(len(changes)))
    barred: set[int] = set()
    tests = 0
    while tests < _MAX_UPGRADE_RUNS:
        best, probability = search.likeliest_commit()
        if calibrate_probability(probability) >= _UPGRADE_CONFIDENCE:
            return BlamedUpgrade(changes[best], calibrate_probability(probability), tests)
        if search.none + search.before >= _UPGRADE_CONFIDENCE:
            break
        points = search.next_batch(barred=barred)
        if not points:
            break
        done = points[0] - BEFORE_RANGE
        content = run_in_child(apply_first_upgrades, path, old, new, done)
        overlay = {**trial.overlay, path: content.encode()}
        outcome, _ = judge(run(replace(trial, overlay=overlay)))
        tests += 1
        if outcome in {"pass", "fail"}:
            search.observe_outcome(points[0], failed=outcome == "fail")
        else:
            barred.add(points[0])
    return BlamedUpgrade(None, calibrate_probability(search.likeliest_commit()[1]), tests)
