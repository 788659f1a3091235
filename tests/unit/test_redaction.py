"""Canaries that must not leave by any of our doors."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
from inline_snapshot import snapshot
from regreen_playground.model import ScriptedModel

from regreen.adapters.clock import SystemClock
from regreen.adapters.model.anthropic_client import AnthropicModel
from regreen.adapters.model.endpoints import ModelEndpoint
from regreen.adapters.store.connection import engine_for
from regreen.adapters.store.database import Database
from regreen.bot.flows.failed_job import find_failed_jobs
from regreen.bot.jobs.log_setup import LogFormat, log_to_stderr
from regreen.domain.github import GitHub, GitHubServer, WorkflowJob, WorkflowRun, WorkflowStep
from regreen.domain.models import Message, ModelRequest, ToolResult
from regreen.domain.records import AuditEntry, Order, ResultDocument
from regreen.secrets.markdown_sanitizer import (
    code_block,
    code_span,
    escape_line,
    sanitize_markdown,
    to_plain_line,
)
from regreen.secrets.redaction import CleanText, make_value_hider, redact_quickly, redact_secrets
from tests.jobs import claim
from tests.unit.changes import Story as Repository
from tests.unit.secret_shapes import AROUND, shapes
from tests.unit.secret_shapes import leaks as still_there

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


@pytest.mark.parametrize(
    "write", [escape_line, to_plain_line, code_span, code_block, sanitize_markdown]
)
def test_what_becomes_markdown_holds_no_credential_before_its_signs_are_broken_up(
    write: Callable[[str], str],
) -> None:
    for canary_line in LEAK.splitlines():
        published = redact_secrets(write(f"cannot reach {canary_line}"))
        assert leaks(re.sub(r"\u200b|\\(?=\W)", "", published)) == []


def test_half_a_credential_is_not_published() -> None:
    assert OLD_GITHUB[:12] not in code_span(" " * 1184 + OLD_GITHUB)
    text = "word " * 55 + f"https://bot:{URL}$1[x]@git.corp.net/a/b"
    assert URL[:6] not in escape_line(text, 300)


@pytest.mark.parametrize("take_out", [redact_secrets, redact_quickly])
def test_every_canary_is_taken_out_and_the_rest_stays(take_out: object) -> None:
    clean = redact_secrets(LEAK) if take_out is redact_secrets else redact_quickly(LEAK)
    assert leaks(clean) == []
    assert clean == snapshot("""\
token = '[hidden]'
GH=[hidden]
key: [hidden]
git clone https://[hidden]@git.corp.net/a/b
plain words stay
""")


def test_redacting_twice_changes_nothing_more() -> None:
    assert redact_secrets(redact_secrets(LEAK)) == redact_secrets(LEAK)


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
    assert redact_secrets(code) == code


def test_no_prompt_carries_one() -> None:
    result = ToolResult("c1", LEAK)
    request = ModelRequest(
        "test", LEAK, (Message("user", LEAK), Message("user", results=(result,))), max_tokens=50
    )
    with ScriptedModel(["well"]) as endpoint:
        AnthropicModel(ModelEndpoint("claude-sonnet-5-5", api_key="k", base_url=endpoint.url)).ask(
            request
        )
        assert "plain words stay" in str(endpoint.asked)
        assert leaks(str(endpoint.asked)) == []


def test_no_kept_result_carries_one(tmp_path: Path) -> None:
    store = Database(engine_for(f"sqlite:///{tmp_path / 'x.sqlite'}"), SystemClock())
    store.create_or_upgrade_tables()
    body = {"before": {"failures": [{"message": LEAK}], "line": 3}, "reason": None}
    now = datetime(2026, 1, 1, tzinfo=UTC)
    store.save_document(ResultDocument("fix", "a/b", 1, "s", "j", now, body))
    (kept,) = store.documents()
    store.engine.dispose()
    assert leaks(str(kept.body)) == []
    assert kept.body["before"]["line"] == 3


class _Hub:
    """A run with one failed job, and its log."""

    repo = "acme/shop"
    server = GitHubServer()

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
    (red,) = find_failed_jobs(
        cast("GitHub", _Hub()), story.git, run, scope="s", trust="pull_request", pythons=("3.11",)
    )
    assert red.failures[0].test.startswith("tests/test_a.py::test_a")
    assert leaks(str(red)) == []


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "take_out", [redact_secrets, redact_quickly], ids=["redact", "redact_quickly"]
)
def test_a_credential_of_any_shape_is_taken_out(take_out: CleanText, seed: int) -> None:
    left = [
        (name, around)
        for name, (place, secret) in shapes(seed).items()
        for around in AROUND
        if still_there(take_out(around.format(place.format(secret))), secret)
    ]
    assert left == []


@pytest.mark.parametrize(
    "code",
    [
        "auth_token = base64.b64encode(auth_value)",
        "token = request.headers['X-Token-2026']",
        "api_key: str = Field(default_factory=lambda: settings.api_key_2)",
        "secret_file = /etc/regreen/secret-2024.pem",
        "author = 'a1b2c3d4e5f6'",
        "tokens: 123456789012345",
        "password_reset_url=/accounts/password/reset/done/",
        "Bearer authentication is refused",
        "token_type=urn:ietf:params:oauth:token-type:access_token",
    ],
)
def test_what_only_has_the_name_of_a_secret_stays(code: str) -> None:
    assert redact_quickly(code) == code


def test_nothing_kept_of_a_job_carries_one(tmp_path: Path) -> None:
    own = "correct horse battery staple"
    clock = SystemClock()
    engine = engine_for(f"sqlite:///{tmp_path / 'regreen.sqlite'}")
    store = Database(engine, clock, make_value_hider([own]))
    store.create_or_upgrade_tables()
    drawn = [place.format(secret) for place, secret in shapes(1).values()]
    for number, text in enumerate([*drawn, own]):
        name = f"job-{number}"
        store.store_orders([_order(name)])
        claimed = claim(store, name, "w")
        assert claimed is not None
        store.note_progress(name, text)
        store.reschedule_job(claimed, clock.now(), text)
        claim(store, name, "w")
        store.end(name, "failed", text)
        store.log(AuditEntry(clock.now(), name, "o/r", 1, "ann", "fix", text))
        at = clock.now()
        store.save_document(
            ResultDocument("review", "o/r", number, name, name, at, {"said": [text]})
        )
    engine.dispose()
    written = b"".join(file.read_bytes() for file in tmp_path.iterdir()).decode("utf-8", "replace")
    kept = [name for name, (_, secret) in shapes(1).items() if still_there(written, secret)]
    assert kept == []
    assert own not in written


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_log_line_carries_one(form: LogFormat, capfd: pytest.CaptureFixture[str]) -> None:
    own = "correct horse battery staple"
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    root.handlers.clear()
    try:
        log_to_stderr(form, [own])
        for place, secret in shapes(2).values():
            logging.getLogger("somebody.else").error("it failed: %s", place.format(secret))
            try:
                int(place.format(secret))
            except ValueError:
                logging.getLogger("regreen").exception("a bug")
        logging.getLogger("regreen").error("the secret is %s", own)
    finally:
        root.handlers[:], root.level = before, level
    said = capfd.readouterr().err
    told = [name for name, (_, secret) in shapes(2).items() if still_there(said, secret)]
    assert said.count("it failed: ") == len(shapes(2))
    assert told == []
    assert own not in said


def _order(name: str) -> Order:
    return Order(name, "review", "o/r", 1, 1, "review", "k", 1, "{}")
