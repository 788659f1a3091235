"""The pages: everything is there, and nothing in them is taken for HTML."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.playground_hub import REPO, Hub, opened

EVIL = "<script>alert(1)</script>"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with opened(tmp_path) as made:
        yield made


def page(hub: Hub, path: str) -> str:
    got = hub.send("GET", hub.playground.url + path)
    assert got.status_code == 200, got.text
    return got.text


def test_a_pull_with_its_review_and_checks(hub: Hub) -> None:
    pull = hub.pull()
    hub.state.comment(
        pull, f"{EVIL} **bold** <!-- hidden --> <details><summary>more</summary>x</details>"
    )
    on = {"path": "numbers.py", "line": 19, "body": "Mind the step"}
    body = {"event": "COMMENT", "body": "Read", "comments": [on]}
    hub.repo("POST", f"/pulls/{pull.number}/reviews", hub.token(), body)
    report = {"title": "All read", "summary": EVIL}
    check = {"name": "Regreen", "head_sha": pull.head_sha, "conclusion": "success"}
    hub.repo("POST", "/check-runs", hub.token(), {**check, "output": report})
    text = page(hub, f"/{REPO}/pull/{pull.number}")
    assert EVIL not in text
    assert "hidden" not in text
    for piece in ("<b>bold</b>", "<details>", "Mind the step", "All read", "+extra = 1"):
        assert piece in text
    run = hub.state.checks_on(REPO, pull.head_sha)[0]
    assert EVIL not in page(hub, f"/{REPO}/runs/{run.id}")


def test_every_other_page_opens(hub: Hub) -> None:
    pull = hub.pull()
    issue = hub.state.open_issue(REPO, EVIL, EVIL)
    run = hub.state.fail_ci(
        REPO, pull.head_sha, job="test", steps=["Tests"], failed="Tests", log=EVIL
    )
    paths = (
        "/",
        f"/{REPO}",
        f"/{REPO}/issues/{issue.number}",
        f"/{REPO}/commit/{pull.head_sha}",
        f"/{REPO}/actions/runs/{run.id}",
        "/_deliveries",
    )
    for path in paths:
        assert EVIL not in page(hub, path)
    assert page(hub, f"/{REPO}/blob/main/README.md") == "# lib\n"


def test_a_comment_is_written_in_the_page(hub: Hub) -> None:
    issue = hub.state.open_issue(REPO, "Broken")
    url = f"{hub.playground.url}/{REPO}/issues/{issue.number}/_comment"
    import requests

    form = {"login": "alice", "body": "/help"}
    sent = requests.post(url, data=form, allow_redirects=False, timeout=10)
    assert sent.status_code == 303
    assert [(one.user.login, one.body) for one in issue.comments] == [("alice", "/help")]
    foreign = {"Origin": "http://elsewhere.example"}
    refused = requests.post(url, data=form, headers=foreign, timeout=10)
    assert refused.status_code == 403
    assert len(issue.comments) == 1
