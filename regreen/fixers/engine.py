"""The warm test engine: many candidates against the same tests for the price of one collection.

With a plain pytest command, pytest collects once in a box, and each candidate costs a fork that swaps the changed
functions' code in; what cannot be swapped exactly runs in a new pytest there. Any other command is run as it
is, candidate after candidate, in one warm box. Its verdicts only guide a search: a patch is verified in fresh boxes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from regreen.codebase.in_git import argv_of
from regreen.codebase.trial import open_box
from regreen.fixers.case import Case
from regreen.fixers.runs import simple_pytest
from regreen.fixers.workspace import original
from regreen.models import RunResult
from regreen.ports import Box

Candidate = Mapping[str, str]
"""Changed files: path to new text."""

_FOLDER = ".regreen-engine"
_MOST_PASSING = 400
_PER_TEST = 5.0
_SHORTEST = 0.1
_PATIENCE = 5.0


How = Literal["swap", "fresh", "command", "untried"]
_HOW: dict[str, How] = {"swap": "swap", "untried": "untried"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one candidate fared; `failed` names the first test that failed, `cpu` is in seconds."""

    green: bool
    failed: tuple[str, ...] = ()
    how: How = "command"
    cpu: float = 0.0


@dataclass(frozen=True, slots=True)
class Timed:
    """How one test ends by itself, and its seconds on the CPU; `ended` is False where it was cut off."""

    outcome: str
    seconds: float
    ended: bool


class Engine:
    """Tries candidates against the failing and the passing tests of a case."""

    def __init__(
        self, case: Case, *, most_passing: int = _MOST_PASSING, exact: bool = False
    ) -> None:
        """`exact` runs a new pytest for every candidate: dear, and what the cheap verdicts are held against."""
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
        self.passing = _nearest(passing, self.failing)[:most_passing]
        self.python = _python(case)

    @property
    def is_warm(self) -> bool:
        """Whether candidates cost a fork only."""
        return self.python is not None and bool(self.failing)

    def try_all(
        self,
        candidates: Sequence[Candidate],
        *,
        stop_at_green: bool = False,
        most_green: int = 0,
        as_long_again: bool = False,
        swaps_first: bool = False,
        seconds: float = 60.0,
    ) -> list[Verdict]:
        """The verdicts on the first candidates, as many as the time allows; up to the first green ones if asked.

        With `as_long_again` the search ends when it has gone on after the first green one for as long as it took.
        With `swaps_first` the dear candidates come last; those that were not reached are "untried".
        """
        most_green = 1 if stop_at_green else most_green
        seconds = min(seconds, self.case.stop.left)
        if not candidates or seconds <= 0:
            return []
        if self.is_warm:
            found = self._warm(
                "candidates",
                candidates,
                seconds,
                most_green=most_green,
                as_long_again=as_long_again,
                swaps_first=swaps_first,
            )
            verdicts = found.get("verdicts")
            if isinstance(verdicts, list):
                return self._counted([_verdict(one) for one in verdicts])
        return self._by_command(candidates, seconds, most_green=most_green)

    def calibrate(self, seconds: float = 30.0) -> None:
        """Limit each test to a few times what it, or the slowest passing one, costs: candidates hang often."""
        if self.is_warm:
            self.limit(self.baseline(self._homes(), seconds))

    def limit(self, seen: Mapping[str, Timed]) -> None:
        """Take the limits from how long the tests run by themselves."""
        usual = max((one.seconds for one in seen.values() if one.outcome == "passed"), default=0.0)
        if not seen:
            return
        most = self.per_test["*"]
        own = {test: max(usual, one.seconds) for test, one in seen.items() if one.ended}
        self.per_test = {
            test: min(most, max(_SHORTEST, _PATIENCE * took)) for test, took in own.items()
        }
        self.per_test["*"] = min(most, max(_SHORTEST, _PATIENCE * usual))

    def baseline(self, paths: Sequence[str], seconds: float = 120.0) -> dict[str, Timed]:
        """How each test of some files ends by itself; one that hangs has failed."""
        if self.python is None:
            return {}
        tests = self._warm("baseline", (), seconds, paths=paths).get("tests")
        if not isinstance(tests, list):
            return {}
        return {
            one["test"]: Timed(one["outcome"], one["seconds"], one["ended"] is True)
            for one in tests
        }

    def spectrum(
        self, seconds: float = 60.0, most: int = 40
    ) -> list[tuple[str, dict[str, list[int]]]]:
        """The lines that each failing test and some passing ones run: (test, path to lines)."""
        if not self.is_warm:
            return []
        found = self._warm("spectrum", (), seconds, passing=self.passing[:most])
        runs = found.get("runs")
        return [(run["test"], run["lines"][1]) for run in runs] if isinstance(runs, list) else []

    def _warm(
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
    ) -> dict[str, list[dict[str, object]] | object]:
        slowest = min(self.case.trial.timeout, 60.0)
        job = {
            "kind": kind,
            "failing": self.failing,
            "passing": list(self.passing if passing is None else passing),
            "paths": list(paths)
            if paths is not None
            else sorted({test.split("::")[0] for test in [*self.failing, *self.passing]}),
            "args": [],
            "candidates": [dict(one) for one in candidates],
            "seconds": seconds,
            "most_green": most_green,
            "as_long_again": as_long_again,
            "swaps_first": swaps_first,
            "exact": self.exact,
            "per_test": self.per_test,
            "per_candidate": max(20.0, 2 * max(self.per_test.values())),
            "per_fresh": slowest,
        }
        driver = files("regreen.fixers").joinpath("data", "engine_driver.txt").read_bytes()
        assert self.python is not None  # noqa: S101 - is_warm says so
        with self._box() as box:
            box.write(
                {f"{_FOLDER}/driver.py": driver, f"{_FOLDER}/job.json": json.dumps(job).encode()}
            )
            argv = [
                *self.python,
                f"{_FOLDER}/driver.py",
                f"{_FOLDER}/job.json",
                f"{_FOLDER}/out.json",
            ]
            env = dict(self.case.trial.env)
            limit = seconds + 2 * slowest
            ran = box.run(argv, timeout=limit, env=env, cancel=self.case.stop.cancel)
            if ran.ended != "exit":  # the box went with it, and what it knew
                return {"verdicts": [], "runs": [], "tests": []}
            told = box.read(f"{_FOLDER}/out.json", 32 * 1024 * 1024)
        try:
            found = json.loads(told or b"{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def _counted(self, verdicts: list[Verdict]) -> list[Verdict]:
        self.tried += sum(verdict.how != "untried" for verdict in verdicts)
        self.cpu += sum(verdict.cpu for verdict in verdicts)
        return verdicts

    def _homes(self) -> list[str]:
        return sorted({test.split("::")[0] for test in [*self.failing, *self.passing]})

    def _by_command(
        self, candidates: Sequence[Candidate], seconds: float, *, most_green: int
    ) -> list[Verdict]:
        """The command itself, in a warm box; a new box after each end that kills one."""
        ended = self.case.stop.now() + seconds
        verdicts: list[Verdict] = []
        box: Box | None = None
        try:
            for candidate in candidates:
                if self.case.stop.now() > ended:
                    break
                self.case.stop.check()
                box = box or self._box()
                result = self._command(box, candidate)
                if result.ended != "exit":
                    box.close()
                    box = None
                verdicts.append(
                    Verdict(
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

    def _command(self, box: Box, candidate: Candidate) -> RunResult:
        trial = self.case.trial
        box.write({path: text.encode() for path, text in candidate.items()})
        env = {**dict(trial.env), "PYTHONDONTWRITEBYTECODE": "1"}
        result = box.run(
            argv_of(trial), timeout=trial.timeout, env=env, cancel=self.case.stop.cancel
        )
        if result.ended == "exit":
            back = {path: original(self.case, path) for path in candidate}
            box.write({path: text.encode() for path, text in back.items() if text is not None})
        return result

    def _box(self) -> Box:
        case = self.case
        return open_box(
            case.trial, case.rev, git=case.git, sandbox=case.sandbox, cancel=case.stop.cancel
        )


def _verdict(one: dict[str, object]) -> Verdict:
    failed, cpu = one.get("failed"), one.get("cpu")
    return Verdict(
        one.get("green") is True,
        tuple(str(test) for test in failed) if isinstance(failed, list) else (),
        _HOW.get(str(one.get("how")), "fresh"),
        float(cpu) if isinstance(cpu, int | float) else 0.0,
    )


def _nearest(passing: Sequence[str], failing: Sequence[str]) -> list[str]:
    """Passing tests of the failing tests' files first: they are the likeliest to notice."""
    homes = {test.split("::")[0] for test in failing}
    return sorted(passing, key=lambda test: (test.split("::")[0] not in homes, test))


def _python(case: Case) -> tuple[str, ...] | None:
    """The Python behind a plain pytest command; None where the command is more than that."""
    argv = simple_pytest(case.trial)
    if argv is None:
        return None
    at = next(i for i, word in enumerate(argv) if word.rsplit("/", 1)[-1] in {"pytest", "py.test"})
    before = argv[:at]
    if before[-1:] == ("-m",):
        return before[:-1]
    folder = argv[at].rpartition("/")[0]
    return (*before, f"{folder}/python" if folder else "python")
