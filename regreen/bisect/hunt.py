"""The search at work: asks the core what to test, tests it, tells the core, until it is sure or must stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field

from regreen.bisect.endpoints import refuse_gaps
from regreen.bisect.experience import learned
from regreen.bisect.graph import BEFORE, Graph, graph
from regreen.bisect.log import Log
from regreen.bisect.memory import Run
from regreen.bisect.price import build_cost, prices
from regreen.bisect.rates import to_be_proved
from regreen.bisect.result import Outcome, Seen, Step
from regreen.bisect.runner import Judge, Runs
from regreen.bisect.search import Search, calibrated
from regreen.errors import OutsideError
from regreen.models import Commit
from regreen.pool import Pool
from regreen.ports import Git

NOWHERE = 0.95
"""Probability at which "nothing here broke it" or "it was broken before" is the answer."""

_NEAR = 0.7  # so sure of one commit, the next run will most likely be one of its proof
_WORTH_PROVING = 0.95  # the runs of a proof tell more than any other test could, so it begins early
_SECOND_CHANCES = 3
_SUSPECT = 10.0  # so much likelier is a commit that touches a file of the traceback
_PATIENCE = 12  # so many untestable commits in a row, and what is left is one stretch of them
_ALWAYS = 5  # so many runs alike at one commit are no chance
_ENOUGH = 400  # runs of the search, whatever the limits: it is not going to end
_COLUMNS = 120  # of a picture
_TROUBLE = 3  # so many runs in a row that the sandbox failed end the bisection


@dataclass(frozen=True, slots=True)
class Stop:
    """What the search may use: runs, and the time (of the monotonic clock) when it ends."""

    tests: int | None = None
    deadline: float = float("inf")

    def passed(self, tests: int) -> bool:
        """Whether either is used up."""
        return time.monotonic() >= self.deadline or (self.tests is not None and tests >= self.tests)


@dataclass(frozen=True, slots=True)
class View:
    """What somebody who watches may see: it is as uncertain as among `left` commits, `remaining` is in seconds."""

    tests: int
    left: int
    best: str | None
    probability: float
    bars: tuple[float, ...]
    seconds: float
    remaining: float


@dataclass
class Hunt:
    """One search over one range. Call `open`, then `search`; `search` again after more was recorded."""

    git: Git
    runner: Runs
    log: Log
    judge: Judge
    broken: str
    first_parent: bool
    find_fix: bool
    jobs: int
    confidence: float
    say: Callable[[str], None]
    watch: Callable[[View], None] | None
    started: float
    verify: bool = True
    commits: tuple[Commit, ...] = ()
    good: str | None = None
    rounds: int = 0
    barred: set[int] = field(default_factory=set)
    searched: int = 0
    mended: str | None = None
    narrowing: list[Step] = field(default_factory=list)

    def open(self, good: str | None, bad: str, limit: Stop) -> None:
        """Fix the range (going back from `bad` where no good commit is known) and test its good end."""
        self.good = good if good is not None else self._go_back(bad, limit)
        if good is None:
            refuse_gaps(self.good, bad, self.git)
        self.commits = tuple(self.git.commits(self.good, bad, first_parent=self.first_parent))
        self.history: Graph = graph(self.commits, first_parent=self.first_parent)
        self._trunk = frozenset(self.history.trunk)
        self.log.know(self.commits)
        if self.good is not None:
            self.log.know([self.git.commit(self.good)])
        self._strangers = self._apart() if self.log.since is not None else frozenset()
        self.weights = self._suspicion(self._weights(), bad)
        self._rebuild()
        if self.good is not None and not self.log.at(self.good) and not limit.passed(self.tests):
            self._take(self.log.record(self.runner(self.good)))

    @property
    def tests(self) -> int:
        """Runs of the search so far, the ends of the range included."""
        return len(self.log.runs)

    def sha(self, point: int) -> str:
        """The commit that stands for a point; the good end for `BEFORE`."""
        return self.good or "" if point == BEFORE else self.history.shas[point]

    def point(self, sha: str) -> int:
        """Where a commit stands; whatever is older than the range is `BEFORE`."""
        return self.history.index.get(sha, BEFORE)

    # --- the range -----------------------------------------------------------------------------

    def _go_back(self, bad: str, limit: Stop) -> str | None:
        """The first commit that passes, 1, 2, 4, ... first parents back; None where all that is old fails."""
        trunk = [commit.sha for commit in self.git.commits(None, bad, first_parent=True)]
        self.say(f"no good commit given; going back through {len(trunk)} first parents")
        known = [at for at, sha in enumerate(trunk[:-1]) if self.log.is_known_good(sha)]
        step = 1
        while not limit.passed(self.tests):
            at = max(0, len(trunk) - 1 - step)
            if known and at <= known[-1]:
                self.say(f"{trunk[known[-1]][:12]} passed in CI")
                return trunk[known[-1]]
            runs = self.log.at(trunk[at]) or [self.log.record(self._explore(trunk[at]))]
            outcome, reason = self.judge(runs[0])
            self.say(f"{trunk[at][:12]} {outcome} ({reason}), {step} back")
            if outcome == "pass":
                return trunk[at]
            if at == 0:
                return None
            step *= 2
        return None

    def _weights(self) -> list[float]:
        """1 for each commit, 0 for those whose tree is a parent's: they change nothing.

        Where no good commit is known the oldest has 0 too: if it fails, it never worked, and nothing broke it.
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

    def _apart(self) -> frozenset[int]:
        """Commits that do not descend from the good end: where that mended another fault, they may still have it."""
        heirs = {self.good}
        for commit in self.commits:
            if heirs.intersection(commit.parents):
                heirs.add(commit.sha)
        return frozenset(at for at, commit in enumerate(self.commits) if commit.sha not in heirs)

    def _suspicion(self, weights: list[float], bad: str) -> list[float]:
        """More for commits that touch a file the failure's traceback goes through."""
        overlay = self.runner.trial.overlay
        paths = [p for seen in self.judge.wanted for p in seen.paths if p not in overlay]
        if not paths:
            return weights
        touching = self.git.touching(self.good, bad, paths)
        return [
            weight * (_SUSPECT if commit.sha in touching else 1)
            for weight, commit in zip(weights, self.commits, strict=True)
        ]

    # --- what was seen -------------------------------------------------------------------------

    def outcome(self, run: Run) -> tuple[Seen, str]:
        """What a run counts as, and why."""
        return self.judge(run)

    def outcome_at(self, sha: str | None) -> Seen | None:
        """What the last run at a commit counts as; None where there was none."""
        runs = self.log.at(sha) if sha is not None else []
        return self.judge(runs[-1])[0] if runs else None

    def _rebuild(self) -> None:
        """The state is what the runs say and nothing else."""
        rates = learned(self.log.past)
        if self.verify:
            rates = to_be_proved(rates)
        self.state = Search(self.history, weights=self.weights, rates=rates)
        self.barred = {
            at
            for at, weight in enumerate(self.weights)
            if weight == 0 and at != len(self.commits) - 1
        }
        if self.good is None:
            self.barred.discard(self.history.trunk[0])
        self.barred |= self._strangers
        for run in self.log.reused:
            self._count(run)
        self.narrowing = []
        for run in self.log.runs:
            self._count(run)
            self._note(run, self.view())

    def _note(self, run: Run, view: View) -> None:
        """Keep what is believed after a run, for whoever wants to see how the search narrowed."""
        size = -(-len(view.bars) // _COLUMNS)
        columns = (sum(view.bars[at : at + size]) for at in range(0, len(view.bars), size))
        rounded = tuple(round(mass, 3) for mass in columns)
        seen = self.judge(run)[0]
        self.narrowing.append(
            Step(run.sha, seen, view.best, round(view.probability, 4), view.left, rounded)
        )

    def _count(self, run: Run) -> None:
        outcome, _ = self.judge(run)
        point = self.point(run.sha)
        is_outside = point == BEFORE and run.sha != self.good
        if (self.log.since is not None and is_outside) or point in self._strangers:
            return  # another fault, that was mended since
        if outcome == "untestable" and point != BEFORE:
            if not run.elsewhere:
                self.barred.add(point)
        elif outcome in {"pass", "fail"}:
            if point != BEFORE and self.weights[point] > 0:
                self.barred.discard(point)
            self.state.observe(point, failed=(outcome == "fail") != self.find_fix)

    def _take(self, run: Run) -> None:
        """Take a run that the log has just recorded into account, and show it."""
        learned = self.judge.learn(run) if run.sha == self.broken else self.judge
        if learned != self.judge:
            self.judge = learned
            self._rebuild()
            view = self.view()
        else:
            self._count(run)
            view = self.view()
            self._note(run, view)
        outcome, reason = self.judge(run)
        best = (
            f"{view.best[:12]} {view.probability:.0%}"
            if view.best
            else f"elsewhere {view.probability:.0%}"
        )
        self.say(
            f"{self.tests}. {run.sha[:12]} {outcome} ({reason}) {run.seconds:.1f} s; "
            f"about {view.left} of {len(self.commits)} commits left, likeliest {best}"
        )
        if self.watch:
            self.watch(view)

    def weigh(self, runs: Iterable[Run]) -> None:
        """Let the runs of a proof say what they say of the culprit, without counting them as tests."""
        for run in runs:
            self._count(run)

    def add(self, runs: Iterable[Run]) -> None:
        """Count runs that were made to prove a culprit and did not."""
        for run in runs:
            self._take(self.log.record(run))

    # --- the search ----------------------------------------------------------------------------

    def search(self, limit: Stop) -> Outcome:
        """Test until the answer is clear, or the limit is reached."""
        with Pool(max(1, self.jobs)) as pool:
            flying: dict[Future[Run], tuple[int, int]] = {}
            try:
                return self._loop(pool, flying, limit)
            finally:
                for future in flying:
                    future.cancel()

    def _loop(self, pool: Pool, flying: dict[Future[Run], tuple[int, int]], limit: Stop) -> Outcome:
        trouble, depth, useless = 0, self.rounds, 0
        while True:
            answer = self.answer()
            again = self._second_chance() if answer == "narrowed" and not flying else []
            if answer is not None and (not again or limit.passed(self.tests)):
                return answer
            if limit.passed(self.tests + len(flying)) and not flying:
                return self.unsure()
            if useless >= _PATIENCE and not flying:
                return "narrowed"
            self.mended = self._mended()
            if not flying and (self.mended is not None or self.searched >= _ENOUGH):
                return self.unsure()
            for point in again or self._choose(flying, limit):
                flying[pool.submit(self._explore, self.sha(point))] = (point, depth + 1)
            if not flying:
                return "narrowed"
            self._expect_proof()
            done, _ = wait(flying, return_when=FIRST_COMPLETED)
            for future in done:
                _, at_depth = flying.pop(future)
                depth = self.rounds = max(depth, at_depth)
                run = self.log.record(future.result())
                self.searched += 1
                self._take(run)
                trouble = trouble + 1 if run.ran == "infra" else 0
                useless = useless + 1 if self.judge(run)[0] == "untestable" else 0
                if trouble >= _TROUBLE:
                    message = f"the sandbox keeps failing: {run.reason}"
                    raise OutsideError(message)

    def _mended(self) -> str | None:
        """The newest commit that always passes although it contains one that always fails: one culprit explains no such."""
        counts: dict[int, list[int]] = {}
        for run in self.log.runs:
            outcome, point = self.judge(run)[0], self.point(run.sha)
            if outcome in {"pass", "fail"} and point != BEFORE:
                failed = (outcome == "fail") != self.find_fix
                counts.setdefault(point, [0, 0])[failed] += 1
        works = [at for at, (passed, failed) in counts.items() if passed >= _ALWAYS and not failed]
        fails = [at for at, (passed, failed) in counts.items() if failed >= _ALWAYS and not passed]
        contains = self.history.contains
        found = [at for at in works if any(at != one and contains[at] >> one & 1 for one in fails)]
        return self.history.shas[max(found)] if found else None

    def _explore(self, sha: str) -> Run:
        """A run for the search. A failure unlike the one looked for is seen in a fresh box before it is believed."""
        run = self.runner.explore(sha)
        if run.used and run.ran == "fail" and self.judge(run)[0] == "untestable":
            return self.runner(sha)
        return run

    def _expect_proof(self) -> None:
        """Near the end: the boxes that will be needed to prove the likeliest commit."""
        best, probability = self.state.best()
        if self.verify and probability > _NEAR:
            self.runner.expect(self.sha(best))
            for parent in self.commits[best].parents[:1]:
                self.runner.expect(parent)

    def _choose(self, flying: dict[Future[Run], tuple[int, int]], limit: Stop) -> list[int]:
        free = self.jobs - len(flying)
        if limit.tests is not None:
            free = min(free, limit.tests - self.tests - len(flying))
        if free <= 0 or limit.passed(self.tests + len(flying)):
            return []
        barred = self.barred if self.good is not None else self.barred | {BEFORE}
        return self.state.next_batch(
            free,
            cost=self._cost(),
            in_flight=[point for point, _ in flying.values()],
            barred=barred,
        )

    def answer(self) -> Outcome | None:
        """The outcome, once it is clear."""
        nowhere = self.state.none + self.state.before
        if nowhere >= NOWHERE:
            return "before" if self.state.before >= self.state.none else "none"
        _, probability = self.state.best()
        if calibrated(probability) >= self._enough():
            return "found"
        return "narrowed" if self._is_inseparable() else None

    def _enough(self) -> float:
        """How sure the search must be: less where a proof follows, which makes up for it."""
        if self.verify and not self.log.doubted:
            return min(self.confidence, _WORTH_PROVING)
        return self.confidence

    def is_sure_of(self, culprit: int) -> bool:
        """Whether this commit is blamed with the confidence that was asked for."""
        best, probability = self.state.best()
        return best == culprit and calibrated(probability) >= self.confidence

    def unsure(self) -> Outcome:
        """What can be said where the answer is not clear."""
        left = len(self.state.credible(self.confidence))
        return "narrowed" if 0 < left <= len(self.commits) // 2 else "undecided"

    def _is_inseparable(self) -> bool:
        """Whether the likeliest commits are so likely, and no test can tell them apart."""
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

    def _second_chance(self) -> list[int]:
        """A commit that could not be tested and hides the answer; once more, for what went wrong may have passed."""
        mask, _ = self.state.likeliest_group()
        hiding = [at for at in sorted(self.barred) if mask >> at & 1 and self.weights[at] > 0]
        once = [at for at in hiding if len(self.log.at(self.sha(at))) == 1]
        tried = len(hiding) - len(once)
        return once[len(once) // 2 :][:1] if tried < _SECOND_CHANCES else []

    def _cost(self) -> Callable[[int], float]:
        runs = [*self.log.reused, *self.log.runs]
        counted = {self.point(r.sha) for r in runs if self.judge(r)[0] in {"pass", "fail"}}
        return prices(
            tried={self.point(run.sha) for run in self.log.runs},
            testable=counted,
            untestable={at for at in self.barred if self.weights[at] > 0} - counted,
            trunk=self._trunk,
            build=build_cost(self.log.runs) if self.runner.trial.setup else 0.0,
        )

    def view(self) -> View:
        """The state as somebody may look at it."""
        best, probability = self.state.best()
        nowhere = self.state.none + self.state.before
        posterior = self.state.posterior()
        left = round(2 ** self.state.entropy())
        durations = [run.seconds for run in self.log.runs]
        needed = self.state.entropy() + (1 if probability < self.confidence else 0)
        return View(
            self.tests,
            max(1, min(left, len(self.commits))),
            None if nowhere > probability or best == BEFORE else self.history.shas[best],
            calibrated(max(probability, nowhere)),
            tuple(posterior),
            time.monotonic() - self.started,
            needed * _mean(durations) / max(1, self.jobs),
        )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
