"""The rest of REST: pages of lists, ETags, checks and their limits, logs behind a redirect, contents, uploads."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from regreen_playground import serve
from regreen_playground.world import Fault

from tests.contract.playground_hub import NUMBERS, REPO, Hub, opened


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with opened(tmp_path) as made:
        yield made


def test_lists_come_in_pages_with_links(hub: Hub) -> None:
    issue = hub.state.open_issue(REPO, "Busy")
    for number in range(5):
        hub.state.comment(issue, f"comment {number}")
    token = hub.token(issues="read")
    path = f"/issues/{issue.number}/comments?per_page=2&page=2"
    answer = hub.repo("GET", path, token)
    assert [one["body"] for one in answer.json()] == ["comment 2", "comment 3"]
    assert set(answer.links) == {"next", "last", "first", "prev"}
    following = hub.send("GET", answer.links["next"]["url"], token)
    assert [one["body"] for one in following.json()] == ["comment 4"]
    assert "next" not in following.links


def test_what_is_known_already_is_a_304(hub: Hub) -> None:
    token = hub.token()
    first = hub.send("GET", f"/repos/{REPO}/pulls", token)
    etag = {"If-None-Match": first.headers["ETag"]}
    assert hub.send("GET", f"/repos/{REPO}/pulls", token, **etag).status_code == 304
    hub.pull()
    assert hub.send("GET", f"/repos/{REPO}/pulls", token, **etag).status_code == 200


def check(hub: Hub, **more: object) -> dict[str, object]:
    sha = hub.state.repository(REPO).git.branch("main")
    return {"name": "Regreen", "head_sha": sha, "status": "in_progress", **more}


def notes(count: int) -> list[dict[str, object]]:
    one = {"path": "numbers.py", "start_line": 1, "end_line": 1, "message": "m"}
    return [{**one, "annotation_level": "notice"} for _ in range(count)]


def output(count: int) -> dict[str, object]:
    return {"title": "t", "summary": "s", "annotations": notes(count)}


def test_annotations_are_added_fifty_at_a_time(hub: Hub) -> None:
    token = hub.token(checks="write")
    run = hub.repo("POST", "/check-runs", token, check(hub, output=output(50))).json()
    hub.repo("PATCH", f"/check-runs/{run['id']}", token, {"output": output(7)})
    done = {"conclusion": "neutral", "output": {"title": "t", "summary": "s"}}
    ended = hub.repo("PATCH", f"/check-runs/{run['id']}", token, done).json()
    assert (ended["status"], ended["conclusion"]) == ("completed", "neutral")
    assert ended["output"]["annotations_count"] == 57
    path = f"/check-runs/{run['id']}/annotations?per_page=100"
    assert len(hub.repo("GET", path, token).json()) == 57


@pytest.mark.parametrize(
    "body",
    [
        {"output": output(51)},
        {"output": {"title": "t", "summary": "x" * 65_536}},
        {"actions": [{"label": "a", "description": "b", "identifier": str(i)} for i in range(4)]},
        {"actions": [{"label": "a" * 21, "description": "b", "identifier": "c"}]},
        {"status": "completed"},
        {"head_sha": "0" * 40},
    ],
)
def test_a_check_beyond_the_limits_is_refused(tmp_path: Path, body: dict[str, object]) -> None:
    # Not through the checker: each of these is a fault it reports itself.
    with serve(root=tmp_path / "github", deliver=False) as playground:
        hub = Hub(playground)
        answer = hub.repo("POST", "/check-runs", hub.token(), check(hub, **body))
        assert answer.status_code == 422
        assert playground.state.checks_on(REPO, str(check(hub)["head_sha"])) == []
        hub.close()


def test_a_check_is_changed_only_by_its_app(hub: Hub) -> None:
    sha = str(check(hub)["head_sha"])
    hub.state.fail_ci(REPO, sha, job="test", steps=["Tests"], failed="Tests", log="boom")
    runs = hub.repo("GET", f"/commits/{sha}/check-runs", hub.token()).json()["check_runs"]
    changed = hub.repo("PATCH", f"/check-runs/{runs[0]['id']}", hub.token(), {"name": "mine"})
    assert changed.status_code == 403


def test_a_failed_run_has_jobs_steps_and_a_log_behind_a_redirect(hub: Hub) -> None:
    sha = str(check(hub)["head_sha"])
    run = hub.state.fail_ci(
        REPO, sha, job="test", steps=["Checkout", "Tests", "After"], failed="Tests", log="boom\n"
    )
    token = hub.token(actions="read")
    shown = hub.repo("GET", f"/actions/runs/{run.id}", token).json()
    assert (shown["conclusion"], shown["path"]) == ("failure", ".github/workflows/ci.yml")
    job = hub.repo("GET", f"/actions/runs/{run.id}/jobs?filter=latest", token).json()["jobs"][0]
    ends = [(step["number"], step["conclusion"]) for step in job["steps"]]
    assert ends == [(1, "success"), (2, "failure"), (3, "skipped")]
    moved = hub.repo("GET", f"/actions/jobs/{job['id']}/logs", token)
    assert moved.status_code == 302
    target = moved.headers["Location"]
    assert hub.send("GET", target).text == "boom\n"
    assert hub.send("GET", target, token).status_code == 400
    assert hub.send("GET", target.replace("sig=", "sig=0")).status_code == 403


def test_contents_are_read_as_files_and_folders(hub: Hub) -> None:
    token = hub.token(contents="read")
    shown = hub.repo("GET", "/contents/numbers.py", token).json()
    assert base64.b64decode(shown["content"]).decode() == NUMBERS
    names = [one["name"] for one in hub.repo("GET", "/contents", token).json()]
    assert names == ["README.md", "numbers.py"]
    assert hub.repo("GET", "/contents/nothing", token).status_code == 404
    raw = hub.send("GET", f"/repos/{REPO}/readme", token, Accept="application/vnd.github.raw+json")
    assert raw.text == "# lib\n"


def test_a_pull_shows_its_diff(hub: Hub) -> None:
    pull, token = hub.pull(), hub.token(pull_requests="read")
    files = hub.repo("GET", f"/pulls/{pull.number}/files", token).json()
    assert [(f["filename"], f["additions"], f["deletions"]) for f in files] == [
        ("numbers.py", 2, 2)
    ]
    diff = hub.send(
        "GET", f"/repos/{REPO}/pulls/{pull.number}", token, Accept="application/vnd.github.v3.diff"
    )
    assert diff.text.startswith("diff --git a/numbers.py b/numbers.py")


def test_a_second_pull_for_the_same_branch_is_refused(hub: Hub) -> None:
    hub.pull()
    body = {"title": "Again", "head": "change", "base": "main"}
    refused = hub.repo("POST", "/pulls", hub.token(), body)
    assert refused.status_code == 422
    assert "already exists" in refused.json()["errors"][0]["message"]


def test_sarif_is_unpacked_and_checked(hub: Hub) -> None:
    token = hub.token(security_events="write")
    sha = check(hub)["head_sha"]

    def packed(document: object) -> dict[str, object]:
        data = base64.b64encode(gzip.compress(json.dumps(document).encode())).decode()
        return {"commit_sha": sha, "ref": "refs/heads/main", "sarif": data}

    good = hub.repo(
        "POST", "/code-scanning/sarifs", token, packed({"version": "2.1.0", "runs": []})
    )
    assert good.status_code == 202
    bad = hub.repo("POST", "/code-scanning/sarifs", token, packed({"version": "1"}))
    assert bad.status_code == 400


def test_permissions_of_people(hub: Hub) -> None:
    token = hub.token(metadata="read")
    hub.state.person("mallory")
    said = {
        login: hub.repo("GET", f"/collaborators/{login}/permission", token).json()["permission"]
        for login in ("acme", "alice", "mallory")
    }
    assert said == {"acme": "admin", "alice": "write", "mallory": "none"}
    assert hub.repo("GET", "/collaborators/nobody/permission", token).status_code == 404


def test_a_fault_can_be_put_in(hub: Hub) -> None:
    token = hub.token()
    slow = Fault(status=403, headers={"Retry-After": "7"}, message="secondary rate limit")

    def fault(method: str, path: str) -> Fault | None:
        return slow if method == "GET" and path.endswith("/pulls") else None

    hub.state.fault = fault
    refused = hub.send("GET", f"/repos/{REPO}/pulls", token)
    assert (refused.status_code, refused.headers["Retry-After"]) == (403, "7")
    assert hub.send("GET", f"/repos/{REPO}", token).status_code == 200


def test_the_root_serves_the_same_api(hub: Hub) -> None:
    answer = hub.send("GET", f"{hub.playground.url}/repos/{REPO}", hub.token())
    assert answer.json()["full_name"] == REPO
