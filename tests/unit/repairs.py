"""A small repository to break and mend, a real sandbox to run it in, and a model whose answers are written down."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from regreen.adapters.git.repository import GitRepository
from regreen.adapters.sandbox.selection import choose_sandbox
from regreen.domain.errors import NoSandbox
from regreen.domain.models import Cost, ModelAnswer, ModelRequest, ToolCall
from regreen.domain.ports import Sandbox
from regreen.fixers.ladder import FixJob
from regreen.runs.trial import Trial

CALC = '''"""Sums."""


def total(values):
    """The sum of all values."""
    result = 0
    for value in values:
        result += value
    return result


def mean(values):
    """The mean; 0 for nothing."""
    if not values:
        return 0
    return total(values) / len(values)
'''
TESTS = """from pkg.calc import mean, total


def test_total():
    assert total([1, 2, 3]) == 6


def test_mean():
    assert mean([1, 2, 3]) == 2


def test_mean_of_nothing():
    assert mean([]) == 0
"""
PYPROJECT = '[tool.pytest.ini_options]\npythonpath = ["."]\n'
GREEN: Mapping[str, str] = {
    "pkg/__init__.py": "",
    "pkg/calc.py": CALC,
    "tests/test_calc.py": TESTS,
    "pyproject.toml": PYPROJECT,
}
SETUP = "pip install -q pytest"


class Repository:
    """A git repository under a temporary folder; each `commit` lays files over what is there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._git("init", "-q", "-b", "main", ".")

    def commit(self, subject: str, files: Mapping[str, str | None]) -> str:
        for name, text in files.items():
            target = self.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                target.unlink()
            else:
                target.write_text(text)
        self._git("add", "-A")
        self._git(
            "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-qm", subject
        )
        return self._git("rev-parse", "HEAD").strip()

    def open(self) -> GitRepository:
        return GitRepository.open(self.path, self.path.parent / "home")

    def _git(self, *argv: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.path), *argv], check=True, capture_output=True, text=True
        )
        return done.stdout


def sandbox_or_skip() -> Sandbox:
    try:
        return choose_sandbox("bwrap")
    except NoSandbox as error:
        pytest.skip(f"no sandbox here: {error}")


def job(rev: str, *command: str, setup: str | None = SETUP, **more: object) -> FixJob:
    trial = Trial(command or ("pytest", "-q"), setup=setup, timeout=120)
    return FixJob(trial, rev, **more)  # type: ignore[arg-type]  # the fields are checked where they are named


Step = tuple[str, dict[str, object]] | str


@dataclass
class ScriptedModel:
    """Answers from a list: (tool, input) or text; a forced tool that is not next is answered with its own default."""

    steps: list[Step]
    usd: float = 0.01
    requests: list[ModelRequest] = field(default_factory=list)
    forced: Mapping[str, dict[str, object]] = field(
        default_factory=lambda: {
            "propose": {"sure": False, "cause": "not plain", "edits": []},
            "diagnose": {
                "cause": "unknown",
                "kind": "logic",
                "lines": [],
                "fixable": "unsure",
                "hypotheses": [],
                "next": "look",
            },
        }
    )
    before_answer: Callable[[ModelRequest], None] = lambda _: None

    def ask(self, request: ModelRequest) -> ModelAnswer:
        self.before_answer(request)
        self.requests.append(request)
        step = self._next(request.force)
        cost = Cost(self.usd, 1, 1000, 100)
        number = len(self.requests)
        if isinstance(step, str):
            return ModelAnswer(step, (), "end", cost, "scripted")
        name, given = step
        return ModelAnswer("", (ToolCall(f"call-{number}", name, given),), "tool", cost, "scripted")

    def _next(self, force: str | None) -> Step:
        if force is not None and (not self.steps or self.steps[0][0] != force):
            return force, self.forced[force]
        return (
            self.steps.pop(0) if self.steps else ("give_up", {"reason": "the script is at its end"})
        )

    @property
    def heard(self) -> str:
        """Everything the model was told in its last request."""
        last = self.requests[-1]
        return "\n".join([m.text + "\n".join(r.content for r in m.results) for m in last.messages])


def edit(path: str, old: str, new: str) -> Step:
    return "edit", {"path": path, "old": old, "new": new}


SUBMIT: Step = (
    "submit",
    {"cause": "sums were overwritten", "why_minimal": "one sign", "risk": "none"},
)


def names(attempts: Sequence[object]) -> list[tuple[str, str]]:
    return [(getattr(one, "rung", ""), getattr(one, "outcome", "")) for one in attempts]
