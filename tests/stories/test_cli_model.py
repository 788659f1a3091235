"""The command line with a model: what is paid for twice, and what its claims are tried in."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from regreen_playground.model import Answer, ScriptedModel, Use
from regreen_playground.things import Json

from tests.stories.test_fixes import needs_sandbox
from tests.unit.changes import ENV
from tests.unit.changes import Story as Repository

BEFORE = "def half(x):\n    return x / 2\n"
AFTER = "def half(x):\n    return x / 3\n"
CLAIM = {
    "path": "a.py", "line": 2, "quote": "    return x / 3", "kind": "wrong-result", "reach": "usual",
    "title": "`half` divides by three", "input": "half(6)", "happens": "gives 2.0", "should": "give 3.0", "sure": 0.9,
}  # fmt: skip
TEST = "from a import half\n\n\ndef test_half():\n    assert half(6) == 3\n"


def script(asked: Json) -> Answer:
    """A careful reader: it finds the fault, holds to it, and writes the test that shows it."""
    request: dict[str, Any] = dict(asked)
    wish = request["messages"][-1]["content"][-1]["text"]
    if "`verdicts`" in wish:
        row = {
            "claim": 1,
            "verdict": "holds",
            "certainty": 0.95,
            "traced": "6 / 3 is 2",
            "before": "right",
        }
        return Use("verdicts", {"verdicts": [row]})
    if "`write_test`" in wish:
        return Use("write_test", {"code": TEST, "fails_with": "assert 2.0 == 3"})
    return Use("report", {"about": "Halves.", "findings": [CLAIM]})


def home(repo: Repository) -> dict[str, str]:
    return {"HOME": str(repo.root.parent), "REGREEN_HOME": str(repo.root.parent / "regreen")}


def review(repo: Repository, endpoint: ScriptedModel, *args: str) -> str:
    key = {"ANTHROPIC_BASE_URL": endpoint.url, "ANTHROPIC_API_KEY": "scripted"}
    return regreen(repo.root, "review", *args, env=home(repo) | key)


def regreen(folder: Path, *args: str, env: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "regreen", *args],
        cwd=folder, env=ENV | env, capture_output=True, text=True, check=False, timeout=250,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    repo = Repository(tmp_path / "repo")
    repo.change({"a.py": BEFORE}, {"a.py": AFTER})
    return repo


@pytest.mark.slow
def test_the_same_command_is_paid_for_once(repo: Repository) -> None:
    with ScriptedModel(script) as endpoint:
        first = review(repo, endpoint, "--no-run-tests")
        asked = len(endpoint.asked)
        again = review(repo, endpoint, "--no-run-tests")
        assert asked > 0
        assert len(endpoint.asked) == asked
    assert "divides by three" in first
    assert "divides by three" in again


@needs_sandbox
@pytest.mark.sandbox
def test_a_claim_is_tested_in_the_sandbox_with_nothing_configured(repo: Repository) -> None:
    with ScriptedModel(script) as endpoint:
        told = json.loads(review(repo, endpoint, "--format", "json"))
    (found,) = told["findings"]
    proof = found["evidence"][0]
    assert (found["signals"]["proof"], proof["kind"]) == ("proven", "test")
    assert TEST in proof["excerpt"] + "\n"
    assert "git switch" in proof["command"]
    sides = dict(re.findall(r"(?m)^# repeat it (\w+) .*: regreen (replay .*)$", proof["excerpt"]))
    assert list(sides) == ["with", "before"]
    clone = repo.root.parent / "clone"
    subprocess.run(["git", "clone", "-q", repo.root, clone], check=True)
    for side, ended in (("with", "fail"), ("before", "pass")):
        answer = regreen(clone, *shlex.split(sides[side]), "--format", "json", env=home(repo))
        assert json.loads(answer)["verdict"] == "same", answer
        assert json.loads(answer)["expected"]["outcome"] == ended
    assert "assert 2.0 == 3" in proof["head"]
    assert "1 passed" in proof["base"]
