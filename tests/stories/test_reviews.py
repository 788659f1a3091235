"""A pull request is opened: what its author sees."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from regreen_playground.model import Answer, Use
from regreen_playground.things import Json, Upload

from regreen.bot.open_tasks import list_open_tasks
from regreen.domain.state_records import StoredCapsule
from tests.stories.conftest import Tell
from tests.stories.story import REPO, Story, shown_job, shown_page
from tests.stories.test_cli_model import AFTER, BEFORE
from tests.stories.test_cli_model import script as claim_script
from tests.stories.test_fixes import needs_sandbox

FAULT = {
    "shop/run.py": (
        '"""Runs."""\n\nimport subprocess\n\nfrom flask import request\n\n\n'
        'def run():\n    """Run."""\n'
        '    return subprocess.run("echo " + request.args["name"], shell=True, check=False)\n'
    )
}


def test_a_fault_is_remarked_on_its_line_and_on_the_check(tell: Tell) -> None:
    story = tell(None, types=True)
    unawaited = "async def send():\n    return 1\n\n\nasync def main():\n    send()\n"
    pull = story.pull({**FAULT, "shop/send.py": unawaited})
    story.work()
    assert {path for path, _, _ in pull.remarks} == {"shop/run.py", "shop/send.py"}
    assert len(pull.reviews) == 1
    assert pull.checks == {"Regreen": "neutral"}


def test_what_is_over_the_budget_stands_once_in_threads_on_its_files(story: Story) -> None:
    story.configures("review: {max_comments: 1}\n")
    more = {f"shop/run{n}.py": FAULT["shop/run.py"] for n in range(2)}
    pull = story.pull({**FAULT, **more})
    story.work()
    assert len(pull.remarks) == 3
    on_files = [text for _, line, text in pull.remarks if line is None]
    assert len(on_files) == 2
    assert all("shop/run" in text for text in on_files)
    assert "Walkthrough by file" in pull.reviews[0]
    assert "Beyond the limit of comments on lines: 2 in threads on their files." in pull.reviews[0]
    assert (pull.check.title or "").startswith("3 findings, worst is critical")
    assert '"findings": 3,' in (pull.check.summary or "")
    for text in (pull.reviews[0], pull.check.summary or ""):
        assert text.startswith("**3 findings: the worst is critical")
        assert text.count("\n- **critical** `shop/run") == 3
    command = re.search(r"Reproduce: `(regreen review .+?)`", pull.check.summary or "")
    assert command is not None
    for _, _, text in pull.remarks:
        assert text.rstrip().endswith(f" · reproduce: `{command[1]}`</sub>")
    page = shown_job(story, "review")
    assert "3 findings" in page
    assert "Withheld, above" not in page
    first = pull.remarks[0][2].split("/dismiss ")[1].split("`")[0]
    story.says("alice", f"/dismiss {first} a test server", on=pull)
    story.work()
    assert (pull.check.title or "").startswith("2 findings, worst is critical")
    story.says("alice", f"/undismiss {first}", on=pull)
    story.pushes(pull, {"shop/other.py": "OTHER = 1\n"})
    story.work()
    assert len(pull.remarks) == 3
    assert "3 earlier" in (pull.check.title or "")


def test_a_clean_pull_request_gets_a_check_and_no_word(story: Story) -> None:
    pull = story.pull()
    story.work()
    assert not pull.comments + pull.reviews
    assert not pull.remarks
    assert list(pull.checks) == ["Regreen"]


def test_without_a_model_the_check_says_so_and_is_green(story: Story) -> None:
    pull = story.pull()
    story.work()
    assert pull.checks == {"Regreen": "success"}
    assert pull.check.title == "No findings (no model; tests not run)"
    said = pull.check.summary or ""
    assert said.count("- `model`: not configured (intent, edge cases, ") == 1
    assert "ANTHROPIC" not in said
    assert "none is configured" not in said
    assert "nothing that basedpyright is sure of" not in said


def test_check_job_and_pages_name_the_same_time(tell: Tell) -> None:
    def read(_: Json) -> Answer:
        story.passes(minutes=3)
        return Use("report", {"about": "A note.", "findings": []})

    story = tell(read)
    story.configures("review: {dimensions: [correctness]}\n")
    pull = story.pull({"shop/note.py": "NOTE = 1\n"})
    story.deliver()
    story.passes(minutes=40)  # the job waits for its turn
    story.work()
    assert "; 3 min on Regreen's machine." in (pull.check.summary or "")
    page = " ".join(shown_job(story, "review").split())
    assert "Took 3 min." in page
    assert "<dt>whole job took</dt><dd>3 min</dd>" in page
    assert '<td data-label="took">3 min</td>' in shown_page(story, "/jobs")
    assert '<td data-label="took">3 min</td>' in shown_page(story, "/reviews")
    assert pull.check.completed is not None
    assert pull.check.completed - pull.check.started == timedelta(minutes=3)


def test_a_draft_waits_until_it_is_ready(story: Story) -> None:
    pull = story.pull(draft=True)
    story.work()
    assert pull.checks == {}
    story.state.set_draft(pull.raw, draft=False)
    story.work()
    assert list(pull.checks) == ["Regreen"]


def test_a_newer_push_supersedes_the_older_review(story: Story) -> None:
    pull = story.pull()
    story.deliver()
    story.pushes(pull, {"shop/bulk.py": "BULK = 200\n"})
    story.work()
    reviews = [j.state for j in story.regreen.store.jobs() if j.kind == "review"]
    assert sorted(reviews) == ["done", "superseded"]
    assert list(pull.checks) == ["Regreen"]


def test_a_finding_is_said_once_over_two_pushes(story: Story) -> None:
    pull = story.pull(FAULT)
    story.work()
    said = len(pull.remarks)
    story.pushes(pull, {"shop/other.py": "X = 1\n"})
    story.work()
    assert len(pull.remarks) == said


def test_a_dismissed_finding_never_returns(story: Story) -> None:
    pull = story.pull(FAULT)
    story.work()
    finding = pull.remarks[0][2].split("/dismiss ")[1].split("`")[0]
    story.says("alice", f"/dismiss {finding} it is a test server", on=pull)
    story.work()
    assert "\n\nDismissed (it is a test server): " in pull.comments[-1]
    assert " The check `Regreen` is `success` now: No open findings, 1 " in pull.comments[-1]
    assert (pull.check.summary or "").startswith("**No open findings (no model; tests not run).**")
    assert f"`{finding}`" in (pull.check.summary or "").partition("Dismissed, and still")[2]
    day = story.clock.now().strftime("%Y-%m-%d")
    assert f"; dismissed by `alice`, the author of this change, on {day}: it is a test server" in (
        pull.check.summary or ""
    )
    (review,) = [one.body for one in pull.raw.reviews if one.body]
    assert "1 dismissed, none open" in review.partition("<details>")[0]
    assert "1 finding: critical" not in review.partition("<details>")[0]
    before = len(pull.remarks)
    story.says("alice", "/review full", on=pull)
    story.work()
    assert len(pull.remarks) == before


def test_a_broken_configuration_names_the_line_and_the_nearest_key(story: Story) -> None:
    story.configures("review:\n  drafst: true\n")
    pull = story.pull()
    story.work()
    assert pull.checks == {"Regreen": "neutral"}
    said = pull.check.summary or ""
    assert "line 2: `review.drafst`: unknown key; did you mean 'drafts'?" in said
    assert "no valid file is known, so nothing is reviewed" in said
    (task,) = list_open_tasks(story.regreen.store, story.clock.now(), lambda _: True)
    assert (task.state, task.repo) == ("red", REPO)
    assert task.text.startswith("Nothing is reviewed: .github/regreen.yml cannot be used (line 2: ")
    story.configures("review: {drafts: true}\n")
    story.pushes(pull, {"README.md": "# Again\n"})
    story.work()
    assert list_open_tasks(story.regreen.store, story.clock.now(), lambda _: True) == []


def test_a_broken_configuration_leaves_the_last_valid_one_in_force(story: Story) -> None:
    story.configures("review: {drafts: true}\n")
    story.work()
    story.configures("review: {drafts: maybe}\n")
    pull = story.pull(draft=True)
    story.work()
    assert pull.checks == {"Regreen": "neutral"}
    assert "line 1: `review.drafts`" in (pull.check.summary or "")
    title = pull.check.title or ""
    assert title.startswith(".github/regreen.yml cannot be used (line 1: review.drafts: ")
    assert title.endswith("); No findings (no model; tests not run)")
    (task,) = list_open_tasks(story.regreen.store, story.clock.now(), lambda _: True)
    assert (task.state, task.repo) == ("red", REPO)
    assert task.text.startswith(".github/regreen.yml cannot be used (line 1: review.drafts: ")
    story.configures("review: {drafts: true}\n")
    story.pushes(pull, {"README.md": "# Again\n"})
    story.work()
    assert list_open_tasks(story.regreen.store, story.clock.now(), lambda _: True) == []


def test_reviews_can_be_switched_off_and_asked_for(story: Story) -> None:
    story.configures("review: {enabled: false}\n")
    pull = story.pull()
    story.work()
    assert pull.checks == {}
    story.says("alice", "/review", on=pull)
    story.work()
    assert list(pull.checks) == ["Regreen"]


def test_blocking_fails_the_check_where_the_repository_wants_it(story: Story) -> None:
    story.configures("review: {blocking: low}\n")
    pull = story.pull(FAULT)
    story.work()
    assert pull.checks == {"Regreen": "failure"}
    why = "This check fails because 1 finding blocks, by `review.blocking` or a rule"
    assert why in (pull.check.summary or "")


def test_parts_of_a_monorepo_have_settings_of_their_own(story: Story) -> None:
    story.configures(
        'paths: {"shop/**": {review: {blocking: low}}, "lab/**": {review: {min_confidence: 1}}}\n'
    )
    shop = story.pull(FAULT)
    lab = story.pull({"lab/run.py": FAULT["shop/run.py"]}, branch="lab")
    story.work()
    assert (shop.checks, bool(shop.remarks)) == ({"Regreen": "failure"}, True)
    assert (lab.checks, lab.remarks) == ({"Regreen": "success"}, [])
    held = "No findings posted; 1 critical withheld as not sure enough (no model; tests not run)"
    assert lab.check.title == held
    assert (lab.check.summary or "").startswith(f"**{held}.**")


@needs_sandbox
@pytest.mark.sandbox
def test_a_change_runs_the_tests_of_the_part_that_it_touches(story: Story) -> None:
    story.configures(
        'tests: {command: "python -c 0"}\npaths: {"lab/**": {tests: {command: "python -m lab.new"}}}\n'
    )
    new = "VALUE = 1\n"
    shop, lab = story.pull({"shop/new.py": new}), story.pull({"lab/new.py": new}, branch="lab")
    story.work()
    assert "Test coverage of new lines: 100% (1 of 1)." in (lab.check.summary or "")
    assert "Test coverage of new lines: 0% (0 of 1)." in (shop.check.summary or "")


@needs_sandbox
@pytest.mark.sandbox
def test_a_change_of_tests_alone_runs_them(story: Story) -> None:
    story.configures('tests: {command: "python -m unittest discover -s tests -t ."}')
    test = "import unittest\n\n\nclass NewTest(unittest.TestCase):\n    def test_sum(self):\n        self.assertEqual(1 + 1, 3)\n"
    pull = story.pull({"tests/__init__.py": "", "tests/test_new.py": test})
    story.work()
    review, proof = story.state.checks_on(pull.raw.base.full_name, pull.raw.head_sha)
    assert pull.checks == {"Regreen": "neutral", "regreen/prove": "neutral"}
    assert review.title == "1 test failing"
    assert '"tests": "failed"' in (review.summary or "")
    assert "Not checked, and not required: model, coverage<" in (review.summary or "")
    assert proof.title == (
        "Nothing to prove: the change alters no source of the product; tests fail at this commit"
    )


def test_rerequesting_the_check_reviews_again(story: Story) -> None:
    pull = story.pull()
    story.work()
    story.state.rerequest(pull.check)
    story.work()
    reviews = [j for j in story.regreen.store.jobs() if j.id.startswith("comment/")]
    assert any("findings" in j.note for j in reviews)


@needs_sandbox
@pytest.mark.sandbox
def test_a_fork_is_reviewed_without_running_its_code(story: Story) -> None:
    story.configures('tests: {command: "python -m unittest"}\n')
    ours, theirs = story.pull({"shop/new.py": "NEW = 1\n"}), story.fork_pull(FAULT)
    story.work()
    assert "Test coverage of new lines: 0% (0 of 1)." in (ours.check.summary or "")
    assert theirs.remarks
    assert "The tests run" not in (theirs.check.summary or "")
    said = theirs.check.summary or ""
    assert "its code is not run before a person with write access" in said
    assert said.split("\n\n")[1].startswith("**Tests not run: this is a fork's commit.** ")
    assert "tests not run: approve this fork's commit" in (theirs.check.title or "")
    again = f"`git fetch origin pull/{theirs.number}/head && regreen review --base "
    assert f"Reproduce: {again}" in said
    assert f"reproduce: {again}" in theirs.reviews[0]
    assert "git fetch" not in (ours.check.summary or "")


def test_a_closed_pull_request_is_not_reviewed(story: Story) -> None:
    pull = story.pull()
    story.deliver()
    story.state.close(pull.raw)
    story.work()
    assert pull.checks == {}


def test_two_stories_share_nothing(tell: Tell) -> None:
    assert tell(None).pulls == []


def test_findings_go_to_code_scanning_where_the_repository_wants_them_there(story: Story) -> None:
    story.configures("review: {code_scanning: true}\n")
    pull = story.pull(FAULT)
    story.work()
    (upload,) = story.state.repository("acme/shop").uploads
    assert (upload.commit, upload.ref) == (pull.raw.head_sha, f"refs/pull/{pull.number}/head")
    assert _results(upload) == len(pull.remarks)
    story.pushes(pull, {"shop/more.py": "X = 1\n"})
    story.work()
    *_, again = story.state.repository("acme/shop").uploads
    assert _results(again) == len(pull.remarks)  # still there, still shown


def _results(upload: Upload) -> int:
    document: dict[str, Any] = dict(upload.document)
    return len(document["runs"][0]["results"])


def test_a_repository_that_does_not_want_it_uploads_nothing(story: Story) -> None:
    story.pull(FAULT)
    story.work()
    assert story.state.repository("acme/shop").uploads == []


@needs_sandbox
@pytest.mark.sandbox
def test_a_claim_that_a_test_proves_says_how_both_runs_are_repeated(tell: Tell) -> None:
    story = tell(claim_script)
    story._settings = story._settings.model_copy(update={"public_url": "https://regreen.example"})
    story.restart()
    story.configures(
        'tests: {setup: "pip install -q pytest", command: "python -m pytest -q"}\n'
        "review: {dimensions: [correctness]}\n"
    )
    story.commits({"a.py": BEFORE})
    pull = story.pull({"a.py": AFTER})
    story.work()
    (remark,) = [text for *_, text in pull.remarks if "divides by three" in text]
    repeats = re.findall(r"(?m)^# repeat it (\w+) .*: regreen replay (\w{64})\.json ", remark)
    assert [side for side, _ in repeats] == ["with", "before"]
    kept = [story.regreen.store.find_all(StoredCapsule, digest=digest) for _, digest in repeats]
    ends = [json.loads(one.text)["capsule"]["expected"] for (one,) in kept]
    assert [(end["outcome"], end["times"]) for end in ends] == [("fail", 2), ("pass", 1)]


def test_a_linked_issue_is_part_of_what_the_change_means_to_do(tell: Tell) -> None:
    story = tell(lambda _asked: Use("report", {"about": "Sells.", "findings": []}))
    issue = story.issue("Nobody can buy a hundred", "The shop refuses orders above ten.")
    pull = story.pull(body=f"Fixes #{issue.raw.number} and closes #4711.")
    story.work()
    assert story.model is not None
    assert "The shop refuses orders above ten." in str(story.model.asked[0])
    parts = [part.what for part in story.regreen.store.ledger()[0].sent]
    title = "the pull request's title and text"
    assert parts[:2] == [title, f"the title and text of issue #{issue.raw.number}"]
    assert "4711" not in str(parts), "an issue that is not there was not sent"
    assert "Sells." in (pull.check.summary or "")
