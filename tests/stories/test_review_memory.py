"""A pull request over several pushes: nothing is said twice, what is mended is closed, what was dismissed stays away."""

from __future__ import annotations

import re

import pytest
from regreen_playground.things import ReviewComment

from tests.stories.story import REPO, SeenPull, Story, shown_job
from tests.stories.test_reviews import FAULT

PATH = "shop/run.py"
SHELL = FAULT[PATH]
MOVED = SHELL.replace("def run", "LIMIT = 3\n\n\ndef run")
MENDED = '"""Runs."""\n\n\ndef run():\n    """Run."""\n    return 0\n'


def threads(pull: SeenPull) -> list[bool]:
    return [thread.resolved_by is not None for thread in pull.raw.threads]


def finding(pull: SeenPull) -> str:
    return pull.remarks[0][2].split("/dismiss ")[1].split("`")[0]


def test_a_finding_that_moves_is_not_said_again_and_keeps_the_check_from_green(
    story: Story,
) -> None:
    pull = story.pull(FAULT)
    story.work()
    said = len(pull.remarks)
    story.pushes(pull, {PATH: MOVED})
    story.work()
    assert len(pull.remarks) == said
    assert threads(pull) == [False] * said
    assert "Still open:" in (pull.check.summary or "")
    counted = (
        "1 earlier one still open (" if said == 1 else f"{said} earlier ones still open (worst is "
    )
    assert pull.check.title == f"No new findings; {counted}critical)"
    assert "No findings" not in (pull.check.summary or "")
    assert "security | 100" not in (pull.check.summary or ""), "what stands still costs its score"


def test_a_full_review_of_the_same_commit_repeats_no_open_thread(story: Story) -> None:
    pull = story.pull(FAULT, draft=True)
    story.says("alice", "/review", on=pull)
    story.work()
    said, reviews = len(pull.remarks), len(pull.reviews)
    story.says("alice", "/review full", on=pull)
    story.work()
    assert (len(pull.remarks), len(pull.reviews)) == (said, reviews)
    assert (pull.check.title or "").startswith("No new findings; ")
    first = pull.raw.threads[0]
    mark = first.comments[0].body
    story.state.reply(pull.raw, first.comments[0], mark, by="mallory")
    first.comments.pop(0)  # what stands first now is another person's copy
    story.says("alice", "/review full", on=pull)
    story.work()
    assert len(pull.remarks) == said, "a copied mark hides no finding"
    story.pushes(pull, {PATH: MOVED})
    story.says("alice", "/review full", on=pull)
    story.work()
    assert len(pull.remarks) == 2 * said, "on a new commit all is said again"


def test_in_a_findings_own_thread_what_follows_dismiss_is_the_reason(story: Story) -> None:
    pull = story.pull(FAULT)
    story.work()
    said = len(pull.remarks)
    first = pull.raw.threads[0]
    story.state.reply(pull.raw, first.comments[0], "/dismiss the shell is meant here", by="alice")
    story.work()
    assert "\n\nDismissed (the shell is meant here): " in first.comments[-1].body
    assert threads(pull) == [True] + [False] * (said - 1)


def test_a_mended_finding_has_its_thread_resolved(story: Story) -> None:
    pull = story.pull(FAULT)
    story.work()
    assert not any(threads(pull))
    story.pushes(pull, {PATH: MENDED})
    story.work()
    assert all(threads(pull))
    _, _, fixed = (pull.check.summary or "").partition("Fixed since the last review:\n\n")
    assert re.match(r"- `shop/run.py` .{10,} \(`\w+`\)\n", fixed)
    _, _, shown = shown_job(story, "review").partition("Fixed since the review before")
    assert "shop/run.py" in shown.partition("</ul>")[0]
    (first,) = pull.reviews
    count, at = len(pull.raw.threads), pull.raw.head_sha[:12]
    told, _, posted = first.partition("<details><summary>The review as it was posted</summary>")
    assert re.match(rf"\*\*Findings at `{at}`: {count} fixed, none open\*\* \(\[check\]\(.+/{REPO}/runs/\d+\)\)\n\nFixed:\n\n- `{PATH}` ", told)  # fmt: skip
    assert "critical" in posted


def test_an_earlier_review_tells_after_each_push_what_is_fixed_open_new_and_dismissed(
    story: Story,
) -> None:
    other = {"shop/other.py": SHELL.replace("def run", "def other")}
    pull = story.pull({**FAULT, **other})
    story.work()
    (before,) = pull.reviews
    count = len(pull.raw.threads) // 2
    story.pushes(pull, {PATH: MENDED, "shop/third.py": SHELL.replace("def run", "def third")})
    story.work()
    first, second = pull.reviews
    new = rf"\[{count} new\]\(\S+#pullrequestreview-\d+\)"
    assert re.match(rf"\*\*Findings at `\w+`: {count} fixed, {count} still open, {new}\*\* ", first)
    parts = [first.index(word) for word in ("Fixed:", PATH, "Still open:", "other.py:")]
    assert parts == sorted(parts)
    assert "third.py" not in first, "it stands in the review below"
    assert "as it was posted" not in second, "it is up to date"
    assert "What changes: `shop/" in before
    assert "Walkthrough by file" in before
    assert re.fullmatch(rf"\*\*{count} new finding.+\*\*\n\n(- \*\*.+\n)+\n<sub>`/help` .+</sub>", second), "only what is new"  # fmt: skip
    check = pull.check.summary or ""
    for words in (
        "What changes: `shop/",
        "Walkthrough by file",
        "Statistics (risk",
        "Reproduce: `",
    ):
        assert words in check
    wanted = pull.remarks[-1][2].split("/dismiss ")[1].split("`")[0]
    story.says("alice", f"/dismiss {wanted} meant", on=pull)
    story.work()
    dismissed = rf"Dismissed:\n\n- `.+` .+ \(`{wanted}`\); dismissed by `alice`, the author of this change, on \S+: meant\n\n"
    first, second = pull.reviews
    lead = r"\*\*Findings at `\w+`: \d fixed, \d still open, 1 dismissed\*\* \S+\n\n"
    for text in (first, second):
        assert re.match(lead + "Fixed:", text)
        assert re.search(dismissed, text)
        assert "as it was posted" in text, "the old headline is folded"
    story.pushes(pull, {"shop/other.py": MENDED, "shop/third.py": MENDED})
    story.work()
    first, second = pull.reviews
    counts = rf"{3 * count - 1} fixed, 1 dismissed, none open"
    assert re.match(rf"\*\*Findings at `{pull.raw.head_sha[:12]}`: {counts}\*\* ", second), (
        "what was dismissed and then mended is still counted"
    )
    assert second.count("as it was posted") == 1
    assert re.match(r"What became of its findings stands in \[a later review\]\(\S+#pullrequestreview-\d+\)\.\n\n", first)  # fmt: skip
    assert first.count("as it was posted") == 1
    assert first.endswith(f"</summary>\n\n{before}\n\n</details>"), "nothing of it is lost"


@pytest.mark.slow
def test_only_what_is_mended_is_resolved(story: Story) -> None:
    other = {"shop/other.py": SHELL.replace("def run", "def other")}
    pull = story.pull({**FAULT, **other})
    story.work()
    story.pushes(pull, {PATH: MENDED})
    story.work()
    by_path = {c.path: t.resolved_by is not None for t in pull.raw.threads for c in t.comments}
    assert by_path == {PATH: True, "shop/other.py": False}


@pytest.mark.slow
def test_what_comes_back_after_it_was_mended_is_news(story: Story) -> None:
    pull = story.pull(FAULT)
    story.work()
    said = len(pull.remarks)
    for text in (MENDED, SHELL):
        story.pushes(pull, {PATH: text})
        story.work()
    assert len(pull.remarks) == 2 * said


@pytest.mark.slow
def test_a_dismissed_finding_stays_away_over_every_push(story: Story) -> None:
    pull = story.pull(FAULT)
    story.work()
    wanted = finding(pull)
    story.says("alice", f"/dismiss {wanted} a test server", on=pull)
    story.work()
    said = len(pull.remarks)
    for text in (MOVED, MENDED, SHELL):
        story.pushes(pull, {PATH: text})
        story.work()
    assert not [text for _, _, text in pull.remarks[said:] if wanted in text]


def statistics(pull: SeenPull) -> str:
    return next(
        line for line in (pull.check.summary or "").splitlines() if line.startswith("| security |")
    )


def test_a_dismissal_is_named_and_counted_at_every_later_push(story: Story) -> None:
    pull = story.pull(FAULT)
    story.work()
    wanted, score = finding(pull), statistics(pull).split("|")[2]
    story.says("alice", f"/dismiss {wanted} only admins reach it", on=pull)
    story.work()
    story.pushes(pull, {PATH: MOVED})
    story.work()
    after = pull.check
    _, _, row = (after.summary or "").partition("Dismissed, and still counted in the statistics:")
    assert (
        f"`{wanted}`); dismissed by `alice`, the author of this change, on {story.clock.now():%Y-%m-%d}: only admins reach"
        in row
    )
    assert '"dismissed": 1' in row
    assert "dismissed by alice, the author of the change" in (after.title or "")
    assert statistics(pull).split("|")[2] == score
    story.says("alice", f"/undismiss {wanted}", on=pull)
    story.work()
    headline, _, still_open = (pull.check.summary or "").partition("Still open:")
    assert f"`{wanted}`)" in still_open
    assert "No findings" not in headline
    for text in (pull.check.title or "", headline, shown_job(story, "review")):
        assert "No new findings; " in text
        assert "still open" in text


@pytest.mark.slow
def test_a_blocking_finding_goes_on_blocking(story: Story) -> None:
    story.configures("review: {blocking: low}\n")
    pull = story.pull(FAULT)
    story.work()
    story.pushes(pull, {"shop/more.py": "X = 1\n"})
    story.work()
    assert pull.checks == {"Regreen": "failure"}
    story.pushes(pull, {PATH: MENDED})
    story.work()
    assert pull.checks == {"Regreen": "success"}


def thread_of(pull: SeenPull, wanted: str) -> ReviewComment:
    return next(t.comments[0] for t in pull.raw.threads if wanted in t.comments[0].body)


@pytest.mark.slow
def test_a_thumb_down_turns_a_finding_down_for_good_and_teaches(story: Story) -> None:
    pull = story.pull(FAULT)
    story.work()
    wanted = finding(pull)
    story.state.react(thread_of(pull, wanted), "-1", by="alice")
    said = len(pull.remarks)
    for text in (MENDED, SHELL):
        story.pushes(pull, {PATH: text})
        story.work()
    assert not [text for _, _, text in pull.remarks[said:] if wanted in text]
    story.says("alice", "/stats", on=pull)
    story.work()
    assert "| outcomes | right | threshold |" in pull.comments[-1]


@pytest.mark.slow
def test_a_strangers_thumb_changes_nothing(story: Story) -> None:
    pull = story.pull(FAULT)
    story.work()
    wanted = finding(pull)
    story.state.react(thread_of(pull, wanted), "-1", by="mallory")
    for text in (MENDED, SHELL):
        story.pushes(pull, {PATH: text})
        story.work()
    assert sum(wanted in text for _, _, text in pull.remarks) == 2


@pytest.mark.slow
def test_a_reply_that_denies_turns_the_finding_down(story: Story) -> None:
    pull = story.pull(FAULT)
    story.work()
    wanted = finding(pull)
    story.state.reply(pull.raw, thread_of(pull, wanted), "False positive: a test server", by="alice")  # fmt: skip
    for text in (MENDED, SHELL):
        story.pushes(pull, {PATH: text})
        story.work()
    assert sum(wanted in text for _, _, text in pull.remarks) == 1


def test_who_dismissed_by_a_thumb_or_a_reply_is_named_with_the_day(story: Story) -> None:
    other = {"shop/other.py": SHELL.replace("def run", "def other")}
    pull = story.pull({**FAULT, **other})
    story.work()
    by_path = {t.comments[0].path: t.comments[0] for t in pull.raw.threads}
    story.state.react(by_path[PATH], "-1", by="alice")
    said = "> shell\nFalse positive: a test server"
    story.state.reply(pull.raw, by_path["shop/other.py"], said, by="alice")
    for number in (1, 2):
        story.pushes(pull, {"shop/note.py": f"NOTE = {number}\n"})
        story.work()
    by = f"dismissed by `alice`, the author of this change, on {story.clock.now():%Y-%m-%d}: "
    shown = pull.check.summary or ""
    assert f"; {by}with a thumb down\n" in shown
    assert f"; {by}by a reply, False positive: a test server" in shown
    assert "2 dismissed by alice, the author of the change" in (pull.check.title or "")
    assert "with a thumb down" in shown_job(story, "review")
    audit = [(e.asked_by, e.action, e.detail) for e in story.regreen.store.actions(repo=REPO)]
    told = [
        detail.partition(", ")[2]
        for who, what, detail in audit
        if (who, what) == ("alice", "dismissed")
    ]
    assert sorted(told) == ["by a reply, False positive: a test server", "with a thumb down"]
    reviews = [detail.partition(" at ")[0] for _, what, detail in audit if what == "review"]
    assert reviews[-1] == "2 new findings, 2 open", "newest first"
    assert reviews[0] == "0 new findings, 0 open"
    wanted = finding(pull)
    story.says("alice", f"/undismiss {wanted}", on=pull)
    story.work()
    assert "the next review dismisses it again" in pull.comments[-1]


@pytest.mark.slow
def test_a_thread_that_a_person_resolves_is_not_opened_again_until_it_is_reopened(
    story: Story,
) -> None:
    pull = story.pull(FAULT)
    story.work()
    wanted = finding(pull)
    story.state.resolve(pull.raw, thread_of(pull, wanted), by="alice")
    story.work()
    audit = [(e.asked_by, e.action, e.detail) for e in story.regreen.store.actions(repo=REPO)]
    assert ("alice", "dismissed", f"{wanted}, its thread was resolved") in audit
    for text in (MENDED, SHELL):
        story.pushes(pull, {PATH: text})
        story.work()
    assert sum(wanted in text for _, _, text in pull.remarks) == 1


def test_a_dismissal_is_taken_back(story: Story) -> None:
    pull = story.pull(FAULT)
    story.work()
    before, first = pull.check, pull.raw.threads[0]
    title, conclusion = before.title, before.conclusion
    story.state.reply(pull.raw, first.comments[0], "/dismiss by a reply of ops", by="alice")
    story.work()
    assert pull.check.title != title
    undo = first.comments[-1].body.partition("raised again; `")[2].partition("`")[0]
    story.says("alice", undo, on=pull)
    story.work()
    assert "\n\nCounts again: " in pull.comments[-1]
    assert "(was dismissed by `alice`)" in pull.comments[-1]
    assert "The check `Regreen` is `neutral` now: 1 finding, worst is critical" in pull.comments[-1]
    assert "dismisses it again" not in pull.comments[-1], "no thumb or reply stands"
    assert (pull.check.title, pull.check.conclusion) == (title, conclusion)
    assert threads(pull) == [False] * len(pull.remarks), "its thread is open again"
    story.says("alice", "/stats\n/undismiss", on=pull)
    story.work()
    assert "No feedback yet" in pull.comments[-1], "nothing is learned from it"
    assert "There is no dismissed finding here." in pull.comments[-1]


def test_without_outcomes_the_statistics_say_so(story: Story) -> None:
    pull = story.pull()
    story.says("alice", "/stats", on=pull)
    story.work()
    assert pull.comments[-1].startswith("> `/stats`\n\nNo feedback yet")
