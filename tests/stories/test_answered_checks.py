"""A pull request's checks fail: who caused it. And whether the tests of a change prove it."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable
from itertools import chain

import pytest
from regreen_playground.acts.actions import JobReport

from regreen.bot.open_tasks import list_open_tasks
from regreen.domain.models import BoxLimits, PreparedEnv
from regreen.domain.ports import Box
from regreen.domain.state_records import OpenRepair
from tests.stories.conftest import Tell
from tests.stories.story import REPO, SeenPull, Story, proven_sandbox, shown_job, shown_page
from tests.stories.test_fixes import needs_sandbox
from tests.stories.test_trust import Prepared

pytestmark = [needs_sandbox, pytest.mark.sandbox]

_QUIET = "review: {enabled: false}\nfix: {enabled: false}\n"
_WORKFLOW = """\
on: [push, pull_request]
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {python-version: "3.11"}
      - run: python -m unittest -q
"""
_STEPS = ["Run actions/checkout@v4", "Run actions/setup-python@v5", "Run python -m unittest -q"]
_LOG = """\
##[group]Run python -m unittest -q
##[endgroup]
======================================================================
FAIL: test_sum (tests.test_prices.TotalTest.test_sum)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/home/runner/work/shop/shop/tests/test_prices.py", line 8, in test_sum
    self.assertEqual(total([1, 2, 3]), 6)
AssertionError: 5 != 6

----------------------------------------------------------------------
Ran 1 test in 0.001s

FAILED (failures=1)
##[error]Process completed with exit code 1.
"""
_BROKEN = {"shop/prices.py": "def total(prices):\n    return sum(prices) - 1\n"}


def _ci_fails(story: Story, pull: SeenPull, workflow: str = ".github/workflows/ci.yml", name: str = "CI", event: str = "push") -> None:  # fmt: skip
    story.ci_fails(pull.raw.head_sha, job="test", steps=_STEPS, failed=_STEPS[-1], log=_LOG, workflow=workflow, name=name, event=event)  # fmt: skip


def _answer(story: Story, pull: SeenPull) -> tuple[str, str]:
    """The title and the text of the answer on the head."""
    checks = story.state.checks_on(REPO, pull.raw.head_sha)
    (found,) = [check for check in checks if check.name == "regreen/why"]
    return found.title or "", found.summary or ""


def test_failed_checks_with_one_cause_get_one_answer_and_a_flake_runs_again_once(
    story: Story,
) -> None:
    story.configures(_QUIET)
    story.commits({".github/workflows/ci.yml": _WORKFLOW, ".github/workflows/more.yml": _WORKFLOW})
    (granted,) = story.state.installations.values()
    refused = story.pull({"README.md": "# Our shop\n"}, branch="refused")
    _ci_fails(story, refused)
    story.work()
    assert "has not accepted the permission actions: write" in _answer(story, refused)[1]
    granted.permissions["actions"] = "write"
    broken = story.pull(_BROKEN, branch="broken")
    draft = OpenRepair(REPO, "broken", refused.raw.number, workflow=".github/workflows/ci.yml")
    story.regreen.store.save(draft)
    _ci_fails(story, broken)
    _ci_fails(story, broken, ".github/workflows/more.yml", name="More")
    story.work()
    story.configures("review: {enabled: false}\n")
    sound = story.pull({"README.md": "# The shop\n"}, branch="sound")
    _ci_fails(story, sound)
    story.work()
    title, text = _answer(story, broken)
    assert title == "This change broke test_sum (fails 2 of 2, base passes)"
    assert text.count("**This change broke it**") == 1
    assert "Failed: `More / test`, `CI / test`.\n\nDraft #" in text
    assert "Reproduce: `regreen why --base" in text
    assert f"Draft #{draft.number} repairs the branch `broken`" in text, (
        "whichever workflow is first"
    )
    title, text = _answer(story, sound)
    assert title.startswith("Not reproduced here: flaky, or CI's environment differs: ")
    assert "were asked to run once more" in text
    assert "Run the failed jobs again" not in text
    assert [run.attempt for run in story.state.repository(REPO).runs] == [1, 1, 1, 2]
    story.passes(minutes=50)
    _ci_fails(story, broken, event="pull_request")
    story.deliver()
    story.passes(minutes=7)  # the job waits for its turn
    story.work()
    told = "Failed: `CI / test (pull_request)`, `More / test`, `CI / test (push)`.\n"
    assert told in _answer(story, broken)[1]
    page = shown_job(story, "why")
    assert "<code>CI / test (pull_request)</code> <code>More / test</code> <code>CI / test (push)</code>" in page  # fmt: skip
    job = max(story.regreen.store.jobs(kinds=("why",)), key=lambda one: one.created)
    (check,) = [one for one in story.state.checks_on(REPO, broken.raw.head_sha) if one.name == "regreen/why"]  # fmt: skip
    assert job.started is not None
    assert check.started == job.started.replace(microsecond=0), "the check began with its job"
    assert "Cost: no model; 0.0 s on Regreen's machine." in (check.summary or ""), (
        "waiting is no work"
    )
    assert '<td data-label="took"></td>' in shown_page(story, "/causes")
    notes = [job.note for job in story.regreen.store.jobs(kinds=("fix",))]
    assert any(note.startswith("not the change's: flaky") for note in notes)
    assert {job.state for job in story.regreen.store.jobs(kinds=("why",))} == {"done"}


class _NumberedBoxes(Prepared):
    """This machine's sandbox, with the number of each box in its tree: what reads it fails in every second run."""

    def open(self, env: PreparedEnv, tree: Iterable[bytes], limits: BoxLimits | None = None) -> Box:
        self._seen.append(("", ""))
        number = str(self._seen.count(("", ""))).encode()
        file = tarfile.TarInfo("box_number")
        file.size = len(number)
        return self._inner.open(env, chain([file.tobuf(), number.ljust(512, b"\0")], tree), limits)


_EVERY_SECOND = "from pathlib import Path\n\n\ndef total(prices):\n    odd = int(Path('box_number').read_text()) % 2\n    return sum(prices) + odd\n"
_HARMLESS = "\n\ndef largest(prices):\n    return max(prices)\n"


@pytest.mark.parametrize(
    ("base", "change", "seen", "advice"),
    [
        ({}, {"shop/prices.py": _EVERY_SECOND}, "Flaky, perhaps since this change: ", "Whether the change made it flaky is not known."),
        ({"shop/prices.py": _EVERY_SECOND}, {"shop/prices.py": _EVERY_SECOND.replace("odd", "rest")}, "Flaky: ", "; so the change is not the cause"),
        ({"shop/prices.py": _EVERY_SECOND}, {"shop/prices.py": _EVERY_SECOND + _HARMLESS}, "Flaky: ", "; nothing links it to the change"),
    ],
    ids=["made by the change", "older", "without a link"],
)  # fmt: skip
def test_a_flake_is_said_to_be_older_than_the_change_only_where_the_base_shows_it(
    base: dict[str, str], change: dict[str, str], seen: str, advice: str, tell: Tell
) -> None:
    boxes = proven_sandbox().with_tracing(lambda sandbox: _NumberedBoxes(sandbox, []))
    story = tell(None, boxes)
    (granted,) = story.state.installations.values()
    granted.permissions["actions"] = "write"
    story.configures("review: {enabled: false}\n")
    story.commits({".github/workflows/ci.yml": _WORKFLOW, **base})
    pull = story.pull(change)
    story.says("alice", "/why", on=pull)
    story.work()
    title, text = _answer(story, pull)
    assert (title[: len(seen)], advice in text) == (seen, True)
    assert ("- base: fail" in text) == ("the change is not the cause" in text), (
        "what is said was seen"
    )
    assert ("green on the base in 5 of 5 runs" in text) == (not base)
    assert "Run the failed jobs again" not in text, "no job failed"
    assert "run it again where it runs" not in text, "no CI ran"
    assert re.search("Reproduce: `regreen why --base [0-9a-f]{12} --head [0-9a-f]{12} -- ", text)
    _ci_fails(story, pull)
    story.work()
    title, text = _answer(story, pull)
    assert (title[: len(seen)], advice in text) == (seen, True)
    assert "no CI ran" not in title + text, "it has run since"
    assert text.count("Failed: ") == 1
    assert [run.attempt for run in story.state.repository(REPO).runs] == [1 + bool(base)]
    (note,) = [job.note for job in story.regreen.store.jobs(kinds=("fix",))]
    assert note.startswith("not the change's" if base else "not known to be the change's")


def test_a_base_branch_that_fails_too_is_listed_for_a_person(story: Story) -> None:
    story.configures(_QUIET)
    story.commits({".github/workflows/ci.yml": _WORKFLOW, **_BROKEN})
    pull = story.pull({"README.md": "# Our shop\n"})
    _ci_fails(story, pull)
    story.work()
    title, text = _answer(story, pull)
    assert title.startswith("The base branch fails too")
    assert re.search(
        r"for the same reason, since [0-9a-f]{12} \(.+, by .+ on 20\d\d-\d\d-\d\d\) "
        r"\(\d\d% sure, not verified by a revert; \d+ more runs?, \d+ s\)",
        text,
    )
    assert "goes away when `main` is repaired and this branch is updated from it" in text
    (task,) = list_open_tasks(story.regreen.store, story.clock.now(), lambda _: True)
    failed = "test_sum (tests.test_prices.TotalTest.test_sum)"
    said = f"Tests fail on `main` too, not only in this pull request, since `{task.culprit[:12]}`"
    assert (task.text, len(task.culprit)) == (f"{said}: {failed}", 40)
    assert (task.state, task.number) == ("red", pull.number)


def test_forty_red_jobs_with_one_cause_are_one_answer(story: Story) -> None:
    story.configures(_QUIET)
    matrix = _WORKFLOW.replace("    steps:", f"    strategy: {{matrix: {{n: {list(range(40))}}}}}\n    steps:")  # fmt: skip
    story.commits({".github/workflows/ci.yml": matrix})
    pull = story.pull(_BROKEN)
    words = tuple(zip(_STEPS, ["success", "success", "failure"], strict=True))
    jobs = [JobReport(f"test ({n})", words, _LOG.encode()) for n in range(40)]
    story.state.run_ci(REPO, pull.raw.head_sha, jobs)
    story.work()
    title, text = _answer(story, pull)
    assert title == "This change broke test_sum (fails 2 of 2, base passes)"
    assert text.count("**This change broke it**") == 1
    assert "and 35 more" in text
    assert text.count("- head: ") <= 3


def test_ci_that_never_ran_or_never_ends_is_said(story: Story) -> None:
    story.configures(_QUIET + 'tests: {setup: "true", command: "python -m unittest -q"}\n')
    story.commits({".github/workflows/ci.yml": _WORKFLOW})
    pull = story.pull({"README.md": "# Our shop\n"})
    story.says("alice", "/why", on=pull)
    story.work()
    title, text = _answer(story, pull)
    assert title == "Nothing failed: no CI ran on this commit, and the repository's tests pass here in 3 of 3 runs"  # fmt: skip
    assert "Run the failed jobs again" not in text
    assert "Nothing to repair: start CI if it has not run" in text
    assert "This check is neutral: no check failed that it could explain." in text
    (reply,) = pull.comments
    assert "**Nothing failed**: no CI ran on this commit" in reply
    assert "This check is neutral" not in reply
    for text in ("# One\n", "# Two\n"):
        story.pushes(pull, {"README.md": text})
        story.state.run_ci(REPO, pull.raw.head_sha, []).conclusion = "cancelled"
    story.says("alice", "/why", on=pull)
    story.work()
    assert "CI was cancelled in its last 2 runs" in _answer(story, pull)[1]


def test_nothing_of_a_fork_runs_before_somebody_asks_why(tell: Tell) -> None:
    prepared: list[tuple[str, str]] = []
    watched = proven_sandbox().with_tracing(lambda sandbox: Prepared(sandbox, prepared))
    story = tell(None, watched)
    story.configures(_QUIET + 'tests: {setup: "true", command: "python -m unittest -q"}\n')
    pull = story.fork_pull(_BROKEN)
    story.work()
    story.state.report_status(REPO, pull.raw.head_sha, "ci/other", "failure")
    story.work()
    assert _answer(story, pull)[0].startswith("Cause not found: fork not approved")
    assert prepared == []
    said = story.says("alice", "/why", on=pull)
    story.work()
    assert _answer(story, pull)[0].startswith("This change broke test_sum (fails ")
    assert "**This change broke it**" in pull.comments[-1]
    fetch = f"git fetch origin pull/{pull.number}/head"
    assert f"Reproduce: `{fetch} && regreen why --base " in pull.comments[-1]
    assert story.reactions(said) == ["eyes", "rocket"]
    assert {scope for _, scope in prepared} == {f"{REPO}/fork/{pull.number}"}
    story._settings = story._settings.model_copy(update={"public_url": "https://regreen.example"})
    story.restart()
    for command, again in (("prove", "regreen prove --base "), ("bisect", "regreen bisect --good "), ("why", "regreen replay ")):  # fmt: skip
        story.pushes(pull, {f"{command}.txt": "x\n"})
        story.says("alice", f"/{command}", on=pull)
        story.work()
        assert f"{fetch} && {again}" in pull.comments[-1].partition("eproduce")[2], command


def test_the_tests_of_a_change_are_judged_once(
    tell: Tell,
) -> None:
    prepared: list[tuple[str, str]] = []
    watched = proven_sandbox().with_tracing(lambda sandbox: Prepared(sandbox, prepared))
    story = tell(None, watched)
    story.configures("why: {enabled: false}\nprove: {mutants: 0, required: true}\n" + 'tests: {setup: "pip install -q pytest", command: "python -m pytest -q"}\n')  # fmt: skip
    tests = "from shop.prices import total\n\n\ndef test_none():\n    assert total(None) == 0\n"
    source = "def total(prices):\n    return sum(prices or ())\n"
    pull = story.pull({"shop/prices.py": source, "tests/test_none.py": tests})
    story.work()
    assert pull.checks["regreen/prove"] == "success"
    assert "Judged at" not in (pull.check.summary or "")
    assert "`tests/test_none.py::test_none`: **proven**" in (pull.check.summary or "")
    assert "&#34;conclusion&#34;: &#34;success&#34;" in shown_job(story, "review")
    before = len(prepared)
    story.says("alice", "/prove", on=pull)
    story.work()
    assert "**proven**" in pull.comments[-1]
    assert (
        f"Judged at `{pull.raw.head_sha[:12]}` on 2026-03-02 at 09:00 UTC; nothing "
        in pull.comments[-1]
    )
    assert "Cost then: no model; " in pull.comments[-1]
    assert len(prepared) == before
    story.pushes(pull, {"tests/test_red.py": "def test_red():\n    assert 1 == 2\n"})
    story.work()
    assert pull.checks["regreen/prove"] == "neutral"
    page = shown_job(story, "review")
    assert "Faults in the changed lines are not judged: tests fail at this commit" in page
    assert (pull.check.title or "no title") in page
    story.says("alice", "/prove", on=pull)
    story.work()
    said = (
        "not judged: tests fail at this commit (`tests/test_red.py::test_red`). Repair them first."
    )
    assert said in pull.comments[-1]


def test_the_command_of_a_proof_names_the_commit_that_the_change_began_at(story: Story) -> None:
    began = story.commits({"notes/a.txt": "x\n"})
    pull = story.pull({"shop/prices.py": "def total(prices):\n    return 0\n"}, draft=True)
    story.commits({"notes/b.txt": "x\n"})
    story.says("alice", "/prove", on=pull)
    story.work()
    assert f"`regreen prove --base {began[:12]} --head {pull.raw.head_sha[:12]}`" in pull.comments[-1]  # fmt: skip


_COUPONS = {
    "shop/coupons.py": "from shop.prices import total\n\n\ndef reduced(prices):\n    return total(prices) - 1\n",
    "tests/test_coupons.py": (
        "import unittest\n\nfrom shop.coupons import reduced\n\n\nclass CouponTest(unittest.TestCase):\n"
        "    def test_reduced(self):\n        self.assertEqual(reduced([1, 2]), 2)\n"
    ),
}
_RENAMED = {
    "shop/prices.py": "def add_up(prices):\n    return sum(prices)\n",
    "tests/test_prices.py": (
        "import unittest\n\nfrom shop.prices import add_up\n\n\nclass TotalTest(unittest.TestCase):\n"
        "    def test_sum(self):\n        self.assertEqual(add_up([1, 2, 3]), 6)\n"
    ),
}


def test_an_approved_change_on_an_old_base_is_tried_with_todays_main(story: Story) -> None:
    story.configures(_QUIET + 'tests: {setup: "true", command: "python -m unittest -q"}\n')
    coupons = story.pull(_COUPONS, branch="coupons", by="bob")
    readme = story.pull({"README.md": "# Our shop\n"}, branch="readme", by="bob")
    for number in range(9):
        story.commits({f"docs/{number}.md": "Words\n"})
    story.state.review(readme.raw, by="alice", event="APPROVE")
    story.work()
    assert readme.checks.get("regreen/why") is None, "nine commits are not many"
    story.commits(_RENAMED, message="Use one name")
    for pull in (coupons, readme):
        story.state.review(pull.raw, by="alice", event="APPROVE")
    story.work()
    title, text = _answer(story, coupons)
    assert title.startswith("Approved on a base 10 commits old; with today's main tests.test_coupons is red on head")  # fmt: skip
    assert "**This change fails with today's main**: tests.test_coupons is red on head" in text
    assert "main has moved since: update this branch from it, and see whether the change" in text
    assert "Repair it on this branch" not in text
    assert "No module named" in text or "cannot import name 'total'" in text
    again = re.search(
        r"Reproduce: `git fetch origin (\w{40}) && regreen why --base \w{12} --head (\w{12})", text
    )
    assert again is not None
    assert again[1].startswith(again[2]), (
        "a ref of the merge would be another commit after the next push"
    )
    title, text = _answer(story, readme)
    assert title == "Approved on a base 10 commits old; its tests pass with today's main"
    assert "Reproduce: `git fetch origin " in text
    assert [check.conclusion for check in story.state.checks_on(REPO, readme.raw.head_sha)] == ["success"]  # fmt: skip


def test_an_approved_fork_is_not_run(tell: Tell) -> None:
    prepared: list[tuple[str, str]] = []
    watched = proven_sandbox().with_tracing(lambda sandbox: Prepared(sandbox, prepared))
    story = tell(None, watched)
    story.configures(_QUIET + 'tests: {setup: "true", command: "python -m unittest -q"}\n')
    pull = story.fork_pull(_COUPONS)
    for number in range(12):
        story.commits({f"docs/{number}.md": "Words\n"})
    story.state.review(pull.raw, by="alice", event="APPROVE")
    story.work()
    assert [job.note for job in story.regreen.store.jobs(kinds=("why",))] == ["fork not approved"]
    assert prepared == []
