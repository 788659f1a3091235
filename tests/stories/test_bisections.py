"""Something is broken: the culprit is named, on demand and by schedule."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from regreen.playground.acts.actions import JobReport
from tests.stories.story import REPO, SHOP, Story
from tests.stories.test_fixes import needs_sandbox

_BROKEN = '"""Prices."""\n\n\ndef total(prices):\n    """The sum."""\n    return sum(prices[1:])\n'
_TEST = "python -m unittest -q tests.test_prices"
_WORKFLOW = f"""\
on: push
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: {_TEST}
"""
_SCHEDULE = f"""\
review: {{enabled: false}}
bisect:
  schedules:
    - {{name: nightly, cron: "0 3 * * *", branch: main, test: "{_TEST}"}}
"""


def _history(story: Story) -> str:
    for i in range(3):
        story.commits({f"notes/{i}.txt": "x\n"}, message=f"Note {i}")
    culprit = story.commits({"shop/prices.py": _BROKEN}, message="Make total faster")
    for i in range(3, 5):
        story.commits({f"notes/{i}.txt": "x\n"}, message=f"Note {i}")
    return culprit


@needs_sandbox
@pytest.mark.sandbox
def test_bisect_names_the_commit_and_proves_it_in_one_comment(story: Story) -> None:
    culprit = _history(story)
    issue = story.issue("Totals are wrong")
    story.says("alice", f'/bisect test="{_TEST}"', on=issue)
    story.work()
    (answer,) = issue.comments
    assert f"**{culprit[:12]} broke it (verified, " in answer
    assert "Make total faster" in answer


@pytest.mark.slow
@needs_sandbox
@pytest.mark.sandbox
def test_what_ci_has_seen_pass_is_not_run_again(story: Story) -> None:
    story.commits({".github/workflows/ci.yml": _WORKFLOW})
    seen = [story.commits({f"docs/{i}.txt": "x\n"}, message=f"Doc {i}") for i in range(12)][-1]
    report = JobReport(
        "test", (("Run actions/checkout@v4", "success"), (f"Run {_TEST}", "success")), b""
    )
    story.state.run_ci(REPO, seen, [report])
    culprit = story.commits({"shop/prices.py": _BROKEN}, message="Make total faster")
    issue = story.issue("Totals are wrong")
    story.says("alice", f'/bisect test="{_TEST}"', on=issue)
    story.work()
    (answer,) = issue.comments
    assert f"**{culprit[:12]} broke it (verified, " in answer
    assert f"| `{seen[:12]}` | pass | passed in CI |" in answer


@pytest.mark.slow
@needs_sandbox
@pytest.mark.sandbox
def test_a_failure_in_ci_counts_where_its_log_shows_the_one_that_is_looked_for(
    story: Story, tmp_path: Path
) -> None:
    story.commits({".github/workflows/ci.yml": _WORKFLOW})
    other = story.commits({"notes/a.txt": "x\n"}, message="Note")
    for i in range(6):
        story.commits({f"docs/{i}.txt": "x\n"}, message=f"Doc {i}")
    culprit = story.commits({"shop/prices.py": _BROKEN}, message="Make total faster")
    later = story.commits({"notes/b.txt": "x\n"}, message="Another note")
    steps = (("Run actions/checkout@v4", "success"), (f"Run {_TEST}", "failure"))
    story.state.run_ci(REPO, later, [JobReport("test", steps, _log(_printed(tmp_path, _BROKEN)))])
    unlike = _log("Traceback (most recent call last):\nOSError: the disk is full")
    story.state.run_ci(REPO, other, [JobReport("test", steps, unlike)])
    issue = story.issue("Totals are wrong")
    story.says("alice", f'/bisect test="{_TEST}"', on=issue)
    story.work()
    (answer,) = issue.comments
    assert f"**{culprit[:12]} broke it (verified, " in answer
    assert f"| `{later[:12]}` | fail | failed in CI |" in answer
    assert "the disk is full" not in answer


def _printed(tmp_path: Path, prices: str) -> str:
    """What the test prints where `prices` is the code."""
    for path, text in {**SHOP, "shop/prices.py": prices}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(str(text))
    argv = [sys.executable, *_TEST.split()[1:]]
    ran = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    return ran.stdout + ran.stderr


def _log(output: str) -> bytes:
    """As GitHub shows it."""
    lines = [
        *("##[group]Run actions/checkout@v4", "##[endgroup]", f"##[group]Run {_TEST}"),
        *(f"\x1b[36;1m{_TEST}\x1b[0m", "shell: /usr/bin/bash -e {0}", "##[endgroup]"),
        *(*output.splitlines(), "##[error]Process completed with exit code 1."),
        "Post job cleanup.",
    ]
    return "".join(f"2026-10-01T12:00:00.0000000Z {line}\n" for line in lines).encode()


@pytest.mark.slow
@needs_sandbox
@pytest.mark.sandbox
def test_a_schedule_opens_one_issue_and_closes_it_when_green(story: Story) -> None:
    story.configures(_SCHEDULE)
    story.work()
    _night(story)
    assert story.issues == []
    _history(story)
    _night(story)
    (issue,) = story.issues
    assert issue.title == "main is red since “Make total faster”"
    assert "This issue is closed by itself" in issue.body
    _night(story)
    assert len(story.issues) == 1
    story.commits({"shop/prices.py": _BROKEN.replace("[1:]", "")}, message="Repair total")
    _night(story)
    assert issue.state == "closed"
    assert issue.comments[0].startswith("Green again at ")


@pytest.mark.soak
@needs_sandbox
@pytest.mark.sandbox
def test_each_regression_has_its_issue_and_green_closes_them_all(story: Story) -> None:
    story.configures(_SCHEDULE)
    story.work()
    _night(story)
    _history(story)
    _night(story)
    story.commits({"shop/prices.py": _BROKEN.replace("[1:]", "")}, message="Repair total")
    story.commits({"shop/prices.py": _BROKEN.replace("[1:]", "[2:]")}, message="Faster still")
    _night(story)
    assert len(story.issues) == 2
    story.commits({"shop/prices.py": _BROKEN.replace("[1:]", "")}, message="Repair it again")
    _night(story)
    assert {issue.state for issue in story.issues} == {"closed"}


def test_bisecting_between_nonsense_is_refused_in_one_sentence(story: Story) -> None:
    issue = story.issue("Broken")
    story.says("alice", '/bisect good=v99 test="true"', on=issue)
    story.work()
    assert issue.comments[0].startswith("That did not work: ")
    assert "v99" in issue.comments[0]


def _night(story: Story) -> None:
    story.regreen.tick()
    story.passes(days=1)
    story.clock.pass_time(story.clock.now().replace(hour=3, minute=1) - story.clock.now())
    story.regreen.tick()
    story.work()


@pytest.mark.soak
@needs_sandbox
@pytest.mark.sandbox
def test_a_proven_culprit_is_taken_back_in_one_draft(story: Story) -> None:
    story.configures("review: {enabled: false}\nbisect: {revert_pr: true}\n")
    culprit = _history(story)
    issue = story.issue("Totals are wrong")
    story.says("alice", f'/bisect test="{_TEST}"', on=issue)
    story.work()
    (patch,) = story.pulls
    assert patch.raw.draft
    assert patch.raw.head_ref == f"regreen/revert-{culprit[:12]}"
    assert patch.raw.issue.title == "Revert “Make total faster”"
    assert f"#{patch.number} takes that commit back, as a draft" in issue.comments[0]
    story.says("alice", f'/bisect test="{_TEST}"', on=issue)
    story.work()
    assert len(story.pulls) == 1
    assert f"#{patch.number} takes that commit back" in issue.comments[1]
    story.state.close(patch.raw)
    story.says("alice", f'/bisect test="{_TEST}" ', on=issue)
    story.work()
    assert len(story.pulls) == 1, "a person closed it, and it is not offered again"


@pytest.mark.slow
@needs_sandbox
@pytest.mark.sandbox
def test_what_a_revert_does_not_mend_opens_nothing(story: Story) -> None:
    story.configures("review: {enabled: false}\nbisect: {revert_pr: true}\n")
    _history(story)
    story.commits({"shop/prices.py": _BROKEN + "\n\nLIMIT = 2\n"}, message="Build on it")
    story.commits({"shop/prices.py": _BROKEN.replace("[1:]", "[2:]")}, message="Faster still")
    issue = story.issue("Totals are wrong")
    story.says("alice", f'/bisect test="{_TEST}"', on=issue)
    story.work()
    assert story.pulls == []
    assert "broke it" in issue.comments[0]


@pytest.mark.soak
@needs_sandbox
@pytest.mark.sandbox
def test_a_repository_gets_four_reverts_a_day_at_the_most(story: Story) -> None:
    story.configures("review: {enabled: false}\nbisect: {revert_pr: true}\n")
    _history(story)
    for i in range(4):
        story.regreen.store.put("reverts/acme/shop/2026-03-02", f"earlier-{i}", "1")
    issue = story.issue("Totals are wrong")
    story.says("alice", f'/bisect test="{_TEST}"', on=issue)
    story.work()
    assert story.pulls == []
    assert "(verified, " in issue.comments[0]
