"""A model endpoint that answers by script: the Messages API over HTTP, streaming or not."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from flask import Flask, Response, request

from regreen_playground.loopback import Loopback
from regreen_playground.things import Json


@dataclass(frozen=True, slots=True)
class Use:
    """The model calls a tool."""

    name: str
    input: Json


@dataclass(frozen=True, slots=True)
class Fails:
    """The endpoint answers with an error."""

    status: int
    kind: str = "api_error"
    message: str = "scripted"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Says:
    """One whole answer: text and tool calls in order; `stop` None works it out."""

    parts: tuple[str | Use, ...]
    stop: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read: int = 0
    cache_write: int = 0


Answer = str | Use | Says | Fails
Script = Callable[[Json], Answer]


class OutOfScript(Exception):
    """More was asked than the script has answers for."""


def in_order(answers: Sequence[Answer]) -> Script:
    """A script that gives these answers one after the other."""
    rest = iter(answers)
    lock = threading.Lock()

    def script(asked: Json) -> Answer:  # noqa: ARG001 - the order decides
        with lock:
            answer = next(rest, None)
        if answer is None:
            raise OutOfScript("the model was asked more often than the script has answers")
        return answer

    return script


class ScriptedModel:
    """A running endpoint. `url` goes into ANTHROPIC_BASE_URL; `asked` keeps every request."""

    def __init__(self, script: Script | Sequence[Answer], port: int = 0) -> None:
        self._script: Script = script if callable(script) else in_order(script)
        self._numbers = itertools.count(1)
        self.asked: list[Json] = []
        self.surprises: list[str] = []
        self._loopback = Loopback(self._application(), port, "scripted-model")
        self.url = self._loopback.url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop answering."""
        self._loopback.close()

    def _application(self) -> Flask:
        app = Flask(__name__, static_folder=None)

        @app.get("/v1/models")
        def models() -> Json:
            one = {"type": "model", "id": "scripted", "display_name": "Scripted"}
            dated: Json = {**one, "created_at": "2026-01-01T00:00:00Z"}
            return {"data": [dated], "has_more": False, "first_id": None, "last_id": None}

        @app.post("/v1/messages/count_tokens")
        def count() -> Json:
            return {"input_tokens": _tokens(request.get_json())}

        @app.post("/v1/messages")
        def messages() -> Response:
            return self._answer(request.get_json())

        return app

    def _answer(self, asked: Json) -> Response:
        self.asked.append(asked)
        try:
            answer = self._script(asked)
        except OutOfScript as error:
            self.surprises.append(str(error))
            answer = Fails(400, "invalid_request_error", str(error))
        if isinstance(answer, Fails):
            told = {"type": answer.kind, "message": answer.message}
            body = json.dumps({"type": "error", "error": told})
            return Response(
                body, answer.status, headers=answer.headers, content_type="application/json"
            )
        says = answer if isinstance(answer, Says) else Says((answer,))
        message = self._message(asked, says)
        if asked.get("stream") is True:
            return Response(_stream(message), content_type="text/event-stream")
        return Response(json.dumps(message), content_type="application/json")

    def _message(self, asked: Json, says: Says) -> Json:
        number = next(self._numbers)
        content: list[Json] = []
        for index, part in enumerate(says.parts):
            if isinstance(part, Use):
                call_id = f"toolu_{number:04d}_{index}"
                use: Json = {"type": "tool_use", "id": call_id, "name": part.name}
                content.append({**use, "input": part.input})
            else:
                content.append({"type": "text", "text": part})
        calls = any(isinstance(part, Use) for part in says.parts)
        spent = says.output_tokens if says.output_tokens is not None else _tokens(content)
        read = says.input_tokens if says.input_tokens is not None else _tokens(asked)
        return {
            "id": f"msg_{number:06d}",
            "type": "message",
            "role": "assistant",
            "model": asked.get("model"),
            "content": content,
            "stop_reason": says.stop or ("tool_use" if calls else "end_turn"),
            "stop_sequence": None,
            "usage": {
                "input_tokens": read,
                "output_tokens": spent,
                "cache_read_input_tokens": says.cache_read,
                "cache_creation_input_tokens": says.cache_write,
            },
        }


def _tokens(value: object) -> int:
    return max(1, len(json.dumps(value)) // 4)


def _stream(message: Json) -> Iterator[str]:
    for name, data in _events(message):
        yield f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n"


def _events(message: Json) -> Iterator[tuple[str, Json]]:
    content, usage = message["content"], message["usage"]
    assert isinstance(content, list)  # noqa: S101 - made so
    assert isinstance(usage, dict)  # noqa: S101 - made so
    begun = {**usage, "output_tokens": 1}
    yield (
        "message_start",
        {"message": {**message, "content": [], "stop_reason": None, "usage": begun}},
    )
    for index, block in enumerate(content):
        text = block["type"] == "text"
        start = {**block, "text": ""} if text else {**block, "input": {}}
        delta = (
            {"type": "text_delta", "text": block["text"]}
            if text
            else {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        )
        yield "content_block_start", {"index": index, "content_block": start}
        yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    ended: Json = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield (
        "message_delta",
        {
            "delta": ended,
            "usage": {"output_tokens": usage["output_tokens"]},
        },
    )
    yield "message_stop", {}
