"""Once a week the operator's chat is told what needs a person."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from pydantic import SecretStr

from regreen.domain.state_records import OpenRepair, PendingPatch, ScheduleState
from tests.stories.story import REPO, Story


class _Chat(HTTPServer):
    """Keeps what is posted to it."""

    said: list[str]
    status = 200


class _Posted(BaseHTTPRequestHandler):
    server: _Chat

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.said.append(json.loads(body)["text"])
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def chat() -> Iterator[_Chat]:
    with _Chat(("127.0.0.1", 0), _Posted) as server:
        server.said = []
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


def _with_digest(story: Story, chat: _Chat) -> None:
    address = SecretStr(f"http://127.0.0.1:{chat.server_port}/hook/hidden")
    story._settings = story._settings.model_copy(update={"digest_url": address})
    story.restart()


def _a_day_passes(story: Story) -> None:
    story.passes(days=1)
    story.regreen.enqueue_due_work()
    story.work()


def test_a_digest_comes_once_a_week_and_says_what_waits(story: Story, chat: _Chat) -> None:
    _with_digest(story, chat)
    store = story.regreen.store
    store.save(ScheduleState(REPO, "nightly <!channel> @all", red="c" * 40, issue=7))
    store.save(OpenRepair(REPO, "main", 9))
    token = "ghp_" + "a1B2" * 9
    title = f"Use {token}"
    store.save(PendingPatch(REPO, "4", 0.0, "+x", "main", "a" * 40, title, "", False))
    for _ in range(5):
        _a_day_passes(story)
    (text,) = chat.said
    lines = text.splitlines()
    assert lines[0] == "Regreen, week 10: 3 things need a person."
    assert "nightly &lt;!channel&gt; @\u200ball fails at cccccccccccc" in lines[1].replace("`", "")
    assert lines[1].endswith(f"/{REPO}/issues/7")
    assert "A patch for `main` at `aaaaaaaaaaaa` waits for `/approve`: Use " in lines[2]
    assert token not in text
    assert lines[3].startswith(f"- {REPO}: Review the draft that repairs `main` http")
    store.remove(ScheduleState, repo=REPO)
    store.remove(OpenRepair, repo=REPO)
    store.remove(PendingPatch, repo=REPO)
    for _ in range(5):
        _a_day_passes(story)
    assert chat.said[1:] == ["Regreen, week 11: nothing needs a person."]


def test_a_chat_that_refuses_is_named_without_its_address(story: Story, chat: _Chat) -> None:
    chat.status = 404
    _with_digest(story, chat)
    _a_day_passes(story)
    failed = [job.note for job in story.regreen.store.jobs() if "digest" in job.id]
    assert len(failed) == 1
    assert "127.0.0.1 answers 404" in failed[0]
    assert "hidden" not in failed[0]


def test_a_long_digest_names_where_the_rest_waits(story: Story, chat: _Chat) -> None:
    _with_digest(story, chat)
    for number in range(14):
        story.regreen.store.save(OpenRepair("acme/market", f"branch-{number}", number))
    while not chat.said:
        _a_day_passes(story)
    lines = chat.said[0].splitlines()
    assert lines[0] == "Regreen, week 10: 14 things need a person."
    assert lines[13] == "- 2 more, in acme/market"
