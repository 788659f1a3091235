"""A repair that was interrupted goes on where it was: what was run is not run again."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from click.testing import CliRunner, Result

from regreen.bisect.verdict_memory import SqliteVerdictMemory
from regreen.cli import cli
from regreen.domain.models import BoxLimits, DoctorCheck, EnvSpec, PreparedEnv
from regreen.domain.ports import Box, Sandbox
from regreen.fixers.case import FixJob, FixResult
from regreen.fixers.ladder import fix_failure
from regreen.fixers.remembered_runs import RememberingSandbox, RepairSession
from regreen.runs.test_runs import run_fresh
from regreen.runs.trial import Trial
from tests.unit.repairs import CALC, GREEN, SETUP, Repository, job, sandbox_or_skip

BROKEN = CALC.replace("result += value", "result = value")


class CountingSandbox:
    """A sandbox that counts its boxes and how often it is asked for an environment, and is interrupted when there are so many."""

    def __init__(self, sandbox: Sandbox, most: int = 10_000) -> None:
        self.name, self.sandbox, self.most = sandbox.name, sandbox, most
        self.opened = self.prepared = 0

    def prepare(
        self, spec: EnvSpec, tree: Iterable[bytes], cancel: Event | None = None
    ) -> PreparedEnv:
        self.prepared += 1
        return self.sandbox.prepare(spec, tree, cancel)

    def pythons(self) -> tuple[str, ...]:
        return self.sandbox.pythons()

    def doctor(self) -> list[DoctorCheck]:
        return self.sandbox.doctor()

    def open(self, env: PreparedEnv, tree: Iterable[bytes], limits: BoxLimits | None = None) -> Box:
        self.opened += 1
        if self.opened > self.most:
            raise KeyboardInterrupt
        return self.sandbox.open(env, tree, limits)


def memory_at(place: Path) -> SqliteVerdictMemory:
    return SqliteVerdictMemory(place / "bisect.db")


@pytest.fixture
def broken(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repo")
    made.commit("start", GREEN)
    made.commit("readme", {"README.md": "hello\n"})
    made.commit("faster sums", {"pkg/calc.py": BROKEN})
    made.commit("more readme", {"README.md": "hello there\n"})
    return made


@pytest.mark.slow
@pytest.mark.sandbox
def test_boxes_of_an_interrupted_repair_are_not_opened_again(
    broken: Repository, tmp_path: Path
) -> None:
    sandbox, git = sandbox_or_skip(), broken.open()

    def repair(most: int) -> tuple[CountingSandbox, FixResult]:
        session = RepairSession(memory_at(tmp_path), "fix:one")
        counting = CountingSandbox(sandbox, most)
        task: FixJob = job(git.resolve("HEAD"), rungs=("revert",), memory=session)
        remembering = RememberingSandbox(counting, session)
        result = fix_failure(task, git=git, sandbox=remembering, model=None)
        return counting, replace(result, seconds=0.0, attempts=())

    with pytest.raises(KeyboardInterrupt):
        repair(4)
    second, fixed = repair(10_000)
    assert (fixed.outcome, fixed.rung) == ("fixed", "revert")
    third, again = repair(10_000)
    assert third.opened == 0
    assert again == fixed
    RepairSession(memory_at(tmp_path), "fix:one").end()
    anew, _ = repair(10_000)
    # the last box before the interruption was not remembered, and searches open some ahead
    assert second.opened <= anew.opened - 3


def test_a_session_goes_on_until_it_has_an_answer(tmp_path: Path) -> None:
    memory = memory_at(tmp_path)
    first = RepairSession(memory, "fix:one")
    first.append("box:a:1", "answer")
    assert not first.continues
    killed = RepairSession(memory, "fix:one")
    assert (killed.continues, killed.get("box:a:1")) == (True, ["answer"])
    other = RepairSession(memory, "fix:two")
    assert (other.continues, other.get("box:a:1")) == (False, [])
    fresh = RepairSession(memory, "fix:one", fresh=True)
    assert (fresh.continues, fresh.get("box:a:1"), killed.get("box:a:1")) == (False, [], [])
    fresh.append("box:a:1", "answer")
    fresh.end()
    assert fresh.get("box:a:1") == []
    assert not RepairSession(memory, "fix:one").continues


def test_runs_that_nobody_continued_for_two_weeks_are_forgotten(tmp_path: Path) -> None:
    memory = memory_at(tmp_path)
    memory.append("fix-run:20200101-0:box:a:1", "answer")
    RepairSession(memory, "fix:one")
    assert memory.get("fix-run:20200101-0:box:a:1") == []


@pytest.mark.sandbox
def test_a_killed_command_says_that_it_continues(
    broken: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox_or_skip()
    home = tmp_path / "home"
    monkeypatch.setenv("REGREEN_HOME", str(home))
    argv = ["fix", "--repo", str(broken.path), "--setup", SETUP, "--no-model", "--rungs", "revert"]
    with subprocess.Popen(
        [sys.executable, "-m", "regreen", *argv, "--", "pytest", "-q"], stderr=subprocess.DEVNULL
    ) as process:
        while _stored_runs(home) < 2:
            assert process.poll() is None
            time.sleep(0.1)
        process.kill()

    def fix(*more: str) -> Result:
        return CliRunner().invoke(
            cli, [*argv, *more], standalone_mode=False, catch_exceptions=False
        )

    other = fix("--rungs", "recipe", "--", "pytest", "-q", "-x")
    assert "continuing" not in other.stderr, "another command is another repair"
    done = fix("--format", "json", "--", "pytest", "-q")
    assert "continuing the repair that was interrupted" in done.stderr
    assert json.loads(done.stdout)["outcome"] == "fixed"
    assert _stored_runs(home) == 0, "a repair with an answer keeps nothing"


@pytest.mark.sandbox
def test_a_command_that_had_no_time_left_continues_unless_it_is_told_to_start_anew(
    broken: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox_or_skip()
    monkeypatch.setenv("REGREEN_HOME", str(tmp_path / "home"))
    # in bubblewrap the six seconds are over in a later stage, which has nothing to go on from
    argv = ["fix", "--repo", str(broken.path), "--setup", SETUP, "--no-model", "--rungs", "revert", "--max-minutes", "0.1", "--sandbox", "auto"]  # fmt: skip

    def fix(*more: str) -> str:
        words = [*argv, *more, "--", "pytest", "-q"]
        done = CliRunner().invoke(cli, words, standalone_mode=False, catch_exceptions=False)
        assert done.return_value == 1
        return done.stderr

    first = fix()
    assert "continuing" not in first
    assert "the same command goes on from here" in first
    assert "continuing the repair that was interrupted" in fix()
    assert "continuing" not in fix("--fresh")
    broken.commit("another readme", {"README.md": "hello you\n"})
    assert "continuing" not in fix(), "another commit is another repair"


@pytest.mark.sandbox
def test_the_same_command_in_two_processes_is_two_repairs(
    broken: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox_or_skip()
    home = tmp_path / "home"
    monkeypatch.setenv("REGREEN_HOME", str(home))
    argv = ["fix", "--repo", str(broken.path), "--setup", "true", "--no-model", "--rungs", "recipe"]
    command = ["--max-minutes", "0.1", "--", "sleep 8; false"]
    with subprocess.Popen(
        [sys.executable, "-m", "regreen", *argv, "--", "sleep 8; false"], stderr=subprocess.DEVNULL
    ) as first:
        try:
            while _stored_runs(home) < 1:
                assert first.poll() is None
                time.sleep(0.1)
            runner = CliRunner()
            second = runner.invoke(cli, [*argv, "--fresh", *command], standalone_mode=False)
            assert "the same command is running already" in second.stderr
            assert "continuing" not in second.stderr
            assert first.poll() is None
            assert _stored_runs(home) >= 1, "--fresh forgets nothing of a repair that runs"
        finally:
            first.kill()
    third = runner.invoke(cli, [*argv, *command], standalone_mode=False)
    assert "continuing the repair that was interrupted" in third.stderr


@pytest.mark.sandbox
def test_a_command_that_gave_up_in_time_starts_anew_however_short_its_time(
    broken: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox_or_skip()
    monkeypatch.setenv("REGREEN_HOME", str(tmp_path / "home"))
    argv = ["fix", "--repo", str(broken.path), "--setup", "true", "--no-model", "--rungs", "recipe", "--max-minutes", "1"]  # fmt: skip
    for _ in range(2):
        done = CliRunner().invoke(cli, [*argv, "--format", "json", "--", "false"], standalone_mode=False)  # fmt: skip
        assert json.loads(done.stdout)["outcome"] == "gave_up"
        assert "the same command goes on" not in done.stderr
        assert "continuing" not in done.stderr


@pytest.mark.sandbox
def test_a_patch_passes_once_more_before_it_counts_as_proven(
    broken: Repository, tmp_path: Path
) -> None:
    sandbox, git = sandbox_or_skip(), broken.open()
    session = RepairSession(memory_at(tmp_path), "fix:one")
    counting = CountingSandbox(sandbox)
    for _ in range(2):
        live, counting.opened = CountingSandbox(sandbox), 0
        task = job(git.resolve("HEAD"), rungs=("revert",), memory=session, live=live)
        remembering = RememberingSandbox(counting, session)
        fixed = fix_failure(task, git=git, sandbox=remembering, model=None)
        assert (fixed.outcome, live.opened) == ("fixed", 1)
    assert counting.opened == 0, "the rest came from memory"


@pytest.mark.sandbox
def test_what_a_box_with_a_network_answered_is_not_remembered(
    broken: Repository, tmp_path: Path
) -> None:
    git = broken.open()
    counting = CountingSandbox(sandbox_or_skip())
    trial = Trial(("true",), limits=BoxLimits(network=True))
    for _ in range(2):
        session = RepairSession(memory_at(tmp_path), "fix:one")
        remembering = RememberingSandbox(counting, session)
        assert run_fresh(trial, git.resolve("HEAD"), git=git, sandbox=remembering).is_green
    assert counting.opened == 2


def _stored_runs(home: Path) -> int:
    if not (home / "bisect.db").exists():
        return 0
    with sqlite3.connect(home / "bisect.db", timeout=10) as database:
        query = "SELECT count(*) FROM lines WHERE key LIKE 'fix-run:%:box:%'"
        try:
            return int(database.execute(query).fetchone()[0])
        except sqlite3.OperationalError:  # the table is not there yet
            return 0
