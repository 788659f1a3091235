"""A patch against all that passed before it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from regreen.fixers.case import Before, Case
from regreen.fixers.stop import Stop
from regreen.fixers.verify_patch import apply, prove
from regreen.models import Env, Failure, Limits
from regreen.ports import Box, Sandbox
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

    def open(self, env: Env, tree: Iterable[bytes], limits: Limits | None = None) -> Box:
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
    before = Before("pytest", 1, (Failure(names[0], "AssertionError", "assert 3 == 6"),))
    heard = dict(zip(names, ("failed", "passed"), strict=True))
    busy: Any = Busy(sandbox_or_skip(), during)
    case = Case(asked, rev, None, before, "", heard, git, busy, None, Stop(time.monotonic() + 600), print)  # fmt: skip
    proof, after, _ = prove(case, apply(git, rev, git.diff(rev, mended)))
    assert (proof.green, bool(proof.red)) == (1, refused)
    assert after.kept == (0 if refused else 1)
    if refused:
        assert proof.red == (f"passed before, failed now: {names[1]}",)
