"""A patch becomes a draft: its commit, its branch and its text as the repository wants them."""

from __future__ import annotations

from regreen.domain.state_records import PendingPatch
from tests.stories.story import REPO, SeenPull, Story

PATCH = """\
--- a/shop/bulk.py
+++ b/shop/bulk.py
@@ -1,1 +1,1 @@
-BULK = 100
+BULK = 101
"""


def _approved(story: Story) -> SeenPull:
    """The draft of a patch that was shown on a pull request and is approved there."""
    pull = story.pull(draft=True)
    where, sha = str(pull.number), pull.raw.head_sha
    story.regreen.store.save(
        PendingPatch(REPO, where, 0.0, PATCH, "change", sha, "Fix test_bulk", "Report.", True)
    )
    story.says("alice", "/approve", on=pull)
    story.work()
    return story.pulls[-1]


def test_a_patch_is_committed_by_github_which_signs_it(story: Story) -> None:
    draft = _approved(story)
    assert (draft.title, draft.raw.head_ref, draft.raw.draft) == (
        "Fix test_bulk",
        "regreen/fix-1",
        True,
    )
    git = story.state.repository(REPO).git
    commit = git.commit(draft.raw.head_sha)
    assert (commit.committer.name, commit.committer.email) == ("GitHub", "noreply@github.com")
    assert commit.author.name == "regreen[bot]"
    assert commit.message == "Fix test_bulk\n\nFound and verified by Regreen."
    assert git.blob(git.at(commit.sha, "shop/bulk.py").sha) == b"BULK = 101\n"  # type: ignore[union-attr]


def test_a_second_patch_moves_our_branch_unless_somebody_pushed_there(story: Story) -> None:
    first = _approved(story)
    tip = first.raw.head_sha
    pull = story.pulls[0]
    where, sha = str(pull.number), pull.raw.head_sha
    patch = PATCH.replace("101", "102")
    again = PendingPatch(REPO, where, 0.0, patch, "change", sha, "Fix test_bulk", "Report.", True)
    story.regreen.store.save(again)
    story.says("alice", "/approve", on=pull)
    story.work()
    moved = story.pulls[-1].raw.head_sha
    assert moved != tip
    story.state.commit(REPO, {"more.py": "X = 1\n"}, branch="regreen/fix-1", by="alice")
    story.regreen.store.save(again)
    story.says("alice", "/approve", on=pull)
    story.work()
    assert "has commits that Regreen did not push" in pull.comments[-1]


def test_a_patch_follows_the_customs_of_the_repository(story: Story) -> None:
    story.commits({
        ".github/dco.yml": "",
        ".github/PULL_REQUEST_TEMPLATE.md": "## What\n<!-- say it -->\n\n## Checklist\n- [ ] docs\n",
        "CODEOWNERS": "* @acme/all\n/shop/ @acme/sales @bob\nshop/*.md @writers\n",
    })  # fmt: skip
    for number in range(9):
        story.commits({f"notes/{number}.txt": "x\n"}, message=f"docs(notes): add note {number}")
    draft = _approved(story)
    assert draft.title == "fix: test_bulk"
    assert draft.body == (
        "## What\n\nApproved by @alice on 2026-03-02 at 09:00 UTC.\n\nReport.\n\nCode owners: `@acme/sales`, `@bob`.\n\n## Checklist\n- [ ] docs"
    )
    commit = story.state.repository(REPO).git.commit(draft.raw.head_sha)
    author = f"{commit.author.name} <{commit.author.email}>"
    assert commit.message.endswith(f"\n\nSigned-off-by: {author}")
