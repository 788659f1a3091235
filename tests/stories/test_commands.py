"""Somebody writes a command: who may, what is answered, what happens once."""

from __future__ import annotations

import pytest

from tests.stories.story import UNTESTED, Story, shown_page
from tests.stories.test_fixes import needs_sandbox


def test_a_stranger_is_refused(story: Story) -> None:
    pull = story.pull(draft=True)
    story.says("mallory", "/fix", on=pull)
    story.work()
    assert pull.comments == ["> `/fix`\n\n@mallory, only people with write access may do that."]


def test_a_stranger_may_ask_for_help(story: Story) -> None:
    pull = story.pull(draft=True)
    story.says("mallory", "/help", on=pull)
    story.work()
    assert pull.comments[0].startswith("> `/help`\n\nAvailable commands")


def test_the_repository_may_let_readers_in(story: Story) -> None:
    story.configures("commands: {allow: triage}\n")
    story.grants("tina", "triage")
    pull = story.pull(draft=True)
    story.says("tina", "/cancel", on=pull)
    story.work()
    text = pull.comments[0].removeprefix("> `/cancel`\n\n")
    assert text in {"Stopped 1 job: the review.", "No job is running or waiting here."}


def test_a_comment_is_seen_at_once_and_answered_at_the_end(story: Story) -> None:
    pull = story.pull(draft=True)
    said = story.says("alice", "/config", on=pull)
    story.work()
    assert story.reactions(said) == ["eyes", "rocket"]


def test_a_stranger_is_answered_once_an_hour_and_costs_no_more_than_that(story: Story) -> None:
    pull, other = story.pull(draft=True), story.issue("Broken")
    said = story.says("mallory", "/review\n" * 10, on=pull)
    story.work()
    story.says("mallory", "/fix\n/help\n/reviw", on=pull)
    story.says("mallory", "/fix", on=other)
    story.work()
    refusal = "@mallory, only people with write access may do that."
    assert pull.comments == [f"> `/review`\n\n{refusal}"]
    assert other.comments == [f"> `/fix`\n\n{refusal}"]
    assert story.reactions(said) == []
    story.passes(minutes=61)
    story.says("mallory", "/help", on=pull)
    story.work()
    assert "Available commands" in pull.comments[1]


def test_a_typo_is_answered_with_the_nearest(story: Story) -> None:
    issue = story.issue("Slow")
    story.says("alice", "/bisct", on=issue)
    story.work()
    assert issue.comments == [
        "> `/bisct`\n\nUnclear command: there is no `/bisct`. Did you mean `/bisect`?"
    ]


def test_several_commands_get_one_answer(story: Story) -> None:
    pull = story.pull(draft=True)
    story.says("alice", "/cancel\nthen\n/retry", on=pull)
    story.work()
    (answer,) = pull.comments
    parts = answer.split("\n\n")
    assert len(parts) == 4
    assert parts[::2] == ["> `/cancel`", "> `/retry`"], (
        "each part names the command that it answers"
    )


def test_an_edited_comment_runs_only_what_is_new(story: Story) -> None:
    issue = story.issue("Broken")
    said = story.says("alice", "/config", on=issue)
    story.work()
    story.state.edit(said, "/config please?\n/config\n/help", by="alice")
    story.work()
    notes = [j.note for j in story.regreen.store.jobs() if j.number == issue.raw.number]
    assert sorted(notes) == ["config", "unclear, help"]


def test_quoted_and_fenced_commands_are_not_run(story: Story) -> None:
    issue = story.issue("Broken")
    story.says("alice", "> /fix\n\n```\n/bisect\n```\n", on=issue)
    story.work()
    assert issue.comments == []


def test_our_own_words_are_no_command(story: Story) -> None:
    issue = story.issue("Broken")
    story.says("alice", "/help", on=issue)
    story.work()
    assert len(issue.comments) == 1


def test_what_needs_a_model_says_so(story: Story) -> None:
    pull = story.pull(draft=True)
    story.says("alice", "/explain", on=pull)
    story.says("alice", "/ask why?", on=pull)
    story.says("alice", "/test", on=pull)
    story.work()
    assert [c.split("\n")[0] for c in pull.comments] == [
        "> `/explain`",
        "> `/ask why?`",
        "> `/test`",
    ]
    assert all("none is configured" in c for c in pull.comments)


def test_a_review_of_an_issue_makes_no_sense(story: Story) -> None:
    issue = story.issue("Broken")
    story.says("alice", "/review", on=issue)
    story.work()
    told = "Not done: `/review` works on pull requests; here use `/bisect` or `/fix`."
    assert issue.comments == [f"> `/review`\n\n{told}"]


@needs_sandbox
@pytest.mark.sandbox
def test_bisect_without_a_test_says_what_it_needs(story: Story) -> None:
    story.commits(UNTESTED)
    issue = story.issue("Broken")
    story.says("alice", "/bisect", on=issue)
    story.work()
    answer = issue.comments[0]
    assert answer.endswith(
        '\n\nWhich test? Write `/bisect test="pytest tests/test_x.py"`, or set `tests.command` in `.github/regreen.yml`.'
    )


def test_nothing_waits_for_an_approval(story: Story) -> None:
    pull = story.pull(draft=True)
    story.says("alice", "/approve", on=pull)
    story.work()
    assert pull.comments == ["> `/approve`\n\nNothing here is waiting for approval."]
    draft = story.pull({"shop/a.py": "A = 1\n"}, draft=True, branch="regreen/fix-1")
    story.says("alice", "/approve", on=draft)
    story.work()
    how = f"To accept #{draft.number}, mark it ready for review and merge it."
    assert draft.comments[0].endswith(f"waiting for approval. {how}")


def test_dismissing_what_is_not_there(story: Story) -> None:
    pull = story.pull(draft=True)
    story.says("alice", "/dismiss nonsense", on=pull)
    story.work()
    assert pull.comments == ["> `/dismiss nonsense`\n\nThere is no finding here to dismiss."]
    audit = shown_page(story, "/audit")
    assert "dismiss: no such finding" in audit
    assert 'data-label="who">-<' not in audit


def test_more_than_thirty_in_an_hour_is_too_many(story: Story) -> None:
    issue = story.issue("Broken")
    for _ in range(4):
        story.says("alice", "/help\n" * 10, on=issue)
        story.work()
    assert "more than 30 commands in the last hour" in issue.comments[-1]
    said = story.says("alice", "/help", on=issue)
    story.work()
    assert len(issue.comments) == 4, "that it is too many is said once"
    assert story.reactions(said) == ["confused"]


def test_the_audit_log_names_who_asked(story: Story) -> None:
    pull = story.pull(draft=True)
    story.says("mallory", "/fix", on=pull)
    story.says("alice", "/config", on=pull)
    story.work()
    who = {(a.asked_by, a.action) for a in story.regreen.store.actions()}
    assert {("mallory", "refused"), ("alice", "/config")} <= who
