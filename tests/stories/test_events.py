"""What owners, other bots and we ourselves do on GitHub, and what Regreen makes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from regreen_playground.acts import owners, pulls
from regreen_playground.model import Use
from regreen_playground.outbox import Answer
from regreen_playground.things import CheckRun, Installation, Repository
from regreen_playground.world import World

from regreen.domain.state_records import RepositorySchedules
from tests.jobs import run_job
from tests.stories.conftest import Tell
from tests.stories.story import REPO, UNTESTED, SeenPull, Story
from tests.stories.test_fixes import needs_sandbox
from tests.stories.test_reviews import FAULT
from tests.stories.test_trust import TESTED, TESTS

_NIGHTLY = """\
bisect:
  schedules:
    - {name: nightly, cron: "0 3 * * *", test: "true"}
"""


def _repository(story: Story) -> Repository:
    return story.state.repository(REPO)


def _installation(story: Story) -> Installation:
    (found,) = story.state.installations.values()
    return found


def _schedules(story: Story) -> list[str]:
    return [known.repo for known in story.regreen.store.find_all(RepositorySchedules)]


def _states(story: Story, kind: str) -> list[str]:
    return sorted(j.state for j in story.regreen.store.jobs() if j.kind == kind)


# Repositories


def test_a_renamed_repository_keeps_its_schedule_and_what_was_said(story: Story) -> None:
    story.configures(_NIGHTLY)
    pull = story.pull(FAULT)
    story.work()
    said = len(pull.remarks)
    assert said
    repository = _repository(story)
    owners.rename(story.state, repository, "store")
    story.work()
    assert _schedules(story) == ["acme/store"]
    story.state.commit("acme/store", {"shop/more.py": "X = 1\n"}, branch="change", by="alice")
    story.work()
    assert _states(story, "review") == ["done", "done"]
    assert len(pull.remarks) == said, "the same finding is not said again under the new name"


def test_what_waited_when_a_repository_was_renamed_is_done_under_its_new_name(story: Story) -> None:
    story.work()
    pull = story.pull(FAULT)
    story.deliver()
    owners.rename(story.state, _repository(story), "store")
    story.work()
    assert pull.remarks


def test_a_delivery_that_comes_late_and_tells_the_old_name_is_done_all_the_same(
    story: Story,
) -> None:
    story.work()
    pull = story.pull(FAULT)
    story.state.flush(lambda *_: Answer(502, {}, ""))
    owners.rename(story.state, _repository(story), "store")
    story.work()
    story.regreen.enqueue_startup_work()
    story.work()
    assert pull.remarks
    assert pull.checks == {"Regreen": "neutral"}
    story.app.deliveries[:] = [d for d in story.app.deliveries if d.status_code < 300]


def test_a_renamed_repository_works_under_a_later_installation(story: Story) -> None:
    owners.rename(story.state, _repository(story), "store")
    story.work()
    owners.uninstall(story.state, _installation(story))
    story.work()
    story.state.install(story.app, "acme/store")
    story.state.commit("acme/store", FAULT, branch="change", by="alice")
    pull = SeenPull(story, story.state.open_pull("acme/store", "change", by="alice"))
    story.work()
    assert pull.remarks


def test_a_transferred_repository_is_known_by_its_new_owner(story: Story) -> None:
    story.configures(_NIGHTLY)
    story.work()
    story.state.person("octo")
    owners.transfer(story.state, _repository(story), "octo", _installation(story))
    story.work()
    assert _schedules(story) == ["octo/shop"]


@pytest.mark.parametrize("act", [owners.archive, owners.delete])
def test_nothing_goes_on_in_a_repository_that_is_archived_or_gone(
    story: Story, act: Callable[[World, Repository], None]
) -> None:
    story.configures(_NIGHTLY)
    story.work()
    story.pull(FAULT)
    story.deliver()
    act(story.state, _repository(story))
    story.deliver()
    story.work()
    assert _schedules(story) == []
    assert _states(story, "review") == ["cancelled"]


def test_a_schedule_of_an_earlier_version_that_can_never_run_stops_nobody_elses(
    story: Story,
) -> None:
    story.configures(_NIGHTLY)
    story.work()
    (kept,) = story.regreen.store.find_all(RepositorySchedules)
    impossible = kept.schedules.replace("0 3 * * *", "0 0 30 2 *")
    story.regreen.store.save(replace(kept, repo="acme/another", schedules=impossible))
    story.regreen.enqueue_due_work()
    story.passes(hours=18)
    assert story.regreen.enqueue_due_work() == 1
    story.work()
    assert set(_states(story, "care")) == {"done"}
    assert _schedules(story) == [REPO]


# Installations


def test_a_suspended_installation_is_left_alone_until_it_is_let_in_again(story: Story) -> None:
    story.configures(_NIGHTLY)
    story.work()
    story.pull(FAULT)
    story.deliver()
    installation = _installation(story)
    owners.suspend(story.state, installation)
    story.work()
    assert _schedules(story) == []
    assert _states(story, "review") == ["cancelled"]
    owners.unsuspend(story.state, installation)
    story.work()
    assert _schedules(story) == [REPO]


def test_an_app_that_is_removed_forgets(story: Story) -> None:
    story.configures(_NIGHTLY)
    story.work()
    pull = story.pull(FAULT)
    story.deliver()
    owners.uninstall(story.state, _installation(story))
    story.work()
    assert _schedules(story) == []
    assert pull.checks == {}


def _copies(story: Story) -> list[str]:
    return [p.name for p in (story.regreen.services.settings.home / "mirrors").glob("*.git")]


def test_the_copy_of_a_repository_goes_with_the_app_that_may_read_it(story: Story) -> None:
    story.pull(FAULT)
    story.work()
    assert len(_copies(story)) == 1
    owners.uninstall(story.state, _installation(story))
    story.work()
    assert _copies(story) == []


def test_the_copy_of_a_repository_goes_with_the_repository(story: Story) -> None:
    story.pull(FAULT)
    story.work()
    owners.delete(story.state, _repository(story))
    story.work()
    assert _copies(story) == []


# Pull requests


def test_another_base_is_another_review(story: Story) -> None:
    story.state.commit(REPO, {"shop/old.py": "OLD = 1\n"}, branch="release", by="alice")
    pull = story.pull()
    story.work()
    pulls.update(story.state, pull.raw, story.state.person("alice"), base_ref="release")
    story.work()
    assert _states(story, "review") == ["done", "done"]


def test_a_pull_request_that_becomes_a_draft_or_is_closed_stops_what_runs(story: Story) -> None:
    first, second = story.pull(FAULT), story.pull(FAULT, branch="other")
    story.deliver()
    story.state.set_draft(first.raw, draft=True)
    story.state.close(second.raw)
    story.work()
    assert _states(story, "review") == ["cancelled", "cancelled"]
    assert not first.remarks + second.remarks


def test_what_was_said_before_a_pull_request_was_closed_is_answered(story: Story) -> None:
    pull = story.pull(draft=True)
    story.work()
    story.says("alice", "/config", on=pull)
    story.deliver()
    story.state.close(pull.raw)
    story.deliver()
    said, closed = story.regreen.store.jobs(states=("waiting",))[::-1]
    assert (said.kind, closed.kind) == ("comment", "comment")
    run_job(story.regreen.runner, closed.id)
    story.work()
    assert len(pull.comments) == 1


def test_a_bots_pull_request_is_not_reviewed(story: Story) -> None:
    story.state.person("renovate[bot]").type = "Bot"
    story.work()
    pull = story.pull(FAULT, by="renovate[bot]")
    story.work()
    assert pull.checks == {}


# Loops


def test_another_bots_command_is_no_command(story: Story) -> None:
    story.state.person("renovate[bot]").type = "Bot"
    story.state.grant("renovate[bot]", REPO, "write")
    issue = story.issue("Broken")
    story.says("renovate[bot]", "/help", on=issue)
    story.work()
    assert issue.comments == ["/help"]


def test_our_own_branch_is_not_repaired(story: Story) -> None:
    sha = story.state.commit(REPO, {"a.py": "import os\n"}, branch="regreen/fix-9", by="alice")
    story.ci_fails(sha, job="lint", steps=["Lint"], failed="Lint", log=b"F401\n")
    story.work()
    assert _states(story, "fix") == []


def test_our_own_red_check_is_no_ci_to_repair(story: Story) -> None:
    story.configures("review: {blocking: low}\n")
    story.work()
    pull = story.pull(FAULT)
    story.work()
    assert pull.checks == {"Regreen": "failure"}
    told = [j.note for j in story.regreen.store.jobs() if j.kind == "fix"]
    assert told == ["our own check: what it found is said already"]
    assert pull.comments == []


# Buttons


def test_the_fix_button_is_the_fix_command(story: Story) -> None:
    pull = story.pull(FAULT)
    story.work()
    story.state.press(pull.check, "fix", by="alice")
    story.work()
    assert [j.state for j in story.regreen.store.jobs() if j.kind == "fix"] != []
    assert len(pull.comments) == 1


@needs_sandbox
@pytest.mark.sandbox
def test_the_bisect_button_says_what_it_needs(story: Story) -> None:
    story.commits(UNTESTED)
    pull = story.pull(FAULT)
    story.work()
    story.state.press(pull.check, "bisect", by="alice")
    story.work()
    answer = pull.comments[0]
    assert answer.endswith(
        '\n\nWhich test? Write `/bisect test="pytest tests/test_x.py"`, or set `tests.command` in `.github/regreen.yml`.'
    )


@pytest.mark.parametrize("button", ["fix", "bisect", "dismiss"])  # older check runs have "dismiss"
def test_a_strangers_button_is_refused(story: Story, button: str) -> None:
    pull = story.pull(FAULT)
    story.work()
    story.state.press(pull.check, button, by="mallory")
    story.work()
    assert not [j for j in story.regreen.store.jobs() if j.kind in {"fix", "bisect"}]
    assert all(t.resolved_by is None for t in pull.raw.threads)


def test_a_button_that_is_none_of_ours_does_nothing(story: Story) -> None:
    pull = story.pull()
    story.work()
    story.state.press(pull.check, "explode", by="alice")
    story.work()
    assert pull.comments == []


# The merge queue


def _queued(story: Story, *group: SeenPull, squash: bool = False, message: str = "") -> CheckRun:
    sha = story.state.queue_merge(*(one.raw for one in group), squash=squash, message=message)
    story.work()
    (check,) = story.state.checks_on(REPO, sha)
    assert check.name == "Regreen"
    return check


def _with_whole_reviews(tell: Tell) -> Story:
    story = tell(lambda _asked: Use("report", {"about": "Sells.", "findings": []}))
    story.configures(TESTS)
    return story


@needs_sandbox
@pytest.mark.sandbox
@pytest.mark.parametrize("squash", [False, True])
def test_the_merge_queue_gets_the_same_check(tell: Tell, squash: bool) -> None:
    story = _with_whole_reviews(tell)
    first = story.pull(TESTED, branch="first")
    more = {
        path.replace("new", "more"): text.replace("new", "more") for path, text in TESTED.items()
    }
    second = story.pull(more, branch="second")
    story.work()
    assert first.checks == second.checks == {"Regreen": "success"}
    check = _queued(story, first, second, squash=squash)
    assert (check.conclusion, check.title) == ("success", "Reviewed in its pull requests")
    assert f"- #{second.number} at `{second.raw.head_sha[:12]}`: success" in (check.summary or "")


@pytest.mark.parametrize("squash", [False, True])
def test_the_merge_queue_is_not_green_for_what_was_not_reviewed(story: Story, squash: bool) -> None:
    read = story.pull(FAULT, branch="read")
    story.work()
    story.configures("review: {enabled: false}\n")
    unread = story.pull({"shop/more.py": "MORE = 1\n"}, branch="unread")
    story.work()
    check = _queued(story, read, unread, squash=squash)
    assert (check.conclusion, check.title) == ("neutral", f"Not reviewed: #{unread.number}")
    assert f"- #{read.number} at `{read.raw.head_sha[:12]}`: neutral: " in (check.summary or "")


@needs_sandbox
@pytest.mark.sandbox
def test_the_merge_queue_believes_no_number_in_a_message(tell: Tell) -> None:
    story = _with_whole_reviews(tell)
    good = story.pull(TESTED, branch="good")
    story.work()
    assert good.checks == {"Regreen": "success"}
    story.configures("review: {enabled: false}\n")
    bad = story.pull({"evil.py": "X = 1\n"}, branch="bad")
    check = _queued(story, bad, good, squash=True, message=f"Tidy (#{good.number})")
    assert (check.conclusion, check.title) == ("neutral", "Not reviewed: other commits")
