"""Who may do what: the App's JWT, tokens with their permissions, repositories and hour of life."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from github import Auth
from regreen_playground.routes.apps import new_key

from tests.contract.playground_hub import REPO, Hub, opened


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with opened(tmp_path) as made:
        yield made


def test_the_app_is_known_by_its_signature(hub: Hub) -> None:
    assert hub.send("GET", "/app", hub.jwt()).json()["slug"] == "regreen"


def test_another_key_is_refused(hub: Hub) -> None:
    forged = Auth.AppAuth(hub.app.id, new_key()[0]).create_jwt()
    assert hub.send("GET", "/app", forged).status_code == 401


def test_a_jwt_without_a_signature_is_refused(hub: Hub) -> None:
    head, claims, _ = hub.jwt().split(".")
    assert hub.send("GET", "/app", f"{head}.{claims}.").status_code == 401


def test_a_jwt_reads_no_repository_and_a_token_is_no_app(hub: Hub) -> None:
    with_token = hub.playground.state.repository(REPO)
    assert with_token.private
    token = hub.token(metadata="read")
    assert hub.send("GET", f"/repos/{REPO}", token).status_code == 200
    assert hub.send("GET", f"/repos/{REPO}").status_code == 404


def test_a_token_dies_after_an_hour(hub: Hub) -> None:
    token = hub.token()
    hub.state.pass_time(minutes=59)
    assert hub.send("GET", f"/repos/{REPO}", token).status_code == 200
    hub.state.pass_time(minutes=2)
    gone = hub.send("GET", f"/repos/{REPO}", token)
    assert (gone.status_code, gone.json()["message"]) == (401, "Bad credentials")


def test_a_token_may_do_no_more_than_it_was_made_for(hub: Hub) -> None:
    pull = hub.pull()
    token = hub.token(pull_requests="write", issues="write")
    assert hub.repo("GET", f"/pulls/{pull.number}", token).status_code == 200
    token = hub.token(issues="write")
    issue = hub.repo("POST", "/issues", token, {"title": "Broken"})
    assert issue.status_code == 201


@pytest.mark.parametrize(
    ("permissions", "method", "path"),
    [
        ({"issues": "read"}, "POST", "/issues"),
        ({"issues": "write"}, "GET", "/pulls"),
        ({"contents": "read"}, "POST", "/git/refs"),
        ({"checks": "read"}, "POST", "/check-runs"),
        ({"pull_requests": "write"}, "GET", "/actions/runs"),
    ],
)
def test_what_is_missing_is_said(
    tmp_path: Path, permissions: dict[str, str], method: str, path: str
) -> None:
    # Not through the checker: it reports the very permission that is missing here.
    from regreen_playground import serve

    with serve(root=tmp_path / "github", deliver=False) as playground:
        hub = Hub(playground)
        refused = hub.repo(method, path, hub.token(**permissions), {} if method == "POST" else None)
        assert refused.status_code == 403
        assert refused.json()["message"] == "Resource not accessible by integration"
        hub.close()


def test_a_token_knows_only_its_repositories(hub: Hub) -> None:
    assert hub.send("GET", "/repos/acme/other", hub.token()).status_code == 404
    listed = hub.send("GET", "/installation/repositories", hub.token()).json()
    assert [one["full_name"] for one in listed["repositories"]] == [REPO]


def test_more_than_the_installation_has_is_not_given(hub: Hub) -> None:
    path = f"/app/installations/{hub.installation.id}/access_tokens"
    assert (
        hub.send("POST", path, hub.jwt(), {"permissions": {"actions": "write"}}).status_code == 422
    )
    assert hub.send("POST", path, hub.jwt(), {"repositories": ["other"]}).status_code == 422


def test_a_revoked_token_is_worth_nothing(hub: Hub) -> None:
    token = hub.token()
    assert hub.send("DELETE", "/installation/token", token).status_code == 204
    assert hub.send("GET", f"/repos/{REPO}", token).status_code == 401


def test_the_installation_is_found_from_the_repository(hub: Hub) -> None:
    found = hub.send("GET", f"/repos/{REPO}/installation", hub.jwt()).json()
    assert found["id"] == hub.installation.id
    assert hub.send("GET", "/repos/acme/other/installation", hub.jwt()).status_code == 404


def test_a_manifest_becomes_an_app_once(hub: Hub) -> None:
    hook = {"url": "http://regreen/hook"}
    hub.state.manifests["code"] = {
        "name": "Second",
        "hook_attributes": hook,
        "default_permissions": {"checks": "write"},
        "default_events": ["push"],
    }
    made = hub.send("POST", "/app-manifests/code/conversions").json()
    known = Auth.AppAuth(made["id"], made["pem"]).create_jwt()
    assert hub.send("GET", "/app", known).json()["name"] == "Second"
    assert hub.send("POST", "/app-manifests/code/conversions").status_code == 404
