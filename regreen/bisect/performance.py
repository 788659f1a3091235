"""Slowness as a failure: a commit fails when it runs slower than the good end by more than a threshold.

The two are timed in turns, in fresh boxes on the same machine, so that its load falls on both.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from regreen.bisect.memory import Ran, Run
from regreen.bisect.runner import Runner
from regreen.bisect.signature import Signature

SLOWER = "Slower"
PAIRS = 3


class Paired:
    """A runner that times a commit against a reference.

    Args:
        runner: runs the command at a commit.
        reference: the commit that is fast.
        threshold: how many times slower counts as a failure (1.5: half as long again).
        pairs: how many times each is run for one verdict.
    """

    def __init__(
        self, runner: Runner, reference: str, threshold: float, pairs: int = PAIRS
    ) -> None:
        self._runner, self._reference = runner, reference
        self._threshold, self._pairs = threshold, pairs
        self.trial = runner.trial
        self.environments = runner.environments

    def __call__(self, sha: str) -> Run:
        """One verdict: "fail" where the median run is slower than the reference's by more than the threshold."""
        times: dict[str, list[float]] = {"here": [], "there": []}
        spent = 0.0
        last: Run | None = None
        for _ in range(self._pairs):
            for name, commit in (("there", self._reference), ("here", sha)):
                run = self._runner(commit)
                spent += run.seconds
                if run.ran != "pass":
                    reason = f"cannot be timed: {run.reason}"
                    ran: Ran = "infra" if run.ran == "infra" else "untestable"
                    return replace(
                        run, sha=sha, ran=ran, signature=None, seconds=spent, reason=reason
                    )
                times[name].append(run.inside)
                last = run
        assert last is not None  # noqa: S101 - there is at least one pair
        ratio = median(times["here"]) / max(1e-3, median(times["there"]))
        slow = ratio > self._threshold
        reason = f"{ratio:.2f} times the time of {self._reference[:12]}"
        seen = Signature("exit", 0, kind=SLOWER) if slow else None
        return replace(
            last, sha=sha, ran="fail" if slow else "pass", signature=seen, seconds=spent, reason=reason
        )  # fmt: skip

    def explore(self, sha: str) -> Run:
        """The same: a time taken in a used box would be no measure."""
        return self(sha)

    def expect(self, sha: str) -> None:
        """Nothing is opened ahead: it would take time from what is measured."""
