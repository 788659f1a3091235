"""What owners, other bots and we ourselves do on GitHub, and what Regreen makes of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from regreen.playground.acts import owners, pulls
from regreen.playground.outbox import Answer
from regreen.playground.things import Installation, Repository
from regreen.playground.world import World
from tests.stories.story import REPO, Story
from tests.stories.test_reviews import FAULT

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
    return [key for key, _ in story.regreen.store.items("schedules")]


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
    story.regreen.begin()
    story.work()
    assert pull.remarks
    assert pull.checks == {"Regreen": "neutral"}
    story.app.deliveries[:] = [d for d in story.app.deliveries if d.status_code < 300]


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
    story.regreen.runner.run(closed.id)
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


def test_the_bisect_button_says_what_it_needs(story: Story) -> None:
    pull = story.pull(FAULT)
    story.work()
    story.state.press(pull.check, "bisect", by="alice")
    story.work()
    assert "which test? say /bisect test=" in pull.comments[0]


@pytest.mark.slow
def test_the_dismiss_button_turns_down_all_and_the_check_follows(story: Story) -> None:
    pull = story.pull(FAULT)
    story.work()
    assert pull.remarks
    story.state.press(pull.check, "dismiss", by="alice")
    story.work()
    assert all(t.resolved_by is not None for t in pull.raw.threads)
    story.pushes(pull, {"shop/more.py": "X = 1\n"})
    story.work()
    assert len(pull.raw.threads) == len(pull.remarks)


@pytest.mark.parametrize("button", ["fix", "bisect", "dismiss"])
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


def test_the_merge_queue_gets_the_check_once_on_its_own_commit(story: Story) -> None:
    pull = story.pull()
    story.work()
    sha = story.state.queue_merge(pull.raw)
    story.work()
    (check,) = story.state.checks_on(REPO, sha)
    assert (check.name, check.conclusion) == ("Regreen", "success")
