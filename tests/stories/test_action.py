"""The Action's steps, run as a runner runs them, against the GitHub of the playground."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from regreen_playground.things import Pull

from tests.contract.playground_hub import REPO, Hub
from tests.stories.test_packaging import TOP, loaded, run_step
from tests.stories.test_packaging import runner as runner  # noqa: PLC0414 - a fixture
from tests.stories.test_review_post import FAULTY, GOOD, Workflow, opened


def run_review(
    hub: Hub,
    pull: Pull,
    runner: dict[str, str],
    folder: Path,
    token: str,
    *,
    head: str = REPO,
) -> tuple[subprocess.CompletedProcess[str], str, str]:
    """The Action's step in a checkout of the pull request; with the job's summary and the SARIF file."""
    checkout, event = folder / f"checkout-{pull.head_sha}", folder / "event.json"
    source = hub.state.repository(head).git.path
    subprocess.run(["git", "clone", "-q", str(source), str(checkout)], check=True)
    base = subprocess.run(
        ["git", "-C", checkout, "rev-parse", "origin/main"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    pull_request = {"number": pull.number, "head": {"sha": pull.head_sha}, "body": None}
    event.write_text(json.dumps({"pull_request": pull_request}))
    told = {
        "GITHUB_TOKEN": token, "GITHUB_REPOSITORY": REPO, "GITHUB_API_URL": hub.playground.api_url,
        "GITHUB_EVENT_PATH": str(event), "GITHUB_ACTIONS": "true", "POST": "true", "REGREEN_ARGS": "--no-model",
        "BASE": base, "HEAD": pull.head_sha, "TITLE": "Return y",
    }  # fmt: skip
    done = run_step("Review", runner | told, checkout)
    summary = Path(runner["GITHUB_STEP_SUMMARY"]).read_text()
    return done, summary, (checkout / "regreen.sarif").read_text()


def test_the_action_posts_each_finding_once_with_the_workflows_token(
    runner: dict[str, str], tmp_path: Path
) -> None:
    """Given a token that may write, when the step runs for two pushes, then one comment stands on the line."""
    with opened(tmp_path) as hub:
        workflow = Workflow(hub, tmp_path)
        token = hub.token(pull_requests="write", contents="read", metadata="read")
        done, summary, sarif = run_review(hub, workflow.pull, runner, tmp_path, token)
        assert (done.returncode, "posted 1 of 1 findings" in done.stderr) == (0, True), done
        workflow.push({"b.py": GOOD})
        again, _, _ = run_review(hub, workflow.pull, runner, tmp_path, token)
        assert (again.returncode, "nothing new to post" in again.stderr) == (0, True), again
        assert workflow.comments() == [("github-actions[bot]", 2)]
    assert "Undefined name `y`" in summary
    assert '"ruff/F821"' in sarif
    assert token not in done.stdout + done.stderr + summary + sarif


def test_the_action_reports_a_forks_pull_request_in_the_summary_and_sarif(
    runner: dict[str, str], tmp_path: Path
) -> None:
    """Given a fork's pull request and a token that may only read, when the step runs, then nothing is lost."""
    with opened(tmp_path) as hub:
        fork = hub.state.fork(REPO, "mallory").full_name
        hub.state.commit(fork, {"a.py": FAULTY}, branch="change", by="mallory")
        pull = hub.state.open_pull(REPO, "change", by="mallory", title="Return y", from_fork=fork)
        token = hub.token(pull_requests="read", contents="read", metadata="read")
        done, summary, sarif = run_review(hub, pull, runner, tmp_path, token, head=fork)
        assert pull.threads == []
    assert (done.returncode, "nothing was posted" in done.stderr) == (0, True), done
    assert "Undefined name `y`" in summary
    assert '"ruff/F821"' in sarif


def test_the_actions_cache_is_found_again_while_the_lock_is_the_same(
    runner: dict[str, str], tmp_path: Path
) -> None:
    """Given a runner, when the key is made twice, then it is the lock's hash, and pip's folder is what is kept."""
    output = tmp_path / "output"
    for _ in range(2):
        assert run_step("Key of the cache", runner | {"GITHUB_OUTPUT": str(output)}, tmp_path).returncode == 0  # fmt: skip
    first, second = output.read_text().split()
    assert first == second
    assert re.fullmatch(r"hash=[0-9a-f]{32}", first)
    cache = next(step for step in loaded("action.yml")["runs"]["steps"] if "actions/cache@" in step.get("uses", ""))  # fmt: skip
    assert cache["with"]["path"] == "~/.cache/pip"
    assert "steps.lock.outputs.hash" in cache["with"]["key"]


@pytest.mark.parametrize(
    "tool", ["pytest", "mypy", "mcp", "e2b", "flask", "sqlalchemy", "boto3", "opentelemetry-sdk"]
)
def test_the_action_installs_the_runtime_alone(tool: str) -> None:
    """Given the lock that the Action installs, when a tool of the checks is looked for, then it is not there."""
    lock = (TOP / "packaging" / "action.txt").read_text()
    assert "\nclick==" in lock
    assert f"\n{tool}==" not in lock


def test_the_action_installs_with_the_hashes_of_the_one_lock(tmp_path: Path) -> None:
    """Given the names that the Action installs, when its step selects them, then each has its lines of the lock."""
    pins = [line.split()[0] for line in (TOP / "packaging" / "action.txt").read_text().splitlines()]
    script = next(step["run"] for step in loaded("action.yml")["runs"]["steps"] if step.get("name") == "Install")  # fmt: skip
    select = next(line for line in script.splitlines() if line.startswith("awk "))
    env = {"GITHUB_ACTION_PATH": str(TOP), "RUNNER_TEMP": str(tmp_path), "PATH": os.defpath}
    (tmp_path / "regreen").mkdir()
    subprocess.run(["bash", "-c", select], env=env, check=True)
    blocks = re.split(r"(?m)^(?=[a-z0-9])", (tmp_path / "regreen" / "locked.txt").read_text())
    chosen = {block.split()[0]: block for block in blocks if block.strip()}
    assert list(chosen) == pins
    assert all("--hash=sha256:" in block for block in chosen.values())
