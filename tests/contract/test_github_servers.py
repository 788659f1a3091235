"""github.com, a tenant of GHE.com and an Enterprise Server: where each is reached, and what is sent there.

The names cannot be resolved here, so the real client speaks through a proxy on loopback, which answers for all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

import pytest

from regreen.actions.workflow import plan_workflow
from regreen.adapters.git.process import auth_environment, run_git
from regreen.adapters.github.client import connect_with_token
from regreen.adapters.github.tokens import GitHubSignIn
from regreen.app.registration import render_manifest_form
from regreen.app.settings_loader import read_settings
from regreen.domain.errors import UserError
from regreen.domain.github import GitHubServer
from regreen.domain.settings import Settings

SERVERS = [
    ("https://api.github.com", "https://github.com", "https://api.github.com/graphql"),
    ("https://api.acme.ghe.com", "https://acme.ghe.com", "https://api.acme.ghe.com/graphql"),
    ("https://git.acme.example/api/v3", "https://git.acme.example", "https://git.acme.example/api/graphql"),
    ("https://api.acme.example/api/v3", "https://api.acme.example", "https://api.acme.example/api/graphql"),
]  # fmt: skip
ELSEWHERE = "https://evil.example/acme/shop.git"
APIS = [api for api, *_ in SERVERS]


@contextmanager
def proxy() -> Iterator[tuple[str, list[str]]]:
    """A proxy that answers itself: every repository, with a clone address that is not ours, and no threads."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def _answer(self, value: object) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            seen.append(f"{self.command} {self.path.replace(':80/', '/')}")
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            page = f"{parts.scheme}://{parts.netloc}/acme/shop"
            self._answer({"full_name": "acme/shop", "id": 7, "clone_url": ELSEWHERE, "html_url": page})  # fmt: skip

        def do_POST(self) -> None:
            nodes = {"pageInfo": {"hasNextPage": False, "endCursor": None}, "nodes": []}
            self._answer({"data": {"repository": {"pullRequest": {"reviewThreads": nodes}}}})

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", seen
        server.shutdown()


@pytest.mark.parametrize(("api", "web", "graphql"), SERVERS, ids=APIS)
def test_where_each_server_is_reached(api: str, web: str, graphql: str) -> None:
    server = Settings(_env_file=None, github_api_url=f"{api}/").github
    assert (server.api_url, server.web_url, server.graphql_url) == (api, web, graphql)
    assert server.clone_url("acme/shop") == f"{web}/acme/shop.git"


@pytest.mark.parametrize(("api", "web", "graphql"), SERVERS, ids=APIS)
def test_the_client_asks_each_server_and_clones_from_it_alone(
    monkeypatch: pytest.MonkeyPatch, api: str, web: str, graphql: str
) -> None:
    plain = api.replace("https://", "http://")
    with proxy() as (address, seen):
        monkeypatch.setenv("http_proxy", address)
        monkeypatch.setenv("no_proxy", "")
        github = connect_with_token("acme/shop", "t0ken", api_url=plain, login="regreen[bot]")
        repository = github.repository()
        github.threads(3)
    assert seen == [
        f"GET {plain}/repos/acme/shop",
        f"POST {graphql.replace('https://', 'http://')}",
    ]
    assert repository.clone_url == f"{web.replace('https://', 'http://')}/acme/shop.git"


@pytest.mark.parametrize(("api", "web", "graphql"), SERVERS, ids=APIS)
def test_people_are_sent_to_its_pages(api: str, web: str, graphql: str) -> None:
    people = GitHubSignIn("id", "secret", web_url=GitHubServer(api).web_url, api_url=api)
    assert people.address("https://x/signed-in", "s").startswith(f"{web}/login/oauth/authorize?")
    form = render_manifest_form(GitHubServer(api).web_url, "acme", {}, "s")
    assert f'action="{web}/organizations/acme/settings/apps/new?state=s"' in form


@pytest.mark.parametrize("api", APIS)
def test_git_has_the_token_for_that_server_alone(api: str) -> None:
    env = auth_environment(GitHubServer(api).clone_url("acme/shop"), "t0ken")

    def header(url: str) -> bytes:
        asked = ["config", "--get-urlmatch", "http.extraHeader", url]
        return run_git(asked, env=env, check=False).stdout

    assert header(GitHubServer(api).clone_url("acme/other")).startswith(b"Authorization: Basic ")
    assert header(ELSEWHERE) == b""


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("https://github.com", "https://api.github.com"),
        ("https://acme.ghe.com", "https://api.acme.ghe.com"),
        ("git.acme.example", "https://HOST/api/v3"),
    ],
)
def test_an_address_that_is_not_the_apis_is_answered_with_the_right_one(
    monkeypatch: pytest.MonkeyPatch, given: str, told: str
) -> None:
    monkeypatch.setenv("REGREEN_GITHUB_API_URL", given)
    with pytest.raises(UserError, match="REGREEN_GITHUB_API_URL") as error:
        read_settings()
    assert told in str(error.value)


WORKFLOW = """
on: push
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
        with: {repository: acme/data, path: data}
      - run: pytest --base ${{ github.server_url }}
"""


@pytest.mark.parametrize(("api", "web", "graphql"), SERVERS, ids=APIS)
def test_a_workflow_runs_as_on_its_server(api: str, web: str, graphql: str) -> None:
    (job,) = plan_workflow(WORKFLOW, server=GitHubServer(api))
    clone, test = job.steps
    assert f"{web}/acme/data " in clone.run
    assert clone.asks == f"git clone {web}/acme/data"
    assert test.run.strip() == f"pytest --base {web}"
    assert test.env.get("GITHUB_API_URL", "https://api.github.com") == api


def test_a_checkout_may_name_another_server() -> None:
    given = WORKFLOW.replace("path: data", "path: data, github-server-url: 'https://github.com'")
    (job,) = plan_workflow(given, server=GitHubServer("https://api.acme.ghe.com"))
    assert job.steps[0].asks == "git clone https://github.com/acme/data"
    (job,) = plan_workflow(given.replace("https://github.com", "ext::sh"))
    assert "another server" in job.unsupported[0].why
