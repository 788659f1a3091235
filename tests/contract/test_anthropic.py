"""The real anthropic client against an endpoint on loopback: cost, cap, memory, and what goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from regreen_playground.model import Answer, Fails, Says, ScriptedModel, Use

from regreen.adapters.model.anthropic_client import AnthropicModel, LedgerEntry
from regreen.adapters.model.endpoints import ModelEndpoint
from regreen.adapters.model.prices import find_listed_model, parse_price
from regreen.domain.errors import OutOfBudget, OutsideError, UserError
from regreen.domain.models import Message, ModelRequest, SentPart, Tool, ToolResult

REPORT = Tool("report", "Report.", {"type": "object", "properties": {"n": {"type": "integer"}}})


def request(text: str = "read this", **changed: object) -> ModelRequest:
    defaults: dict[str, object] = {
        "purpose": "test",
        "system": "be brief",
        "messages": (Message("user", text),),
        "tools": (REPORT,),
        "max_tokens": 100,
    }
    return ModelRequest(**(defaults | changed))  # type: ignore[arg-type]


ENDPOINT = {field.name for field in fields(ModelEndpoint)}


def model(url: str, **changed: object) -> AnthropicModel:
    settings: dict[str, Any] = {"api_key": "k", "name": "claude-sonnet-5-5", "base_url": url}
    where = {name: changed.pop(name) for name in ENDPOINT if name in changed}
    ways: dict[str, Any] = {"max_retries": 1, **changed}
    return AnthropicModel(ModelEndpoint(**(settings | where)), **ways)


def answering(*answers: Answer) -> Sequence[Answer]:
    return answers


def test_an_answer_comes_with_its_calls_and_its_price() -> None:
    ledger: list[LedgerEntry] = []
    says = Says(
        ("thinking aloud", Use("report", {"n": 3})),
        input_tokens=1000,
        output_tokens=200,
        cache_read=500,
    )
    with ScriptedModel(answering(says)) as endpoint:
        answer = model(endpoint.url, ledger=ledger.append).ask(request())
    assert (answer.text, answer.stop, answer.calls[0].input) == ("thinking aloud", "tool", {"n": 3})
    listed = find_listed_model("claude-sonnet-5-5")
    assert listed is not None
    price = listed.price
    assert answer.cost.usd == pytest.approx(
        (1000 * price.input + 500 * price.cache_read + 200 * price.output) / 1e6
    )
    assert [e.purpose for e in ledger] == ["test"]


@pytest.mark.parametrize(("count", "last"), [(300, "part 299"), (302, "and 2 more")])
def test_a_long_list_of_what_was_sent_says_where_it_is_cut(count: int, last: str) -> None:
    ledger: list[LedgerEntry] = []
    parts = tuple(SentPart(f"part {number}") for number in range(count))
    with ScriptedModel(answering("yes")) as endpoint:
        asked = request(messages=(Message("user", "read this", sent=parts),))
        model(endpoint.url, ledger=ledger.append).ask(asked)
    assert ledger[0].sent[:300] == parts[:300]
    assert ledger[0].sent[-1].what == last


def test_the_same_question_is_paid_for_once() -> None:
    kept: dict[str, str] = {}
    with ScriptedModel(answering("first")) as endpoint:
        asker = model(endpoint.url, recall=kept.get, remember=kept.__setitem__)
        first, again = asker.ask(request()), asker.ask(request())
    assert (first.text, again.text) == ("first", "first")
    assert first.cost.calls == 1
    assert again.cost.usd == 0
    assert len(endpoint.asked) == 1


def test_a_different_salt_is_a_different_question() -> None:
    kept: dict[str, str] = {}
    with ScriptedModel(answering("one", "two")) as endpoint:
        asker = model(endpoint.url, recall=kept.get, remember=kept.__setitem__)
        assert [asker.ask(request(salt=s)).text for s in ("a", "b", "a")] == ["one", "two", "one"]


def test_nothing_is_sent_that_could_break_the_cap() -> None:
    with (
        ScriptedModel(answering("never")) as endpoint,
        pytest.raises(OutOfBudget, match=r"\$0\.001 is left"),
    ):
        model(endpoint.url, budget_usd=lambda: 0.001).ask(request(max_tokens=50_000))
    assert endpoint.asked == []


def test_a_report_spoken_as_text_is_understood_and_can_be_answered() -> None:
    with ScriptedModel(answering('Here it is: {"n": 4}', "thanks")) as endpoint:
        asker = model(endpoint.url)
        answer = asker.ask(request(force="report"))
        assert answer.calls[0].input == {"n": 4}
        followed = (
            Message("user", "go on"),
            answer.as_message(),
            Message("user", results=(ToolResult(answer.calls[0].id, "ok"),)),
        )
        asker.ask(request(messages=followed))
    sent: Any = endpoint.asked[1]["messages"]
    assert sent[1]["content"][-1]["type"] == "tool_use"
    assert sent[2]["content"][0]["tool_use_id"] == sent[1]["content"][-1]["id"]


def test_the_stable_prefix_is_marked_for_the_endpoints_cache() -> None:
    with ScriptedModel(answering("ok")) as endpoint:
        model(endpoint.url).ask(
            request(messages=(Message("user", "long"), Message("user", "short")), cache_messages=1)
        )
    sent: Any = endpoint.asked[0]
    assert "cache_control" in sent["system"][0]
    assert "cache_control" in sent["messages"][0]["content"][-1]


def test_a_busy_endpoint_is_asked_again_and_then_the_fallback() -> None:
    busy = Fails(529, "overloaded_error", headers={"retry-after": "0"})
    with ScriptedModel(answering(busy, busy, "from the fallback")) as endpoint:
        answer = model(endpoint.url, fallback="claude-haiku-5-5").ask(request())
    assert answer.text == "from the fallback"
    assert [a["model"] for a in endpoint.asked] == [
        "claude-sonnet-5-5",
        "claude-sonnet-5-5",
        "claude-haiku-5-5",
    ]


@pytest.mark.parametrize(
    ("failure", "word"),
    [
        (Fails(401, "authentication_error"), "ANTHROPIC_API_KEY"),
        (Fails(400, "invalid_request_error", "too long"), "too long"),
    ],
)
def test_a_refusal_says_what_to_do(failure: Fails, word: str) -> None:
    with ScriptedModel(answering(failure)) as endpoint, pytest.raises(OutsideError, match=word):
        model(endpoint.url).ask(request())


def test_an_endpoint_that_is_not_there_is_named() -> None:
    with pytest.raises(OutsideError, match="ANTHROPIC_BASE_URL"):
        model("http://127.0.0.1:9", max_retries=0).ask(request())


def test_a_price_that_the_operator_gives_counts_and_may_be_nothing() -> None:
    says = Says(("done",), input_tokens=1_000_000, output_tokens=1000)
    with ScriptedModel(answering(says, says)) as endpoint:
        free = model(
            endpoint.url, name="mine", price=parse_price("0,0"), budget_usd=lambda: 0.0
        ).ask(request())
        priced = model(endpoint.url, name="mine", price=parse_price("2,10")).ask(request("again"))
    assert free.cost.usd == 0
    assert priced.cost.usd == pytest.approx(2.01)


@pytest.mark.parametrize("text", ["", "3", "a,b", "-1,2", "inf,2", "1,2,3"])
def test_a_price_that_is_none_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(UserError, match="INPUT,OUTPUT"):
        parse_price(text)


def test_a_token_is_sent_in_place_of_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    heads: list[dict[str, str]] = []

    class Listener(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heads.append({name.lower(): value for name, value in self.headers.items()})
            self.send_error(401)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Listener) as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        with pytest.raises(OutsideError, match="refused the key"):
            model(url, api_key=None, auth_token="t0ken").ask(request())
        server.shutdown()
    assert heads[0]["authorization"] == "Bearer t0ken"
    assert "x-api-key" not in heads[0]
