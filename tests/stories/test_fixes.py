"""CI goes red: what happens, and what somebody who asked for a repair sees."""

from __future__ import annotations

import pytest

from regreen.adapters.sandbox import choose
from regreen.errors import NoSandbox
from tests.stories.story import SeenPull, Story

_WORKFLOW = """\
name: CI
on: [push, pull_request]
jobs:
  lint:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {python-version: "3.11"}
      - name: Install
        run: pip install ruff
      - name: Lint
        run: ruff check shop
"""
_LOG = (
    b"2026-03-02T09:00:00.0000000Z ##[group]Run ruff check shop\n"
    b"2026-03-02T09:00:00.0000000Z ##[endgroup]\n"
    b"2026-03-02T09:00:01.0000000Z shop/bulk.py:1:8: F401 [*] `os` imported but unused\n"
    b"2026-03-02T09:00:01.0000000Z ##[error]Process completed with exit code 1.\n"
)
_STEPS = ["Set up job", "Run actions/checkout@v4", "Run actions/setup-python@v5", "Install", "Lint"]


def _sandbox_works() -> bool:
    try:
        choose()
    except NoSandbox:
        return False
    return True


needs_sandbox = pytest.mark.skipif(not _sandbox_works(), reason="no sandbox works on this machine")


def _ci_fails(story: Story, sha: str) -> None:
    story.ci_fails(sha, job="lint", steps=_STEPS, failed="Lint", log=_LOG)


def _red(story: Story) -> SeenPull:
    story.configures("review: {enabled: false}\n")
    story.commits({".github/workflows/ci.yml": _WORKFLOW})
    story.work()
    pull = story.pull({"shop/bulk.py": "import os\n\nBULK = 100\n"})
    _ci_fails(story, pull.raw.head_sha)
    return pull


@needs_sandbox
@pytest.mark.sandbox
def test_red_ci_becomes_a_verified_draft_and_is_not_doubled(story: Story) -> None:
    pull = _red(story)
    story.work()
    patch = story.pulls[-1]
    assert patch.raw.draft
    assert (patch.raw.head_ref, patch.raw.base_ref) == ("regreen/fix-1", "change")
    assert "failed. This patch makes it pass; nothing was merged" in patch.body
    (answer,) = pull.comments
    assert answer.startswith(f"A verified patch is in #{patch.number}, as a draft. Cause: ")
    said = story.says("alice", "/fix", on=pull)
    story.work()
    assert len(story.pulls) == 2
    assert story.reactions(said) == ["eyes", "rocket"]


def test_nothing_to_fix_is_said(story: Story) -> None:
    pull = story.pull(draft=True)
    story.says("alice", "/fix", on=pull)
    story.work()
    assert (
        "no failed run of this commit, and the configuration names no tests.command"
        in (pull.comments[0])
    )


def test_repairs_can_be_switched_off(story: Story) -> None:
    story.configures("fix: {on: []}\n")
    pull = story.pull(draft=True)
    _ci_fails(story, pull.raw.head_sha)
    story.says("alice", "/fix", on=pull)
    story.work()
    assert len(story.pulls) == 1
    assert "repairs are switched off" in pull.comments[0]


def test_a_forks_branch_is_left_alone(story: Story) -> None:
    story.state.fork("acme/shop", "mallory")
    story.state.commit("mallory/shop", {"a.py": "A = 1\n"}, branch="change", by="mallory")
    raw = story.state.open_pull(
        "acme/shop", "change", by="mallory", title="Mine", draft=True, from_fork="mallory/shop"
    )
    story.says("alice", "/fix", on=SeenPull(story, raw))
    story.work()
    assert "this is a fork's branch" in SeenPull(story, raw).comments[0]


def test_red_ci_on_our_own_branch_starts_nothing(story: Story) -> None:
    sha = story.state.commit("acme/shop", {"a.py": "A = 1\n"}, branch="regreen/fix-1", by="alice")
    _ci_fails(story, sha)
    story.work()
    assert not [j for j in story.regreen.store.jobs() if j.kind == "fix"]
