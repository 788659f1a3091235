"""A patch against all that passed before it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from regreen.domain.job_control import StopCondition
from regreen.domain.models import BoxLimits, Failure, PreparedEnv
from regreen.domain.ports import Box, Sandbox
from regreen.fixers.case import InitialFailure, RepairCase
from regreen.fixers.judge_patch import judge_patch
from regreen.fixers.verify_patch import apply_patch, run_patch
from regreen.gate.judge import GateReport
from tests.unit.repairs import CALC, GREEN, PYPROJECT, Repository, job, sandbox_or_skip

pytestmark = pytest.mark.sandbox
BROKEN = CALC.replace("result += value", "result = value")
TESTS = """import os

from pkg.calc import total


def test_total():
    assert total([1, 2, 3]) == 6


def test_of_a_busy_machine():
    assert not os.path.exists("busy")
"""


@dataclass
class Busy:
    """The real sandbox on a machine that is busy during some of the runs, counted from 0."""

    sandbox: Sandbox
    during: Sequence[int]
    opened: int = 0

    def open(self, env: PreparedEnv, tree: Iterable[bytes], limits: BoxLimits | None = None) -> Box:
        box = self.sandbox.open(env, tree, limits)
        if self.opened in self.during:
            box.write({"busy": b""})
        self.opened += 1
        return box

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sandbox, name)


@pytest.mark.slow
@pytest.mark.parametrize(("during", "refused"), [((1,), False), ((1, 2), True)])
def test_a_test_that_falls_once_and_stands_again_refuses_no_patch(
    tmp_path: Path, during: Sequence[int], refused: bool
) -> None:
    repository = Repository(tmp_path / "repo")
    files = {**GREEN, "pyproject.toml": PYPROJECT, "tests/test_calc.py": TESTS}
    rev = repository.commit("start", {**files, "pkg/calc.py": BROKEN})
    mended = repository.commit("mended", {"pkg/calc.py": CALC})
    git = repository.open()
    asked = job(rev, "python", "-m", "pytest", "-q", "tests", reruns=1)
    names = [f"tests/test_calc.py::{name}" for name in ("test_total", "test_of_a_busy_machine")]
    before = InitialFailure("pytest", 1, (Failure(names[0], "AssertionError", "assert 3 == 6"),))
    heard = dict(zip(names, ("failed", "passed"), strict=True))
    busy: Any = Busy(sandbox_or_skip(), during)
    case = RepairCase(asked, rev, before, heard, git, busy, StopCondition(time.monotonic() + 600))  # fmt: skip
    proven = run_patch(case, apply_patch(git, rev, git.diff(rev, mended)), None)
    proof, after = proven.proof, proven.after
    assert (proof.green, bool(proof.red)) == (1, refused)
    assert after.kept == (0 if refused else 1)
    if refused:
        assert proof.red == (f"passed before, failed now: {names[1]}",)


UNIQUE = """import os


def unique(values):
    return sorted(set(values))


def first(values):
    return values[0]
"""
UNIQUE_TESTS = """from pkg.unique import first, unique


def test_order():
    assert unique([2, 1, 2]) == [2, 1]


def test_many():
    assert len(unique(range(32000))) == 32000


def test_first():
    assert first([2, 1]) == 2
"""
HONEST = UNIQUE.replace("sorted(set(values))", "list(dict.fromkeys(values))")
QUADRATIC = UNIQUE.replace("    return sorted(set(values))", "    kept = []\n    for value in values:\n        if value not in kept:\n            kept.append(value)\n    return kept")  # fmt: skip


def judged(tmp_path: Path, patched: str) -> GateReport:
    """The gate over somebody's patch, which runs it: `regreen gate --failures`."""
    repository = Repository(tmp_path / "repo")
    files = {"pkg/__init__.py": "", "pyproject.toml": PYPROJECT, "tests/test_unique.py": UNIQUE_TESTS}  # fmt: skip
    rev = repository.commit("start", {**files, "pkg/unique.py": UNIQUE})
    mended = repository.commit("mended", {"pkg/unique.py": patched})
    git = repository.open()
    trial = job(rev, "python", "-m", "pytest", "-q").trial
    return judge_patch(git.diff(rev, mended), rev, git=git, trial=trial, sandbox=sandbox_or_skip())


def weighing(report: GateReport) -> list[str]:
    return [one.detail for one in report.reasons if one.level in {"deny", "needs_human"}]


@pytest.mark.slow
def test_an_honest_patch_is_let_through_once_it_ran(tmp_path: Path) -> None:
    report = judged(tmp_path, HONEST)
    assert (report.verdict, weighing(report)) == ("allow", [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("patched", "why"),
    [
        (HONEST.replace("values[0]", "list(values)[0]"), "everything stays green without the lines at pkg/unique.py:9"),
        (HONEST.replace("import os\n", "import os\nimport json\n"), "`json` imported but unused"),
        (QUADRATIC, "times as long as before"),
    ],
    ids=["a needless hunk", "an unused import", "a quadratic replacement"],
)  # fmt: skip
def test_what_a_patch_brings_beyond_its_need_is_for_a_person(
    tmp_path: Path, patched: str, why: str
) -> None:
    report = judged(tmp_path, patched)
    assert report.verdict == "needs_human"
    assert why in " ".join(weighing(report))
