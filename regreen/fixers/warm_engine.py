"""The warm test engine: runs many candidates against the same tests with one collection.

With a plain pytest command, pytest collects once in a box, and each candidate costs a fork that swaps the changed
functions' code in; what cannot be swapped exactly runs in a new pytest there. Any other command is run as it
is, candidate after candidate, in one warm box. Its verdicts only guide a search: a patch is verified in fresh boxes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from regreen.domain.errors import AnalysisFailed
from regreen.domain.models import RunResult
from regreen.domain.ports import Box
from regreen.fixers.case import RepairCase
from regreen.fixers.workspace import read_original
from regreen.isolation import run_in_child
from regreen.languages.registry import find_warm_language
from regreen.runs.test_runs import read_seconds, trial_argv

Candidate = Mapping[str, str]
"""Changed files: path to new text."""

_ENGINE_FOLDER = ".regreen-engine"
_MOST_PASSING = 400
_PER_TEST = 5.0
_MIN_LIMIT_SECONDS = 0.1
_LIMIT_FACTOR = 5.0


TryMethod = Literal["swap", "fresh", "command", "untried"]
_METHOD_BY_WORD: dict[str, TryMethod] = {"swap": "swap", "untried": "untried"}


@dataclass(frozen=True, slots=True)
class CandidateVerdict:
    """The result of one candidate; `failed` names the first failing test, `cpu` is in seconds."""

    green: bool
    failed: tuple[str, ...] = ()
    how: TryMethod = "command"
    cpu: float = 0.0


@dataclass(frozen=True, slots=True)
class TimedTest:
    """How one test ends without a change, and its CPU seconds; `ended` is False if it was cut off."""

    outcome: str
    seconds: float
    ended: bool


class WarmEngine:
    """Tries candidates against the failing and the passing tests of a case."""

    def __init__(
        self, case: RepairCase, *, most_passing: int = _MOST_PASSING, exact: bool = False
    ) -> None:
        """`exact` runs a new pytest for every candidate: slow, and the reference for the fast verdicts."""
        self.exact = exact
        self.per_test: dict[str, float] = {"*": _PER_TEST}
        self.tried, self.cpu = 0, 0.0
        self.case = case
        self.failing = sorted(test for test, word in case.passing.items() if word == "failed")
        passing = [
            test
            for test, word in case.passing.items()
            if word == "passed" and test not in case.flaky
        ]
        self.passing = _sort_by_proximity(passing, self.failing)[:most_passing]
        language = find_warm_language(case.trial)
        self.driver = language.warm_driver if language is not None else None

    @property
    def is_warm(self) -> bool:
        """Whether candidates cost a fork only."""
        return self.driver is not None and bool(self.failing)

    def try_all(
        self,
        candidates: Sequence[Candidate],
        *,
        most_green: int = 0,
        as_long_again: bool = False,
        swaps_first: bool = False,
        seconds: float = 60.0,
    ) -> list[CandidateVerdict]:
        """The verdicts on the first candidates, as many as the time allows; with `most_green` up to so many green ones.

        With `as_long_again` the search ends when it has gone on after the first green one for as long as it took.
        With `swaps_first` the expensive candidates come last; those that were not reached are "untried".
        """
        seconds = min(seconds, self.case.stop.left)
        if not candidates or seconds <= 0:
            return []
        if self.is_warm:
            answer = self._run_driver(
                "candidates",
                candidates,
                seconds,
                most_green=most_green,
                as_long_again=as_long_again,
                swaps_first=swaps_first,
            )
            verdicts = _read_rows(answer, "verdicts", _parse_verdict)
            if verdicts is not None:
                return self._count_verdicts(verdicts)
        return self._try_by_command(candidates, seconds, most_green=most_green)

    def calibrate_limits(self, seconds: float = 30.0) -> None:
        """Limit each test to a multiple of its CPU time, or of the slowest passing test's: candidates hang often."""
        if self.is_warm:
            self.set_limits(self.run_baseline(self._find_test_files(), seconds))

    def set_limits(self, timed_tests: Mapping[str, TimedTest]) -> None:
        """Take the limits from a baseline run."""
        usual = max(
            (timed.seconds for timed in timed_tests.values() if timed.outcome == "passed"),
            default=0.0,
        )
        if not timed_tests:
            return
        most = self.per_test["*"]
        own = {
            test: max(usual, timed.seconds) for test, timed in timed_tests.items() if timed.ended
        }
        self.per_test = {
            test: min(most, max(_MIN_LIMIT_SECONDS, _LIMIT_FACTOR * took))
            for test, took in own.items()
        }
        self.per_test["*"] = min(most, max(_MIN_LIMIT_SECONDS, _LIMIT_FACTOR * usual))

    def run_baseline(self, paths: Sequence[str], seconds: float = 120.0) -> dict[str, TimedTest]:
        """How each test of some files ends without a change; a test that hangs has failed."""
        if self.driver is None:
            return {}
        answer = self._run_driver("baseline", (), seconds, paths=paths)
        return dict(_read_rows(answer, "tests", _parse_timed_test) or ())

    def trace_tests(
        self, seconds: float = 60.0, most: int = 40
    ) -> list[tuple[str, dict[str, list[int]]]]:
        """The lines that each failing test and some passing ones run: (test, path to lines)."""
        if not self.is_warm:
            return []
        answer = self._run_driver("spectrum", (), seconds, passing=self.passing[:most])
        return _read_rows(answer, "runs", _parse_traced_test) or []

    def _run_driver(
        self,
        kind: str,
        candidates: Sequence[Candidate],
        seconds: float,
        *,
        most_green: int = 0,
        as_long_again: bool = False,
        swaps_first: bool = False,
        passing: Sequence[str] | None = None,
        paths: Sequence[str] | None = None,
    ) -> bytes:
        """The document that the driver wrote; one without rows where the box ended before."""
        slowest = min(self.case.trial.timeout, 60.0)
        job = {
            "kind": kind,
            "failing": self.failing,
            "passing": list(self.passing if passing is None else passing),
            "paths": list(paths)
            if paths is not None
            else sorted({test.split("::")[0] for test in [*self.failing, *self.passing]}),
            "args": [],
            "candidates": [dict(candidate) for candidate in candidates],
            "seconds": seconds,
            "most_green": most_green,
            "as_long_again": as_long_again,
            "swaps_first": swaps_first,
            "exact": self.exact,
            "per_test": self.per_test,
            "per_candidate": max(20.0, 2 * max(self.per_test.values())),
            "per_fresh": slowest,
        }
        assert self.driver is not None  # noqa: S101 - is_warm says so
        interpreter = self.driver.find_interpreter(self.case.trial.command)
        assert interpreter is not None  # noqa: S101 - by which the driver was found
        with self.case.open_box() as box:
            box.write(
                {
                    f"{_ENGINE_FOLDER}/driver": self.driver.read_program(),
                    f"{_ENGINE_FOLDER}/job.json": json.dumps(job).encode(),
                }
            )
            argv = [
                *interpreter,
                f"{_ENGINE_FOLDER}/driver",
                f"{_ENGINE_FOLDER}/job.json",
                f"{_ENGINE_FOLDER}/out.json",
            ]
            env = dict(self.case.trial.env)
            limit = seconds + 2 * slowest
            ran = box.run(argv, timeout=limit, env=env, cancel=self.case.stop.cancel)
            if ran.ended != "exit":  # the box is gone, and its output too
                return b'{"verdicts": [], "runs": [], "tests": []}'
            return box.read(f"{_ENGINE_FOLDER}/out.json", 32 * 1024 * 1024) or b""

    def _count_verdicts(self, verdicts: list[CandidateVerdict]) -> list[CandidateVerdict]:
        self.tried += sum(verdict.how != "untried" for verdict in verdicts)
        self.cpu += sum(verdict.cpu for verdict in verdicts)
        return verdicts

    def _find_test_files(self) -> list[str]:
        return sorted({test.split("::")[0] for test in [*self.failing, *self.passing]})

    def _try_by_command(
        self, candidates: Sequence[Candidate], seconds: float, *, most_green: int
    ) -> list[CandidateVerdict]:
        """Run the command in a warm box; a new box after each timeout or crash."""
        ended = self.case.stop.now() + seconds
        verdicts: list[CandidateVerdict] = []
        box: Box | None = None
        try:
            for candidate in candidates:
                if self.case.stop.now() > ended:
                    break
                self.case.stop.check_cancelled()
                box = box or self.case.open_box()
                result = self._run_command(box, candidate)
                if result.ended != "exit":
                    box.close()
                    box = None
                verdicts.append(
                    CandidateVerdict(
                        result.passed,
                        () if result.passed else (result.ended,),
                        "command",
                        result.seconds,
                    )
                )
                if 0 < most_green <= sum(verdict.green for verdict in verdicts):
                    break
        finally:
            if box is not None:
                box.close()
        return verdicts

    def _run_command(self, box: Box, candidate: Candidate) -> RunResult:
        trial = self.case.trial
        box.write({path: text.encode() for path, text in candidate.items()})
        env = {**dict(trial.env), "PYTHONDONTWRITEBYTECODE": "1"}
        result = box.run(
            trial_argv(trial), timeout=trial.timeout, env=env, cancel=self.case.stop.cancel
        )
        if result.ended == "exit":
            back = {path: read_original(self.case, path) for path in candidate}
            box.write({path: text.encode() for path, text in back.items() if text is not None})
        return result


_Row = TypeVar("_Row")


def _read_rows(
    answer: bytes, key: str, parse: Callable[[Mapping[str, Any]], _Row]
) -> list[_Row] | None:
    """The rows under a key of the driver's document; None for anything else, since the tests could write there too."""
    try:
        return run_in_child(_parse_rows, answer, key, parse)
    except AnalysisFailed:
        return None


def _parse_rows(
    answer: bytes, key: str, parse: Callable[[Mapping[str, Any]], _Row]
) -> list[_Row] | None:
    try:
        return [parse(row) for row in json.loads(answer)[key]]
    except (ValueError, TypeError, AttributeError, LookupError, OverflowError, RecursionError):
        return None


def _parse_verdict(row: Mapping[str, Any]) -> CandidateVerdict:
    failed = row.get("failed")
    return CandidateVerdict(
        row.get("green") is True,
        tuple(str(test) for test in failed) if isinstance(failed, list) else (),
        _METHOD_BY_WORD.get(str(row.get("how")), "fresh"),
        read_seconds(row.get("cpu")),
    )


def _parse_timed_test(row: Mapping[str, Any]) -> tuple[str, TimedTest]:
    seconds = read_seconds(row["seconds"])
    return str(row["test"]), TimedTest(str(row["outcome"]), seconds, row["ended"] is True)


def _parse_traced_test(row: Mapping[str, Any]) -> tuple[str, dict[str, list[int]]]:
    lines = {path: [int(number) for number in found] for path, found in row["lines"][1].items()}
    return str(row["test"]), lines


def _sort_by_proximity(passing: Sequence[str], failing: Sequence[str]) -> list[str]:
    """Passing tests in the failing tests' files first: they are the likeliest to fail."""
    homes = {test.split("::")[0] for test in failing}
    return sorted(passing, key=lambda test: (test.split("::")[0] not in homes, test))
