"""What the client writes to GitHub: no credentials, and its own texts found again by a marker nobody else can set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from regreen.adapters.clock import SystemClock
from regreen.adapters.github.client import GitHubApp
from regreen.bot import messages
from regreen.domain.errors import OutsideError
from regreen.domain.github import (
    COMMENT_SCOPE,
    FIX_SCOPE,
    CheckRun,
    InlineComment,
    TreeChange,
)
from regreen.secrets.redaction import make_value_hider
from tests.contract.playground_hub import REPO, Hub, opened

TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"
OWN = "the operator's own key 0123"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with opened(tmp_path) as made:
        yield made


def client(hub: Hub) -> GitHubApp:
    """A client that remembers nothing: each one finds by the marker alone."""
    return GitHubApp(
        app_id=hub.app.id,
        private_key=hub.key,
        api_url=hub.playground.api_url,
        clock=SystemClock(),
        turn=lambda *_: 0.0,
        clean=make_value_hider([OWN]),
    )


def test_nothing_that_is_written_to_github_carries_a_credential(hub: Hub) -> None:
    pull = hub.pull()
    github = client(hub).github(REPO, hub.installation.id, COMMENT_SCOPE)
    said = f"it said {TOKEN} and {OWN}"
    github.post_comment(pull.number, "<!-- regreen:a -->", said)
    github.post_issue("<!-- regreen:b -->", said, said)
    inline = InlineComment("numbers.py", 19, 19, "RIGHT", said)
    github.post_review(pull.number, pull.head_sha, "<!-- regreen:c -->", said, [inline])
    github.rewrite_reviews(
        pull.number, lambda _, body, urls: f"{urls['<!-- regreen:c -->']} {body}; {said}"
    )
    github.post_check_run(CheckRun("Regreen", pull.head_sha, "x", said, said, "neutral", text=said))
    everything = "".join(
        hub.repo("GET", path, hub.token()).text
        for path in (
            f"/issues/{pull.number}/comments",
            "/issues",
            f"/pulls/{pull.number}/reviews",
            f"/pulls/{pull.number}/comments",
            f"/commits/{pull.head_sha}/check-runs",
        )
    )
    assert everything.count("it said [hidden] and [hidden]") == 9
    assert "another's text" not in everything
    assert TOKEN not in everything
    assert OWN not in everything


def test_a_marker_that_our_own_text_quotes_finds_nothing(hub: Hub) -> None:
    pull = hub.pull()
    report = (
        "A test printed:\n\n" + messages.make_marker("reply", "comment-7") + "\n\nand then failed."
    )
    client(hub).github(REPO, hub.installation.id, COMMENT_SCOPE).post_comment(
        pull.number, messages.make_marker("review", 1), report
    )
    client(hub).github(REPO, hub.installation.id, COMMENT_SCOPE).post_comment(
        pull.number, messages.make_marker("reply", "comment-7"), "The answer."
    )
    listed = hub.repo("GET", f"/issues/{pull.number}/comments", hub.token()).json()
    assert [one["body"].split("\n")[0] for one in listed] == ["A test printed:", "The answer."]


def test_a_branch_moves_only_from_where_it_was_seen(hub: Hub) -> None:
    github = client(hub).github(REPO, hub.installation.id, FIX_SCOPE)
    git = hub.state.repository(REPO).git
    main = git.refs()["refs/heads/main"]
    first, second = (
        github.create_commit(main, [TreeChange("notes.txt", "100644", text)], "Add notes")
        for text in (b"one\n", b"two\n")
    )
    github.move_branch("regreen/fix-1", first, expect=None)
    with pytest.raises(OutsideError, match="Reference update failed"):
        github.move_branch("regreen/fix-1", second, expect=None)
    with pytest.raises(OutsideError, match="Reference update failed"):
        github.move_branch("regreen/fix-1", second, expect=main)
    assert git.refs()["refs/heads/regreen/fix-1"] == first
    github.move_branch("regreen/fix-1", second, expect=first)
    assert git.refs()["refs/heads/regreen/fix-1"] == second
