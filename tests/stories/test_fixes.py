"""CI goes red: what happens, and what somebody who asked for a repair sees."""

from __future__ import annotations

import re
from dataclasses import replace
from unittest.mock import MagicMock

import pytest
from regreen_playground.world import Fault

from regreen.adapters.sandbox.selection import choose_sandbox
from regreen.bot.flows.fix import _find_bisected_command
from regreen.bot.open_tasks import list_open_tasks
from regreen.domain.errors import NoSandbox
from regreen.secrets.redaction import HIDDEN_MARK
from tests.jobs import run_job
from tests.stories.story import REPO, UNTESTED, SeenPull, Story, shown_job

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
        choose_sandbox()
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
    first = patch.body.partition("\n\n")[0]
    assert patch.title == "Fix shop/bulk.py:1:8: F401: `os` imported but unused"
    assert first.startswith("The CI step [Lint](")
    assert (
        " fails on #1; with this patch it passes. The patch changes `shop/bulk.py` (+0 -1). Review and"
        in first
    )
    assert "| with the patch, 3 times, each in a fresh sandbox | 0 | nothing |" in patch.body
    assert f"git checkout {pull.raw.head_sha[:12]}" in patch.body
    assert "git fetch origin regreen/fix-1 && git checkout FETCH_HEAD" in patch.body
    (answer,) = pull.comments
    cost = "Cost: no model; 0.0 s on Regreen's machine."
    assert cost in patch.body, "the time of the job, whose clock stands still in a story"
    where = (
        f"Draft #{patch.number} makes `ruff check shop` pass (3 runs, each in a fresh sandbox). "
        "It merges into the branch `change`. "
    )
    assert answer.startswith(where)
    said = story.says("alice", "/fix", on=pull)
    story.work()
    assert len(story.pulls) == 2
    assert story.reactions(said) == ["eyes", "rocket"]


@pytest.mark.slow
@needs_sandbox
@pytest.mark.sandbox
def test_why_names_the_draft_that_repairs_the_failure_already(story: Story) -> None:
    pull = _red(story)
    story.work()
    patch = story.pulls[-1]
    checks = story.state.checks_on(REPO, pull.raw.head_sha)
    (check,) = [check for check in checks if check.name == "regreen/why"]
    named = f"Draft #{patch.number} repairs the branch `change`: review and merge it if you agree."
    assert named in (check.summary or ""), "the check was answered before there was a draft"
    (first,) = story.regreen.store.documents(kind="why", repo=REPO, number=1, limit=20)
    story.regreen.store.save_document(replace(first, body=first.body | {"seconds": 26.3}))
    story.says("alice", "/why", on=pull)
    story.work()
    (again,) = story.regreen.store.documents(kind="why", repo=REPO, number=1, limit=20)
    assert again.body["seconds"] == 26.3, "the author has waited for the first answer"
    answer = pull.comments[-1]
    assert answer.startswith("> `/why`\n\n**This change broke it**")
    assert named in answer
    assert "This check is neutral" not in answer, "a comment is none"
    assert answer.partition("<details>")[0].rstrip().endswith("`</sub>"), "the command comes last"
    story.state.close(patch.raw, by="alice")
    story.says("alice", "/why", on=pull)
    story.work()
    assert "repairs the branch `change`" not in pull.comments[-1]


def _no_pull_is_opened(method: str, path: str) -> Fault | None:
    return Fault(status=502) if method == "POST" and path.endswith("/pulls") else None


def _our_branches(story: Story) -> list[str]:
    return [r for r in story.state.repository(REPO).git.refs("refs/heads/") if "/regreen/" in r]


@pytest.mark.slow
@needs_sandbox
@pytest.mark.sandbox
def test_a_repair_that_is_given_up_leaves_no_branch_behind(story: Story) -> None:
    pull = _red(story)
    story.state.when(_no_pull_is_opened)
    story.work()
    assert story.regreen.store.jobs(states=("failed",))
    assert len(story.pulls) == 1
    assert _our_branches(story) == []
    checks = story.state.checks_on(REPO, pull.raw.head_sha)
    (check,) = [check for check in checks if check.name == "Regreen repair"]
    assert check.title == "The repair could not be finished"
    assert "**: gave up after " in (check.summary or "")
    assert "GitHub answered 502: Server Error. This error says nothing " in (check.summary or "")
    assert "the comment `/fix` on #1 tries again." in (check.summary or "")
    story.state.when(lambda *_: None)
    story.says("alice", "/fix", on=pull)
    story.work()
    assert [p.raw.head_ref for p in story.pulls[1:]] == ["regreen/fix-1"]
    assert check.title == f"The repair is in #{story.pulls[1].number}", "it was repaired after all"
    story.passes(hours=2)
    story.regreen.enqueue_due_work()
    story.work()
    assert len(_our_branches(story)) == 1, "what a pull request stands for is never taken"


@pytest.mark.slow
@needs_sandbox
@pytest.mark.sandbox
@pytest.mark.parametrize("somebody_pushed", [False, True])
def test_a_branch_of_a_repair_that_was_cancelled_is_taken_back_unless_somebody_uses_it(
    story: Story, somebody_pushed: bool
) -> None:
    _red(story)
    story.deliver()
    (job,) = [j for j in story.regreen.store.jobs(states=("waiting",)) if j.kind == "fix"]
    story.state.when(_no_pull_is_opened)
    assert run_job(story.regreen.runner, job.id) is not None
    story.regreen.store.cancel_jobs([job.id])
    assert len(_our_branches(story)) == 1
    if somebody_pushed:
        story.state.commit(REPO, {"more.py": "X = 1\n"}, branch="regreen/fix-1", by="alice")
    story.passes(hours=2)
    story.regreen.enqueue_due_work()
    story.work()
    assert len(_our_branches(story)) == somebody_pushed


@needs_sandbox
@pytest.mark.sandbox
def test_nothing_to_fix_is_said(story: Story) -> None:
    story.commits(UNTESTED)
    pull = story.pull(draft=True)
    story.says("alice", "/fix", on=pull)
    story.work()
    (answer,) = pull.comments
    assert answer.startswith(
        "> `/fix`\n\n**Nothing was run**: no workflow run has failed at this commit, and no test command is known: "
    )
    assert "\n\nSet `tests.command` in `.github/regreen.yml` on the default branch" in answer
    assert "No patch" not in answer
    assert "| --- |" not in answer, "a table of runs where nothing ran"


@needs_sandbox
@pytest.mark.sandbox
def test_a_fix_where_all_is_green_says_that_first_and_how_to_look_again(story: Story) -> None:
    story.configures("review: {enabled: false}\ntests: {command: python -c pass}\n")
    pull = story.pull()
    story.says("alice", "/fix", on=pull)
    story.work()
    (answer,) = pull.comments
    assert "\n\n**The command passes; nothing to fix**" in answer
    assert f"Reproduce: `regreen fix --rev {pull.raw.head_sha[:12]} -- " in answer


def test_repairs_can_be_switched_off(story: Story) -> None:
    story.configures("fix: {on: []}\n")
    pull = story.pull(draft=True)
    _ci_fails(story, pull.raw.head_sha)
    story.says("alice", "/fix", on=pull)
    story.work()
    assert len(story.pulls) == 1
    assert "The repair was not started: `/fix` is switched off by `fix.on`" in pull.comments[0]


def _misspelt(story: Story) -> SeenPull:
    story.configures(
        "review: {enabled: false}\ntests: {setup: pip install codespell, command: codespell shop}\n"
    )
    pull = story.pull({"shop/bulk.py": "# recieve\n"}, draft=True)
    story.says("alice", "/fix", on=pull)
    story.work()
    answer = pull.comments[-1]
    assert "works and waits for approval**: a spelling tool chose" in answer.split("\n")[2]
    assert answer.split("\n")[4] == "The patch: ran codespell -w shop"
    assert "needs a person's approval" not in answer, "said once, in the first line"
    return pull


@pytest.mark.slow
@needs_sandbox
@pytest.mark.sandbox
def test_what_a_person_has_to_agree_to_waits_for_it(story: Story) -> None:
    pull = _misspelt(story)
    assert len(story.pulls) == 1
    story.says("alice", "/approve", on=pull)
    story.work()
    patch = story.pulls[-1]
    assert (patch.raw.head_ref, patch.raw.draft) == ("regreen/fix-1", True)
    assert "\n\nThe patch: ran codespell -w shop\n" in patch.body
    assert (
        "\nWhat the patch safety checks leave to a person:\n\n- A spelling tool chose the words\n"
        in patch.body
    )
    assert "needs a person's approval" not in patch.body, "a person has approved it"
    assert "| needs approval: a spelling tool chose the words |" in patch.body
    assert "| a recipe repairs it, once a person agrees |" in patch.body
    assert patch.body.startswith("Approved by @alice on 2026-03-02 at 09:0")
    shown, done = pull.comments
    assert re.search(
        rf"^> `/fix`\n\n\*\*A patch for `.+` was approved by `alice` on 2026-03-02 at 09:\d\d UTC\.\*\* It is in draft #{patch.number}\. The patch changes `shop/bulk.py` ",
        shown,
    )
    assert "waits for approval" not in shown
    assert "The patch: ran codespell -w shop" in shown, "the report stays"
    assert "approved by alice" in shown_job(story, "fix")
    assert done.startswith("> `/approve`")
    assert re.search("<sub>Cost: no model; .+ on Regreen's machine.</sub>$", done)


@pytest.mark.slow
@needs_sandbox
@pytest.mark.sandbox
def test_an_approval_holds_for_the_commit_it_was_given_for(story: Story) -> None:
    pull = _misspelt(story)
    story.state.commit("acme/shop", {"shop/more.py": "A = 1\n"}, branch="change", by="alice")
    story.says("alice", "/approve", on=pull)
    story.work()
    assert len(story.pulls) == 1
    assert "so the approval does not hold" in pull.comments[-1]
    assert "` was not opened.** The branch was at `" in pull.comments[0]
    assert "waits for approval" not in pull.comments[0]
    story.says("alice", "/fix", on=pull)
    story.says("alice", "/fix", on=pull)
    story.work()
    assert "was replaced by that of a later repair on 2026-03-02" in pull.comments[2]
    assert "works and waits for approval**" in pull.comments[3]


def _red_main_that_a_person_has_to_repair(story: Story) -> str:
    story.configures('review: {enabled: false}\nfix: {protected_paths: ["shop/**"]}\n')
    story.commits({".github/workflows/ci.yml": _WORKFLOW})
    sha = story.commits({"shop/bulk.py": "import os\n\nBULK = 100\n"})
    story.work()
    _ci_fails(story, sha)
    return sha


@needs_sandbox
@pytest.mark.sandbox
def test_a_repair_of_main_that_waits_is_approved_where_it_is_shown(story: Story) -> None:
    sha = _red_main_that_a_person_has_to_repair(story)
    story.work()
    (check,) = story.state.checks_on(REPO, sha)
    assert re.match("A repair of .+ waits for approval: shop/bulk.py: ", check.title or ""), (
        check.title
    )
    assert "The button **Approve** opens it as a draft" in (check.summary or "")
    assert "This check is neutral: the check that failed decides" in (check.summary or "")
    story.state.press(check, "approve", by="mallory")
    story.work()
    assert story.pulls == []
    story.state.press(check, "approve", by="alice")
    story.work()
    (patch,) = story.pulls
    assert (patch.raw.draft, patch.raw.base_ref) == (True, "main")
    assert patch.body.startswith("Approved by @alice on 2026-03-02 at 09:0")
    assert check.title == f"The repair is in #{patch.number}"
    (task,) = list_open_tasks(story.regreen.store, story.clock.now(), lambda _: True)
    assert task.text == "Review the draft that repairs `main`"
    assert (task.job.partition("/")[0], task.number) == ("fix", patch.number)


@pytest.mark.slow
@needs_sandbox
@pytest.mark.sandbox
def test_a_repair_that_an_issue_asked_for_is_approved_there(story: Story) -> None:
    _red_main_that_a_person_has_to_repair(story)
    story.deliver()
    for job in story.regreen.store.jobs(states=("waiting",), kinds=("fix",)):
        story.regreen.store.cancel_jobs([job.id])
    issue = story.issue("Main is red")
    story.says("alice", "/fix", on=issue)
    story.work()
    first = issue.comments[0].split("\n")[2]
    assert (
        " Nothing was pushed. `/approve` opens it as a draft. The patch changes `shop/bulk.py` ("
        in first
    )
    story.says("alice", "/approve", on=issue)
    story.work()
    assert [patch.raw.base_ref for patch in story.pulls] == ["main"]


@needs_sandbox
@pytest.mark.sandbox
def test_a_repair_in_an_issue_is_of_what_was_bisected_there(story: Story) -> None:
    story.configures("review: {enabled: false}\nfix: {on: [command]}\n")
    test = "import unittest, rate\n\n\nclass R(unittest.TestCase):\n    def test_rate(self):\n        self.assertEqual(rate.RATE, 3)\n"
    story.commits({"rate.py": "RATE = 3\n", "test_rate.py": test}, message="Add a rate")
    story.commits({"rate.py": "RATE = 4\n"}, message="Raise the rate")
    red = {".github/workflows/ci.yml": _WORKFLOW, "shop/bulk.py": "import os\n\nBULK = 100\n"}
    _ci_fails(story, story.commits(red, message="Lint"))
    command = "python -m unittest -q test_rate"
    issue, other = story.issue("The rate is wrong"), story.issue("CI is red")
    story.says("alice", f'/bisect test="{command}"', on=issue)
    story.work()
    for asked in (issue, other):
        story.says("alice", "/fix", on=asked)
        story.work()
    check, lint = story.pulls
    assert (check.raw.base_ref, lint.raw.base_ref) == ("main", "main")
    assert check.body.startswith(
        f"`{command}` fails on the branch `main` (for #{issue.raw.number})"
    )
    assert "The patch changes `rate.py` (" in check.body
    assert "The patch changes `shop/bulk.py` (" in lint.body
    first, second = list_open_tasks(story.regreen.store, story.clock.now(), lambda _: True)
    assert first.text.endswith(f"; review draft #{check.number}, which repairs it")
    assert second.text == "Review the draft that repairs `main`"
    story.state.close(check.raw)
    story.work()
    first, _ = list_open_tasks(story.regreen.store, story.clock.now(), lambda _: True)
    assert "review draft" not in first.text, "nobody has to review what was closed"
    story.state.reopen(check.raw)
    story.work()
    first, _ = list_open_tasks(story.regreen.store, story.clock.now(), lambda _: True)
    assert first.text.endswith(f"; review draft #{check.number}, which repairs it")
    story.commits({"rate.py": "RATE = 3\n"}, message="Lower the rate")
    _ci_fails(story, story.commits({"shop/more.py": "import os\n"}, message="More"))
    story.says("alice", "/fix", on=issue)
    story.work()
    assert lint.body.startswith("The CI step ")
    assert (
        "; with this patch it passes. The patch changes `shop/bulk.py` (+0 -1), `shop/more.py` ("
        in lint.body
    )


@pytest.mark.parametrize(
    ("body", "command"),
    [
        ({"command": "make test", "outcome": "found"}, "make test"),
        ({"command": "make test", "outcome": "not_reproduced"}, ""),
        ({"command": "make test", "outcome": "found", "slower": {"times": 3}}, ""),
        ({"command": f"KEY={HIDDEN_MARK} make test", "outcome": "found"}, ""),
    ],
)
def test_a_command_that_did_not_fail_or_is_not_whole_is_not_repaired(
    body: dict[str, object], command: str
) -> None:
    store = MagicMock()
    store.documents.return_value = [MagicMock(body=body)]
    assert _find_bisected_command(store, REPO, 7) == command


@pytest.mark.slow
@needs_sandbox
@pytest.mark.sandbox
def test_a_forks_patch_comes_in_a_comment_and_nothing_is_pushed(story: Story) -> None:
    story.configures(
        "review: {enabled: false}\ntests: {setup: pip install ruff, command: ruff check shop}\n"
    )
    story.state.fork("acme/shop", "mallory")
    story.state.commit(
        "mallory/shop", {"shop/bulk.py": "import os\n"}, branch="change", by="mallory"
    )
    raw = story.state.open_pull(
        "acme/shop", "change", by="mallory", title="Mine", draft=True, from_fork="mallory/shop"
    )
    pull = SeenPull(story, raw)
    story.says("alice", "/fix", on=pull)
    story.work()
    (answer,) = pull.comments
    assert answer.startswith("> `/fix`\n\nThe patch below makes `ruff check shop` pass (3 runs, ")
    assert "This branch belongs to a fork" in answer
    fetch, sha = f"git fetch origin pull/{pull.number}/head", pull.raw.head_sha[:12]
    assert f"{fetch}\ngit checkout {sha}\n" in answer
    assert f"Reproduce: `{fetch} && regreen fix --rev {sha} " in answer
    assert "not run with this patch, because no test command is known beside" in answer
    assert "-import os" in answer
    assert len(story.pulls) == 1


def test_red_ci_on_our_own_branch_starts_nothing(story: Story) -> None:
    sha = story.state.commit("acme/shop", {"a.py": "A = 1\n"}, branch="regreen/fix-1", by="alice")
    _ci_fails(story, sha)
    story.work()
    assert not [j for j in story.regreen.store.jobs() if j.kind == "fix"]


@pytest.mark.slow
@needs_sandbox
@pytest.mark.sandbox
def test_a_reverted_commit_is_named_as_one_of_the_pull_request_with_its_author(
    story: Story,
) -> None:
    story.configures(
        "review: {enabled: false}\ntests: {setup: pip install -q pytest, command: python -m pytest -q}\n"
    )
    pull = story.pull({"notes/a.txt": "x\n"}, draft=True)
    broken = '"""Prices."""\n\n\ndef total(prices):\n    """The sum of all prices."""\n    return sum(prices[1:])\n'
    sha = story.state.commit(REPO, {"shop/prices.py": broken}, branch="change", by="alice")
    story.says("alice", "/fix", on=pull)
    story.work()
    patch = story.pulls[-1]
    assert patch.body.startswith("`python -m pytest -q` fails on #1; "), "no CI job failed"
    said = rf"\n\nDraft #{patch.number} reverts {sha[:12]} \(.+; a commit of this pull request, by alice on 2026-03-02(, probability \d+\.\d%)?\), which broke it\. "
    said += rf"With it `python -m pytest -q` passes .+\. It merges into the branch `change`\. The patch changes .+\. Review and merge #{patch.number} if you agree, or close it if that change was meant; "
    assert re.search(said, pull.comments[-1]), pull.comments[-1]
