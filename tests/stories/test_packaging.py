"""What somebody gets who installs Regreen from a wheel, runs it as an Action, by systemd or by compose."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.unit.changes import ENV
from tests.unit.changes import Story as Repository

TOP = Path(__file__).parents[2]


def loaded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load((TOP / name).read_text())
    return found


def run_step(script: str, env: dict[str, str], where: Path) -> subprocess.CompletedProcess[str]:
    """As GitHub runs a step whose shell is bash."""
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        env=os.environ | env, cwd=where, capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip


@pytest.fixture
def runner(tmp_path: Path) -> dict[str, str]:
    """A hosted runner on which the Action's first step has installed Regreen."""
    home = tmp_path / "temp" / "regreen" / "bin"
    home.mkdir(parents=True)
    (home / "regreen").write_text(f'#!/bin/sh\nexec {sys.executable} -m regreen "$@"\n')
    (home / "regreen").chmod(0o755)
    return ENV | {
        "RUNNER_TEMP": str(tmp_path / "temp"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"), "HOME": str(tmp_path),
        "ANTHROPIC_API_KEY": "", "REGREEN_ARGS": "", "MIN_CONFIDENCE": "0.8", "SARIF": "regreen.sarif", "FAIL": "true", "BODY": "",
    }  # fmt: skip


@pytest.mark.slow
def test_the_action_reviews_a_pull_request(runner: dict[str, str], tmp_path: Path) -> None:
    repo = Repository(tmp_path / "repo")
    repo.change({"a.py": "def f(x):\n    return x\n"}, {"a.py": "def f(x):\n    return y\n"})
    base, head = repo.run("rev-parse", "main", "HEAD").split()
    script = loaded("action.yml")["runs"]["steps"][1]["run"]
    hostile = "$(touch owned) `touch owned`\n; touch owned"
    pull = {
        "BASE": base,
        "HEAD": head,
        "TITLE": hostile,
        "REGREEN_ARGS": "--no-model '; touch owned'",
    }
    refused = run_step(script, runner | pull, repo.root)
    assert refused.returncode == 2, refused.stderr
    assert "touch owned" in refused.stderr  # one word, which `regreen review` does not know
    done = run_step(script, runner | pull | {"REGREEN_ARGS": "--no-model --max-comments 3"}, repo.root)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Undefined name" in (tmp_path / "summary.md").read_text()
    assert '"ruff/F821"' in (repo.root / "regreen.sarif").read_text()
    assert not (repo.root / "owned").exists()


def test_the_action_on_another_event_says_what_to_do(
    runner: dict[str, str], tmp_path: Path
) -> None:
    script = loaded("action.yml")["runs"]["steps"][1]["run"]
    done = run_step(script, runner | {"BASE": "", "HEAD": "", "TITLE": ""}, tmp_path)
    assert (done.returncode, done.stdout.strip()) == (
        2,
        "::error::run this on pull_request, after actions/checkout with fetch-depth: 0",
    )


def test_the_wheel_holds_all_that_a_machine_without_this_checkout_needs(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=TOP, check=True, capture_output=True,
    )  # fmt: skip
    wheel = next(tmp_path.glob("*.whl"))
    target = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    packed = {str(p.relative_to(target)) for p in target.rglob("*") if p.is_file()}
    tracked = subprocess.run(
        ["git", "ls-files", "regreen"], cwd=TOP, check=True, capture_output=True, text=True
    ).stdout.split()
    assert not set(tracked) - packed
    # Lines of this second copy are not to be counted.
    bare = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    done = subprocess.run(
        [sys.executable, "-m", "regreen", "config", "schema"],
        cwd=tmp_path, env=bare | {"PYTHONPATH": str(target)}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert '"$schema"' in done.stdout


@pytest.mark.parametrize("name", ["compose.yml", "compose.postgres.yml"])
def test_compose_asks_for_what_only_the_operator_knows(name: str, tmp_path: Path) -> None:
    services = loaded(f"packaging/{name}")["services"]
    for service in (s for n, s in services.items() if n != "database"):
        assert service["cap_drop"] == ["ALL"]
        assert service["read_only"] is True
    compose = shutil.which("docker-compose")
    if compose is None:
        pytest.skip("docker-compose is not installed")
    place = tmp_path / "packaging"
    shutil.copytree(TOP / "packaging", place)
    (tmp_path / ".env").write_text("")
    check = [compose, "-f", str(place / name), "config", "--quiet"]
    bare = {k: v for k, v in os.environ.items() if k not in {"DOCKER_GID", "POSTGRES_PASSWORD"}}
    asked = subprocess.run(check, env=bare, check=False, capture_output=True, text=True)
    assert asked.returncode != 0
    assert "a password of your own" in asked.stderr or "stat -c %g" in asked.stderr
    subprocess.run(check, env=bare | {"DOCKER_GID": "1", "POSTGRES_PASSWORD": "x"}, check=True)


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    text = (TOP / "packaging" / "regreen.service").read_text()
    unit = tmp_path / "regreen.service"
    unit.write_text(text.replace("/opt/regreen/bin/regreen", "/bin/true"))
    done = subprocess.run([analyze, "verify", str(unit)], check=False, capture_output=True, text=True)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
