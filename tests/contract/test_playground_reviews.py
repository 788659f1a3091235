"""Reviews: comments only on lines of the diff, all or nothing; threads that can be resolved and grow old."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.playground_hub import NUMBERS, REPO, Hub, opened


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with opened(tmp_path) as made:
        yield made


def on(line: int, **more: object) -> dict[str, object]:
    """A comment on a line of numbers.py."""
    return {"path": "numbers.py", "line": line, "side": "RIGHT", "body": "Look", **more}


def review(hub: Hub, number: int, *comments: dict[str, object], event: str = "COMMENT") -> Any:
    body = {"event": event, "body": "Read", "comments": list(comments)}
    return hub.repo("POST", f"/pulls/{number}/reviews", hub.token(), body)


# numbers.py: line 5 removed, line 20 (now 19) changed, one line added after it.
GOOD = [
    on(19),
    on(20),
    on(16),
    on(23),
    on(5, side="LEFT"),
    on(2, side="LEFT"),
    on(20, start_line=17, start_side="RIGHT"),
    on(20, side="RIGHT", start_line=20, start_side="LEFT"),
]
BAD = [
    on(12),
    on(24),
    on(999),
    on(12, side="LEFT"),
    on(20, start_line=3, start_side="RIGHT"),
    {**on(19), "path": "README.md"},
    {**on(19), "path": "nothing.py"},
]


@pytest.mark.parametrize("comment", GOOD)
def test_lines_of_the_diff_take_a_comment(hub: Hub, comment: dict[str, object]) -> None:
    assert review(hub, hub.pull().number, comment).status_code == 200


@pytest.mark.parametrize("comment", BAD)
def test_one_bad_line_refuses_the_whole_review(hub: Hub, comment: dict[str, object]) -> None:
    pull = hub.pull()
    refused = review(hub, pull.number, on(19), comment)
    assert (refused.status_code, refused.json()["message"]) == (422, "Unprocessable Entity")
    assert pull.reviews == []
    assert pull.threads == []


def test_the_hunk_is_shown_down_to_the_line(hub: Hub) -> None:
    pull = hub.pull()
    review(hub, pull.number, on(20))
    shown = hub.repo("GET", f"/pulls/{pull.number}/comments", hub.token()).json()[0]
    assert shown["diff_hunk"].splitlines()[-3:] == ["-n20 = 20", "+n20 = 21", "+extra = 1"]


def test_nobody_approves_their_own_pull(hub: Hub) -> None:
    pull = hub.pull(by="regreen[bot]")
    assert review(hub, pull.number, event="APPROVE").status_code == 422


def test_a_commit_of_another_branch_is_refused(hub: Hub) -> None:
    pull = hub.pull()
    main = hub.state.repository(REPO).git.branch("main")
    body = {"event": "COMMENT", "body": "x", "commit_id": main, "comments": [on(19)]}
    assert hub.repo("POST", f"/pulls/{pull.number}/reviews", hub.token(), body).status_code == 422


def test_a_body_has_a_limit(hub: Hub) -> None:
    # The checker would report it too, so the playground's own answer is asked for directly.
    from regreen_playground.acts.issues import comment
    from regreen_playground.world import Refused

    issue = hub.state.open_issue(REPO, "Long")
    with pytest.raises(Refused, match="Validation Failed"):
        comment(hub.state, issue, hub.state.person("alice"), "x" * 65_537)


def test_a_push_makes_comments_on_changed_lines_outdated(hub: Hub) -> None:
    pull = hub.pull()
    review(hub, pull.number, on(19), on(16))
    changed = "top = 0\n" + NUMBERS.replace("n20 = 20\n", "n20 = 22\n").replace("n5 = 5\n", "")
    hub.state.commit(REPO, {"numbers.py": changed}, branch="change")
    lines = {t.comments[0].original_line: t.comments[0].line for t in pull.threads}
    assert lines == {19: None, 16: 17}
    assert [thread.outdated for thread in pull.threads] == [True, False]


QUERY = """
query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      reviewThreads(first: 1, after: $after) {
        pageInfo { hasNextPage endCursor }
        nodes { id isResolved isOutdated path line comments(first: 10) { nodes { databaseId body author { login } } } }
      }
    }
  }
}
"""


def graphql(hub: Hub, query: str, token: str, **variables: object) -> Any:
    url = f"{hub.playground.url}/api/graphql"
    return hub.send("POST", url, token, {"query": query, "variables": variables}).json()


def threads(hub: Hub, number: int, after: str | None = None) -> Any:
    named = {"owner": "acme", "name": "lib", "number": number, "after": after}
    answer = graphql(hub, QUERY, hub.token(pull_requests="read"), **named)
    return answer["data"]["repository"]["pullRequest"]["reviewThreads"]


def test_threads_are_listed_page_by_page(hub: Hub) -> None:
    pull = hub.pull()
    review(hub, pull.number, on(19), on(20))
    first = threads(hub, pull.number)
    second = threads(hub, pull.number, first["pageInfo"]["endCursor"])
    assert (first["pageInfo"]["hasNextPage"], second["pageInfo"]["hasNextPage"]) == (True, False)
    assert [one["nodes"][0]["line"] for one in (first, second)] == [19, 20]


def test_a_thread_is_resolved_and_answered(hub: Hub) -> None:
    pull = hub.pull()
    review(hub, pull.number, on(19))
    node = threads(hub, pull.number)["nodes"][0]["id"]
    resolve = "mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { thread { isResolved } } }"
    done = graphql(hub, resolve, hub.token(pull_requests="write", contents="write"), id=node)
    assert done == {"data": {"resolveReviewThread": {"thread": {"isResolved": True}}}}
    reply = (
        "mutation($id: ID!, $text: String!) { addPullRequestReviewThreadReply(input: "
        "{pullRequestReviewThreadId: $id, body: $text}) { comment { databaseId } } }"
    )
    graphql(hub, reply, hub.token(pull_requests="write"), id=node, text="Done")
    shown = threads(hub, pull.number)["nodes"][0]
    assert shown["isResolved"] is True
    assert [one["body"] for one in shown["comments"]["nodes"]] == ["Look", "Done"]


def test_reading_is_not_resolving(hub: Hub) -> None:
    pull = hub.pull()
    review(hub, pull.number, on(19))
    node = threads(hub, pull.number)["nodes"][0]["id"]
    resolve = "mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { thread { id } } }"
    refused = graphql(hub, resolve, hub.token(pull_requests="read"), id=node)
    assert refused["errors"][0]["type"] == "FORBIDDEN"
    half = hub.token(pull_requests="write", contents="read")
    refused = graphql(hub, resolve, half, id=node)
    assert refused["errors"][0]["type"] == "FORBIDDEN", "GitHub wants contents: write for this"
    assert pull.threads[0].resolved_by is None


def test_a_reply_may_be_a_block_string_and_variables_have_defaults(hub: Hub) -> None:
    pull = hub.pull()
    review(hub, pull.number, on(19))
    node = threads(hub, pull.number)["nodes"][0]["id"]
    reply = (
        "mutation($id: ID!) { addPullRequestReviewThreadReply(input: "
        '{pullRequestReviewThreadId: $id, body: """Done,\n"at last" """}) { comment { body } } }'
    )
    answer = graphql(hub, reply, hub.token(pull_requests="write"), id=node)
    assert answer["data"]["addPullRequestReviewThreadReply"]["comment"]["body"].startswith("Done,")
    named = 'query($owner: String = "acme") { repository(owner: $owner, name: "lib") { name } }'
    found = graphql(hub, named, hub.token(pull_requests="read"))
    assert found == {"data": {"repository": {"name": "lib"}}}
