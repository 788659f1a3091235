"""Something is broken: the culprit is named, on demand and by schedule."""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from regreen_playground.acts.actions import JobReport

from regreen.bisect import session
from regreen.bot.open_tasks import list_open_tasks
from regreen.domain.job_control import ContextThreadPool
from regreen.domain.state_records import RevertTry
from tests.stories.story import REPO, SHOP, Story, shown_job, shown_page
from tests.stories.test_fixes import needs_sandbox

_BROKEN = '"""Prices."""\n\n\ndef total(prices):\n    """The sum of all prices."""\n    return sum(prices[1:])\n'
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


# a revert stands alone only where tests were watched that passed before it, so pytest has to be there
_PYTEST = "python -m pytest -q tests/test_prices.py"
_REVERTS = """\
review: {enabled: false}
tests: {setup: pip install -q pytest, command: python -m pytest -q}
bisect: {revert_pr: true}
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
    story._settings = story._settings.model_copy(update={"public_url": "https://regreen.example"})
    story.restart()
    culprit = _history(story)
    issue = story.issue("Totals are wrong")
    story.says("alice", f'/bisect test="{_TEST}"', on=issue)
    story.work()
    (answer,) = issue.comments
    repeat = re.search(
        r"regreen replay (\w{64}\.json)  # download it first, signed in: https://regreen.example/capsules/(.*?json)",
        answer,
    )
    assert repeat is not None, "the repository is private"
    assert repeat[1] == repeat[2]
    assert f"` fails since {culprit[:12]} (verified, " in answer
    assert "Make total faster" in answer
    assert f"- commit {culprit} by " in answer, "GitHub links a commit outside of a code span"
    rows = re.findall(rf"^\| .+ \| `{culprit[:12]}` \| (\w+) \|", answer, re.MULTILINE)
    assert rows == ["fail"] * len(rows)
    said = f"- verified: {culprit[:12]} fails in {len(rows)} of {len(rows)} runs, "
    assert said in answer, "the sentence counts what the table lists"
    assert "; with it reverted on " in answer
    assert answer.split("\n\n")[2] == f"Revert it with `git revert {culprit[:12]}`."
    assert answer.startswith(
        f'> `/bisect test="{_TEST}"`\n\n**`{_TEST}` fails since {culprit[:12]} ('
    )
    assert "\n- fails with: `" in answer
    counted = re.findall(
        r"(\d+) (runs(?=:)|to search|to confirm|with the culprit reverted)", answer
    )
    counts = {words: int(number) for number, words in counted}
    listed = re.findall(
        r"^\| (to search|to confirm|with the culprit reverted) \|", answer, re.MULTILINE
    )
    assert {part: listed.count(part) for part in counts if part != "runs"} | {
        "runs": len(listed)
    } == counts
    assert counts["to confirm"] >= 2
    cost = "\n\nCost: no model; 0.0 s on Regreen's machine.\n\n</details>"
    assert cost in answer, "the time of the job, whose clock stands still in a story"
    page = shown_job(story, "bisect")
    assert page.count('<td data-label="for">') == len(listed), "the page lists the same runs"
    assert f"<dd>{counts['runs']} runs: " in page
    assert f"<code>git revert {culprit[:12]}</code>" in page
    assert f"<code>{repeat[0]}</code>" in page
    for shown in ("/", f"/repositories/{REPO}"):
        needs = shown_page(story, shown).partition("Needs you")[2].partition("</ul>")[0]
        words = re.sub("<[^>]+>", "", needs)
        author = story.state.repository(REPO).git.commit(culprit).author.name
        assert (
            f"{_TEST} fails on main since {culprit[:12]} “Make total faster” by {author}" in words
        )
        assert f"; revert it with git revert {culprit[:12]}" in words
        assert 'href="/jobs/bisect/' in needs
        assert f"/{REPO}/issues/{issue.raw.number}" in needs
    story.passes(days=3)
    assert "Make total faster” by" not in shown_page(story, "/").partition("Recent")[0]


class _CountingPool(ContextThreadPool):
    """Counts how many tests run at once."""

    most = 0

    def submit(self, *args: Any, **kwargs: Any) -> Future[Any]:
        future = super().submit(*args, **kwargs)
        self.flying = [*(f for f in getattr(self, "flying", ()) if not f.done()), future]
        _CountingPool.most = max(_CountingPool.most, len(self.flying))
        return future


_NEW_TEST = (
    "import unittest\n\nfrom shop.prices import total\n\n\nclass BulkTest(unittest.TestCase):\n"
    "    def test_bulk(self):\n        self.assertEqual(total([5, 6]), 11)\n"
)


@pytest.mark.slow
@needs_sandbox
@pytest.mark.sandbox
def test_a_test_written_for_the_bug_finds_the_older_commit_two_at_a_time(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "ContextThreadPool", _CountingPool)
    story.configures("review: {enabled: false}\nbisect: {jobs: 2}\n")
    for i in range(20):
        story.commits({f"docs/{i}.txt": "x\n"}, message=f"Doc {i}")
    culprit = _history(story)
    for i in range(20, 30):
        story.commits({f"docs/{i}.txt": "x\n"}, message=f"Doc {i}")
    story.commits({"tests/test_bulk.py": _NEW_TEST}, message="Show the wrong total")
    issue = story.issue("Totals are wrong")
    story.says("alice", '/bisect test="python -m unittest -q tests.test_bulk"', on=issue)
    story.work()
    (answer,) = issue.comments
    assert f"` fails since {culprit[:12]} (verified, " in answer
    assert "tests/test\\_bulk.py is newer than " in answer
    assert re.search(rf"{culprit[:12]} +\d\d\.\d% █+ fail", answer)
    assert _CountingPool.most == 2


@pytest.mark.soak
@needs_sandbox
@pytest.mark.sandbox
def test_a_schedule_notices_that_a_test_became_slower(story: Story) -> None:
    story.configures(_SCHEDULE.replace(f'"{_TEST}"', f'"{_TEST}", slower: 3, lookback_days: 1'))
    story.work()
    _night(story)
    story.passes(days=2)
    slow = "import time\n\n\ndef total(prices):\n    time.sleep(3)\n    return sum(prices)\n"
    culprit = story.commits({"shop/prices.py": slow}, message="Check each price")
    _night(story)
    (issue,) = story.issues
    measured = re.fullmatch(
        r"main is slower since “Check each price”: (\d+\.\d) times as long", issue.title
    )
    assert measured is not None
    first, action, said = issue.body.split("\n\n")[:3]
    assert first.startswith(f"**{culprit[:12]} made it slower, {measured[1]} times as long (verif")
    assert action == f"Revert it with `git revert {culprit[:12]}`."
    assert f"found that this command takes {measured[1]} times as long as at " in said
    assert "times the time of " in issue.body
    for word in (" red", "fails", "broke it"):
        assert word not in issue.body
    story.commits({"shop/prices.py": str(SHOP["shop/prices.py"])}, message="Fast again")
    _night(story)
    assert issue.state == "closed"
    assert "passes, as fast as before, at " in issue.comments[-1]


@needs_sandbox
@pytest.mark.sandbox
def test_a_revision_that_does_not_exist_is_named_with_the_page_of_the_job(story: Story) -> None:
    story._settings = story._settings.model_copy(update={"public_url": "https://regreen.example"})
    story.restart()
    issue = story.issue("Slow")
    story.says("alice", '/bisect good=zzz test="true"', on=issue)
    story.work()
    (answer,) = issue.comments
    assert "no such revision: 'zzz'; it is the name of no branch or tag" in answer
    assert "The bisection was not started: no such " in answer
    assert "([details](https://regreen.example/jobs/bisect/" in answer
    assert list_open_tasks(story.regreen.store, story.clock.now(), lambda _: True) == []


@needs_sandbox
@pytest.mark.sandbox
def test_a_test_that_passes_at_the_bad_end_is_said_without_a_range(story: Story) -> None:
    _history(story)
    issue = story.issue("Slow")
    story.says("alice", '/bisect test="true"', on=issue)
    story.work()
    (answer,) = issue.comments
    assert (
        "\n\n**not reproduced: the command did not fail where it should; it passes in 8 runs there. Check the command, or name"
        in answer
    )
    assert "\n- command: `true`\n" in answer
    assert re.search(r"- 8 runs\n- ran for \S+ s; 1 environment prepared for it", answer)
    said = "not reproduced: the command did not fail where it should; it passes in 8 runs there"
    assert all(said in shown_page(story, page) for page in ("/", "/jobs", "/audit"))
    assert "not_reproduced" not in shown_page(story, "/jobs") + shown_page(story, "/audit")


def test_a_comparison_of_times_needs_a_commit_to_compare_with(story: Story) -> None:
    issue = story.issue("Slow")
    story.says("alice", '/bisect slower=1.5 test="true"', on=issue)
    story.says("alice", "/bisect slower=fast", on=issue)
    story.work()
    assert any("`slower=` needs `good=`" in text for text in issue.comments)
    assert any("`slower=` wants a number above 1" in text for text in issue.comments)


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
    assert f"` fails since {culprit[:12]} (verified, " in answer
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
    assert f"` fails since {culprit[:12]} (verified, " in answer
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
    culprit = _history(story)
    _night(story)
    (issue,) = story.issues
    first, action, found = issue.body.split("\n\n")[:3]
    assert f"` fails since {culprit[:12]} (verified, " in first
    assert action == f"Revert it with `git revert {culprit[:12]}`."
    assert found == "The schedule `nightly` found that this command fails:"
    assert issue.title == "main is red since “Make total faster”"
    assert "This issue closes automatically" in issue.body
    assert re.search(
        r"\n- fails with: `test_\w+ .+: AssertionError: \d+ != \d+ in tests/test_prices.py:",
        issue.body,
    )
    _night(story)
    assert len(story.issues) == 1
    story.commits({"shop/prices.py": _BROKEN.replace("[1:]", "")}, message="Repair total")
    _night(story)
    assert issue.state == "closed"
    assert issue.comments[0].startswith("Fixed: ")
    looks = shown_page(story, f"/repositories/{REPO}").partition('<ol class="health">')[2]
    marks = re.findall(r'<li><span class="state (\w+)">', looks.partition("</ol>")[0])
    assert marks == ["green", "red", "red", "green"], "the newest first"


@pytest.mark.slow
@needs_sandbox
@pytest.mark.sandbox
def test_a_repair_of_a_regression_names_its_issue_and_the_verified_probability(
    story: Story,
) -> None:
    story.configures(_SCHEDULE + f'tests: {{command: "{_TEST}"}}\n')
    story.work()
    _night(story)
    _history(story)
    _night(story)
    (issue,) = story.issues
    found = re.search(r"\(verified, (\S+%)\)", issue.body)
    assert found is not None
    story.says("alice", "/fix", on=issue)
    story.work()
    draft = story.pulls[-1]
    assert f" fails on the branch `main` (for #{issue.raw.number}); with" in draft.body
    assert f", probability {found[1]})" in draft.body
    assert f", probability {found[1]})" in issue.comments[-1]


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
    assert "\n\nThe bisection failed: " in issue.comments[0]
    assert "v99" in issue.comments[0]


def _night(story: Story) -> None:
    story.regreen.enqueue_due_work()
    story.passes(days=1)
    story.clock.pass_time(story.clock.now().replace(hour=3, minute=1) - story.clock.now())
    story.regreen.enqueue_due_work()
    story.work()


@pytest.mark.soak
@needs_sandbox
@pytest.mark.sandbox
def test_a_proven_culprit_is_taken_back_in_one_draft(story: Story) -> None:
    story.configures(_REVERTS)
    culprit = _history(story)
    issue = story.issue("Totals are wrong")
    story.says("alice", f'/bisect test="{_PYTEST}"', on=issue)
    story.work()
    (patch,) = story.pulls
    assert patch.raw.draft
    assert patch.raw.head_ref == f"regreen/revert-{culprit[:12]}"
    assert patch.raw.issue.title == "Revert “Make total faster”"
    judged, undo = (
        "It passed the same safety checks as a repair.",
        "the button Revert of this pull request",
    )
    assert judged in patch.body
    assert undo in patch.body
    assert f"Draft #{patch.number} reverts that commit" in issue.comments[0]
    story.says("alice", f'/bisect test="{_PYTEST}"', on=issue)
    story.work()
    assert len(story.pulls) == 1
    assert f"Draft #{patch.number} reverts that commit" in issue.comments[1]
    story.state.close(patch.raw)
    story.says("alice", f'/bisect test="{_PYTEST}" ', on=issue)
    story.work()
    assert len(story.pulls) == 1, "a person closed it, and it is not offered again"


@pytest.mark.slow
@needs_sandbox
@pytest.mark.sandbox
def test_a_revert_whose_command_runs_no_tests_opens_nothing(story: Story) -> None:
    story.configures("review: {enabled: false}\nbisect: {revert_pr: true}\n")
    _history(story)
    issue = story.issue("Totals are wrong")
    lone = "python -c 'from shop.prices import total; raise SystemExit(total([1, 2]) != 3)'"
    story.says("alice", f'/bisect test="{lone}"', on=issue)
    story.work()
    assert story.pulls == []
    assert "(verified, " in issue.comments[0]


@pytest.mark.slow
@needs_sandbox
@pytest.mark.sandbox
def test_what_a_revert_does_not_mend_opens_nothing(story: Story) -> None:
    story.configures(_REVERTS)
    _history(story)
    story.commits({"shop/prices.py": _BROKEN + "\n\nLIMIT = 2\n"}, message="Build on it")
    story.commits({"shop/prices.py": _BROKEN.replace("[1:]", "[2:]")}, message="Faster still")
    issue = story.issue("Totals are wrong")
    story.says("alice", f'/bisect test="{_TEST}"', on=issue)
    story.work()
    assert story.pulls == []
    assert " fails since " in issue.comments[0]
    assert "It cannot be reverted cleanly: repair it by hand." in issue.comments[0]
    assert "verified" not in issue.comments[0]


@pytest.mark.soak
@needs_sandbox
@pytest.mark.sandbox
def test_a_repository_gets_four_reverts_a_day_at_the_most(story: Story) -> None:
    story.configures(_REVERTS)
    _history(story)
    for i in range(4):
        story.regreen.store.save(RevertTry("acme/shop", "2026-03-02", f"earlier-{i}"))
    issue = story.issue("Totals are wrong")
    story.says("alice", f'/bisect test="{_TEST}"', on=issue)
    story.work()
    assert story.pulls == []
    assert "(verified, " in issue.comments[0]
