"""`regreen review --post`: a workflow writes the review on its pull request, with its own token."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from regreen_playground import serve
from regreen_playground.loopback import Wsgi
from regreen_playground.things import Pull

from tests.contract.playground_hub import REPO, Hub
from tests.stories.conftest import app_key, checked, violations
from tests.unit.changes import ENV

GOOD, FAULTY = "def f(x):\n    return x\n", "def f(x):\n    return y\n"


class Workflow:
    """A workflow run for a pull request that brings a fault."""

    def __init__(self, hub: Hub, folder: Path) -> None:
        self._hub, self._folder = hub, folder
        self.pull: Pull = self.push({"a.py": FAULTY})
        self.write_event(self.pull.head_sha)

    def write_event(self, head: str) -> None:
        """What GitHub tells the workflow."""
        pull = {"number": self.pull.number, "head": {"sha": head}}
        (self._folder / "event.json").write_text(json.dumps({"pull_request": pull}))

    def push(self, files: dict[str, str]) -> Pull:
        """Push to the pull request's branch; open it the first time."""
        state = self._hub.state
        state.commit(REPO, files, branch="change", by="alice")
        pulls = state.repository(REPO).pulls.values()
        return next(iter(pulls), None) or state.open_pull(
            REPO, "change", by="alice", title="Return y"
        )

    def review(
        self, token: str, *more: str, merged: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Run the command as a workflow does, in a fresh checkout; `merged`: of a merge commit, as by default."""
        checkout = self._folder / f"checkout-{self.pull.head_sha}"
        source = self._hub.state.repository(REPO).git.path
        if not checkout.exists():
            subprocess.run(["git", "clone", "-q", str(source), str(checkout)], check=True)
        head = self.pull.head_sha
        if merged:
            tree = [
                "commit-tree",
                f"{head}^{{tree}}",
                "-p",
                "origin/main",
                "-p",
                head,
                "-m",
                "Merge",
            ]
            head = subprocess.run(
                ["git", "-C", str(checkout), *tree],
                env=os.environ | ENV, check=True, capture_output=True, text=True,
            ).stdout.strip()  # fmt: skip
        env = {
            "GITHUB_TOKEN": token, "GITHUB_REPOSITORY": REPO, "GITHUB_EVENT_PATH": str(self._folder / "event.json"),
            "GITHUB_API_URL": self._hub.playground.api_url, "REGREEN_HOME": str(self._folder / "home"),
        }  # fmt: skip
        argv = ["review", "--repo", str(checkout), "--base", "origin/main", "--head", head, "--no-model", "--post", *more]  # fmt: skip
        return subprocess.run(
            [sys.executable, "-m", "regreen", *argv],
            env=os.environ | env, capture_output=True, text=True, check=False, timeout=240,
        )  # fmt: skip

    def comments(self) -> list[tuple[str, int | None]]:
        """Who wrote on which line."""
        return [(c.user.login, c.line) for thread in self.pull.threads for c in thread.comments]


@contextmanager
def opened(tmp_path: Path, wrap: Callable[[Wsgi], Wsgi] | None = None) -> Iterator[Hub]:
    """A repository whose workflows write as `github-actions[bot]`."""
    with serve(root=tmp_path / "github", deliver=False, wrap=wrap) as playground:
        hub = Hub(playground)
        hub.app, hub.key = hub.state.app("GitHub Actions", keys=app_key())
        hub.installation = hub.state.install(hub.app, REPO)
        hub.state.commit(REPO, {"a.py": GOOD}, by="alice")
        yield hub
        hub.close()


def test_the_findings_are_posted_on_their_lines_and_once(tmp_path: Path) -> None:
    log = tmp_path / "violations.jsonl"
    with opened(tmp_path, checked(log)) as hub:
        workflow = Workflow(hub, tmp_path)
        token = hub.token(pull_requests="write", contents="read", metadata="read")
        assert "posted 1 of 1 findings" in workflow.review(token).stderr
        workflow.push({"b.py": GOOD})
        assert "nothing new to post" in workflow.review(token).stderr
        assert workflow.comments() == [("github-actions[bot]", 2)]
    assert violations(log) == []


def test_a_review_of_the_checked_out_merge_commit_is_posted_at_the_head(tmp_path: Path) -> None:
    with opened(tmp_path) as hub:
        workflow = Workflow(hub, tmp_path)
        token = hub.token(pull_requests="write", contents="read", metadata="read")
        done = workflow.review(token, merged=True)
        assert (done.returncode, workflow.comments()) == (0, [("github-actions[bot]", 2)])
        assert "posted 1 of 1 findings" in done.stderr


def test_a_commit_that_github_does_not_know_costs_no_result(tmp_path: Path) -> None:
    with opened(tmp_path) as hub:
        workflow = Workflow(hub, tmp_path)
        workflow.write_event("0" * 40)
        done = workflow.review(hub.token(pull_requests="write", contents="read", metadata="read"))
    assert (done.returncode, workflow.comments()) == (0, [])
    assert "Undefined name `y`" in done.stdout
    assert "nothing was posted" in done.stderr


def test_what_is_over_the_budget_stands_on_its_file_and_is_not_posted_anew(tmp_path: Path) -> None:
    with opened(tmp_path) as hub:
        workflow = Workflow(hub, tmp_path)
        workflow.push({"a.py": FAULTY, "b.py": "def g(x):\n    return z\n"})
        workflow.write_event(workflow.pull.head_sha)
        token = hub.token(pull_requests="write", contents="read", metadata="read")
        assert "posted 1 of 1 findings" in workflow.review(token, "--max-comments", "1").stderr
        assert len(workflow.comments()) == 2
        assert "nothing new to post" in workflow.review(token).stderr
        assert len(workflow.comments()) == 2


def test_a_token_that_may_only_read_costs_no_result(tmp_path: Path) -> None:
    # Not through the checker: it reports the very permission that is missing here.
    with opened(tmp_path) as hub:
        workflow = Workflow(hub, tmp_path)
        done = workflow.review(hub.token(pull_requests="read", contents="read", metadata="read"))
    assert done.returncode == 0
    assert "Undefined name `y`" in done.stdout
    assert "nothing was posted" in done.stderr
    assert workflow.comments() == []
    assert "ghs_" not in done.stdout + done.stderr


def test_outside_of_a_workflow_it_says_what_it_needs(tmp_path: Path) -> None:
    bare = {k: v for k, v in os.environ.items() if not k.startswith("GITHUB_")}
    done = subprocess.run(
        [sys.executable, "-m", "regreen", "review", "--post"],
        env=bare, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "--post needs GITHUB_TOKEN, GITHUB_REPOSITORY, GITHUB_EVENT_PATH" in done.stderr
