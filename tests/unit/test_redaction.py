"""Canaries that must not leave by any of our doors."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
from inline_snapshot import snapshot

from regreen.adapters.anthropic import AnthropicModel
from regreen.adapters.clock import SystemClock
from regreen.adapters.connection import engine_for
from regreen.adapters.database import Database
from regreen.bot.ci import red_of_run
from regreen.codebase.redaction import redact, redact_known
from regreen.forge import GitHub, WorkflowJob, WorkflowRun, WorkflowStep
from regreen.models import Message, ModelRequest, ToolResult
from regreen.playground.model import ScriptedModel
from regreen.records import Document
from tests.unit.changes import Story as Repository

# Put together here, so that no scanner takes this file for a leak.
OLD_GITHUB = "ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"
NEW_GITHUB = "ghs_" + "123456_eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOjEyMzQ1Nn0.abcDEF0123456789abcdef"
AWS = "AKIA" + "Q3EGRZ7TNMBVKLW2"
URL = "hunter2horse"
CANARIES = (OLD_GITHUB, NEW_GITHUB, AWS, URL)
LEAK = (
    f"token = '{OLD_GITHUB}'\nGH={NEW_GITHUB}\nkey: {AWS}\n"
    f"git clone https://bot:{URL}@git.corp.net/a/b\nplain words stay\n"
)


def leaks(text: str) -> list[str]:
    return [canary for canary in CANARIES if canary in text]


@pytest.mark.parametrize("take_out", [redact, redact_known])
def test_every_canary_is_taken_out_and_the_rest_stays(take_out: object) -> None:
    clean = redact(LEAK) if take_out is redact else redact_known(LEAK)
    assert leaks(clean) == []
    assert clean == snapshot("""\
token = '[hidden]'
GH=[hidden]
key: [hidden]
git clone https://[hidden]@git.corp.net/a/b
plain words stay
""")


def test_redacting_twice_changes_nothing_more() -> None:
    assert redact(redact(LEAK)) == redact(LEAK)


@pytest.mark.parametrize(
    "code",
    [
        'url = f"postgres://{user}:{password}@{host}/db"',
        "DATABASE=postgres://$USER:$PASSWORD@$HOST/db",
        "token = os.environ['TOKEN']",
        "sha = 'd987444a0b1c2d3e4f5061728394a5b6c7d8e9f0'",
        "https://host/x",
    ],
)
def test_code_that_only_speaks_of_secrets_stays(code: str) -> None:
    assert redact(code) == code


def test_no_prompt_carries_one() -> None:
    result = ToolResult("c1", LEAK)
    request = ModelRequest(
        "test", LEAK, (Message("user", LEAK), Message("user", results=(result,))), max_tokens=50
    )
    with ScriptedModel(["well"]) as endpoint:
        AnthropicModel(api_key="k", name="claude-sonnet-5-5", base_url=endpoint.url).ask(request)
        assert "plain words stay" in str(endpoint.asked)
        assert leaks(str(endpoint.asked)) == []


def test_no_kept_result_carries_one(tmp_path: Path) -> None:
    store = Database(engine_for(f"sqlite:///{tmp_path / 'x.sqlite'}"), SystemClock())
    store.create()
    body = {"before": {"failures": [{"message": LEAK}], "line": 3}, "reason": None}
    now = datetime(2026, 1, 1, tzinfo=UTC)
    store.keep(Document("fix", "a/b", 1, "s", "j", now, body))
    (kept,) = store.documents()
    store.engine.dispose()
    assert leaks(str(kept.body)) == []
    assert kept.body["before"]["line"] == 3


class _Hub:
    """A run with one failed job, and its log."""

    repo = "acme/shop"

    def jobs(self, _run: int) -> list[WorkflowJob]:
        return [WorkflowJob(1, "test", "failure", (WorkflowStep(1, "Test", "failure"),))]

    def job_log(self, _job: int, _limit: int = 0) -> bytes:
        return (
            "FAILED tests/test_a.py::test_a - AssertionError: "
            f"{OLD_GITHUB} {AWS} https://bot:{URL}@git.corp.net/a\n"
            "=== 1 failed in 0.1s ===\n"
        ).encode()


def test_no_failure_read_from_a_log_carries_one(tmp_path: Path) -> None:
    story = Repository(tmp_path / "repo")
    story.change({"a.py": ""}, {"a.py": "x = 1\n"})
    run = WorkflowRun(1, "CI", "", "push", "HEAD", "main", "failure", 1)
    (red,) = red_of_run(
        cast("GitHub", _Hub()), story.git, run, scope="s", trust="pull_request", pythons=("3.11",)
    )
    assert red.failures[0].test.startswith("tests/test_a.py::test_a")
    assert leaks(str(red)) == []
