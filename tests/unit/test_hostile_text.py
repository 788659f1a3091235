"""Logs, workflows and patches from outside are read in other processes: whatever they do there, the job goes on."""

from __future__ import annotations

import os
import pickle
import resource
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from regreen.bot.flows.answer import read_pull_context
from regreen.bot.flows.failed_job import FailedJob, find_failed_jobs
from regreen.code.file_change import PatchedFile
from regreen.domain.errors import AnalysisFailed
from regreen.domain.github import (
    GitHub,
    GitHubServer,
    PullRequest,
    WorkflowJob,
    WorkflowRun,
    WorkflowStep,
)
from regreen.domain.models import RunResult
from regreen.domain.ports import Box, Git
from regreen.domain.repo_config import RepoConfig
from regreen.fixers.verify_patch import FailureContext, judge_change
from regreen.fixers.warm_engine import _parse_verdict, _read_rows
from regreen.gate.judge import GateRules
from regreen.isolation import ChildLimits
from regreen.languages.python.test_tools import PythonTestListener
from regreen.logs.ci_log import read_log
from regreen.runs.test_runs import CommandRun, run_in_box
from regreen.runs.trial import Trial
from tests.unit.repairs import Repository

PATH = ".github/workflows/ci.yml"
WORKFLOW = """on: push
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - run: pytest -q
"""
FAILED = b"=== short test summary info ===\nFAILED t.py::test_end - KeyError\n"
SLOW = b".\n" * (2 << 20)
FIX = PatchedFile("shop.py", "total = 1\n", "total = 2\n")
ROOT = Path(__file__).parents[2]


@dataclass
class Hub:
    """A run with one failed job, and its log."""

    log: bytes = FAILED
    repo: str = "acme/shop"
    server = GitHubServer()

    def jobs(self, _run: int) -> list[WorkflowJob]:
        return [WorkflowJob(1, "test", "failure", (WorkflowStep(1, "Run pytest -q", "failure"),))]

    def job_log(self, _job: int, _limit: int = 0) -> bytes:
        return self.log


@dataclass
class Deadly:
    """A repository whose files end each process that reads them."""

    git: Git

    def show(self, *_args: object, **_more: object) -> Any:
        os._exit(7)

    tree = diff = diffs = changes = show

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "git":
            raise AttributeError(name)
        return getattr(self.git, name)


@pytest.fixture
def git(tmp_path: Path) -> Git:
    repository = Repository(tmp_path / "repo")
    repository.commit("all", {PATH: WORKFLOW, "shop.py": "total = 1\n"})
    return repository.open()


def red(git: Git, hub: Hub) -> FailedJob:
    github = cast("GitHub", hub)
    run = WorkflowRun(1, "CI", PATH, "push", git.resolve("HEAD"), "main", "failure", 1)
    (found,) = find_failed_jobs(
        github, git, run, scope="acme/shop", trust="default_branch", pythons=("3.11",)
    )
    return found


def test_a_log_that_takes_too_long_is_named(git: Git) -> None:
    with pytest.raises(AnalysisFailed) as failed:
        read_log(SLOW, limits=ChildLimits(cpu=1))
    assert str(failed.value) == "the CI log could not be read: took more than 1 s of CPU time"
    found = red(git, Hub())
    assert [one.test for one in found.failures] == ["t.py::test_end"]
    assert found.trial is not None


def run_with_little_time(*argv: str) -> subprocess.CompletedProcess[str]:
    """A program that is ended, as each of its processes is, after 6 s of CPU time."""
    return subprocess.run(
        [sys.executable, *argv],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (6, 6)),
    )


def test_a_log_that_ends_its_reader_ends_no_job(git: Git, tmp_path: Path) -> None:
    (tmp_path / "git").write_bytes(pickle.dumps(git))
    program = (
        "import pickle, sys; from pathlib import Path; from tests.unit.test_hostile_text import *; "
        "found = red(pickle.loads(Path(sys.argv[1]).read_bytes()), Hub(SLOW)); print(found.trial, found.reason)"
    )
    done = run_with_little_time("-c", program, str(tmp_path / "git"))
    assert done.stdout.startswith("None the CI log could not be read: "), done.stderr


def test_a_log_on_the_command_line_is_read_elsewhere_too(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_bytes(SLOW)
    done = run_with_little_time("-m", "regreen", "ci-log", str(tmp_path / "job.log"))
    assert done.returncode == 2
    assert "the CI log could not be read: " in done.stderr


def test_a_workflow_that_ends_its_reader_ends_no_job(git: Git) -> None:
    found = red(cast("Git", Deadly(git)), Hub())
    assert found.trial is None
    assert found.reason == "the workflow could not be read: ended with status 7"


@pytest.mark.parametrize("rung", [None, "recipe", "model"])
def test_a_patch_whose_judging_dies_is_denied(git: Git, rung: str | None) -> None:
    honest = FailureContext(git, git.resolve("HEAD"), Trial(("pytest", "-q")), ())
    rules = GateRules(rung=rung)
    assert judge_change(honest, [FIX], rules, None).verdict != "deny"
    report = judge_change(replace(honest, git=cast("Git", Deadly(git))), [FIX], rules, None)
    assert report.verdict == "deny"
    assert [r.detail for r in report.reasons] == ["it could not be judged: ended with status 7"]


def test_a_patch_that_was_looked_at_can_be_judged_again(git: Git) -> None:
    deep = PatchedFile("shop.py", "total = 1\n", f"total = {' + '.join('1' * 500)}\n")
    assert deep.new_tree is not None
    subject = FailureContext(git, git.resolve("HEAD"), Trial(("pytest", "-q")), ())
    assert "judged" not in {
        r.check for r in judge_change(subject, [deep], GateRules(), None).reasons
    }


def test_a_question_about_a_change_that_ends_its_reader_gets_the_reason(git: Git) -> None:
    sha = git.resolve("HEAD")
    pull = PullRequest(
        number=7, title="Sum up", body="", state="open", draft=False, merged=False, author="ann",
        author_is_bot=False, head_sha=sha, head_ref="topic", base_sha=sha, base_ref="main", fork=False,
    )  # fmt: skip
    with pytest.raises(AnalysisFailed) as failed:
        read_pull_context(cast("GitHub", Hub()), cast("Any", Deadly(git)), pull, RepoConfig(), None)
    assert str(failed.value) == "the change could not be read: ended with status 7"


@dataclass
class WrittenBox:
    """A box in which the tests wrote what they liked in the listener's place."""

    written: bytes

    def run(self, *_args: object, **_more: object) -> RunResult:
        return RunResult("exit", 0, "", "", truncated=False, seconds=1.0)

    def read(self, _path: str, _limit: int) -> bytes:
        return self.written

    def write(self, _files: object) -> None:
        pass


def heard(written: bytes) -> CommandRun:
    box = cast("Box", WrittenBox(written))
    return run_in_box(box, Trial(("pytest", "-q")), listeners=[PythonTestListener()])


@pytest.mark.parametrize(
    "line",
    [
        b"touched\tt\t" + b"[" * 200_000,
        b"passed\tt\t" + b"9" * 5000,
        b"passed\tt.py::test_end\t" + b"9" * 400,
        b"passed\tt.py::test_end\tInfinity",
    ],
    ids=["deep", "no number", "beyond a float", "endless"],
)
def test_no_line_that_tests_write_ends_a_run_or_hides_the_others(line: bytes) -> None:
    run = heard(line + b"\nfailed\tt.py::test_end\t0.5\n")
    assert run.tests == {"t.py::test_end": "failed"}
    assert run.took == {"t.py::test_end": 0.5}


def test_many_lines_that_tests_write_are_read_in_little_time() -> None:
    run = heard(b'touched\tt\t["a"]\n' * 200_000)
    assert (
        len(run.touched["t"]) == 200_000
    )  # a child that is too slow is ended, and nothing is heard


@pytest.mark.parametrize(
    "written",
    [
        b"",
        b"[" * 200_000,
        b"[]",
        b'{"verdicts": 3}',
        b'{"verdicts": [3]}',
    ],
    ids=["nothing", "deep", "a list", "a number", "no rows"],
)
def test_no_document_that_tests_write_for_the_engine_ends_a_search(written: bytes) -> None:
    assert _read_rows(written, "verdicts", _parse_verdict) is None


def test_a_verdict_takes_no_time_that_no_clock_measures() -> None:
    rows = b'{"verdicts": [{"green": true, "cpu": 1' + b"0" * 400 + b'}, {"cpu": 2}]}'
    found = _read_rows(rows, "verdicts", _parse_verdict)
    assert found is not None
    assert [(one.green, one.cpu) for one in found] == [(True, 0.0), (False, 2.0)]
