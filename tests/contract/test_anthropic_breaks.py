"""The real anthropic client against an endpoint that breaks off, declines, or makes one wait."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from regreen_playground.model import Answer, Fails, Says, ScriptedModel, Use

from regreen.adapters.model.anthropic_client import AnthropicModel, LedgerEntry
from regreen.adapters.model.endpoints import ModelEndpoint
from regreen.domain.errors import OutOfBudget, OutsideError
from regreen.domain.models import Message, ModelRequest, Tool

REPORT = Tool("report", "Report.", {"type": "object", "properties": {"n": {"type": "integer"}}})
WHOLE = ("start", "open", "part", "rest", "close", "end", "stop")
EVENTS: dict[str, tuple[str, object]] = {
    "start": ("message_start", {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": [], "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}}),
    "open": ("content_block_start", {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "report", "input": {}}}),
    "part": ("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"n": 1'}}),
    "rest": ("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "2}"}}),
    "close": ("content_block_stop", {"type": "content_block_stop", "index": 0}),
    "end": ("message_delta", {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": {"output_tokens": 3}}),
    "stop": ("message_stop", {"type": "message_stop"}),
    "no message": ("message_start", {"type": "message_start", "message": None}),
    "a list": ("message_start", []),
    "no content": ("message_start", {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": None}}),
    "elsewhere": ("content_block_delta", {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "x"}}),
    "no usage": ("message_delta", {"type": "message_delta", "delta": None, "usage": None}),
    "busy": ("error", {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}),
}  # fmt: skip


def bytes_of(event: str) -> bytes:
    if event == "a page":
        return b"<html>Sign in to the proxy</html>\n\n"
    if event == "garbage":
        return b"event: message_delta\ndata: {not json\n\n"
    name, data = EVENTS[event]
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


@contextmanager
def endpoint(*streams: tuple[str, ...]) -> Iterator[str]:
    """An endpoint whose answers are these streams; one that ends in "cut" loses its connection."""
    rest = iter(streams)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
            pass

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            events = next(rest)
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            cut = events[-1] == "cut"
            self.send_header(*(("content-length", "100000") if cut else ("connection", "close")))
            self.end_headers()
            for event in events[: -1 if cut else None]:
                self.wfile.write(bytes_of(event))
            self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def model(url: str, **changed: object) -> AnthropicModel:
    where = ModelEndpoint("claude-sonnet-5", str(changed.pop("fallback", "")) or None, api_key="k", base_url=url)  # fmt: skip
    settings: dict[str, Any] = {"max_retries": 1, "sleep": lambda _s: None, **changed}
    return AnthropicModel(where, **settings)


def request(**changed: object) -> ModelRequest:
    asked: dict[str, object] = {
        "purpose": "t", "system": "s", "messages": (Message("user", "x"),), "tools": (REPORT,), "force": "report", "max_tokens": 100,
    }  # fmt: skip
    return ModelRequest(**(asked | changed))  # type: ignore[arg-type]


BROKEN = [
    ("start", "open", "part", "cut"),
    ("start", "open", "part"),
    ("start", "open", "part", "close"),
    ("start", "open", "part", "busy"),
    ("start", "garbage"),
    ("a page",),
    ("stop",),
    ("part", "close", "end", "stop"),
    ("no message", "stop"),
    ("a list", "stop"),
    ("no content", "open", "stop"),
    ("start", "elsewhere", "end", "stop"),
    ("start", "no usage", "stop"),
]


@pytest.mark.parametrize("broken", BROKEN, ids=" ".join)
def test_an_answer_that_breaks_off_is_asked_for_again(broken: tuple[str, ...]) -> None:
    with endpoint(broken, WHOLE) as url:
        assert model(url).ask(request()).calls[0].input == {"n": 12}


@pytest.mark.parametrize("broken", BROKEN, ids=" ".join)
def test_half_an_answer_never_passes_for_a_whole_one(broken: tuple[str, ...]) -> None:
    with endpoint(broken, broken) as url, pytest.raises(OutsideError):
        model(url).ask(request())


def test_an_endpoint_that_is_no_models_is_named() -> None:
    with endpoint(("a page",)) as url, pytest.raises(OutsideError, match="ANTHROPIC_BASE_URL"):
        model(url, max_retries=0).ask(request())


def test_pauses_grow_and_are_not_the_same_twice() -> None:
    waited: list[float] = []
    with endpoint(*[BROKEN[1]] * 8) as url:
        for _ in range(2):
            with pytest.raises(OutsideError):
                model(url, max_retries=3, sleep=waited.append).ask(request())
    first, again = waited[:3], waited[3:]
    assert all(low <= w <= 2 * low for w, low in zip(first, (0.25, 0.5, 1.0), strict=True))
    assert first != again


def test_an_answer_that_keeps_breaking_off_goes_to_the_fallback() -> None:
    with endpoint(BROKEN[0], BROKEN[0], WHOLE) as url:
        answer = model(url, fallback="claude-haiku-5-5").ask(request())
    assert answer.calls[0].input == {"n": 12}


def test_what_one_model_declines_the_fallback_is_asked_and_both_are_paid() -> None:
    declined = Says(("no",), stop="refusal", input_tokens=100, output_tokens=5)
    given = Says((Use("report", {"n": 3}),), input_tokens=100, output_tokens=5)
    with ScriptedModel([declined, given]) as far:
        answer = model(far.url, fallback="claude-haiku-5-5").ask(request())
    assert answer.calls[0].input == {"n": 3}
    assert answer.cost.calls == 2
    assert [a["model"] for a in far.asked] == ["claude-sonnet-5", "claude-haiku-5-5"]


def test_an_answer_that_broke_off_is_paid_for_and_leaves_less_for_the_next() -> None:
    ledger: list[LedgerEntry] = []

    def left() -> float:
        return 0.004 - sum(e.cost.usd for e in ledger)

    long = {**EVENTS["start"][1]["message"], "usage": {"input_tokens": 1500, "output_tokens": 1}}  # type: ignore[index]
    EVENTS["long"] = ("message_start", {"type": "message_start", "message": long})
    with endpoint(("long", "open", "part", "cut"), WHOLE) as url:
        answer = model(url, ledger=ledger.append).ask(request())
    assert [(e.stop, e.cost.input_tokens) for e in ledger] == [("broken off", 1500), ("tool", 1)]
    assert ledger[0].cost.output_tokens > 1
    assert answer.cost == ledger[0].cost + ledger[1].cost
    ledger.clear()
    with endpoint(("long", "open", "part", "cut")) as url, pytest.raises(OutOfBudget):
        model(url, ledger=ledger.append, budget_usd=left).ask(request())
    assert len(ledger) == 1


def test_what_was_declined_is_paid_for_although_the_fallback_fails() -> None:
    ledger: list[LedgerEntry] = []
    declined = Says(("no",), stop="refusal", input_tokens=100, output_tokens=5)
    with ScriptedModel([declined, Fails(400, "invalid_request_error", "no such")]) as far:
        asker = model(far.url, fallback="claude-haiku-5-5", ledger=ledger.append)
        with pytest.raises(OutsideError, match="no such"):
            asker.ask(request())
    assert [(e.model, e.stop) for e in ledger] == [("claude-sonnet-5", "refusal")]


def test_what_was_no_answer_is_not_remembered_as_one() -> None:
    kept: dict[str, str] = {}
    answers: list[Answer] = [
        Says(("no",), stop="refusal"), "I see no defect.", Says((Use("report", {"n": 3}),))
    ]  # fmt: skip
    with ScriptedModel(answers) as far:
        asker = model(far.url, recall=kept.get, remember=kept.__setitem__)
        asked = [asker.ask(request()) for _ in range(4)]
    assert [a.stop for a in asked] == ["refusal", "end", "tool", "tool"]
    assert len(far.asked) == 3


def test_without_a_fallback_declining_is_the_answer() -> None:
    with ScriptedModel([Says(("no",), stop="refusal")]) as far:
        assert model(far.url).ask(request()).stop == "refusal"


def test_nobody_waits_an_hour_because_an_endpoint_says_so() -> None:
    busy = Fails(429, "rate_limit_error", headers={"retry-after": "3600"})
    with ScriptedModel([busy]) as far, pytest.raises(OutsideError, match="429") as told:
        model(far.url, max_retries=3).ask(request())
    assert told.value.retry_after == 3600
    assert len(far.asked) == 1


def test_where_the_estimate_is_too_much_the_tokens_are_counted() -> None:
    """Dots cost a reader little and an estimate much: what is left decides by the endpoint's own count."""
    long = (Message("user", "." * 60_000),)
    with ScriptedModel(["fine"]) as far:
        far_cheaper = model(far.url, budget_usd=lambda: 0.045).ask(request(messages=long, force=None))  # fmt: skip
    assert far_cheaper.text == "fine"
    with ScriptedModel(["never"]) as far, pytest.raises(OutOfBudget):
        model(far.url, budget_usd=lambda: 0.002).ask(request(messages=long))
    assert far.asked == []
