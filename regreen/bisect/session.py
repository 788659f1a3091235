"""The search loop: choose a test, run it, update the posterior, until the answer is certain or a limit is reached."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field

from regreen.bisect.commit_graph import (
    BEFORE_RANGE,
    CommitGraph,
    build_graph,
    refuse_incomplete_clone,
)
from regreen.bisect.commit_runner import CommitRunner, FailureJudge
from regreen.bisect.posterior import learn_prior, soften_doubt_for_proof
from regreen.bisect.result import BisectionOutcome, RunOutcome, SearchStep
from regreen.bisect.run_log import RunLog
from regreen.bisect.search import CulpritSearch, calibrate_probability
from regreen.bisect.verdict_memory import CommitRun
from regreen.domain.errors import OutsideError
from regreen.domain.job_control import ContextThreadPool
from regreen.domain.models import Commit
from regreen.domain.ports import Git
from regreen.secrets.markdown_sanitizer import count_noun

NO_CULPRIT_PROBABILITY = 0.95
"""Probability at which "nothing here broke it" or "it was broken before" is the answer."""

_PROOF_AHEAD_PROBABILITY = (
    0.7  # from this probability on, the next run is most likely one of the commit's proof
)
_WORTH_PROVING = (
    0.95  # the runs of a proof tell more than any other test, so the proof begins early
)
_MAX_RETRIES = 3
_TRACEBACK_FACTOR = 10.0  # the prior odds of a commit that touches a file of the traceback
_MAX_UNTESTABLE_RUNS = (
    12  # after this many untestable commits in a row, the rest is one untestable stretch
)
_MIN_CONSISTENT_RUNS = 5  # this many equal runs at one commit are no chance
_MAX_SEARCH_RUNS = 400  # runs of the search, whatever the limits: it will not end otherwise
_PLOT_COLUMNS = 120  # of the picture
_MAX_SANDBOX_FAILURES = 3  # this many sandbox failures in a row end the bisection


@dataclass(frozen=True, slots=True)
class SearchLimit:
    """The limits of the search: runs, and its end on the monotonic clock in seconds."""

    tests: int | None = None
    deadline: float = float("inf")

    def is_used_up(self, tests: int) -> bool:
        """Whether a limit is reached."""
        return time.monotonic() >= self.deadline or (self.tests is not None and tests >= self.tests)


@dataclass(frozen=True, slots=True)
class _RunningTest:
    """A test of a commit that has not ended: the commit's index, and after how many rounds it was begun."""

    point: int
    depth: int


@dataclass(frozen=True, slots=True)
class SearchView:
    """The state for an observer: uncertainty as of `left` equal commits, `remaining` in seconds."""

    tests: int
    left: int
    best: str | None
    probability: float
    bars: tuple[float, ...]
    seconds: float
    remaining: float


@dataclass
class BisectSession:
    """One search over one range. Call `open`, then `search`; call `search` again after further runs were recorded."""

    git: Git
    runner: CommitRunner
    log: RunLog
    judge: FailureJudge
    broken: str
    first_parent: bool
    find_fix: bool
    jobs: int
    confidence: float
    say: Callable[[str], None]
    watch: Callable[[SearchView], None] | None
    started: float
    verify: bool = True
    commits: tuple[Commit, ...] = ()
    good: str | None = None
    rounds: int = 0
    barred: set[int] = field(default_factory=set)
    searched: int = 0
    mended: str | None = None
    narrowing: list[SearchStep] = field(default_factory=list)

    def open_range(self, good: str | None, bad: str, limit: SearchLimit) -> None:
        """Fix the range (going back from `bad` if no good commit is known) and test its good end."""
        self.good = good if good is not None else self._go_back(bad, limit)
        if good is None:
            refuse_incomplete_clone(self.good, bad, self.git)
        self.commits = tuple(self.git.commits(self.good, bad, first_parent=self.first_parent))
        self.history: CommitGraph = build_graph(self.commits, first_parent=self.first_parent)
        self._trunk = frozenset(self.history.trunk)
        self.log.load_verdicts(self.commits)
        if self.good is not None:
            self.log.load_verdicts([self.git.commit(self.good)])
        self._strangers = self._unrelated_commits() if self.log.since is not None else frozenset()
        self.weights = self._weigh_suspects(self._commit_weights(), bad)
        self._rebuild_state()
        if (
            self.good is not None
            and not self.log.runs_at(self.good)
            and not limit.is_used_up(self.tests)
        ):
            self._apply_run(self.log.record_run(self.runner(self.good)))

    @property
    def tests(self) -> int:
        """The number of runs of the search so far, including the ends of the range."""
        return len(self.log.runs)

    def commit_at(self, point: int) -> str:
        """The commit of a point; the good end for `BEFORE`."""
        return self.good or "" if point == BEFORE_RANGE else self.history.shas[point]

    def point_at(self, sha: str) -> int:
        """The index of a commit; `BEFORE` for commits older than the range."""
        return self.history.index.get(sha, BEFORE_RANGE)

    # --- the range -----------------------------------------------------------------------------

    def _go_back(self, bad: str, limit: SearchLimit) -> str | None:
        """The first commit that passes, 1, 2, 4, ... first parents back; None if all old commits fail."""
        trunk = [commit.sha for commit in self.git.commits(None, bad, first_parent=True)]
        self.say(
            f"no good commit given: going back 1, 2, 4, ... of {len(trunk)} commits until one passes"
        )
        known = [at for at, sha in enumerate(trunk[:-1]) if self.log.is_known_good(sha)]
        step = 1
        while not limit.is_used_up(self.tests):
            at = max(0, len(trunk) - 1 - step)
            if known and at <= known[-1]:
                self.say(f"{trunk[known[-1]][:12]} passed in CI")
                return trunk[known[-1]]
            runs = self.log.runs_at(trunk[at]) or [
                self.log.record_run(self._explore_commit(trunk[at]))
            ]
            outcome, reason = self.judge(runs[0])
            verb = {"pass": "passes", "fail": "fails"}.get(outcome, "cannot be tested")
            self.say(f"{trunk[at][:12]} {verb} ({reason}), {count_noun(step, 'commit')} back")
            if outcome == "pass":
                return trunk[at]
            if at == 0:
                return None
            step *= 2
        return None

    def _commit_weights(self) -> list[float]:
        """1 for each commit, 0 for commits whose tree equals a parent's: they change nothing.

        If no good commit is known, the oldest has 0 too: if it fails, it never worked, and nothing broke it.
        """
        trees = {commit.sha: commit.tree for commit in self.commits}
        weights: list[float] = []
        for commit in self.commits:
            parents = commit.parents[:1] if self.first_parent else commit.parents
            for sha in parents:
                if sha not in trees:
                    trees[sha] = self.git.commit(sha).tree
            weights.append(0.0 if any(trees[sha] == commit.tree for sha in parents) else 1.0)
        if self.good is None:
            weights[self.history.trunk[0]] = 0.0
        if not any(weights):
            weights[-1] = 1.0
        return weights

    def _unrelated_commits(self) -> frozenset[int]:
        """Commits that do not descend from the good end: they may still have another fault that the good end fixed."""
        heirs = {self.good}
        for commit in self.commits:
            if heirs.intersection(commit.parents):
                heirs.add(commit.sha)
        return frozenset(at for at, commit in enumerate(self.commits) if commit.sha not in heirs)

    def _weigh_suspects(self, weights: list[float], bad: str) -> list[float]:
        """Larger weights for commits that touch a file of the failure's traceback."""
        overlay = self.runner.trial.overlay
        paths = [p for failure in self.judge.wanted for p in failure.paths if p not in overlay]
        if not paths:
            return weights
        touching = self.git.commits_touching(self.good, bad, paths)
        return [
            weight * (_TRACEBACK_FACTOR if commit.sha in touching else 1)
            for weight, commit in zip(weights, self.commits, strict=True)
        ]

    # --- observations --------------------------------------------------------------------------

    def classify_run(self, run: CommitRun) -> tuple[RunOutcome, str]:
        """The outcome of a run, and the reason."""
        return self.judge(run)

    def last_outcome_at(self, sha: str | None) -> RunOutcome | None:
        """The outcome of the last run at a commit; None without a run."""
        runs = self.log.runs_at(sha) if sha is not None else []
        return self.judge(runs[-1])[0] if runs else None

    def _rebuild_state(self) -> None:
        """Rebuild the state from the recorded runs alone."""
        rates = learn_prior(self.log.past)
        if self.verify:
            rates = soften_doubt_for_proof(rates)
        self.state = CulpritSearch(self.history, weights=self.weights, rates=rates)
        self.barred = {
            at
            for at, weight in enumerate(self.weights)
            if weight == 0 and at != len(self.commits) - 1
        }
        if self.good is None:
            self.barred.discard(self.history.trunk[0])
        self.barred |= self._strangers
        for run in self.log.reused:
            self._count_run(run)
        self.narrowing = []
        for run in self.log.runs:
            self._count_run(run)
            self._record_step(run, self.make_view())

    def _record_step(self, run: CommitRun, view: SearchView) -> None:
        """Record the posterior after a run, for the picture of how the search narrowed."""
        size = -(-len(view.bars) // _PLOT_COLUMNS)
        columns = (sum(view.bars[at : at + size]) for at in range(0, len(view.bars), size))
        rounded = tuple(round(mass, 3) for mass in columns)
        outcome = self.judge(run)[0]
        self.narrowing.append(
            SearchStep(run.sha, outcome, view.best, round(view.probability, 4), view.left, rounded)
        )

    def _count_run(self, run: CommitRun) -> None:
        outcome, _ = self.judge(run)
        point = self.point_at(run.sha)
        is_outside = point == BEFORE_RANGE and run.sha != self.good
        if (self.log.since is not None and is_outside) or point in self._strangers:
            return  # another fault, which was fixed since
        if outcome == "untestable" and point != BEFORE_RANGE:
            if not run.elsewhere:
                self.barred.add(point)
        elif outcome in {"pass", "fail"}:
            if point != BEFORE_RANGE and self.weights[point] > 0:
                self.barred.discard(point)
            self.state.observe_outcome(point, failed=(outcome == "fail") != self.find_fix)

    def _apply_run(self, run: CommitRun) -> None:
        """Update with a run that the log has just recorded, and notify the observer."""
        learned = self.judge.with_example(run) if run.sha == self.broken else self.judge
        if learned != self.judge:
            self.judge = learned
            self._rebuild_state()
            view = self.make_view()
        else:
            self._count_run(run)
            view = self.make_view()
            self._record_step(run, view)
        outcome, reason = self.judge(run)
        nowhere = "before them" if self.state.before >= self.state.none else "none of them"
        best = f"{view.best[:12] if view.best else nowhere} {view.probability:.0%}"
        self.say(
            f"{self.tests}. {run.sha[:12]} {outcome} ({reason}) {run.seconds:.1f} s; "
            f"about {view.left} of {len(self.commits)} commits left, likeliest {best}"
        )
        if self.watch:
            self.watch(view)

    def weigh_runs(self, runs: Iterable[CommitRun]) -> None:
        """Update with the runs of a proof without counting them as tests."""
        for run in runs:
            self._count_run(run)

    def store_weighed_runs(self, runs: Iterable[CommitRun]) -> None:
        """Store the runs of a proof that settled nothing: they count as tests, and the state has them already."""
        for run in runs:
            self._record_step(self.log.record_run(run), self.make_view())

    def count_runs(self, runs: Iterable[CommitRun]) -> None:
        """Count the runs of a proof that failed."""
        for run in runs:
            self._apply_run(self.log.record_run(run))

    # --- the search ----------------------------------------------------------------------------

    def run_search(self, limit: SearchLimit) -> BisectionOutcome:
        """Test until the answer is certain or a limit is reached."""
        with ContextThreadPool(max(1, self.jobs)) as pool:
            running: dict[Future[CommitRun], _RunningTest] = {}
            try:
                return self._search_loop(pool, running, limit)
            finally:
                for future in running:
                    future.cancel()

    def _search_loop(
        self,
        pool: ContextThreadPool,
        running: dict[Future[CommitRun], _RunningTest],
        limit: SearchLimit,
    ) -> BisectionOutcome:
        trouble, depth, useless = 0, self.rounds, 0
        while True:
            answer = self.find_outcome()
            again = self._find_retry() if answer == "narrowed" and not running else []
            if answer is not None and (not again or limit.is_used_up(self.tests)):
                return answer
            if limit.is_used_up(self.tests + len(running)) and not running:
                return self.find_unclear_outcome()
            if useless >= _MAX_UNTESTABLE_RUNS and not running:
                return "narrowed"
            self.mended = self._find_repaired_commit()
            if not running and (self.mended is not None or self.searched >= _MAX_SEARCH_RUNS):
                return self.find_unclear_outcome()
            for point in again or self._choose_tests(running, limit):
                future = pool.submit(self._explore_commit, self.commit_at(point))
                running[future] = _RunningTest(point, depth + 1)
            if not running:
                return "narrowed"
            self._expect_proof()
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                depth = self.rounds = max(depth, running.pop(future).depth)
                run = self.log.record_run(future.result())
                self.searched += 1
                self._apply_run(run)
                trouble = trouble + 1 if run.ran == "infra" else 0
                useless = useless + 1 if self.judge(run)[0] == "untestable" else 0
                if trouble >= _MAX_SANDBOX_FAILURES:
                    message = f"the sandbox keeps failing: {run.reason}"
                    raise OutsideError(message)

    def _find_repaired_commit(self) -> str | None:
        """The newest commit that always passes although it contains one that always fails."""
        counts: dict[int, list[int]] = {}
        for run in self.log.runs:
            outcome, point = self.judge(run)[0], self.point_at(run.sha)
            if outcome in {"pass", "fail"} and point != BEFORE_RANGE:
                failed = (outcome == "fail") != self.find_fix
                counts.setdefault(point, [0, 0])[failed] += 1
        works = [
            at
            for at, (passed, failed) in counts.items()
            if passed >= _MIN_CONSISTENT_RUNS and not failed
        ]
        fails = [
            at
            for at, (passed, failed) in counts.items()
            if failed >= _MIN_CONSISTENT_RUNS and not passed
        ]
        contains = self.history.contains
        repaired = [
            at
            for at in works
            if any(at != broken and contains[at] >> broken & 1 for broken in fails)
        ]
        return self.history.shas[max(repaired)] if repaired else None

    def _explore_commit(self, sha: str) -> CommitRun:
        """A run for the search. An unexpected kind of failure is confirmed in a fresh box."""
        run = self.runner.explore_commit(sha)
        if run.used and run.ran == "fail" and self.judge(run)[0] == "untestable":
            return self.runner(sha)
        return run

    def _expect_proof(self) -> None:
        """Near the end, prepare the boxes for proving the likeliest commit."""
        best, probability = self.state.likeliest_commit()
        if self.verify and probability > _PROOF_AHEAD_PROBABILITY:
            self.runner.prepare_run(self.commit_at(best))
            for parent in self.commits[best].parents[:1]:
                self.runner.prepare_run(parent)

    def _choose_tests(
        self, running: dict[Future[CommitRun], _RunningTest], limit: SearchLimit
    ) -> list[int]:
        free = self.jobs - len(running)
        if limit.tests is not None:
            free = min(free, limit.tests - self.tests - len(running))
        if free <= 0 or limit.is_used_up(self.tests + len(running)):
            return []
        barred = self.barred if self.good is not None else self.barred | {BEFORE_RANGE}
        return self.state.next_batch(
            free,
            cost=self._make_cost_function(),
            in_flight=[test.point for test in running.values()],
            barred=barred,
        )

    def find_outcome(self) -> BisectionOutcome | None:
        """The outcome, once it is certain."""
        nowhere = self.state.none + self.state.before
        if nowhere >= NO_CULPRIT_PROBABILITY:
            return "before" if self.state.before >= self.state.none else "none"
        _, probability = self.state.likeliest_commit()
        if calibrate_probability(probability) >= self._required_confidence():
            return "found"
        return "narrowed" if self._is_inseparable() else None

    def _required_confidence(self) -> float:
        """The required confidence: lower if a proof follows, which makes up for the difference."""
        if self.verify and not self.log.doubted:
            return min(self.confidence, _WORTH_PROVING)
        return self.confidence

    def is_sure_of(self, culprit: int) -> bool:
        """Whether this commit is blamed with the requested confidence."""
        best, probability = self.state.likeliest_commit()
        return best == culprit and calibrate_probability(probability) >= self.confidence

    def find_unclear_outcome(self) -> BisectionOutcome:
        """The outcome when the answer is not certain."""
        left = len(self.state.credible_set(self.confidence))
        return "narrowed" if 0 < left <= len(self.commits) // 2 else "undecided"

    def _is_inseparable(self) -> bool:
        """Whether the likeliest commits reach the confidence together and no test can distinguish them."""
        if not self.barred:
            return False
        mask, mass = self.state.likeliest_group()
        if mass < self.confidence or mask.bit_count() == 1:
            return False
        return not any(
            0 != mask & self.history.contains[at] != mask
            for at in range(len(self.history))
            if at not in self.barred
        )

    def _find_retry(self) -> list[int]:
        """An untestable commit that hides the answer, to be tried once more: the obstacle may have been temporary."""
        mask, _ = self.state.likeliest_group()
        hiding = [at for at in sorted(self.barred) if mask >> at & 1 and self.weights[at] > 0]
        once = [at for at in hiding if len(self.log.runs_at(self.commit_at(at))) == 1]
        tried = len(hiding) - len(once)
        return once[len(once) // 2 :][:1] if tried < _MAX_RETRIES else []

    def _make_cost_function(self) -> Callable[[int], float]:
        runs = [*self.log.reused, *self.log.runs]
        counted = {self.point_at(r.sha) for r in runs if self.judge(r)[0] in {"pass", "fail"}}
        return make_cost_function(
            tried={self.point_at(run.sha) for run in self.log.runs},
            testable=counted,
            untestable={at for at in self.barred if self.weights[at] > 0} - counted,
            trunk=self._trunk,
            build=build_cost(self.log.runs) if self.runner.trial.setup else 0.0,
        )

    def make_view(self) -> SearchView:
        """The state for an observer."""
        best, probability = self.state.likeliest_commit()
        nowhere = max(self.state.none, self.state.before)  # apart, as the result states them
        posterior = self.state.commit_probabilities()
        left = round(2 ** self.state.entropy())
        durations = [run.seconds for run in self.log.runs]
        needed = self.state.entropy() + (1 if probability < self.confidence else 0)
        return SearchView(
            self.tests,
            max(1, min(left, len(self.commits))),
            None if nowhere > probability or best == BEFORE_RANGE else self.history.shas[best],
            calibrate_probability(max(probability, nowhere)),
            tuple(posterior),
            time.monotonic() - self.started,
            needed * _mean_value(durations) / max(1, self.jobs),
        )


def _mean_value(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


# The cost of a test at a commit, which the search weighs against its information.

_OFF_TRUNK = 1.1  # CI has tested the first parents, and one of them names the pull request
_MIN_TESTABLE_CHANCE = 0.04  # the chance that a commit between two untestable ones can be tested


def build_cost(runs: Sequence[CommitRun]) -> float:
    """The cost of a setup that is not prepared yet, in runs, as measured so far."""
    built: set[str] = set()
    first: list[float] = []
    again: list[float] = []
    for run in runs:
        (again if run.sha in built else first).append(run.seconds)
        built.add(run.sha)
    if not first or not again or not sum(again):
        return 0.0
    return max(0.0, (sum(first) / len(first)) / (sum(again) / len(again)) - 1)


def make_cost_function(
    *,
    tried: Collection[int],
    testable: Collection[int],
    untestable: Collection[int],
    trunk: Collection[int],
    build: float,
) -> Callable[[int], float]:
    """The cost of each point: a run and maybe a build, divided by the chance that the commit is testable.

    Untestable commits come in stretches: between a testable and an untestable one the chance falls gradually, so
    that the search halves its way to the edge instead of trying one commit after another.

    Args:
        tried: points that ran before; their setup is prepared.
        testable: points whose runs counted.
        untestable: points whose runs did not.
        trunk: the first parents.
        build: see `build_cost`.
    """
    known = sorted({*testable, *untestable})
    bad = frozenset(untestable)

    def price(point: int) -> float:
        paid = 1.0 + (0.0 if point in tried else build)
        if point != BEFORE_RANGE and point not in trunk:
            paid *= _OFF_TRUNK
        return paid / _testable_chance(point, known, bad) if bad else paid

    return price


def _testable_chance(point: int, known: Sequence[int], bad: Collection[int]) -> float:
    """The chance that a commit is testable, by its nearest neighbours in the order of history."""
    at = bisect_left(known, point)
    if at < len(known) and known[at] == point:
        return _MIN_TESTABLE_CHANCE if point in bad else 1.0
    older = known[at - 1] if at else None
    newer = known[at] if at < len(known) else None
    if older is None or newer is None:
        nearest = older if newer is None else newer
        return 0.5 if nearest in bad else 1.0
    if (older in bad) == (newer in bad):
        return _MIN_TESTABLE_CHANCE if older in bad else 1.0
    failing, working = (older, newer) if older in bad else (newer, older)
    return max(_MIN_TESTABLE_CHANCE, abs(point - failing) / abs(working - failing))
